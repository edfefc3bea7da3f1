"""Request ∩ policy = grant: what a tool may reach, which of the operator's rules speak of a call, which secrets it gets."""
