"""``textDocument/signatureHelp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from tamis.server.analysis.hover.signature import Signature, signature_at
from tamis.server.lsp.shown import SIGNATURE_TRIGGERS, markup

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.session import Session

_INFORMATION = "textDocument.signatureHelp.signatureInformation"


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""
    formats = session.capability(f"{_INFORMATION}.documentationFormat")
    offsets = session.capability(f"{_INFORMATION}.parameterInformation.labelOffsetSupport") is True
    inner = session.capability(f"{_INFORMATION}.activeParameterSupport") is True
    none = session.capability(f"{_INFORMATION}.noActiveParameterSupport") is True

    def signature_help(params: types.SignatureHelpParams) -> dict[str, Any] | None:
        document = session.documents.get(params.text_document.uri)
        if document is None or document.kind != "text":
            return None
        place = params.position
        offset = document.lines.offset(place.line, place.character, document.encoding)
        found = signature_at(session.workspace.snapshot(document, wait=0.5), offset)
        if found is None:
            return None
        plain = _plain(found, offsets, formats)
        active: dict[str, Any] = {}
        if found.active is not None:
            active = {"activeParameter": found.active}
        elif none:
            active = {"activeParameter": None}
        if inner:
            plain |= active
        return {"signatures": [plain], "activeSignature": 0, **active}

    options = types.SignatureHelpOptions(list(SIGNATURE_TRIGGERS))
    server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, options)(signature_help)


def _plain(found: Signature, offsets: bool, formats: Any) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = []
    for argument in found.arguments:
        start, end = argument.span
        # Offsets into labels count UTF-16 units, whatever the positions count.
        label: Any = [_utf16(found.label[:start]), _utf16(found.label[:end])] if offsets else found.label[start:end]
        made: dict[str, Any] = {"label": label}
        if argument.documentation:
            made["documentation"] = markup(argument.documentation, formats)
        parameters.append(made)
    plain: dict[str, Any] = {"label": found.label, "parameters": parameters}
    if found.documentation:
        plain["documentation"] = markup(found.documentation, formats)
    return plain


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
