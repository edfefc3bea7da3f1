"""What an editor asks of a document: pure functions to plain data. Never imports pygls or lsprotocol, never does I/O."""
