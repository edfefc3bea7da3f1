"""One run of one program, safely.

This room never knows tools, protocols or the server; see ARCHITECTURE.md.
"""
