"""VCP: request blocks of marked values (seed 001)."""
