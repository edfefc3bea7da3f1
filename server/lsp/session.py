"""One client's session: its state, and where each message goes.

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

import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Raw, UnsetType

from tamis.protocols.positions import PositionEncoding
from tamis.server.analysis.kinds import KINDS
from tamis.server.lsp import diagnostics
from tamis.server.lsp.documents import Document, choose_encoding
from tamis.server.lsp.envelope import Asked, Envelope, MessageId, decode_envelope, decode_params
from tamis.server.lsp.features.pull_diagnostics import Reports
from tamis.server.lsp.lane import Lane
from tamis.server.lsp.pending import HELD, MAX_PENDING, Pending, Waiting
from tamis.server.lsp.structs import CancelParams, InitializeParams
from tamis.server.lsp.table import NOTIFICATIONS, REQUESTS, server_capabilities
from tamis.server.lsp.trace import Log, Trace, report_failure
from tamis.server.lsp.workspace import watching
from tamis.server.lsp.workspace.scanning import Scanner
from tamis.server.lsp.workspace.workspace import Workspace
from tamis.server.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    SERVER_NOT_INITIALIZED,
    RpcError,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)

if TYPE_CHECKING:
    from tamis.server.lsp.running.runs import Runs
    from tamis.server.lsp.words import Words
    from tamis.server.lsp.workspace.roots import Root
    from tamis.server.runtime.tools.registry import Registry

T = TypeVar("T")
REQUEST_FAILED = -32803
_DROPPABLE = frozenset({"window/logMessage", "$/logTrace", "telemetry/event"})
_REFRESHES = (
    ("codeLensProvider", "workspace.codeLens.refreshSupport", "workspace/codeLens/refresh"),
    ("inlayHintProvider", "workspace.inlayHint.refreshSupport", "workspace/inlayHint/refresh"),
    ("semanticTokensProvider", "workspace.semanticTokens.refreshSupport", "workspace/semanticTokens/refresh"),
)


class Send(Protocol):
    """Writes one encoded message. One with a ``key`` replaces a waiting one with the same; a ``droppable`` one may be dropped."""

    def __call__(self, body: bytes, *, key: Hashable = None, droppable: bool = False) -> object:
        """Any thread."""
        ...


class Session:
    """The state of one session; ``send`` writes one encoded message, ``post`` runs a function on this lane later."""

    def __init__(
        self,
        send: Send,
        post: Callable[[Callable[[], None]], None],
        argv_root: str | None = None,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._send = send
        self._post = post
        self.argv_root = argv_root
        self._framework: Lane | None = None
        self._asked = Asked()
        self._cancelled: set[MessageId] = set()
        self._waiting = Waiting(self)
        self.begun = False
        self.ended = False
        self.loading = False
        self._warmed = False
        self.exit_code: int | None = None
        self.initialize: InitializeParams | None = None
        self.announced: dict[str, Any] = {}
        self.status: dict[str, Any] = {}
        self.encoding: PositionEncoding = choose_encoding(None)
        self.words: Words | None = None
        """What texts are said with that are sent; None: as they are worded, in English."""
        self.workspace = Workspace()
        self.documents: dict[str, Document] = {}
        self._states: dict[Callable[[Session], Any], Any] = {}
        self._known: WeakKeyDictionary[Root, Registry | None] = WeakKeyDictionary()
        self.pending = Pending()
        self.finishing: dict[MessageId, Callable[[], None]] = {}
        """Requests that give their normal result when they are cancelled, and how they are told; any thread."""
        self._runs: Runs | None = None
        self._runs_lock = threading.Lock()
        self.trace = Trace(self.notify)
        self._log = Log(self.notify)
        self.diagnostics = diagnostics.Publisher(self)
        self.reports = Reports(self)
        self.scanner = Scanner(
            self.workspace,
            loaded=lambda root: post(lambda: watching.loaded(self, root)),
            changed=lambda change: post(lambda: watching.changed(self, change)),
            idle=lambda: post(lambda: watching.idle(self)),
            say=lambda message: post(lambda: self.log(message)),
            busy=busy,
            hold=lambda: self.diagnostics.owes_first(list(self.documents.values())),
        )

    # Messages

    def foresee(self, bodies: list[bytes | RpcError]) -> None:
        """Looks for cancellations among what has just arrived, so that what they cancel is not begun; the reader's thread."""
        for body in bodies:
            if isinstance(body, bytes) and len(body) < 400 and b'"$/cancelRequest"' in body:
                try:
                    message = decode_envelope(body)
                    if message.method == "$/cancelRequest":
                        self._cancelled.add(_params(message.params, CancelParams).id)
                except (msgspec.ValidationError, RpcError):
                    continue

    def receive(self, bodies: list[bytes | RpcError]) -> None:
        """Handles messages in order."""
        for body in bodies:
            if self.exit_code is not None:
                return
            try:
                if isinstance(body, RpcError):
                    raise body
                message = decode_envelope(body)
            except RpcError as error:
                self.fail(None, error)
                continue
            try:
                self._handle(message)
            except Exception as error:  # one message never costs those behind it
                report_failure("a message")
                if message.kind == "request" and isinstance(message.id, (int, str)):
                    self.fail(message.id, RpcError(INTERNAL_ERROR, repr(error)))

    def _handle(self, message: Envelope) -> None:
        kind = message.kind
        if self.trace.level != "off":
            self.trace.received(message)
        if kind == "request":
            assert message.id is not UNSET
            assert message.method is not UNSET
            if message.id is None:
                self.fail(None, RpcError(INVALID_REQUEST, "The id of a request is a number or a text, not null"))
            elif message.id in self._cancelled:
                self.fail(message.id, RpcError(REQUEST_CANCELLED, "Cancelled"))
            else:
                self._request(message.id, message.method, message)
        elif kind == "notification":
            assert message.method is not UNSET
            self._notification(message.method, message)
        elif kind == "response":
            self._response(message)
        else:
            self.fail(None, RpcError(INVALID_REQUEST, "A message needs a method or an id"))

    def _request(self, request_id: MessageId, method: str, message: Envelope) -> None:
        if self.ended:
            self.fail(request_id, RpcError(INVALID_REQUEST, f"'{method}' after shutdown; only 'exit' may follow"))
        elif self.initialize is None and method != "initialize":
            self.fail(request_id, RpcError(SERVER_NOT_INITIALIZED, f"'{method}' before 'initialize'"))
        elif (verb := REQUESTS.get(method)) is None:
            from tamis.server.rpc.session import no_method

            self.fail(request_id, no_method(method, REQUESTS))
        elif verb.schedule == "now":
            if self._waiting.postponed(request_id, verb, message):
                return
            began = time.perf_counter()
            try:
                result = verb.handle(self, _params(message.params, verb.params), request_id)
                if result is HELD:
                    return
                if self.words is not None:
                    result = self.words.answered(method, result)
                body = encode_result(request_id, result)
            except RpcError as refusal:
                self.fail(request_id, refusal)
            except msgspec.ValidationError as error:
                text = (
                    str(error).replace("`str`", "`string`").replace("`int`", "`integer`").replace("`bool`", "`boolean`")
                )
                self.fail(request_id, RpcError(INVALID_PARAMS, f"Parameters of '{method}': {text}"))
            except Exception as error:  # one bad request never ends the session
                self.fail(request_id, RpcError(INTERNAL_ERROR, f"'{method}' failed: {error!r}"))
                report_failure(f"'{method}'")
            else:
                self._send(body)
                self.trace.sent(request_id, "result", began)
        elif len(self.pending) >= MAX_PENDING:
            self.fail(request_id, RpcError(REQUEST_FAILED, f"{MAX_PENDING} requests wait already"))
        elif self.pending.begin(request_id, message.params, self.documents):
            self.framework.receive(message)
        else:
            self.fail(request_id, RpcError(INVALID_REQUEST, f"A request with the id {request_id!r} is under way"))

    def _notification(self, method: str, message: Envelope) -> None:
        if method == "exit":
            self.exit_code = 0 if self.ended else 1
            return
        if method == "$/cancelRequest":
            self._cancel(message)
            return
        if self.initialize is None or self.ended:
            return
        verb = NOTIFICATIONS.get(method)
        if verb is None:
            return
        try:
            verb.handle(self, _params(message.params, verb.params), None)
        except (msgspec.ValidationError, RpcError) as error:
            self.log(f"Parameters of '{method}' were not understood: {error}")
        except Exception:  # a notification has no answer that could carry the error
            report_failure(f"'{method}'")

    @property
    def due(self) -> float | None:
        """When something has waited long enough for tools (monotonic seconds)."""
        moments = self._waiting.due
        if (push := self.diagnostics.due) is not None:
            moments.append(push)
        return min(moments, default=None)

    def wake(self, *, everything: bool = False) -> None:
        """Answers what has waited long enough, or whose tools are there."""
        for request_id, message in self._waiting.ready(everything=everything):
            assert message.method is not UNSET
            self._request(request_id, message.method, message)
        self.diagnostics.wake()

    def rest(self) -> None:
        """Nothing has come for a while: what the next keystroke would pay for is done now."""
        self.workspace.let_go()
        if not self._warmed and self.documents:
            self._warmed = True
            # Beside the session: whoever types meanwhile is not held up.
            threading.Thread(target=import_for_edits, name="tamis-warm", daemon=True).start()

    def _cancel(self, message: Envelope) -> None:
        """A request is answered at once, whether it waits or runs; one that was answered stays as it is."""
        try:
            identity: MessageId = _params(message.params, CancelParams).id
        except (msgspec.ValidationError, RpcError):
            return
        self._cancelled.discard(identity)
        if (finish := self.finishing.get(identity)) is not None:
            finish()
        elif self.pending.take(identity) is not None:
            self.fail(identity, RpcError(REQUEST_CANCELLED, "Cancelled"))
            self.framework.cancel(identity)
        elif self._waiting.forget(identity):
            self.fail(identity, RpcError(REQUEST_CANCELLED, "Cancelled"))
        else:
            self.reports.cancel(identity)

    def _response(self, message: Envelope) -> None:
        """The client's answer to a request of either lane; one to an unknown id is nobody's."""
        if isinstance(message.id, str):
            if self._framework is not None:
                self._framework.receive(message)
            return
        self._asked.answered(message)

    def fail(self, request_id: MessageId | None, error: RpcError) -> None:
        """Answers a request, or a message that is none (id null), with an error."""
        if self.words is not None:
            error = self.words.refused(error)
        self._send(encode_error(request_id, error))

    def answer(self, request_id: MessageId, method: str, result: object) -> None:
        """Answers a request that was held."""
        if self.words is not None:
            result = self.words.answered(method, result)
        self._send(encode_result(request_id, result))

    def notify(self, method: str, params: object, *, key: Hashable = None) -> None:
        """Sends a notification; ``key`` names the state that it tells, of which only the last matters."""
        if self.words is not None:
            params = self.words.sent(method, params)
        self._send(encode_notification(method, params), key=key, droppable=method in _DROPPABLE)

    def ask(self, method: str, params: object, then: Callable[[Any], None] | None = None) -> None:
        """Sends a request; ``then`` gets the result, None for an error, on this lane."""
        if self.words is not None:
            params = self.words.sent(method, params)
        self._send(encode_request(self._asked.begin(then), method, params))

    def log(self, message: str, level: int = 2) -> None:
        """A line for the client's log, as a warning if nothing else is said; bounded in length and number."""
        self._log.say(message, level)

    def post(self, work: Callable[[], None]) -> None:
        """Runs something on this lane; from any thread."""
        self._post(work)

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

    def announce(self) -> dict[str, Any]:
        """What the server can do for this client, which is agreed from now on."""
        self.announced = server_capabilities(self)
        return self.announced

    def state(self, kind: Callable[[Session], T]) -> T:
        """What a verb keeps in this session, made when it is first asked for. Each kind is for the verbs of one lane."""
        state = self._states.get(kind)
        if state is None:
            state = self._states[kind] = kind(self)
        return state

    @property
    def framework(self) -> Lane:
        """The framework lane; started on first use."""
        if self._framework is None:
            self._framework = Lane(self, self._send)
        return self._framework

    @property
    def runs(self) -> Runs:
        """What was run from the editor; any thread."""
        with self._runs_lock:
            if self._runs is None:
                from tamis.server.lsp.running.runs import Runs

                self._runs = Runs()
            return self._runs

    def has_runs(self, uri: str) -> bool:
        """Whether a document has results of runs; costs nothing while nothing was run."""
        return self._runs is not None and self._runs.has(uri)

    def run_ended(self, uri: str) -> None:
        """What is known of a document's runs is different: its findings are said anew."""
        document = self.documents.get(uri)
        if document is not None:
            self.diagnostics.refresh([document])
            self.reports.changed()

    def abort_tests(self) -> None:
        """Ends the tests that run."""
        if self._framework is not None:
            self._framework.abort_tests()

    def cancel_progress(self, token: int | str) -> None:
        """Ends the work that a progress tells of."""
        if self._framework is not None:
            self._framework.cancel_progress(token)

    def close(self) -> None:
        """Ends what still runs, within a bounded time."""
        if self._framework is not None:
            self._framework.close()

    def end_of_input(self) -> int:
        """The exit code when the client closes the stream."""
        return 0 if self.ended else 1

    # What changes for other documents

    def tools_changed(self) -> None:
        """What is known of tools is different: everything said with it is said anew."""
        self.diagnostics.refresh(self.documents.values())
        self.reports.changed()
        if self._framework is not None:
            self._framework.tools_changed()
        self._owe_refreshes()

    def texts_changed(self) -> None:
        """Texts on disk are others: what is listed of them is listed anew."""
        if self._framework is not None:
            self._framework.texts_changed()

    def files_changed(self) -> None:
        """A workflow may have come or gone that a profile lists or another workflow names."""
        self.diagnostics.refresh(
            document for document in self.documents.values() if KINDS[document.kind].names_workflows
        )

    def _owe_refreshes(self) -> None:
        """The client is to ask again for what it shows of tools beside their findings."""
        if self.initialize is None:
            return
        for provider, support, method in _REFRESHES:
            if self.can(support) and provider in self.announced:
                self.diagnostics.owe(method)

    def manifest_edited(self, root: Root) -> None:
        """A manifest was edited: other documents are only concerned when its tool is another one now."""
        registry = root.registry
        before, self._known[root] = self._known.get(root), registry
        if registry is not before:
            self.diagnostics.refresh(self.documents.values())
            self.reports.changed()
            if self._framework is not None:
                self._framework.tools_changed(edited=True)
            self._owe_refreshes()
        elif registry is not None and registry.conflicts:
            # The other file of a duplicate id says where this one has it.
            self.diagnostics.refresh(document for document in self.documents.values() if document.kind == "manifest")

    @property
    def client_watches(self) -> bool:
        """Whether the client tells of changed files."""
        return self.can("workspace.didChangeWatchedFiles.dynamicRegistration")

    def poll_if_needed(self) -> None:
        """Looking for changes is off while nothing is open, and where the client does it."""
        self.scanner.poll(bool(self.documents) and not self.client_watches)


def import_for_edits() -> None:
    """Imports what the first edit of a document, and the first wrong value in one, have to have."""
    with suppress(ImportError):
        import_module("tamis.protocols.jsontext.edit")
        from tamis.protocols.schema.errors import make_validator

        make_validator({})


def _params(raw: Raw | UnsetType, kind: type[Any]) -> Any:
    return None if kind is object else decode_params(raw, kind)
