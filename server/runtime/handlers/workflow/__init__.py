"""Workflows: the engine that runs a graph, and its runs."""
