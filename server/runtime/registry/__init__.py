"""Which tools there are: found on disk or registered by others, under which names and versions."""
