"""From the elements of an ACTION block to calls, in both shapes (rulings 12 to 18).

The tolerant path: it owns the diagnostics. Every assumption carries the edit that would have made the text canonical. Must
not know how tags were paired.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tamis.protocols.action_attributes import Attribute, read_attributes
from tamis.protocols.action_json import json_params
from tamis.protocols.action_names import (
    INPUT,
    INPUT_ALIASES,
    INPUTS,
    INPUTS_ALIASES,
    NAME_ATTRIBUTES,
    STRONG_TOOL_ATTRIBUTES,
    STRONG_TOOL_ID,
    TOOL_ATTRIBUTES,
    TOOL_ID,
    TOOL_ID_ALIASES,
    VALUE_ATTRIBUTES,
    WRAPPERS,
)
from tamis.protocols.action_tokens import DECORATION, INVISIBLE, Token
from tamis.protocols.action_values import HTML, Element, Findings, ValueReader, join
from tamis.protocols.model import (
    MAX_PARAMS,
    MAX_STEPS,
    Call,
    Comment,
    Edit,
    Json,
    Param,
    ReadOptions,
    Value,
)
from tamis.protocols.positions import Span
from tamis.protocols.xmlvalue import as_cdata, escape, trim_blank

_EXCERPT = 40
_NO_TAG = "?"
"""For ``_alias``: no single other tag would do."""
_TAG_SAFE = re.compile(r"[A-Za-z_][\w.:\-/]*")


class Shapes:
    """Builds the calls of one block."""

    def __init__(
        self, text: str, tokens: list[Token], inner_end: dict[int, int], findings: Findings, options: ReadOptions
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.inner_end = inner_end
        self.findings = findings
        self.options = options
        self.values = ValueReader(text, tokens, findings)
        self.end = 0
        """Where the last thing that belongs to the block ends."""
        self.opener_end = 0
        self.cut = False
        """True when the block is open at its end inside a call."""

    # Elements of one level

    def elements(self, a: int, b: int, start: int, end: int, level: str, *, closed: bool = True) -> list[Element]:
        """The elements of a level, with comments, noise and stray markup between them taken note of.

        ``level`` is ``block`` (tools, reserved elements) or ``tool`` (parameters). With ``closed`` false the block has no
        closing marker, and ends where text follows a complete element.
        """
        text, out = self.text, list[Element]()
        at, i = start, a
        while i < b:
            token = self.tokens[i]
            if token.start >= end:
                break
            if token.start < at or token.raw or (token.kind == "close" and 0 <= token.partner < a):
                i += 1
                continue
            if not closed and out and text[at : token.start].strip():
                return out
            if token.kind == "close" and token.partner < 0:
                self._gap(at, token.start)
                at = token.end
                i += 1
                continue
            self._gap(at, token.start)
            if token.kind in ("open", "self"):
                element, i = self._element(i, b, end, level, closed=closed)
                if element is None:
                    return out
                out.append(element)
                at = element.outer_end
                if not closed:
                    self.end = at
                continue
            self._markup(token)
            at = token.end
            i += 1
        if closed or (not out and text[at:end].strip()):
            self._gap(at, end)
        return out

    def _markup(self, token: Token) -> None:
        span = (token.start, token.end)
        add = self.findings.add
        remove = (Edit(token.start, token.end, ""),)
        if token.kind == "comment":
            if token.flag:
                edit = Edit(token.end, token.end, "-->")
                add("AX123", span, edits=(edit,), title="Insert -->", unsafe=True, error=True)
                return
            body = self.text[token.content[0] : token.content[1]]
            self.findings.comments.append(Comment(span, body.strip()))
        elif token.kind == "pi":
            add("AX125", span, edits=remove, title="Remove the instruction")
        elif token.kind == "doctype":
            add("AX126", span, edits=remove, title="Remove the declaration", unsafe=True, error=True)
        elif token.kind == "cdata":
            self._noise(token.start, token.end)

    def _gap(self, start: int, end: int) -> None:
        """Text between elements: layout is nothing, anything else is noise (TC011)."""
        if start >= end:
            return
        gap = self.text[start:end]
        if gap.isspace():
            return
        rest = gap.strip()
        if not rest:
            return
        if all(char in INVISIBLE or char.isspace() for char in rest):
            code = f"{ord(next(char for char in rest if char in INVISIBLE)):04X}"
            edit = Edit(start, end, "".join(char for char in gap if char not in INVISIBLE))
            self.findings.add(
                "TC013", (start, end), {"hex": code, "where": "the layout"}, edits=(edit,), title="Remove the character"
            )
            return
        lead = len(gap) - len(gap.lstrip())
        self._noise(start + lead, start + lead + len(rest))

    def _noise(self, start: int, end: int) -> None:
        excerpt = self.text[start : min(end, start + _EXCERPT)]
        self.findings.add(
            "TC011", (start, end), {"excerpt": excerpt}, edits=(Edit(start, end, ""),), title="Remove the text"
        )

    def _element(self, i: int, b: int, end: int, level: str, *, closed: bool) -> tuple[Element | None, int]:
        token = self.tokens[i]
        if token.kind == "self" or (i < token.partner < b):
            element, after = self.values.element(i)
            if i in self.inner_end:
                element.end = self.inner_end[i]
            return element, after
        if level == "block":
            if not closed:
                self.cut = True
                return None, b
            return self._open_at_block(i, b, end)
        return self._open_at_tool(i, b, end)

    def _open_at_block(self, i: int, b: int, end: int) -> tuple[Element, int]:
        """A tool, ``<tool_id>`` or ``<inputs>`` that is never closed: it ends with the block (ruling 18)."""
        token = self.tokens[i]
        self.values.check_tag(token)
        if token.key in TOOL_ID_ALIASES and token.attributes is None:
            stop = next((k for k in range(i + 1, b) if self.tokens[k].kind in ("open", "self", "comment")), b)
            here = self.tokens[stop].start if stop < b else end
            if self.text[token.end : here].strip():
                return self._ended(i, stop, here, "AX102")
        stop, unclear = b, False
        k = i + 1
        while k < b:
            inner = self.tokens[k]
            if inner.kind == "open" and not inner.raw:
                if k > i + 1 and inner.name in self.options.tools:
                    stop = k
                    break
                if token.key in INPUTS_ALIASES and inner.key in STRONG_TOOL_ID:
                    stop = k
                    break
                unclear = unclear or self._sibling(token, k)
            k = inner.partner + 1 if inner.kind == "open" and inner.partner > k else k + 1
        here = self.tokens[stop].start if stop < b else end
        code = "AX156" if token.key in INPUTS_ALIASES else "AX103"
        return self._ended(i, stop, here, code, error=unclear)

    def _sibling(self, token: Token, k: int) -> bool:
        """True when the element ``k`` looks like another tool: as far indented as the open one, with elements inside."""
        inner = self.tokens[k]
        if inner.partner <= k + 1 or not any(
            self.tokens[m].kind == "open" for m in range(k + 1, min(inner.partner, k + 9))
        ):
            return False
        return _indent(self.text, token.start) == _indent(self.text, inner.start)

    def _open_at_tool(self, i: int, b: int, end: int) -> tuple[Element, int]:
        """A parameter that is never closed: its value ends at the next parameter or the tool's end (ruling 18)."""
        text, token = self.text, self.tokens[i]
        self.values.check_tag(token)
        k = i + 1
        unclear = False
        while k < b:
            inner = self.tokens[k]
            if inner.kind == "open" and not inner.raw:
                glued = inner.start > 0 and not text[inner.start - 1].isspace() and text[inner.start - 1] != ">"
                if inner.partner > k:
                    # In the middle of a sentence it may as well be markup of the open value.
                    unclear = (inner.key == token.key or inner.key in HTML) and _in_sentence(
                        text, token.end, inner.start
                    )
                    break
                if inner.key == token.key and not token.attributes:
                    follow = self.tokens[k + 1] if k + 1 < b else None
                    rest = text[inner.end : follow.start if follow is not None else end]
                    if not rest.strip() and text[token.end : inner.start].strip():
                        return self._missing_slash(i, k)
                first = _line_start(text, inner.start)
                if inner.key == token.key or first or not (glued or inner.key in HTML):
                    unclear = inner.key in HTML or (inner.key != token.key and not first)
                    break
            k += 1
        here = self.tokens[k].start if k < b else end
        after = b if k >= b else k
        if not unclear:
            unclear = self._noise_behind(after, b, end)
        return self._ended(i, k, here, "AX102", error=unclear)

    def _noise_behind(self, k: int, b: int, end: int) -> bool:
        """True when text stands between the parameters that follow: then the open value may not have ended there."""
        at = None
        while k < b:
            token = self.tokens[k]
            if at is not None and self.text[at : token.start].strip():
                return True
            if token.kind == "open" and token.partner > k and token.partner < b:
                k = token.partner
                at = self.tokens[k].end
            elif token.kind == "open":
                return False
            else:
                at = token.end
            k += 1
        return at is not None and bool(self.text[at:end].strip())

    def _missing_slash(self, i: int, k: int) -> tuple[Element, int]:
        token, closing = self.tokens[i], self.tokens[k]
        edit = Edit(closing.start + 1, closing.start + 1, "/")
        self.findings.add(
            "AX132", (closing.start, closing.end), {"name": token.name}, edits=(edit,), title=f"Write </{token.name}>"
        )
        element = Element(token, i + 1, k, token.end, closing.start, closing.end, closed=True)
        return element, k + 1

    def _ended(self, i: int, stop: int, here: int, code: str, *, error: bool = False) -> tuple[Element, int]:
        token = self.tokens[i]
        end = trim_blank(self.text, token.end, here)[1]
        where = "the end of the block"
        if stop < len(self.tokens):
            after = self.tokens[stop]
            where = self.text[after.start : min(after.end, after.start + _EXCERPT)]
        raw = self.text[token.name_span[0] : token.name_span[1]]
        edit = Edit(end, end, f"</{raw}>")
        args: dict[str, str | int] = {"name": token.name, "tool": token.name, "where": where}
        self.findings.add(
            code, (token.start, token.end), args, edits=(edit,), title=f"Insert </{token.name}>", error=error
        )
        return Element(token, i + 1, stop, token.end, end, end, closed=False), stop

    # Calls

    def calls(self, elements: Sequence[Element], opener: Token) -> list[Call]:
        """The calls that the elements of a block make."""
        self.opener_end = opener.end
        attributes = read_attributes(self.text, opener.attributes)
        given = next((a for a in attributes if a.name.lower() in TOOL_ATTRIBUTES and a.value is not None), None)
        if self._has_inputs_shape(elements, given):
            calls = self._inputs_calls(elements, given)
            used = given
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

    def _ignored(self, attribute: Attribute, tag: str) -> None:
        self.findings.add(
            "AX136",
            attribute.span,
            {"name": attribute.name or self.text[attribute.span[0] : attribute.span[1]], "tag": tag},
            edits=(Edit(*attribute.span, ""),),
            title="Remove the attribute",
        )

    def _has_inputs_shape(self, elements: Sequence[Element], given: Attribute | None) -> bool:
        if given is not None and given.name.lower() in STRONG_TOOL_ATTRIBUTES:
            return True
        keys = {element.key for element in elements}
        if keys & STRONG_TOOL_ID or INPUTS in keys:
            return True
        if given is not None and keys & (INPUTS_ALIASES | {INPUT}):
            return True
        ids = [element for element in elements if element.key in TOOL_ID_ALIASES]
        if not ids or any(self._has_elements(element) or element.token.attributes for element in ids):
            return False
        return len(elements) == len(ids) or bool(keys & (INPUTS_ALIASES | INPUT_ALIASES))

    def _has_elements(self, element: Element) -> bool:
        return any(self.tokens[k].kind in ("open", "self") for k in range(element.a, element.b))

    # Tag shape

    def _tool_call(self, element: Element) -> Call | None:
        token = element.token
        attributes = read_attributes(self.text, token.attributes)
        if element.key in WRAPPERS:
            inner = self._wrapped(element, attributes)
            if inner is not None:
                return inner
        self.values.check_name(token, tool=True)
        call = Call(
            "action",
            token.name,
            token.name_span,
            (element.open, element.outer_end),
            shape="tag",
        )
        self._tool_params(call, element, attributes)
        return call

    def _wrapped(self, element: Element, attributes: list[Attribute]) -> Call | None:
        """``<invoke name="X">`` and ``<tool_call><tool_id>X</tool_id>…``: the element holds the call (AX154)."""
        token = element.token
        given = next((a for a in attributes if a.name.lower() in ("name", "tool_id", "tool", "id") and a.value), None)
        if given is not None and given.value is not None:
            name = given.value.text(self.text)
            if not name.strip():
                return None
            self._alias(element, name.strip(), f"<{name.strip()}>" if len(attributes) == 1 else "")
            call = Call("action", name.strip(), given.value.span, (element.open, element.outer_end), shape="tag")
            self._tool_params(call, element, [a for a in attributes if a is not given])
            return call
        first = next((self.tokens[k] for k in range(element.a, element.b) if self.tokens[k].kind == "open"), None)
        if first is None or first.key not in STRONG_TOOL_ID | {"name", "tool_name"}:
            return None
        inner = self.elements(element.a, element.b, element.start, element.end, "tool")
        self._alias(element, TOOL_ID, _NO_TAG)
        if first.key not in STRONG_TOOL_ID:
            inner[0].key = TOOL_ID
        calls = self._inputs_calls(inner, None)
        return calls[0] if calls else None

    def _alias(self, element: Element, canonical: str, tag: str = "") -> None:
        """Reports a tag read as another (AX154); ``tag`` is the opening tag that should stand there."""
        token = element.token
        edits = self._retagged(element, tag or f"<{canonical}>", canonical) if tag or token.attributes is None else ()
        if not tag and not edits and token.attributes is not None and canonical == INPUT:
            edits = self._retagged(element, "", canonical)
        args: dict[str, str | int] = {"got": token.name, "canonical": canonical}
        self.findings.add("AX154", token.name_span, args, edits=edits, title=f"Write <{canonical}>")

    def _retagged(self, element: Element, tag: str, name: str) -> tuple[Edit, ...]:
        """The edits that give an element another tag; none where its tags are odd in another way too."""
        token = element.token
        raw = self.text[token.name_span[0] : token.name_span[1]]
        if tag == _NO_TAG or _TAG_SAFE.fullmatch(name) is None or token.flag or raw != token.name:
            return ()
        first = Edit(*token.name_span, name) if not tag else Edit(token.start, token.end, tag)
        if token.kind == "self":
            return (first,) if not tag else (Edit(token.start, token.end, f"{tag[:-1]}/>"),)
        if self.text[element.end : element.outer_end] != f"</{raw}>":
            return ()
        return (first, Edit(element.end, element.outer_end, f"</{name}>"))

    def _tool_params(self, call: Call, element: Element, attributes: list[Attribute]) -> None:
        text = self.text
        schema = self._schema(call.tool_id)
        params: dict[str, Param] = {}
        elements: list[Element] = []
        inner_text = text[element.start : element.end]
        if inner_text and not self._has_elements(element):
            # A tool without elements: nothing, a JSON object, or text that says nothing about its parameter.
            stripped = inner_text.strip()
            found = self._json(element)
            if found is not None:
                params = found
            else:
                before = len(self.findings.list)
                self.elements(element.a, element.b, element.start, element.end, "tool")
                noise = any(diag.code == "TC011" for diag in self.findings.list[before:])
                if noise and stripped:
                    start, end = trim_blank(text, element.start, element.end)
                    del self.findings.list[before:]
                    self.findings.add("TC011", (start, end), {"excerpt": stripped[:_EXCERPT]}, error=True)
        else:
            elements = self.elements(element.a, element.b, element.start, element.end, "tool")
        if len(elements) == 1 and elements[0].key == INPUTS and INPUTS not in schema_names(schema):
            self._alias(elements[0], "its children", _NO_TAG)
            self._inputs(params, elements[0], schema)
        else:
            for child in elements:
                self._child(params, child, schema)
                if len(params) > MAX_PARAMS:
                    break
        self._attribute_params(params, call, element, attributes, schema)
        self._finish(call, params)

    def _schema(self, tool_id: str) -> Json:
        hint = self.options.tools.get(tool_id)
        return hint.parameters if hint is not None else None

    def _attribute_params(
        self, params: dict[str, Param], call: Call, element: Element, attributes: list[Attribute], schema: Json
    ) -> None:
        """Parameters given as attributes of the tool (AX137); what cannot be one is ignored (AX136)."""
        taken = [
            a
            for a in attributes
            if a.value is not None and a.name and ":" not in a.name and not a.name.startswith("xml")
        ]
        declared = schema_names(schema)
        if params and not any(a.name in declared for a in taken):
            taken = []
        first: Attribute | None = None
        for attribute in attributes:
            if attribute not in taken or attribute.name in params or attribute.value is None:
                self._ignored(attribute, call.tool_id)
                continue
            first = first or attribute
            params[attribute.name] = Param(
                attribute.name,
                attribute.value,
                attribute.span,
                attribute.name_span,
                attribute.name,
                "attribute",
            )
        if first is None:
            return
        edits: tuple[Edit, ...] = ()
        given = [param for param in params.values() if param.origin == "attribute"]
        if len(given) == len(attributes) == len(params) and not self.text[element.start : element.end].strip():
            body = "".join(self._written(param, False) for param in given)
            raw = self.text[element.token.name_span[0] : element.token.name_span[1]]
            edits = (Edit(element.open, element.outer_end, f"<{raw}>{body}</{raw}>"),)
        self.findings.add("AX137", first.span, {"tool": call.tool_id}, edits=edits, title="Write elements")

    def _child(self, params: dict[str, Param], child: Element, schema: Json) -> None:
        """A child of a tool element: a parameter by its tag, or ``<parameter name="…">``."""
        token = child.token
        declared = schema_names(schema)
        attributes = read_attributes(self.text, token.attributes)
        if child.key in INPUT_ALIASES and child.name not in declared:
            named = next((a for a in attributes if a.name.lower() == "name" and a.value is not None), None)
            if named is not None and named.value is not None:
                name = named.value.text(self.text).strip()
                self._alias(child, name, f"<{name}>" if len(attributes) == 1 else "")
                rest = [a for a in attributes if a is not named]
                self._take(params, child, name, named.value.span, rest, schema, "child")
                return
        name, name_span = child.name, token.name_span
        bare = [a for a in attributes if a.value is None]
        if bare and len(bare) == len(attributes) and child.closed and token.kind == "open":
            raw = self.text[token.name_span[0] : bare[-1].span[1]]
            close = self.text[child.end : child.outer_end]
            if raw in close:
                self.findings.add("AX134", (token.name_span[0], bare[-1].span[1]), {"raw": raw})
                self.values.forget_junk(child)
                name, name_span, attributes = raw, (token.name_span[0], bare[-1].span[1]), []
        if not name:
            self.findings.add("TC061", token.name_span, error=True)
            return
        self.values.check_name(token, tool=False)
        self._take(params, child, name, name_span, attributes, schema, "child")

    def _take(
        self,
        params: dict[str, Param],
        child: Element,
        name: str,
        name_span: Span,
        attributes: list[Attribute],
        schema: Json,
        origin: str,
    ) -> None:
        """Reads one parameter into ``params``; a second one of the name makes a list (ruling 15)."""
        part = schema_part(schema, name)
        value: Value | None = None
        if not self.text[child.start : child.end].strip():
            given = next((a for a in attributes if a.name.lower() in VALUE_ATTRIBUTES and a.value is not None), None)
            if given is not None and given.value is not None:
                attributes = [a for a in attributes if a is not given]
                value = given.value
                tag = self.text[child.token.name_span[0] : child.token.name_span[1]]
                body = as_cdata(value.text(self.text)) if value.text(self.text) else ""
                edits = (
                    Edit(given.span[0], given.span[1], ""),
                    Edit(child.start - (2 if child.token.kind == "self" else 0), child.outer_end, f">{body}</{tag}>"),
                )
                if child.token.kind != "self":
                    edits = (edits[0], Edit(child.start, child.end, body))
                self.findings.add("AX138", given.span, {"name": name}, edits=edits, title="Write it between the tags")
        if value is None:
            value = self.values.read(child, part, name)
        for attribute in attributes:
            self._ignored(attribute, child.name)
        span = (child.open, child.outer_end)
        before = params.get(name)
        if before is None:
            if takes_list(part) and value.kind == "object" and not takes_object(part) and not listed(value, part):
                value = Value("list", value.span, items=[value], repeated=True)
            raw = self.text[name_span[0] : name_span[1]]
            params[name] = Param(name, value, span, name_span, raw, "input" if origin == "input" else "child")
            return
        before.value = join(before.value, value)
        before.span = (before.span[0], span[1])

    def _finish(self, call: Call, params: dict[str, Param]) -> None:
        if len(params) > MAX_PARAMS:
            self.findings.add("TC022", call.tool_span, {"limit": MAX_PARAMS, "what": "parameters"}, error=True)
        call.params = list(params.values())

    # Inputs shape

    def _inputs_calls(self, elements: Sequence[Element], given: Attribute | None) -> list[Call]:
        """``<tool_id>`` with ``<inputs>``, once or several times (AX162)."""
        ids: list[Element] = []
        calls: list[Call] = []
        groups: list[tuple[Element | None, list[Element]]] = []
        current: list[Element] = []
        head: Element | None = None
        strong = any(element.key in STRONG_TOOL_ID for element in elements)
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
            call = self._inputs_call(head, parts, given)
            if call is not None:
                calls.append(call)
        if len(calls) > 1:
            self.findings.add("AX162", (calls[1].span[0], calls[1].tool_span[1]), {"n": len(calls)}, repair=False)
        return calls

    def _same_id(self, first: Element, second: Element) -> bool:
        a = self.text[first.start : first.end].strip()
        b = self.text[second.start : second.end].strip()
        span = (second.open, second.outer_end)
        if a == b:
            self.findings.add(
                "TC060", span, {"name": TOOL_ID, "n": 2, "policy": "they are the same"}, edits=(Edit(*span, ""),)
            )
            return True
        self.findings.add("AX152", span, {"a": a, "b": b}, error=True)
        return False

    def _inputs_call(self, head: Element | None, parts: list[Element], given: Attribute | None) -> Call | None:
        text = self.text
        if head is not None:
            if head.name != TOOL_ID:
                self._alias(head, TOOL_ID)
            for attribute in read_attributes(text, head.token.attributes):
                self._ignored(attribute, head.name)
            value = self.values.read(head, {"type": "string"}, TOOL_ID)
            raw, span = value.text(text), value.span
            start = head.open
            end = head.outer_end
        elif given is not None and given.value is not None:
            at = self.opener_end
            body = escape(given.value.text(text).strip())
            edits = (Edit(*given.span, ""), Edit(at, at, f"<{TOOL_ID}>{body}</{TOOL_ID}>"))
            self.findings.add("AX138", given.span, {"name": TOOL_ID}, edits=edits, title="Write <tool_id>")
            raw, span = given.value.text(text), given.value.span
            start, end = given.span
        else:
            at = parts[0]
            self.findings.add("AX150", (at.open, at.start), error=True)
            return None
        tool_id, span = self._clean_id(raw, span)
        if not tool_id:
            self.findings.add("AX151", (start, end), error=True)
            return None
        if "<" in tool_id or "\n" in tool_id:
            self.findings.add(
                "AX110", span, {"char": "<" if "<" in tool_id else "line break", "param": TOOL_ID}, error=True
            )
        call = Call("action", tool_id, span, (start, end), shape="inputs")
        schema = self._schema(tool_id)
        params: dict[str, Param] = {}
        loose: list[Element] = []
        for part in parts:
            call.span = (min(call.span[0], part.open), max(call.span[1], part.outer_end))
            if part.key == INPUTS or (part.key in INPUTS_ALIASES and part.name not in schema_names(schema)):
                if part.name != INPUTS:
                    self._alias(part, INPUTS)
                self._inputs(params, part, schema)
                continue
            loose.append(part)
            if part.key not in INPUT_ALIASES and self._has_elements(part) and part.name not in schema_names(schema):
                # A tool by its tag beside a tool by its id.
                self.findings.add("AX152", (part.open, part.start), {"a": tool_id, "b": part.name}, error=True)
            self._input(params, part, schema)
        if loose:
            first, last = loose[0], loose[-1]
            together = len(loose) == len(parts) and all(part.closed for part in loose)
            edits = (
                Edit(first.open, first.open, f"<{INPUTS}>"),
                Edit(last.outer_end, last.outer_end, f"</{INPUTS}>"),
            )
            args_span = (first.open, first.start)
            self.findings.add("AX155", args_span, edits=edits if together else (), title="Wrap in <inputs>")
        self._finish(call, params)
        return call

    def _clean_id(self, raw: str, span: Span) -> tuple[str, Span]:
        """The id without blanks, quotes, backticks and invisible characters around it (ruling 13)."""
        text = self.text
        start, end = trim_blank(text, *span)
        if text[start:end] != raw.strip():
            return raw.strip(), (start, end)
        before = (start, end)
        while end > start and (text[end - 1] in DECORATION or text[end - 1] in INVISIBLE):
            end -= 1
        while start < end and (text[start] in DECORATION or text[start] in INVISIBLE):
            start += 1
        tool_id = text[start:end]
        if (start, end) != before:
            self.findings.add("AX153", before, edits=(Edit(*before, tool_id),), title="Remove the quotes")
        if any(char in INVISIBLE for char in tool_id):
            clean = "".join(char for char in tool_id if char not in INVISIBLE)
            self.findings.add(
                "TC013", (start, end), {"hex": "200B", "where": "the tool id"}, edits=(Edit(start, end, clean),)
            )
            return clean, (start, end)
        return tool_id, (start, end)

    def _json(self, element: Element) -> dict[str, Param] | None:
        """The members of a JSON object that stands where elements were due (AX161)."""
        value = self.values.read(element, {"type": "string"}, element.name)
        body = value.text(self.text)
        if not body.lstrip().startswith("{"):
            return None
        params = json_params(self.text, value, body)
        if params is None:
            return None
        lines = "".join(self._written(param, element.key in INPUTS_ALIASES) for param in params.values())
        self.findings.add("AX161", value.span, edits=(Edit(element.start, element.end, lines),), title="Write elements")
        return params

    def _written(self, param: Param, as_input: bool) -> str:
        value = param.value.text(self.text)
        body = as_cdata(value) if value != value.strip() or "<" in value or "&" in value else value
        if as_input or _TAG_SAFE.fullmatch(param.name) is None:
            name = escape(param.name).replace('"', "&quot;")
            return f'<{INPUT} name="{name}">{body}</{INPUT}>'
        return f"<{param.name}>{body}</{param.name}>"

    def _inputs(self, params: dict[str, Param], part: Element, schema: Json) -> None:
        for attribute in read_attributes(self.text, part.token.attributes):
            self._ignored(attribute, part.name)
        if not self._has_elements(part) and self.text[part.start : part.end].strip():
            before = len(self.findings.list)
            found = self._json(part)
            if found is not None:
                params.update(found)
                return
            del self.findings.list[before:]
            self.elements(part.a, part.b, part.start, part.end, "tool")
            start, end = trim_blank(self.text, part.start, part.end)
            if any(diag.code == "TC011" for diag in self.findings.list[before:]):
                del self.findings.list[before:]
                self.findings.add("TC011", (start, end), {"excerpt": self.text[start:end][:_EXCERPT]}, error=True)
            return
        for child in self.elements(part.a, part.b, part.start, part.end, "tool"):
            self._input(params, child, schema)
            if len(params) > MAX_PARAMS:
                return

    def _input(self, params: dict[str, Param], child: Element, schema: Json) -> None:
        """One ``<input name="…">``, or what was written for it (AX157 to AX160)."""
        text, token = self.text, child.token
        attributes = read_attributes(text, token.attributes)
        by_name = any(a.name.lower() == "name" and a.value is not None for a in attributes)
        if (child.key not in INPUT_ALIASES and not by_name) or (child.name in schema_names(schema) and not attributes):
            if any(not a.name for a in attributes):
                self.findings.add("AX157", (child.open, child.start), error=True)
                return
            self.findings.add("AX160", (child.open, child.start), {"name": child.name}, edits=self._as_input(child))
            self.values.check_name(token, tool=False)
            self._named(params, child, child.name, token.name_span, attributes, schema)
            return
        if child.name != INPUT:
            self._alias(child, INPUT)
        named = next((a for a in attributes if a.name.lower() == "name" and a.value is not None), None)
        if named is None:
            for wanted in NAME_ATTRIBUTES:
                named = next((a for a in attributes if a.name.lower() == wanted and a.value is not None), None)
                if named is not None:
                    break
        if named is None:
            named = next((a for a in attributes if not a.name and a.value is not None), None)
        if named is None or named.value is None:
            pair = self._name_value_pair(child)
            if pair is None:
                self.findings.add("AX157", (child.open, child.start), error=True)
                return
            name_element, value_element = pair
            name_value = self.values.read(name_element, {"type": "string"}, "name")
            self._alias(child, INPUT, _NO_TAG)
            self._named(params, value_element, name_value.text(text).strip(), name_value.span, [], schema)
            return
        name = named.value.text(text).strip()
        rest = [a for a in attributes if a is not named]
        if named.name != "name":
            shown = named.name or "="
            edits = (Edit(named.name_span[0], named.name_span[1], "name"),)
            if not named.name or not named.straight:
                start = named.span[0] if named.name else token.name_span[1]
                edits = (Edit(start, named.span[1], f'{"" if named.name else " "}name="{name}"'),)
            self.findings.add("AX158", named.span, {"attr": shown}, edits=edits, title="Write name=")
        if not named.straight and named.name:
            edits = (Edit(named.span[0], named.span[1], f'name="{name}"'),) if named.name == "name" else ()
            self.findings.add("AX159", named.span, {"raw": named.raw}, edits=edits, title="Write straight quotes")
        same = next((a for a in rest if a.name.lower() == "name"), None)
        if same is not None and (same.value is None or same.value.text(text) != named.value.text(text)):
            self.findings.add("AX157", (child.open, child.start), error=True)
            return
        if not name:
            self.findings.add("AX157", (child.open, child.start), error=True)
            return
        self._named(params, child, name, named.value.span, rest, schema)

    def _named(
        self,
        params: dict[str, Param],
        child: Element,
        name: str,
        span: Span,
        attributes: list[Attribute],
        schema: Json,
    ) -> None:
        clean = "".join(char for char in name if char not in INVISIBLE)
        if clean != name and clean:
            code = f"{ord(next(char for char in name if char in INVISIBLE)):04X}"
            self.findings.add("TC013", span, {"hex": code, "where": "a name"}, edits=(Edit(*span, clean),))
            name = clean
        if name in params:
            self.findings.add(
                "TC060", span, {"name": name, "n": 2, "policy": "all values are kept as a list"}, repair=False
            )
        self._take(params, child, name, span, attributes, schema, "input")

    def _as_input(self, child: Element) -> tuple[Edit, ...]:
        """The edits that turn ``<x>…</x>`` into ``<input name="x">…</input>``."""
        start, end = child.token.name_span
        if child.token.attributes is not None or not child.closed:
            return ()
        first = Edit(start, end, f'input name="{child.name}"')
        if child.token.kind == "self":
            return (first,)
        return (first, Edit(child.end, child.outer_end, "</input>"))

    def _name_value_pair(self, child: Element) -> tuple[Element, Element] | None:
        """``<input><name>x</name><value>y</value></input>``."""
        if not self._has_elements(child):
            return None
        before = len(self.findings.list)
        inner = self.elements(child.a, child.b, child.start, child.end, "tool")
        if len(inner) == 2 and inner[0].key in ("name", "key") and inner[1].key in VALUE_ATTRIBUTES:
            return inner[0], inner[1]
        del self.findings.list[before:]
        return None


def schema_names(schema: Json) -> frozenset[str]:
    """The names of the declared properties."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


def schema_part(schema: Json, name: str) -> Json:
    """The schema of one property, or None."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties.get(name) if isinstance(properties, dict) else None


def takes_list(schema: Json) -> bool:
    """True when the schema's type is a list."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def takes_object(schema: Json) -> bool:
    """True when the schema's type can be an object."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def listed(value: Value, schema: Json) -> bool:
    """True when an object stands for a list under another name: ``<files><file>…</file></files>``."""
    del schema
    return len(value.entries) == 1 and next(iter(value.entries.values())).repeated


def _indent(text: str, at: int) -> int:
    """The column of a tag that is first on its line, else -1."""
    line = max(text.rfind("\n", max(0, at - 200), at), text.rfind("\r", max(0, at - 200), at)) + 1
    return at - line if line and not text[line:at].strip() else -1


def _in_sentence(text: str, start: int, at: int) -> bool:
    line = max(text.rfind("\n", start, at), start)
    return bool(text[line:at].strip()) and text[at - 1].isspace()


def _line_start(text: str, at: int) -> bool:
    return _indent(text, at) >= 0
