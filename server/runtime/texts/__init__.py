"""Texts around calls: prompts, observations, conversions, formatting, checking."""
