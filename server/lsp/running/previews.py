"""What a model is told of a tool, exactly: the prompt text in each protocol with its tokens, as a document.

Must not know how prompts are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tamis.protocols.base import Shape
from tamis.protocols.observation import plain
from tamis.protocols.plugins import BUILT_IN, extras_of
from tamis.server.analysis.running.lenses import tokens_of_tool
from tamis.server.analysis.running.rewriting import PROTOCOLS
from tamis.server.lsp.client import Client
from tamis.server.lsp.running.runner import REQUEST_FAILED, Runner
from tamis.server.lsp.running.runs import PROMPT_SCHEME, VirtualDocuments
from tamis.server.runtime.texts.prompts import PromptError, PromptRequest, Prompts
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.protocols.contract import PromptResult
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.workspace.roots import Root

MESSAGE_LINES = 10


def _sections() -> Iterator[tuple[str, str, Shape]]:
    """Each protocol in each of its shapes, with a heading."""
    for name in reversed(BUILT_IN):
        brought = extras_of(name)
        for shape, words in brought.shapes.items():
            yield f"{brought.title}, {words}" if words else brought.title, name, shape


def _in_short(text: str, tool_id: str) -> str:
    """A preview as a message: its first lines and how to see the rest."""
    lines = text.splitlines()
    if len(lines) <= MESSAGE_LINES:
        return text
    more = f"… {len(lines) - MESSAGE_LINES} more lines: `tamis prompt --tool {plain(tool_id)}`, or the result of this command"
    return "\n".join([*lines[:MESSAGE_LINES], more])


class Previews:
    """The prompts of one session's tools."""

    def __init__(self, client: Client, runner: Runner, documents: VirtualDocuments) -> None:
        self._client = client
        self._runner = runner
        self._documents = documents
        self._prompts = Prompts()
        self._roots: dict[str, int] = {}

    def tokens(self, root: Root, tool_id: str) -> tuple[int, bool] | None:
        """Tokens of a tool's text in the default protocol, and whether they are exact; None when no model is told of it."""
        try:
            prompt = self._generate(root, tool_id, None, "tag", instructions=False)
        except RpcError:
            return None
        return (prompt.tokens.total, prompt.tokens.exact) if prompt.text.strip() else None

    def preview(
        self, root: Root, document: Document | None, tool_id: str, protocol: str | None, *, show: bool
    ) -> dict[str, Any]:
        """The document with a tool's prompts. Raises ``RpcError`` for what there is not."""
        if protocol is not None and protocol not in PROTOCOLS:
            raise RpcError(INVALID_PARAMS, f"'protocol' must be one of {', '.join(PROTOCOLS)}")
        name = self._tool(root, document, tool_id)
        number = self._roots.setdefault(root.path, len(self._roots) + 1)
        uri = f"{PROMPT_SCHEME}:/{number}/{quote(name, safe='')}{'.' + protocol if protocol else ''}.md"
        text = self._text(root, name, protocol)
        self._documents.put(uri, lambda: self._text_now(root, name, protocol))
        if show and not self._client.show(uri):
            self._client.message("info", _in_short(text, name))
        return {"uri": uri, "text": text, "toolId": name}

    def changed(self) -> None:
        """The tools may be others now: previews that are open are asked for again."""
        for uri in self._documents.uris(PROMPT_SCHEME):
            self._client.refreshed(uri)

    def _tool(self, root: Root, document: Document | None, tool_id: str) -> str:
        registry = self._runner.runtime(root).registry
        if tool_id:
            tool = registry.get(tool_id)
            if tool is None:
                raise RpcError(REQUEST_FAILED, f"No tool '{plain(tool_id)}' is registered")
            return tool.tool_id
        own_tool = next((tool for tool in registry.tools if document is not None and tool.path == document.path), None)
        if own_tool is None:
            raise RpcError(INVALID_PARAMS, "give the 'toolId', or the 'uri' of a registered manifest")
        return own_tool.tool_id

    def _generate(
        self, root: Root, tool_id: str, protocol: str | None, shape: Shape, *, instructions: bool = True
    ) -> PromptResult:
        request = PromptRequest(protocol=protocol, shape=shape, tool_ids=(tool_id,), instructions=instructions)
        try:
            return self._prompts.generate(self._runner.runtime(root), request)
        except PromptError as error:
            raise RpcError(REQUEST_FAILED, str(error)) from None

    def _text_now(self, root: Root, tool_id: str, protocol: str | None) -> str:
        try:
            return self._text(root, tool_id, protocol)
        except RpcError as error:
            return f"{error.text}\n"

    def _text(self, root: Root, tool_id: str, protocol: str | None) -> str:
        parts = [f"# What a model is told of {plain(tool_id)}\n"]
        default = self._runner.runtime(root).settings.protocol.default
        # first the one of which the lens tells the tokens
        for title, name, shape in sorted(_sections(), key=lambda section: section[1] != default):
            if protocol not in (None, name):
                continue
            prompt = self._generate(root, tool_id, name, shape)
            own = self._generate(root, tool_id, name, shape, instructions=False).tokens
            whole = f"{'' if prompt.tokens.exact else '≈'}{prompt.tokens.total}"
            parts.append(f"## {title}: {tokens_of_tool(own.total, own.exact)}, {whole} with the general instructions\n")
            parts += [f"{note}\n" for note in prompt.notes]
            if prompt.text.strip():
                fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", prompt.text)), default=0))
                parts.append(f"{fence}text\n{prompt.text.rstrip(chr(10))}\n{fence}\n")
        return "\n".join(parts)
