"""The life of a session: what is agreed in ``initialize``, what is begun after it, settings, traces, and what is told of the state.

Nothing is read from disk before ``initialize`` is answered. Must not know documents' contents.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, cast

import tamis
from tamis.server.lsp.client_settings import read_options
from tamis.server.lsp.documents import choose_encoding, path_of
from tamis.server.lsp.structs import DidChangeConfigurationParams, InitializeParams, SetTraceParams
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace import watching
from tamis.server.lsp.workspace.watching import load
from tamis.server.runtime.settings.loading import trust_notice
from tamis.server.wire.jsonrpc import INVALID_REQUEST, RpcError

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session

SECTION = "tamis"


def initialize(session: Session, params: InitializeParams) -> dict[str, Any]:
    """Takes the client's offer; nothing is read from disk before the answer."""
    if session.initialize is not None:
        raise RpcError(INVALID_REQUEST, "'initialize' was already answered")
    session.initialize = params
    session.trace.level = params.trace or "off"
    if speaks_chinese(params.locale):
        # Only then: who is told everything in English pays nothing for it.
        from tamis.server.lsp.words import chinese

        session.words = chinese()
    session.encoding = choose_encoding(session.capability("general.positionEncodings"))
    options: Any = params.initialization_options
    members = cast("dict[str, Any]", options) if isinstance(options, dict) else {}
    folders = _folders(session, params)
    settings: Any = members.get("settings")
    roots = read_options(members).roots if isinstance(settings, dict) and session.argv_root is None else ()
    # `roots` of the editor's settings name folders of the workspace, or any by an absolute path
    chosen = [os.path.normpath(os.path.join(folder, root)) for root in roots for folder in folders or ["/"]]
    session.workspace.configure(list(dict.fromkeys(chosen)) or folders, members)
    return {
        "capabilities": session.announce(),
        "serverInfo": {"name": "tamis", "version": tamis.__version__},
    }


def speaks_chinese(locale: str | None) -> bool:
    """Whether a locale is Chinese, of any script or region: there is one set of sentences, in simplified characters."""
    return locale is not None and re.split(r"[-_.@]", locale.strip(), maxsplit=1)[0].lower() == "zh"


def _folders(session: Session, params: InitializeParams) -> list[str]:
    if session.argv_root is not None:
        return [session.argv_root]
    uris = [folder.uri for folder in params.workspace_folders or ()]
    if not uris and params.root_uri:
        uris = [params.root_uri]
    paths = [path.rstrip("/") or "/" for uri in uris if (path := path_of(uri))]
    return paths or ([params.root_path] if params.root_path else [])


def initialized(session: Session, _params: object) -> None:
    """Begins to read the folders, asks the client for its settings and to watch the files that matter."""
    if session.begun:
        return
    session.begun = True
    registrations = watching.registrations(session)
    if session.can("workspace.didChangeConfiguration.dynamicRegistration"):
        registrations.append(
            {
                "id": "tamis-settings",
                "method": "workspace/didChangeConfiguration",
                "registerOptions": {"section": SECTION},
            }
        )
    if registrations:
        session.ask("client/registerCapability", {"registrations": registrations})
    if notice := trust_notice():
        session.log(notice)
    load(session, session.workspace.roots)
    pull_settings(session)


def shutdown(session: Session, _params: object) -> None:
    """Promises that only ``exit`` follows; what is held open is let go."""
    session.wake(everything=True)
    session.reports.end()
    session.ended = True


def set_trace(session: Session, params: SetTraceParams) -> None:
    """``$/setTrace``."""
    session.trace.level = params.value


# Settings


def pull_settings(session: Session) -> bool:
    """Asks the client for the section ``tamis``; False when it cannot be asked."""
    if not session.can("workspace.configuration"):
        return False

    def take(result: Any) -> None:
        sections = cast("list[Any]", result) if isinstance(result, list) else []
        # A client that never answers, or has nothing to say, must not keep the folders from being read.
        if (
            sections
            and isinstance(sections[0], dict)
            and session.workspace.change_settings(cast("object", sections[0]))
        ):
            load(session, session.workspace.roots)

    session.ask("workspace/configuration", {"items": [{"section": SECTION}]}, take)
    return True


def configuration(session: Session, params: DidChangeConfigurationParams) -> None:
    """The client's settings changed: they came along, or are to be asked for."""
    settings: object = params.settings
    # An empty object is what clients without settings send, and clients that are to be asked.
    if not settings and pull_settings(session):
        return
    if session.workspace.change_settings(settings):
        load(session, session.workspace.roots)


REQUESTS = (
    Verb(method="initialize", params=InitializeParams, handler=initialize, schedule="now"),
    Verb(method="shutdown", params=object, handler=shutdown, schedule="now"),
)
NOTIFICATIONS = (
    Verb(method="initialized", params=object, handler=initialized, schedule="now"),
    Verb(method="$/setTrace", params=SetTraceParams, handler=set_trace, schedule="now"),
    Verb(
        method="workspace/didChangeConfiguration",
        params=DidChangeConfigurationParams,
        handler=configuration,
        schedule="now",
    ),
)
