"""TAM's blocks in an editor: the fields of steps, what they mean, how an argument is written behind the last one (seed 002 §3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tamis.protocols.editing import Editing, Fields, KeyKind, Step, card, line_end, place_behind, without_line
from tamis.protocols.model import Call, Edit, Param, Value
from tamis.protocols.patterns import lazy
from tamis.protocols.schema.words import is_object
from tamis.protocols.tam.keys import parse_key, squash

_MAX_SIDE = 30
"""Parameters for which side fields (``type_hint_…``, ``uri_…``) are proposed."""
_CHOICES: tuple[tuple[re.Pattern[str], tuple[tuple[str, str], ...]], ...] = (
    (lazy(r"on_error(_\d+)?\Z"), (("stop", "default: the block ends there"), ("continue", "the next step runs"))),
    (
        lazy(r"type_hint_.+\Z"),
        (("text", "default: as written"), ("json", "JSON text"), ("base64", "base64 of any bytes")),
    ),
    (lazy(r"retry(_\d+)?\Z"), (("0", "default"), ("1", "one more try"), ("2", ""), ("3", ""))),
)
_MODIFIER = lazy(r"(on_error|retry|type_hint|uri|request_id)(?:_.*)?\Z", re.S)
_COMMAND = lazy(r"command(?:_?\d{1,9})?\Z")
_LEADS = ("type_hint_", "common_", "uri_")
_TRAILING = lazy(r"[_\-\s]*[\[(₀-₉]?\d+[\])]?\Z")
_FIELDS: dict[str, tuple[str, str]] = {
    r"command(?:_\d+)?": (
        "the tool of a step",
        "The steps of a block run in the order of their numbers; `command` alone is step 1.",
    ),
    r"retry(?:_\d+)?": (
        "how often a step is tried again",
        "The number of further attempts after the first one failed; 0 without it.",
    ),
    r"on_error(?:_\d+)?": (
        "what happens when a step fails",
        "`stop` (the default) leaves out the steps that follow; `continue` runs them.",
    ),
    r"type_hint_.+": (
        "how a value is read",
        "`text` (the default), `json`: the value is JSON text, or `base64`: it is Base64 of any bytes, and the tool gets Base64.",
    ),
    r"uri_.+": (
        "a value by reference",
        "The file that a `fam://` URI names is given to the tool instead of a text; `[resources]` of tamis.toml says which folders there are.",
    ),
    r"common_.+": ("a parameter of all steps", "Every step has it; a step's own parameter of that name wins."),
    r"request_id": (
        "the block's own id",
        "The same id with the same content is not run again and gives the stored result; with other content it is an error.",
    ),
    r"comment": ("a note", "It is not passed on to any tool."),
}
"""By pattern of the normal key: what it is, and what it does."""
_FIELDS_WRITTEN = Fields(
    head=lazy("»»»|>>>"),
    tail=lazy("«««|<<<"),
    key_before_head=lazy(r"([^\n\r:：»«]{1,256}?)[ \t]*[:：][ \t]*\Z"),
    typing_key=lazy(r"(?m:^)[ \t]*([\w\-]{0,256})\Z"),
    pair=lazy(r"(?m:^)[ \t]*([^\n\r:：»«]{1,256}?)[ \t]*[:：][ \t]*(?:»»»|>>>)((?s:.*?))(?:«««|<<<|$)"),
    opening=lazy(r"(?m:^)[ \t]*([\w\-]{1,256})[ \t]*[:：][ \t]*(»{0,2}|>{1,2})\Z"),
    tool_key="command",
    steps=True,
    marks=("»»»", "«««"),
    between="\n",
)


class TamEditing(Editing):
    """See ``Editing``."""

    opens = r"<\|?\[request_tool\]\|?>"
    closes = lazy(r"(?i:<\|?\[end_tool\]\|?>)")
    marker = r"<\|?\[(?:request_tool|end_tool)\]\|?>"
    begin = "<|[REQUEST_TOOL]|>"
    close = "<|[END_TOOL]|>"
    empty_call = "<|[REQUEST_TOOL]|>\ncommand:»»»{0}«««\n<|[END_TOOL]|>"
    call_title = "TAM call"
    fields = _FIELDS_WRITTEN
    forbidden: Mapping[str, re.Pattern[str]] = {"tam": lazy(r"»»»|«««|<<<|>>>|\[END_TOOL\]")}
    explained = (
        (
            lazy(r"(?i)<?\|?\[request_tool\]\|?>?"),
            "**TAM block**: the calls up to `<|[END_TOOL]|>`\n\nOne field on a line, `key:»»»value«««`; `command_1`, `command_2` … are the tools of its steps.",
        ),
        (
            lazy(r"(?i)<?\|?\[end_tool\]\|?>?"),
            "**End of the TAM block**\n\nWithout it the block counts as cut off where the text ends.",
        ),
        (
            lazy(r"»»»|>>>|»{1,2}"),
            "**Opening mark of a TAM value**: it ends at `«««`\n\nThe indentation of the key's line is taken off the lines that follow, then both ends are trimmed (ruling 21).",
        ),
        (lazy(r"«««|<<<|«{1,2}"), "**Closing mark of a TAM value**"),
    )

    def container(self, value: Value, source: str) -> str:
        """``tam``."""
        del value, source
        return "tam"

    def container_behind(self, head: str) -> str:
        """``tam``."""
        del head
        return "tam"

    def marks(self, container: str) -> tuple[str, str]:
        """``»»»`` and ``«««``."""
        del container
        return _FIELDS_WRITTEN.marks

    def about_field(self, key: str, calls: Sequence[Call]) -> str:
        """What a step's field means, and what it makes of its step."""
        normal = parse_key(key).normal
        about = next((about for pattern, about in _FIELDS.items() if re.fullmatch(pattern, normal)), None)
        return card(key, *about, _effect(normal, calls)) if about else ""

    def key_kind(self, key: str) -> KeyKind:
        """Commands, what modifies a step, comments."""
        normal = parse_key(key).normal
        if _COMMAND.match(normal):
            return "tool"
        if _MODIFIER.match(normal):
            return "modifier"
        return "comment" if normal == "comment" else ""

    def side_fields(self, step: Step, named: Iterable[tuple[str, object]], taken: frozenset[str]) -> dict[str, str]:
        """The next step, what modifies this one, and what says how its parameters are written."""
        del taken
        suffix = step.suffix
        fields: dict[str, str] = {}
        if suffix:
            fields[f"command_{max(step.numbers) + 1}"] = "the tool of the next step"
        if step.numbers:
            fields[f"on_error{suffix}"] = "what happens when the step fails: stop (default) or continue"
            fields[f"retry{suffix}"] = "how many more times the step is tried"
        fields["request_id"] = "names the block; the same id is not run twice"
        fields["comment"] = "a note that is not passed on"
        for name, schema in list(named)[:_MAX_SIDE]:
            if len(step.numbers) > 1:
                fields[f"common_{name}"] = f"{name} for every step"
            if not is_object(schema) or "enum" in schema or "const" in schema:
                continue
            kind = schema.get("type")
            if kind not in ("integer", "number", "boolean"):
                fields[f"type_hint_{name}{suffix}"] = f"how {name} is written: text, json or base64"
            if kind in (None, "string"):
                fields[f"uri_{name}{suffix}"] = f"{name} from a resource, such as fam://…"
        return fields

    def side_values(self, key: str) -> tuple[tuple[str, str], ...]:
        """The values of ``on_error``, ``type_hint_…`` and ``retry``."""
        return next((choices for pattern, choices in _CHOICES if pattern.match(key)), ())

    def insertion(self, text: str, call: Call, values: Mapping[str, str]) -> Edit:
        """Each argument on a line of its own, with the number of the call's step where its keys have one."""
        place = place_behind(text, call)
        suffix = ""
        if call.step is not None and re.match(rf"\s*command_{call.step}\b", text[place.line :]):
            suffix = f"_{call.step}"
        if call.params and (numbered := re.search(r"_\d+$", text[slice(*call.params[-1].name_span)])):
            suffix = numbered[0]
        at = line_end(text, place.anchor[1], "<|[")
        lines = (f"{place.eol}{place.margin}{name}{suffix}:»»»{value}«««" for name, value in values.items())
        return Edit(at, at, "".join(lines))

    def removal(self, text: str, param: Param) -> Edit:
        """The field with its line."""
        return without_line(text, *param.span)

    def renamed_key(self, raw: str, name: str, new: str) -> str:
        """The key with the new name; what leads it, its step number and its style stay as they are written."""
        lead = next((lead for lead in _LEADS if raw.lower().startswith(lead)), "")
        stem, tail = raw[len(lead) :], ""
        number = _TRAILING.search(stem)
        if squash(stem) != squash(name) and number is not None:
            stem, tail = stem[: number.start()], number.group()
            # A number that touched the old word would become part of the new one.
            tail = tail if tail[0] in "_- [(" else f"_{tail}"
        # The protocol's own style is snake_case, whatever the declared spelling (ruling 20).
        snake = stem == parse_key(stem).normal
        return raw[: len(lead)] + (parse_key(new).normal if snake else new) + tail


def _effect(normal: str, calls: Sequence[Call]) -> str:
    """What a step modifier makes of its step."""
    number = re.search(r"_(\d+)\Z", normal)
    step = int(number[1]) if number else 1
    call = next((call for call in calls if (call.step or 1) == step), None)
    if call is None:
        return ""
    if normal.startswith("retry") and call.retry is not None:
        times = "never again" if call.retry == 0 else f"up to {call.retry} more time{'' if call.retry == 1 else 's'}"
        return f"Step {step} is tried {times}."
    if normal.startswith("on_error") and call.on_error is not None:
        return f"Step {step}: `{call.on_error}`."
    return ""


EDITING: Final = TamEditing()
