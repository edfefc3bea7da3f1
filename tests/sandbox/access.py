"""What the tests of folders that root gives to a run share: the two ways, by a mount and by lending."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.sandbox import uids
from tamis.sandbox.paths import claims, idmapped
from tamis.sandbox.paths.walk import Opened, open_absolute

WITHOUT_MOUNTS = """
from tamis.sandbox.paths import claims, idmapped
def _cannot(*_, **__): raise idmapped.CannotMap("this test does without")
idmapped.mapped = _cannot
claims.PLACES = (PLACE,)
"""
"""The same for a process of its own, with `PLACE` set before."""


def without_mounts(monkeypatch: pytest.MonkeyPatch, place: Path) -> Path:
    """Have folders lent as on a machine that maps no mounts, with the claims below `place`."""

    def cannot(shown: Opened, uid: int, *, writable: bool) -> int:
        raise idmapped.CannotMap("this test does without")

    folder = place / "claims"
    monkeypatch.setattr(idmapped, "mapped", cannot)
    monkeypatch.setattr(claims, "PLACES", (str(folder),))
    return folder


def needs_mounts(place: Path) -> None:
    """Skip the test where a folder of `place`'s file system cannot be shown by a mapped mount, with the kernel's reason."""
    with open_absolute(str(place.resolve())) as folder:
        try:
            import os

            os.close(idmapped.mapped(folder, uids.FIRST, writable=True))
        except idmapped.CannotMap as reason:
            pytest.skip(f"no mapped mounts here: {reason}")
