"""Tolerant JSON with the place of everything in it."""
