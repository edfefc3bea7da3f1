"""The plan of a schema as an editor needs it: a verdict per value at once, the whole plan only where words are needed.

``Held`` answers for one schema and is kept while its assertions stay (a description may change). Where the root is plain, a
value is judged member by member, so that after an edit of one property only values that have it are looked at again
(``changed_since``). Its answers are those of ``plan.Plan``. Must not know manifests or places in texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from tamis.protocols.jsontext.green import difference
from tamis.protocols.model import Json
from tamis.protocols.schema.facts import Checked, Facts, changed_members
from tamis.protocols.schema.plan import Plan, compile_plan, is_too_deep
from tamis.protocols.schema.valid import Check, compile_part
from tamis.protocols.schema.words import Finding, is_list, is_object

Use = Literal["arguments", "value"]
"""``arguments``: what a call gives, with unknown names refused as ruling 3 says; ``value``: as JSON Schema means it."""

_PLAIN = frozenset(
    ("type", "properties", "required", "additionalProperties", "title", "$schema", "description", "examples")
)
_QUIET = frozenset(("$comment", "default", "deprecated", "readOnly", "writeOnly", "example", "markdownDescription"))
_FEW = 64


class Held:
    """One schema's verdicts."""

    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self._full: Plan | None = None
        self._reduced: dict[tuple[str, ...], Plan] = {}
        self._asked = 0
        schema, facts = checked.schema, checked.facts
        self._parts: dict[str, Facts] = {}
        self._values: dict[str, Json] = {}
        self._required: list[str] = []
        self._closed = False
        self._strict = False
        self.plain = (
            is_object(schema) and facts is not None and not facts.refs and checked.usable and self._take(schema, facts)
        )

    def _take(self, schema: dict[str, Json], facts: Facts) -> bool:
        if self.checked.draft not in ("2020-12", "2019-09", "draft-07"):
            return False
        if not all(key in _PLAIN or key in _QUIET or key.startswith("x-") for key in schema):
            return False
        if schema.get("type", "object") != "object":
            return False
        extra = schema.get("additionalProperties", True)
        if not isinstance(extra, bool):
            return False
        properties = facts.maps.get("properties")
        if properties is None:
            return False
        required = schema.get("required", [])
        if not is_list(required):
            return False
        self._parts, self._values = properties.parts, properties.value
        self._required = [name for name in required if isinstance(name, str)]
        self._closed = extra is False
        self._strict = "additionalProperties" not in schema or extra is False
        return True

    @property
    def names(self) -> dict[str, Json]:
        """The declared properties, where the root is plain."""
        return self._values

    def fits(self, value: Json, use: Use) -> bool:
        """Whether nothing at all is wrong with a value; false also where only ``errors`` can tell."""
        if not self.plain or type(value) is not dict:
            return False
        parts = self._parts
        refuse = self._closed or (use == "arguments" and self._strict)
        for name in self._required:
            if name not in value:
                return False
        try:
            for name, part in value.items():
                facts = parts.get(name)
                if facts is None:
                    if refuse:
                        return False
                    continue
                check = facts.check
                if check is None:
                    check = facts.check = self._check(name)
                if check is False or not cast("Check", check)(part):
                    return False
        except (RecursionError, ArithmeticError):
            return False
        return not is_too_deep(value)

    def _check(self, name: str) -> Check | Literal[False]:
        part = self._values[name]
        return compile_part(part, part, self.checked.draft) or False

    def check_of(self, name: str) -> Callable[[Json], bool] | None:
        """The verdict of one property, or None where it has none of its own."""
        facts = self._parts.get(name)
        if facts is None:
            return None
        if facts.check is None:
            facts.check = self._check(name)
        return cast("Check", facts.check) if facts.check is not False else None

    def errors(self, value: Json, use: Use) -> tuple[Finding, ...]:
        """What is wrong with a value, in the words of ``Plan.check``."""
        plan = self._plan_for(value)
        if use == "value" and plan.is_valid(value):
            return ()
        return tuple(plan.check(value, "typed").errors)

    def _plan_for(self, value: Json) -> Plan:
        """The whole plan; for a few values of a large schema one of the properties that they have, which says the same."""
        if self._full is not None:
            return self._full
        self._asked += 1
        schema = self.checked.schema
        if not self.plain or not is_object(schema) or type(value) is not dict or len(self._values) <= _FEW:
            return self._whole()
        if self._asked > max(_FEW, len(self._values) // 20) or len(value) > len(self._values) // 4:
            return self._whole()
        wanted = {*value, *self._required}
        if len(wanted) > _FEW:
            return self._whole()
        names = tuple(name for name in self._values if name in wanted)
        known = self._reduced.get(names)
        if known is None:
            kept: dict[str, Json] = {name: self._values[name] for name in names}
            part: dict[str, Json] = {**schema, "properties": kept}
            known = self._reduced[names] = Plan(part, issues=[], names=cast("dict[str, None]", self._values))
        return known

    def _whole(self) -> Plan:
        if self._full is None:
            checked = self.checked
            self._full = Plan(checked.schema, issues=checked.issues) if checked.facts else compile_plan(checked.schema)
            self._reduced.clear()
        return self._full


def hold(checked: Checked, before: Held | None) -> Held:
    """The verdicts of a usable schema; those of a version before where its assertions are the same."""
    if before is not None:
        if before.checked.schema is checked.schema:
            return before
        known = before.checked
        if known.facts is not None and checked.facts is not None and known.root.token == checked.root.token:
            return before
    return Held(checked)


def changed_since(before: Held, now: Held) -> frozenset[str] | None:
    """The properties whose schemas differ between two versions; None where that does not tell all that may differ."""
    if before is now:
        return frozenset()
    if not (before.plain and now.plain) or before.checked.draft != now.checked.draft or _rest(before) != _rest(now):
        return None
    old, new = before._parts, now._parts  # pyright: ignore[reportPrivateUsage]
    changed = set(changed_members(cast("dict[str, Json]", old), cast("dict[str, Json]", new))[0])
    changed = {name for name in changed if name not in old or old[name].token != new[name].token}
    if len(new) != len(old) or any(name not in old for name in changed):
        known = difference(old, new)
        changed.update(name for name in (old if known is None else known.gone) if name not in new)
    return frozenset(changed)


def _rest(held: Held) -> tuple[tuple[str, object], ...]:
    """The assertions of the root besides its properties."""
    token = cast("tuple[tuple[str, object], ...]", held.checked.root.token)
    return tuple(piece for piece in token if piece[0] != "properties")
