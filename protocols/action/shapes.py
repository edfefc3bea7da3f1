"""From the elements of an ACTION block to calls, in both shapes (rulings 12 to 18).

The tolerant path: it owns the diagnostics. Every assumption carries the edit that would have made the text canonical. Must
not know how tags were paired.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tamis.protocols.action.attributes import Attribute, read_attributes
from tamis.protocols.action.decode import (
    CONTEXT_NAMES,
    INPUT,
    INPUT_ALIASES,
    INPUTS,
    INPUTS_ALIASES,
    STRONG_TOOL_ATTRIBUTES,
    STRONG_TOOL_ID,
    TOOL_ATTRIBUTES,
    TOOL_ID,
    TOOL_ID_ALIASES,
    WEAK_TOOL_ID,
    WRAPPERS,
    escape,
    trim_blank,
)
from tamis.protocols.action.findings import Element
from tamis.protocols.action.params import ParamReader, bare_name, schema_names
from tamis.protocols.action.tokens import DECORATION, Token, plain_name
from tamis.protocols.invisible import IN_TAGS
from tamis.protocols.model import (
    MAX_NAME_CHARS,
    MAX_PARAMS,
    MAX_STEPS,
    Call,
    Edit,
    Json,
    Param,
)
from tamis.protocols.positions import Span
from tamis.protocols.suggest import best
from tamis.protocols.writing.values import json_text

_EXCERPT = 40
_NO_TAG = "?"
"""For ``_alias``: no single other tag would do."""
_TAG_SAFE = re.compile(r"[^\W\d][\w.:\-/]*")


_ID_ATTRIBUTES = ("name", "value", "id", "tool_id", "tool")


class Shapes(ParamReader):
    """Builds the calls of one block."""

    def calls(self, elements: Sequence[Element], opener: Token) -> list[Call]:
        """The calls that the elements of a block make."""
        self.opener_end = opener.end
        attributes = read_attributes(self.text, opener.attributes)
        tool_attribute = next(
            (a for a in attributes if a.name.lower() in TOOL_ATTRIBUTES and a.value is not None), None
        )
        if self._has_inputs_shape(elements, tool_attribute):
            calls = self._inputs_calls(elements, tool_attribute)
            used = tool_attribute
        else:
            calls = list[Call]()
            used = None
            for element in elements:
                call = self._tool_call(element)
                if call is not None:
                    calls.append(call)
                if len(calls) > MAX_STEPS:
                    self.findings.add(
                        "TC022", (element.open, element.start), {"limit": MAX_STEPS, "what": "calls"}, error=True
                    )
                    break
            if len(calls) > 1:
                self.findings.add("AX135", (calls[1].span[0], calls[1].tool_span[1]), {"n": len(calls)}, repair=False)
        for attribute in attributes:
            if attribute is not used:
                self._ignored(attribute, "ACTION")
        return calls

    def _has_inputs_shape(self, elements: Sequence[Element], attribute: Attribute | None) -> bool:
        if attribute is not None and attribute.name.lower() in STRONG_TOOL_ATTRIBUTES:
            return True
        keys = {element.key for element in elements}
        if keys & STRONG_TOOL_ID or INPUTS in keys:
            return True
        if attribute is not None and keys & (INPUTS_ALIASES | {INPUT}):
            return True
        ids = [element for element in elements if element.key in TOOL_ID_ALIASES]
        if not ids or any(self._has_elements(element) or element.token.attributes for element in ids):
            return False
        return len(elements) == len(ids) or bool(keys & (INPUTS_ALIASES | INPUT_ALIASES))

    def _tool_call(self, element: Element) -> Call | None:
        token = element.token
        attributes = read_attributes(self.text, token.attributes)
        if element.key in WRAPPERS:
            inner = self._wrapped(element, attributes)
            if inner is not None:
                return inner
        name, name_span = token.name, token.name_span
        spaced = self._spaced_name(element, attributes)
        if spaced is not None:
            name, name_span = spaced
            attributes = []
        else:
            self.values.check_name(token, tool=True)
        call = Call(
            "action",
            name,
            name_span,
            (element.open, element.outer_end),
            shape="tag",
        )
        self._tool_params(call, element, attributes)
        return call

    def _wrapped(self, element: Element, attributes: list[Attribute], *, outer: bool = True) -> Call | None:
        """``<invoke name="X">`` and ``<tool_call><tool_id>X</tool_id>…``: the element holds the call (AX154)."""
        attribute = next(
            (a for a in attributes if a.name.lower() in ("name", "tool_id", "tool", "id") and a.value), None
        )
        if attribute is not None and attribute.value is not None:
            name = attribute.value.text(self.text)
            if not name.strip():
                return None
            clean = bare_name(name.strip())
            self._alias(element, clean, f"<{clean}>" if len(attributes) == 1 else "")
            clean = self._clean_name(name.strip(), attribute.value.span)
            call = Call("action", clean, attribute.value.span, (element.open, element.outer_end), shape="tag")
            self._tool_params(call, element, [a for a in attributes if a is not attribute])
            return call
        first = next((self.tokens[k] for k in range(element.a, element.b) if self.tokens[k].kind == "open"), None)
        twice = outer and first is not None and first.key in WRAPPERS
        if first is None or (first.key not in STRONG_TOOL_ID | {"name", "tool_name", INPUTS} and not twice):
            return None
        before = len(self.findings.list)
        inner = self.elements(element.a, element.b, element.start, element.end, "tool")
        if twice:
            inner_call = None
            if len(inner) == 1:
                attributes = read_attributes(self.text, inner[0].token.attributes)
                inner_call = self._wrapped(inner[0], attributes, outer=False)
            if inner_call is None:
                del self.findings.list[before:]
            else:
                self._unwrap(element, inner[0].name)
            return inner_call
        if first.key == INPUTS and not any(element.key in STRONG_TOOL_ID for element in inner):
            del self.findings.list[before:]
            return None
        self._unwrap(element, TOOL_ID)
        if first.key in ("name", "tool_name"):
            inner[0].key = TOOL_ID
        calls = self._inputs_calls(inner, None)
        return calls[0] if calls else None

    def _unwrap(self, element: Element, instead: str) -> None:
        """Reports an element around what should stand without it (AX154)."""
        token = element.token
        edits: tuple[Edit, ...] = ()
        if token.kind == "open" and element.closed and token.flag == "" and self.text[element.outer_end - 1] == ">":
            edits = (Edit(element.open, element.start, ""), Edit(element.end, element.outer_end, ""))
        args: dict[str, str | int] = {"got": token.name, "canonical": instead}
        self.findings.add("AX154", token.name_span, args, edits=edits, title=f"Remove <{token.name}>")

    def _tool_params(self, call: Call, element: Element, attributes: list[Attribute]) -> None:
        text = self.text
        schema = self._schema(call.tool_id)
        params: dict[str, Param] = {}
        elements: list[Element] = []
        inner_text = text[element.start : element.end]
        if inner_text and not self._has_elements(element):
            # A tool without elements: nothing, a JSON object, or text that says nothing about its parameter.
            stripped = inner_text.strip()
            json_params = self._json(element)
            if json_params is not None:
                params = json_params
            else:
                before = len(self.findings.list)
                self.elements(element.a, element.b, element.start, element.end, "tool")
                noise = any(diag.code == "TC011" for diag in self.findings.list[before:])
                if noise and stripped:
                    start, end = trim_blank(text, element.start, element.end)
                    del self.findings.list[before:]
                    self.findings.add("TC011", (start, end), {"excerpt": stripped[:_EXCERPT]}, error=True)
        else:
            self.declared = schema_names(schema)
            elements = self.elements(element.a, element.b, element.start, element.end, "tool")
        if len(elements) == 1 and elements[0].key == INPUTS and INPUTS not in schema_names(schema):
            self._unwrap(elements[0], "its children")
            self._inputs(params, elements[0], schema)
        else:
            reserved = [child for child in elements if child.key in (TOOL_ID, INPUTS)]
            if len({child.key for child in reserved}) > 1:
                # Reserved names (ruling 12): a call inside what was read as one.
                first = reserved[0]
                args: dict[str, str | int] = {"a": call.tool_id, "b": text[first.start : first.end][:_EXCERPT]}
                self.findings.add("AX152", (first.open, first.start), args, error=True)
            for child in elements:
                self._child(params, child, schema)
                if len(params) > MAX_PARAMS:
                    break
        self._attribute_params(params, call, element, attributes, schema)
        self._finish(call, params)

    def _inputs_calls(self, elements: Sequence[Element], attribute: Attribute | None) -> list[Call]:
        """``<tool_id>`` with ``<inputs>``, once or several times (AX162)."""
        ids: list[Element] = []
        calls: list[Call] = []
        groups: list[tuple[Element | None, list[Element]]] = []
        current: list[Element] = []
        head: Element | None = None
        strong = any(element.key in STRONG_TOOL_ID for element in elements)
        if not any(element.key in TOOL_ID_ALIASES for element in elements) and attribute is None:
            # <name>X</name><inputs>…</inputs>: nothing else can be the tool.
            weak = [element for element in elements if element.key in WEAK_TOOL_ID and not self._has_elements(element)]
            if len(weak) == 1 and weak[0] is elements[0] and any(element.key == INPUTS for element in elements):
                weak[0].key = TOOL_ID
                strong = True
        for element in elements:
            if element.key in STRONG_TOOL_ID or (not strong and element.key in TOOL_ID_ALIASES):
                ids.append(element)
                if head is not None and current:
                    groups.append((head, current))
                    head, current = element, []
                elif head is not None:
                    if not self._same_id(head, element):
                        return []
                else:
                    head = element
            else:
                current.append(element)
        if head is not None and not current and groups:
            # <tool_id>a</tool_id><inputs/><tool_id>b</tool_id>: the second id has nothing of its own.
            if not self._same_id(groups[-1][0] or head, head):
                return []
        elif head is not None or current:
            groups.append((head, current))
        for head, parts in groups:
            call = self._inputs_call(head, parts, attribute)
            if call is not None:
                calls.append(call)
        if len(calls) > 1:
            second = calls[1]
            # Not a safe edit: of two blocks only the first runs (ruling 14).
            edits = (Edit(second.span[0], second.span[0], "</ACTION>\n<ACTION>"),)
            span, title = (second.span[0], second.tool_span[1]), "Split into two blocks"
            self.findings.add("AX162", span, {"n": len(calls)}, edits=edits, title=title, unsafe=True, repair=False)
        return calls

    def _same_id(self, first: Element, second: Element) -> bool:
        a = self.text[first.start : first.end].strip()
        b = self.text[second.start : second.end].strip()
        span = (second.open, second.outer_end)
        if a == b:
            self.findings.add(
                "TC060",
                span,
                {"name": TOOL_ID, "n": 2, "policy": "they are the same"},
                edits=(Edit(*span, ""),),
                title="Remove the second id",
            )
            return True
        self.findings.add("AX152", span, {"a": a, "b": b}, error=True)
        return False

    def _inputs_call(self, head: Element | None, parts: list[Element], attribute: Attribute | None) -> Call | None:
        """One call by ``<tool_id>``, or by what stands for it, with its arguments."""
        named = self._id_of(head, parts, attribute)
        if named is None:
            return None
        raw, span, outer = named
        tool_id, span = self._clean_id(raw, span)
        if not tool_id:
            self.findings.add("AX151", outer, error=True)
            return None
        call = Call("action", self._fit_id(tool_id, span), span, outer, shape="inputs")
        self._arguments(call, parts)
        return call

    def _id_of(
        self, head: Element | None, parts: list[Element], tool_attribute: Attribute | None
    ) -> tuple[str, Span, Span] | None:
        """The tool's id as it is written, its place and that of all that says it; None with a finding where nothing does."""
        text = self.text
        if head is not None:
            attributes = read_attributes(text, head.token.attributes)
            named = self._id_attribute(head, attributes)
            if head.name != TOOL_ID and named is None:
                self._alias(head, TOOL_ID)
            for attribute in attributes:
                if attribute is not named:
                    self._ignored(attribute, head.name)
            value = self.values.read_plain(head, TOOL_ID)
            if named is not None and named.value is not None:
                value = named.value
            return value.text(text), value.span, (head.open, head.outer_end)
        if tool_attribute is None or tool_attribute.value is None:
            self.findings.add("AX150", (parts[0].open, parts[0].start), error=True)
            return None
        edits: tuple[Edit, ...] = ()
        if text[tool_attribute.span[1] : self.opener_end].strip() == ">":
            body = escape(tool_attribute.value.text(text).strip())
            edits = (Edit(tool_attribute.span[0], self.opener_end, f"><{TOOL_ID}>{body}</{TOOL_ID}>"),)
        self.findings.add("AX138", tool_attribute.span, {"name": TOOL_ID}, edits=edits, title="Write <tool_id>")
        return tool_attribute.value.text(text), tool_attribute.value.span, tool_attribute.span

    def _fit_id(self, tool_id: str, span: Span) -> str:
        """An id without what none can hold, within its length (AX110, TC022)."""
        if "<" in tool_id or "\n" in tool_id:
            args: dict[str, str | int] = {"char": "<" if "<" in tool_id else "line break", "param": TOOL_ID}
            self.findings.add("AX110", span, args, error=True)
        if len(tool_id) > MAX_NAME_CHARS:
            args = {"limit": MAX_NAME_CHARS, "what": f"characters in <{TOOL_ID}>"}
            self.findings.add("TC022", span, args, error=True)
        return tool_id[:MAX_NAME_CHARS]

    def _arguments(self, call: Call, parts: list[Element]) -> None:
        """What stands beside a ``<tool_id>``: ``<inputs>``, what goes with the call, arguments without ``<inputs>`` (AX155)."""
        schema = self._schema(call.tool_id)
        params: dict[str, Param] = {}
        loose: list[Element] = []
        with_inputs = any(part.key == INPUTS for part in parts)
        for part in parts:
            call.span = (min(call.span[0], part.open), max(call.span[1], part.outer_end))
            if part.key == INPUTS or (part.key in INPUTS_ALIASES and part.name not in schema_names(schema)):
                if part.name != INPUTS:
                    self._alias(part, INPUTS)
                self._inputs(params, part, schema)
                continue
            if with_inputs and self._is_context(part, schema):
                self._keep_context(call, part)
                continue
            loose.append(part)
            if part.key not in INPUT_ALIASES and self._has_elements(part) and part.name not in schema_names(schema):
                # A tool by its tag beside a tool by its id.
                names: dict[str, str | int] = {"a": call.tool_id, "b": part.name}
                self.findings.add("AX152", (part.open, part.start), names, error=True)
            self._input(params, part, schema)
        if loose:
            edits = self._wrapping(parts, loose)
            self.findings.add("AX155", (loose[0].open, loose[0].start), edits=edits, title=f"Wrap in <{INPUTS}>")
        self._finish(call, params)

    def _is_context(self, part: Element, schema: Json) -> bool:
        """Whether a child beside ``<inputs>`` is none of them but something that goes with the call (seed 003 §4.3): by its name, or
        because the tool's schema knows no parameter that is like it."""
        if (
            part.key in INPUT_ALIASES
            or part.name in self.options.tools
            or read_attributes(self.text, part.token.attributes)
        ):
            return False
        names = schema_names(schema)
        if part.name in names:
            return False
        return part.key in CONTEXT_NAMES or (schema is not None and best(part.name, names) is None)

    def _keep_context(self, call: Call, part: Element) -> None:
        span = (part.open, part.start)
        self.findings.add("AX163", span, {"name": part.name}, repair=False)
        value = self.values.read(part, {}, part.name)
        call.meta[part.name] = value.text(self.text) if value.kind == "text" else json_text(value.python(self.text))

    def _id_attribute(self, head: Element, attributes: list[Attribute]) -> Attribute | None:
        """``<tool_id name="…"/>``: the id in an attribute of an empty element (AX138)."""
        if self.text[head.start : head.end].strip():
            return None
        named = next((a for a in attributes if a.name.lower() in _ID_ATTRIBUTES and a.value is not None), None)
        if named is None or named.value is None:
            return None
        edits = (
            Edit(head.open, head.outer_end, f"<{TOOL_ID}>{escape(named.value.text(self.text).strip())}</{TOOL_ID}>"),
        )
        self.findings.add("AX138", named.span, {"name": TOOL_ID}, edits=edits, title="Write it between the tags")
        return named

    def _wrapping(self, parts: list[Element], loose: list[Element]) -> tuple[Edit, ...]:
        """The edits that put loose inputs into ``<inputs>``: one of their own, or the one that stands before them."""
        first, last = loose[0], loose[-1]
        if not all(part.closed for part in parts):
            return ()
        close = Edit(last.outer_end, last.outer_end, f"</{INPUTS}>")
        if len(loose) == len(parts):
            # The bracket is written anew, so that the edit stands behind one that closes what is before it.
            return (Edit(first.open, first.open + 1, f"<{INPUTS}><"), close)
        before = parts[0]
        beside = not self.text[before.outer_end : first.open].strip()
        if parts[1:] == loose and before.token.kind == "open" and beside:
            return (Edit(before.end, before.outer_end, ""), close)
        return ()

    def _clean_id(self, raw: str, span: Span) -> tuple[str, Span]:
        """The id without blanks, quotes, backticks and invisible characters around it (ruling 13)."""
        text = self.text
        start, end = trim_blank(text, *span)
        if text[start:end] != raw.strip():
            if plain_name(raw.strip()) != raw.strip():
                self.findings.add("AX153", (start, end), error=True)
            return raw.strip(), (start, end)
        before = (start, end)
        while end - start > 4 and text.startswith("**", start) and text.endswith("**", start, end):
            start, end = start + 2, end - 2
        while end > start and (text[end - 1] in DECORATION or text[end - 1] in IN_TAGS or text[end - 1].isspace()):
            end -= 1
        while start < end and (text[start] in DECORATION or text[start] in IN_TAGS or text[start].isspace()):
            start += 1
        tool_id = plain_name(text[start:end])
        if tool_id != text[slice(*before)]:
            edits = (Edit(*before, tool_id),)
            invisible = next((char for char in text[slice(*before)] if char in IN_TAGS), None)
            if invisible is None:
                # Quotes around and an entity in it: which of them is decoded first?
                self.findings.add("AX153", before, edits=edits, title="Remove the quotes", error="&" in tool_id)
            else:
                args: dict[str, str | int] = {"hex": f"{ord(invisible):04X}", "where": "the tool id"}
                self.findings.add("TC013", before, args, edits=edits, title="Remove the character")
        return tool_id, (start, end)
