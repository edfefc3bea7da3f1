"""Calls from a name and arguments to a result: resolve → check → authorize → run → judge."""
