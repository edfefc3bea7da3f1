"""A parameter schema compiled into a plan: coercion, validity, findings, secrets."""
