"""TAM (seed 002): a block read, by the strict walk (``tam/dialect.py``) or else by the tolerant one (``pairs/lexer.py``).

Both give the same pairs, from which ``tam/steps.py`` makes the calls. Must not know tools beyond ``ReadOptions``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from tamis.protocols.base import (
    Begun,
    Extras,
    Markers,
    PlainCall,
    PromptTool,
    Shape,
    Source,
    Style,
    WriteOptions,
    Written,
)
from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.model import MAX_NAME_CHARS, MAX_STEPS, Block, Call, Json, ReadOptions, ToolHint, escape_pointer
from tamis.protocols.pairs.lexer import lex
from tamis.protocols.pairs.walk import (
    block_of,
    doubled,
    empty_block,
    in_prose,
    mention,
    note_controls,
    note_marker,
    note_unterminated,
)
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.tam.dialect import CLOSE, DIALECT, HEAD, OPEN, TAIL, lex_canonical
from tamis.protocols.tam.keys import parse_key, squash
from tamis.protocols.tam.steps import make_calls
from tamis.protocols.writing.proof import carries, write_proved
from tamis.protocols.writing.values import Expectations, excerpt, is_list, is_object, json_text

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.convert.blocks import BlockField
    from tamis.protocols.editing import Editing
    from tamis.protocols.grammar.json_rules import SchemaRules
    from tamis.protocols.lossless import Token
    from tamis.protocols.streaming.partial import Progress
    from tamis.protocols.streaming.settled import Verdict


_INSTRUCTIONS = (
    "- Put the call between a line `<|[REQUEST_TOOL]|>` and a line `<|[END_TOOL]|>`. Between them stands one field after the other, each on a new line: `key:»»»value«««`. The key `command` names the tool; every other key is a parameter.",
    "- A value may have several lines and any characters and is never escaped; only `«««` ends it. Blanks at its ends are dropped. Write a list or an object as JSON.",
    "- A text that must keep blanks at its ends, or holds `«««`, is written as a JSON string, with `type_hint_parameter:»»»json«««` before it.",
    "- For several steps in one block, number the keys: `command_1`, `path_1`, `command_2` and so on. Steps run in this order; `on_error_1:»»»continue«««` goes on after a failed step, `retry_1:»»»2«««` repeats one, `common_path` gives a parameter to all.",
)
"""How a model is told to write a call."""


class TamProtocol(Extras):
    """``<|[REQUEST_TOOL]|>`` … ``<|[END_TOOL]|>`` with ``key:»»»value«««``."""

    id = "tam"
    title = "TAM"
    begins = lazy(r"\s*+[#\w*\"'\-]")
    ends = lazy(r"(?i:tools?|end)[^\w<]{0,8}[>＞]")
    modifiers = True
    stops = True
    observed = "line"
    opener = DIALECT.opens
    markers = Markers(
        open=OPEN,
        close=CLOSE,
        values="text",
        stray=r"<{1,2}+\|?\[(?i:END_TOOL)\]\|?>{1,2}+",
        escaped=r"&lt;\|\[REQUEST_TOOL\]\|&gt;",
        bare_sign=HEAD,
        bare=lazy(r"(?m:^)[ \t]*+command(?:_\d{1,4})?[ \t]*+[:：][ \t]*+»»»"),
    )

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block opened at ``opener``; see ``CallProtocol``."""
        text = source.text
        lexed = lex_canonical(source, opener[1], limit)
        if lexed is None:
            twice = doubled(text, opener, limit, DIALECT)
            if twice is not None:
                return twice
            lexed = lex(source, opener[1], limit, DIALECT, complete=options.complete)
            note_controls(lexed.findings, text, opener[1], lexed.end, lexed.pairs)
        if not lexed.pairs:
            return empty_block(source, opener, limit, lexed, DIALECT, options)
        if in_prose(text, opener, lexed, DIALECT):
            return mention("tam", opener)
        note_marker(lexed.findings, text, opener, OPEN, DIALECT)
        if lexed.close is not None and DIALECT.closes.fullmatch(text, *lexed.close):
            note_marker(lexed.findings, text, lexed.close, CLOSE, DIALECT)
        truncated = note_unterminated(lexed, opener, DIALECT, options)
        line = max(
            text.rfind("\n", max(0, opener[0] - 200), opener[0]), text.rfind("\r", max(0, opener[0] - 200), opener[0])
        )
        calls = make_calls(text, lexed, max(line + 1, 0 if opener[0] <= 200 else opener[0]), options)
        return block_of(text, DIALECT, opener, lexed, calls, truncated=truncated, dropped=False)

    def editing(self) -> Editing:
        """How an editor serves a block; see ``Extras``."""
        from tamis.protocols.tam.editing import EDITING

        return EDITING

    def block_tokens(self, text: str, block: Block) -> list[Token]:
        """A block as tokens without gaps; see ``Extras``."""
        from tamis.protocols.pairs.lexer import pair_tokens

        return pair_tokens(text, block, DIALECT)

    def begun(self) -> Begun:
        """The beginnings of its markers; see ``Extras``."""
        from tamis.protocols.streaming.settled import GAP, begun, word_begun

        opener = begun(
            "[<＜]",
            "[<＜]?+",
            rf"[|｜\[［【 \t{IN_LAYOUT}]*+",
            *word_begun("request"),
            GAP,
            *word_begun("tool"),
            rf"[\]］】|｜ \t{IN_LAYOUT}]*+",
            "[>＞]",
        )
        return Begun(opener)

    def settled(self, source: Source, opener: Span, block: Block, limit: int) -> Verdict:
        """What is certain of a block; see ``Extras``."""
        from tamis.protocols.streaming.settled import tam_settled

        return tam_settled(source, opener, block, limit)

    def progress(self, tools: dict[str, ToolHint]) -> Progress:
        """A new follower of a block; see ``Extras``."""
        from tamis.protocols.tam.progress import TamProgress

        return TamProgress(tools)

    def instructions(self, shape: Shape) -> tuple[str, ...]:
        """How a model is told to write a call; see ``Extras``."""
        del shape
        return _INSTRUCTIONS

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a rule for a call; see ``Extras``."""
        from tamis.protocols.grammar.text_calls import TamCall, call_of

        return call_of(TamCall, self, tool, schemas, shape)

    def grammar_answer(self, shape: Shape) -> str:
        """The calls of an answer; see ``Extras``."""
        del shape
        return 'call ("\\n" call)*'

    def block_fields(self, text: str, block: Block) -> list[BlockField]:
        """The comments and shared parameters of a block, in order; see ``Extras``."""
        from tamis.protocols.convert.blocks import BlockField

        own = text[block.span[0] : block.span[1]]
        named = {param.name for call in block.calls for param in call.params if param.origin == "pair"}
        fields: list[BlockField] = []
        for pair in lex(Source(own), block.open[1] - block.span[0], len(own), DIALECT, complete=True).pairs:
            key = parse_key(pair.raw).normal
            value = own[pair.value[0] : pair.value[1]].strip()
            if key == "comment" and key not in named:
                fields.append(BlockField("comment", value))
            elif key.startswith("common_") and key not in named:
                fields.append(BlockField("common", value))
        return fields

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text; see ``CallProtocol``."""
        from tamis.protocols.engine import parse_tool_requests

        return parse_tool_requests(self.id, text, options)

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """The observations of results; see ``CallProtocol``."""
        from tamis.protocols.engine import format_tool_results

        return format_tool_results("tam", results)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """The calls in canonical spelling; see ``CallProtocol``."""

        return write_calls(calls, options)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The definitions of tools for a prompt; see ``CallProtocol``."""
        from tamis.protocols.prompt.calls import unwritable
        from tamis.protocols.prompt.guard import code
        from tamis.protocols.prompt.listing import listing

        return listing(tools, style, tool=code, parameter=code, unwritable=lambda tool: unwritable(self.id, tool))


TAM: Final = TamProtocol()


# Writing TAM blocks: numbered steps where there are several calls (seed 002 §3 to §5, rulings 20 to 24). A value stands between »»» and ««« as it is.
# One that the delimiters or trimming would change, and everything whose type no schema gives back, is JSON text with ``type_hint: json``.


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_KEY = re.compile(r"[^\W_]+(?:_[^\W_]+)*")
_NUMBER = re.compile(r"\d+\Z")
_BLOCK_WORDS = frozenset(("request_id", "comment"))
_WORDS = frozenset(("command", "on_error", "retry"))
_PREFIXES = ("common_", "type_hint_", "uri_")


class _Step(msgspec.Struct, frozen=True):
    number: int
    call: PlainCall


def write_calls(calls: Sequence[PlainCall], options: WriteOptions) -> Written:
    """The calls as the steps of one block; see ``CallProtocol``.

    Steps keep their numbers where they are given and go on counting where they are not. A new block begins where a number is
    not higher than the one before, and at another ``request_id``.
    """
    return write_proved(_Tam(options), calls, options)


class _Tam:
    protocol = "tam"
    title = "TAM"

    def __init__(self, options: WriteOptions) -> None:
        self.expectations = Expectations(options.tools, "text")
        self._declared = {
            name: {squash(declared): declared for declared in reversed(list(hint.properties))}
            for name, hint in options.tools.items()
        }

    def faults(self, call: PlainCall) -> list[tuple[str, str, str]]:
        """Keys and values that TAM cannot hold, and what it has no place for."""
        problems = carries(call, "meta")
        if (
            call.tool_id != call.tool_id.strip()
            or _unsafe(call.tool_id)
            or "\n" in call.tool_id
            or "\r" in call.tool_id
        ):
            problems.append(
                ("/toolId", f"the tool id {excerpt(call.tool_id)}", "it holds blanks at an end, or delimiters")
            )
        if call.step is not None and not 0 <= call.step < 10**9:
            problems.append(("/step", f"step {call.step}", "a step number has at most nine digits"))
        if call.retry is not None and not 0 <= call.retry < 10**9:
            problems.append(("/retry", f"retry {call.retry}", "it is a whole number from 0 to 999999999"))
        if call.request_id is not None and (not call.request_id or _bare_unsafe(call.request_id)):
            problems.append(("/requestId", "the request id", "it is empty, or holds blanks at an end or delimiters"))
        names = [*call.args, *call.uris, *call.type_hints]
        problems += [
            (f"/args/{escape_pointer(name)}", f"parameter {excerpt(name)}", why)
            for name in dict.fromkeys(names)
            if (why := self._no_key(call.tool_id, name)) is not None
        ]
        for name, value in call.uris.items():
            if _bare_unsafe(value) or name in call.args:
                why = (
                    "the parameter has a value too" if name in call.args else "it holds blanks at an end, or delimiters"
                )
                problems.append((f"/uris/{escape_pointer(name)}", f"the URI of '{name}'", why))
        for name, hint in call.type_hints.items():
            path = f"/typeHints/{escape_pointer(name)}"
            if hint not in ("text", "json", "base64"):
                problems.append((path, f"the type hint '{hint}' of '{name}'", "the hints are text, json and base64"))
            elif name not in call.args and name not in call.uris:
                problems.append((path, f"the type hint of '{name}'", "there is no such parameter"))
            elif hint != "json" and name in call.args and _bare_unsafe(call.args[name]):
                why = f"TAM would trim or cut it, and the hint {hint} leaves no other way to write it"
                problems.append((f"/args/{escape_pointer(name)}", f"the value of '{name}'", why))
            elif hint == "json" and isinstance(call.args.get(name), str) and _bare_unsafe(call.args[name]):
                why = "TAM would trim or cut the JSON text"
                problems.append((f"/args/{escape_pointer(name)}", f"the value of '{name}'", why))
        return problems

    def _no_key(self, tool_id: str, name: str) -> str | None:
        if len(name) > MAX_NAME_CHARS - 12:
            return f"a key has at most {MAX_NAME_CHARS} characters with its number"
        if squash(name) == "":
            return "it has no letter or digit"
        return None

    def _key(self, tool_id: str, name: str) -> str:
        """The key to write for a name: the name, or its normalised form where the schema gives the spelling back."""
        key = name
        if (_KEY.fullmatch(name) is None or name != name.lower()) and self._declares(tool_id, name):
            key = parse_key(name).normal
        return f"common_{key}" if self._reserved(tool_id, name) else key

    def _declares(self, tool_id: str, name: str) -> bool:
        return self._declared.get(tool_id, {}).get(squash(name)) == name

    def _reserved(self, tool_id: str, name: str) -> bool:
        """Whether a name is a word of TAM itself. As a shared parameter of a block with one step it is a plain name again."""
        key = parse_key(name)
        if key.base in _WORDS:
            return key.number is None or key.base == "command"
        return key.normal.startswith(_PREFIXES) and not self._declares(tool_id, name)

    def _alone(self, call: PlainCall) -> bool:
        return any(self._reserved(call.tool_id, name) for name in call.args)

    def text(self, calls: Sequence[PlainCall]) -> str:
        """The blocks, one under the other; most often one."""
        return "\n".join(self._block(steps) for steps in self._blocks(calls))

    def _blocks(self, calls: Sequence[PlainCall]) -> list[list[_Step]]:
        """The calls in blocks: numbers rise within one, and what the whole block says is the same for all."""
        blocks: list[list[_Step]] = []
        alone = False
        for call in calls:
            block = blocks[-1] if blocks else []
            last = block[-1].number if block else 0
            number = last + 1 if call.step is None else call.step
            before, alone = alone, self._alone(call)
            same = bool(block) and block[0].call.request_id == call.request_id
            if not same or number <= last or len(block) >= MAX_STEPS or alone or before:
                blocks.append([_Step(1 if call.step is None else call.step, call)])
            else:
                block.append(_Step(number, call))
        return blocks

    def _block(self, steps: list[_Step]) -> str:
        numbered = len(steps) > 1 or steps[0].number != 1 or self._needs_number(steps[0].call)
        lines = [OPEN]
        request = steps[0].call.request_id
        if request is not None:
            lines.append(f"request_id:{HEAD}{request}{TAIL}")
        for step in steps:
            lines += self._step(step.call, f"_{step.number}" if numbered else "")
        return "\n".join([*lines, CLOSE])

    def _needs_number(self, call: PlainCall) -> bool:
        """Whether a name would be taken for a number's or the whole block's: the number of the step makes it plain."""
        names = [*call.args, *call.uris]
        return any(_NUMBER.search(name) or name in _BLOCK_WORDS for name in names)

    def _step(self, call: PlainCall, suffix: str) -> list[str]:
        lines = [f"command{suffix}:{HEAD}{call.tool_id}{TAIL}"]
        if call.on_error is not None:
            lines.append(f"on_error{suffix}:{HEAD}{call.on_error}{TAIL}")
        if call.retry is not None:
            lines.append(f"retry{suffix}:{HEAD}{call.retry}{TAIL}")
        # Shared parameters are read behind the step's own.
        ordered = sorted(call.args.items(), key=lambda pair: self._reserved(call.tool_id, pair[0]))
        for name, value in ordered:
            key = self._key(call.tool_id, name)
            text, hint = self._value(call, name, value)
            shared = self._reserved(call.tool_id, name)
            if hint is not None:
                lines.append(f"type_hint_{key.removeprefix('common_') if shared else key}{suffix}:{HEAD}{hint}{TAIL}")
            lines.append(f"{key}{'' if shared else suffix}:{HEAD}{text}{TAIL}")
        for name, uri in call.uris.items():
            key = self._key(call.tool_id, name)
            if (hint := call.type_hints.get(name)) is not None:
                lines.append(f"type_hint_{key}{suffix}:{HEAD}{hint}{TAIL}")
            lines.append(f"uri_{key}{suffix}:{HEAD}{uri}{TAIL}")
        return lines

    def _value(self, call: PlainCall, name: str, value: Json) -> tuple[str, str | None]:
        """What stands between the delimiters, and the hint that it needs."""
        own = call.type_hints.get(name)
        if own is not None:
            return (value if isinstance(value, str) else _json(value)), own
        if isinstance(value, str):
            return (_json(value), "json") if _bare_unsafe(value) else (value, None)
        expectation = self.expectations.of(call.tool_id)
        plain = json_text(value)
        if isinstance(value, float) and value.is_integer() and not expectation.clean(name, plain, value):
            whole = str(int(value))
            plain = whole if expectation.clean(name, whole, value) else plain
        if is_list(value) or is_object(value):
            plain = _json(value) if _bare_unsafe(plain) else plain
        if expectation.verdict(name, plain, value) == "exact":
            return plain, None
        return plain, "json"


def _json(value: Json) -> str:
    """JSON text without TAM's delimiters and markers."""
    text = json_text(value, "«»")
    return json_text(value, "«»<＜") if _marked(text) else text


def _marked(text: str) -> bool:
    return "[" in text and (DIALECT.closes.search(text) is not None or DIALECT.opens.search(text) is not None)


def _unsafe(text: str) -> bool:
    """Whether a text holds what only a JSON escape can carry between the delimiters."""
    return (
        "«««" in text
        or "»»»" in text
        or text.startswith("»")
        or text.endswith("«")
        or _CONTROL.search(text) is not None
        or _marked(text)
    )


def _bare_unsafe(value: Json) -> bool:
    """The same for a whole value, whose blanks at the ends TAM trims (ruling 21)."""
    return isinstance(value, str) and (value != value.strip() or _unsafe(value))
