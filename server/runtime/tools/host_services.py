"""The services that a host has registered: what they are called and what their methods take.

A service is registered as a whole: registered again, it is what the last registration says. Must not know how a host is reached
or that there is a registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from tamis.protocols.manifest.reading import Manifest
from tamis.protocols.schema.plan import Plan, compile_plan
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.tools.builtin import SERVICE as SCRIPT_SERVICE
from tamis.server.runtime.tools.builtin import SERVICES
from tamis.server.runtime.tools.method_metadata import Refused, manifest_of, method_name_fault, service_name_fault

MAX_SERVICES = 256
MAX_METHODS = 1_024
"""So many methods may one service have."""
MAX_REJECTED = 256
"""So many refusals are told one by one."""


class HostMethod(msgspec.Struct, frozen=True):
    """A registered method: its manifest, and its parameter schema compiled."""

    manifest: Manifest
    plan: Plan
    output_plan: Plan | None = None

    @property
    def name(self) -> str:
        """The method's name."""
        return self.manifest.tool_id.rpartition(":")[2]


class Rejected(msgspec.Struct, frozen=True):
    """A method that was not registered, and why."""

    method_name: str
    reason: str


class Registration(msgspec.Struct, frozen=True):
    """What became of a registration: the methods that are registered, those that are not, and whether anything is other than before."""

    registered: tuple[HostMethod, ...]
    rejected: tuple[Rejected, ...]
    changed: bool


class HostServices:
    """The services of one host, by name."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, HostMethod]] = {}

    def register(self, service: str, methods: Sequence[object]) -> Registration:
        """Registers a service in place of what it was. Raises ``Refused`` when the service as a whole cannot be."""
        fault = service_name_fault(service)
        if fault:
            raise Refused(fault)
        if service in RESERVED:
            raise Refused(f"'{service}' is a service of Tamis itself; give yours another name")
        if service not in self._services and len(self._services) >= MAX_SERVICES:
            raise Refused(f"{MAX_SERVICES} services are registered already, which is the most")
        by_name: dict[str, HostMethod] = {}
        rejected: list[Rejected] = []
        before = self._services.get(service, {})
        for method in methods:
            name = _name_of(method)
            try:
                if name in by_name:
                    raise Refused(f"'{name}' stands in the list twice; the first is registered")
                if len(by_name) >= MAX_METHODS:
                    raise Refused(f"a service has at most {MAX_METHODS} methods")
                manifest = manifest_of(service, method)
            except Refused as refused:
                if len(rejected) < MAX_REJECTED:
                    rejected.append(Rejected(name, str(refused)))
                continue
            same = before.get(name)
            if same is not None and same.manifest.raw == manifest.raw:
                by_name[name] = same
            else:
                output = None if manifest.output is None else compile_plan(manifest.output)
                by_name[name] = HostMethod(manifest, compile_plan(manifest.parameters or {}), output)
        changed = by_name != before
        if by_name:
            self._services[service] = by_name
        else:
            self._services.pop(service, None)
        return Registration(tuple(by_name.values()), tuple(rejected), changed)

    def unregister(self, service: str, methods: Sequence[str] | None = None) -> list[str]:
        """Takes a service away, or only some of its methods; the names of the methods that are gone."""
        known = self._services.get(service)
        if known is None:
            return []
        gone = [name for name in known if methods is None or name in methods]
        left = {name: method for name, method in known.items() if name not in gone}
        if left:
            self._services[service] = left
        else:
            del self._services[service]
        return gone

    def names(self) -> dict[str, list[str]]:
        """The registered services with their methods, in order."""
        return {service: sorted(methods) for service, methods in sorted(self._services.items())}

    def methods(self) -> list[HostMethod]:
        """All registered methods, by service and name."""
        return [self._services[service][name] for service, names in self.names().items() for name in names]

    def find(self, service: str, method: str) -> HostMethod | None:
        """A registered method."""
        return self._services.get(service, {}).get(method)

    def problem(self, service: str, method: str) -> str:
        """Why a method cannot be called, cause and remedy; empty when it is registered."""
        fault = method_name_fault(method)
        if fault:
            return f"no method of '{service}' can be called by this name: {fault}"
        known = self._services.get(service)
        if known is None:
            names = sorted((*self._services, *RESERVED))
            return f"no service '{service}' is registered{hint(best(service, names)) or '; the host registers services with service/register'}"
        if method not in known:
            return f"the service '{service}' has no method '{method}'{hint(best(method, known)) or '; it has ' + ', '.join(sorted(known)[:8])}"
        return ""


RESERVED = frozenset((*SERVICES, SCRIPT_SERVICE))
"""Names of services that are Tamis's own (seeds 000, 002, 003, 004)."""


def _name_of(metadata: object) -> str:
    name = cast("dict[str, object]", metadata).get("name") if isinstance(metadata, dict) else None
    return name[:200] if isinstance(name, str) else ""
