"""Grammars for constrained decoding: what a model may write so that its calls read back whole and check against their schemas."""
