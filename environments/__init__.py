"""Dependency environments: what a script's folder declares, installed once in the sandbox and shown read-only to every run.

Knows package installers and their files; must not know tools, manifests, settings files or the server.
"""
