"""Which tools there are: found on disk or given by others, under which names and versions."""
