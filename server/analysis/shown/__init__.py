"""How a document is shown and laid out: tokens, folds, hints, selection, formatting."""
