"""Typed access to the tree of a JSON file, with located findings: the shared part of manifest and profile reading.

Each method reads one kind of value, reports at the exact key or value when it is another, and gives None. Must not know which
fields a manifest has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.model import Diag, Edit, Fix, Json, Severity
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import excerpt
from tamis.protocols.suggest import best, hint, same_name

MAX_FINDINGS = 200
Family = Literal["MF", "PF", "WF"]
# The same kind of finding has one code in manifests, one in profiles and one in workflows.
_CODES: dict[str, dict[Family, str]] = {
    "type": {"MF": "MF502", "PF": "PF601", "WF": "WF901"},
    "value": {"MF": "MF503", "PF": "PF602"},
    "range": {"MF": "MF531", "PF": "PF603", "WF": "WF903"},
    "unknown": {"MF": "MF504", "PF": "PF604", "WF": "WF904"},
}


class Findings:
    """Collects the diagnostics of one file."""

    __slots__ = ("_family", "diags")

    def __init__(self, family: Family) -> None:
        self._family: Family = family
        self.diags: list[Diag] = []

    @property
    def full(self) -> bool:
        """Whether nothing more is added."""
        return len(self.diags) >= MAX_FINDINGS

    def add(
        self,
        code: str,
        span: Span,
        args: Mapping[str, str | int] | None = None,
        *,
        fix: Fix | None = None,
        data: dict[str, Json] | None = None,
        severity: Severity | None = None,
    ) -> None:
        """One finding; past the cap nothing is added."""
        if len(self.diags) < MAX_FINDINGS:
            self.diags.append(Diag(code, span, dict(args or {}), severity=severity, fix=fix, data=data or {}))

    def wrong_type(self, node: JsonNode, label: str, expected: str) -> None:
        """The value is of another type than wanted."""
        received = excerpt(node.value) if node.kind not in ("object", "array", "error") else "an object"
        if node.kind == "array":
            received = "a list"
        if node.kind != "error":
            self.add(_CODES["type"][self._family], node.span, {"p": label, "expected": expected, "received": received})

    def out_of_range(self, node: JsonNode, label: str, expected: str) -> None:
        """The value is of the right type and outside its range."""
        args = {"p": label, "expected": expected, "received": excerpt(node.value)}
        self.add(_CODES["range"][self._family], node.span, args)

    def text(self, node: JsonNode | None, label: str, *, empty: bool = True) -> str | None:
        """A text; ``empty=False`` refuses a blank one."""
        if node is None:
            return None
        if node.kind != "string" or not isinstance(node.value, str):
            self.wrong_type(node, label, "a text")
            return None
        if not empty and not node.value.strip():
            self.add("MF505", node.span, {"p": label})
            return None
        return node.value

    def flag(self, node: JsonNode | None, label: str) -> bool | None:
        """A boolean."""
        if node is None:
            return None
        if node.kind != "boolean":
            self.wrong_type(node, label, "true or false")
            return None
        return node.value is True

    def whole(self, node: JsonNode | None, label: str, least: int = 0, most: int | None = None) -> int | None:
        """A whole number in a range."""
        if node is None:
            return None
        value = node.value
        # a float is asked, never made of it: a whole number may be larger than any float
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if node.kind != "number" or not isinstance(value, (int, float)) or not whole:
            self.wrong_type(node, label, "a whole number")
            return None
        if value < least or (most is not None and value > most):
            words = f"from {least}" if most is None else f"from {least} to {most}"
            self.out_of_range(node, label, f"a whole number {words}")
            return None
        return int(value)

    def choice(
        self, node: JsonNode | None, label: str, allowed: Iterable[str], also: Mapping[str, str] | None = None
    ) -> str | None:
        """One of some words; ``also`` maps words people write instead to the right ones, for the suggestion only."""
        value = self.text(node, label)
        if value is None or node is None:
            return None
        words = list(allowed)
        if value in words:
            return value
        suggestion = (also or {}).get(value.lower()) or best(value, words)
        fix = None
        if suggestion is not None:
            sure = "safe" if same_name(suggestion, value) else "unsafe"
            fix = Fix(f"Replace by '{suggestion}'", (Edit(node.start, node.end, f'"{suggestion}"'),), sure)
        args = {"p": label, "v": value, "list": ", ".join(words), "hint": hint(suggestion)}
        data: dict[str, Json] = {"suggestion": suggestion} if suggestion else {}
        self.add(_CODES["value"][self._family], node.span, args, fix=fix, data=data)
        return None

    def texts(self, node: JsonNode | None, label: str) -> list[tuple[str, JsonNode]] | None:
        """A list of texts with their nodes; entries of another type are reported and left out."""
        if node is None:
            return None
        if node.kind != "array":
            self.wrong_type(node, label, "a list of texts")
            return None
        texts: list[tuple[str, JsonNode]] = []
        for i, item in enumerate(node.items):
            value = self.text(item, f"{label}[{i}]")
            if value is not None:
                texts.append((value, item))
        return texts

    def object(
        self,
        node: JsonNode | None,
        label: str,
        fields: Iterable[str],
        required: Iterable[str] = (),
        elsewhere: Mapping[str, str] | None = None,
    ) -> dict[str, Member]:
        """The members of an object by name, the last of each; members that are no fields are reported.

        A misspelled ``required`` field is an error at its key, and not reported as missing too. ``elsewhere`` maps fields that
        people look for here to where they stand.
        """
        if node is None:
            return {}
        if node.kind != "object":
            self.wrong_type(node, label, "an object")
            return {}
        known = list(fields)
        by_key: dict[str, Member] = {}
        written = {member.key for member in node.members}
        for member in node.members:
            if member.key in known:
                by_key[member.key] = member
            elif not member.key.startswith("x-") and member.key != "$schema" and member.colon >= 0:
                place = (elsewhere or {}).get(member.key)
                if place is None:
                    self.unknown_field(member, [name for name in known if name not in written], required)
                else:
                    args = {"k": member.key, "hint": hint(place)}
                    self.add(_CODES["unknown"][self._family], member.key_span, args, data={"suggestion": place})
        return by_key

    def unknown_field(self, member: Member, known: list[str], required: Iterable[str] = ()) -> None:
        """A member that is no field."""
        suggestion = best(member.key, known) or _begun(member.key, known)
        if suggestion is None and _ELSEWHERE_CALLED.get(member.key) in known:
            suggestion = _ELSEWHERE_CALLED[member.key]
        fix = None
        if suggestion is not None:
            sure = "safe" if same_name(suggestion, member.key) else "unsafe"
            fix = Fix(f"Rename to '{suggestion}'", (Edit(member.key_start, member.key_end, f'"{suggestion}"'),), sure)
        args = {"k": member.key, "hint": hint(suggestion)}
        data: dict[str, Json] = {"suggestion": suggestion} if suggestion else {}
        level = "error" if suggestion is not None and suggestion in required else None
        code = _CODES["unknown"][self._family]
        if len(self.diags) < MAX_FINDINGS:
            self.diags.append(Diag(code, member.key_span, dict(args), severity=level, fix=fix, data=data))

    def missing(self, node: JsonNode, name: str, why: str = "") -> None:
        """A required field that is not there; reported at the object's opening bracket."""
        if not node.closed:
            return  # the text is cut off, which is said elsewhere
        if any(
            diag.severity == "error" and diag.data.get("suggestion") == name
            for diag in self.diags
            if _within(diag.span, node)
        ):
            return  # a misspelled field stands for it
        self.add("MF501", (node.start, node.start + 1), {"k": name, "why": why}, data={"field": name})


_ELSEWHERE_CALLED = {
    **dict.fromkeys(("inputSchema", "input_schema", "arguments", "args"), "parameters"),
    **dict.fromkeys(("outputSchema", "output_schema", "returns"), "output"),
    **dict.fromkeys(("name", "title"), "displayName"),
    "id": "toolId",
}
"""What other tool formats call fields of a manifest."""


def _begun(key: str, known: Iterable[str]) -> str | None:
    """The one name whose first words a key is: ``memory`` for ``memoryBytes``."""
    size = len(key)
    fitting = [name for name in known if name[:size].lower() == key.lower() and name[size : size + 1].isupper()]
    return fitting[0] if len(fitting) == 1 else None


def _within(span: Span, node: JsonNode) -> bool:
    return node.start <= span[0] and span[1] <= node.end


def value_of(members: dict[str, Member], name: str) -> JsonNode | None:
    """The value of a field, or None where the field is missing or has none."""
    member = members.get(name)
    if member is None or member.value is None or member.value.kind == "error":
        return None
    return member.value
