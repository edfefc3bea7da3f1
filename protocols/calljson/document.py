"""A text that is one JSON document of calls and nothing else (W14).

``auto`` takes the forms that cannot be anything else; ``{name, arguments}`` needs the protocol ``json``. JSON inside prose is never a
call, so a text that may still go on has none that may run. Must not know registered tools.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tamis.protocols.base import Source
from tamis.protocols.calljson.forms import FoundCall, find_calls, make_call
from tamis.protocols.catalogue import severity
from tamis.protocols.context import CONTEXTS
from tamis.protocols.jsontext.spoken import STRING, Layer, read_spoken
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.model import MAX_BLOCK_CHARS, MAX_STEPS, Block, Call, Diag, Document, Edit, ReadOptions, Severity
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

# The last word on a block of JSON calls: errors apply to every call, repairs go to the calls that they touch (ruling 1).


def settle(block: Block) -> Block:
    """The block with its findings sorted and its calls allowed to run or not."""
    diags = _outermost(block.diagnostics)
    failed = block.state != "complete" or any(severity(diag) == "error" for diag in diags)
    if failed:
        if block.state == "complete":
            block.state = "rejected"
        # An edit could settle what the error leaves open.
        diags = [_unsafe(diag) for diag in diags]
    repairs = [diag for diag in diags if diag.repair and severity(diag) != "error"]
    for call in block.calls:
        call.complete = block.state != "truncated"
        call.executable = not failed
        if repairs:
            others = [other.span for other in block.calls if other is not call]
            call.repairs = [d for d in repairs if not any(a <= d.span[0] and d.span[1] <= b for a, b in others)]
    block.diagnostics = sorted(diags, key=lambda diag: diag.span)
    return block


def _unsafe(diag: Diag) -> Diag:
    if diag.fix is None or diag.fix.applicability == "unsafe":
        return diag
    return msgspec.structs.replace(diag, fix=msgspec.structs.replace(diag.fix, applicability="unsafe"))


def _outermost(diags: list[Diag]) -> list[Diag]:
    """Findings whose fix lies inside what another one rewrites keep their words and leave the fix to that one."""
    rewriting = [
        d.fix.edits[0] for d in diags if d.code in ("HM604", "HM605") and d.fix is not None and len(d.fix.edits) == 1
    ]
    whole = [edit for edit in rewriting if edit.new_text[:1] in ("{", "\\")]
    if not whole:
        return diags
    kept: list[Diag] = []
    for diag in diags:
        edits: tuple[Edit, ...] = diag.fix.edits if diag.fix is not None else ()
        inside = any(
            not any(edit is fix_edit for fix_edit in edits)
            and edit.start <= own_edit.start
            and own_edit.end <= edit.end
            for edit in whole
            for own_edit in edits
        )
        kept.append(msgspec.structs.replace(diag, fix=None) if inside else diag)
    return kept


_START = lazy(r"\ufeff?+[ \t\r\n]*+(?:(?P<fence>`{3,}+|~{3,}+)[\w\-]*+[ \t]*+\r?\n[ \t\r\n]*+)?(?=[{\[])")
_SIGN = lazy(r"[\"'](?:toolName|tool_calls|function(?:_call)?|tool_use|tools/call)[\"']")
_SCAN = lazy(rf"(?s:(?P<string>{STRING})|(?P<open>[{{\[])|(?P<close>[}}\]])|(?P<stop>[\"']))")

_FENCE_LINE = lazy(
    r"(?m:^)[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++){0,4}+(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\r\n]*+)(?=[\r\n]|\Z)"
)
_FENCED_SIGN = lazy(rf"{_SIGN.pattern}|[\"'](?:arguments|parameters)[\"']")
MAX_FENCED = 100
"""Fences of one text that are looked into."""

_CUT = frozenset(("length", "max_tokens", "max_output_tokens", "content_filter", "incomplete"))
"""Reasons to stop that say that an answer was cut off (ruling 53)."""

_NAMED_ARGUMENTS = ("arguments", "parameters")

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
    found_calls = find_calls(root, bare=bare) if root is not None else None
    if found_calls is None and not bare:
        return "no" if options.complete else _may_go_on(text, start.end())
    block = Block("json", inner, (inner[0], inner[0] + 1), (inner[1] - 1, inner[1]))
    diags = list(spoken.diags)
    if found_calls is None:
        diags.append(spoken.fault or Diag("HM602", inner, {"reason": "it has none of the forms of call JSON"}))
    for found_call in (found_calls or [])[: MAX_STEPS + 1]:
        call = make_call(found_call, spoken, "json")
        diags += (
            call.diags if found_call.args is not None or _takes_none(call.call, options) else map(_missing, call.diags)
        )
        if call.call is not None:
            block.calls.append(call.call)
    if spoken.root is None and spoken.cut:
        diags.append(_cut(block, "the JSON of a call"))
        block.close = None
    elif not options.complete:
        diags.append(_cut(block, "the text, which may hold more than the call"))
    elif (cut := _said_cut(root)) is not None:
        diags.append(_cut(block, f"the answer, whose reason to stop is {cut}"))
    _limits(block, diags)
    if start["fence"] is not None and block.state == "complete":
        _fenced(block, diags, options, bare=bare)
    elif not bare and _said_by_another(root):
        _show(block, diags, Diag("TC018", block.open, {"context": CONTEXTS["turn"]}, data={"context": "turn"}))
    return _document(text, block, diags)


def fenced_calls(text: str, blocks: list[Block]) -> list[Diag]:
    """A hint for each code fence of a text that holds call JSON and nothing else, outside blocks (TC019, ruling 53).

    ``blocks`` are those of the text in order. Linear: each fence is looked into once.
    """
    diagnostics: list[Diag] = []
    opener: re.Match[str] | None = None
    passed = looked = 0
    for line in _FENCE_LINE.finditer(text):
        while passed < len(blocks) and blocks[passed].span[1] <= line.start():
            passed += 1
        if passed < len(blocks) and blocks[passed].span[0] < line.start():
            continue
        mark, info = line["mark"], line["info"]
        if opener is None:
            opener = line if mark[0] == "~" or "`" not in info else None
        elif mark[0] == opener["mark"][0] and len(mark) >= len(opener["mark"]) and not info.strip():
            inner = _stripped(text, opener.end(), line.start())
            opener = None
            if text[inner[0] : inner[0] + 1] in ("{", "[") and _FENCED_SIGN.search(text, *inner) is not None:
                looked += 1
                diagnostics += [Diag("TC019", (inner[0], inner[0] + 1))] if _holds_calls(text, inner) else []
        if looked == MAX_FENCED:
            break
    return diagnostics


def broken_calls(text: str) -> Diag | None:
    """The finding for a whole text that is call JSON but for a fault of its JSON, so that no call of it was read (TC029); None for any other.

    Ordinary JSON, a definition of a tool, and JSON with prose behind it are none.
    """
    start = _START.match(text)
    inner = _inner(text, start.end(), start["fence"]) if start is not None else None
    if start is None or inner is None or inner[1] - inner[0] > MAX_BLOCK_CHARS:
        return None
    if _FENCED_SIGN.search(text, *inner) is None or _is_json(text[slice(*inner)]):
        return None
    spoken = read_spoken(Layer(text, *inner))
    root, fault = spoken.tree.root, spoken.fault
    if root is None or fault is None or not _is_rest_of_json(spoken.clean[root.end :]):
        return None
    calls = find_calls(root, bare=True)
    if not calls or not all(map(_is_plain_call, calls)) or _said_by_another(root):
        return None
    # What stands in a fence is an example sooner than a call (ruling 53).
    level: Severity | None = "hint" if start["fence"] is not None else None
    return Diag("TC029", fault.span, {"reason": fault.args["reason"]}, level, fault.fix)


def _is_json(text: str) -> bool:
    """Whether a text is JSON beyond doubt. A quick look: of most texts it saves the slow one."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True


def _is_rest_of_json(rest: str) -> bool:
    """Whether behind the first value of a text stand only brackets too many, or further calls, a line each."""
    lines = (line.strip(" \t\r,;") for line in rest.lstrip(" \t\r\n}],;").split("\n"))
    return all(_holds_calls(line, (0, len(line))) for line in lines if line)


def _is_plain_call(call: FoundCall) -> bool:
    """Whether an object of broken JSON is a call and hardly anything else; a definition has more beside its name and parameters."""
    name = call.name.value if call.name is not None else None
    if name is None or not isinstance(name.value, str) or not name.value.strip():
        return False
    args = call.args
    if call.form != "named" or args is None:
        return call.form != "named"
    # A program's settings have a name and arguments too.
    known = args.key in _NAMED_ARGUMENTS and not call.unused
    return known and args.value is not None and args.value.kind in ("object", "string")


def _stripped(text: str, start: int, end: int) -> Span:
    """A part of a text without the blanks around it."""
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def _holds_calls(text: str, inner: Span) -> bool:
    """Whether JSON is a call, or a list of calls, in a form that is hardly anything else."""
    if inner[1] - inner[0] > MAX_BLOCK_CHARS:
        return False
    root = read_spoken(Layer(text, *inner)).root
    calls = find_calls(root, bare=True) if root is not None else None
    return bool(calls) and all(
        call.name is not None
        and (call.form != "named" or (call.args is not None and call.args.key in _NAMED_ARGUMENTS))
        for call in calls or ()
    )


def _takes_none(call: Call | None, options: ReadOptions) -> bool:
    """Whether a call's tool is known to take no argument."""
    tool = options.tools.get(call.tool_id) if call is not None else None
    return tool is not None and not tool.properties


def _missing(diag: Diag) -> Diag:
    """A call without arguments says nothing of what is meant, unless its tool takes none (ruling 53)."""
    return msgspec.structs.replace(diag, severity="error", repair=False) if diag.code == "HM619" else diag


def _members(root: JsonNode | None) -> list[JsonNode]:
    """The objects of an answer that say whose it is and why it ended: itself, its choices, their messages."""
    nodes = [root] if root is not None and root.kind == "object" else []
    if root is not None and root.kind == "array":
        nodes += [item for item in root.items[:MAX_STEPS] if item.kind == "object"]
    for node in list(nodes):
        choices = node.get("choices")
        for choice in choices.items[:MAX_STEPS] if choices is not None and choices.kind == "array" else ():
            message = choice.get("message") if choice.kind == "object" else None
            nodes += [choice] if choice.kind == "object" else []
            nodes += [message] if message is not None and message.kind == "object" else []
    return nodes


def _said_by_another(root: JsonNode | None) -> bool:
    return any((role := member.get("role")) is not None and role.value != "assistant" for member in _members(root))


def _said_cut(root: JsonNode | None) -> str | None:
    """The reason to stop that says that the answer was cut off."""
    for member in _members(root):
        for key in ("finish_reason", "stop_reason", "finishReason", "stopReason"):
            reason = member.get(key)
            if reason is not None and isinstance(reason.value, str) and reason.value.lower() in _CUT:
                return reason.value.lower()
    status = root.get("status") if root is not None and root.kind == "object" else None
    return "incomplete" if status is not None and status.value == "incomplete" else None


def _cut(block: Block, construct: str) -> Diag:
    block.state = "truncated"
    return Diag("TC001", block.open, {"protocol": "JSON", "construct": construct})


def _limits(block: Block, diags: list[Diag]) -> None:
    if block.span[1] - block.span[0] > MAX_BLOCK_CHARS:
        diags.append(Diag("TC021", block.open, {"limit": MAX_BLOCK_CHARS}))
    if len(block.calls) > MAX_STEPS:
        diags.append(Diag("TC022", block.open, {"limit": MAX_STEPS, "what": "calls"}))
        del block.calls[MAX_STEPS:]


def _fenced(block: Block, diags: list[Diag], options: ReadOptions, *, bare: bool) -> None:
    """A fence around the whole document is an example, unless JSON was asked for or fences run (ruling 53)."""
    if options.fenced_calls == "ignore" or (options.fenced_calls == "auto" and not bare):
        _show(block, diags, Diag("TC019", block.open))
        return
    diags.insert(0, Diag("TC008", block.open))


def _show(block: Block, diags: list[Diag], hint: Diag) -> None:
    diags[:] = [hint]
    block.aside = True
    block.context = str(hint.data.get("context", "fence"))
    for call in block.calls:
        call.executable = False


def _document(text: str, block: Block, diags: list[Diag]) -> Document:
    aside = block.aside
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
    for match in _SCAN.finditer(text, start):
        kind = match.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth == 0:
                return "no"
        elif kind == "stop":
            return "unfinished"
    return "unfinished"
