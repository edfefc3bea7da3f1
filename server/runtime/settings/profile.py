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
from tamis.server.runtime.settings.config import LoadedSettings
from tamis.server.runtime.settings.files import Stamp, read_bounded, stamp_of
from tamis.server.runtime.settings.loading import is_trusted

MAX_BYTES = 4 * 1024 * 1024
MAX_KEPT = 256
SUFFIX = ".agent_profile.json"
_NOT_LOADED = (
    "which does not come with Tamis, and nothing that is installed is loaded for a folder that is not trusted:"
    " trust it (`tamis trust --yes`), or name the protocol in protocol.also of your own config.toml"
)
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
    def is_unbounded(self) -> bool:
        """Whether there is no profile that could keep a tool from the agent."""
        return self.profile is None and not self.problem and not self.missing

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

    def rules(self, root: Path, loaded: LoadedSettings, agent_id: str, configured: AgentRules) -> AgentRules:
        """The rules of an agent beside those of the profile that the settings configure."""
        name = loaded.settings.profile
        if not agent_id:
            return configured
        path = own_profile(root, name, agent_id)
        stamp = None if path is None else stamp_of(str(path))
        if path is not None and stamp is not None:
            known = self._kept.get(str(path))
            if known is not None and known[0] == stamp:
                return known[1]
            rules = load_agent_rules(path.parent, path.name, loaded)
            if not rules.problem:  # what is wrong may be mended elsewhere, by trust for one
                if len(self._kept) >= MAX_KEPT:
                    self._kept.clear()
                self._kept[str(path)] = (stamp, rules)
            return rules
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


def load_agent_rules(root: Path, name: str, loaded: LoadedSettings) -> AgentRules:
    """Reads the profile of that name below ``root``; an empty name means no profile.

    ``loaded`` says whether a protocol that the profile names may be loaded from an installed package: a stranger's file starts no code.
    """
    if not name:
        return AgentRules()
    path = root / name
    text, problem = _text(path)
    if problem:
        return AgentRules(problem=problem)
    reading = read_profile(text)
    protocol = _unknown_protocol(reading)
    if protocol:
        if not _may_load(protocol, path, loaded):
            return AgentRules(
                problem=f"the agent profile {path} names the protocol '{plain(protocol)[:80]}', {_NOT_LOADED}"
            )
        from tamis.server.runtime.settings.protocols import load_protocol

        reading = reading if load_protocol(protocol) else read_profile(text)
    if reading.profile is None:
        worst = next((diag for diag in reading.diagnostics if severity(diag) == "error"), None)
        cause = message(worst) if worst is not None else "it is no profile"
        return AgentRules(problem=f"the agent profile {path} cannot be used: {cause}")
    return AgentRules(reading.profile)


def inventory_of(root: Path, name: str) -> tuple[str, ...]:
    """The tools that a profile lists, whether or not its protocol is loaded; none of a profile that cannot be used. Loads nothing."""
    if not name:
        return ()
    text, problem = _text(root / name)
    if problem:
        return ()
    reading = read_profile(text)
    errors = [diag for diag in reading.diagnostics if severity(diag) == "error"]
    if errors and not (len(errors) == 1 and _unknown_protocol(reading)):
        return ()
    return tuple(dict.fromkeys(tool_id for tool_id, _ in reading.entries))


def _text(path: Path) -> tuple[str, str]:
    """What a profile holds, or why it cannot be read."""
    try:
        data = read_bounded(path, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            return "", f"the agent profile {path} is larger than {MAX_BYTES} bytes"
        return data.decode("utf-8-sig"), ""
    except OSError as error:
        return "", f"the agent profile {path} cannot be read: {error.strerror or error}"
    except ValueError as error:  # no UTF-8, or a name that no file can have
        return "", f"the agent profile {path} cannot be read: {error}"


def _unknown_protocol(reading: ProfileReading) -> str:
    """The protocol of a profile that nobody knows yet: an installed package may bring it."""
    found = (diag for diag in reading.diagnostics if diag.code == "PF602" and diag.args.get("p") == "protocol")
    return next((str(diag.args.get("v")) for diag in found), "")


def _may_load(protocol: str, path: Path, loaded: LoadedSettings) -> bool:
    """Whether a package may be loaded for the protocol that a profile names: by the operator's word, never by a stranger's."""
    from tamis.protocols.plugins import SHIPPED

    if protocol in (*SHIPPED, loaded.settings.protocol.default, *loaded.settings.protocol.also):
        return True
    root = os.path.realpath(loaded.root).rstrip("/") + "/"
    # a link in the folder is the folder's word too, wherever it leads
    places = (os.path.realpath(path), os.path.join(os.path.realpath(path.parent), path.name))
    return not any(place.startswith(root) for place in places) or is_trusted(loaded)
