"""Tools that ask for secrets, and settings that grant them."""

from __future__ import annotations

from typing import Any

KEY = "s3cr3t/Key+with=odd&signs"


# says whether it has the key, without the key
CHECK = (
    "import hashlib, json, os\nvalue = os.environ.get('API_KEY')\npath = os.environ.get('API_KEY_FILE')\n"
    "if path:\n    value = open(path, newline='').read()\n"
    "print(json.dumps({'hash': hashlib.sha256((value or '').encode()).hexdigest(), 'file': path}))"
)


ASKS = {"secrets": ["API_KEY"]}


def settings_with(source: dict[str, Any], granted: bool = True, **more: Any) -> dict[str, Any]:
    policy = {"secrets": {"test:*": ["API_KEY"]}} if granted else {}
    return {"secrets": {"API_KEY": source}, "policy": {**policy, **more}}


def digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()
