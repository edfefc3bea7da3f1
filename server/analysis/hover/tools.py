"""A tool in a hover: what it is for, what it asks for and gets, and exactly what a model reads about it in each protocol."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import cast
from urllib.parse import quote

import msgspec

from tamis.protocols.contract import Permissions
from tamis.protocols.manifest.reading import WorkflowHandler
from tamis.protocols.tokens import Encoding
from tamis.server.analysis.describe import code
from tamis.server.analysis.snapshot import Snapshot, ToolView

# What a model is told of one tool, in each protocol, with its tokens: the text that ``prompt/generate`` writes. Counting loads a tokenizer at the
# first count, so it is only done where its answer is shown.


PROTOCOLS = ("vcp", "tam", "action", "json")
"""In the order of the interface; the default one is shown first."""


def heading(protocol: str) -> str:
    """A protocol's name over its text: that of one of these in capitals, a plug-in's as it is."""
    return protocol.upper() if protocol in PROTOCOLS else protocol


MAX_TOOL_CHARS = 256 * 1024
"""Of a manifest whose prompt is worth writing while a person waits."""


class PromptView(msgspec.Struct, frozen=True):
    """How prompts are shown: the protocol that comes first, and the vocabulary that tokens are counted in."""

    protocol: str = "action"
    encoding: Encoding = "o200k_base"


class PromptText(msgspec.Struct, frozen=True):
    """What a model reads about a tool in one protocol; ``exact`` is False for an estimate."""

    protocol: str
    text: str
    tokens: int
    exact: bool

    @property
    def count(self) -> str:
        """The number of tokens in words: an estimate says that it is one."""
        return f"{self.tokens} tokens" if self.exact else f"≈{self.tokens} tokens"


def own_tool(snapshot: Snapshot) -> ToolView | None:
    """The tool of an open manifest as its text has it; None while that is no sound manifest."""
    from tamis.server.runtime.tools.registry import Tool

    manifest = snapshot.manifest.manifest if snapshot.kind == "manifest" else None
    return Tool(manifest, snapshot.path) if manifest is not None else None


def prompt_texts(
    snapshot: Snapshot, tool: ToolView, view: PromptView, *, first_only: bool = False
) -> Iterator[PromptText]:
    """The texts of all protocols, the default one first; texts that are the same are given once."""
    from tamis.protocols.plugins import find_protocol
    from tamis.protocols.prompt.assemble import tool_text
    from tamis.server.runtime.texts.prompts import prompt_tool
    from tamis.server.runtime.tools.registry import Registry, Tool

    if not isinstance(tool, Tool):
        return
    registry = cast("Registry", snapshot.registry) if snapshot.registry is not None else Registry([tool])
    order = dict.fromkeys((view.protocol, *PROTOCOLS))
    for name in order:
        protocol = find_protocol(name)
        if protocol is None:
            continue
        text = tool_text(protocol, prompt_tool(tool, protocol.id, "tag", registry))
        tokens, exact = counted(text, view.encoding)
        yield PromptText(name, text, tokens, exact)
        if first_only:
            return


@functools.lru_cache(maxsize=512)
def counted(text: str, encoding: Encoding) -> tuple[int, bool]:
    """The tokens of a text, and whether the number is exact; kept, as the same tools are shown again and again."""
    from tamis.server.runtime.texts.token_counts import count_tokens

    return count_tokens(text, encoding)


MAX_SUMMARY = 300
MAX_SHOWN_CHARS = 16_000
MAX_LISTED = 8


class HoverFacts(msgspec.Struct, frozen=True):
    """What a hover needs beside the snapshot: how prompts are shown, and what the policy would grant a tool (it looks at paths)."""

    view: PromptView = PromptView()
    rights: Callable[[ToolView], Permissions | None] = lambda _tool: None


def tool_card(snapshot: Snapshot, tool: ToolView, facts: HoverFacts) -> str:
    """The whole card, as Markdown."""
    manifest = tool.manifest
    title = _escaped(manifest.display_name or tool.tool_id)
    head = f"**{title}** {code(tool.tool_id)} · version {_escaped(manifest.version)}"
    if tool.path:
        head += f" · {file_link(snapshot, tool.path)}"
    parts = [head, summary(manifest.description)]
    if not tool.available:
        parts.append(f"Not available: {_escaped(tool.reason)}")
    parts.append(security(snapshot, tool, facts))
    parts.append("---")
    parts.extend(_prompts(snapshot, tool, facts.view))
    return "\n\n".join(part for part in parts if part)


def summary(description: str) -> str:
    """The first paragraph of a description, as text."""
    text = " ".join(re.split(r"\n\s*\n", description.strip(), maxsplit=1)[0].split())
    return _escaped(text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 1] + "…")


_MARKS = re.compile(r"[\\`*\[\]<|~]|\A[#>]|(?<!_)_+(?!_)")
_IN_WORD = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")


def _escaped(text: str) -> str:
    """A manifest's words as text: nothing in them becomes a link, an image or markup of the hover.

    No more is escaped than must be, since some clients show the signs that escape: ``_`` inside of a word, ``#`` and ``>`` inside of a line
    mark nothing.
    """
    line = " ".join(text.splitlines())

    def mark(match: re.Match[str]) -> str:
        if match[0][0] == "_" and _IN_WORD.match(line, match.start()) is not None:
            return match[0]
        return "".join(f"\\{sign}" for sign in match[0])

    return _MARKS.sub(mark, line)


def file_link(snapshot: Snapshot, path: str) -> str:
    """A link to a file, named as seen from the document."""
    if not path.startswith("/"):
        return code(path)
    name = posixpath.relpath(path, posixpath.dirname(snapshot.path)) if snapshot.path.startswith("/") else path
    return f"[{_escaped(name)}](file://{quote(path)})"


# Rights


def security(snapshot: Snapshot, tool: ToolView, facts: HoverFacts) -> str:
    """What a tool asks for, and what the policy makes of it."""
    context = tool.manifest.security_context
    asked = [
        *_asked("to read", context.file_access.allow_read),
        *_asked("to write", context.file_access.allow_write),
        *_asked("to reach", context.network.allow_hosts),
        *_asked("for the capability", context.required_capabilities),
        *_asked("for the secret", context.secrets),
    ]
    if not asked and isinstance(tool.manifest.handler, WorkflowHandler):
        return "Asks for nothing itself: what a workflow runs has the rights of its own manifests."
    if not asked:
        return "Asks for nothing: it reads its own folder, and has no network."
    lines = [f"Asks {'; '.join(asked)}."]
    rights = facts.rights(tool)
    if rights is not None:
        lines.append(_granted(rights))
    return "  \n".join(lines)


def _asked(verb: str, values: tuple[str, ...]) -> Iterator[str]:
    if values:
        more = f" and {len(values) - MAX_LISTED} more" if len(values) > MAX_LISTED else ""
        yield f"{verb} {', '.join(code(value) for value in values[:MAX_LISTED])}{more}"


def _granted(rights: Permissions) -> str:
    grants = rights.granted
    granted = [
        *_asked("read", tuple(grants.read)),
        *_asked("write", tuple(grants.write)),
        *_asked("reach", tuple(grants.hosts)),
        *_asked("capability", tuple(grants.capabilities)),
        *_asked("secret", tuple(grants.secrets or ())),
    ]
    text = f"The policy grants {'; '.join(granted) if granted else 'nothing of it'}."
    for denied in rights.denied[:MAX_LISTED]:
        text += f"  \nRefused: {code(denied.value)}, {_escaped(denied.reason)}."
    if len(rights.denied) > MAX_LISTED:
        text += f"  \n… {len(rights.denied) - MAX_LISTED} more are refused."
    return text


# Prompts


def _prompts(snapshot: Snapshot, tool: ToolView, view: PromptView) -> Iterator[str]:
    room = MAX_SHOWN_CHARS
    listed: list[PromptText] = []
    for index, prompt in enumerate(prompt_texts(snapshot, tool, view)):
        name = heading(prompt.protocol)
        title = (
            f"**What a model reads in {name}** · {prompt.count}" if index == 0 else f"**In {name}** · {prompt.count}"
        )
        if len(prompt.text) <= room:
            room -= len(prompt.text)
            yield f"{title}\n\n{fenced(prompt.text)}"
        elif index == 0:
            room = 0
            yield f"{title}\n\n{fenced(prompt.text[:MAX_SHOWN_CHARS])}\n\n… {len(prompt.text) - MAX_SHOWN_CHARS} more characters; `tamis prompt` shows all."
        else:
            listed.append(prompt)
    if listed:
        yield (
            "Too long to be shown here: "
            + ", ".join(f"{heading(prompt.protocol)} {prompt.count}" for prompt in listed)
            + "."
        )


def fenced(text: str) -> str:
    """A text in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text}\n{fence}"
