"""A runtime with workflow files and a host whose methods are Python functions, for tests of workflows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tamis.protocols.contract import ExecutionResult, WorkflowStep
from tests.runtime.service_world import Served

ANY: dict[str, Any] = {"type": "object"}


def edge(source: str, target: str) -> dict[str, str]:
    """An edge, both ends as ``node.slot``."""
    a, b = source.split("."), target.split(".")
    return {"source": a[0], "sourceHandle": a[1], "target": b[0], "targetHandle": b[1]}


def flow(
    nodes: list[dict[str, Any]],
    edges: list[dict[str, str]] | None = None,
    outputs: dict[str, str] | None = None,
    inputs: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A workflow file; ``outputs`` map names to ``node.slot``, ``inputs`` names to types or slots."""
    slots = {
        name: {"dataFlowType": kind, "required": True} if isinstance(kind, str) else kind
        for name, kind in (inputs or {}).items()
    }
    places = {
        name: dict(zip(("nodeId", "slotKey"), place.split("."), strict=True)) for name, place in (outputs or {}).items()
    }
    return {
        "description": "A workflow of the tests.",
        "interfaceInputs": slots,
        "interfaceOutputs": {name: {"dataFlowType": "WILDCARD"} for name in places},
        "nodes": nodes,
        "edges": edges or [],
        "outputInterfaceMappings": places,
    } | more


class World(Served):
    """A runtime with these workflows and host methods; ``tools`` maps names to functions of the arguments."""

    def __init__(
        self,
        root: Path,
        flows: dict[str, Any],
        tools: dict[str, Callable[..., Any]] | None = None,
        **settings: Any,
    ) -> None:
        folder = root / "flows"
        folder.mkdir(exist_ok=True)
        for name, content in flows.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
        known = tools or {}
        super().__init__(root, lambda _service, name, args: known[name](args), workflows=["flows"], **settings)
        if known:
            self.register(
                "t",
                *(
                    {"name": name, "description": f"Does {name}.", "agentCallable": True, "parameters": ANY}
                    for name in known
                ),
            )

    async def traced(
        self, tool_id: str, args: dict[str, Any] | None = None, **more: Any
    ) -> tuple[ExecutionResult, list[WorkflowStep]]:
        """A call with the steps of its run."""
        self.runtime.parts.workflows.expect("call-1")
        result = await self.call(tool_id, args, **more)
        record = self.runtime.parts.workflows.take("call-1")
        return result, record.steps if record is not None else []

    def run_traced(
        self, tool_id: str, args: dict[str, Any] | None = None, **more: Any
    ) -> tuple[ExecutionResult, list[WorkflowStep]]:
        """``traced`` on a loop of its own."""

        async def work() -> tuple[ExecutionResult, list[WorkflowStep]]:
            try:
                return await self.traced(tool_id, args, **more)
            finally:
                await self.runtime.close()

        return asyncio.run(work())


def statuses(steps: list[WorkflowStep]) -> dict[str, str]:
    """The state of each node."""
    return {step.node_id: step.status for step in steps}
