"""What a model is told before it calls. Must not know how the words are chosen."""

from __future__ import annotations

from tamis.protocols.contract.base import Wire


class PromptMacro(Wire, kw_only=True):
    """What a macro engine is told of ``{{tools}}`` (seed 001 §6.1)."""

    name: str
    type: str
    phase: str
    description: str
    example: str
    accepts_args: bool
    priority: int
    supported: bool
    context_free: bool


class PromptTokens(Wire, kw_only=True):
    """How many tokens a prompt has; ``per_tool`` is by tool id, without headings and examples."""

    total: int
    exact: bool
    per_tool: dict[str, int]


class PromptResult(Wire, kw_only=True):
    """Result of ``prompt/generate``. ``few_shot`` counts the worked calls shown; ``notes`` say what was left out and why."""

    text: str
    etag: str
    protocol: str
    style: str
    few_shot: int
    tokens: PromptTokens
    macro: PromptMacro
    notes: list[str]


class GrammarText(Wire, kw_only=True):
    """Result of ``prompt/grammar``: a grammar, or a JSON Schema as text."""

    text: str
