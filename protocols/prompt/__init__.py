"""What a model is told before it calls: definitions, instructions, examples and the ``{{tools}}`` macro, as text per protocol."""

MAX_FEW_SHOT = 50
"""The most worked calls of one prompt."""
