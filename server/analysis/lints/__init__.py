"""Lints: advice on manifests, scripts and calls that reading them does not need. ``lint.py`` is the front door."""
