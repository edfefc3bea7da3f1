"""The settings of a root: read, judged, described."""
