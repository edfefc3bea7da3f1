"""The hash that a manifest pins its script to (``execution.integrity``, D80). The sandbox checks the bytes that it runs."""

from __future__ import annotations

from tamis.protocols.manifest.reading import ExternalScript, Manifest


def pinned_hash(manifest: Manifest) -> str:
    """What the script must be, as ``sha256-`` and base64; empty when nothing is pinned."""
    return (manifest.execution.integrity or "") if isinstance(manifest.handler, ExternalScript) else ""
