"""Methods that are called by name instead of run as scripts: Tamis's own, or a host's."""
