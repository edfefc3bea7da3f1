"""What a tool is and what running it means. Never knows LSP or JSON-RPC framing."""
