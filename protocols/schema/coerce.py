"""Raw arguments to typed ones, by schema (ruling 2).

A tree of nodes is made from the schema once; a call walks it. Texts become what the schema allows and the text plainly says;
a list, an object or a typed value goes through, part by part. What cannot be read stays as it is, with a finding. Must not
judge whether the result fits the schema: ``schema/plan.py`` does that.
"""

from __future__ import annotations

import re
from typing import Literal

from tamis.protocols.model import Json
from tamis.protocols.schema.coerce_text import Read, Refused, format_name, has_format, read_json_text, read_scalar
from tamis.protocols.schema.valid import Check
from tamis.protocols.schema.words import (
    Finding,
    Where,
    as_json,
    enum_has,
    excerpt,
    is_list,
    is_object,
    label,
    pointer,
    type_of,
    types_in_words,
)

Reading = Literal["any", "markup", "text", "typed"]
"""Where raw arguments come from. ``markup``: ACTION, where one element may stand for a list. ``text``: TAM and VCP, plain texts.
``typed``: JSON from a host, in which a string is a string. ``any``: not known; read like markup, with warnings."""

MAX_TRIES = 10_000
"""Alternatives that are tried in one call; schemas that refer to themselves in several ways would need exponentially many."""
_FENCE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)
_LIST_MARKS = (",", ";", "\n", "，", "；", "、", "|")


class Run:
    """The findings of one walk, and how raw values are to be read."""

    __slots__ = ("drops_nulls", "errors", "in_json", "reading", "tries", "warnings")

    def __init__(self, reading: Reading, *, drops_nulls: bool = False) -> None:
        """``drops_nulls``: a null for an optional member that allows none is left out, with a warning."""
        self.reading: Reading = reading
        self.drops_nulls = drops_nulls
        self.in_json = False
        self.tries = [MAX_TRIES]
        self.errors: list[Finding] = []
        self.warnings: list[Finding] = []

    def trial(self) -> Run:
        """A walk of one alternative, whose findings may be dropped."""
        run = Run(self.reading, drops_nulls=self.drops_nulls)
        run.in_json = self.in_json
        run.tries = self.tries
        return run

    def take(self, trial: Run) -> None:
        """Keeps the findings of a trial."""
        self.errors += trial.errors
        self.warnings += trial.warnings

    def error(
        self,
        code: str,
        where: Where,
        args: dict[str, str | int],
        *,
        expected: str | None = None,
        received: str | None = None,
        suggestion: str | None = None,
        at: tuple[int, int] | None = None,
    ) -> None:
        """Adds a refusal."""
        path = pointer(where)
        args = {"p": label(path), **args}
        self.errors.append(Finding(code, path, "error", args, expected, received, suggestion, at))

    def warn(
        self,
        code: str,
        where: Where,
        args: dict[str, str | int],
        *,
        expected: str | None = None,
        received: str | None = None,
        suggestion: str | None = None,
        at: tuple[int, int] | None = None,
    ) -> None:
        """Adds a warning."""
        path = pointer(where)
        args = {"p": label(path), **args}
        self.warnings.append(Finding(code, path, "warning", args, expected, received, suggestion, at))


class Node:
    """What a schema says about how to read a value."""

    __slots__ = (
        "additional",
        "all_of",
        "choices",
        "enum",
        "format",
        "items",
        "plain",
        "prefix",
        "properties",
        "ref",
        "required",
        "types",
        "valid",
    )

    def __init__(self) -> None:
        self.types: tuple[str, ...] | None = None
        """The types that the schema allows here, in its order; None for all."""
        self.enum: list[Json] | None = None
        self.format: str | None = None
        self.properties: dict[str, Node] = {}
        self.required: frozenset[str] = frozenset()
        self.additional: Node | None = None
        self.items: Node | None = None
        self.prefix: list[Node] = []
        self.all_of: list[Node] = []
        self.choices: list[list[Node]] = []
        self.valid: Check | None = None
        self.plain = False
        """A text goes through verbatim and nothing else needs a look."""

    def coerce(self, value: Json, where: Where, run: Run) -> Json:
        """The value as this schema reads it; what cannot be read stays, with a finding in ``run``."""
        if type(value) is str:
            if self.plain or (run.reading == "typed" and self.format is None):
                return value
            if run.reading != "typed":
                value = self._text(value, where, run)
            if self.format is not None and isinstance(value, str) and not has_format(self.format, value):
                name = format_name(self.format) or self.format
                shown = excerpt(value)
                run.warn("VA438", where, {"excerpt": shown, "expected": name}, expected=name, received=shown)
            return value
        if type(value) is float:
            if self.types is not None and "integer" in self.types and "number" not in self.types and value.is_integer():
                return int(value)
            return value
        if is_object(value):
            if run.reading != "typed" and self.lacks("object"):
                return self._object_as_list(value, where, run)
            value = self._of_object(value, where, run)
        elif is_list(value):
            if run.reading != "typed" and self.lacks("array"):
                return self._list_as_object(value, where, run)
            value = self._of_list(value, where, run)
        else:
            return value
        for part in self.all_of:
            value = part.coerce(value, where, run)
        if run.reading != "typed" or run.drops_nulls:
            for choice in self.choices:
                value = _choose(choice, value, where, run)
        return value

    def lacks(self, name: str) -> bool:
        """Whether the schema allows no value of this type."""
        return self.types is not None and name not in self.types

    # Containers

    def _of_object(self, value: dict[str, Json], where: Where, run: Run) -> dict[str, Json]:
        properties, additional = self.properties, self.additional
        if not properties and additional is None:
            return value
        members: dict[str, Json] = {}
        for name, part in value.items():
            node = properties.get(name, additional)
            if part is None and run.drops_nulls and self._is_optional(name) and node is not None and node.lacks("null"):
                # strict modes of model services make each parameter required, and null the word for "not given"
                run.warn("VA442", (where, name), {}, received="null")
                continue
            members[name] = part if node is None else node.coerce(part, (where, name), run)
        return members

    def _is_optional(self, name: str) -> bool:
        return name in self.properties and name not in self.required

    def _of_list(self, value: list[Json], where: Where, run: Run) -> list[Json]:
        items, prefix = self.items, self.prefix
        if items is None and not prefix:
            return value
        elements: list[Json] = []
        for i, part in enumerate(value):
            node = prefix[i] if i < len(prefix) else items
            elements.append(part if node is None else node.coerce(part, (where, i), run))
        return elements

    def _object_as_list(self, value: dict[str, Json], where: Where, run: Run) -> Json:
        """One element where the schema wants a list: ``<file>`` once, or ``<item>`` children (ruling 2, ruling 15, F23)."""
        if self.lacks("array") or run.in_json or run.reading == "text":
            return value
        inner = value.get("item")
        if len(value) == 1 and inner is not None and not (self.items and "item" in self.items.properties):
            elements: list[Json] = inner if is_list(inner) else [inner]
        else:
            elements = [value]
            if run.reading == "any":
                run.warn("VA413", where, {}, expected="array", received="one value")
        return self.coerce(elements, where, run)

    def _list_as_object(self, value: list[Json], where: Where, run: Run) -> Json:
        """``<item>`` children where the schema wants an object that has a member ``item`` (ruling 15)."""
        member = self.properties.get("item")
        if self.lacks("object") or member is None or run.in_json or run.reading == "text":
            return value
        single = len(value) == 1 and member.lacks("array")
        return self._of_object({"item": value[0] if single else value}, where, run)

    # Texts

    def _text(self, text: str, where: Where, run: Run) -> Json:
        if self.enum is not None:
            is_member, value = self._of_enum(text, where, run)
            if is_member:
                return value
        types = self.types
        if self.choices:
            return self._text_of_choice(text, where, run)
        if types is None or "string" in types:
            # A text stays as it was written (F21); null only where the schema speaks of it, and only when written so.
            if types is not None and "null" in types and text.strip() == "null" and not run.in_json:
                return None
            return text
        return self._read(text, types, where, run)

    def _text_of_choice(self, text: str, where: Where, run: Run) -> Json:
        """A text under ``anyOf`` or ``oneOf``: as it is where an alternative takes it so, else what the first one reads."""
        for choice in self.choices:
            if any(node.types == ("null",) for node in choice) and text.strip() == "null" and not run.in_json:
                return None
            if any(not node.lacks("string") and (node.valid is None or node.valid(text)) for node in choice):
                return text
        for choice in self.choices:
            coerced = _choose(choice, text, where, run)
            if coerced is not text:
                return coerced
        if self.types is not None and len(self.types) == 1 and self.types[0] in ("array", "object"):
            return self._read_json(text, self.types, where, run)
        return text

    def _of_enum(self, text: str, where: Where, run: Run) -> tuple[bool, Json]:
        enum = self.enum or []
        if text in enum:
            return True, text
        trimmed = text.strip()
        for value in enum:
            if isinstance(value, str) and value == trimmed:
                self._loosely(text, value, where, run)
                return True, value
        types = {type_of(value) for value in enum if not isinstance(value, str)}
        for name in ("null", "boolean", "integer", "number"):
            if name not in types:
                continue
            read = read_scalar(trimmed, name)
            if isinstance(read, Read) and enum_has(enum, read.value):
                if read.loose or run.in_json:
                    self._loosely(text, read.value, where, run)
                return True, read.value
        return False, None

    def _loosely(self, text: str, value: Json, where: Where, run: Run) -> None:
        shown = as_json(value)
        bare = value if isinstance(value, str) else shown
        args: dict[str, str | int] = {"raw": text, "value": shown}
        run.warn("VA411", where, args, expected=shown, received=excerpt(text), suggestion=bare)

    def _read(self, text: str, types: tuple[str, ...], where: Where, run: Run) -> Json:
        """A text under a schema that allows no string."""
        loose: Read | None = None
        refused: Refused | None = None
        for name in types:
            if name in ("array", "object"):
                continue
            read = read_scalar(text, name)
            if isinstance(read, Read):
                if not read.loose:
                    if run.in_json:
                        self._loosely(text, read.value, where, run)
                    return read.value
                loose = loose or read
            elif refused is None or refused.why == "other":
                refused = read
        if loose is not None:
            self._loosely(text, loose.value, where, run)
            return loose.value
        if ("array" in types or "object" in types) and not run.in_json:
            return self._read_json(text, types, where, run)
        self._refuse(text, types, where, run, refused)
        return text

    def _refuse(self, text: str, types: tuple[str, ...], where: Where, run: Run, refused: Refused | None) -> None:
        words = types_in_words(types)
        bare = " or ".join(types)
        if refused is not None and refused.why == "lossy":
            run.error("VA412", where, {"raw": text, "type": words}, expected=bare, received=excerpt(text))
            return
        if refused is not None and refused.why == "too-long":
            words += " of at most 4000 digits"
        suggestion = None if refused is None else refused.suggestion
        run.error(
            "VA410",
            where,
            {"expected": words, "excerpt": excerpt(text)},
            expected=bare,
            received=excerpt(text),
            suggestion=suggestion,
        )

    def _read_json(self, text: str, types: tuple[str, ...], where: Where, run: Run) -> Json:
        start = text.lstrip("\ufeff \t\r\n")[:3]
        if start == "```":
            inner = _FENCE.fullmatch(text.strip())
            args: dict[str, str | int] = {"reason": "it stands in a code fence"}
            suggestion = None if inner is None else inner.group(1).strip()
            run.error("VA420", where, args, expected=" or ".join(types), received="a code fence", suggestion=suggestion)
            return text
        if not start.startswith(("[", "{", '"', "//", "/*")):
            return self._single(text, types, where, run)
        value, notes = read_json_text(text)
        if notes:
            bare = " or ".join(types)
            for note in notes:
                say = run.error if note.error else run.warn
                shown = excerpt(text[note.at[0] :] or text)
                at, offer = note.at, note.suggestion
                say(note.code, where, dict(note.args), expected=bare, received=shown, suggestion=offer, at=at)
            if any(note.error for note in notes):
                return text
        kind = type_of(value)
        if kind not in types:
            self._wrong_json(value, types, where, run)
            return text
        run.in_json = True
        try:
            return self.coerce(value, where, run)
        finally:
            run.in_json = False

    def _wrong_json(self, value: Json, types: tuple[str, ...], where: Where, run: Run) -> None:
        """JSON text of another type than wanted; a list of one and a text that is JSON itself are proposed, not taken."""
        suggestion = None
        if is_object(value) and "array" in types:
            suggestion = as_json([value])
        elif isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            suggestion = value
        args: dict[str, str | int] = {"expected": types_in_words(types), "received": types_in_words([type_of(value)])}
        run.error("VA422", where, args, expected=" or ".join(types), received=type_of(value), suggestion=suggestion)

    def _single(self, text: str, types: tuple[str, ...], where: Where, run: Run) -> Json:
        """A bare text under a list: one element of markup is a list of one (ruling 2), a plain text is not."""
        trimmed = text.strip()
        if (
            "array" in types
            and trimmed
            and run.reading in ("markup", "any")
            and not any(mark in trimmed for mark in _LIST_MARKS)
        ):
            trial = run.trial()
            coerced = self.coerce([text], where, trial)
            if not trial.errors:
                run.take(trial)
                if run.reading == "any":
                    args: dict[str, str | int] = {}
                    run.warn("VA413", where, args, expected="array", received="one value", suggestion=as_json(coerced))
                return coerced
        suggestion = None
        if "array" in types and trimmed:
            parts: list[Json] = [part.strip() for part in trimmed.split(",") if part.strip()]
            trial = run.trial()
            coerced = self.coerce(parts, where, trial)
            # What the items could not be is no proposal.
            suggestion = None if trial.errors else as_json(coerced)
        run.error(
            "VA410",
            where,
            {"expected": types_in_words(types), "excerpt": excerpt(text)},
            expected=" or ".join(types),
            received=excerpt(text),
            suggestion=suggestion,
        )
        return text


def _choose(choice: list[Node], value: Json, where: Where, run: Run) -> Json:
    """The value as the first alternative reads it that it then fits: plainly if one does, else loosely."""
    loose: tuple[Json, Run] | None = None
    for node in choice:
        run.tries[0] -= 1
        if run.tries[0] < 0:
            return value
        trial = run.trial()
        coerced = node.coerce(value, where, trial)
        if trial.errors or (node.valid is not None and not node.valid(coerced)):
            continue
        if not trial.warnings:
            return coerced
        loose = loose or (coerced, trial)
    if loose is None:
        return value
    run.take(loose[1])
    return loose[0]
