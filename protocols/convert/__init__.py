"""Calls from one form to another, with every loss named."""
