"""Tool manifests and agent profiles as they are read, with located findings."""
