"""Methods that a host registers, and the state that its tools share. Must not know what a method does."""

from __future__ import annotations

from typing import Any

from tamis.protocols.contract.base import Wire


class RejectedMethod(Wire, kw_only=True):
    """A method that was not registered, and why."""

    method_name: str
    """Its name as it came; empty where it had none."""
    reason: str


class ServiceRegistration(Wire, kw_only=True):
    """Result of ``service/register``: what stands now, and what was left out."""

    registered: list[str]
    """The names of the methods that are registered."""
    rejected: list[RejectedMethod]
    tool_ids: dict[str, str]
    """Under which id each registered method is a tool."""


class ServiceRemoval(Wire, kw_only=True):
    """Result of ``service/unregister``."""

    removed: list[str]
    """The names of the methods that are gone; empty where there was no such service."""


class ServiceMethods(Wire, kw_only=True):
    """A registered service with the names of its methods."""

    service_name: str
    methods: list[str]


class ServiceList(Wire, kw_only=True):
    """Result of ``service/list``."""

    services: list[ServiceMethods]


class StateValue(Wire, kw_only=True):
    """Result of ``state/get``."""

    found: bool
    value: Any = None
    """What stands at the path; null where nothing does."""


class StateWritten(Wire, kw_only=True):
    """Result of ``state/set``."""

    removed: list[str]
    """Those of the paths to remove at which something stood."""
