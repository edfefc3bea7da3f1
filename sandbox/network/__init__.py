"""The way out of a sandbox: the proxy that serves the listener made inside, and the rules of what it lets through."""
