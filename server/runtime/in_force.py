"""What is in force of one root: its settings, its tools and the agent's profile, each as it was last read.

All are replaced as wholes (``read_again`` in any thread, then ``take``), so that a running call keeps what it began with. Must not
know how calls run, or a face.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.protocols.contract import ManifestFault, RegistryChanges, ToolConflict
from tamis.server.runtime.services import Parts
from tamis.server.runtime.settings.config import LoadedSettings, Settings
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.settings.profile import AgentRules, Agents, load_agent_rules
from tamis.server.runtime.tools.registry import Change, Registry, difference
from tamis.server.runtime.tools.sources import Found, compose, find

if TYPE_CHECKING:
    from tamis.server.runtime.tools.host_services import HostServices
    from tamis.server.runtime.tools.watching import Seen


class Reading(msgspec.Struct):
    """What was read of a root's files, numbered in the order of beginning."""

    number: int
    loaded: LoadedSettings
    seen: Seen | None
    found: Found
    agent: AgentRules


class InForce:
    """Settings, registry and agent profile of one root; the registry is read with its first use."""

    def __init__(
        self,
        root: Path,
        overlay: Mapping[str, Any] | None,
        loaded: LoadedSettings | None,
        trusted: bool | None,
    ) -> None:
        """``loaded``: settings that the caller read already, instead of the files' and ``overlay``. ``trusted``: the host's word about the
        folder, None where it said nothing."""
        self.root = root
        self.loaded: LoadedSettings = loaded or load_settings(root, overlay, trusted=trusted)
        self._overlay = overlay
        self._trusted = trusted
        self._given = loaded is not None
        self.parts = Parts(root, self.settings)
        self._registry: Registry | None = None
        self._tagged: tuple[tuple[Registry, AgentRules], str] | None = None
        self._found: Found | None = None
        self._seen: Seen | None = None
        self._readings = 0
        self._newest = 0
        self.watched = False
        """Whether somebody looks for changes on disk; then what the disk looked like is noted before it is read."""
        self._answered: Registry | None = None
        """What the host was last answered of, or what was read first: what changed is counted from there."""
        self._agent: AgentRules | None = None
        self._agents = Agents()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @property
    def registry(self) -> Registry:
        """The registry in force."""
        if self._registry is None:
            self.take(self.read_again(settings=False))
            assert self._registry is not None
        return self._registry

    @property
    def etag(self) -> str:
        """A short hash of what lists say: of the registry, and of the agent's profile where there is one."""
        state = (self.registry, self.agent)
        if self._tagged is None or any(
            current is not other for current, other in zip(state, self._tagged[0], strict=True)
        ):
            tag = self.registry.etag()
            if self.agent != AgentRules():
                content = tag.encode() + msgspec.json.encode(self.agent, order="sorted")
                tag = hashlib.sha256(content).hexdigest()[:16]
            self._tagged = (state, tag)
        return self._tagged[1]

    @property
    def seen(self) -> Seen | None:
        """What the disk looked like before what is in force was read; None while nothing was, or nobody watches."""
        return self._seen

    def read_again(self, *, settings: bool = True) -> Reading:
        """Reads settings, definitions and profile as they stand on disk now, for ``take``. Safe in a thread."""
        self._readings += 1
        number = self._readings
        loaded = self.loaded
        if settings and not self._given:
            loaded = load_settings(self.root, self._overlay, trusted=self._trusted)
        seen = None
        if self.watched:
            from tamis.server.runtime.tools.watching import look

            seen = look(self.root, loaded.settings)
        before = self._found
        known, folders = (None, None) if before is None else (before.known, before.folders)
        position = find(self.root, loaded.settings, known, folders)
        return Reading(number, loaded, seen, position, load_agent_rules(self.root, loaded.settings.profile, loaded))

    def take(self, reading: Reading) -> Change:
        """Puts what was read in force, and says what that changed; running calls keep what they began with (D53).

        A reading that was begun before the one in force is dropped.
        """
        if reading.number < self._newest:
            return Change()
        self._newest = reading.number
        if reading.loaded.settings != self.settings or reading.loaded.closed != self.loaded.closed:
            self._adopt_settings(reading.loaded)
        self.loaded = reading.loaded
        self._found, self._seen = reading.found, reading.seen
        other_agent = self._agent is not None and self._agent != reading.agent
        self._agent = reading.agent
        return self._compose(reading.found, other=other_agent)

    def services_changed(self) -> Change:
        """Takes up what the host has registered or taken away meanwhile, without reading the disk."""
        if self._found is None:
            # Nothing was asked of the registry yet: its first use finds everything.
            return Change()
        return self._compose(self._found)

    def host_services(self) -> HostServices | None:
        """The services that the host has registered; None where it never did."""
        return self.parts.host_services if self.parts.has_host_services else None

    def _compose(self, definitions: Found, *, other: bool = False) -> Change:
        before, after = self._registry, compose(definitions, self.root, self.settings, self.host_services())
        if before is None:
            self._registry = self._answered = after
            return Change()
        change = difference(before, after)
        if change.any:
            self._registry = after
        if other:
            change = msgspec.structs.replace(change, other=True)
        if change.any:
            self._tools_changed()
            self.parts.tell("registry/changed", self.changes(change))
        return change

    def changes(self, change: Change) -> RegistryChanges:
        """A change of the registry in force, with what is wrong in it now."""
        registry = self.registry
        return RegistryChanges(
            added=list(change.added),
            removed=list(change.removed),
            updated=list(change.updated),
            errors=[msgspec.convert(error, ManifestFault, from_attributes=True) for error in registry.errors],
            conflicts=[
                msgspec.convert(conflict, ToolConflict, from_attributes=True) for conflict in registry.conflicts
            ],
            etag=self.etag,
        )

    def changes_since_reload(self, *, reset: bool = False) -> RegistryChanges:
        """What is other than at the last ``reset``, or than what was read first."""
        registry = self.registry
        change = difference(self._answered or registry, registry)
        if reset:
            self._answered = registry
        return self.changes(change)

    def _adopt_settings(self, loaded: LoadedSettings) -> None:
        before, self.loaded = self.settings, loaded
        self.parts.adopt(loaded.settings)
        self._settings_changed(before)

    def _tools_changed(self) -> None:
        """For whoever keeps something that was made for the tools before."""

    def _settings_changed(self, before: Settings) -> None:
        """For whoever keeps something that was made from the settings before."""

    @property
    def agent(self) -> AgentRules:
        """The agent profile in force."""
        if self._agent is None:
            self._agent = load_agent_rules(self.root, self.settings.profile, self.loaded)
        return self._agent

    def agent_for(self, agent_id: str) -> AgentRules:
        """The rules of an agent that the host names; without a name those of the profile in force (ruling 42)."""
        return self._agents.rules(self.root, self.loaded, agent_id, self.agent)

    @property
    def also(self) -> tuple[str, ...]:
        """The protocols of ``[protocol] also`` that can be read."""
        return self._protocols()[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong in the settings, also with the protocols that they name; looks at what is installed if they name any."""
        return (*self.loaded.problems, *self._protocols()[1])

    def _protocols(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if not self.settings.protocol.also:
            return (), ()
        from tamis.server.runtime.settings.protocols import load_also

        return load_also(self.settings.protocol.also)

    def adopt(self, registry: Registry, loaded: LoadedSettings | None = None) -> None:
        """Takes the tools of a face that keeps them itself (an editor, whose open manifests count as they stand there), and its settings;
        what the host has registered stays."""
        if loaded is not None and loaded is not self.loaded:
            self._adopt_settings(loaded)
            self._agent = None
        self._registry = registry
        self._answered = self._answered or registry

    def reload(self) -> Registry:
        """Reads settings, definitions and the agent profile again."""
        self.take(self.read_again())
        return self.registry
