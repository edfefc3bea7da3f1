"""Tools and schemas in words, as Markdown, for completion and hover."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from tamis.protocols.schema.words import is_list, is_object
from tamis.server.analysis.snapshot import ToolView

MAX_LISTED = 12
MAX_TEXT = 4_000


def type_name(schema: object) -> str:
    """The type that a schema asks for, in a word or two."""
    if not isinstance(schema, dict):
        return "any"
    here = cast("dict[str, Any]", schema)
    kind: Any = here.get("type")
    if isinstance(kind, list):
        return " | ".join(str(item) for item in cast("list[Any]", kind))
    if kind == "array":
        return f"array of {type_name(here['items'])}" if isinstance(here.get("items"), dict) else "array"
    if isinstance(kind, str):
        return kind
    if "enum" in here:
        return "enum"
    return "any"


def describe_schema(schema: object) -> str:
    """A parameter's description, bounds and values as Markdown."""
    if not isinstance(schema, dict):
        return ""
    here = cast("dict[str, Any]", schema)
    parts: list[str] = []
    text: Any = here.get("description") or here.get("title")
    if isinstance(text, str):
        parts.append(text[:MAX_TEXT])
    facts: list[str] = []
    values: Any = here.get("enum")
    if isinstance(values, list):
        shown = ", ".join(code(value) for value in cast("list[Any]", values)[:MAX_LISTED])
        more = " …" if len(cast("list[Any]", values)) > MAX_LISTED else ""
        facts.append(f"One of {shown}{more}")
    for key, words in _FACTS.items():
        if key in here and not isinstance(here[key], (dict, list)):
            facts.append(f"{words} {code(here[key])}")
    parts.extend(facts)
    return "\n\n".join(parts)


_FACTS = {
    "default": "Default",
    "const": "Always",
    "minimum": "At least",
    "exclusiveMinimum": "More than",
    "maximum": "At most",
    "exclusiveMaximum": "Less than",
    "minLength": "At least this many characters:",
    "maxLength": "At most this many characters:",
    "pattern": "Matches",
    "format": "Format",
}


def describe_tool(tool: ToolView) -> str:
    """What a tool does and takes, as Markdown."""
    manifest = tool.manifest
    parts = [manifest.description[:MAX_TEXT]]
    parameters = manifest.parameters or {}
    properties, required = parameters.get("properties"), parameters.get("required")
    needed = required if is_list(required) else []
    if is_object(properties) and properties:
        lines: list[str] = []
        for name, schema in properties.items():
            if len(lines) >= MAX_LISTED:
                lines.append("- …")
                break
            text = schema.get("description") if is_object(schema) else None
            about = f": {text.splitlines()[0][:200]}" if isinstance(text, str) and text.strip() else ""
            lines.append(f"- `{name}` ({type_name(schema)}{', required' if name in needed else ''}){about}")
        parts.append("\n".join(lines))
    facts = f"version {manifest.version}"
    if not tool.available:
        facts += f" — not available: {tool.reason}"
    parts.append(facts)
    return "\n\n".join(part for part in parts if part)


def code(value: object) -> str:
    """A value as inline code, cut to a line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = text.replace("\n", "\\n")
    if len(text) > 80:
        text = text[:79] + "…"
    return f"`` {text} ``" if "`" in text else f"`{text}`"


# Must not be used on Markdown of others' making.

_FENCE = re.compile(r"(`{3,})\w*\Z")
_CODE = re.compile(r"(`+) ?(.+?) ?\1")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"\[([^\]\n]+)\]\(<?([^)\s>]+)>?\)")
_ESCAPED = re.compile(r"\\([\\`*_\[\]<>#|~!])")
_HEADING = re.compile(r"#{1,6} +")
_RULE = re.compile(r"-{3,}\Z")


def plain_text(markdown: str) -> str:
    """Our own Markdown as plain text, for clients that show no other: without marks; what stands in a fence stays as it is, indented."""
    out: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        if fence:
            if line.strip() == fence:
                fence = ""
            else:
                out.append(f"    {line}".rstrip())
            continue
        opened = _FENCE.match(line)
        if opened is not None:
            fence = opened[1]
            continue
        if _RULE.match(line):
            out.append("")
            continue
        line = _HEADING.sub("", line, count=1) if line.startswith("#") else line
        line = _CODE.sub(r"\2", line)
        line = _STRONG.sub(r"\2", line)
        out.append(_ESCAPED.sub(r"\1", _LINK.sub(r"\1 (\2)", line)))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()
