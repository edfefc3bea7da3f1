"""A call that is ready to run but for a person's word, the digests of what such a word is about, and what is the same in each call of a tool.

Must not know who is asked, nor what was answered.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.policy.contents import contents_digest
from tamis.server.runtime.policy.permissions import Grant
from tamis.server.runtime.tools.builtin import ScriptTarget
from tamis.server.runtime.tools.registry import Tool

if TYPE_CHECKING:
    from tamis.server.runtime.calls.runner import Runner
    from tamis.server.runtime.settings.config import Settings
    from tamis.server.runtime.settings.profile import AgentRules
    from tamis.server.runtime.tools.registry import Registry

_FORM = "2"
"""Of what the digests are made. Answers of an earlier form are asked for again: they say nothing of the files beside the script."""


MAX_PLANS = 1_024


class CallPlan(msgspec.Struct, frozen=True, eq=False):
    """What is the same in each call of a tool under one registry, one reading of the settings and one agent's rules.

    These three are replaced as wholes and never changed, so that the plan is what each call would find of them itself, and holds for calls
    under the very same ones alone. Nothing else is in it: no file, clock, count, connection, answer or trust, which are looked at by each call.
    """

    registry: Registry
    settings: Settings
    agent: AgentRules
    tool: Tool
    runner: Runner
    runs_script: bool
    mirrors: bool
    """Whether its output is the script service's own record."""
    is_listed: bool
    """Whether the agent's inventory holds it."""
    rights: Grant | None
    """Those of a tool that asks for none; None where the disk, a secret, the folder's trust or a server decides them too."""
    is_allowed: bool
    """Whether neither the agent's rules nor the definition forbid a call, and there are no rights that could."""
    is_free: bool
    """Whether no rule speaks of the tool, and nothing wants a person to be asked about it."""
    may_be_given: bool
    """Whether the operator's secrets may reach it."""


class CallPlans:
    """The plans of one runtime, for what is in force there."""

    def __init__(self) -> None:
        self._plans: dict[Tool, CallPlan] = {}

    def get(self, tool: Tool, registry: Registry, settings: Settings, agent: AgentRules) -> CallPlan | None:
        """The plan that was made of a tool under these very ones."""
        plan = self._plans.get(tool)
        if plan is None or plan.settings is not settings or plan.registry is not registry or plan.agent is not agent:
            return None
        return plan

    def keep(self, plan: CallPlan) -> None:
        """Keeps a plan for the next call. Those of what was in force before are let go of with the first that is not under it."""
        known = next(iter(self._plans.values()), plan)
        if known.registry is not plan.registry or known.settings is not plan.settings or len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[plan.tool] = plan


class Prepared(msgspec.Struct, frozen=True):
    """A tool with the arguments, the script and the rights that it would run with."""

    tool: Tool
    args: dict[str, Any]
    target: ScriptTarget | None
    rights: Grant
    server: tuple[Tool, Any] | None = None
    """The MCP server that the tool is one of, as a tool, and what the settings say of it."""
    contents: str = ""
    """What a person's word is bound to of the folder; empty where nobody had to be asked."""


def tool_digest(ready: Prepared, *scope: str) -> str:
    """What a tool is and may do: id, version, manifest, files, rights; with ``scope`` whatever else an answer is bound to."""
    tool, declared = ready.tool, None if ready.server is None else ready.server[1]
    granted = msgspec.to_builtins(ready.rights.permissions.granted)
    parts = [tool.tool_id, tool.manifest.version, tool.manifest.raw, declared, contents_of(ready), granted, *scope]
    return f"{_FORM}:{_digest(parts)}"


def contents_of(ready: Prepared) -> str:
    """What the folder holds that the call would run; empty where no script is run."""
    if ready.target is not None:
        return script_contents(ready.tool, ready.target, ready.rights)
    if ready.server is None:
        return ""
    stand_in, _ = ready.server
    handler = stand_in.manifest.handler
    assert isinstance(handler, ExternalScript)
    return contents_digest(stand_in.folder, handler, (), _written(ready.rights))


def script_contents(tool: Tool, target: ScriptTarget, rights: Grant) -> str:
    """The same of a script that is run once."""
    return contents_digest(target.folder, target.handler, tool.manifest.execution.files, _written(rights))


def _written(rights: Grant) -> tuple[str, ...]:
    """What the tool may change itself is no part of what it is."""
    return tuple(folder.path for folder in (*rights.write, *rights.own_write))


def call_digest(ready: Prepared, *scope: str) -> str:
    """What a call is: its tool as in ``tool_digest``, and its arguments."""
    return _digest([tool_digest(ready, *scope), ready.args])


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
