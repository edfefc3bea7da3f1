"""One call, or the calls of a text, from a name and arguments to a result."""
