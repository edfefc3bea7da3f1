"""Ways between places: definition, references, rename, symbols, links."""
