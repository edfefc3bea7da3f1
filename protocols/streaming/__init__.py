"""Reading a text while it arrives: text that is safe to show, calls as soon as they are certain, the call being written."""
