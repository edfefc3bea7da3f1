"""What may stand at a place: calls in texts, JSON by a schema, manifests."""
