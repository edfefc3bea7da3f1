"""Services of the host (``service/register`` …) and the state that the host and its agents share (``state/get``, ``state/set``).
Holds no rules of its own."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tamis.protocols.contract import (
    RejectedMethod,
    ServiceList,
    ServiceMethods,
    ServiceRegistration,
    ServiceRemoval,
    StateValue,
    StateWritten,
)
from tamis.server.rpc.params import Empty, Group, Host, Params
from tamis.server.rpc.session import Request
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

MAX_PATHS = 10_000


class Register(Params, kw_only=True):
    """Params of ``service/register``."""

    service_name: str
    """The service's name; it stands in front of the ids of its tools."""
    methods: list[Any]
    """The methods (``MethodMetadata``): ``name``, ``description``, ``parameters``, ``agentCallable`` and the rest of the page on services."""


class Unregister(Params, kw_only=True):
    """Params of ``service/unregister``."""

    service_name: str
    """The service."""
    methods: list[str] | None = None
    """Only these of its methods; all of them without it."""


class StateGet(Params, kw_only=True):
    """Params of ``state/get``."""

    scope: Literal["world", "private"] = "world"
    """The state of the world, or that of one agent."""
    agent_id: str = ""
    """Whose private state; empty: that of calls without ``context.agentId``."""
    path: str = ""
    """Where to look, with dots between names; empty: the whole."""


class StateSet(Params, kw_only=True):
    """Params of ``state/set``."""

    scope: Literal["world", "private"] = "world"
    """The state of the world, or that of one agent."""
    agent_id: str = ""
    """Whose private state; empty: that of calls without ``context.agentId``."""
    values: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """What to put at which path; objects on the way are made. The path ``""`` replaces the whole, by an object."""
    remove: list[str] = msgspec.field(default_factory=list[str])
    """Paths at which nothing stands afterwards; they are removed first."""


def methods(host: Host) -> Group:
    """The methods of this group."""

    def register(_request: Request, params: Register) -> ServiceRegistration:
        """Registers a service of the host: the daemon calls its methods with `service/invoke`. A service that is there is replaced."""
        from tamis.server.runtime.tools.method_metadata import Refused

        runtime = host.runtime
        # What is there now is read first, so that the host is told of the difference.
        _ = runtime.registry
        try:
            registration = runtime.parts.host_services.register(params.service_name, params.methods)
        except Refused as refused:
            raise RpcError(INVALID_PARAMS, f"wrong params: {refused}") from None
        if registration.changed:
            runtime.services_changed()
        names = {method.name: method.manifest.tool_id for method in registration.registered}
        return ServiceRegistration(
            registered=list(names),
            rejected=[
                RejectedMethod(method_name=refusal.method_name, reason=refusal.reason)
                for refusal in registration.rejected
            ],
            tool_ids=names,
        )

    def unregister(_request: Request, params: Unregister) -> ServiceRemoval:
        """Takes a service of the host away, or some of its methods. Calls that run are not disturbed."""
        runtime = host.runtime
        gone = (
            runtime.parts.host_services.unregister(params.service_name, params.methods)
            if runtime.parts.has_host_services
            else []
        )
        if gone:
            runtime.services_changed()
        return ServiceRemoval(removed=gone)

    def listed(_request: Request, _params: Empty) -> ServiceList:
        """Lists the registered services."""
        parts = host.runtime.parts
        known = parts.host_services.names() if parts.has_host_services else {}
        return ServiceList(services=[ServiceMethods(service_name=name, methods=names) for name, names in known.items()])

    async def get(_request: Request, params: StateGet) -> StateValue:
        """Reads the world's state or an agent's private one."""
        from tamis.server.runtime.handlers.service.state import StateError, find

        try:
            position = find(await host.runtime.parts.states.read(_holder(params)), params.path)
        except StateError as error:
            raise RpcError(INVALID_PARAMS, f"wrong params: {error}") from None
        return StateValue(found=position.found, value=position.value)

    async def put(_request: Request, params: StateSet) -> StateWritten:
        """Changes the world's state, which `ReadWorldStateTool` reads, or an agent's private one. All of it is changed or nothing."""
        from tamis.server.runtime.handlers.service.state import StateError, put, remove

        if len(params.values) + len(params.remove) > MAX_PATHS:
            raise RpcError(INVALID_PARAMS, f"wrong params: at most {MAX_PATHS} paths are changed at once")

        def edit(document: dict[str, Any]) -> list[str]:
            removed = [path for path in params.remove if remove(document, path)]
            for path, value in params.values.items():
                put(document, path, value)
            return removed

        try:
            return StateWritten(removed=await host.runtime.parts.states.change(_holder(params), edit))
        except StateError as error:
            raise RpcError(INVALID_PARAMS, f"wrong params: {error}") from None

    return {
        "service/register": (Register, register),
        "service/unregister": (Unregister, unregister),
        "service/list": (Empty, listed),
        "state/get": (StateGet, get),
        "state/set": (StateSet, put),
    }


def _holder(params: StateGet | StateSet) -> str:
    from tamis.server.runtime.handlers.service.state import WORLD, private_to

    return WORLD if params.scope == "world" else private_to(params.agent_id)
