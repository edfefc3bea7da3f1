"""``tamis.toml`` in the editor."""
