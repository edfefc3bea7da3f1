"""What is shown to the sandbox for an MCP server that is reached over HTTP."""
