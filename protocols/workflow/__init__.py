"""Workflows: their files, their graphs, the payload that an engine runs, and how they are drawn."""
