"""What the reader assumed, and the edits that write it down (``tool/repair``, ``tool/explain``). A thin face; holds no rules of its own."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tamis.protocols.contract import ExplainResult, RepairResult
from tamis.protocols.model import Document
from tamis.server.rpc.params import Group, Host, Params, ReadingOptions, check_protocol, check_size, given
from tamis.server.runtime.tools.inline import InlineTool


class _Text(Params, kw_only=True):
    text: str
    protocol: str = "auto"
    complete: bool = True
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])
    options: ReadingOptions | None = None


def methods(host: Host) -> Group:
    """The methods of this group."""

    def reader(params: _Text) -> Callable[[str], Document]:
        check_size(params.text)
        check_protocol(params.protocol)
        return lambda text: host.runtime.read(
            text, params.protocol, complete=params.complete, tools=params.tools, options=given(params.options)
        )

    def repair(_request: object, params: _Text) -> RepairResult:
        """Gives the safe edits that make a text canonical, and its calls; they are the same before and after."""
        from tamis.protocols import explain

        read = reader(params)
        return explain.repair(read(params.text), read, host.encoding)

    def explained(_request: object, params: _Text) -> ExplainResult:
        """Says what the reader assumed, and the readings that it did not take."""
        from tamis.protocols import explain

        read = reader(params)
        return explain.explain(read(params.text), read, host.encoding)

    return {"tool/repair": (_Text, repair), "tool/explain": (_Text, explained)}
