"""What the server announces of the verbs that show: hover, tokens, folds, selections, hints, signatures, formatting.

Plain data, answered before anything heavy is imported. Must not import lsprotocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from tamis.server.analysis.hover.prompt_texts import PromptView
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session

METHODS = frozenset(
    {
        "textDocument/semanticTokens/full",
        "textDocument/semanticTokens/full/delta",
        "textDocument/semanticTokens/range",
        "textDocument/foldingRange",
        "textDocument/selectionRange",
        "textDocument/formatting",
        "textDocument/rangeFormatting",
        "textDocument/rangesFormatting",
        "textDocument/onTypeFormatting",
        "textDocument/inlayHint",
        "inlayHint/resolve",
        "textDocument/signatureHelp",
    }
)
"""Requests of these verbs."""

TYPED = (">", "»", "」", "\n")
"""Characters after which something may be typed for the user; a test holds them against the analysis."""

SIGNATURE_TRIGGERS = (":", "»", "始", "」", ">", "<", '"', "=")
RETRIGGERS = ("«", "末", ",", "_", "/")


def shown_capabilities(session: Session) -> dict[str, Any]:
    """The parts of ``ServerCapabilities`` that belong to these verbs."""
    found: dict[str, Any] = {
        "foldingRangeProvider": True,
        "selectionRangeProvider": True,
        "documentFormattingProvider": True,
        "documentRangeFormattingProvider": True,
        "documentOnTypeFormattingProvider": {
            "firstTriggerCharacter": TYPED[0],
            "moreTriggerCharacter": list(TYPED[1:]),
        },
    }
    found["signatureHelpProvider"] = {
        "triggerCharacters": list(SIGNATURE_TRIGGERS),
        "retriggerCharacters": list(RETRIGGERS),
    }
    resolved: Any = session.capability("textDocument.inlayHint.resolveSupport.properties")
    found["inlayHintProvider"] = {"resolveProvider": isinstance(resolved, list) and "tooltip" in resolved}
    if session.can("textDocument.rangeFormatting.rangesSupport"):
        found["documentRangeFormattingProvider"] = {"rangesSupport": True}
    tokens: Any = session.capability("textDocument.semanticTokens")
    if isinstance(tokens, dict):
        from tamis.server.lsp.token_data import legend_for

        legend = legend_for(cast("dict[str, Any]", tokens))
        if legend.kinds:
            found["semanticTokensProvider"] = {
                "legend": {"tokenTypes": list(legend.kinds), "tokenModifiers": list(legend.modifiers)},
                "full": {"delta": True},
                "range": True,
            }
    return found


def prompt_view(session: Session, snapshot: Snapshot) -> PromptView:
    """How prompts are shown to this client: its settings ``prompt.protocol`` and ``prompt.encoding``, else the folder's default."""
    from tamis.server.analysis.hover.prompt_texts import PROTOCOLS, PromptView

    wanted = session.workspace.client.get("prompt.protocol")
    config = snapshot.settings.config
    default = config.protocol.default if config is not None else "vcp"
    encoding = session.workspace.client.get("prompt.encoding")
    return PromptView(
        wanted if wanted in PROTOCOLS else default, "cl100k_base" if encoding == "cl100k_base" else "o200k_base"
    )


def markup(markdown: str, formats: Any) -> dict[str, str]:
    """Markdown in the first format that a client prefers; one that names none gets plain text."""
    from tamis.server.analysis.hover.plain import plain_text

    offered = cast("list[Any]", formats) if isinstance(formats, list) else []
    first = next((name for name in offered if name in ("markdown", "plaintext")), "plaintext")
    if first == "markdown":
        return {"kind": "markdown", "value": markdown}
    return {"kind": "plaintext", "value": plain_text(markdown)}
