"""A parsed call against its tool's schema: typed arguments, or findings at their exact source characters.

Joins the two halves: ``schema/plan.py`` knows arguments and JSON Pointers, the call model knows where each value was written. Must
not know the registry, documents or the wire's ranges.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import accumulate

import msgspec

from tamis.protocols.catalogue import CATALOGUE, Of, placed, value_message
from tamis.protocols.contract import Problem
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree, from_pointer, to_pointer
from tamis.protocols.model import Call, Diag, Edit, Fix, Json, Param, Value
from tamis.protocols.plugins import SHIPPED, extras_of, find_protocol
from tamis.protocols.positions import Span
from tamis.protocols.schema.coerce_text import base64_bytes, read_json_text
from tamis.protocols.schema.plan import Finding, Plan, Reading
from tamis.protocols.schema.secrets import mask
from tamis.protocols.schema.words import excerpt, index_in, is_object, label
from tamis.protocols.suggest import same_name

__all__ = ["CallCheck", "LocatedFinding", "Written", "check_call", "locate", "mask", "reading_of", "to_problem", "told"]

_AT_NAME = frozenset(("VA403", "VA441"))
_OF_URIS = frozenset(("VA403", "VA410"))
"""What can be said of a parameter that is given by URI before its path is known: that there is none, or that it takes no text."""
MAX_NAME_AHEAD = 400
"""How far before a part's value its name is looked for, in code points."""


class LocatedFinding(msgspec.Struct, frozen=True):
    """A finding with its place in the source, as a diagnostic that editors show."""

    finding: Finding
    diag: Diag


class CallCheck(msgspec.Struct, frozen=True):
    """A checked call; ``coerced`` holds the typed arguments when ``valid``, else nothing of use."""

    valid: bool
    coerced: dict[str, Json]
    problems: list[LocatedFinding]

    @property
    def errors(self) -> list[Finding]:
        """Findings that keep the call from running."""
        return [problem.finding for problem in self.problems if problem.finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """Findings that are reported only."""
        return [problem.finding for problem in self.problems if problem.finding.severity != "error"]


def check_call(call: Call, source: str, plan: Plan, *, reading: Reading | None = None) -> CallCheck:
    """Checks one parsed call. ``source`` is the whole text it was read from. Never raises.

    A TAM type hint is applied first (T22): ``json`` gives the parsed value, ``base64`` the bytes as base64 text, or in the encoding that the
    schema names by ``contentEncoding`` (ruling 56); data that cannot be read so is an error at its character.
    """
    reading = reading or reading_of(call.protocol)
    args: dict[str, Json] = {}
    findings: list[Finding] = []
    for param in call.params:
        raw, hinted = _hinted(param, call.type_hints.get(param.name), source, plan)
        findings += hinted
        args[param.name] = raw if reading == "typed" else _as_declared(param, raw, plan, source)
    # What is given by URI is there, as the path of a file that is known only when the call runs (T17).
    by_uri = {name: uri for name, uri in call.uris.items() if name not in args}
    outcome = plan.check({**args, **by_uri}, reading, drops_nulls=True)
    errors = outcome.errors
    if by_uri:
        errors = [
            error
            for error in errors
            if error.code in _OF_URIS or not error.path or from_pointer(error.path)[0] not in by_uri
        ]
    bad = {finding.path for finding in findings if finding.severity == "error"}
    findings += [finding for finding in [*errors, *outcome.warnings] if finding.path not in bad]
    valid = not errors and not bad
    written = Written(call, source) if findings else None
    located = [LocatedFinding(finding, _diag(finding, written)) for finding in findings if written is not None]
    coerced = outcome.coerced if valid and is_object(outcome.coerced) else {}
    return CallCheck(valid, {name: value for name, value in coerced.items() if name not in by_uri}, located)


def reading_of(protocol: str) -> Reading:
    """How the values of a protocol are read: as its markers say; one that is not known is read like markup."""
    call_protocol = find_protocol(protocol)
    return "markup" if call_protocol is None else call_protocol.markers.values


def told(problems: Iterable[Problem], of: Of = "arguments") -> str:
    """Problems in one sentence for who sees no paths, such as a model: each says which part it is about. Their paths have no prefix."""
    return "; ".join(
        placed(problem.code, problem.message, label(problem.path) if problem.path else "", of) for problem in problems
    )


def to_problem(finding: Finding, prefix: str = "", of: Of = "arguments") -> Problem:
    """A finding on the wire, without a range; ``prefix`` is the pointer of the arguments (``/calls/0/args``)."""
    entry = CATALOGUE[finding.code]
    diag = Diag(finding.code, (0, 0), finding.args)
    unset = msgspec.UNSET
    return Problem(
        code=finding.code,
        slug=entry.slug,
        path=f"{prefix}{finding.path}",
        message=value_message(diag, of, whole=not finding.path),
        expected=unset if finding.expected is None else finding.expected,
        received=unset if finding.received is None else finding.received,
        suggestion=unset if finding.suggestion is None else finding.suggestion,
    )


def _hinted(param: Param, hint: str | None, source: str, plan: Plan) -> tuple[Json, list[Finding]]:
    """The raw value after its type hint, and what is wrong with it."""
    value = param.value
    raw: Json = value.python(source)
    kind = (hint or "").strip().lower()
    if not isinstance(raw, str) or kind not in ("json", "base64"):
        return raw, []
    path = to_pointer([param.name])
    if kind == "json":
        typed, notes = read_json_text(raw)
        findings = [
            Finding(
                note.code,
                path,
                "error" if note.error else "warning",
                {"p": param.name, **note.args},
                "JSON text",
                excerpt(raw[note.at[0] :] or raw),
                suggestion=note.suggestion,
                at=note.at,
            )
            for note in notes
        ]
        return (raw if any(note.error for note in notes) else typed), findings
    text, fault = _from_base64(raw, _encoding_of(plan.schema, param.name))
    if fault is None:
        return text, []
    at, reason = fault
    args: dict[str, str | int] = {"p": param.name, "expected": "base64 text", "excerpt": reason}
    return raw, [Finding("VA410", path, "error", args, "base64", reason, at=at)]


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")


def _encoding_of(schema: object, name: str) -> str:
    """The ``contentEncoding`` of a declared parameter, in small letters; ``base64`` where the schema names none."""
    properties = schema.get("properties") if is_object(schema) else None
    declared = properties.get(name) if is_object(properties) else None
    encoding = declared.get("contentEncoding") if is_object(declared) else None
    return encoding.lower() if isinstance(encoding, str) else "base64"


def _from_base64(text: str, encoding: str = "base64") -> tuple[str, tuple[Span, str] | None]:
    """Base64 as text of an encoding; blanks and line breaks are allowed, either alphabet, padding may be missing."""
    for i, char in enumerate(text):
        if char not in _ALPHABET and not char.isspace():
            return "", ((i, i + 1), f"{char!r} at character {i + 1}")
    data = base64_bytes(text)
    if data is None:
        return "", ((0, len(text)), "a length that no base64 text has")
    written = _encoded(data, encoding)
    return ("", ((0, len(text)), f"bytes that are no text in {encoding}")) if written is None else (written, None)


def _encoded(data: bytes, encoding: str) -> str | None:
    """Bytes in one of the encodings that JSON Schema knows (RFC 2045 and RFC 4648); None where they are no text in it."""
    write = _WRITERS.get(encoding)
    try:
        return (write(data) if write is not None else data).decode("ascii" if encoding == "7bit" else "utf-8")
    except UnicodeDecodeError:
        return None


_WRITERS: dict[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64encode,
    "base64url": base64.urlsafe_b64encode,
    "base32": base64.b32encode,
    "base32hex": base64.b32hexencode,
    "base16": base64.b16encode,
    "quoted-printable": binascii.b2a_qp,
}
"""Encodings that are not the bytes themselves (``7bit``, ``8bit``, ``binary``)."""


def _as_declared(param: Param, raw: Json, plan: Plan, source: str) -> Json:
    """Markup inside a parameter that is declared as a text is that text (ruling 15: a schema overrides)."""
    value = param.value
    if value.kind == "text" or value.repeated or not is_object(plan.schema):
        return raw
    properties = plan.schema.get("properties")
    declared = properties.get(param.name) if is_object(properties) else None
    if is_object(declared) and declared.get("type") == "string":
        return value.text(source)
    return raw


# Places


class Written:
    """A call as it stands in its source, for looking up the places of many findings: names are sorted and texts are read once."""

    def __init__(self, call: Call, source: str) -> None:
        self.call = call
        self.source = source
        self._params: dict[str, Param] = {}
        for param in call.params:
            self._params.setdefault(param.name, param)
        self._texts: dict[int, _Text] = {}

    def param(self, name: str) -> Param | None:
        """The parameter of that name, or None."""
        return self._params.get(name)

    def text(self, value: Value) -> _Text:
        """A text of the call; ``value`` is a part of it."""
        # The call holds its values, so that none of them gets the id of another.
        text = self._texts.get(id(value))
        if text is None:
            text = self._texts[id(value)] = _Text(value, self.source)
        return text


class _Text:
    """A decoded text and the places of its characters."""

    def __init__(self, value: Value, source: str) -> None:
        self.decoded = value.text(source)
        self._pieces = value.pieces
        self._end = value.span[1]
        lengths = (piece.end - piece.start if piece.text is None else len(piece.text) for piece in value.pieces)
        self._ends = list(accumulate(lengths))

    @cached_property
    def json(self) -> tuple[int, JsonTree]:
        """The text as JSON, and where that begins: behind a byte order mark."""
        lead = len(self.decoded) - len(self.decoded.lstrip("\ufeff"))
        return lead, parse_json(self.decoded[lead:])

    def source_span(self, start: int, end: int) -> Span:
        """As ``Value.source_span``, without going through all pieces."""
        first = self._offset(start)
        if end <= start:
            return first, first
        at = bisect_left(self._ends, end)
        if at == len(self._ends):
            return first, self._pieces[-1].end if self._pieces else self._end
        piece = self._pieces[at]
        return first, piece.end if piece.text is not None else piece.end - (self._ends[at] - end)

    def _offset(self, decoded: int) -> int:
        at = bisect_right(self._ends, decoded)
        if at == len(self._ends):
            return self._pieces[-1].end if self._pieces else self._end
        piece = self._pieces[at]
        return piece.start if piece.text is not None else piece.end - (self._ends[at] - decoded)


def _diag(finding: Finding, written: Written) -> Diag:
    span, value = locate(finding, written)
    args = {**finding.args, "tool": written.call.tool_id} if finding.code == "VA441" else finding.args
    fix = _fix(finding, written, span, value)
    data: dict[str, Json] = {"path": finding.path}
    if finding.suggestion is not None:
        data["suggestion"] = finding.suggestion
    return Diag(finding.code, span, dict(args), severity=finding.severity, fix=fix, data=data)


def locate(finding: Finding, written: Written) -> tuple[Span, Value | None]:
    """The source span of a finding, and the value it lies in; a missing parameter is at the tool id."""
    call, source = written.call, written.source
    tokens = from_pointer(finding.path)
    param = written.param(tokens[0]) if tokens else None
    if param is None:
        return call.tool_span, None
    if len(tokens) == 1 and finding.code in _AT_NAME:
        return param.name_span, None
    value, rest = _descend(param.value, tokens[1:])
    if not rest and finding.code in _AT_NAME:
        named = _names_around(value, tokens[-1], call, source)
        if named is not None:
            return named[0], None
    if value.kind != "text":
        return value.span, value
    if finding.at is not None:
        return written.text(value).source_span(*finding.at), value
    if rest:
        inner = _inside_json(written.text(value), rest, finding.code)
        if inner is not None:
            return inner, value
    return value.span, value


def _descend(value: Value, tokens: list[str]) -> tuple[Value, list[str]]:
    """The deepest written part along a path, and what of the path is left.

    One element that a schema reads as a list has no index of its own: the index is passed over (ruling 2).
    """
    while tokens:
        token = tokens[0]
        if value.kind == "list" and (index := index_in(value.items, token)) >= 0:
            value = value.items[index]
        elif value.kind == "object" and token in value.entries:
            value = value.entries[token]
        elif value.kind == "object" and token.isdigit():
            only = value.entries.get("item")
            if only is not None and len(value.entries) == 1:
                value = only
                if value.kind == "list":
                    continue
        else:
            return value, tokens
        tokens = tokens[1:]
    return value, tokens


def _inside_json(text: _Text, tokens: list[str], code: str) -> Span | None:
    """The source span of a place inside JSON text; of a missing member, its object's opening bracket."""
    lead, tree = text.json
    pointer = to_pointer(tokens)
    key = tree.key_span(pointer) if code in _AT_NAME else None
    node, exact = tree.nearest(pointer)
    if node is None:
        return None
    span = key or (node.span if exact or node.kind not in ("object", "array") else (node.start, node.start + 1))
    return text.source_span(span[0] + lead, span[1] + lead)


def _names_around(value: Value, name: str, call: Call, source: str) -> tuple[Span, Span | None] | None:
    """Where the name of a part stands before its value and, of an element, behind it; None where it is written otherwise."""
    before = source[max(call.span[0], value.span[0] - MAX_NAME_AHEAD) : value.span[0]]
    if extras_of(call.protocol).elements:
        opened, closed = (
            rf"<({re.escape(name)})(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[\s*)?\Z",
            rf"\s*(?:\]\]>\s*)?</({re.escape(name)})\s*>",
        )
        match = re.search(opened, before)
        close = re.compile(closed).match(source, value.span[1], call.span[1])
    else:
        match, close = re.search(rf'"({re.escape(name)})"\s*:\s*"?\Z', before), None
    if match is None:
        return None
    shift = value.span[0] - len(before)
    return (match.start(1) + shift, match.end(1) + shift), close.span(1) if close is not None else None


def _renamed_key(param: Param, call: Call, source: str, name: str) -> Edit:
    """A parameter's name replaced; what a pair's key says besides (``common_``, the step) stays."""
    start, end = param.name_span
    raw = source[start:end]
    if param.origin not in ("pair", "common") or raw == param.name:
        return Edit(start, end, name)
    at = raw.rfind(param.name) if param.origin == "common" else 0 if raw.startswith(param.name) else -1
    if at >= 0:
        return Edit(start + at, start + at + len(param.name), name)
    number = re.search(r"\d+\Z", raw)
    stepped = number is not None and call.step is not None and not param.name.endswith(number[0])
    return Edit(
        start, end, ("common_" if param.origin == "common" else "") + name + (f"_{call.step}" if stepped else "")
    )


def _renamed_part(finding: Finding, written: Written, tokens: list[str]) -> Fix | None:
    """A part inside a value under the name that the finding proposes."""
    call, source = written.call, written.source
    suggestion, param = finding.suggestion, written.param(tokens[0])
    if suggestion is None or param is None or any(mark in suggestion for mark in '<&>"\\ \n'):
        return None
    value, rest = _descend(param.value, tokens[1:])
    owner, _ = _descend(param.value, tokens[1:-1])
    named = _names_around(value, tokens[-1], call, source)
    if rest or named is None or value.repeated or suggestion in owner.entries:
        return None
    edits = [Edit(*named[0], suggestion)]
    if extras_of(call.protocol).elements:
        if named[1] is None:
            return None
        edits.append(Edit(*named[1], suggestion))
    sure = "safe" if same_name(suggestion, tokens[-1]) else "unsafe"
    return Fix(f"Rename to '{suggestion}'", tuple(edits), sure)


def _fix(finding: Finding, written: Written, span: Span, value: Value | None) -> Fix | None:
    """The replacement that the finding proposes, where it can be written at its place without escaping."""
    call, source = written.call, written.source
    suggestion = finding.suggestion
    if suggestion is None or call.protocol not in SHIPPED:
        return None
    typed = reading_of(call.protocol) == "typed"
    if typed and (finding.code != "VA403" or '"' in suggestion or "\\" in suggestion):
        return None
    if finding.code == "VA403":
        tokens = from_pointer(finding.path)
        if len(tokens) > 1:
            return _renamed_part(finding, written, tokens)
        param = written.param(tokens[0])
        if param is None:
            return None
        edits = [_renamed_key(param, call, source, suggestion)]
        closer = f"</{source[span[0] : span[1]]}>"
        if param.origin == "child" and extras_of(call.protocol).elements:
            if not source.endswith(closer, 0, param.span[1]):
                return None
            edits.append(Edit(param.span[1] - len(closer) + 2, param.span[1] - 1, suggestion))
        sure = "safe" if same_name(suggestion, tokens[0]) else "unsafe"
        return Fix(f"Rename to '{suggestion}'", tuple(edits), sure)
    if value is None or value.kind != "text" or finding.code not in ("VA410", "VA411", "VA430", "VA431"):
        return None
    if span != value.span or any(mark in suggestion for mark in "<&>«»「」\n"):
        return None
    sure = "safe" if finding.code == "VA411" or same_name(suggestion, value.text(source)) else "unsafe"
    return Fix(f"Replace by '{suggestion}'", (Edit(span[0], span[1], suggestion),), sure)
