"""Parameters of an ACTION call: children of a tool's element, ``<input name="…">``, attributes, a JSON object (ruling 12).

Must not know how calls stand in a block.
"""

from __future__ import annotations

import re

from tamis.protocols.action.attributes import Attribute, json_params, read_attributes
from tamis.protocols.action.decode import (
    INPUT,
    INPUT_ALIASES,
    INPUTS,
    INPUTS_ALIASES,
    NAME_ATTRIBUTES,
    TOOL_ID_ALIASES,
    VALUE_ATTRIBUTES,
    WRAPPERS,
    as_cdata,
    escape,
    trim_blank,
)
from tamis.protocols.action.elements import ElementReader
from tamis.protocols.action.findings import Element
from tamis.protocols.action.tokens import DECORATION, MARKER_KEY
from tamis.protocols.action.values import join
from tamis.protocols.invisible import IN_TAGS
from tamis.protocols.model import (
    MAX_PARAMS,
    Call,
    Edit,
    Json,
    Param,
    Value,
)
from tamis.protocols.positions import Span

_EXCERPT = 40
_AROUND_NAME = DECORATION + "\\「」『』«»＂＇*"
_NO_TAG = "?"
"""For ``_alias``: no single other tag would do."""
_TAG_SAFE = re.compile(r"[^\W\d][\w.:\-/]*")


_ABOUT_VALUES = frozenset(
    ("type", "lang", "xml:lang", "xml:space", "xsi:type", "xsi:nil", "nil", "null", "encoding", "format")
)
"""Attributes that say something of an element's value and are not the value."""
_TAKEN = INPUT_ALIASES | INPUTS_ALIASES | TOOL_ID_ALIASES | {MARKER_KEY, "item"}


class ParamReader(ElementReader):
    """Reads the parameters of one block's calls."""

    def _ignored(self, attribute: Attribute, tag: str) -> None:
        self.findings.add(
            "AX136",
            attribute.span,
            {"name": attribute.name or self.text[attribute.span[0] : attribute.span[1]], "tag": tag},
            edits=(Edit(*attribute.span, ""),),
            title="Remove the attribute",
            unsafe=self.text[attribute.span[0] - 1] in "=＝",
            # ``<a /b>``: the tag that closes ``b`` may have lost its bracket, or its first one.
            error=attribute.name.startswith("/") and len(attribute.name) > 1,
        )

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
        attribute_params = [param for param in params.values() if param.origin == "attribute"]
        if (
            len(attribute_params) == len(attributes) == len(params)
            and not self.text[element.start : element.end].strip()
        ):
            body = "".join(self._written(param, False) for param in attribute_params)
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
                clean = bare_name(name)
                self._alias(child, clean, f"<{clean}>" if len(attributes) == 1 else "")
                name = self._clean_name(name, named.value.span)
                rest = [a for a in attributes if a is not named]
                self._take(params, child, name, named.value.span, rest, schema, "child")
                return
        if self._marker(child):
            return
        name, name_span = child.name, token.name_span
        spaced = self._spaced_name(child, attributes)
        if spaced is not None:
            name, name_span = spaced
            attributes = []
        self.values.check_name(token, tool=False)
        self._take(params, child, name, name_span, attributes, schema, "child")

    def _spaced_name(self, element: Element, attributes: list[Attribute]) -> tuple[str, Span] | None:
        """A tag's name that has a space in it: the words behind it stand in the closing tag too (AX134)."""
        token = element.token
        bare = [a for a in attributes if a.value is None]
        if not bare or len(bare) != len(attributes) or not element.closed or token.kind != "open":
            return None
        span = (token.name_span[0], bare[-1].span[1])
        raw = self.text[slice(*span)]
        close = self.text[element.end : element.outer_end]
        if raw not in close:
            return None
        at = element.end + close.index(raw)
        joined = "_".join(raw.split())
        edits = (Edit(*span, joined), Edit(at, at + len(raw), joined))
        self.findings.add("AX134", span, {"raw": raw}, edits=edits, title=f"Write {joined}", unsafe=True)
        self.values.forget_junk(element)
        return raw, span

    def _marker(self, child: Element) -> bool:
        """The block's own marker where a parameter was due is none (AX105), nor is a tag without a name."""
        if not child.name:
            self.findings.add("TC061", child.token.name_span, error=True)
            return True
        if child.key != MARKER_KEY:
            return False
        self.findings.add("AX105", (child.open, child.outer_end), {"name": child.name}, error=True)
        return True

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
            value_attribute = next(
                (a for a in attributes if a.name.lower() in VALUE_ATTRIBUTES and a.value is not None), None
            )
            if value_attribute is not None and value_attribute.value is not None:
                attributes = [a for a in attributes if a is not value_attribute]
                value = value_attribute.value
                tag = self.text[child.token.name_span[0] : child.token.name_span[1]]
                body = as_cdata(value.text(self.text)) if value.text(self.text) else ""
                edits = (
                    Edit(value_attribute.span[0], value_attribute.span[1], ""),
                    Edit(child.start - (2 if child.token.kind == "self" else 0), child.outer_end, f">{body}</{tag}>"),
                )
                if child.token.kind != "self":
                    edits = (edits[0], Edit(child.start, child.end, body))
                self.findings.add(
                    "AX138", value_attribute.span, {"name": name}, edits=edits, title="Write it between the tags"
                )
        if value is None:
            value = self.values.read(child, part, name)
        for attribute in attributes:
            self._ignored(attribute, child.name)
            emptied = attribute.value is not None and value.kind == "text" and not value.pieces
            if attribute.value is not None and emptied and attribute.name.lower() not in _ABOUT_VALUES:
                excerpt = attribute.value.text(self.text)[:_EXCERPT]
                self.findings.add("TC063", attribute.span, {"param": name, "excerpt": excerpt}, error=True)
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

    def _json(self, element: Element) -> dict[str, Param] | None:
        """The members of a JSON object that stands where elements were due (AX161)."""
        kept, comments = list(self.findings.list), len(self.findings.comments)
        value = self.values.read_plain(element, element.name)
        body = value.text(self.text)
        params = json_params(self.text, value, body) if body.lstrip().startswith("{") else None
        # Read as a text it may have been found fault with: that is taken back, and so is what was said about its tags.
        self.findings.list = kept
        if params is None:
            del self.findings.comments[comments:]
            return None
        self.findings.forget_pairing(element.start, element.end)
        as_input = element.key in INPUTS_ALIASES
        lines = "".join(self._written(param, as_input) for param in params.values())
        edits = (Edit(element.start, element.end, lines),)
        # Written as elements, some names say something else, and an element of such a name is read as another one.
        odd = element.key in WRAPPERS or any(
            _TAG_SAFE.fullmatch(name) is None or name.lower() in _TAKEN for name in params
        )
        self.findings.add("AX161", value.span, edits=edits, title="Write elements", unsafe=odd and not as_input)
        if "" in params:
            self.findings.add("TC061", params[""].name_span, error=True)
        return params

    def _written(self, param: Param, as_input: bool) -> str:
        value = param.value.text(self.text)
        body = as_cdata(value) if value != value.strip() or "<" in value or "&" in value else value
        if as_input or _TAG_SAFE.fullmatch(param.name) is None:
            return f'<{INPUT} name="{_quoted(param.name)}">{body}</{INPUT}>'
        return f"<{param.name}>{body}</{param.name}>"

    def _inputs(self, params: dict[str, Param], part: Element, schema: Json) -> None:
        for attribute in read_attributes(self.text, part.token.attributes):
            self._ignored(attribute, part.name)
        if not self._has_elements(part) and self.text[part.start : part.end].strip():
            before = len(self.findings.list)
            object_params = self._json(part)
            if object_params is not None:
                params.update(object_params)
                return
            del self.findings.list[before:]
            self.elements(part.a, part.b, part.start, part.end, "tool")
            start, end = trim_blank(self.text, part.start, part.end)
            if any(diag.code == "TC011" for diag in self.findings.list[before:]):
                del self.findings.list[before:]
                self.findings.add("TC011", (start, end), {"excerpt": self.text[start:end][:_EXCERPT]}, error=True)
            return
        self.declared = schema_names(schema)
        for child in self.elements(part.a, part.b, part.start, part.end, "tool"):
            self._input(params, child, schema)
            if len(params) > MAX_PARAMS:
                return

    def _input(self, params: dict[str, Param], child: Element, schema: Json) -> None:
        """One ``<input name="…">``, or what was written for it (AX157 to AX160)."""
        attributes = read_attributes(self.text, child.token.attributes)
        by_name = any(a.name.lower() == "name" and a.value is not None for a in attributes)
        if (child.key not in INPUT_ALIASES and not by_name) or (child.name in schema_names(schema) and not attributes):
            self._instead_of_input(params, child, attributes, schema)
            return
        if child.name != INPUT:
            self._alias(child, INPUT)
        named = _naming(attributes)
        if named is None or named.value is None:
            self._name_and_value(params, child, schema)
            return
        name = named.value.text(self.text).strip()
        rest = [attribute for attribute in attributes if attribute is not named]
        self._spell_name(child, named, name)
        same = next((a for a in rest if a.name.lower() == "name"), None)
        differs = same is not None and (same.value is None or same.value.text(self.text) != named.value.text(self.text))
        if differs or not name:
            self.findings.add("AX157", (child.open, child.start), error=True)
            return
        self._named(params, child, name, named.value.span, rest, schema)

    def _instead_of_input(
        self, params: dict[str, Param], child: Element, attributes: list[Attribute], schema: Json
    ) -> None:
        """An element whose tag is the parameter's name, where an ``<input>`` belongs (AX160)."""
        opening = (child.open, child.start)
        if any(not attribute.name for attribute in attributes):
            self.findings.add("AX157", opening, error=True)
            return
        if self._marker(child):
            return
        if child.key == INPUTS:
            self.findings.add("AX160", opening, {"name": child.name}, error=True)
            return
        self.findings.add(
            "AX160",
            opening,
            {"name": child.name},
            edits=self._as_input(child),
            title=f'Write <{INPUT} name="{child.name}">',
            unsafe=f"</{INPUT}" in self.text[child.start : child.end].lower(),
        )
        self.values.check_name(child.token, tool=False)
        self._named(params, child, child.name, child.token.name_span, attributes, schema)

    def _name_and_value(self, params: dict[str, Param], child: Element, schema: Json) -> None:
        """An input whose name and value are elements in it (AX154)."""
        pair = self._name_value_pair(child)
        if pair is None:
            self.findings.add("AX157", (child.open, child.start), error=True)
            return
        name_element, value_element = pair
        name_value = self.values.read_plain(name_element, "name")
        name = name_value.text(self.text).strip()
        if not name:
            self.findings.add("AX157", (child.open, child.start), error=True)
            return
        edits = (
            Edit(child.open, value_element.start, f'<{INPUT} name="{_quoted(name)}">'),
            Edit(value_element.end, child.outer_end, f"</{INPUT}>"),
        )
        whole = child.closed and value_element.closed and value_element.token.kind == "open"
        whole = whole and not (value_element.token.flag or name_element.token.flag)
        args: dict[str, str | int] = {"got": name_element.name, "canonical": INPUT}
        title = "Write the name as an attribute"
        self.findings.add("AX154", name_element.token.name_span, args, edits=edits if whole else (), title=title)
        self._named(params, value_element, name, name_value.span, [], schema)

    def _spell_name(self, child: Element, named: Attribute, name: str) -> None:
        """What is not canonical about the attribute that holds the name: its own name, its quotes (AX158, AX159)."""
        written = _quoted(bare_name(name))
        if named.name != "name":
            edits = (Edit(named.name_span[0], named.name_span[1], "name"),)
            if not named.name or not named.straight:
                start = named.span[0] if named.name else child.token.name_span[1]
                edits = (Edit(start, named.span[1], f'{"" if named.name else " "}name="{written}"'),)
            self.findings.add("AX158", named.span, {"attr": named.name or "="}, edits=edits, title="Write name=")
        if not named.straight and named.name:
            edits = (Edit(named.span[0], named.span[1], f'name="{written}"'),) if named.name == "name" else ()
            self.findings.add("AX159", named.span, {"raw": named.raw}, edits=edits, title="Write straight quotes")

    def _named(
        self,
        params: dict[str, Param],
        child: Element,
        name: str,
        span: Span,
        attributes: list[Attribute],
        schema: Json,
    ) -> None:
        name = self._clean_name(name, span)
        if name in params:
            self.findings.add(
                "TC060",
                span,
                {"name": name, "n": 2, "policy": "all values are kept as a list"},
                edits=(Edit(child.open, child.outer_end, ""),),
                title="Keep the first value",
                unsafe=True,
                repair=False,
            )
        self._take(params, child, name, span, attributes, schema, "input")

    def _clean_name(self, name: str, span: Span) -> str:
        """A name from an attribute without quotes around and invisible characters in it (ruling 13)."""
        clean = "".join(char for char in name if char not in IN_TAGS)
        edits = (Edit(*span, _quoted(clean)),)
        # The name of a tag stands in its closing tag too.
        in_tag = self.text[span[0] - 1] == "<"
        if clean != name and clean:
            code = f"{ord(next(char for char in name if char in IN_TAGS)):04X}"
            self.findings.add(
                "TC013", span, {"hex": code, "where": "a name"}, edits=edits, title="Remove the character"
            )
        bare = bare_name(name)
        if bare and bare != clean:
            edits = (Edit(*span, _quoted(bare)),) if clean == name else ()
            self.findings.add("AX153", span, edits=edits, title="Remove the quotes", unsafe=in_tag)
            clean = bare
        return clean or name

    def _as_input(self, child: Element) -> tuple[Edit, ...]:
        """The edits that turn ``<x>…</x>`` into ``<input name="x">…</input>``."""
        start, end = child.token.name_span
        if child.token.attributes is not None or not child.closed or self.text[child.outer_end - 1] != ">":
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

    def _schema(self, tool_id: str) -> Json:
        hint = self.options.tools.get(tool_id)
        return hint.parameters if hint is not None else None

    def _finish(self, call: Call, params: dict[str, Param]) -> None:
        if len(params) > MAX_PARAMS:
            self.findings.add("TC022", call.tool_span, {"limit": MAX_PARAMS, "what": "parameters"}, error=True)
        call.params = list(params.values())


def bare_name(name: str) -> str:
    """A name without quotes around it and invisible characters in it."""
    clean = "".join(char for char in name if char not in IN_TAGS)
    return clean.strip(_AROUND_NAME).strip() or clean


def _quoted(name: str) -> str:
    """A name as it stands between straight quotes in an attribute."""
    return escape(name).replace('"', "&quot;")


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


def _naming(attributes: list[Attribute]) -> Attribute | None:
    """The attribute that holds an input's name: ``name``, else a word for it, else a value without a name."""
    valued = [attribute for attribute in attributes if attribute.value is not None]
    for wanted in ("name", *NAME_ATTRIBUTES, ""):
        for attribute in valued:
            if attribute.name.lower() == wanted:
                return attribute
    return None
