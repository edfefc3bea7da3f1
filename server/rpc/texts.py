"""Calls in texts written otherwise: the canonical form of what was read (``tool/repair``, ``tool/explain``), another form (``tool/convert``). A thin
face; holds no rules of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from tamis.protocols.contract import ConvertResult, ExplainResult, RepairResult
from tamis.protocols.model import Document
from tamis.server.rpc.params import Group, Host, Params, ReadingOptions, check_protocol, check_size, given
from tamis.server.rpc.session import Request
from tamis.server.runtime.tools.inline import InlineTool
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError


class _Text(Params, kw_only=True):
    text: str
    protocol: str = "auto"
    complete: bool = True
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])
    options: ReadingOptions | None = None


def _repairs(host: Host) -> Group:

    def reader(params: _Text) -> Callable[[str], Document]:
        check_size(params.text)
        check_protocol(params.protocol)
        return lambda text: host.runtime.read(
            text, params.protocol, complete=params.complete, tools=params.tools, options=given(params.options)
        )

    def repair(_request: object, params: _Text) -> RepairResult:
        """Gives the safe edits that make a text canonical, and its calls; they are the same before and after."""
        from tamis.protocols import repair

        read = reader(params)
        return repair.repair(read(params.text), read, host.encoding)

    def explained(_request: object, params: _Text) -> ExplainResult:
        """Says what the reader assumed, and the readings that it did not take."""
        from tamis.protocols import repair

        read = reader(params)
        return repair.explain(read(params.text), read, host.encoding)

    return {"tool/repair": (_Text, repair), "tool/explain": (_Text, explained)}


class _Convert(Params, kw_only=True):
    to: str
    text: str | None = None
    calls: list[dict[str, Any]] | dict[str, Any] | None = None
    protocol: str = "auto"
    shape: Literal["tag", "inputs"] | None = None
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])
    options: ReadingOptions | None = None


def _converting(host: Host) -> Group:

    def convert(_request: Request, params: _Convert) -> ConvertResult:
        """Writes calls in another protocol or a vendor's form; every loss is named."""
        from tamis.server.runtime.texts.converting import BadCallError, convert_calls, convert_text

        if (params.text is None) == (params.calls is None):
            raise RpcError(INVALID_PARAMS, "wrong params: give either text or calls")
        try:
            if params.text is not None:
                check_size(params.text)
                check_protocol(params.protocol)
                conversion = convert_text(
                    host.runtime,
                    params.text,
                    params.to,
                    protocol=params.protocol,
                    shape=params.shape,
                    tools=params.tools,
                    options=given(params.options),
                )
            else:
                # A vendor's message, or one call, stands for a list of it.
                calls = [params.calls] if isinstance(params.calls, dict) else params.calls or []
                conversion = convert_calls(host.runtime, calls, params.to, shape=params.shape, tools=params.tools)
        except BadCallError as error:
            raise RpcError(INVALID_PARAMS, f"wrong params: {error}") from None
        return ConvertResult(text=conversion.text, losses=conversion.losses)

    return {"tool/convert": (_Convert, convert)}


def methods(host: Host) -> Group:
    """The methods of this group."""
    return {**_repairs(host), **_converting(host)}
