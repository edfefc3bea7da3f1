"""The integrity hash of a text."""

from __future__ import annotations

import base64
import hashlib


def sri(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return "sha256-" + base64.b64encode(hashlib.sha256(data).digest()).decode()
