"""Calling tools of MCP servers that run in the sandbox."""
