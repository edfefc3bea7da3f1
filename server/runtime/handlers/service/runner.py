"""The runner of ``service-method`` handlers: Tamis's own methods here, those of the host by asking it (``service/invoke``).

A host may answer late, twice, never, with an error, or with something else than it promised: each is an outcome of the call. Must
not know how a host is reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ErrorType
from tamis.protocols.manifest.reading import ServiceMethod
from tamis.protocols.observation import plain
from tamis.server.runtime.calls.runner import HandlerServices, Invocation
from tamis.server.runtime.tools.builtin import is_own
from tamis.server.runtime.tools.registry import Tool

if TYPE_CHECKING:
    # a list of tools asks for their problems alone: what calls need is loaded with the first one
    from tamis.protocols.schema.plan import Plan
    from tamis.server.runtime.tools.host_services import HostMethod

Work = Callable[[Invocation], Awaitable[Any]]
MAX_ERROR_CHARS = 2_000
FACADE = "register a method whose flat parameters are those of the tool (a facade), or give the tool the parameters of the method"


class ServiceRunner:
    """Runs methods of services."""

    problem_type: ErrorType = "ServiceError"

    def problem(self, tool: Tool, services: HandlerServices) -> str:
        """Why the service cannot be called."""
        handler = tool.brief.handler
        assert isinstance(handler, ServiceMethod)
        service, method = handler.service_name, handler.method_name
        if is_own(service):
            return own_problem(tool, service, method, services)
        problem = services.host_services.problem(service, method)
        if problem or services.host is not None:
            return problem
        return f"the host of the service '{service}' has gone"

    async def run(self, call: Invocation) -> None:
        """Runs the method once."""
        outputs, running_calls = _of_calls()
        handler = call.tool.manifest.handler
        assert isinstance(handler, ServiceMethod)
        call.result.output, call.result.error = UNSET, UNSET
        own = own_method(handler.service_name, handler.method_name)
        if handler.parameter_mapping:
            names = handler.parameter_mapping
            call = msgspec.structs.replace(
                call, args={names.get(name, name): value for name, value in call.args.items()}
            )
        hosted = call.services.host_services.find(handler.service_name, handler.method_name) if own is None else None
        if own is not None:
            output = await running_calls.in_time(call, own(call))
        elif hosted is not None:
            output = await _invoked(call, hosted)
        else:
            # it was there when the call was let through: the host took it away while a person was asked, or between attempts
            raise outputs.failed("ServiceError", self.problem(call.tool, call.services))
        whose = f"{handler.service_name}.{handler.method_name}"
        outputs.take_output(call, output, whose, None if hosted is None else hosted.output_plan)


def own_problem(tool: Tool, service: str, method: str, services: HandlerServices) -> str:
    """Why one of Tamis's own methods cannot be called."""
    if (service, method) not in _OWN:
        return f"the service '{service}' of Tamis has no method '{method}'"
    if service == "File" and not tool.manifest.security_context.file_access.allow_write:
        return (
            "no folder may be written: name one under [resources] in tamis.toml, and open it with policy.writeRoots"
            if tool.origin == "builtin"
            else "the manifest asks for no folder to write to: name it in securityContext.fileAccess.allowWrite"
        )
    if service == "Events" and services.host is None:
        return "there is no host that could be told of an event"
    return ""


_OWN = {
    ("WorldState", "read"): "state.read_world",
    ("PrivateState", "read"): "state.read_private",
    ("PrivateState", "update"): "state.update_private",
    ("Events", "publish"): "clock.publish",
    ("File", "Write"): "files.write",
    ("File", "Append"): "files.append",
    ("File", "ApplyEdit"): "files.apply_edit",
    ("system", "get_current_time"): "clock.get_current_time",
    ("system", "task_status"): "clock.task_status",
}
"""Tamis's own methods: the module of this room and the function there, which is loaded with its first call."""


@lru_cache(maxsize=64)
def own_method(service: str, method: str) -> Callable[[Invocation], Awaitable[Any]] | None:
    """What runs the calls of an own method, or None: it gives the output, or raises ``Stopped``."""
    module, _, name = _OWN.get((service, method), "").partition(".")
    return getattr(import_module(f"tamis.server.runtime.handlers.service.{module}"), name) if module else None


@lru_cache(maxsize=1)
def _of_calls() -> tuple[ModuleType, ModuleType]:
    """What each call needs, loaded with the first one."""
    from tamis.server.runtime.calls import outputs, running_calls

    return outputs, running_calls


async def _invoked(call: Invocation, method: HostMethod) -> Any:
    from tamis.protocols.messages import ServiceCancel, ServiceInvoke
    from tamis.server.runtime.calls.model import HostError, Stopped
    from tamis.server.runtime.calls.outputs import failed
    from tamis.server.runtime.calls.running_calls import in_time

    host = call.services.host
    if host is None:
        raise failed("ServiceError", "the host of the service has gone")
    handler = method.manifest.handler
    assert isinstance(handler, ServiceMethod)
    args = adapted(call, method)
    invoke = ServiceInvoke(
        service_name=handler.service_name,
        method_name=handler.method_name,
        args=args,
        call_id=call.request.call_id,
        **({} if call.context.trace is None else call.context.trace.headers()),
    )
    try:
        return await in_time(call, host.ask("service/invoke", invoke))
    except HostError as error:
        text = f"{handler.service_name}.{handler.method_name} failed: {plain(str(error))[:MAX_ERROR_CHARS]}"
        raise failed("ServiceError", text) from None
    except (Stopped, asyncio.CancelledError) as end:
        # the host may still be at it: what it answers from now on is nobody's
        reason = "timeout" if isinstance(end, Stopped) and end.status == "timeout" else "cancelled"
        host.tell("service/cancel", ServiceCancel(call_id=call.request.call_id, reason=reason))
        raise


def adapted(call: Invocation, method: HostMethod) -> dict[str, Any]:
    """The arguments under the method's own names and types (V46). Raises ``Stopped`` for a method that cannot take them (V47)."""
    from tamis.protocols.check import to_problem, told
    from tamis.server.runtime.calls.outputs import failed

    if call.tool.manifest.parameters == method.manifest.parameters:
        return call.args  # as both check them; nothing can be mapped between equal names
    args = _renamed(call.args, method.plan)
    outcome = method.plan.check(args)
    if outcome.valid and isinstance(outcome.coerced, dict):
        return outcome.coerced
    problems = [to_problem(finding) for finding in outcome.errors]
    text = told(problems[:8])
    handler = method.manifest.handler
    assert isinstance(handler, ServiceMethod)
    raise failed(
        "ServiceError",
        f"the arguments do not fit the method {handler.service_name}.{handler.method_name}: {text}; {FACADE}",
        errors=problems,
        code="incompatibleSignature",
    )


def _renamed(args: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Arguments that the method knows by a name that differs in case or separators only, under that name."""
    from tamis.server.runtime.tools.method_metadata import alike

    declared = plan.names
    by_likeness: dict[str, list[str]] = {}
    for name in declared:
        by_likeness.setdefault(alike(name), []).append(name)
    arguments: dict[str, Any] = {}
    for name, value in args.items():
        fitting = by_likeness.get(alike(name), [])
        own = len(fitting) == 1 and name not in declared and fitting[0] not in args
        arguments[fitting[0] if own else name] = value
    return arguments
