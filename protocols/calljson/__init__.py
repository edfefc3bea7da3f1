"""Calls as the JSON of vendors' interfaces: OpenAI, Anthropic, MCP, and ``{toolName, arguments}`` (W14)."""
