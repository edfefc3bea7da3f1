"""The filter's bytes, run by an interpreter of classic BPF against every call number."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.sandbox.backends import seccomp
from tamis.sandbox.backends.seccomp import NUMBERS

KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
EPERM, ENOSYS, FAMILY = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS, ERRNO | errno.EAFNOSUPPORT
PROTOCOL, KIND = ERRNO | errno.EPROTONOSUPPORT, ERRNO | errno.ESOCKTNOSUPPORT
INVALID = ERRNO | errno.EINVAL
MACHINES = ("x86_64", "aarch64")


def judge(machine: str, number: int, *args: int, arch: int | None = None) -> int:
    """What the kernel would answer."""
    program = [
        struct.unpack_from("<HBBI", seccomp.filter_bytes(machine), at)
        for at in range(0, len(seccomp.filter_bytes(machine)), 8)
    ]
    arch = seccomp.AUDIT_ARCH[machine] if arch is None else arch
    data = struct.pack(
        "<iIQ6Q", number if number < 2**31 else number - 2**32, arch, 0, *(*args, *([0] * (6 - len(args))))
    )
    at, accumulator = 0, 0
    for _ in range(len(program)):
        code, jt, jf, k = program[at]
        at += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, k)[0]
        elif code == 0x06:
            return k
        elif code == 0x54:
            accumulator &= k
        elif code == 0x05:
            at += k
        else:
            taken = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[code]
            at += jt if taken else jf
    raise AssertionError("the program did not return")


def number(machine: str, name: str) -> int | None:
    return NUMBERS[name][MACHINES.index(machine)]


BY_ARGUMENT = {
    *("clone", "unshare", "ioctl", "personality", "chmod", "fchmod", "fchmodat", "creat", "open", "openat"),
    *("mknod", "mknodat", "mkdir", "mkdirat", "socket", "socketpair", "setsockopt", "fcntl", "prctl"),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_has_the_verdict_of_its_list(machine: str) -> None:
    names = {number(machine, name): name for name in NUMBERS if number(machine, name) is not None}
    for value in range(1024):
        name = names.get(value)
        verdict = judge(machine, value)
        if name is None:
            assert verdict == ALLOW, value
        elif name in seccomp.ABSENT:
            assert verdict == ENOSYS, name
        elif name not in BY_ARGUMENT:
            assert verdict == EPERM, name


@pytest.mark.parametrize("machine", MACHINES)
def test_other_machines_and_the_x32_range_are_killed(machine: str) -> None:
    assert judge(machine, 39, arch=0x40000003) == KILL  # i386: what int 0x80 gives
    if machine == "x86_64":
        assert judge(machine, 0x40000000 | 39) == KILL
        assert judge(machine, 0xFFFFFFFF) == KILL


HIGH = 0xDEADBEEF << 32


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("high", [0, HIGH])
@pytest.mark.parametrize(
    ("name", "args", "verdict"),
    [
        ("clone", (0x11,), ALLOW),
        ("clone", (0x003D0F00,), ALLOW),  # a thread
        *(
            ("clone", (bit | 0x11,), EPERM)
            for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
        ),
        ("unshare", (0x200,), ALLOW),
        ("unshare", (0x80,), EPERM),
        ("unshare", (0x10000000,), EPERM),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), EPERM),  # CVE-2019-10063: with high bits too
        ("ioctl", (0, 0x541C), EPERM),
        ("ioctl", (0, 0x5423), EPERM),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0,), ALLOW),
        ("personality", (0x0040000,), EPERM),
        ("chmod", (0, 0o755), ALLOW),
        ("chmod", (0, 0o4755), EPERM),
        ("fchmod", (0, 0o2755), EPERM),
        ("fchmodat", (0, 0, 0o4755), EPERM),
        ("fchmodat", (0, 0, 0o1777), ALLOW),
        ("open", (0, 0o1, 0o4755), ALLOW),  # without O_CREAT the mode is not read
        ("open", (0, 0o101, 0o4755), EPERM),
        ("openat", (0, 0, 0o101, 0o644), ALLOW),
        ("openat", (0, 0, 0o101, 0o4755), EPERM),
        ("openat", (0, 0, 0o20200002, 0o4755), EPERM),  # O_TMPFILE
        ("creat", (0, 0o4755), EPERM),
        ("mknod", (0, 0o104755), EPERM),
        ("mknodat", (0, 0, 0o104755), EPERM),
        ("mkdirat", (0, 0, 0o755), ALLOW),
        ("mkdirat", (0, 0, 0o2755), EPERM),
        *(("socket", (family, kind), ALLOW) for family in (2, 10) for kind in (1, 2, 0x80001, 0x80802)),
        ("socket", (16,), ALLOW),
        *(("socket", (family,), KIND) for family in (2, 10)),
        *(("socket", (family,), FAMILY) for family in (0, 1, 3, 17, 38, 40, 41, 44)),
        ("socket", (16, 3, 0), ALLOW),
        *(("socket", (16, 3, protocol), PROTOCOL) for protocol in (4, 6, 9, 12, 15, 21)),
        *(("socket", (family, 0x80001, protocol), ALLOW) for family in (2, 10) for protocol in (0, 6)),
        *(("socket", (family, 0x80802, protocol), ALLOW) for family in (2, 10) for protocol in (0, 17)),
        # trust 5: MPTCP, UDP-Lite, and the rest in that spirit: SCTP, DCCP, SMC, ping of both families
        *(("socket", (family, 1, protocol), PROTOCOL) for family in (2, 10) for protocol in (262, 132, 256, 257, 17)),
        *(("socket", (family, 2, protocol), PROTOCOL) for family in (2, 10) for protocol in (136, 1, 58, 33, 6)),
        *(("socket", (family, 3, protocol), EPERM) for family in (2, 10) for protocol in (0, 1, 6, 17, 255)),
        *(("socket", (family, kind, 0), KIND) for family in (2, 10) for kind in (4, 5, 6, 10)),
        *(("fcntl", (0, 1031, size), EPERM) for size in (65_537, 1 << 20, 0xFFFFFFFF)),
        ("prctl", (78, 1, 1 << 21), INVALID),
        *(("prctl", (option,), ALLOW) for option in (1, 4, 15, 22, 36, 38, 77, 79)),
        *(("fcntl", (0, 1031, size), ALLOW) for size in (0, 4096, 65_536)),
        *(("fcntl", (0, command), ALLOW) for command in (1, 3, 4, 6, 1030, 1032)),
        *(("setsockopt", (3, 1, option), ERRNO) for option in (7, 8, 32, 33)),  # as if it had worked
        *(("setsockopt", (3, 1, option), ALLOW) for option in (2, 9, 15, 20)),
        *(("setsockopt", (3, level, 7), ALLOW) for level in (0, 6, 41)),
        ("socketpair", (1,), ALLOW),
        ("socketpair", (2,), FAMILY),
    ],
)
def test_arguments_are_judged_in_their_low_half(
    machine: str, high: int, name: str, args: tuple[int, ...], verdict: int
) -> None:
    value = number(machine, name)
    if value is None:
        assert machine == "aarch64"  # the old calls do not exist there
        return
    assert judge(machine, value, *(high | arg for arg in args)) == verdict


@given(value=st.integers(0, 2**32 - 1), args=st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
def test_every_call_gets_a_known_verdict(value: int, args: list[int]) -> None:
    assert judge("x86_64", value, *args) in (KILL, ALLOW, EPERM, ENOSYS, FAMILY, PROTOCOL, KIND, INVALID, ERRNO)


def test_jumps_stay_inside_the_program() -> None:
    for machine in MACHINES:
        program = seccomp.assemble(machine)
        assert len(program) <= 4096
        for at, (code, jt, jf, k) in enumerate(program):
            assert jt < 256 and jf < 256
            reach = max(jt, jf) if code not in (0x05, 0x06, 0x20, 0x54) else k if code == 0x05 else 0
            assert at + 1 + reach < len(program) or code == 0x06
        assert program[-1] == (0x06, 0, 0, ALLOW)


def test_numbers_agree_with_the_kernels_header() -> None:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.is_file():
        pytest.skip(f"the header is not installed: {header}")
    known = dict(re.findall(r"#define __NR_(\w+) (\d+)", header.read_text()))
    for name, (value, _) in NUMBERS.items():
        if name in known:
            assert value == int(known[name]), name
    assert len(set(known) & set(NUMBERS)) > 80


# include/uapi/asm-generic/unistd.h, which is aarch64's table; calls that it lacks do not exist there
GENERIC = """
0 io_setup, 5 setxattr, 6 lsetxattr, 7 fsetxattr, 18 lookup_dcookie, 25 fcntl, 29 ioctl, 33 mknodat, 34 mkdirat,
39 umount2, 40 mount, 41 pivot_root, 42 nfsservctl, 51 chroot, 52 fchmod, 53 fchmodat, 56 openat, 58 vhangup,
60 quotactl, 75 vmsplice, 89 acct, 92 personality, 97 unshare, 104 kexec_load, 105 init_module,
106 delete_module, 112 clock_settime, 116 syslog, 117 ptrace, 142 reboot, 161 sethostname, 162 setdomainname,
167 prctl, 170 settimeofday, 171 adjtimex, 180 mq_open, 186 msgget, 190 semget, 194 shmget, 198 socket,
199 socketpair, 208 setsockopt, 217 add_key, 218 request_key, 219 keyctl, 220 clone, 224 swapon, 225 swapoff,
235 mbind, 237 set_mempolicy, 238 migrate_pages, 239 move_pages, 241 perf_event_open, 262 fanotify_init,
264 name_to_handle_at, 265 open_by_handle_at, 266 clock_adjtime, 268 setns, 270 process_vm_readv,
271 process_vm_writev, 272 kcmp, 273 finit_module, 279 memfd_create, 280 bpf, 282 userfaultfd,
294 kexec_file_load, 425 io_uring_setup, 426 io_uring_enter, 427 io_uring_register, 428 open_tree,
429 move_mount, 430 fsopen, 431 fsconfig, 432 fsmount, 433 fspick, 435 clone3, 437 openat2, 438 pidfd_getfd,
440 process_madvise, 442 mount_setattr, 443 quotactl_fd, 444 landlock_create_ruleset, 445 landlock_add_rule,
446 landlock_restrict_self, 447 memfd_secret, 450 set_mempolicy_home_node, 452 fchmodat2, 457 statmount,
458 listmount, 463 setxattrat, 467 open_tree_attr, 469 file_setattr, 470 listns
"""


def test_numbers_of_aarch64_are_those_of_the_kernels_generic_table() -> None:
    published = {name: int(value) for value, name in re.findall(r"(\d+) (\w+)", GENERIC)}
    assert {name: value for name, (_, value) in NUMBERS.items() if value is not None} == published


def test_numbers_from_424_on_are_the_same_on_both_machines() -> None:
    late = [pair for pair in NUMBERS.values() if max(value or 0 for value in pair) >= 424]
    assert late
    assert [pair for pair in late if pair[0] != pair[1]] == []


def test_a_machine_is_told_by_its_elf_number_its_width_and_its_byte_order() -> None:
    machines = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64 of linux/elf-em.h
    wide, little = 0x80000000, 0x40000000  # __AUDIT_ARCH_64BIT, __AUDIT_ARCH_LE of linux/audit.h
    assert {name: wide | little | number for name, number in machines.items()} == seccomp.AUDIT_ARCH


def test_unknown_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(seccomp.UnsupportedMachineError, match="riscv64"):
        seccomp.supported_machine()
