"""What is written down, counted and traced of calls, and the one filter of what must not stand in it."""
