"""Running the script of a tool in the sandbox, and what its outcome means."""
