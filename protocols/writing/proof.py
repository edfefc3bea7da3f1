"""Writing with proof: what a writer made is read again, and a call that does not come back equal is refused.

So a writer's text is exact whatever its rules overlook: nothing is renamed, trimmed or dropped without a word. Linear: one
reading of everything, and where that shows a fault, one of each call alone. Must not know how a protocol spells a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol as TypingProtocol
from typing import cast

from tamis.protocols.base import PlainCall, Refusal, WriteOptions, Written
from tamis.protocols.catalogue import message
from tamis.protocols.model import MAX_NAME_CHARS, Call, Document, Json, ReadOptions, escape_pointer
from tamis.protocols.plugins import BUILT_IN
from tamis.protocols.writing.values import Expectations, excerpt, fault_of, same

# Several calls in one block, variables for the platform, the extension that a value needs, host fields that were asked for.
_HARMLESS = frozenset(("AX135", "AX162", "TM247", "VC316", "VC327"))

_ROUNDS = 4
_NOT_RUN = "it would not run"

Numbered = tuple[int, PlainCall]


class Form(TypingProtocol):
    """What a writer brings: its rules and its spelling."""

    @property
    def protocol(self) -> str:
        """The id under which the text is read again."""
        ...

    @property
    def title(self) -> str:
        """The protocol's name in sentences."""
        ...

    @property
    def expectations(self) -> Expectations:
        """The schemas of the tools."""
        ...

    def faults(self, call: PlainCall) -> list[tuple[str, str, str]]:
        """What the protocol's rules forbid: the pointer in the call, what it is about, and why."""
        ...

    def text(self, calls: Sequence[PlainCall]) -> str:
        """The calls in the protocol's canonical spelling."""
        ...


def write_proved(form: Form, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
    """The calls that come back equal as text, and a refusal for every other one. Never raises."""
    refusals: list[Refusal] = []
    good: list[Numbered] = []
    for index, call in enumerate(calls):
        faults = _common(call) or form.faults(call)
        new_refusals = [refusal(form, f"/{index}{path}", what, why) for path, what, why in faults]
        refusals += new_refusals
        if not new_refusals:
            good.append((index, call))
    text, new_refusals = _attempt(form, good, options)
    if new_refusals:
        kept: list[Numbered] = []
        for item in good:
            _, faults = _attempt(form, [item], options)
            refusals += faults
            if not faults:
                kept.append(item)
        text, new_refusals = _attempt(form, kept, options)
        for _ in range(_ROUNDS):
            if not new_refusals:
                break
            # Fine alone, and not beside the others.
            refusals += new_refusals
            named = {refusal.path.split("/")[1] for refusal in new_refusals}
            kept = [item for item in kept if str(item[0]) not in named]
            text, new_refusals = _attempt(form, kept, options)
        if new_refusals:
            why = "beside the other calls it would not be read back"
            refusals += [refusal(form, f"/{index}", f"the call of '{call.tool_id}'", why) for index, call in kept]
            text = ""
    return Written(text, tuple(refusals))


def refusal(form: Form, path: str, what: str, why: str) -> Refusal:
    """A TC050 in the form's name."""
    return Refusal("TC050", path, {"what": what, "protocol": form.title, "why": why})


def carries(call: PlainCall, *fields: str) -> list[tuple[str, str, str]]:
    """Faults for what a protocol has no place for, of ``on_error, retry, request_id, uris, type_hints, meta``."""
    problems: list[tuple[str, str, str]] = []
    by_field = {field: getattr(call, field) for field in fields}
    for field, value in by_field.items():
        if value is None or value == {}:
            continue
        names = f" of {', '.join(cast('dict[str, str]', value))}" if isinstance(value, dict) else ""
        problems.append((f"/{_WIRE[field]}", f"{_WIRE[field]}{names}", "it has no place for that"))
    return problems


_WIRE = {
    "on_error": "onError",
    "retry": "retry",
    "request_id": "requestId",
    "uris": "uris",
    "type_hints": "typeHints",
    "meta": "meta",
}


def typed_faults(call: PlainCall) -> list[tuple[str, str, str]]:
    """What call JSON in any envelope has no place for: modifiers, odd tool ids, and meta beside an ``id``."""
    problems = carries(call, "on_error", "retry", "request_id", "uris", "type_hints")
    if call.tool_id != call.tool_id.strip() or len(call.tool_id) > MAX_NAME_CHARS:
        why = f"it begins or ends with a blank, or has more than {MAX_NAME_CHARS} characters"
        problems.append(("/toolId", f"the tool id {excerpt(call.tool_id)}", why))
    if not call.meta.keys() <= {"id"}:
        problems.append(("/meta", f"meta of {', '.join(call.meta)}", "it has a place for an id only"))
    return problems


def _common(call: PlainCall) -> list[tuple[str, str, str]]:
    """What no protocol can carry."""
    problems: list[tuple[str, str, str]] = []
    if not call.tool_id or fault_of(call.tool_id) is not None:
        problems.append(("/toolId", f"the tool id {excerpt(call.tool_id)}", "it is empty or holds no characters"))
    for name, value in call.args.items():
        path = f"/args/{escape_pointer(name)}"
        if fault_of(name) is not None:
            problems.append((path, "a parameter's name", "it holds half of a surrogate pair, which is no character"))
        elif not name:
            problems.append((path, "a parameter without a name", "there is nothing to write before its value"))
        elif (fault := fault_of(value)) is not None:
            problems.append((path + fault[0], f"the value of '{name}'", fault[1]))
    for field in ("uris", "type_hints", "meta"):
        for name, value in getattr(call, field).items():
            if fault_of(value) is not None or fault_of(name) is not None:
                problems.append(
                    (f"/{_WIRE[field]}", f"{_WIRE[field]} of '{name}'", "it holds half of a surrogate pair")
                )
    return problems


def _attempt(form: Form, calls: Sequence[Numbered], options: WriteOptions) -> tuple[str, list[Refusal]]:
    """The text of the calls, and what does not come back from it."""
    if not calls:
        return "", []
    text = form.text([call for _, call in calls])
    document = _read(form, text, options)
    by_rule = next((diag for diag in document.diagnostics if diag.code not in _HARMLESS), None)
    if len(document.calls) != len(calls) or by_rule is not None:
        why = (
            f"it would be read with a finding: {message(by_rule)}"
            if by_rule is not None
            else "it would not be read back"
        )
        refusals = _compare(form, calls, document) if len(document.calls) == len(calls) else []
        refusals = [refusal for refusal in refusals if refusal.args.get("why") != _NOT_RUN]
        return text, refusals or [
            refusal(form, f"/{index}", f"the call of '{call.tool_id}'", why) for index, call in calls
        ]
    return text, _compare(form, calls, document)


def _read(form: Form, text: str, options: WriteOptions) -> Document:
    from tamis.protocols.reader import read_text

    also = () if form.protocol in BUILT_IN else (form.protocol,)
    return read_text(text, "auto", ReadOptions(tools=options.tools, also=also))


def _compare(form: Form, calls: Sequence[Numbered], document: Document) -> list[Refusal]:
    refusals: list[Refusal] = []
    for (index, call), read in zip(calls, document.calls, strict=True):
        differences = _differences(form, call, read, document.text)
        refusals += [
            Refusal(difference.code, f"/{index}{difference.path}", difference.args) for difference in differences
        ]
    return refusals


def _differences(form: Form, call: PlainCall, read: Call, source: str) -> list[Refusal]:
    refusals: list[Refusal] = []

    def differs(path: str, what: str, wanted: object, actual: object) -> None:
        if wanted != actual:
            why = "it would not be read back" if actual in (None, "") else f"it would be read as {excerpt(str(actual))}"
            refusals.append(refusal(form, path, what, why))

    differs("/toolId", f"the tool id '{call.tool_id}'", call.tool_id, read.tool_id)
    if not read.executable or not read.complete:
        refusals.append(refusal(form, "", f"the call of '{call.tool_id}'", _NOT_RUN))
    if call.step is not None and read.step is not None:
        differs("/step", f"step {call.step}", call.step, read.step)
    differs("/onError", "onError", call.on_error, read.on_error)
    differs("/retry", "retry", call.retry, read.retry)
    differs("/requestId", "requestId", call.request_id, read.request_id)
    differs("/uris", "uris", call.uris, read.uris)
    differs("/meta", "meta", call.meta, read.meta)
    args = read.args(source)
    missing = [name for name in call.args if name not in args]
    extra = [name for name in args if name not in call.args]
    # Parameters keep their order, so as many other names as missing ones are the same parameters renamed.
    others = extra if len(extra) == len(missing) else [""] * len(missing)
    for name, other in zip(missing, others, strict=True):
        path = f"/args/{escape_pointer(name)}"
        if other:
            refusals.append(Refusal("TC051", path, {"protocol": form.title, "name": name, "other": other}))
        else:
            refusals.append(refusal(form, path, f"parameter '{name}'", "it would not be read back under that name"))
    if extra and not missing:
        refusals.append(refusal(form, "/args", f"the call of '{call.tool_id}'", f"it would gain '{extra[0]}'"))
    expectation = form.expectations.of(call.tool_id)
    for name, wanted in call.args.items():
        if name not in args:
            continue
        hint = read.type_hints.get(name)
        own = call.type_hints.get(name)
        raw = args[name] if hint == own else _hinted(args[name], hint)
        if hint == own == "json" and same(_hinted(args[name], hint), _hinted(wanted, own)):
            continue
        if expectation.verdict(name, raw, wanted) == "no":
            coerced, _ = expectation.read(name, raw)
            why = f"it would be read as {excerpt(coerced)}"
            refusals.append(
                refusal(form, f"/args/{escape_pointer(name)}", f"the value {excerpt(wanted)} of '{name}'", why)
            )
    for name, hint in call.type_hints.items():
        differs("/typeHints", f"the type hint of '{name}'", hint, read.type_hints.get(name))
    return refusals


def _hinted(raw: Json, hint: str | None) -> Json:
    """A raw value under the hint ``json``; what is no JSON stays as it is."""
    if hint != "json" or not isinstance(raw, str):
        return raw
    from tamis.protocols.schema.coerce_text import read_json_text

    value, notes = read_json_text(raw)
    return raw if any(note.error for note in notes) else value
