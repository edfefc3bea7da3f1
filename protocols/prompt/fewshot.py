"""Worked examples for a prompt (seed 000 §4.3, A35): calls from manifests, one that is corrected, and an answer without a call.

Every call is written by the protocol's writer and shown only when it reads back equal; the observation of the corrected one is what
Tamis really answers to the wrong call. Must not know how a prompt is put together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tamis.protocols.base import CallProtocol, PromptTool, Shape
from tamis.protocols.check import CallCheck, to_problem, told
from tamis.protocols.contract import (
    ErrorDetails,
    ExecutionError,
    ExecutionResult,
    Granted,
    Permissions,
    Usage,
)
from tamis.protocols.model import Json
from tamis.protocols.observation import observation, style_of
from tamis.protocols.plugins import extras_of
from tamis.protocols.prompt.calls import read_back, reads_back_with, write, written_example
from tamis.protocols.prompt.guard import code, guard, one_line
from tamis.protocols.prompt.parameters import parameters_of
from tamis.protocols.writing.values import json_text

HEAD = "**Examples of answers:**"
MAX_TITLE = 200
CORRECTED = "*A call that was wrong, and its correction.*"
_MAX_TRIED = 8
_EXCUSES = (
    "I used a parameter name that the tool does not have. I correct the call.",
    "I left out a required parameter. I correct the call.",
)
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SNAKE = re.compile(r"_([a-z0-9])")


class FewShot(msgspec.Struct, frozen=True):
    """Examples as texts. ``calls`` are the worked ones, in order; ``closing`` follow whenever there is any; ``left_out`` says what cannot be shown."""

    calls: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def text(self, count: int) -> str:
        """The section with the first ``count`` worked calls; empty for none."""
        if count <= 0 or not self.calls:
            return ""
        return "\n\n".join([HEAD, *self.calls[:count], *self.closing])


def few_shot(protocol: CallProtocol, tools: Sequence[PromptTool], count: int, shape: Shape = "tag") -> FewShot:
    """Up to ``count`` worked calls, each time the one that shows most of what none before it shows (a list, an object, lines or markup,
    a number, a boolean, plain text; seed 000 §4.3); where several show as much, the first example of every tool by name comes first, then the
    second ones, and so on.

    With at least one of them come a wrong call with its correction, where a tool allows one, and an answer that needs no tool.
    """
    if count <= 0:
        return FewShot()
    calls: list[str] = []
    left_out: list[str] = []
    shown: list[tuple[PromptTool, dict[str, Json]]] = []
    for tool, number in _by_variety(tools):
        example = tool.examples[number]
        text = written_example(protocol, tool, example.input, shape)
        if not text:
            left_out.append(f"example {number + 1} of {tool.name} cannot be shown in {protocol.id}")
            continue
        title = one_line(example.description, MAX_TITLE) or f"A call of {code(tool.name)}"
        calls.append(f"*{title}*\n{_reason(protocol, tool)}{text}")
        shown.append((tool, example.input))
        if len(calls) == count:
            break
    if not calls:
        return FewShot(left_out=tuple(left_out))
    fixed = correction(protocol, shown, shape)
    if not fixed:
        left_out.append(f"no example of a corrected call: no wrong call of the tools shown is refused in {protocol.id}")
    return FewShot(tuple(calls), tuple(item for item in (fixed, NO_TOOL) if item), tuple(left_out))


def _by_variety(tools: Sequence[PromptTool]) -> Iterator[tuple[PromptTool, int]]:
    left = {
        (number, tool.name): (tool, number, _kinds(tool.examples[number].input))
        for tool in tools
        for number in range(len(tool.examples))
    }
    order = sorted(left)
    seen: set[str] = set()
    while order:
        # Once every kind was seen, the order is that of the rounds.
        best = max(order, key=lambda key: len(left[key][2] - seen)) if len(seen) < len(_KINDS) else order[0]
        order.remove(best)
        tool, number, kinds = left[best]
        seen |= kinds
        yield tool, number


_KINDS = ("text", "markup", "number", "boolean", "list", "object")


def _kinds(args: Mapping[str, Json]) -> set[str]:
    """What a call shows of how values are written."""
    kinds: set[str] = set()
    stack: list[Json] = list(args.values())
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            kinds.add("markup" if any(char in value for char in "<>&\n") else "text")
        elif isinstance(value, bool):
            kinds.add("boolean")
        elif isinstance(value, int | float):
            kinds.add("number")
        elif isinstance(value, list):
            kinds.add("list")
            stack += value
        elif isinstance(value, dict):
            kinds.add("object")
            stack += value.values()
    return kinds


def _reason(protocol: CallProtocol, tool: PromptTool) -> str:
    return "" if extras_of(protocol.id).whole_text else f"I use {code(tool.name)} for this.\n"


NO_TOOL = "*No tool is needed.*\nYou are welcome! Tell me when there is anything else."


def correction(
    protocol: CallProtocol, calls: Sequence[tuple[PromptTool, Mapping[str, Json]]], shape: Shape = "tag"
) -> str:
    """One of the calls with a mistake, the observation that it gets, and the call put right; empty where no mistake is refused.

    ``calls`` are ones that can be shown. The likeliest mistake of any of them is taken, with the smallest call that allows it: a name in other letter case, another form of a
    name, a required parameter left out.
    """
    # Both calls of the pair cost tokens and show nothing new of how values are written.
    smallest = sorted(calls, key=lambda call: len(json_text(dict(call[1]))))[:_MAX_TRIED]
    # the corrected call looks as it does among the worked ones
    forms = [reads_back_with(protocol, tool, args, shape) or False for tool, args in smallest]
    for mistakes in (_other_case, _other_form, _missing):
        for (tool, args), elements in zip(smallest, forms, strict=True):
            for wrong in mistakes(tool, args):
                text = write(protocol, _knowing(tool, args, wrong), wrong, shape, elements=elements)
                check = read_back(protocol, tool, text, wrong).check if text else None
                if check is None or check.valid:
                    continue
                told = guard_unless_block(_observation(protocol, tool, check, shape), protocol.id)
                right = write(protocol, tool, args, shape, elements=elements)
                excuse = "" if extras_of(protocol.id).whole_text else f"{_EXCUSES[mistakes is _missing]}\n"
                return f"{CORRECTED}\n{_reason(protocol, tool)}{text}\n\n{told}\n\n{excuse}{right}"
    return ""


def guard_unless_block(told: str, protocol: str) -> str:
    """An observation with what it quotes made harmless; the frames of result blocks and elements stay."""
    if extras_of(protocol).observed == "block" or told.startswith("<OBSERVATION"):
        return told
    return guard(told)


def _knowing(tool: PromptTool, args: Mapping[str, Json], wrong: Mapping[str, Json]) -> PromptTool:
    """The tool as a model that makes the mistake takes it to be: the values of the wrong call are then written as in the right one."""
    declared = tool.parameters.get("properties")
    if not isinstance(declared, dict):
        return tool
    meant = next((name for name in args if name not in wrong), "")
    named = {name: declared[meant] for name in wrong if name not in declared and meant in declared}
    return msgspec.structs.replace(tool, parameters={**tool.parameters, "properties": {**declared, **named}})


_Wrong = Iterator[dict[str, Json]]


def _other_case(tool: PromptTool, args: Mapping[str, Json]) -> _Wrong:
    for name in args:
        camel = _SNAKE.sub(lambda match: match.group(1).upper(), name)
        yield from _renamed(tool, args, name, camel)
        yield from _renamed(tool, args, name, _CAMEL.sub(lambda match: f"_{match.group(1).lower()}", name))


def _other_form(tool: PromptTool, args: Mapping[str, Json]) -> _Wrong:
    for name in args:
        yield from _renamed(tool, args, name, name.partition("_")[0])
        yield from _renamed(tool, args, name, name[:-1] if name.endswith("s") else f"{name}s")


def _renamed(tool: PromptTool, args: Mapping[str, Json], name: str, other: str) -> _Wrong:
    declared = tool.parameters.get("properties")
    if other and other != name and not (isinstance(declared, dict) and other in declared):
        yield {other if key == name else key: value for key, value in args.items()}


def _missing(tool: PromptTool, args: Mapping[str, Json]) -> _Wrong:
    needed = {parameter.name for parameter in parameters_of(tool.parameters) if parameter.required}
    for name in args:
        if name in needed:
            yield {key: value for key, value in args.items() if key != name}


def _observation(protocol: CallProtocol, tool: PromptTool, check: CallCheck, shape: Shape) -> str:
    errors = [to_problem(finding) for finding in check.errors]
    result = ExecutionResult(
        call_id="call-1",
        tool_id=tool.name,
        version="",
        status="error",
        error=ExecutionError(
            type="ParameterValidationError",
            message=told(errors),
            details=ErrorDetails(errors=errors),
        ),
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )
    return observation(result, style_of(protocol.id, shape), problems=True)
