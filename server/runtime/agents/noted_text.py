"""A text of a model whose calls are run for a face, written down as a round of an agent is: what was said, what was read of it, what is answered (A59).

Must not know which face asks.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.protocols.contract import ExecuteTextResult, ExecutionResult
from tamis.protocols.model import Document
from tamis.protocols.observation import cut_middle
from tamis.server.runtime.agents.step import LOGGED_CHARS
from tamis.server.runtime.agents.views import asked_for, kept_text
from tamis.server.runtime.calls.model import CallContext
from tamis.server.runtime.execution.text import TextOptions, execute_text, plan_text
from tamis.server.runtime.observe.trail import Trail

MAX_CODES = 50


async def execute_noted_text(
    document: Document,
    context: CallContext,
    options: TextOptions,
    on_result: Callable[[ExecutionResult], None] | None = None,
    on_unread: Callable[[str], None] | None = None,
) -> ExecuteTextResult:
    """``execute_text`` with the text before and the observation behind it in the audit log, masked and shortened as an agent's are."""
    planned = plan_text(document)
    asked = asked_for(document, planned, options, context.registry)
    trail = Trail(context.services.audit, context.services.log, str(context.root), options.call_prefix, context.trace)
    trail.keep_secret([secret for one in asked for secret in one.secrets])
    trail.note(
        "text.received",
        protocols=list(dict.fromkeys(block.protocol for block in document.blocks)),
        text=cut_middle(kept_text(document, asked), LOGGED_CHARS),
        calls=len(planned),
        setAside=sum(block.aside for block in document.blocks),
        findings=[diag.code for diag in document.diagnostics[:MAX_CODES]],
    )
    done = await execute_text(document, context, options, on_result, on_unread)
    trail.note(
        "text.observed",
        statuses=[result.status for result in done.results],
        observation=cut_middle(done.observation, LOGGED_CHARS),
    )
    return done
