"""Secrets of definitions that are imported: under which names, and what their operator has to write for them.

Pure. Must not know which format a definition had.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from tamis.protocols.manifest.security import variable_name_fault

# Words that hold such a word and name no secret: keywords, and how many tokens a model may write.
_NO_SECRET = re.compile(
    r"key[-_]?words?|(?:max|min|limit)[a-z_]*tokens|tokens[a-z_]*(?:max|min|per|limit|count)", re.IGNORECASE
)
_SECRET = re.compile(r"key|token|secret|passw|pwd|credential|auth|cookie|session|密钥|密码|令牌", re.IGNORECASE)


def secret_name(wanted: str, taken: Container[str]) -> str:
    """A name that a secret can have, made of any text, beside those that are taken."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", wanted)
    base = re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_").upper()[:100] or "API_KEY"
    if variable_name_fault(base):
        base = f"KEY_{base}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name


def is_secret_setting(name: str) -> bool:
    """Whether a setting of this name holds a secret, as far as names tell."""
    return _SECRET.search(_NO_SECRET.sub("", name)) is not None


def next_step(names: Iterable[str]) -> str:
    """What the operator has to write so that tools get these secrets."""
    known = list(dict.fromkeys(names))
    lines = ", ".join(f'{name} = {{ env = "{name}" }}' for name in known)
    granted = ", ".join(f'"{name}"' for name in known)
    return (
        f"keys come from your own configuration, never from a model: add {lines} to [secrets], and"
        f' "TOOL_ID" = [{granted}] to [policy.secrets] (docs/secrets.md)'
    )
