"""``textDocument/signatureHelp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp.convert import markup
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import offset_of

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.analysis.hover.signature import Signature
    from tamis.server.lsp.session import Session

TRIGGERS = (":", "»", "始", "」", ">", "<", '"', "=")
RETRIGGERS = ("«", "末", ",", "_", "/")
_INFORMATION = "textDocument.signatureHelp.signatureInformation"


def signature_help(session: Session, params: types.SignatureHelpParams) -> dict[str, Any] | None:
    """The parameters of the call that is being typed."""
    from tamis.server.analysis.hover.signature import signature_at

    document = session.documents.get(params.text_document.uri)
    if document is None or document.kind != "text":
        return None
    found = signature_at(session.workspace.snapshot(document, wait=0.5), offset_of(document, params.position))
    if found is None:
        return None
    offsets = session.capability(f"{_INFORMATION}.parameterInformation.labelOffsetSupport") is True
    plain = _plain(found, offsets, session.capability(f"{_INFORMATION}.documentationFormat"))
    active: dict[str, Any] = {}
    if found.active is not None:
        active = {"activeParameter": found.active}
    elif session.capability(f"{_INFORMATION}.noActiveParameterSupport") is True:
        active = {"activeParameter": None}
    if session.capability(f"{_INFORMATION}.activeParameterSupport") is True:
        plain |= active
    return {"signatures": [plain], "activeSignature": 0, **active}


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


REQUESTS = (
    Verb(
        method="textDocument/signatureHelp",
        params="SignatureHelpParams",
        handler=signature_help,
        schedule="snapshot",
        capability={
            "signatureHelpProvider": {"triggerCharacters": list(TRIGGERS), "retriggerCharacters": list(RETRIGGERS)}
        },
    ),
)
