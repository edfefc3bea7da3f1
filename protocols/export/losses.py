"""What an export could not carry over: one entry for each deviation, never more than a bounded number of them."""

from __future__ import annotations

from tamis.protocols.contract import Loss
from tamis.protocols.model import escape_pointer

MAX_LOSSES = 500
REFUSED = frozenset(("property-name", "over-limit"))
"""Codes of what the target refuses also as it is exported: the tool cannot be used there."""
SAID_OTHERWISE = frozenset(
    (
        *(
            "optional-nullable",
            "object-closed",
            "object-opened",
            "default-dropped",
            "one-of-as-any-of",
            "all-of-merged",
        ),
        *("name-changed", "secret-values", "use-json-schema", "examples-dropped", "description-added"),
    )
)
"""Codes of what the export says in another way, or what a model does not need to call the tool; all others are lost."""


class Losses:
    """Collects the losses of one definition, in the order in which they are met and each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Loss] = {}
        self._more = 0

    def add(self, code: str, path: str, message: str) -> None:
        """One loss; ``path`` is a JSON Pointer into the manifest."""
        if (code, path) in self._found:
            return
        if len(self._found) >= MAX_LOSSES:
            self._more += 1
            return
        self._found[code, path] = Loss(code=code, path=path, message=message)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def found(self) -> list[Loss]:
        """The losses; past the bound a last one counts the others."""
        if not self._more:
            return list(self._found.values())
        more = Loss(code="more", path="", message=f"{self._more} more losses are not listed")
        return [*self._found.values(), more]


def below(path: str, *names: str | int) -> str:
    """The pointer of what stands below ``path`` under these names."""
    return path + "".join(f"/{escape_pointer(str(name))}" for name in names)
