"""nsjail: from a job to its configuration. Builds purely; the same layers as `bubblewrap`, in nsjail's terms.

Two shapes, as there:

- ordinary user: one nsjail in a new user namespace;
- root: an outer nsjail, still root and without a user namespace, builds a small root that holds only what this run
  needs; a shell in it gives up root for a uid of its own and starts the inner nsjail as an ordinary user.

nsjail has no descriptors for what it mounts and tells nobody that it stands. So a mount is made by the name that was
walked and compared with the descriptor before anything runs (`Plan.compared`), and a gate stands in each stage: a shell
as pid 1 that says that it stands, reads one line, and runs the command as its child. nsjail's log, which is closed to
what runs inside, tells how the command ended.
"""

from __future__ import annotations

import errno
import posixpath
from functools import cache

from tamis.sandbox import job as jobs
from tamis.sandbox.backends import seccomp
from tamis.sandbox.backends.seccomp import NUMBERS
from tamis.sandbox.job import SHM_BYTES, UID_INSIDE, Arg, Fd, FdPath, Hidden, Job, Plan

# The system call filter as a policy of Kafel, the language that nsjail takes, from the tables of `seccomp`. Numbers stand for names, so that what
# Kafel knows by name does not matter. Kafel cannot say «from this number on», so every number below `CALLS` is named, the same ones of x32 end the
# process, and all others are answered as the kernel answers a call that it does not have. Its comparisons are of 64 bits: every argument is masked to
# the low 32, which are what the kernel looks at. For another machine's calls Kafel itself ends the thread that made one.


CALLS = 1024
"""Linux has numbered below 500 so far."""
_LOW = 0xFFFFFFFF


@cache
def policy(machine: str) -> str:
    """The policy text for one machine of `seccomp.AUDIT_ARCH`."""
    column = 0 if machine == "x86_64" else 1

    def rows(names: tuple[str, ...], condition: str = "") -> list[str]:
        numbers = (NUMBERS[name][column] for name in names)
        return [f"SYSCALL[{number}]{condition}" for number in numbers if number is not None]

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


CANNOT_HOLD: dict[str, str] = {
    "disable-userns": "nsjail cannot set the number of further user namespaces to 0: only the system call filter refuses them",
    "die-with-parent": "nsjail itself is not tied to the daemon: the end of its process group is, and what it started is tied to nsjail",
}
"""Layers of `job.LAYERS` that stand on something else than in bubblewrap, with what they stand on. No case of the attack
corpus passes for it; a test runs them all."""

# The gate beside the script is a copy of the shell that may not be read, so /proc shows neither memory nor descriptors of
# what runs it. As root it is made in the first stage; an ordinary user's is started by a shell that has no capabilities
# any more, with which it could be read.
_COPY = "/usr/bin/cat /bin/sh >{0} && /usr/bin/chmod 111 {0} || exit 1; "
# What may not be read may not be written from outside either.
_FIRST_TO_GO = "echo 500 >/proc/self/oom_score_adj; "
_STAGED_GATE, _OWN_GATE = "/tmp/sh", "/dev/shm/sh"
# The command is never pid 1: signals that it sends itself would be ignored. `$?` is what nsjail's log then tells. A
# signal that the gate catches does not end it, and what it catches the command does not inherit.
_PASS = 'trap : INT; echo; read -r go || exit 1; "$@"; exit $?'
# Files whose names must last (`InsideFile.copied`) are made here: the root is read-only by then.
_MAKE = 'while [ "$1" != -- ]; do printf %s "$1" >"$2" || exit 1; shift 2; done; shift; '
_FIRST_GATE = ("--exec_file", "/bin/sh", "--", "sh", "-c", _COPY.format(_STAGED_GATE) + _PASS, "sh")

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def build(job: Job) -> Plan:
    """The plan of a job. Pure: the same job gives the same plan."""
    root = job.uid is not None
    files = jobs.inside_files(job)
    grants = tuple((grant.fd, f"/stage/{grant.fd}" if root else grant.dest) for grant in job.grants)
    handoff = ("--pass_fd", Fd("handoff")) if job.egress is not None else ()
    copies = [
        word
        for file in files
        if file.copied
        for word in (file.content.decode("utf-8", "surrogateescape"), _copy_path(file.path))
    ]
    read_only = "read-only-root" not in job.without
    inner: tuple[Arg, ...] = (
        *(_inner_binary(job), "--config", FdPath("config"), "--log_fd", Fd("status"), *handoff),
        *(() if read_only else ("--rw",)),
        *_gate(copies, root=root),
        *jobs.command(job),
    )
    data = {"config": _inside(job).encode()}
    outer: tuple[Arg, ...] = ()
    if root:
        data["stage-config"] = _stage(job).encode()
        outer = (
            *(job.binary.path, "--config", FdPath("stage-config"), "--log_fd", Fd("stage-status")),
            *("--pass_fd", Fd("status"), "--pass_fd", Fd("config"), *handoff),
            *_FIRST_GATE,
            *_drop(job),
        )
    dropped = root and "uid-drop" not in job.without
    return Plan(
        argv=(*job.view, *outer, *inner),
        data=data,
        reports=("stage-status", "status") if root else ("status",),
        gates=2 if root else 1,
        compared=grants,
        # pid 1, and as root the inner nsjail too
        rlimits=()
        if "rlimits" in job.without
        else jobs.rlimits(job.limits, job.interpreter.language, extra_processes=2 if dropped else 1),
    )


def _gate(copies: list[str], *, root: bool) -> tuple[str, ...]:
    prelude = _MAKE if copies else ""
    rest = ("sh", *copies, "--") if copies else ("sh",)
    if root:
        # opened before anything is mounted, so it stands nowhere inside
        return ("--exec_file", _STAGED_GATE, "--execute_fd", "--", "sh", "-c", prelude + _PASS, *rest)
    begin = f'{_FIRST_TO_GO}{_COPY.format(_OWN_GATE)}exec {_OWN_GATE} -c "$@"'
    return (
        "--exec_file",
        "/bin/sh",
        "--",
        "sh",
        "-c",
        begin,
        "sh",
        f"/usr/bin/rm {_OWN_GATE}; {prelude}{_PASS}",
        *rest,
    )


def _drop(job: Job) -> tuple[str, ...]:
    if job.uid is None or "uid-drop" in job.without:
        return ()
    uid = str(job.uid)
    return (job.setpriv, "--reuid", uid, "--regid", uid, "--clear-groups", "--inh-caps=-all", "--")


def _inner_binary(job: Job) -> str:
    path = job.binary.path
    if job.uid is None or path.startswith("/usr/"):
        return path
    # the binary looks for ../../NAME from its own folder
    return f"/stage/program/nsjail/bin/{posixpath.basename(path)}"


def _copy_path(path: str) -> str:
    return f"/tmp/.{posixpath.basename(path)}"


def _quoted(value: str | bytes) -> str:
    """A text of the configuration's format: anything but plain ASCII as octal."""
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"\"'\\" else f"\\{byte:03o}" for byte in raw)
    return '"' + "".join(plain) + '"'


def _message(name: str, **fields: str | bytes | bool | int) -> str:
    def text(value: str | bytes | bool | int) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, int) else _quoted(value)

    return f"{name} {{ {' '.join(f'{key}: {text(value)}' for key, value in fields.items())} }}"


def _bind(source: str, place: str, *, writable: bool = False, needed: bool = True) -> str:
    return _message(
        "mount", src=source, dst=place, is_bind=True, rw=writable, nosuid=True, nodev=True, mandatory=needed
    )


def _link(target: str, place: str) -> str:
    return _message("mount", src=target, dst=place, is_symlink=True)


def _tmpfs(place: str, *, size: int | None, mode: str, writable: bool) -> str:
    options = f"mode={mode}" if size is None else f"mode={mode},size={size}"
    return _message("mount", dst=place, fstype="tmpfs", options=options, rw=writable, nosuid=True, nodev=True)


def _proc() -> str:
    return _message("mount", dst="/proc", fstype="proc", rw=True, nosuid=True, nodev=True, noexec=True)


def _device(name: str, place: str) -> str:
    return _message("mount", src=f"/dev/{name}", dst=place, is_bind=True, is_dir=False, nosuid=True)


def _system(job: Job) -> list[str]:
    lines = [_bind("/usr", "/usr")]
    lines.extend(_link(target, path) for target, path in job.layout.links)
    lines.extend(_bind(path, path) for path in job.layout.folders)
    return lines


# nsjail's own clock, limits and niceness are off: the daemon's hold
_FIXED = ("mode: ONCE", "log_level: INFO", "time_limit: 0", "nice_level: 0", "disable_rl: true")


def _stage(job: Job) -> str:
    """The outer root, made while still root: what the inner nsjail needs to make the script's."""
    namespaces = ("clone_newuser: false", "clone_newnet: false", "clone_newcgroup: false", "keep_caps: true")
    lines = [*_FIXED, *namespaces, 'cwd: "/"', *_system(job), _proc()]
    lines.append(_message("mount", src="/dev", dst="/dev", is_bind=True, rw=True))
    lines.append(_tmpfs("/tmp", size=16 * jobs.MIB, mode="1777", writable=True))
    lines.extend(_bind(path, path, needed=False) for path in job.layout.shared)
    for index, (host, _) in enumerate(jobs.runtime_binds(job)):
        lines.append(_bind(host, f"/stage/runtime{index}"))
    lines.extend(_bind(grant.path, f"/stage/{grant.fd}", writable=grant.writable) for grant in job.grants)
    if not job.binary.path.startswith("/usr/"):
        lines.append(_bind(posixpath.dirname(job.binary.path), "/stage/program/nsjail/bin"))
        if job.binary.libraries:
            place = f"/stage/program/{posixpath.basename(job.binary.libraries)}"
            lines.append(_bind(job.binary.libraries, place))
    return "\n".join(lines) + "\n"


def _inside(job: Job) -> str:
    off = job.without
    root = job.uid is not None
    sized = "sized-tmpfs" not in off
    uid = str(UID_INSIDE)
    lines = [*_FIXED, 'hostname: "sandbox"']
    lines.append(
        f"cwd: {_quoted('/tool' if job.script or any(grant.dest == '/tool' for grant in job.grants) else '/')}"
    )
    lines.append(_message("uidmap", inside_id=uid))
    lines.append(_message("gidmap", inside_id=uid))
    switches = {
        "network": "clone_newnet: false",
        "pids": "clone_newpid: false",
        "capabilities": "keep_caps: true",
        "clean-environment": "keep_env: true",
        "new-session": "skip_setsid: true",
    }
    lines.extend(line for layer, line in switches.items() if layer in off)
    lines.extend(f"envar: {_quoted(f'{name}={value}')}" for name, value in jobs.environment(job))
    if "seccomp" not in off:
        lines.append(f"seccomp_string: {_quoted(policy(job.machine))}")
    # over the root that nsjail makes, which takes programs with set-uid bits
    lines.append(_tmpfs("/", size=jobs.MIB if sized else None, mode="0755", writable="read-only-root" in off))
    lines.extend(_system(job))
    lines.append(_proc() if "pids" not in off else _bind("/proc", "/proc", writable=True))
    if "proc-sys" not in off:
        lines.extend(_bind(path, path) for path in job.layout.kernel)
    # a tmpfs is bounded only by half of the machine's memory if it is not told otherwise
    lines.append(_tmpfs("/dev", size=65_536 if sized else None, mode="0755", writable=not sized))
    lines.extend(_device(name, f"/dev/{name}") for name in _DEVICES)
    lines.append(
        _message(
            "mount",
            dst="/dev/pts",
            fstype="devpts",
            options="newinstance,ptmxmode=0666,mode=0620",
            rw=True,
            nosuid=True,
            noexec=True,
        )
    )
    for target, name in (("pts/ptmx", "ptmx"), ("/proc/self/fd", "fd")):
        lines.append(_link(target, f"/dev/{name}"))
    lines.extend(
        _link(f"/proc/self/fd/{number}", f"/dev/std{name}") for number, name in enumerate(("in", "out", "err"))
    )
    lines.append(_tmpfs("/dev/shm", size=SHM_BYTES if sized else None, mode="1777", writable=True))
    lines.append(_tmpfs("/tmp", size=job.limits.tmp_bytes if sized else None, mode="1777", writable=True))
    files = jobs.inside_files(job)
    lines.extend(_file(file) for file in files if file.path.startswith("/etc/"))
    lines.extend(_bind(path, path, needed=False) for path in job.layout.shared)
    for index, (host, inside) in enumerate(jobs.runtime_binds(job)):
        lines.append(_bind(f"/stage/runtime{index}" if root else host, inside))
    lines.extend(_file(file) for file in files if not file.path.startswith("/etc/"))
    for grant in job.grants:
        source = f"/stage/{grant.fd}" if root else grant.path
        lines.append(_bind(source, grant.dest, writable=grant.writable))
        if grant.dest == "/tool":
            lines.extend(map(_mask, job.hidden))
    if job.environment == "javascript":
        # Node and bun look for packages in every folder above the script's
        lines.append(_link("env/node_modules", "/node_modules"))
    return "\n".join(lines) + "\n"


def _mask(hidden: Hidden) -> str:
    place = f"/tool/{hidden.name}"
    if hidden.is_folder:
        return _tmpfs(place, size=4096, mode="0555", writable=False)
    return _message("mount", src="/dev/null", dst=place, is_bind=True, nosuid=True, nodev=True)


def _file(file: jobs.InsideFile) -> str:
    if file.copied:
        return _link(_copy_path(file.path), file.path)
    return _message("mount", src_content=file.content, dst=file.path, is_bind=True, nosuid=True, nodev=True)
