"""What a round asked for and got, in the seeds' narrower records (seed 001 §3.3 and §10.2), with secrets hidden where they are kept.

Pure: from the calls of a text and their results. Must not know sessions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult, NarrowStatus, ParsedToolRequest, ToolExecutionResult
from tamis.protocols.model import Call, Document
from tamis.protocols.observation import observation, plain, value_text
from tamis.protocols.positions import Span
from tamis.protocols.schema.secrets import MASK
from tamis.server.runtime.execution.text import Planned, TextOptions, call_id
from tamis.server.runtime.handlers.script.judge import received
from tamis.server.runtime.observe.masking import result_without, secret_texts, without
from tamis.server.runtime.tools.registry import Registry

SECRET_META = ("tool_password",)
"""Fields beside the arguments that are secrets wherever they stand (ruling 28)."""

MAX_RAW = 4
"""``rawBlock``s have together at most so many times the text's length: steps whose fields are mixed overlap. The rest have the tool's name alone."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One call of an answer: as it came for the host, and as it may be kept."""

    request: ParsedToolRequest
    args: dict[str, Any]
    """Uncoerced, with the URIs; to compare rounds by."""
    shown: dict[str, str]
    """``request.args`` with secrets masked."""
    secrets: tuple[str, ...]
    hidden: tuple[tuple[int, int], ...]
    """Where in the text values stand that are masked in ``shown``."""


def asked_for(document: Document, planned: Sequence[Planned], options: TextOptions, registry: Registry) -> list[Asked]:
    """What an answer asks for, in order."""
    left = MAX_RAW * len(document.text)
    questions: list[Asked] = []
    for item in planned:
        block = document.blocks[item.block]
        span = block.span if len(block.calls) == 1 else item.call.span
        left -= span[1] - span[0]
        questions.append(_asked(document, item, options, registry, span if left >= 0 else item.call.tool_span))
    return questions


def _asked(document: Document, item: Planned, options: TextOptions, registry: Registry, raw: Span) -> Asked:
    call, text = item.call, document.text
    args = call.args(text)
    tool = registry.resolve_call(call.tool_id, call.protocol, args).tool
    # of a tool that nobody knows it is not known what is secret
    masked: dict[str, Any] = dict.fromkeys(args, MASK) if tool is None else received(args, tool)
    uris = {f"uri_{name}": uri for name, uri in call.uris.items()}
    meta = {name: call.meta[name] for name in SECRET_META if call.meta.get(name)}
    return Asked(
        request=ParsedToolRequest(
            request_id=call_id(item, options),
            tool_name=call.tool_id,
            raw_block=text[raw[0] : raw[1]],
            args=_texts(args | uris),
        ),
        args=args | uris,
        shown=_texts(masked | uris),
        secrets=secret_texts(args | meta, masked | dict.fromkeys(meta, MASK)),
        hidden=_hidden(call, args, masked),
    )


def _hidden(call: Call, args: dict[str, Any], masked: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    return tuple(param.value.span for param in call.params if args.get(param.name) != masked.get(param.name))


def _texts(args: dict[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for name, value in args.items()
    }


def kept_text(document: Document, asked: Sequence[Asked]) -> str:
    """An answer as it may be kept: without the secret values of its calls, wherever they stand in it."""
    pieces: list[str] = []
    at = 0
    for start, end in sorted(span for question in asked for span in question.hidden):
        if start >= at:
            pieces += (document.text[at:start], MASK)
            at = end
    pieces.append(document.text[at:])
    secrets = sorted({secret for question in asked for secret in question.secrets}, key=len, reverse=True)
    return without("".join(pieces), secrets)


def narrow(result: ExecutionResult) -> NarrowStatus:
    """The status as the seeds' records have it (interface, Running)."""
    return cast("NarrowStatus", result.status) if result.status in ("success", "denied") else "error"


def execution_result(asked: Asked, result: ExecutionResult) -> ToolExecutionResult:
    """A result as seed 001 §3.3 has it."""
    return ToolExecutionResult(
        request_id=asked.request.request_id,
        tool_name=asked.request.tool_name,
        status=narrow(result),
        result=result_text(asked, result),
        duration_ms=result.duration_ms,
    )


def result_text(asked: Asked, result: ExecutionResult) -> str:
    """The output or the error of a result as text; of a call without either, what happened to it."""
    shown = result_without(result, asked.secrets)
    if shown.error is not UNSET:
        return plain(shown.error.message)
    if result.status == "success":
        return value_text(None if shown.output is UNSET else shown.output)
    # what happened to it is a sentence, whatever the protocol puts around it
    return observation(shown, "action").removeprefix("Observation: ")
