"""The values of the secrets of one daemon: read when a call needs them, kept only where reading is dear.

A variable and a file are read at each call, so that a rotated key holds from the next call on. What a program or the keyring said is
kept for ``KEPT_SECONDS``. Must not know who is given a value.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec

from tamis.server.runtime.observe.masking import spelled
from tamis.server.runtime.policy.secret_sources import SecretError, kind_of, read_secret
from tamis.server.runtime.policy.secrets import SecretFault
from tamis.server.runtime.settings.config import Secret

KEPT_SECONDS = 300.0


class Value(msgspec.Struct, frozen=True):
    """A secret's value, and how it may be spelled in what is told of a call."""

    text: str
    spellings: tuple[str, ...]

    def __repr__(self) -> str:
        """Without the value."""
        return "Value()"


class SecretUnusable(Exception):  # noqa: N818 - an outcome, named as the outcome is
    """A secret that is defined and granted has no value."""

    def __init__(self, fault: SecretFault) -> None:
        super().__init__(fault.sentence)
        self.fault = fault


class SecretValues:
    """All methods are called on the daemon's loop."""

    def __init__(self) -> None:
        self._known: dict[str, Value] = {}
        self._asked: dict[Secret, tuple[float, str]] = {}
        self._locks: dict[Secret, asyncio.Lock] = {}

    def forget(self) -> None:
        """Read everything again: the settings were."""
        self._known.clear()
        self._asked.clear()
        self._locks.clear()

    async def value(self, name: str, secret: Secret, root: Path) -> Value:
        """A secret's value now. Raises ``SecretUnusable``."""
        try:
            text = await self._text(secret, root)
        except SecretError as error:
            setting = f"secrets.{name}.{error.field}" if error.field else f"secrets.{name}"
            fault = SecretFault(name, "secretUnusable", f"{setting}: {error.reason}", setting, error.remedy)
            raise SecretUnusable(fault) from None
        return self._spelled(name, text)

    def at_hand(self, name: str, secret: Secret, root: Path) -> Value | None:
        """A secret's value where it can be had at once: of a variable, a file, or kept from a program or the keyring; else None."""
        if kind_of(secret) in ("command", "keyring"):
            text = self._kept(secret)
        else:
            try:
                text = read_secret(secret, root)
            except SecretError:
                text = None
        return None if text is None else self._spelled(name, text)

    def _spelled(self, name: str, text: str) -> Value:
        known = self._known.get(name)
        if known is None or known.text != text:
            known = self._known[name] = Value(text, spelled((text,)))
        return known

    async def _text(self, secret: Secret, root: Path) -> str:
        if kind_of(secret) not in ("command", "keyring"):
            return read_secret(secret, root)
        # several calls at once ask once
        async with self._locks.setdefault(secret, asyncio.Lock()):
            kept = self._kept(secret)
            if kept is not None:
                return kept
            text = await asyncio.to_thread(read_secret, secret, root)
            self._asked[secret] = (time.monotonic() + KEPT_SECONDS, text)
            return text

    def _kept(self, secret: Secret) -> str | None:
        kept = self._asked.get(secret)
        return kept[1] if kept is not None and time.monotonic() < kept[0] else None
