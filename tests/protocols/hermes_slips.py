"""What models do wrong in Hermes blocks."""

from __future__ import annotations

import random

JSON_CHARS = "{}[]\",:\\'n<>/_tool_call 1a\n\t"


def slips(text: str, rng: random.Random) -> str:
    """One small change, as a model's slip or a cut would make it."""
    at = rng.randrange(len(text) + 1)
    kind = rng.randrange(6)
    if kind == 0:
        return text[:at] + text[at + rng.randrange(1, 6) :]
    if kind == 1:
        return text[:at] + rng.choice(JSON_CHARS) + text[at:]
    if kind == 2:
        return text.replace('"', "'", rng.randrange(1, 6))
    if kind == 3:
        return text.replace("}", ",}", 1)
    if kind == 4:
        return text.replace("true", "True").replace("null", "None").replace("\\n", "\n")
    return text[:at] + text[max(0, at - rng.randrange(1, 40)) :]
