"""Writing calls: what the protocols' writers share."""
