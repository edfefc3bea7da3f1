"""Writing VCP blocks, one per call (seed 001 §4.2, ruling 28).

A value stands between 「始」 and 「末」 as it is; one that holds such marks itself stands between the ESCAPE marks. Everything
that is no text is JSON text. Must not know how blocks are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tamis.protocols.base import PlainCall, WriteOptions, Written
from tamis.protocols.model import MAX_NAME_CHARS, Json, escape_pointer
from tamis.protocols.vcp.calls import META
from tamis.protocols.vcp.dialect import CLOSE, HEAD, OPEN, TAIL
from tamis.protocols.writing.expect import Expectations
from tamis.protocols.writing.proof import carries, write_proved
from tamis.protocols.writing.values import excerpt, json_text

_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BATCH = re.compile(r"command[0-9]{1,9}")
_MARK = re.compile("「[始末]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def write_calls(calls: Sequence[PlainCall], options: WriteOptions) -> Written:
    """One block per call; see ``CallProtocol``.

    Without a schema everything but a text comes back as the JSON text that was written. Order stands for ``step``.
    """
    return write_proved(_Vcp(options), calls, options)


class _Vcp:
    protocol = "vcp"
    title = "VCP"

    def __init__(self, options: WriteOptions) -> None:
        self.expectations = Expectations(options.tools, "text")
        self._declared = {name: hint.properties for name, hint in options.tools.items()}

    def faults(self, call: PlainCall) -> list[tuple[str, str, str]]:
        """Keys that VCP reads otherwise, and what it has no place for."""
        found = carries(call, "on_error", "retry", "request_id", "uris", "type_hints")
        declared = self._declared.get(call.tool_id, {})
        for name in call.meta:
            if name not in META or name in declared:
                found.append(("/meta", f"the field '{name}'", "it is no field that the host reads for itself"))
        for name, value in call.args.items():
            path = f"/args/{escape_pointer(name)}"
            if (why := self._no_key(name, name in declared)) is not None:
                found.append((path, f"parameter {excerpt(name)}", why))
            if isinstance(value, str):
                if (bad := _CONTROL.search(value)) is not None:
                    found.append((path, f"the value of '{name}'", f"U+{ord(bad.group()):04X} is a control character"))
                elif _MARK.search(value) and "ESCAPE」" in value:
                    found.append(
                        (path, f"the value of '{name}'", "it holds both the marks of a value and ESCAPE marks")
                    )
        return found

    def _no_key(self, name: str, declared: bool) -> str | None:
        if _KEY.fullmatch(name) is None:
            return "a key has only letters, digits, _ and -"
        if len(name) > MAX_NAME_CHARS:
            return f"a name has at most {MAX_NAME_CHARS} characters"
        if name.replace("_", "").replace("-", "").lower() == "toolname":
            return "that key names the tool"
        if _BATCH.fullmatch(name) is not None:
            return "a numbered command makes a batch of calls"
        if name in META and not declared:
            return "the host reads that field for itself, and the tool does not declare it"
        return None

    def text(self, calls: Sequence[PlainCall]) -> str:
        """The blocks, one under the other."""
        return "\n".join(self._block(call) for call in calls)

    def _block(self, call: PlainCall) -> str:
        pairs = [f"tool_name:{HEAD}{call.tool_id}{TAIL}"]
        pairs += [f"{name}:{self._value(call.tool_id, name, value)}" for name, value in call.args.items()]
        pairs += [f"{name}:{HEAD}{value}{TAIL}" for name, value in call.meta.items()]
        return f"{OPEN}\n" + ",\n".join(pairs) + f"\n{CLOSE}"

    def _value(self, tool_id: str, name: str, value: Json) -> str:
        if isinstance(value, str):
            return f"「始ESCAPE」{value}「末ESCAPE」" if _MARK.search(value) else f"{HEAD}{value}{TAIL}"
        text = json_text(value, "「")
        text = text.replace("<", "\\u003c") if "<<" in text else text
        if isinstance(value, float) and value.is_integer():
            expectation = self.expectations.of(tool_id)
            whole = str(int(value))
            if not expectation.clean(name, text, value) and expectation.clean(name, whole, value):
                text = whole
        return f"{HEAD}{text}{TAIL}"
