"""Text to structure and back: calls, manifests, schemas, observations.

This room is pure. It never reads a file, starts a process, looks at a clock or knows LSP; see ARCHITECTURE.md.
"""
