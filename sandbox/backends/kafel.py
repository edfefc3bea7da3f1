"""The system call filter as a policy of Kafel, the language that nsjail takes, from the tables of `seccomp`.

Numbers stand for names, so that what Kafel knows by name does not matter. Kafel cannot say «from this number on», so
every number below `CALLS` is named, the same ones of x32 end the process, and all others are answered as the kernel
answers a call that it does not have. Its comparisons are of
64 bits: every argument is masked to the low 32, which are what the kernel looks at. For another machine's calls Kafel
itself ends the thread that made one.
"""

from __future__ import annotations

import errno
from functools import cache

from tamis.sandbox.backends import seccomp
from tamis.sandbox.backends.syscalls import NUMBERS

CALLS = 1024
"""Linux has numbered below 500 so far."""
_LOW = 0xFFFFFFFF


@cache
def policy(machine: str) -> str:
    """The policy text for one machine of `seccomp.AUDIT_ARCH`."""
    column = 0 if machine == "x86_64" else 1

    def rows(names: tuple[str, ...], condition: str = "") -> list[str]:
        found = (NUMBERS[name][column] for name in names)
        return [f"SYSCALL[{number}]{condition}" for number in found if number is not None]

    refused = rows(seccomp.DENIED)
    refused += rows(("clone",), _bits(0, seccomp.NAMESPACES))
    refused += rows(("unshare",), _bits(0, seccomp.NAMESPACES | seccomp.NEW_TIME))
    refused += rows(("ioctl",), _when(1, *(f"{_low(1)} == {value}" for value in seccomp.TERMINAL_INJECTION)))
    refused += rows(("personality",), _unless(0, (0, _LOW)))
    for name, mode in seccomp.MODE_ARGUMENT.items():
        refused += rows((name,), _bits(mode, seccomp.SET_ID))
    for name, (flags, mode) in seccomp.OPEN_ARGUMENTS.items():
        creates = f"{_low(flags, seccomp.CREATES)} != 0"
        refused += rows((name,), _when(mode, f"{creates} && {_low(mode, seccomp.SET_ID)} != 0"))
    larger_pipe = f"{_low(1)} == {seccomp.F_SETPIPE_SZ} && {_low(2)} > {seccomp.PIPE_BYTES}"
    refused += rows(("fcntl",), _when(2, larger_pipe))
    internet = _any_of(_low(0), seccomp.INTERNET)
    kind = _low(1, seccomp.SOCKET_TYPE)
    refused += rows(("socket",), _when(1, f"{internet} && {kind} == {seccomp.SOCK_RAW}"))
    other_protocols = [
        f"{internet} && {kind} == {value} && {_none_of(_low(2), protocols)}"
        for value, protocols in seccomp.PROTOCOLS.items()
    ]
    other_kinds = f"{internet} && {_none_of(kind, (*seccomp.PROTOCOLS, seccomp.SOCK_RAW))}"
    other_netlink = f"{_low(0)} == {seccomp.NETLINK} && {_low(2)} != {seccomp.NETLINK_ROUTE}"
    sizes = _any_of(_low(2), seccomp.BUFFER_SIZES)
    families = rows(("socket",), _unless(0, seccomp.FAMILIES))
    families += rows(("socketpair",), _unless(0, (seccomp.AF_UNIX,)))
    blocks = (
        (f"ERRNO({errno.EPERM})", refused),
        (f"ERRNO({errno.ENOSYS})", rows(seccomp.ABSENT)),
        (f"ERRNO({errno.EPROTONOSUPPORT})", rows(("socket",), _when(2, other_netlink, *other_protocols))),
        (f"ERRNO({errno.ESOCKTNOSUPPORT})", rows(("socket",), _when(1, other_kinds))),
        (f"ERRNO({errno.EAFNOSUPPORT})", families),
        (f"ERRNO({errno.EINVAL})", rows(("prctl",), _when(0, f"{_low(0)} == {seccomp.PR_FUTEX_HASH}"))),
        # says that it worked
        ("ERRNO(0)", rows(("setsockopt",), _when(2, f"{_low(1)} == {seccomp.SOL_SOCKET} && {sizes}"))),
        ("ALLOW", [f"SYSCALL[{number}]" for number in range(CALLS)]),
        ("KILL_PROCESS", [f"SYSCALL[{seccomp.X32_BIT + number}]" for number in range(CALLS)]),
    )
    text = ", ".join(f"{action} {{ {', '.join(lines)} }}" for action, lines in blocks)
    return f"{text} DEFAULT ERRNO({errno.ENOSYS})"


def _low(index: int, bits: int = _LOW) -> str:
    return f"a{index} & {bits}"


def _arguments(last: int) -> str:
    return "(" + ", ".join(f"a{index}" for index in range(last + 1)) + ")"


def _when(last: int, *conditions: str) -> str:
    return f"{_arguments(last)} {{ {' || '.join(f'({condition})' for condition in conditions)} }}"


def _bits(index: int, bits: int) -> str:
    return _when(index, f"{_low(index, bits)} != 0")


def _unless(index: int, values: tuple[int, ...]) -> str:
    return _when(index, _none_of(_low(index), values))


def _any_of(term: str, values: tuple[int, ...]) -> str:
    return "(" + " || ".join(f"{term} == {value}" for value in values) + ")"


def _none_of(term: str, values: tuple[int, ...]) -> str:
    return " && ".join(f"{term} != {value}" for value in values)
