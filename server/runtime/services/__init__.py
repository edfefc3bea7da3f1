"""Methods that are called by name instead of run as scripts: built in, or registered by a host."""
