"""Completion: what may stand at an offset of a document, whatever its kind."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from tamis.server.analysis.answers import Proposal, Proposals
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.snapshot import Snapshot

MAX_PROPOSALS = 500


def complete(snapshot: Snapshot, offset: int) -> Proposals:
    """Proposals at a code-point offset, best first and at most 500; empty where nothing is known to belong.

    Long documentation is left out: ``documentation_of`` words it for those that are looked at.
    """
    propose = answer(snapshot, "complete")
    items: list[Proposal] = propose(snapshot, offset) if propose is not None else []
    cut = len(items) > MAX_PROPOSALS
    if cut:
        items = _fitting(snapshot.text, offset, items)
    return Proposals(tuple(_ranked(item, index) for index, item in enumerate(items[:MAX_PROPOSALS])), cut)


def _ranked(item: Proposal, index: int) -> Proposal:
    # Without a tab stop the plain text says the same.
    snippet = item.snippet if "$" in item.snippet else ""
    sort = item.sort or f"{index:04}"
    if sort == item.sort and snippet == item.snippet:
        return item
    return msgspec.structs.replace(item, sort=sort, snippet=snippet)


def _fitting(text: str, offset: int, items: list[Proposal]) -> list[Proposal]:
    """Of too many proposals first those that hold what is typed; the order stays."""
    fitting: list[Proposal] = []
    others: list[Proposal] = []
    for item in items:
        typed = text[item.span[0] : offset].strip("\"'").casefold() if item.span[0] <= offset else ""
        fits = typed in (item.filter or item.label).casefold() or typed in item.label.casefold()
        (fitting if fits else others).append(item)
    return fitting + others


def documentation_of(item: Proposal) -> str:
    """What there is to say about a proposal, as Markdown; empty for nothing."""
    subject: Any = item.subject
    if item.documentation or subject is None:
        return item.documentation
    from tamis.server.analysis.describe import describe_schema, describe_tool

    if isinstance(subject, dict):
        schema = cast("dict[str, Any]", subject)
        markdown_description: Any = schema.get("markdownDescription")
        return describe_schema(
            {**schema, "description": markdown_description} if isinstance(markdown_description, str) else schema
        )
    return describe_tool(subject)


# Text with tab stops as LSP writes it: escaping, choices, and the bodies of ``defaultSnippets``.


_SPECIAL = re.compile(r"([\\$}])")
_STOP = re.compile(r"\$\{\d+:([^}]*)\}|\$\{\d+\|([^,|}]*)[^}]*\}|\$\{?\d+\}?")


def escape_snippet(text: str) -> str:
    """Text as it stands in a snippet: nothing in it is a tab stop."""
    return _SPECIAL.sub(r"\\\1", text)


def choice(values: Sequence[object], index: int = 1) -> str:
    """A tab stop that offers JSON values; a plain one where a value cannot stand in a list of choices."""
    texts = list(dict.fromkeys(json.dumps(value, ensure_ascii=False) for value in values))
    if not texts or len(texts) > 50 or any(set(text) & set("|,\\$}{\n") for text in texts):
        return f"${index}"
    return f"${{{index}|{','.join(texts)}|}}"


def snippet_of_body(body: object) -> str:
    """The body of a ``defaultSnippets`` entry as a snippet: texts may hold tab stops, a leading ``^`` drops the quotes."""
    return _write(body, "")


def _write(body: object, indent: str) -> str:
    inner = indent + "\t"
    if isinstance(body, dict):
        members = [
            f"{inner}{_text(str(key))}: {_write(value, inner)}" for key, value in cast("dict[str, Any]", body).items()
        ]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}" if members else "{}"
    if isinstance(body, list):
        items = [inner + _write(item, inner) for item in cast("list[Any]", body)]
        return "[\n" + ",\n".join(items) + f"\n{indent}]" if items else "[]"
    if isinstance(body, str):
        return body[1:] if body.startswith("^") else _text(body)
    return json.dumps(body, ensure_ascii=False)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def value_of_body(body: object) -> Any:
    """The same body as a plain value, its tab stops replaced by what they propose."""
    if isinstance(body, dict):
        return {without_stops(str(key)): value_of_body(value) for key, value in cast("dict[str, Any]", body).items()}
    if isinstance(body, list):
        return [value_of_body(item) for item in cast("list[Any]", body)]
    if isinstance(body, str):
        return without_stops(body.removeprefix("^"))
    return body


def without_stops(text: str) -> str:
    """A snippet as plain text: tab stops become what they propose, escapes are undone."""
    plain = _STOP.sub(lambda match: match[1] or match[2] or "", text)
    return re.sub(r"\\([\\$}])", r"\1", plain)
