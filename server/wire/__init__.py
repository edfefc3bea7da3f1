"""JSON-RPC messages on standard streams, for every face that speaks it. Must not know methods, documents or the runtime."""
