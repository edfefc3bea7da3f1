"""What is written down, where, and what must not stand in it."""
