"""``experimental/discoverTest``, ``runTest`` and ``abortRunTest``: examples in an editor's test explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp.features.execute_command import commands_of
from tamis.server.lsp.verb import Verb

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session


def discover(session: Session, params: Any) -> Any:
    """The tests of a document or a folder."""
    return commands_of(session).tests.discover(params)


async def run(session: Session, params: Any) -> None:
    """Begins a run of tests, which is told of as it goes on."""
    commands_of(session).tests.run(params)


def abort(session: Session, _params: object) -> None:
    """Ends the tests that run."""
    session.abort_tests()


REQUESTS = (
    Verb(method="experimental/discoverTest", params=Any, handler=discover, schedule="snapshot"),
    Verb(method="experimental/runTest", params=Any, handler=run, schedule="background"),
)
NOTIFICATIONS = (Verb(method="experimental/abortRunTest", params=object, handler=abort, schedule="now"),)
