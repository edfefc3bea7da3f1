"""``textDocument/definition``, ``declaration`` and ``implementation``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from tamis.server.analysis.navigation.definition import Found, Target, declaration, definition, implementation
from tamis.server.analysis.navigation.functions import find_function
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked, offset_of

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the three verbs."""

    def answer(
        params: types.DefinitionParams | types.DeclarationParams | types.ImplementationParams,
        ask: Callable[[Snapshot, int], Found],
        name: str,
    ) -> list[dict[str, Any]]:
        found = asked(session, params.text_document.uri)
        if found is None:
            return []
        document, snapshot = found
        leads = ask(snapshot, offset_of(document, params.position))
        places = Elsewhere(session, snapshot)
        targets = [placed for target in leads.targets if (placed := place(places, target)) is not None]
        if not session.can(f"textDocument.{name}.linkSupport"):
            return [places.location(path, span) for path, span, _ in targets]
        origin = places.range(snapshot.path, leads.origin)
        return [
            {
                "originSelectionRange": origin,
                "targetUri": places.uri(path),
                "targetRange": places.range(path, whole),
                "targetSelectionRange": places.range(path, span),
            }
            for path, span, whole in targets
        ]

    def to_definition(params: types.DefinitionParams) -> list[dict[str, Any]]:
        return answer(params, definition, "definition")

    def to_declaration(params: types.DeclarationParams) -> list[dict[str, Any]]:
        return answer(params, declaration, "declaration")

    def to_implementation(params: types.ImplementationParams) -> list[dict[str, Any]]:
        return answer(params, implementation, "implementation")

    server.feature(types.TEXT_DOCUMENT_DEFINITION)(to_definition)
    server.feature(types.TEXT_DOCUMENT_DECLARATION)(to_declaration)
    server.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)(to_implementation)


def place(places: Elsewhere, target: Target) -> tuple[str, tuple[int, int], tuple[int, int]] | None:
    """A target as path, selection and whole; None where the file is not there."""
    text = places.text(target.path)
    if text is None:
        return None
    if target.function:
        span = find_function(text, target.function, target.path)
        if span is not None:
            return target.path, span, span
    return target.path, target.span, target.whole
