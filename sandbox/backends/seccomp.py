"""The system call filter: a classic BPF program assembled here, as the bytes that `bwrap --seccomp` reads.

Shape: the wrong machine or the x32 number range ends the process; listed calls fail with EPERM; calls that libc can
do without fail with ENOSYS so that it falls back; some are judged by their arguments; all else is allowed. Arguments
are compared in their low 32 bits only, because the kernel ignores the rest (CVE-2019-10063, CVE-2019-7303).
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import cache

# System call numbers that the filter names, for x86_64 and aarch64; None where the call does not exist. Numbers from 424 on are the same on every
# machine. The aarch64 column is the kernel's generic table; no run was tested on such a machine.


NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "vmsplice": (278, 75),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "memfd_secret": (447, 447),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "mq_open": (240, 180),
    "semget": (64, 190),
    "msgget": (68, 186),
    "io_setup": (206, 0),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "clone3": (435, 435),
    "openat2": (437, 437),
    "fchmodat2": (452, 452),
    "file_setattr": (469, 469),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "listns": (470, 470),
    "unshare": (272, 97),
    "clone": (56, 220),
    "ioctl": (16, 29),
    "personality": (135, 92),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "creat": (85, None),
    "open": (2, None),
    "openat": (257, 56),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "socket": (41, 198),
    "prctl": (157, 167),
    "fcntl": (72, 25),
    "socketpair": (53, 199),
    "setsockopt": (54, 208),
}


KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
ERRNO = 0x00050000

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

# struct seccomp_data: nr, arch, instruction_pointer, args[6] of 64 bits; both machines are little endian.
_NR, _ARCH, _ARGS = 0, 4, 16

_LD, _AND, _JEQ, _JGE, _JSET, _JA, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x05, 0x06

NAMESPACES = 0x7E020000  # every CLONE_NEW* bit that clone() takes
NEW_TIME = 0x80  # only unshare() takes it
SET_ID = 0o6000
CREATES = 0o100 | 0o20000000  # O_CREAT | __O_TMPFILE
TERMINAL_INJECTION = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD

DENIED = (
    # other processes' memory and descriptors
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"),
    # keyrings have no namespace: the host session's would be readable
    *("add_key", "request_key", "keyctl"),
    # kernel attack surface
    *("bpf", "perf_event_open", "userfaultfd", "fanotify_init", "lookup_dcookie", "nfsservctl"),
    *("mount", "umount2", "pivot_root", "chroot", "setns", "name_to_handle_at", "open_by_handle_at"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *("swapon", "swapoff", "acct", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex"),
    *("sethostname", "setdomainname", "iopl", "ioperm", "modify_ldt", "vhangup", "quotactl", "quotactl_fd"),
    *("syslog", "uselib", "ustat", "sysfs", "_sysctl"),
    *("vmsplice", "move_pages", "migrate_pages", "mbind", "set_mempolicy", "set_mempolicy_home_node"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    # memory that no process's own numbers show: without a cgroup nothing else would count it
    *("memfd_create", "memfd_secret", "shmget", "mq_open"),
)

# ENOSYS is what a kernel without System V IPC, Landlock or AIO answers, so that programs fall back or say it plainly.
# Semaphores, messages and Landlock's rules are memory that no process's own numbers show; the number of AIO's events is
# one for the whole machine. POSIX semaphores (Python's multiprocessing) are files in /dev/shm and go on working.
ABSENT = (
    *("semget", "msgget", "io_setup", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2", "fchmodat2", "file_setattr"),
    *("open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
    *("statmount", "listmount", "listns"),
)

MODE_ARGUMENT = {
    "chmod": 1,
    "fchmod": 1,
    "fchmodat": 2,
    "creat": 1,
    "mknod": 1,
    "mknodat": 2,
    "mkdir": 1,
    "mkdirat": 2,
}
OPEN_ARGUMENTS = {"open": (1, 2), "openat": (2, 3)}

# AF_INET, AF_INET6 (the namespace's own loopback) and AF_NETLINK (getifaddrs); AF_VSOCK would reach the hypervisor
# from any namespace, and AF_UNIX a host socket in a granted folder.
INTERNET = (2, 10)
NETLINK, NETLINK_ROUTE = 16, 0
FAMILIES = (*INTERNET, NETLINK)
# TCP and UDP alone: the rest (MPTCP, UDP-Lite, SCTP, DCCP, ping, raw) is more of the kernel, and not in the tables that
# say what waits in a run's sockets. EPROTONOSUPPORT is what clients of MPTCP fall back from.
SOCKET_TYPE = 0xF  # the rest of the argument is SOCK_NONBLOCK and SOCK_CLOEXEC
SOCK_STREAM, SOCK_DGRAM, SOCK_RAW = 1, 2, 3
PROTOCOLS = {SOCK_STREAM: (0, 6), SOCK_DGRAM: (0, 17)}
# a pipe that was made larger is memory that no process's numbers show; EPERM is how the kernel refuses it too
F_SETPIPE_SZ, PIPE_BYTES = 1031, 65_536
# the table of a process's futexes, at any size that it asks for; EINVAL is what kernels before 6.16 answer
PR_FUTEX_HASH = 78
# SO_SNDBUF, SO_RCVBUF and their forced forms: what waits in a socket is in no process's numbers, so the size stays the
# host's default. The call says that it worked, as it does where a wish is cut to the host's maximum.
SOL_SOCKET, BUFFER_SIZES = 1, (7, 8, 32, 33)
AF_UNIX = 1


class UnsupportedMachineError(Exception):
    """No call numbers are known for this machine: no filter, so no sandbox."""


def supported_machine() -> str:
    """This machine's name as the filter knows it. Raises `UnsupportedMachineError`."""
    machine = platform.machine()
    if machine not in AUDIT_ARCH:
        raise UnsupportedMachineError(machine)
    return machine


class _Assembler:
    """Collects instructions; every check is a block that is left by a return or by falling off its end."""

    def __init__(self, column: int) -> None:
        self.column = column
        self.code: list[tuple[int, int, int, int]] = []

    def emit(self, op: int, k: int, jt: int = 0, jf: int = 0) -> None:
        self.code.append((op, jt, jf, k))

    def number(self, name: str) -> int | None:
        return NUMBERS[name][self.column]

    def group(self, names: tuple[str, ...], verdict: int) -> None:
        numbers = [number for name in names if (number := self.number(name)) is not None]
        for index, number in enumerate(numbers):
            self.emit(_JEQ, number, jt=len(numbers) - index)
        self.emit(_JA, 1)
        self.emit(_RET, verdict)

    def when(self, name: str, block: list[tuple[int, int, int, int]]) -> None:
        """Run `block` for this call; a call that the block does not return from is allowed."""
        number = self.number(name)
        if number is None:
            return
        self.emit(_JEQ, number, jf=len(block) + 1)
        self.code.extend(block)
        self.emit(_RET, ALLOW)


def _argument(index: int) -> tuple[int, int, int, int]:
    return (_LD, 0, 0, _ARGS + 8 * index)


def _refuse(code: int) -> tuple[int, int, int, int]:
    return (_RET, 0, 0, ERRNO | code)


def _any_bit(argument: int, bits: int) -> list[tuple[int, int, int, int]]:
    return [_argument(argument), (_JSET, 0, 1, bits), _refuse(errno.EPERM)]


def _one_of(argument: int, values: tuple[int, ...], code: int = errno.EPERM) -> list[tuple[int, int, int, int]]:
    jumps = [(_JEQ, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_argument(argument), *jumps, (_JA, 0, 0, 1), _refuse(code)]


def _only(argument: int, values: tuple[int, ...], code: int) -> list[tuple[int, int, int, int]]:
    jumps = [(_JEQ, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_argument(argument), *jumps, _refuse(code)]


def _if_is(value: int, block: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Run `block`, and allow what it does not return from, when the accumulator has this value; else go on with it."""
    return [(_JEQ, 0, len(block) + 1, value), *block, (_RET, 0, 0, ALLOW)]


def _socket() -> list[tuple[int, int, int, int]]:
    # getifaddrs needs the routing protocol of netlink; the others are only a way into more of the kernel
    netlink = _only(2, (NETLINK_ROUTE,), errno.EPROTONOSUPPORT)
    internet = [_argument(1), (_AND, 0, 0, SOCKET_TYPE)]
    for kind, protocols in PROTOCOLS.items():
        internet += _if_is(kind, _only(2, protocols, errno.EPROTONOSUPPORT))
    internet += _if_is(SOCK_RAW, [_refuse(errno.EPERM)])
    internet += [_refuse(errno.ESOCKTNOSUPPORT)]
    families = _if_is(NETLINK, netlink)
    for family in INTERNET:
        families += _if_is(family, internet)
    return [_argument(0), *families, _refuse(errno.EAFNOSUPPORT)]


TEMPLATES = ("mount", "unshare")
"""What a template may do besides: its forks build sandboxes of their own, and take the whole filter before the script."""


def assemble(machine: str, allowed: tuple[str, ...] = ()) -> list[tuple[int, int, int, int]]:
    """The program as `(code, jt, jf, k)` rows for one machine of `AUDIT_ARCH`, without what it would say of the `allowed` calls."""
    asm = _Assembler(0 if machine == "x86_64" else 1)
    asm.emit(_LD, _ARCH)
    asm.emit(_JEQ, AUDIT_ARCH[machine], jt=1)
    asm.emit(_RET, KILL_PROCESS)
    asm.emit(_LD, _NR)
    if machine == "x86_64":
        asm.emit(_JGE, X32_BIT, jf=1)
        asm.emit(_RET, KILL_PROCESS)
    asm.group(tuple(name for name in DENIED if name not in allowed), ERRNO | errno.EPERM)
    asm.group(ABSENT, ERRNO | errno.ENOSYS)
    asm.when("clone", _any_bit(0, NAMESPACES))
    if "unshare" not in allowed:
        asm.when("unshare", _any_bit(0, NAMESPACES | NEW_TIME))
    asm.when("ioctl", _one_of(1, TERMINAL_INJECTION))
    asm.when("personality", _only(0, (0, 0xFFFFFFFF), errno.EPERM))
    for name, mode in MODE_ARGUMENT.items():
        asm.when(name, _any_bit(mode, SET_ID))
    for name, (flags, mode) in OPEN_ARGUMENTS.items():
        check = _any_bit(mode, SET_ID)
        asm.when(name, [_argument(flags), (_JSET, 0, len(check), CREATES), *check])
    asm.when("socket", _socket())
    asm.when("prctl", _one_of(0, (PR_FUTEX_HASH,), errno.EINVAL))
    larger = [_argument(2), (_JGE, 0, 1, PIPE_BYTES + 1), _refuse(errno.EPERM)]
    asm.when("fcntl", [_argument(1), (_JEQ, 0, len(larger), F_SETPIPE_SZ), *larger])
    asm.when("setsockopt", [_argument(1), (_JEQ, 0, len(BUFFER_SIZES) + 3, SOL_SOCKET), *_one_of(2, BUFFER_SIZES, 0)])
    asm.when("socketpair", _only(0, (AF_UNIX,), errno.EAFNOSUPPORT))
    asm.emit(_RET, ALLOW)
    return asm.code


@cache
def filter_bytes(machine: str, allowed: tuple[str, ...] = ()) -> bytes:
    """The program as raw `struct sock_filter` rows."""
    return b"".join(struct.pack("<HBBI", *row) for row in assemble(machine, allowed))
