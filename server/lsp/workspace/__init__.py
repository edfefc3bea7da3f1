"""The folders that a client has open: scanned, watched, loaded."""
