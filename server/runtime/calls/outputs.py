"""What a call gave that was no script's standard output is JSON, of a bounded size, and fits the declared schema (D64); and in what a tool
says beside its result no line passes for one of Tamis.

Must not know where it came from.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import msgspec

from tamis.protocols.check import to_problem, told
from tamis.protocols.contract import ErrorType
from tamis.protocols.invisible import UNSHOWN
from tamis.protocols.jsontext.tree import not_finite, number_name
from tamis.protocols.patterns import lazy
from tamis.protocols.schema.plan import Plan
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import Invocation, failure

MAX_TOLD = 8


def failed(error_type: ErrorType, message: str, **details: Any) -> Stopped:
    """The end of a call that was begun and did not succeed."""
    return Stopped("error", failure(error_type, message, **details), started=True)


class NotJsonError(ValueError):
    """A value that JSON cannot hold; the message says what and, as far as it is known, where."""


def as_json(value: Any) -> tuple[Any, int]:
    """A value as JSON reads it again (what is no plain data but has a form in JSON in that form), and its bytes. Raises ``NotJsonError``."""
    try:
        data = msgspec.json.encode(value)
        if msgspec.json.decode(data) == value:
            return value, len(data)
        # numbers that JSON does not have are written as null
        plain = msgspec.to_builtins(value)
        spot = not_finite(plain)
        if spot is None:
            return json.loads(data), len(data)
    except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError, RecursionError) as error:
        raise NotJsonError(str(error)) from None
    place, number = spot
    raise NotJsonError(f"{number_name(number)}{f' at {place}' if place else ''}; give null or a text instead")


def take_output(call: Invocation, output: Any, whose: str, own_plan: Plan | None = None) -> None:
    """Makes ``output`` the call's success. Raises ``Stopped`` for one that cannot be; ``whose`` names its giver in the message.

    ``own_plan`` is the schema of the giver, for tools whose manifest declares none.
    """
    output = _bounded(call, output, whose)
    plan = call.tool.output_plan or own_plan
    if plan is not None and not plan.is_valid(output):
        problems = [to_problem(finding, of="output") for finding in plan.check(output, "typed").errors]
        text = f"the result of {whose} does not fit the declared output schema: {told(problems[:MAX_TOLD], 'output')}"
        raise Stopped("error", failure("OutputValidationError", text, errors=problems), started=True)
    call.result.status, call.result.output = "success", output


def checked_parts(call: Invocation, parts: list[Any], whose: str) -> list[dict[str, Any]]:
    """Parts of a result for the host, as JSON has them. Raises ``Stopped`` as ``take_output`` does."""
    return cast("list[dict[str, Any]]", _bounded(call, parts, whose))


def _bounded(call: Invocation, output: Any, whose: str) -> Any:
    most = call.context.settings.sandbox.stdout_bytes
    limit = min(most, call.tool.manifest.execution.limits.get("stdoutBytes", most))
    try:
        output, size = as_json(output)
    except NotJsonError as error:
        text = f"the result of {whose} is no JSON: {error}"
        raise Stopped("error", failure("OutputFormatError", text), started=True) from None
    if size > limit:
        text = f"the result has {size} bytes, more than the {limit} of sandbox.stdoutBytes; give less, or a file's name"
        raise Stopped("error", failure("ResourceError", text, limit="stdout"), started=True)
    return output


# Whose words a line of a log are. Tamis's own begin with ``[tamis]``; a tool's that look as if they did are marked, before anything reads them.


MARK = "(the tool wrote) "
"""Stands before what a tool wrote where it looks like the beginning of a line of Tamis."""
_LOOK = 64
"""So many characters decide whether it does: more of them, without an end to it, count as if it did."""
_OWN = ("[tamis", "tamis:")
_STREAMS = ("stderr:", "stdout:")
"""How a line of a log begins, before whose words it has."""
# one line end and all else that shows nothing at the beginning of a line: blanks, what no terminal shows, marks above nothing
_NOTHING = lazy(rf"[\s{UNSHOWN}\u2800\u0300-\u036f\u20d0-\u20ff\ufe20-\ufe2f]*")
_DROPPED = lazy(rf"[\s{UNSHOWN}\u2800]")
_LINE_END = lazy("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("【〔〖〘〚⟦⟨❲⁅〈《「『(<{", "["),
        **dict.fromkeys("∶꞉︰ː։׃", ":"),
        **dict.fromkeys("тτᴛ", "t"),
        **dict.fromkeys("аαɑᴀ", "a"),
        **dict.fromkeys("мᴍμ", "m"),
        **dict.fromkeys("іıι1lɩɪ|", "i"),
        **dict.fromkeys("ѕꜱ5ƽ", "s"),
    }
)


_OWN_LINE = "stderr: [tamis] "


def own_line(text: str) -> str:
    """A line of a call's logs in which Tamis itself says something."""
    return _OWN_LINE + text


def is_own_line(line: str) -> bool:
    """Whether Tamis itself speaks in a line of a call's logs."""
    return line.startswith(_OWN_LINE)


class ToldApart:
    """A tool's streams while they arrive, told piece by piece, with a mark where a line looks like one of Tamis.

    What may still become the beginning of such a line is held back, at most ``_LOOK`` characters.
    """

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._held: dict[str, str] = {}
        self._within: set[str] = set()
        """The streams whose next piece goes on with a line that was judged."""

    def piece(self, stream: str, text: str) -> None:
        """More of a stream."""
        text, at = self._held.pop(stream, "") + text, 0
        shown: list[str] = []
        while at < len(text):
            mark = ""
            if stream in self._within:
                end = _LINE_END.search(text, at)
                stop = len(text) if end is None else end.end()
                if end is not None:
                    self._within.discard(stream)
            else:
                nothing = _NOTHING.match(text, at)
                stop = at if nothing is None else nothing.end()
                looks = _looks_like_tamis(text[stop : stop + _LOOK])
                if looks is None:
                    self._held[stream] = text[stop:]
                    text = text[:stop]
                else:
                    self._within.add(stream)
                    mark = MARK if looks else ""
            shown.append(text[at:stop] + mark)
            at = stop
        if told := "".join(shown):
            self._tell(stream, told)

    def end(self) -> None:
        """The streams have ended: what was held back is told."""
        for stream, held in self._held.items():
            if held:
                self._tell(stream, held)
        self._held.clear()
        self._within.clear()


def _looks_like_tamis(begin: str) -> bool | None:
    """Whether a line that begins so passes for one of Tamis; None where more of it is needed."""
    import unicodedata

    end = _LINE_END.search(begin)
    line = unicodedata.normalize("NFKD", begin if end is None else begin[: end.start()]).casefold()
    bare = "".join(char for char in line if unicodedata.category(char)[0] != "M").translate(_ALIKE)
    bare = _DROPPED.sub("", bare)
    while bare.startswith(_STREAMS):
        bare = bare[len(_STREAMS[0]) :]
    if bare.startswith(_OWN):
        return True
    if end is None and any(token.startswith(bare) for token in (*_OWN, *_STREAMS)):
        return True if len(begin) == _LOOK else None
    return False


def told_apart(text: str) -> str:
    """A whole text that a tool wrote, in which no line passes for one of Tamis."""
    shown: list[str] = []
    lines = ToldApart(lambda _stream, piece: shown.append(piece))
    lines.piece("", text)
    lines.end()
    return "".join(shown)
