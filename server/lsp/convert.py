"""Answers of the analyses as lsprotocol types, for the verbs of the framework lane. The only module that builds them."""

from __future__ import annotations

from lsprotocol import types

from tamis.protocols.model import Edit, Fix
from tamis.server.analysis.answers import HoverText
from tamis.server.lsp.documents import Document
from tamis.server.lsp.structs import Diagnostic


def to_range(document: Document, span: tuple[int, int]) -> types.Range:
    """A span as a range."""
    found = document.range(span)
    return types.Range(
        types.Position(found.start.line, found.start.character), types.Position(found.end.line, found.end.character)
    )


def to_span(document: Document, found: types.Range) -> tuple[int, int]:
    """A range as a span."""
    offset = document.lines.offset
    return (
        offset(found.start.line, found.start.character, document.encoding),
        offset(found.end.line, found.end.character, document.encoding),
    )


def to_hover(document: Document, hover: HoverText) -> types.Hover:
    """A hover."""
    content = types.MarkupContent(types.MarkupKind.Markdown, hover.markdown)
    return types.Hover(content, to_range(document, hover.span))


def to_edits(document: Document, edits: tuple[Edit, ...]) -> list[types.TextEdit | types.AnnotatedTextEdit]:
    """Edits of one document."""
    return [types.TextEdit(to_range(document, (edit.start, edit.end)), edit.new_text) for edit in edits]


def to_workspace_edit(document: Document, edits: tuple[Edit, ...], *, versioned: bool) -> types.WorkspaceEdit:
    """Edits of one document as a workspace edit, bound to its version for clients that check it."""
    changes = to_edits(document, edits)
    if versioned:
        identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, [*changes])])
    return types.WorkspaceEdit(changes={document.uri: [edit for edit in changes if isinstance(edit, types.TextEdit)]})


def to_diagnostic(found: Diagnostic) -> types.Diagnostic:
    """A diagnostic as it was published, for the quick fix that belongs to it."""
    start, end = found.range.start, found.range.end
    return types.Diagnostic(
        types.Range(types.Position(start.line, start.character), types.Position(end.line, end.character)),
        found.message,
        severity=types.DiagnosticSeverity(found.severity) if isinstance(found.severity, int) else None,
        code=found.code if isinstance(found.code, str) else None,
        source=found.source if isinstance(found.source, str) else None,
    )


def to_quick_fix(
    document: Document, fix: Fix, diagnostic: Diagnostic, *, versioned: bool, preferred: bool
) -> types.CodeAction:
    """A fix as a code action."""
    return types.CodeAction(
        title=fix.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[to_diagnostic(diagnostic)],
        is_preferred=preferred or None,
        edit=to_workspace_edit(document, fix.edits, versioned=versioned),
    )
