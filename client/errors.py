"""What can go wrong between a host and the daemon. What happened to a tool is none of these: it is in the result."""

from __future__ import annotations

from typing import Any


class RpcFailure(Exception):  # noqa: N818 (an error reply of the daemon, named after JSON-RPC)
    """An error reply: the request or the daemon is wrong. ``code`` and ``data`` are JSON-RPC's."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data

    @property
    def name(self) -> str:
        """The name of one of the project's own errors, such as ``notTrusted``; empty for JSON-RPC's."""
        found = self.data.get("code") if isinstance(self.data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return found if isinstance(found, str) else ""


class DaemonEnded(ConnectionError):  # noqa: N818 (what happened, not a fault of this process)
    """The daemon is gone. ``exit_code`` is negative for a signal; ``stderr`` are the last lines that it wrote there."""

    def __init__(self, what: str, exit_code: int | None = None, stderr: tuple[str, ...] = ()) -> None:
        code = "" if exit_code is None else f" (exit code {exit_code})"
        said = "".join(f"\n  {line}" for line in stderr)
        super().__init__(f"{what}{code}" + (f"; its last lines on standard error:{said}" if said else ""))
        self.exit_code = exit_code
        self.stderr = stderr


class WrongResult(ValueError):  # noqa: N818 (a result, not a fault of this process)
    """A result that does not have the method's shape: daemon and client are of different versions."""
