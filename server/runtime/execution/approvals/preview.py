"""What a person is shown of a call: its arguments without secrets and without what cannot be seen, how much it may do.

Pure. Must not know who is asked.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from tamis.protocols.contract import Permissions
from tamis.protocols.observation import cut_middle, plain
from tamis.protocols.visible import visible

Risk = Literal["low", "medium", "high"]
MAX_PREVIEW_CHARS = 2_000
MAX_SENTENCE_CHARS = 2_000
MAX_NAMES = 40


def json_text(value: object) -> str:
    """A value as JSON on one line; never raises."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    except (RecursionError, ValueError):
        return '"(nested too deeply to be shown)"'


def preview(args: dict[str, Any], limit: int = MAX_PREVIEW_CHARS) -> str:
    """The arguments as JSON of about ``limit`` characters at most. Each has a share, and is cut in its middle, which says how much is
    missing: a long one hides neither another nor its own end."""
    whole = json_text(args)
    if len(whole) <= limit:
        shown = visible(whole)
        if len(shown) <= limit:
            return shown
    names = list(args)[:MAX_NAMES]
    texts = {name: _bounded(json_text(args[name]), limit) for name in names}
    lengths = sorted(len(text) for text in texts.values())
    left, share = limit, limit
    for at, length in enumerate(lengths):
        share = max(16, left // (len(lengths) - at))
        if length > share:
            break
        left -= length
    members = [f"{visible(json_text(cut_middle(name, 100)))}:{cut_middle(text, share)}" for name, text in texts.items()]
    more = [f"… {len(args) - len(names)} more"] if len(args) > len(names) else []
    return f"{{{','.join([*members, *more])}}}"


def _bounded(text: str, limit: int) -> str:
    return visible(text if len(text) <= limit else cut_middle(text, limit))


def risk_of(permissions: Permissions, *, builds: bool, secrets: bool, unconfined: bool) -> Risk:
    """How much a call may do: ``high`` when it can change or send something, or its packages are built; ``medium`` when it is shown
    more than its own folder, is given secrets, or no sandbox holds it."""
    granted = permissions.granted
    if granted.write or granted.hosts or granted.capabilities or builds:
        return "high"
    return "medium" if granted.read or granted.secrets or secrets or unconfined else "low"


def rights_in_words(permissions: Permissions) -> str:
    """What was granted, as the end of a sentence; empty when it is nothing."""
    granted = permissions.granted
    said = [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("read", granted.read),
            ("write", granted.write),
            ("reach", granted.hosts),
            ("use", granted.capabilities),
            ("be given the secret", granted.secrets or []),
        )
        if names
    ]
    return "; ".join(said)


def sentence(tool_id: str, display_name: str, args_text: str, permissions: Permissions, limit: int) -> str:
    """A question on one line: the tool, its arguments, what it may do."""
    title = f"{tool_id} ({display_name})" if display_name and display_name != tool_id else tool_id
    rights = rights_in_words(permissions)
    may = f" It may {rights}." if rights else ""
    text = f"Run {title} with these arguments? {_cut(args_text, limit)}{_cut(may, limit)}"
    # A direction or control character in an argument must not change what the question seems to say.
    return visible(plain(text))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"
