"""``textDocument/definition``, ``declaration`` and ``implementation``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked, offset_of

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.analysis.navigation.definition import Found, Target
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session


def to_definition(session: Session, params: types.DefinitionParams) -> list[dict[str, Any]]:
    """Where what is named is written down."""
    from tamis.server.analysis.navigation.definition import definition

    return _answer(session, params, definition, "definition")


def to_declaration(session: Session, params: types.DeclarationParams) -> list[dict[str, Any]]:
    """Where what is named is declared."""
    from tamis.server.analysis.navigation.definition import declaration

    return _answer(session, params, declaration, "declaration")


def to_implementation(session: Session, params: types.ImplementationParams) -> list[dict[str, Any]]:
    """What carries out what is named."""
    from tamis.server.analysis.navigation.definition import implementation

    return _answer(session, params, implementation, "implementation")


def _answer(
    session: Session,
    params: types.DefinitionParams | types.DeclarationParams | types.ImplementationParams,
    ask: Callable[[Snapshot, int], Found],
    name: str,
) -> list[dict[str, Any]]:
    opened = asked(session, params.text_document.uri)
    if opened is None:
        return []
    document, snapshot = opened
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


def _setting(places: Elsewhere, keys: tuple[str, ...]) -> tuple[str, tuple[int, int], tuple[int, int]] | None:
    """A key of the folder's ``tamis.toml``; None where another file has it."""
    from tamis.server.analysis.navigation.definition import find_setting

    path = places.settings_file
    text = places.text(path) if path else None
    span = None if text is None else find_setting(text, keys)
    return None if span is None else (path, span, span)


def place(places: Elsewhere, target: Target) -> tuple[str, tuple[int, int], tuple[int, int]] | None:
    """A target as path, selection and whole; None where the file is not there."""
    if target.setting:
        return _setting(places, target.setting)
    text = places.text(target.path)
    if text is None:
        return None
    if target.function:
        from tamis.server.analysis.navigation.definition import find_function

        span = find_function(text, target.function, target.path)
        if span is not None:
            return target.path, span, span
    return target.path, target.span, target.whole


REQUESTS = (
    Verb(
        method="textDocument/definition",
        params="DefinitionParams",
        handler=to_definition,
        schedule="snapshot",
        capability={"definitionProvider": True},
    ),
    Verb(
        method="textDocument/declaration",
        params="DeclarationParams",
        handler=to_declaration,
        schedule="snapshot",
        capability={"declarationProvider": True},
    ),
    Verb(
        method="textDocument/implementation",
        params="ImplementationParams",
        handler=to_implementation,
        schedule="snapshot",
        capability={"implementationProvider": True},
    ),
)
