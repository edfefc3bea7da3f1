"""What an agent profile lets its agent do: whether calls are on, which tools it has, whether a person is asked.

A profile that is configured but cannot be read means no calls at all: the operator wanted a bound, so there is one
(rulings 42, 34; seed 001 §3.1). Must not know the sandbox.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tamis.protocols.catalogue import message, severity
from tamis.protocols.manifest.profile import Profile, ProfileReading, read_profile

MAX_BYTES = 4 * 1024 * 1024


class AgentRules(msgspec.Struct, frozen=True):
    """The profile in force; ``problem`` is why a configured one cannot be used."""

    profile: Profile | None = None
    problem: str = ""

    def refusal(self, tool_id: str) -> str:
        """Why the agent may not call a tool by its settings; empty when it may."""
        if self.problem:
            return self.problem
        if self.profile is None:
            return ""
        config = self.profile.config
        if not self.profile.has_config:
            return "the agent profile has no toolCallConfig, so tool calls are off"
        if not config.enabled:
            return "toolCallConfig.enabled of the agent profile is false"
        if not config.allows(tool_id):
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


def load_agent_rules(root: Path, name: str) -> AgentRules:
    """Reads the profile that the settings name; an empty name means no profile."""
    if not name:
        return AgentRules()
    path = root / name
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            return AgentRules(problem=f"the agent profile {path} is larger than {MAX_BYTES} bytes")
        reading = _read(data.decode("utf-8-sig"))
    except OSError as error:
        return AgentRules(problem=f"the agent profile {path} cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
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
            from tamis.server.runtime.texts.protocols import load_protocol

            return reading if load_protocol(str(diag.args.get("v"))) else read_profile(text)
    return reading
