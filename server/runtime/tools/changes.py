"""What two registries differ in. Must not know why one took the other's place."""

from __future__ import annotations

import msgspec

from tamis.server.runtime.tools.registry import Registry, fingerprint


class Change(msgspec.Struct, frozen=True):
    """Tools that are new, gone and other than before, each as ``id@version``, in order."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    other: bool = False
    """Whether errors or conflicts are other than before."""

    @property
    def any(self) -> bool:
        """Whether there is any difference."""
        return bool(self.added or self.removed or self.updated or self.other)


def difference(before: Registry, after: Registry) -> Change:
    """What is different in ``after``. A tool is updated when anything of its definition is, or whether or why it cannot be called."""
    if before is after:
        return Change()
    old = {(tool.tool_id, tool.version): tool for tool in before.tools}
    new = {(tool.tool_id, tool.version): tool for tool in after.tools}

    def shown(keys: set[tuple[str, str]]) -> tuple[str, ...]:
        return tuple("@".join(key) for key in sorted(keys))

    kept = {key for key in old.keys() & new.keys() if old[key] is not new[key]}
    return Change(
        shown(new.keys() - old.keys()),
        shown(old.keys() - new.keys()),
        shown({key for key in kept if fingerprint(old[key]) != fingerprint(new[key])}),
        before.errors != after.errors or before.conflicts != after.conflicts,
    )
