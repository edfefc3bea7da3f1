"""Workflows as tools: their graph, its checks, and the engine that runs it."""
