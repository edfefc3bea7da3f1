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
    signature = signature_at(session.workspace.snapshot(document, wait=0.5), offset_of(document, params.position))
    if signature is None:
        return None
    offsets = session.capability(f"{_INFORMATION}.parameterInformation.labelOffsetSupport") is True
    plain = _plain(signature, offsets, session.capability(f"{_INFORMATION}.documentationFormat"))
    active: dict[str, Any] = {}
    if signature.active is not None:
        active = {"activeParameter": signature.active}
    elif session.capability(f"{_INFORMATION}.noActiveParameterSupport") is True:
        active = {"activeParameter": None}
    if session.capability(f"{_INFORMATION}.activeParameterSupport") is True:
        plain |= active
    return {"signatures": [plain], "activeSignature": 0, **active}


def _plain(signature: Signature, offsets: bool, formats: Any) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = []
    for argument in signature.arguments:
        start, end = argument.span
        # Offsets into labels count UTF-16 units, whatever the positions count.
        label: Any = (
            [_utf16(signature.label[:start]), _utf16(signature.label[:end])] if offsets else signature.label[start:end]
        )
        members: dict[str, Any] = {"label": label}
        if argument.documentation:
            members["documentation"] = markup(argument.documentation, formats)
        parameters.append(members)
    plain: dict[str, Any] = {"label": signature.label, "parameters": parameters}
    if signature.documentation:
        plain["documentation"] = markup(signature.documentation, formats)
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
