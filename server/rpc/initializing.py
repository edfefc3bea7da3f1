"""The params of ``initialize``, as hosts are told of them.

They are read leniently, as LSP clients need it: a field of another shape counts as missing (``methods.py``).
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tamis.server.rpc.params import Params


class WorkspaceFolder(Params):
    """A folder that the host has open."""

    uri: str
    """Its address, such as ``file:///home/me/tools``."""
    name: str = ""


class GeneralCapabilities(Params):
    """What LSP keeps under ``general``."""

    position_encodings: list[Literal["utf-8", "utf-16", "utf-32"]] | UnsetType = UNSET
    """How positions may be counted; ``utf-16`` when none is offered."""


class TamisCapabilities(Params):
    """What the host can do for tools."""

    approval: Literal["request", "poll", "none"] = "none"
    """``request``: it answers ``tool/requestApproval``."""
    elicitation: bool = False
    """Whether it also shows the questions of MCP servers that ``tool/requestApproval`` has with ``elicitation``."""
    forms: bool = False
    """Whether it shows those of them too that have a form or an address (``elicitation.form``, ``elicitation.url``)."""
    output: bool = False
    """Whether it takes ``tool/output`` unless a request says otherwise."""
    events: bool = False
    """Whether it is told ``tool/event``, ``workflow/stepChanged`` and ``abuse/suspected``."""
    tests: bool = False
    """Whether it shows tests, in an editor."""


class ExperimentalCapabilities(Params):
    """Where LSP keeps what is not of LSP."""

    tamis: TamisCapabilities | UnsetType = UNSET


class WindowCapabilities(Params):
    """What LSP keeps under ``window``."""

    show_message: dict[str, Any] | UnsetType = UNSET
    """It answers ``window/showMessageRequest``: the next best way to ask a person."""


class ClientInfo(Params):
    """The host's name."""

    name: str
    version: str | UnsetType = UNSET


class ClientCapabilities(Params):
    """What the host can do."""

    general: GeneralCapabilities | UnsetType = UNSET
    window: WindowCapabilities | UnsetType = UNSET
    experimental: ExperimentalCapabilities | UnsetType = UNSET


class InitializationOptions(Params):
    """What the host decides for this session."""

    trusted: bool | UnsetType = UNSET
    """``true``: the folder's own settings count as the operator's. ``false``: read and check, run nothing and install nothing. Missing: the
    user's record of trust says whether the folder's own settings count; tools run either way."""
    schema_diagnostics: Literal["on", "off"] = "on"
    """Whether findings of JSON Schema are shown, in an editor."""
    settings: dict[str, Any] | UnsetType = UNSET
    """Settings laid over ``tamis.toml``, by the same names."""


class InitializeParams(Params):
    """Params of ``initialize``."""

    client_info: ClientInfo | UnsetType = UNSET
    """Who the host is, for questions and records."""
    process_id: int | None = None
    """The session ends when this process ends."""
    workspace_folders: list[WorkspaceFolder] | None = None
    """Where to look for the root; the first folder that is there. ``--root`` wins."""
    root_uri: str | None = None
    """The root's address, where there are no workspace folders."""
    root_path: str | None = None
    """The root's path, where there is no address."""
    capabilities: ClientCapabilities | UnsetType = UNSET
    """What the host can do."""
    initialization_options: InitializationOptions | UnsetType = UNSET
    """What the host decides for this session."""


# What is said of methods by name: which may still change their shape, which end with a result when they are cancelled.


EXPERIMENTAL: frozenset[str] = frozenset()
"""Methods that ``initialize`` and the descriptions call ``experimental``; every other is ``stable``."""

FINISHES = frozenset({"tool/execute", "tool/executeText", "agent/step", "workflow/run"})
"""Methods that give their normal result also when they are cancelled, with the unfinished calls ``cancelled``."""


def stability(method: str) -> str:
    """``stable`` or ``experimental``."""
    return "experimental" if method in EXPERIMENTAL else "stable"
