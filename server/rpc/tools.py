"""Which tools there are, and reading and checking calls to them. Holds no rules of its own."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Literal

import msgspec

from tamis.protocols.check import to_problem
from tamis.protocols.contract import Description, ParseResult, Problem, ToolList, ValidateResult
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import Finding
from tamis.protocols.suggest import best, hint
from tamis.protocols.wire import parse_result
from tamis.server.rpc.aside import aside
from tamis.server.rpc.params import Group, Host, Params, ReadingOptions, check_protocol, check_size, given
from tamis.server.rpc.session import Request, named_error
from tamis.server.runtime.calls.checking import said_range
from tamis.server.runtime.execution.resolving import not_executable
from tamis.server.runtime.texts.exports import Form
from tamis.server.runtime.tools.inline import InlineTool
from tamis.server.runtime.tools.listing import ToolFilter, WrongCursorError
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

LARGE_TEXT = 1 << 18
"""From so many characters on a text is read in a thread, so that other requests are answered meanwhile."""


class List(Params, kw_only=True):
    """Params of ``tool/list``."""

    filter: ToolFilter | None = None
    view: Literal["summary", "full"] = "summary"
    cursor: str | None = None
    limit: int | None = None


class Describe(Params, kw_only=True):
    """Params of ``tool/describe``."""

    tool_id: str
    version: str | None = None
    as_: Form = msgspec.field(default="native", name="as")


class Parse(Params, kw_only=True):
    """Params of ``tool/parse``."""

    text: str
    protocol: str = "auto"
    complete: bool = True
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])
    options: ReadingOptions | None = None


class Validate(Params, kw_only=True):
    """Params of ``tool/validate``: one of ``toolId`` with ``args``, ``calls``, ``manifest``."""

    tool_id: str | None = None
    args: dict[str, Any] | None = None
    calls: list[dict[str, Any]] | None = None
    manifest: dict[str, Any] | str | None = None
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])


def methods(host: Host) -> Group:
    """The methods of this group."""

    def list_tools(_request: Request, params: List) -> ToolList:
        """Lists the registered tools, filtered, in a stable order, in pages."""
        if params.limit is not None and params.limit < 1:
            raise RpcError(INVALID_PARAMS, "wrong params: at least 1 - at `/limit`")
        try:
            return host.runtime.list_tools(
                params.filter, full=params.view == "full", cursor=params.cursor, limit=params.limit
            )
        except WrongCursorError as error:
            raise RpcError(INVALID_PARAMS, f"wrong params: {error} - at `/cursor`") from None

    def describe(_request: Request, params: Describe) -> Description:
        """Gives the definition of one tool, as it is or in the form of another project."""
        description = host.runtime.describe(params.tool_id, params.version, params.as_)
        if description is not None:
            return description
        versions = host.runtime.registry.versions(params.tool_id)
        if versions:
            there = f"there is {', '.join(versions)}"
            raise named_error("versionUnsatisfied", f"no such version of '{params.tool_id}'", there)
        near = hint(best(params.tool_id, (tool.tool_id for tool in host.runtime.registry.tools)))
        raise named_error(
            "toolNotFound", f"no tool '{params.tool_id[:200]}'{near}", "tool/list gives the registered ids"
        )

    def parse(_request: Request, params: Parse) -> ParseResult | Awaitable[ParseResult]:
        """Finds the calls of a model's text, with the place of every part; runs nothing."""
        check_size(params.text)
        check_protocol(params.protocol)
        encoding = host.encoding
        # The registry is read here: a thread must not be the first to ask for it.
        options = host.runtime.read_options(complete=params.complete, tools=params.tools, options=given(params.options))

        def read() -> ParseResult:
            return parse_result(read_text(params.text, params.protocol, options), encoding)

        return read() if len(params.text) < LARGE_TEXT else aside(read)

    def validate(_request: Request, params: Validate) -> ValidateResult:
        """Checks arguments, calls or a manifest, and coerces what passes; an unknown tool is a problem, not an error."""
        if params.manifest is not None:
            return host.runtime.validate_manifest(params.manifest)
        if params.calls is not None:
            return _validate_calls(host, params.calls, params.tools)
        if params.tool_id is None:
            raise RpcError(INVALID_PARAMS, "give toolId and args, calls, or manifest")
        return host.runtime.validate_args(params.tool_id, params.args or {}, params.tools)

    return {
        "tool/list": (List, list_tools),
        "tool/describe": (Describe, describe),
        "tool/parse": (Parse, parse),
        "tool/validate": (Validate, validate),
    }


def _validate_calls(host: Host, calls: list[dict[str, Any]], tools: list[InlineTool]) -> ValidateResult:
    errors: list[Problem] = []
    results: list[ValidateResult] = []
    for index, call in enumerate(calls):
        prefix = f"/calls/{index}/args"
        result = host.runtime.validate_args(str(call.get("toolId", "")), {}, tools, call=call, prefix=prefix)
        # what tool/execute would refuse is not valid, however well its arguments fit (ruling 1)
        why = not_executable(call)
        if why:
            refused = to_problem(Finding("VA405", "", "error", {"why": why}), prefix)
            refused.range = said_range(call.get("range"))
            errors.append(refused)
        errors += result.errors
        results.append(result)
    valid = not errors
    return ValidateResult(
        valid=valid,
        errors=errors,
        warnings=[problem for result in results for problem in result.warnings],
        coerced=[result.coerced for result in results] if valid else msgspec.UNSET,
    )
