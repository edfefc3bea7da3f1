"""Texts for a model's prompt (``prompt/generate``, ``observation/format``). A thin face; holds no rules of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from tamis.protocols.contract import GrammarText, ObservationText, PromptResult
from tamis.protocols.prompt import MAX_FEW_SHOT
from tamis.server.rpc.aside import aside
from tamis.server.rpc.params import Group, Host, Params, check_protocol, check_size
from tamis.server.rpc.running import Context
from tamis.server.rpc.session import Request
from tamis.server.runtime.runtime import ToolFilter
from tamis.server.runtime.texts.observing import GivenResult, format_results
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.runtime.texts.prompts import Prompts


class Grammar(Params, kw_only=True):
    """Params of ``prompt/grammar``."""

    protocol: str | None = None
    format: Literal["gbnf", "jsonSchema"]
    shape: Literal["tag", "inputs"] = "tag"
    tool_ids: list[str] | None = None
    filter: ToolFilter | None = None


def _grammar(host: Host) -> Group:

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


class Generate(Params, kw_only=True):
    """Params of ``prompt/generate``."""

    protocol: str | None = None
    shape: Literal["tag", "inputs"] = "tag"
    tool_ids: list[str] | None = None
    filter: ToolFilter | None = None
    style: Literal["full", "compact"] = "full"
    few_shot: Annotated[int, Meta(ge=0, le=MAX_FEW_SHOT)] = 0
    instructions: bool = True
    template: str | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    context: Context | None = None
    """Whose prompt it is: the profile of ``agentId`` decides which tools are in it."""


class Format(Params, kw_only=True):
    """Params of ``observation/format``."""

    results: list[GivenResult]
    protocol: str
    shape: Literal["tag", "inputs"] = "tag"
    max_chars: Annotated[int, Meta(ge=1)] | None = None


def methods(host: Host) -> Group:
    """The methods of this group."""
    kept: Prompts | None = None

    async def generate(_request: Request, params: Generate) -> PromptResult:
        """Writes what a model is told about the tools."""
        # What writes prompts is loaded with the first one: most sessions need none.
        from tamis.protocols.prompt.assemble import PromptTooLargeError
        from tamis.server.runtime.texts.prompts import PromptError, PromptRequest, Prompts

        nonlocal kept
        prompts = kept = kept or Prompts()
        if params.template is not None:
            check_size(params.template)
        wanted = PromptRequest(
            protocol=params.protocol,
            shape=params.shape,
            tool_ids=None if params.tool_ids is None else tuple(params.tool_ids),
            filter=params.filter,
            style=params.style,
            few_shot=params.few_shot,
            instructions=params.instructions,
            template=params.template,
            max_tokens=params.max_tokens,
            agent_id=(params.context.agent_id or "") if params.context is not None else "",
        )
        runtime = host.runtime
        _ = runtime.registry  # read in the loop's thread, which owns the runtime
        try:
            return await aside(lambda: prompts.generate(runtime, wanted))
        except (PromptError, PromptTooLargeError) as error:
            raise RpcError(INVALID_PARAMS, f"wrong params: {error}") from None

    def format_observations(_request: Request, params: Format) -> ObservationText:
        """Writes results as the text that a model reads next."""
        _check_named(params.protocol)
        return ObservationText(text=format_results(params.results, params.protocol, params.shape, params.max_chars))

    return {
        "prompt/generate": (Generate, generate),
        **_grammar(host),
        "observation/format": (Format, format_observations),
    }


def _check_named(protocol: str) -> None:
    if protocol == "auto":
        raise RpcError(INVALID_PARAMS, "wrong params: an observation is written in one protocol - at `/protocol`")
    check_protocol(protocol)
