"""Writing calls in another form (``tool/convert``). A thin face; holds no rules of its own."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tamis.protocols.contract import ConvertResult
from tamis.server.rpc.params import Group, Host, Params, ReadingOptions, check_protocol, check_size, given
from tamis.server.rpc.session import Request
from tamis.server.runtime.tools.inline import InlineTool
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError


class _Convert(Params, kw_only=True):
    to: str
    text: str | None = None
    calls: list[dict[str, Any]] | dict[str, Any] | None = None
    protocol: str = "auto"
    shape: Literal["tag", "inputs"] | None = None
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])
    options: ReadingOptions | None = None


def methods(host: Host) -> Group:
    """The methods of this group."""

    def convert(_request: Request, params: _Convert) -> ConvertResult:
        """Writes calls in another protocol or a vendor's form; every loss is named."""
        from tamis.server.runtime.texts.converting import BadCallError, convert_calls, convert_text

        if (params.text is None) == (params.calls is None):
            raise RpcError(INVALID_PARAMS, "wrong params: give either text or calls - at `$`")
        try:
            if params.text is not None:
                check_size(params.text)
                check_protocol(params.protocol)
                made = convert_text(
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
                made = convert_calls(host.runtime, calls, params.to, shape=params.shape, tools=params.tools)
        except BadCallError as error:
            raise RpcError(INVALID_PARAMS, f"wrong params: {error}") from None
        return ConvertResult(text=made.text, losses=made.losses)

    return {"tool/convert": (_Convert, convert)}
