"""What runs a workflow's payload: the interface of engines (W17).

An engine gets a ``WorkflowExecutionPayload`` and a ``Run``: through that it has tools called, tells what its nodes do, and gives values early. Third
parties bring engines by entry point (``tamis.engines``). Must not know how any of them works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tamis.protocols.contract import ExecutionError, Status
from tamis.protocols.workflow.payload import Payload

if TYPE_CHECKING:
    from tamis.server.runtime.handlers.workflow.run import Run

BUILT_IN = "builtin"


class EngineError(Exception):
    """The engine cannot run the payload, or gave what is no result; the text says why."""

    def __init__(self, text: str, node_id: str = "", node_type: str = "") -> None:
        """``node_id``: the node that the engine names, where the payload has none of that id."""
        super().__init__(text)
        self.node_id = node_id
        self.node_type = node_type


class NodeFailed(Exception):  # noqa: N818 (an outcome, not a fault)
    """A node did not succeed, so the workflow does not."""

    def __init__(
        self,
        node_id: str,
        node_type: str,
        status: Status,
        error: ExecutionError | None,
        item: int | None = None,
        comment: str = "",
    ) -> None:
        """``comment``: what the person said who refused the node's call."""
        super().__init__(node_id)
        self.node_id = node_id
        self.node_type = node_type
        self.status: Status = status
        self.error = error
        self.item = item
        self.comment = comment


class Engine(Protocol):
    """Runs payloads."""

    async def run(self, payload: Payload, run: Run) -> dict[str, Any]:
        """The values of the payload's ``outputInterfaceMappings`` by name; one that was not taken is left out.

        Ends soon after ``run.stopping`` is set. Raises ``NodeFailed`` or ``EngineError``.
        """
        ...
