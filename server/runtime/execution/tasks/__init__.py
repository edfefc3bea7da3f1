"""Calls that outlive their request: durable tasks."""
