"""The verbs of the framework lane, one module each; each has ``register(server, session)``."""
