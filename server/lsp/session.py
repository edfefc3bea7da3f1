"""One client's session: lifecycle, routing, and the methods that must be fast.

Two lanes. This one answers what editors ask at every keystroke (sync, diagnostics, completion) from msgspec structs, on the
main thread, in order. Every other verb goes to the framework lane (``framework.py``: pygls and lsprotocol on a thread of
their own), which is imported only when the first such message comes; it sees documents as frozen values, so it never
waits for a keystroke nor makes one wait.

Faults of pygls 2.1 that the split cures, each shown in ``tests/lsp/test_lifecycle.py``: requests before ``initialize``
(-32002), after ``shutdown`` and a second ``initialize`` (-32600), parameters of a wrong shape (-32602) and bodies that are no
JSON (-32700) all get their error; every request gets exactly one answer; ``exit`` ends the process at once, with 1 when no
``shutdown`` came before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

import tamis
from tamis.protocols.positions import PositionEncoding
from tamis.server.lsp import completion, diagnostics
from tamis.server.lsp.capabilities import FRAMEWORK_METHODS, server_capabilities
from tamis.server.lsp.documents import Document, choose_encoding, path_of
from tamis.server.lsp.envelope import Envelope, MessageId, decode_envelope, decode_params
from tamis.server.lsp.structs import (
    CancelParams,
    CompletionParams,
    DidChangeConfigurationParams,
    DidChangeFoldersParams,
    DidChangeParams,
    DidChangeWatchedFilesParams,
    DidOpenParams,
    DocumentDiagnosticParams,
    DocumentParams,
    InitializeParams,
)
from tamis.server.lsp.workspace import Root, Workspace
from tamis.server.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    SERVER_NOT_INITIALIZED,
    RpcError,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)

if TYPE_CHECKING:
    from tamis.server.lsp.framework import Framework

WATCHED = ("**/*.tool.json", "**/tamis.toml", "**/agent_profile.json")
WATCHED_SCRIPTS = "**/*.{py,js,mjs,cjs,ts,tsx}"
_CREATED_AND_DELETED = 5


class Session:
    """The state of one session; ``send`` writes one encoded message, ``post`` runs a function on this lane later."""

    def __init__(
        self, send: Callable[[bytes], None], post: Callable[[Callable[[], None]], None], argv_root: str | None = None
    ) -> None:
        self._send = send
        self._post = post
        self._argv_root = argv_root
        self._framework: Framework | None = None
        self._next_id = 0
        self._shutdown = False
        self._loading = 0
        self.exit_code: int | None = None
        self.initialize: InitializeParams | None = None
        self.encoding: PositionEncoding = choose_encoding(None)
        self.workspace = Workspace()
        self.documents: dict[str, Document] = {}
        self.diagnostics = diagnostics.Publisher(self)

    # Messages

    def receive(self, bodies: list[bytes | RpcError]) -> None:
        """Handles what arrived together; a request whose cancellation is among it is not begun."""
        messages: list[Envelope] = []
        cancelled: set[MessageId] = set()
        for body in bodies:
            try:
                if isinstance(body, RpcError):
                    raise body
                message = decode_envelope(body)
            except RpcError as error:
                self.fail(None, error)
                continue
            messages.append(message)
            if message.method == "$/cancelRequest":
                try:
                    cancelled.add(_params(message.params, CancelParams).id)
                except (msgspec.ValidationError, RpcError):
                    continue
        for message in messages:
            if self.exit_code is not None:
                return
            self._handle(message, cancelled)

    def _handle(self, message: Envelope, cancelled: set[MessageId]) -> None:
        kind = message.kind
        if kind == "request":
            assert message.id is not UNSET
            assert message.method is not UNSET
            if message.id in cancelled:
                self.fail(message.id, RpcError(REQUEST_CANCELLED, "Cancelled"))
            else:
                self._request(message.id, message.method, message)
        elif kind == "notification":
            assert message.method is not UNSET
            self._notification(message.method, message)
        elif kind == "response":
            if self._framework is not None and isinstance(message.id, str):
                self._framework.receive(message)
        else:
            self.fail(None, RpcError(INVALID_REQUEST, "A message needs a method or an id"))

    def _request(self, request_id: MessageId | None, method: str, message: Envelope) -> None:
        if self._shutdown:
            self.fail(request_id, RpcError(INVALID_REQUEST, f"'{method}' after shutdown; only 'exit' may follow"))
        elif self.initialize is None and method != "initialize":
            self.fail(request_id, RpcError(SERVER_NOT_INITIALIZED, f"'{method}' before 'initialize'"))
        elif method in _REQUESTS:
            params_type, handler = _REQUESTS[method]
            try:
                params = _params(message.params, params_type)
                body = encode_result(request_id, handler(self, params))
            except RpcError as refusal:
                self.fail(request_id, refusal)
            except msgspec.ValidationError as error:
                self.fail(request_id, RpcError(INVALID_PARAMS, f"Parameters of '{method}': {error}"))
            except Exception as error:  # one bad request never ends the session
                self.fail(request_id, RpcError(INTERNAL_ERROR, f"'{method}' failed: {error!r}"))
                report_failure(method)
            else:
                self._send(body)
        elif method in FRAMEWORK_METHODS:
            self.framework.receive(message)
        else:
            self.fail(request_id, RpcError(METHOD_NOT_FOUND, f"No method '{method}'"))

    def _notification(self, method: str, message: Envelope) -> None:
        if method == "exit":
            self.exit_code = 0 if self._shutdown else 1
            return
        if self.initialize is None or self._shutdown:
            return
        if method == "$/cancelRequest":
            if self._framework is not None:
                self._framework.receive(message)
            return
        found = _NOTIFICATIONS.get(method)
        if found is None:
            return
        params_type, handler = found
        try:
            handler(self, _params(message.params, params_type))
        except (msgspec.ValidationError, RpcError) as error:
            self.log(f"Parameters of '{method}' were not understood: {error}")
        except Exception:  # a notification has no answer that could carry the error
            report_failure(method)

    def fail(self, request_id: MessageId | None, error: RpcError) -> None:
        """Answers a request, or a message that is none (id null), with an error."""
        self._send(encode_error(request_id, error))

    def notify(self, method: str, params: object) -> None:
        """Sends a notification."""
        self._send(encode_notification(method, params))

    def ask(self, method: str, params: object) -> None:
        """Sends a request whose answer changes nothing here."""
        self._next_id += 1
        self._send(encode_request(self._next_id, method, params))

    def log(self, message: str) -> None:
        """A line for the client's log, as a warning."""
        self.notify("window/logMessage", {"type": 2, "message": message})

    def can(self, path: str) -> bool:
        """Whether the client declares a capability, by its dotted path."""
        # An empty object declares a capability as well as a filled one.
        return self.capability(path) not in (None, False)

    def capability(self, path: str) -> Any:
        """The client's capability at a dotted path, or None."""
        here: Any = self.initialize.capabilities if self.initialize else {}
        for name in path.split("."):
            here = cast("dict[str, Any]", here).get(name) if isinstance(here, dict) else None
        return here

    @property
    def framework(self) -> Framework:
        """The framework lane; started on first use."""
        if self._framework is None:
            from tamis.server.lsp.framework import Framework

            assert self.initialize is not None
            self._framework = Framework(self, self._send)
        return self._framework

    # Lifecycle

    def on_initialize(self, params: InitializeParams) -> dict[str, Any]:
        """Takes the client's offer; nothing is read from disk before the answer."""
        if self.initialize is not None:
            raise RpcError(INVALID_REQUEST, "'initialize' was already answered")
        self.initialize = params
        self.encoding = choose_encoding(self.capability("general.positionEncodings"))
        options: Any = params.initialization_options
        given = cast("dict[str, Any]", options) if isinstance(options, dict) else {}
        self.workspace.configure(self._folders(params), given)
        return {
            "capabilities": server_capabilities(self),
            "serverInfo": {"name": "tamis", "version": tamis.__version__},
        }

    def _folders(self, params: InitializeParams) -> list[str]:
        if self._argv_root is not None:
            return [self._argv_root]
        uris = [folder.uri for folder in params.workspace_folders or ()]
        if not uris and params.root_uri:
            uris = [params.root_uri]
        paths = [path.rstrip("/") or "/" for uri in uris if (path := path_of(uri))]
        return paths or ([params.root_path] if params.root_path else [])

    def on_initialized(self, _params: object) -> None:
        """Begins to load the folders and asks the client to watch the files that matter."""
        self._load(self.workspace.roots)
        if self.can("workspace.didChangeWatchedFiles.dynamicRegistration"):
            watchers: list[dict[str, Any]] = [{"globPattern": pattern} for pattern in WATCHED]
            # Whether a script is there matters, not what it says.
            watchers.append({"globPattern": WATCHED_SCRIPTS, "kind": _CREATED_AND_DELETED})
            registration = {
                "id": "tamis-watch",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": {"watchers": watchers},
            }
            self.ask("client/registerCapability", {"registrations": [registration]})

    def on_shutdown(self, _params: object) -> None:
        """Promises that only ``exit`` follows."""
        self._shutdown = True

    def _loaded(self, root: Root) -> None:
        """A folder's tools are there, or there anew: what was said without them is said again."""
        for document in self.documents.values():
            if (
                document.kind == "manifest"
                and document.path is not None
                and root is self.workspace.root_of(document.path)
            ):
                root.show(document.path, document.text)
        if root.settings is not None:
            for problem in root.settings.problems:
                self.log(problem)
        self.diagnostics.refresh(self.documents.values())
        self._loading -= 1
        self._tell_status()

    def _load(self, roots: Sequence[Root]) -> None:
        self._loading += len(roots)
        self._tell_status()
        self.workspace.load_behind(lambda root: self._post(lambda: self._loaded(root)), roots)

    def _tell_status(self) -> None:
        """``experimental/serverStatus`` as rust-analyzer has it, for clients that ask for it."""
        if not self.can("experimental.serverStatusNotification"):
            return
        tools, problems = 0, 0
        for root in self.workspace.roots:
            if (registry := root.registry) is not None:
                tools += len(registry.tools)
                problems += len(registry.errors) + len(registry.conflicts)
        message = f"tools: {tools}" + (f", problems with manifests: {problems}" if problems else "")
        status = {"health": "warning" if problems else "ok", "quiescent": self._loading == 0, "message": message}
        self.notify("experimental/serverStatus", status)

    def end_of_input(self) -> int:
        """The exit code when the client closes the stream."""
        return 0 if self._shutdown else 1

    # Documents

    def on_open(self, params: DidOpenParams) -> None:
        """A document was opened."""
        item = params.text_document
        self._put(Document(item.uri, item.language_id, item.version, item.text, self.encoding))

    def on_change(self, params: DidChangeParams) -> None:
        """A document was edited."""
        document = self.documents.get(params.text_document.uri)
        if document is not None:
            self._put(document.changed(params.content_changes, params.text_document.version))

    def _put(self, document: Document) -> None:
        self.documents[document.uri] = document
        self.diagnostics.changed(document)
        root = self.workspace.root_of(document.path)
        if (
            document.kind == "manifest"
            and root is not None
            and document.path is not None
            and root.loaded.is_set()
            and root.contains(document.path)
            and root.show(document.path, document.text)
        ):
            self.diagnostics.refresh(other for other in self.documents.values() if other.kind != "manifest")

    def on_close(self, params: DocumentParams) -> None:
        """A document was closed: its pushed findings are withdrawn."""
        document = self.documents.pop(params.text_document.uri, None)
        if document is None:
            return
        self.diagnostics.closed(document)
        self.workspace.forget(document)
        root = self.workspace.root_of(document.path)
        if root is not None and document.path is not None and root.hide(document.path):
            self.diagnostics.refresh(self.documents.values())

    def on_save(self, params: DocumentParams) -> None:
        """A document was saved: clients without file watching learn of new tools this way."""
        document = self.documents.get(params.text_document.uri)
        if document is not None and document.kind != "text":
            self._reload([document.path])

    def on_watched(self, params: DidChangeWatchedFilesParams) -> None:
        """Files changed on disk: the folders that hold them are loaded again."""
        self._reload([path_of(change.uri) for change in params.changes])

    def on_configuration(self, params: DidChangeConfigurationParams) -> None:
        """The client's settings changed."""
        self.workspace.change_settings(params.settings)
        self._reload(None)

    def on_folders(self, params: DidChangeFoldersParams) -> None:
        """Folders were added or removed."""
        for folder in params.event.removed:
            if path := path_of(folder.uri):
                self.workspace.remove(path.rstrip("/"))
        added = [self.workspace.add(path.rstrip("/")) for folder in params.event.added if (path := path_of(folder.uri))]
        self._load(added)
        self.diagnostics.refresh(self.documents.values())

    def _reload(self, paths: list[str | None] | None) -> None:
        self.workspace.forget_facts()
        roots = self.workspace.roots
        if paths is not None:
            roots = tuple(root for root in roots if any(path and root.contains(path) for path in paths))
        self._load(roots)


def report_failure(method: str) -> None:
    """Writes the failure at hand to standard error, where clients show a server's log."""
    import traceback

    print(f"tamis: '{method}' failed", file=sys.stderr)  # noqa: T201
    traceback.print_exc(file=sys.stderr)


def _params(raw: Raw | UnsetType, kind: type[Any]) -> Any:
    if kind is object:
        return None
    return decode_params(raw, kind)


_Handler = Callable[[Session, Any], Any]

_REQUESTS: dict[str, tuple[type[Any], _Handler]] = {
    "initialize": (InitializeParams, Session.on_initialize),
    "shutdown": (object, Session.on_shutdown),
    "textDocument/completion": (CompletionParams, completion.complete),
    "textDocument/diagnostic": (DocumentDiagnosticParams, diagnostics.pull),
}

_NOTIFICATIONS: dict[str, tuple[type[Any], _Handler]] = {
    "initialized": (object, Session.on_initialized),
    "textDocument/didOpen": (DidOpenParams, Session.on_open),
    "textDocument/didChange": (DidChangeParams, Session.on_change),
    "textDocument/didClose": (DocumentParams, Session.on_close),
    "textDocument/didSave": (DocumentParams, Session.on_save),
    "workspace/didChangeWatchedFiles": (DidChangeWatchedFilesParams, Session.on_watched),
    "workspace/didChangeConfiguration": (DidChangeConfigurationParams, Session.on_configuration),
    "workspace/didChangeWorkspaceFolders": (DidChangeFoldersParams, Session.on_folders),
}
