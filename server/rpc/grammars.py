"""Grammars for constrained decoding (``prompt/grammar``). A thin face; holds no rules of its own."""

from __future__ import annotations

from typing import Literal

from tamis.protocols.contract import GrammarText
from tamis.server.rpc.aside import aside
from tamis.server.rpc.params import Group, Host, Params
from tamis.server.rpc.session import Request
from tamis.server.runtime.runtime import ToolFilter
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError


class Grammar(Params, kw_only=True):
    """Params of ``prompt/grammar``."""

    protocol: str | None = None
    format: Literal["gbnf", "jsonSchema"]
    shape: Literal["tag", "inputs"] = "tag"
    tool_ids: list[str] | None = None
    filter: ToolFilter | None = None


def methods(host: Host) -> Group:
    """The methods of this group."""

    async def make(_request: Request, params: Grammar) -> GrammarText:
        """Writes a grammar under which a model can only write calls that read back whole."""
        # What writes grammars is loaded with the first one: most sessions need none.
        from tamis.protocols.grammar.gbnf import GrammarError
        from tamis.server.runtime.texts.grammars import grammar
        from tamis.server.runtime.texts.prompts import PromptError, PromptRequest

        request = PromptRequest(
            protocol=params.protocol,
            shape=params.shape,
            tool_ids=None if params.tool_ids is None else tuple(params.tool_ids),
            filter=params.filter,
        )
        runtime = host.runtime
        _ = runtime.registry  # read in the loop's thread, which owns the runtime
        try:
            return GrammarText(text=await aside(lambda: grammar(runtime, request, params.format)))
        except (PromptError, GrammarError) as error:
            raise RpcError(INVALID_PARAMS, f"wrong params: {error}") from None

    return {"prompt/grammar": (Grammar, make)}
