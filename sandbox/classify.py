"""From how a run ended to its outcome. Pure.

First match wins: what we did to it, then what the kernel did, then what the script said last.
"""

from __future__ import annotations

import re
import signal as signals
from typing import Literal

import msgspec

from tamis.sandbox.job import SHM_BYTES
from tamis.sandbox.model import ErrorType, Kind, Language, LimitName, Limits, size

Ending = Literal["exit", "wall", "stdout", "stderr", "memory", "files", "oom", "cancelled"]
"""`oom`: ended because the kernel had ended a part of the run; what the group saw tells why."""


class Verdict(msgspec.Struct, frozen=True):
    """The part of an outcome that says what happened and what helps."""

    kind: Kind
    error_type: ErrorType = ""
    limit: LimitName | None = None
    signal: str | None = None
    message: str = ""
    remedy: str = ""
    suspected: bool = False


class Pressure(msgspec.Struct, frozen=True):
    """What a control group saw of a run: processes that the kernel ended for want of memory, whether the group had then
    met its own limit (else it was the machine's memory, or a limit further up), and how often a new process was refused."""

    oom_kills: int = 0
    at_limit: bool = False
    refused_forks: int = 0


def signal_of(exit_code: int, ended_by: int | None = None) -> signals.Signals | None:
    """The signal that ended a script; the one that 128+n probably stands for where `ended_by` is not known."""
    if ended_by is None:
        ended_by = exit_code - 128
    try:
        return signals.Signals(ended_by) if ended_by > 0 else None
    except ValueError:
        return None


def _limit(
    name: LimitName, message: str, remedy: str, *, signal: str | None = None, suspected: bool = False
) -> Verdict:
    return Verdict("limit", "ResourceError", name, signal, message, remedy, suspected)


def _killed(ending: Ending, limits: Limits) -> Verdict | None:
    raise_it = "raise sandbox.{} or make the script use less"
    if ending == "cancelled":
        return Verdict("cancelled", message="the run was cancelled")
    if ending == "wall":
        return Verdict(
            "timeout",
            "TimeoutError",
            "wall",
            message=f"the script did not finish within {limits.wall_ms} ms",
            remedy="raise the time limit or make the script finish sooner",
        )
    if ending == "stdout":
        return _limit(
            "stdout",
            f"the script wrote more than {size(limits.stdout_bytes)} to stdout",
            raise_it.format("stdoutBytes"),
        )
    if ending == "stderr":
        return _limit("stderr", "the script flooded stderr", "write less to stderr")
    if ending == "memory":
        return _limit(
            "memory", f"the script used more than {size(limits.memory_bytes)} of memory", raise_it.format("memoryBytes")
        )
    if ending == "files":
        return _limit("files", "the script made too many files in /tmp", "make fewer files")
    return None


def _pressed(pressure: Pressure, exit_code: int | None, limits: Limits) -> Verdict | None:
    if pressure.oom_kills and pressure.at_limit:
        return _killed("memory", limits)
    if pressure.oom_kills:
        return _limit(
            "memory",
            "the kernel ended a process of the script, because there was no memory left for all that runs here",
            "run fewer things at once, or give the machine or the container more memory",
        )
    if pressure.refused_forks and exit_code != 0:
        return _limit(
            "processes",
            f"the script started more than {limits.processes} processes and threads",
            "raise sandbox.processes or start fewer",
        )
    return None


_LAST_WORDS: tuple[tuple[re.Pattern[bytes], LimitName, str], ...] = (
    (re.compile(rb"^(\w+\.)*_?\w*MemoryError\b"), "memory", "memoryBytes"),
    (
        re.compile(
            rb"heap out of memory|Reached heap limit|RangeError: (Array buffer allocation|Out of memory)|ENOMEM|\[Errno 12\]"
        ),
        "memory",
        "memoryBytes",
    ),
    (
        re.compile(rb"can't start new thread|(BlockingIOError|OSError): \[Errno 11\]|(spawn|fork)\w* .*EAGAIN"),
        "processes",
        "processes",
    ),
    (re.compile(rb"\[Errno 27\] File too large|\bEFBIG\b"), "files", "fileBytes"),
    (re.compile(rb"\[Errno 24\] Too many open files|\bEMFILE\b"), "files", "openFiles"),
    (re.compile(rb"\[Errno 28\] No space left on device|\bENOSPC\b"), "files", "tmpBytes"),
)

_SHM = f"/dev/shm always holds {size(SHM_BYTES)}"
# which of the two places was full is not to be seen
_ALSO = {"tmpBytes": f" for /tmp ({_SHM})"}

_AFTER_SIGNAL = {
    signals.SIGSEGV: "the interpreter or a native package crashed: endless recursion in native code, and packages built for"
    " another version or system, do that",
    signals.SIGBUS: f"it touched a mapped file for which there was no room: /tmp holds sandbox.tmpBytes, {_SHM}",
    signals.SIGABRT: "a native package or the interpreter gave up; its reason stands on stderr",
    signals.SIGILL: "a native package was built for another processor",
    signals.SIGKILL: "the script killed itself, something outside ended it, or the machine had no memory left",
}


_NOT_STARTED = re.compile(rb"\A(/bin/)?sh: (line )?\d+: exec: ")


def _last_words(stderr: bytes, language: Language) -> Verdict | None:
    tail = [line for line in stderr[-65_536:].splitlines() if line.strip()]
    # V8 prints its reason above a stack of its own; Python and bun end with it
    lines = tail[-60:] if language == "nodejs" else tail[-4:] if language == "bun" else tail[-1:]
    for pattern, name, setting in _LAST_WORDS:
        last_line = next((line for line in lines if pattern.search(line)), None)
        if last_line is not None:
            return _limit(
                name,
                f"the script ran into its limit: {last_line[:200].decode('utf-8', 'replace')}",
                f"raise sandbox.{setting}{_ALSO.get(setting, '')} or make the script use less",
                suspected=True,
            )
    return None


def _from_outside(number: int) -> Verdict:
    """The end of a run whose sandbox itself was ended by a signal. No script can send one to it."""
    signal = signal_of(128 + number, number)
    by = f" by {signal.name}" if signal is not None else ""
    return Verdict(
        "error",
        "ResourceError",
        signal=signal.name if signal is not None else None,
        message=f"the sandbox was ended from outside{by} while the script ran, which may have done a part of its work",
        remedy="see who ends processes on this machine: an operator, a service manager, the kernel for want of memory (`dmesg`)",
    )


def classify(
    ending: Ending,
    exit_code: int | None,
    cpu_ms: float,
    stderr: bytes,
    limits: Limits,
    language: Language,
    pressure: Pressure = Pressure(),  # noqa: B008 - frozen
    ended_by: int | None = None,
    monitor_code: int | None = None,
) -> Verdict:
    """The verdict of a run whose sandbox did come up.

    `exit_code` None means that the namespace ended without reporting one and nothing here ended it. A process ended for
    want of memory counts also when the script went on without it: what it says then may lack a part. `ended_by` is the
    signal that ended the script, 0 when it ended by itself; None where that is not known and 128+n is taken for a signal.
    `monitor_code` is how the sandbox's own program ended: a signal's number is negative, or 128+n.
    """
    killed = _killed(ending, limits)
    if killed is not None:
        return killed
    pressed = _pressed(pressure, exit_code, limits)
    if pressed is not None:
        signal = signal_of(exit_code, ended_by) if exit_code is not None else None
        return msgspec.structs.replace(pressed, signal=signal.name if signal else None)
    if exit_code is None and monitor_code is not None and not 0 <= monitor_code <= 128:
        return _from_outside(-monitor_code if monitor_code < 0 else monitor_code - 128)
    if exit_code is None:
        return Verdict(
            "unavailable",
            "SandboxUnavailable",
            message="the sandbox ended without reporting how",
            remedy="run `tamis doctor`",
        )
    if exit_code == 0:
        return Verdict("ok")
    if exit_code in (126, 127) and _NOT_STARTED.search(stderr):
        return Verdict(
            "unavailable",
            "SandboxUnavailable",
            message=f"the interpreter could not be started: {stderr.decode('utf-8', 'replace').strip()[:300]}",
            remedy="set sandbox.interpreters to one that starts with /usr shown read-only",
        )
    signal = signal_of(exit_code, ended_by)
    name = signal.name if signal else None
    # The kernel that kills and the one that counts go by clocks of their own, a little apart on a loaded machine.
    out_of_cpu = signal is signals.SIGKILL and cpu_ms >= limits.cpu_seconds * 950
    if signal is signals.SIGXCPU or out_of_cpu:
        return _limit(
            "cpu",
            f"the script used more than {limits.cpu_seconds} s of processor time",
            "raise sandbox.cpuSeconds or make the script do less",
            signal=name,
        )
    if signal is signals.SIGXFSZ:
        return _limit(
            "files",
            f"the script wrote a file larger than {size(limits.file_bytes)}",
            "raise sandbox.fileBytes or write less",
            signal=name,
        )
    if signal is signals.SIGSYS:
        return Verdict(
            "error",
            "SecurityError",
            signal=name,
            message="the script made a system call that the sandbox does not allow",
            remedy="remove the call",
        )
    suspected = _last_words(stderr, language)
    if suspected is not None:
        return msgspec.structs.replace(suspected, signal=name)
    ended = f"the script ended with exit code {exit_code}" + (
        f" ({'perhaps ' * (ended_by is None)}{name})" if name else ""
    )
    remedy = _AFTER_SIGNAL.get(signal, "see stderr") if signal else "see stderr"
    return Verdict("error", "ScriptError", signal=name, message=ended, remedy=remedy)
