"""What an agent profile lets its agent do: whether calls are on, which tools it has, whether a person is asked.

A profile that is configured but cannot be read means no calls at all: the operator wanted a bound, so there is one
(rulings 42, 34; seed 001 §3.1). Must not know the sandbox.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from tamis.protocols.catalogue import message, severity
from tamis.protocols.manifest.profile import Profile, ProfileReading, read_profile
from tamis.protocols.observation import plain
from tamis.server.runtime.settings.files import Stamp, read_bounded, stamp_of

MAX_BYTES = 4 * 1024 * 1024
MAX_KEPT = 256
SUFFIX = ".agent_profile.json"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)


class AgentRules(msgspec.Struct, frozen=True):
    """The profile in force; ``problem`` is why a configured one cannot be used.

    ``missing``: calls are those of an agent that no profile speaks of, so that they are off (ruling 42).
    """

    profile: Profile | None = None
    problem: str = ""
    missing: str = ""

    @property
    def off(self) -> str:
        """Why the agent may call no tool at all; empty when it may call some."""
        if self.problem:
            return self.problem
        if self.profile is None:
            return self.missing
        if not self.profile.has_config:
            return "the agent profile has no toolCallConfig, so tool calls are off"
        return "" if self.profile.config.enabled else "toolCallConfig.enabled of the agent profile is false"

    @property
    def protocol(self) -> str | None:
        """The protocol that the profile names for its agent's calls; None where it names none."""
        config = (
            self.profile.raw.get("toolCallConfig") if self.profile is not None and self.profile.has_config else None
        )
        named = isinstance(config, dict) and "protocol" in config
        return self.profile.config.protocol if self.profile is not None and named else None

    def refusal(self, tool_id: str) -> str:
        """Why the agent may not call a tool by its settings; empty when it may."""
        if self.off:
            return self.off
        if self.profile is not None and not self.profile.config.allows(tool_id):
            return f"toolCallConfig of the agent profile switches '{tool_id}' off"
        return ""

    def lists(self, tool_id: str) -> bool:
        """Whether the agent's inventory holds the tool."""
        return self.profile is None or self.profile.lists(tool_id)

    @property
    def asks(self) -> bool:
        """Whether every call of the agent awaits a person (V09, V14)."""
        config = self.profile.config if self.profile is not None else None
        return config is not None and (config.require_confirmation or config.mode == "manual")

    @property
    def timeout_ms(self) -> int | None:
        """The agent's own wall clock for a call (V13)."""
        return self.profile.config.timeout if self.profile is not None else None


class Agents:
    """The rules of agents that a host tells apart (``context.agentId``), kept until their files change.

    ``NAME.agent_profile.json`` beside the configured profile, or in the root, is the agent's own; without it the configured profile holds for
    every agent, and where there is none either, nothing is allowed.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Stamp, AgentRules]] = {}

    def rules(self, root: Path, name: str, agent_id: str, configured: AgentRules) -> AgentRules:
        """The rules of an agent; ``name`` is the configured profile's."""
        if not agent_id:
            return configured
        path = own_profile(root, name, agent_id)
        stamp = None if path is None else stamp_of(str(path))
        if path is not None and stamp is not None:
            known = self._kept.get(str(path))
            if known is None or known[0] != stamp:
                if len(self._kept) >= MAX_KEPT:
                    self._kept.clear()
                known = self._kept[str(path)] = (stamp, load_agent_rules(path.parent, path.name))
            return known[1]
        if name:
            return configured
        return AgentRules(
            missing=f"no agent profile says what the agent '{plain(agent_id)[:80]}' may call, so tool calls are off"
        )


def own_profile(root: Path, name: str, agent_id: str) -> Path | None:
    """Where an agent's own profile would be; None for an id that cannot be a file's name."""
    folder = (root / name).parent if name else root
    return folder / f"{agent_id}{SUFFIX}" if _NAME.fullmatch(agent_id) else None


def agents_beside(root: Path, name: str) -> list[str]:
    """The agents that have a profile of their own beside the configured one, or in the root; by name, a bounded number of them. Links are none."""
    folder = os.path.realpath((root / name).parent if name else root)
    real = os.path.realpath(root)
    if folder != real and not folder.startswith(f"{real.rstrip('/')}/"):
        return []  # the operator's own folder, which may hold what is not about this root
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(SUFFIX) and not entry.is_symlink()]
    except OSError:
        return []
    return [agent for file in sorted(names)[:MAX_KEPT] if _NAME.fullmatch(agent := file.removesuffix(SUFFIX))]


def load_agent_rules(root: Path, name: str) -> AgentRules:
    """Reads the profile that the settings name; an empty name means no profile."""
    if not name:
        return AgentRules()
    path = root / name
    try:
        data = read_bounded(path, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            return AgentRules(problem=f"the agent profile {path} is larger than {MAX_BYTES} bytes")
        reading = _read(data.decode("utf-8-sig"))
    except OSError as error:
        return AgentRules(problem=f"the agent profile {path} cannot be read: {error.strerror or error}")
    except ValueError as error:  # no UTF-8, or a name that no file can have
        return AgentRules(problem=f"the agent profile {path} cannot be read: {error}")
    if reading.profile is None:
        worst = next((diag for diag in reading.diagnostics if severity(diag) == "error"), None)
        cause = message(worst) if worst is not None else "it is no profile"
        return AgentRules(problem=f"the agent profile {path} cannot be used: {cause}")
    return AgentRules(reading.profile)


def _read(text: str) -> ProfileReading:
    """The profile; a protocol in it that no one knows yet is looked for among the installed packages."""
    reading = read_profile(text)
    for diag in reading.diagnostics:
        if diag.code == "PF602" and diag.args.get("p") == "protocol":
            from tamis.server.runtime.settings.protocols import load_protocol

            return reading if load_protocol(str(diag.args.get("v"))) else read_profile(text)
    return reading
