"""A small Python client of the JSON-RPC face, for hosts."""
