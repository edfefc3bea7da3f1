"""The ACTION blocks of tools as an XML Schema 1.0, in both shapes, for validators such as libxml2's.

XML Schema 1.0 cannot tie one element to the text of another: the value of an ``<input>`` cannot depend on its name, nor
``<inputs>`` on ``<tool_id>``. What follows from that stands in the schema's own words (``_NOTES``); what a single tool loses is
among its losses. Must not know registries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from tamis.protocols.action.decode import CONTEXT_NAMES
from tamis.protocols.contract import Loss
from tamis.protocols.export.losses import Losses, below
from tamis.protocols.export.roots import CHOICES, Inliner, flat_root
from tamis.protocols.export.targets import shown_parameters
from tamis.protocols.export.xml_types import (
    ANY,
    STRING,
    UNWRITABLE,
    Child,
    Type,
    Types,
    documentation,
    escaped,
    every,
    is_open,
    is_xml_name,
    required_names,
)
from tamis.protocols.manifest.reading import Manifest
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_object

_RESERVED = frozenset(("action", "tool_id", "inputs", "input")) | CONTEXT_NAMES
_MAX_ORDERED = 3
"""Required parameters of lists whose presence is said: any order of them has to be written out."""
_NOTES = """Blocks that the schema takes are well-formed and name what exists; Tamis itself judges more, and reads more.
Not said: formats, counts of lists, what stands in JSON text (a list or an object may be JSON instead of elements), versions after a tool's id.
A nested object takes only the members that it declares. Blanks around a text count for its length and its pattern.
With <inputs> any value may be one that some parameter takes, and a parameter is only required where every tool of the schema requires it: \
a schema of one tool says most. A list stands in one <input>, as JSON or as <item> elements."""
_TOKEN = re.compile(r"<[^>]*>|[^<]+")


class XmlSchema(msgspec.Struct, frozen=True):
    """An XML Schema as a text, and by tool id what it does not say of each tool that loses something."""

    text: str
    losses: dict[str, list[Loss]]


class _Tool(NamedTuple):
    names: list[str]
    about: str
    open: bool
    children: list[Child]
    inputs: dict[str, Type]
    required: list[str]
    by_tag: bool


def action_schema(manifests: Sequence[Manifest]) -> XmlSchema:
    """The schema of blocks with any number of calls of these tools; the same tools give the same text. Never raises."""
    types = Types()
    losses: dict[str, Losses] = {}
    tools = [
        _tool(manifest, types, losses.setdefault(manifest.tool_id, Losses()))
        for manifest in sorted(manifests, key=lambda manifest: (manifest.tool_id, manifest.version))
    ]
    content = [*_tags(tools, types, losses), *_inputs(tools, types)]
    body = f'<xs:choice maxOccurs="unbounded">{"".join(content)}</xs:choice>' if content else "<xs:sequence/>"
    parts = [
        documentation(_NOTES),
        f'<xs:element name="ACTION"><xs:complexType>{body}</xs:complexType></xs:element>',
        *types.declarations(),
    ]
    schema = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{"".join(parts)}</xs:schema>'
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + _indented(schema)
    return XmlSchema(text, {tool_id: losses.found for tool_id, losses in losses.items() if len(losses)})


def _tool(manifest: Manifest, types: Types, losses: Losses) -> _Tool:
    base = "/parameters"
    inliner = Inliner(shown_parameters(manifest, losses), losses, base, keep_recursive=False)
    root = flat_root(inliner.schema(), losses, base, CHOICES)
    children = types.children(root, base, losses)
    known = {child.name: child.type for child in children}
    required = required_names(root)
    inputs: dict[str, Type] = {}
    properties = root.get("properties")
    declared: dict[str, Json] = properties if is_object(properties) else {}
    for name, part in declared.items():
        if UNWRITABLE.search(name):
            losses.add("no-xml-text", below(base, "properties", name), "its name has characters that XML has not")
        else:
            where = below(base, "properties", name)
            inputs[name] = known[name] if name in known else types.of(part, where, losses, 1)
    if is_open(root):
        losses.add("open", base, "parameters that are not declared are allowed: any names and values are")
    unsaid = [name for name in required if name not in known]
    if unsaid and not is_open(root):
        losses.add(
            "no-tag", base, f"'{unsaid[0][:100]}' is required and can be no element: only <inputs> takes the tool"
        )
    names = list(dict.fromkeys(name for name in (manifest.tool_id, *manifest.aliases) if not UNWRITABLE.search(name)))
    about = f"{manifest.display_name}: {manifest.description}"
    return _Tool(names, about, is_open(root), children, inputs, required, is_open(root) or not unsaid)


# The tool's id as the tag


def _tags(tools: list[_Tool], types: Types, losses: dict[str, Losses]) -> Iterable[str]:
    taken: set[str] = set()
    number = 0
    for tool in tools:
        if not tool.names or not tool.by_tag:
            continue
        loss = losses[tool.names[0]] if tool.names[0] in losses else Losses()
        content = "" if tool.open else _parameters(tool.children, loss)
        name = ANY.name if tool.open else types.named("complexType", content)
        for tag in tool.names:
            if not is_xml_name(tag) or tag.lower() in _RESERVED or tag in taken:
                why = (
                    "the protocol uses it"
                    if tag.lower() in _RESERVED
                    else "an element takes no colon and only letters, digits, _ . -"
                )
                why = "another tool has it" if tag in taken else why
                loss.add(
                    "no-tag", f"/{'toolId' if tag == tool.names[0] else 'aliases'}", f"no tag '{tag[:100]}': {why}"
                )
                continue
            taken.add(tag)
            number += 1
            keys = "" if tool.open else _once(tool.children, f"k{number}")
            yield f'<xs:element name="{tag}" type="{name}">{documentation(tool.about)}{keys}</xs:element>'


def _parameters(children: list[Child], losses: Losses) -> str:
    """The parameters in any order: ``xs:all``, or a choice where one may stand several times, as a list."""
    if not children:
        return "<xs:sequence/>"
    if not any(child.type.repeats for child in children):
        return every(children)
    # Texts that are required are the keys of ``_once``; a key must have a text, so that lists and objects go this way.
    needed = [child for child in children if child.required and not child.type.simple]
    for child in needed[_MAX_ORDERED:]:
        where = below("/parameters", "required")
        losses.add("required-dropped", where, f"that '{child.name[:100]}' is required cannot be said beside so many")
    return _with_all(children, needed[:_MAX_ORDERED])


def _with_all(children: list[Child], needed: list[Child]) -> str:
    """Any number of ``children``, among which each of ``needed`` stands once at least."""
    others = "".join(child.element() for child in children if child not in needed)
    free = f'<xs:choice minOccurs="0" maxOccurs="unbounded">{others}</xs:choice>' if others else ""
    if not needed:
        return free
    branches = "".join(
        f"<xs:sequence>{child.element()}{_with_all(children, [other for other in needed if other is not child])}</xs:sequence>"
        for child in needed
    )
    return f"<xs:sequence>{free}<xs:choice>{branches}</xs:choice></xs:sequence>"


def _once(children: list[Child], prefix: str) -> str:
    """Where a choice takes anything any number of times: each text once at most, and once where it is required.

    The field of a key must lead to exactly one element, that of ``unique`` to one at most.
    """
    if not any(child.type.repeats for child in children):
        return ""
    return "".join(
        f'<xs:{kind} name="{prefix}.{i}"><xs:selector xpath="."/><xs:field xpath="{child.name}"/></xs:{kind}>'
        for i, child in enumerate(children)
        if child.type.simple
        for kind in ("key" if child.required else "unique",)
    )


# The tool's id as a text


def _inputs(tools: list[_Tool], types: Types) -> list[str]:
    if not tools:
        return []
    ids = list(dict.fromkeys(name for tool in tools for name in tool.names))
    id_type = types.named("simpleType", _listed("xs:token", ids))
    required = [
        name for name in tools[0].inputs if all(name in tool.required and name in tool.inputs for tool in tools)
    ]
    name_type, value = STRING.name, ANY
    if not any(tool.open for tool in tools):
        names = list(dict.fromkeys(name for tool in tools for name in tool.inputs))
        kinds = [kind for tool in tools for kind in tool.inputs.values()]
        if not names:
            return [_pair(id_type, "<xs:complexType><xs:sequence/></xs:complexType>", "0")]
        name_type = types.named("simpleType", _listed("xs:string", names))
        value = types.union(kinds)
    attribute = f'<xs:attribute name="name" type="{name_type}" use="required"/>'
    input_type = types.with_attribute(value, attribute)
    # A fixed attribute is there without being written, and may refer to a name that must be: so a name can be required.
    needs = "".join(
        f'<xs:attribute name="required-{i}" type="xs:string" fixed="{escaped(name)}"/>'
        for i, name in enumerate(required)
    )
    refers = "".join(
        f'<xs:keyref name="required-{i}" refer="names"><xs:selector xpath="."/><xs:field xpath="@required-{i}"/></xs:keyref>'
        for i in range(len(required))
    )
    key = '<xs:key name="names"><xs:selector xpath="input"/><xs:field xpath="@name"/></xs:key>'
    element = f'<xs:element name="input" type="{input_type}" minOccurs="0" maxOccurs="unbounded"/>'
    inner = f"<xs:complexType><xs:sequence>{element}</xs:sequence>{needs}</xs:complexType>{key}{refers}"
    return [_pair(id_type, inner, "1" if required else "0")]


def _pair(id_type: str, inner: str, least: str) -> str:
    inputs = f'<xs:element name="inputs" minOccurs="{least}">{inner}</xs:element>'
    beside = "".join(f'<xs:element name="{name}" type="{ANY.name}"/>' for name in sorted(CONTEXT_NAMES))
    context = f'<xs:choice minOccurs="0" maxOccurs="unbounded">{beside}</xs:choice>'
    return f'<xs:sequence><xs:element name="tool_id" type="{id_type}"/>{inputs}{context}</xs:sequence>'


def _listed(base: str, texts: list[str]) -> str:
    values = "".join(f'<xs:enumeration value="{escaped(text)}"/>' for text in texts)
    return f'<xs:restriction base="{base}">{values}</xs:restriction>'


def _indented(xml: str) -> str:
    """The document with one element on each line; texts, which only documentation has, stay as they are."""
    lines: list[str] = []
    depth = 0
    open_line = False
    for token in _TOKEN.findall(xml):
        closes = token.startswith("</")
        depth -= closes
        if not token.startswith("<") or (closes and open_line):
            lines[-1] += token
            open_line = not token.startswith("<")
            continue
        lines.append("  " * depth + token)
        depth += not closes and not token.endswith("/>")
        open_line = False
    return "\n".join(lines) + "\n"
