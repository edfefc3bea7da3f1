"""Tamis: a language server and sandboxed runner for agent tools.

Holds only the version, as a constant: reading package metadata at start-up costs more than the whole command line.
"""

__version__ = "0.1.0"
