"""The registered tools as an MCP server on stdio: a thin face of the runtime."""
