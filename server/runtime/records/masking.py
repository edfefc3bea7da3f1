"""Hiding the values that ``x-secret`` marks in texts that a tool's script gave: logs, observations, output while it arrives (D83).

Must not know schemas (``protocols/schema/secrets.py``) nor where its results go.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.observation import plain
from tamis.protocols.schema.secrets import MASK

MIN_SECRET_CHARS = 4
"""Shorter texts stand everywhere and cannot be told apart."""
MAX_SECRETS = 1_000
"""Of a call with more, nothing that the script wrote is shown: looking for each would take too long (F18)."""
_TRIES = 256


def secret_texts(args: object, masked: object) -> tuple[str, ...]:
    """How the values that ``x-secret`` hides may be spelled, found where the masked arguments differ; the longest first."""
    if args is masked:
        # nothing was masked
        return ()
    found: set[str] = set()
    stack: list[tuple[Any, Any]] = [(args, masked)]
    while stack:
        real, shown = stack.pop()
        if isinstance(real, dict):
            below = cast("dict[str, Any]", real)
            stack.extend(
                (below[key], cast("dict[str, Any]", shown).get(key) if isinstance(shown, dict) else shown)
                for key in below
            )
        elif isinstance(real, list):
            items = cast("list[Any]", real)
            stack.extend(
                zip(items, cast("list[Any]", shown) if isinstance(shown, list) else [shown] * len(items), strict=False)
            )
        elif real != shown and isinstance(real, (str, int, float)) and not isinstance(real, bool):
            found |= _spellings(real)
    return tuple(sorted((text for text in found if len(text) >= MIN_SECRET_CHARS), key=len, reverse=True))


def _spellings(value: str | float) -> set[str]:
    """A value as it is, inside of JSON, and as logs show it."""
    if not isinstance(value, str):
        return {json.dumps(value)}
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], plain(value)}


def without(text: str, secrets: Sequence[str]) -> str:
    """A text with every secret masked."""
    if len(secrets) > MAX_SECRETS:
        return MASK if text else text
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def without_in(value: Any, secrets: Sequence[str]) -> Any:
    """A JSON value with every secret masked in its texts and names, and numbers that are one; the same object without any."""
    if not secrets:
        return value
    if isinstance(value, str):
        return without(value, secrets)
    if isinstance(value, list):
        return [without_in(item, secrets) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {without(name, secrets): without_in(item, secrets) for name, item in members}
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return MASK if is_number and json.dumps(value) in secrets else value


def result_without(result: ExecutionResult, secrets: Sequence[str]) -> ExecutionResult:
    """A copy of a result whose output and error have every secret masked, to write an observation of; the result itself is the host's."""
    if not secrets:
        return result
    output, error = result.output, result.error
    if output is not UNSET:
        output = without_in(output, secrets)
    if error is not UNSET:
        details = error.details
        if details is not UNSET and details.text is not UNSET:
            details = msgspec.structs.replace(details, text=without(details.text, secrets))
        error = msgspec.structs.replace(error, message=without(error.message, secrets), details=details)
    return msgspec.structs.replace(result, output=output, error=error)


def shown_result(result: ExecutionResult, secrets: Sequence[str]) -> ExecutionResult:
    """A copy of a result as it may be stored: every secret masked wherever a tool or a check could have put it."""
    if not secrets:
        return result
    shown = result_without(result, secrets)
    error = shown.error
    if error is not UNSET and error.details is not UNSET and error.details.errors is not UNSET:
        fields = ("path", "message", "received", "suggestion")
        problems = [
            msgspec.structs.replace(
                one, **{name: without(text, secrets) for name in fields if isinstance(text := getattr(one, name), str)}
            )
            for one in error.details.errors
        ]
        error = msgspec.structs.replace(error, details=msgspec.structs.replace(error.details, errors=problems))
    logs = [without(line, secrets) for line in shown.logs]
    return msgspec.structs.replace(shown, error=error, logs=logs, observation=without(shown.observation, secrets))


class MaskedStreams:
    """A script's streams while they arrive, told piece by piece with every secret masked, also one that lies across pieces.

    What may be the beginning of a secret is held back until more has come, or the end.
    """

    def __init__(self, secrets: Sequence[str], tell: Callable[[str, str], None]) -> None:
        self._secrets = secrets
        self._tell = tell
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._held: dict[str, str] = {}

    def piece(self, stream: str, data: bytes) -> None:
        """More of a stream."""
        decoder = self._decoders.setdefault(stream, codecs.getincrementaldecoder("utf-8")("replace"))
        if len(self._secrets) > MAX_SECRETS:
            self._held[stream] = MASK if data else ""
            return
        shown, self._held[stream] = self._cut(self._held.get(stream, "") + decoder.decode(data))
        if shown:
            self._tell(stream, shown)

    def end(self) -> None:
        """The streams have ended: what was held back is told."""
        for stream, decoder in self._decoders.items():
            rest = self._held.pop(stream, "") + decoder.decode(b"", final=True)
            if rest:
                self._tell(stream, without(rest, self._secrets))

    def _cut(self, text: str) -> tuple[str, str]:
        """The masked text that is certain, and the rest, which may be the beginning of a secret."""
        shown: list[str] = []
        at, begun = 0, -1
        while True:
            if begun < at:
                begun = min((_begins(text, secret, at) for secret in self._secrets), default=len(text))
            # of those that begin at one place the longest, which stands first
            found = [(place, secret) for secret in self._secrets if (place := text.find(secret, at)) >= 0]
            place, secret = min(found, key=lambda one: one[0], default=(len(text), ""))
            if place >= begun or not secret:
                return "".join((*shown, text[at:begun])), text[begun:]
            shown += (text[at:place], MASK)
            at = place + len(secret)


def _begins(text: str, secret: str, at: int) -> int:
    """Where the end of a text may be the beginning of a secret that is not whole yet, at the earliest; else the text's end."""
    place = max(at, len(text) - len(secret) + 1)
    for _ in range(_TRIES):
        place = text.find(secret[0], place)
        if place < 0:
            return len(text)
        if secret.startswith(text[place:]):
            return place
        place += 1
    # so many false beginnings are no log; it waits for what follows
    return place
