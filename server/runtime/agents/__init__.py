"""Agents: their profiles and sessions."""
