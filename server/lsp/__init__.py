"""The only place that knows pygls and lsprotocol. Holds no rules of its own."""
