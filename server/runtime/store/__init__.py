"""The database that outlives the process: its file, its tables, who works on what in it."""
