"""JSON-RPC for host applications: framing and methods over the runtime."""
