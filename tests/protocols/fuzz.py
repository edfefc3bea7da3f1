"""Fuzzing the readers: mutated texts, and what must hold for every one of them.

``python -m tests.protocols.fuzz --seconds 600 --seed N`` runs alone, prints the rate, and every kind of failure once, made as
small as it gets. A case is made from the seed and its number only, so each can be run again by itself.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tamis.protocols.action import protocol as action
from tamis.protocols.action.decode import as_cdata, escape
from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Block, Document, Edit, ReadOptions, ToolHint
from tamis.protocols.plugins import BUILT_IN, known_protocols
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits, safe_edits
from tamis.protocols.wire import parse_result
from tamis.server.wire.jsonrpc import decode
from tests.growth import processor_seconds

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpora" / "calls"

TOKENS = [
    "<ACTION>", "</ACTION>", "<action>", "<ACTION", "</ACTION", "＜ACTION＞", "&lt;ACTION&gt;", "<ACTION/>",
    "<t>", "</t>", "<a>", "</a>", "<a/>", "</", "<", ">", "<item>", "</item>", "<T x='1'>", "<a ",
    "<tool_id>", "</tool_id>", "<inputs>", "</inputs>", '<input name="q">', "</input>", "<input", 'name="', "<invoke name='t'>",
    "<![CDATA[", "]]>", "]]", "<![cdata[", "<!--", "-->", "<?x", "?>", "<!DOCTYPE A [<!ENTITY a 'b'>]>", "&a;", "&lt;", "&amp;", "&#0;", "&#x41;", "&",
    "<|[REQUEST_TOOL]|>", "<|[END_TOOL]|>", "<|[REQUEST_TOOL", "command:", "command_1:", "command_2:", "»»»", "«««", ">>>", "<<<", "»",
    "type_hint_q: »»»json«««", "uri_q:", "common_q:", "on_error_1:", "retry_1:", "request_id:", "@{x}", "# note\n", "q_1: »»»v«««",
    "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>", "<<[TOOL_REQUEST]>>", "tool_name:", "「始」", "「末」", "「始ESCAPE」", "「末ESCAPE」", "{始}", "「始", ",",
    "<think>", "</think>", "<thinking>", "```", "```xml\n", "\n```\n", "`", "~~~", "\\",
    "<tool_call>", "</tool_call>", '{"name": "t", "arguments": {"q": 1}}', "<function_calls>", "{", "}", "[", '"', '{"a":[1,],}',
    "\n", "\r\n", "\r", " ", "\t", "    ", "：", "=", "-", "*", "_", "中文", "🎉", "e\u0301",
    "\x00", "\x1b", "\x0b", "\x85", "\u2028", "\u200b", "\ufeff", "\u202e", "\u2066", "\u00ad", "\ufffe", "\ud800", "\udfff", "\U0001fffe", "а",
]  # fmt: skip
WORDS = ["a", "b", "path", "content", "file_path", "q", "command", "item", "x1", "playerId", "说", "k-1"]
TOOLS = ["read_file", "core:run", "T", "Kb.Query", "a_b", "说"]


class RuleError(AssertionError):
    """A property that does not hold; ``kind`` groups failures of one cause."""

    def __init__(self, kind: str, detail: object = "") -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


class Case(msgspec.Struct, frozen=True):
    """A text with the way in which it is read."""

    text: str
    protocol: str
    options: ReadOptions


def corpus_texts() -> list[str]:
    """The texts of the call sample; none where it is not there."""
    texts: list[str] = []
    for path in sorted(CORPUS.glob("*.jsonl")) if CORPUS.is_dir() else []:
        for line in path.read_text(encoding="utf-8").splitlines():
            text = json.loads(line).get("text")
            if isinstance(text, str) and len(text) < 20_000:
                texts.append(text)
    return texts


def cases(seed: object, texts: list[str]) -> Iterator[Case]:
    """Endless cases, the same for the same seed."""
    for number in itertools.count():
        yield make_case(random.Random(f"{seed}:{number}"), texts)


def make_case(rng: random.Random, texts: list[str]) -> Case:
    """One case: a corpus text or a generated one, mostly broken."""
    text = rng.choice(texts) if texts and rng.random() < 0.4 else _generated(rng)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 8))):
        text = rng.choice(_MUTATIONS)(rng, text)
    others = [name for name in known_protocols() if name not in BUILT_IN]
    options = ReadOptions(
        complete=rng.random() < 0.6,
        reasoning_calls="run" if rng.random() < 0.1 else "ignore",
        fenced_calls=rng.choice(("auto", "auto", "run", "ignore")),
        allow_multiple_blocks=rng.random() < 0.3,
        tools=_hints(rng) if rng.random() < 0.3 else {},
        also=tuple(others) if rng.random() < 0.3 else (),
    )
    return Case(text[:40_000], rng.choice(("auto", "auto", "auto", *known_protocols())), options)


def _hints(rng: random.Random) -> dict[str, ToolHint]:
    schemas: list[Any] = [{"type": "string"}, {"type": "array"}, {"type": "object"}, {"type": "integer"}, {}]
    found: dict[str, ToolHint] = {}
    for tool in rng.sample(TOOLS, 3):
        properties = {word: rng.choice(schemas) for word in rng.sample(WORDS, 4)}
        found[tool] = ToolHint(tool, {"type": "object", "properties": properties})
    return found


def _value(rng: random.Random) -> str:
    parts = [rng.choice(TOKENS) if rng.random() < 0.3 else rng.choice(WORDS) + " " for _ in range(rng.randrange(6))]
    return "".join(parts)


def _action(rng: random.Random, names: list[str]) -> str:
    gap = rng.choice(("", "\n", "\n  "))
    tag = rng.random() < 0.6
    inner = ""
    for name in names:
        value = _value(rng)
        how = rng.random()
        body = as_cdata(value) if how < 0.4 else escape(value) if how < 0.8 else f"<item>{escape(value)}</item>" * 2
        inner += f"{gap}<{name}>{body}</{name}>" if tag else f'{gap}<input name="{name}">{body}</input>'
    tool = rng.choice(TOOLS)
    if tag:
        return f"<ACTION>{gap}<{tool}>{inner}{gap}</{tool}>{gap}</ACTION>"
    return f"<ACTION>{gap}<tool_id>{tool}</tool_id>{gap}<inputs>{inner}{gap}</inputs>{gap}</ACTION>"


def _tam(rng: random.Random, names: list[str]) -> str:
    steps = rng.choice((0, 0, 1, 2, 3))
    lines = [f"command:»»»{rng.choice(TOOLS)}«««"] if not steps else []
    lines += [f"{name}:»»»{_value(rng)}«««" for name in names if not steps]
    for step in range(1, steps + 1):
        lines.append(f"command_{step}:»»»{rng.choice(TOOLS)}«««")
        lines += [f"{name}_{step}:»»»{_value(rng)}«««" for name in names]
    return "\n".join(("<|[REQUEST_TOOL]|>", *lines, "<|[END_TOOL]|>"))


def _vcp(rng: random.Random, names: list[str]) -> str:
    fields = [f"tool_name:「始」{rng.choice(TOOLS)}「末」", *(f"{name}:「始」{_value(rng)}「末」" for name in names)]
    return "\n".join(("<<<[TOOL_REQUEST]>>>", rng.choice((",\n", "\n", ", ")).join(fields), "<<<[END_TOOL_REQUEST]>>>"))


def _json_call(rng: random.Random, names: list[str]) -> str:
    call = {"name": rng.choice(TOOLS), "arguments": {name: _value(rng) for name in names}}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=rng.random() < 0.5)}\n</tool_call>"


def _generated(rng: random.Random) -> str:
    parts: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        names = rng.sample(WORDS, rng.randrange(5))
        parts += [rng.choice(("", "Prose.\n", "<think>plan</think>\n", "好的🎉\n", "a `b` c\n"))]
        block = rng.choice((_action, _action, _tam, _vcp, _json_call))(rng, names)
        parts += [f"```\n{block}\n```" if rng.random() < 0.1 else block, rng.choice(("", "\n", " after."))]
    return "".join(parts)


def good_block(rng: random.Random) -> str:
    """A block that any protocol's canonical form allows, with text before it and values of plain words."""
    names = rng.sample([word for word in WORDS if word.isascii() and word.isalpha() and word not in _TAKEN], 2)
    values = [" ".join(rng.choice(WORDS) for _ in range(3)) for _ in names]
    tool = "read_file"
    shape = rng.randrange(4)
    if shape == 0:
        inner = "".join(f"\n<{name}>{as_cdata(value)}</{name}>" for name, value in zip(names, values, strict=True))
        block = f"<ACTION>\n<{tool}>{inner}\n</{tool}>\n</ACTION>"
    elif shape == 1:
        inner = "".join(f'\n<input name="{name}">{value}</input>' for name, value in zip(names, values, strict=True))
        block = f"<ACTION>\n<tool_id>{tool}</tool_id>\n<inputs>{inner}\n</inputs>\n</ACTION>"
    elif shape == 2:
        inner = "".join(f"{name}:»»»{value}«««\n" for name, value in zip(names, values, strict=True))
        block = f"<|[REQUEST_TOOL]|>\ncommand:»»»{tool}«««\n{inner}<|[END_TOOL]|>"
    else:
        inner = "".join(f",\n{name}:「始」{value}「末」" for name, value in zip(names, values, strict=True))
        block = f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」{tool}「末」{inner}\n<<<[END_TOOL_REQUEST]>>>"
    return "好的🎉\n" * rng.randrange(2) + block


_TAKEN = ("command", "item")


def _flip(rng: random.Random, text: str) -> str:
    """Changes a byte of the text's UTF-8, as a bad transport does."""
    data = bytearray(text.encode("utf-8", "surrogatepass") or b" ")
    for _ in range(rng.choice((1, 1, 4))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data.decode("utf-8", "replace")


def _insert(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(TOKENS) + text[at:]


def _insert_at_mark(rng: random.Random, text: str) -> str:
    """Puts a token beside a character that means something, where it hurts most."""
    places = [i for i, char in enumerate(text) if char in "<>/!:[]「」»«&`\n"]
    at = rng.choice(places) + rng.randrange(2) if places else 0
    return text[:at] + rng.choice(TOKENS) + text[at:]


def _remove(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + text[at + rng.choice((1, 1, 2, 5, 20)) :]


def _repeat(rng: random.Random, text: str) -> str:
    start = rng.randint(0, len(text))
    end = min(len(text), start + rng.choice((1, 5, 30, 200)))
    return text[:start] + text[start:end] * rng.choice((2, 2, 3, 70)) + text[end:]


def _swap(rng: random.Random, text: str) -> str:
    a, b, c = sorted(rng.randint(0, len(text)) for _ in range(3))
    return text[:a] + text[b:c] + text[a:b] + text[c:]


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randint(0, len(text))]


def _splice(rng: random.Random, text: str) -> str:
    other = _generated(rng)
    at, start = rng.randint(0, len(text)), rng.randint(0, len(other))
    return text[:at] + other[start:]


def _random_run(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    run = "".join(chr(rng.choice((rng.randrange(0x110000), rng.randrange(0x3100)))) for _ in range(rng.randrange(1, 6)))
    return text[:at] + run + text[at:]


def _case(rng: random.Random, text: str) -> str:
    start = rng.randint(0, len(text))
    return text[:start] + text[start : start + 12].swapcase() + text[start + 12 :]


def _rename(rng: random.Random, text: str) -> str:
    return text.replace(rng.choice(TOKENS), rng.choice(TOKENS), 1)


_MUTATIONS: list[Callable[[random.Random, str], str]] = [
    _flip, _insert, _insert, _insert_at_mark, _insert_at_mark, _remove, _remove, _repeat, _swap, _cut, _splice,
    _random_run, _case, _rename,
]  # fmt: skip


def check(case: Case) -> None:
    """Raises ``RuleError`` when anything that must hold for every text does not hold for this one."""
    text, options = case.text, case.options
    started = time.process_time()
    document = read(text, case.protocol, options)
    bound = max(1.0, 4e-6 * len(text))
    if time.process_time() - started > bound:
        seconds = processor_seconds(lambda: read(text, case.protocol, options))
        if seconds > bound:
            raise RuleError("slow", f"{seconds:.2f} s for {len(text)} characters")
    _check_places(document)
    for block in document.blocks:
        _check_block(block, document, options)
    _check_fixes(document)
    if read(text, case.protocol, options) != document:
        raise RuleError("not the same twice")
    if _tolerant(case) != document:
        raise RuleError("the canonical path reads otherwise than the tolerant one")
    _check_wire(case)
    cut = random.Random(text.encode("utf-8", "surrogatepass")).randint(0, len(text))
    part = read(text[:cut], case.protocol, msgspec.structs.replace(options, complete=False))
    _check_places(part)
    for block in part.blocks:
        _check_block(block, part, msgspec.structs.replace(options, complete=False))


def read(text: str, protocol: str, options: ReadOptions) -> Document:
    """``read_text``; what it raises is a failure."""
    try:
        return read_text(text, protocol, options)
    except Exception as error:
        raise RuleError(f"reading raised {type(error).__name__}", _where(error)) from error


def _where(error: BaseException) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{error} in {Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at is not None else str(error)


def _tolerant(case: Case) -> Document:
    before = action.read_canonical
    try:
        action.read_canonical = lambda source, opener, limit, options: None  # type: ignore[assignment]
        return read(case.text, case.protocol, case.options)
    finally:
        action.read_canonical = before


def _inside(kind: str, span: tuple[int, int], low: int, high: int) -> None:
    if not low <= span[0] <= span[1] <= high:
        raise RuleError(f"{kind} outside its place", f"{span} not in {(low, high)}")


def _check_places(document: Document) -> None:
    size = len(document.text)
    at = 0
    for block in document.blocks:
        _inside("block", block.span, at, size)
        _inside("opening marker", block.open, *block.span)
        if block.close is not None:
            _inside("closing marker", block.close, *block.span)
        at = block.span[1]
    _inside("response", document.response_span, 0, size)
    _inside("trailing text", document.trailing_span, document.response_span[1], size)
    if document.response_span[0] != 0 or document.trailing_span[1] != size:
        raise RuleError("text lost at an end")
    last = (0, 0)
    for diag in document.diagnostics:
        _inside(f"finding {diag.code}", diag.span, 0, size)
        if diag.span < last:
            raise RuleError("findings out of order", diag.code)
        last = diag.span
        if diag.code not in CATALOGUE or not message(diag):
            raise RuleError("finding without a sentence", diag.code)
    for comment in document.comments:
        _inside("comment", comment.span, 0, size)


def _check_block(block: Block, document: Document, options: ReadOptions) -> None:
    text, size = document.text, len(document.text)
    failed = any(severity(diag) == "error" for diag in block.diagnostics)
    open_end = block.close is None and block.span[1] >= size
    for call in block.calls:
        _inside("call", call.span, *block.span)
        _inside("tool id", call.tool_span, *block.span)
        if call.executable and (not call.complete or block.state != "complete" or failed or not call.tool_id):
            raise RuleError("a doubtful call may run", f"{block.state} {[d.code for d in block.diagnostics]}")
        if call.executable and open_end and not options.complete:
            raise RuleError("a cut-off call may run", call.tool_id)
        for param in call.params:
            _inside("parameter", param.span, *block.span)
            _inside("name", param.name_span, *block.span)
            for _, value in param.value.walk():
                _inside("value", value.span, *block.span)
                at = value.span[0]
                for piece in value.pieces:
                    _inside("piece", (piece.start, piece.end), at, value.span[1])
                    at = piece.end
        call.args(text)


def _check_fixes(document: Document) -> None:
    for diag in document.diagnostics:
        if diag.fix is not None:
            _check_edits(f"fix of {diag.code}", diag.fix.edits, len(document.text))
    _check_edits("sum of the safe fixes", safe_edits(document.diagnostics), len(document.text))


def _check_edits(kind: str, edits: Iterable[Edit], size: int) -> None:
    at = 0
    for edit in edits:
        if not at <= edit.start <= edit.end <= size:
            raise RuleError(f"{kind}: edits not sorted and disjoint", edits)  # P6
        at = edit.end


def _check_wire(case: Case) -> None:
    """What a client gets: the text comes as JSON, where a lone surrogate can be written but not sent on."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"text": case.text}}).encode()
    received, _ = decode(body)
    text = received["params"]["text"] if isinstance(received, dict) else ""
    try:
        msgspec.json.encode(parse_result(read(text, case.protocol, case.options), "utf-16"))
    except RuleError:
        raise
    except Exception as error:
        raise RuleError(f"the result cannot be sent: {type(error).__name__}", _where(error)) from error


def check_repair(case: Case) -> None:
    """P4: the safe fixes of a text leave the calls that run as they are, and make no other one run."""
    document = read(case.text, case.protocol, case.options)
    edits = safe_edits(document.diagnostics)
    if not edits:
        return
    repaired = apply_edits(case.text, edits)
    calls = [(call.tool_id, call.args(case.text)) for call in document.calls if call.executable]
    again = read(repaired, case.protocol, case.options)
    if [(call.tool_id, call.args(repaired)) for call in again.calls if call.executable] != calls:
        codes = sorted({diag.code for diag in document.diagnostics if diag.fix is not None})
        raise RuleError(f"repairs change the calls ({' '.join(codes)})", repaired)


Check = Callable[[Case], None]


def failure_of(case: Case, rule: Check = check) -> str:
    """The kind of failure of a case, or an empty text."""
    try:
        rule(case)
    except RuleError as failure:
        return failure.kind
    return ""


def minimised(case: Case, kind: str, rule: Check = check, seconds: float = 10) -> Case:
    """A shorter text that fails in the same way: pieces are left out as long as it still does."""
    end = time.monotonic() + seconds
    text = case.text
    size = max(1, len(text) // 2)
    while time.monotonic() < end:
        at = 0
        shorter = False
        while at < len(text) and time.monotonic() < end:
            candidate = text[:at] + text[at + size :]
            if failure_of(msgspec.structs.replace(case, text=candidate), rule) == kind:
                text = candidate
                shorter = True
            else:
                at += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return msgspec.structs.replace(case, text=text)


def run(
    seed: object, rule: Check = check, *, seconds: float = 0, count: int = 0, most: int = 10
) -> tuple[int, dict[str, Case]]:
    """Checks cases until the time or the count is used up; the number of cases, and one small case per kind of failure."""
    started = time.monotonic()
    found: dict[str, Case] = {}
    texts = corpus_texts()
    done = 0
    for case in cases(seed, texts):
        if (seconds and time.monotonic() - started >= seconds) or (count and done >= count) or len(found) >= most:
            break
        done += 1
        kind = failure_of(case, rule)
        if kind and kind not in found:
            found[kind] = minimised(case, kind, rule)
    return done, found


def _source_of(case: Case) -> str:
    options = {
        name: value
        for name in case.options.__struct_fields__
        if (value := getattr(case.options, name)) != getattr(ReadOptions(), name)
    }
    return f"{case.protocol} {options}\n    {case.text!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default=str(random.randrange(10**9)))
    parser.add_argument("--repairs", action="store_true", help="look at safe fixes instead: do they keep the calls?")
    wanted = parser.parse_args()
    started = time.monotonic()
    rule = check_repair if wanted.repairs else check
    done, found = run(wanted.seed, rule, seconds=wanted.seconds, most=30 if wanted.repairs else 10)
    spent = time.monotonic() - started
    print(
        f"seed {wanted.seed}: {done} cases in {spent:.0f} s ({done / spent:.0f} a second), {len(found)} kinds of failure"
    )
    for kind, case in found.items():
        print(f"- {kind}\n    {_source_of(case)}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
