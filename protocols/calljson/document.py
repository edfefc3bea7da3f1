"""A text that is one JSON document of calls and nothing else (W14).

``auto`` takes the forms that cannot be anything else; ``{name, arguments}`` needs the protocol ``json``. JSON inside prose is never a
call, so a text that may still go on has none that may run. Must not know registered tools.
"""

from __future__ import annotations

from typing import Literal

from tamis.protocols.base import Source
from tamis.protocols.calljson.calls import make_call
from tamis.protocols.calljson.forms import find_calls
from tamis.protocols.calljson.settle import settle
from tamis.protocols.jsontext.spoken import STRING, Layer, read_spoken
from tamis.protocols.model import MAX_BLOCK_CHARS, MAX_STEPS, Block, Call, Diag, Document, ReadOptions
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

_START = lazy(r"\ufeff?+[ \t\r\n]*+(?:(?P<fence>`{3,}+|~{3,}+)[\w\-]*+[ \t]*+\r?\n[ \t\r\n]*+)?(?=[{\[])")
_SIGN = lazy(r"[\"'](?:toolName|tool_calls|function(?:_call)?|tool_use|tools/call)[\"']")
_SCAN = lazy(rf"(?s:(?P<string>{STRING})|(?P<open>[{{\[])|(?P<close>[}}\]])|(?P<stop>[\"']))")

Verdict = Literal["no", "unfinished"]


def read_call_document(source: Source, protocol: str, options: ReadOptions) -> Document | Verdict:
    """The document of a text of call JSON.

    ``no``: the text is none. ``unfinished``: it is known to be cut off and could still become one, so that nothing in it may run.
    """
    text = source.text
    start = _START.match(text)
    if start is None:
        return "no"
    inner = _inner(text, start.end(), start["fence"])
    if inner is None:
        # Behind the fence stands more text, or the fence is still open.
        return "no" if options.complete else _may_go_on(text, start.end())
    bare = protocol == "json"
    if not bare and _SIGN.search(text, *inner) is None:
        return "no" if options.complete else _may_go_on(text, start.end())
    spoken = read_spoken(Layer(text, *inner))
    root = spoken.root if spoken.root is not None else spoken.tree.root if spoken.cut else None
    found = find_calls(root, bare=bare) if root is not None else None
    if found is None and not bare:
        return "no" if options.complete else _may_go_on(text, start.end())
    block = Block("json", inner, (inner[0], inner[0] + 1), (inner[1] - 1, inner[1]))
    diags = list(spoken.diags)
    if found is None:
        diags.append(spoken.fault or Diag("HM602", inner, {"reason": "it has none of the forms of call JSON"}))
    for one in (found or [])[: MAX_STEPS + 1]:
        made = make_call(one, spoken, "json")
        diags += made.diags
        if made.call is not None:
            block.calls.append(made.call)
    if spoken.root is None and spoken.cut:
        diags.append(_cut(block, "the JSON of a call"))
        block.close = None
    elif not options.complete:
        diags.append(_cut(block, "the text, which may hold more than the call"))
    _limits(block, diags)
    if start["fence"] is not None and block.state == "complete":
        _fenced(block, diags, options)
    return _document(text, block, diags)


def _cut(block: Block, construct: str) -> Diag:
    block.state = "truncated"
    return Diag("TC001", block.open, {"protocol": "JSON", "construct": construct})


def _limits(block: Block, diags: list[Diag]) -> None:
    if block.span[1] - block.span[0] > MAX_BLOCK_CHARS:
        diags.append(Diag("TC021", block.open, {"limit": MAX_BLOCK_CHARS}))
    if len(block.calls) > MAX_STEPS:
        diags.append(Diag("TC022", block.open, {"limit": MAX_STEPS, "what": "calls"}))
        del block.calls[MAX_STEPS:]


def _fenced(block: Block, diags: list[Diag], options: ReadOptions) -> None:
    """A fence around the whole document is a wrapper, unless fences are to be left alone (ruling 7)."""
    if options.fenced_calls == "ignore":
        diags[:] = [Diag("TC009", block.open, {"marker": "call JSON"})]
        for call in block.calls:
            call.executable = False
        return
    diags.insert(0, Diag("TC008", block.open))


def _document(text: str, block: Block, diags: list[Diag]) -> Document:
    aside = bool(block.calls) and not any(call.executable for call in block.calls)
    block.diagnostics = diags
    settle(block)
    if aside:
        for call in block.calls:
            call.executable = False
    return Document(
        text=text,
        blocks=[block],
        calls=list[Call](block.calls),
        diagnostics=list(block.diagnostics),
        comments=[],
        response_span=(0, len(text)) if aside else (0, block.span[0]),
        trailing_span=(len(text), len(text)) if aside else (block.span[1], len(text)),
    )


def _inner(text: str, start: int, fence: str | None) -> Span | None:
    """Where the JSON stands: up to the end of the text, or to the fence's last line; None when the fence does not end there."""
    end = len(text)
    while end > start and text[end - 1] in " \t\r\n":
        end -= 1
    if fence is not None:
        last = end
        while end > start and text[end - 1] == fence[0]:
            end -= 1
        line = text.rfind("\n", start, end)
        if last - end < len(fence) or line < 0 or text[line:end].strip():
            return None
        end = line
        while end > start and text[end - 1] in " \t\r\n":
            end -= 1
    return (start, end) if end > start else None


def _may_go_on(text: str, start: int) -> Verdict:
    """Whether the brackets that a cut-off text begins with are still open: what stands in them could be part of a call."""
    depth = 0
    for found in _SCAN.finditer(text, start):
        kind = found.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth == 0:
                return "no"
        elif kind == "stop":
            return "unfinished"
    return "unfinished"
