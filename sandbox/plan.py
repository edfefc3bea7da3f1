"""From a request to what is started: mounts, flags, environment, limits. Pure: opens nothing, starts nothing.

Descriptors that the launcher will open stand as `Fd(name)`. Two shapes:

- ordinary user: one bubblewrap in a new user namespace;
- root: an outer bubblewrap, still root, builds a small root that holds only what this run needs, gives up root for a
  uid of its own (`setpriv`), and starts the same inner bubblewrap as an ordinary user. So the script is never the
  host's root, which could write `/proc/sys` whatever its capabilities; folders below `/root` can still be shown; and
  the inner set-up, which no longer sees the host's tree, cannot be led out of it (CVE-2026-87766).
"""

from __future__ import annotations

import posixpath
import resource
from collections.abc import Iterable, Sequence

import msgspec

from tamis.sandbox.interpreters import Interpreter
from tamis.sandbox.model import Language, Limits

SHM_BYTES = 16_777_216
MIB = 1_048_576
MIN_OPEN_FILES = 32
MIN_FILE_BYTES = 4096
PROXY_PORT = 3128
# bubblewrap sets its death signals without looking whether its parent is already dead, and takes the end of
# `--block-fd` for the word to go. So the last word is given here: the gate says that it stands, reads one line of
# stdin (bytewise: what follows is the script's), and a daemon that died meanwhile has nothing started.
GATE = ("/bin/sh", "-c", 'echo; read -r go && exec "$@"', "sh")
LAYERS = (
    *("namespaces", "seccomp", "rlimits", "watchdog", "sized-tmpfs", "read-only-root", "disable-userns"),
    *("capabilities", "clean-environment", "new-session", "die-with-parent", "network", "pids", "uid-drop", "proc-sys"),
)
"""Every layer by name. All are on; only a test's meta-check leaves one out to see that its cases then fail."""


class Fd(msgspec.Struct, frozen=True):
    """Stands for the number of a descriptor that the launcher opens under this name."""

    name: str


Arg = str | Fd


class Grant(msgspec.Struct, frozen=True):
    """A folder or file shown at `dest`; `fd` names its opened descriptor."""

    fd: str
    dest: str
    writable: bool = False


class Binary(msgspec.Struct, frozen=True):
    """The bubblewrap to use. `libraries` is the folder of bundled libraries that it finds relative to itself."""

    path: str
    version: str = ""
    libraries: str | None = None


class Layout(msgspec.Struct, frozen=True):
    """How this host's root looks: `links` are (target, path) of a merged /usr, `folders` real ones beside /usr,
    `shared` files and folders of /etc that every program may read, `certificates` the file of trusted authorities."""

    links: tuple[tuple[str, str], ...]
    folders: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    certificates: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides a plan. `uid` is the throw-away uid when root, else None."""

    binary: Binary
    layout: Layout
    interpreter: Interpreter
    script: str
    args: tuple[str, ...] = ()
    boot: bytes = b""
    """A program that is run in the script's place, with the script's path as its first argument."""
    env: tuple[tuple[str, str], ...] = ()
    limits: Limits = Limits()
    grants: tuple[Grant, ...] = ()
    uid: int | None = None
    setpriv: str = "/usr/bin/setpriv"
    egress: Interpreter | None = None
    """The Python that makes the proxy's listener inside; None means no network at all."""
    listener: bytes = b""
    """What that Python runs."""
    command: tuple[str, ...] | None = None
    """Run this instead of a script: for the probe."""
    without: frozenset[str] = frozenset()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the launcher executes.

    `stage` are the outer bubblewrap's options (empty for an ordinary user), `drop` the command that gives up root,
    `options` the sandbox's own options, `command` what runs inside. `data` are descriptors by name with their bytes.
    """

    binary: str
    inner_binary: str
    stage: tuple[Arg, ...]
    drop: tuple[str, ...]
    options: tuple[Arg, ...]
    command: tuple[Arg, ...]
    data: dict[str, bytes]
    rlimits: tuple[tuple[int, int, int], ...]


def rlimits(limits: Limits, language: Language, *, root: bool) -> tuple[tuple[int, int, int], ...]:
    """(resource, soft, hard) rows.

    RLIMIT_DATA is the memory limit; RLIMIT_AS only a coarse backstop and none for V8 and JavaScriptCore, which
    reserve far more than they use (S5). Processes include bubblewrap's own: pid 1, and as root its monitor.
    """
    memory = limits.memory_bytes
    if language == "python":
        data, space = memory + 64 * MIB, memory + 1024 * MIB
    elif language == "nodejs":
        # V8 of Node 24 reserves 512 MiB for code as private writable memory before it runs a line; the watchdog
        # holds what is really used.
        data, space = memory + 768 * MIB, 64 * 1024 * MIB
    else:
        data, space = max(memory + 256 * MIB, 512 * MIB), 64 * 1024 * MIB
    processes = limits.processes + (2 if root else 1)
    same = {
        resource.RLIMIT_DATA: data,
        resource.RLIMIT_AS: space,
        resource.RLIMIT_NPROC: processes,
        # as root these hold while the inner sandbox is set up too, which needs this much
        resource.RLIMIT_NOFILE: max(limits.open_files, MIN_OPEN_FILES),
        resource.RLIMIT_FSIZE: max(limits.file_bytes, MIN_FILE_BYTES),
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: MIB,
        resource.RLIMIT_MSGQUEUE: 65_536,
        resource.RLIMIT_SIGPENDING: 256,
        resource.RLIMIT_RTPRIO: 0,
    }
    rows = [(name, value, value) for name, value in same.items()]
    # SIGXCPU at the soft limit tells why; SIGKILL one second later, should the script ignore it.
    cpu = max(limits.cpu_seconds, 1)
    rows.append((resource.RLIMIT_CPU, cpu, cpu + 1))
    return tuple(rows)


def build(job: Job) -> Plan:
    """The plan of a job. Pure: the same job gives the same plan."""
    root = job.uid is not None
    inner_binary, stage, sources = _stage(job) if root else (job.binary.path, (), {})
    return Plan(
        binary=job.binary.path,
        inner_binary=inner_binary,
        stage=stage,
        drop=_drop(job),
        options=_options(job, sources),
        command=(*GATE, *_command(job)),
        data=_data(job),
        rlimits=()
        if "rlimits" in job.without
        else rlimits(job.limits, job.interpreter.language, root=root and "uid-drop" not in job.without),
    )


def _binds(job: Job) -> list[tuple[str, str]]:
    """(host path, path inside) of everything but grants that is shown read-only, in mounting order."""
    binds = [*job.interpreter.binds, *(job.egress.binds if job.egress else ())]
    return list(dict.fromkeys(binds))


def _stage(job: Job) -> tuple[str, tuple[Arg, ...], dict[str, str]]:
    """The outer root: (path of the inner bubblewrap, options, staged place by source)."""
    # A process namespace of its own, because the death signal of a parent that is root without capabilities does not
    # reach a child with another uid: only the end of the namespace's init takes the inner bubblewrap with it.
    args: list[Arg] = ["--die-with-parent", "--unshare-pid", *_system(job.layout)]
    args.extend(("--bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev"))
    made: set[str] = set()

    def folder(path: str) -> None:
        for place in _ancestors(path):
            if place not in made:
                made.add(place)
                args.extend(("--perms", "0755", "--dir", place))

    folder("/tmp/x")
    for path in job.layout.shared:
        folder(path)
        args.extend(("--ro-bind-try", path, path))
    sources: dict[str, str] = {}
    folder("/stage/x")
    for index, (host, _) in enumerate(_binds(job)):
        sources[host] = f"/stage/runtime{index}"
        args.extend(("--ro-bind", host, sources[host]))
    for grant in job.grants:
        sources[grant.fd] = f"/stage/{grant.fd}"
        args.extend(("--bind-fd" if grant.writable else "--ro-bind-fd", Fd(grant.fd), sources[grant.fd]))
    inner = job.binary.path
    if not inner.startswith("/usr/"):
        place = posixpath.dirname(inner)
        inner = f"/stage/program/bin/_bin/{posixpath.basename(inner)}"
        folder(posixpath.dirname(inner))
        args.extend(("--ro-bind", place, posixpath.dirname(inner)))
        if job.binary.libraries:
            # the binary looks for ../../NAME from its own folder
            args.extend(
                ("--ro-bind", job.binary.libraries, f"/stage/program/{posixpath.basename(job.binary.libraries)}")
            )
    args.extend(("--json-status-fd", Fd("stage-status"), "--block-fd", Fd("stage-block"), "--chdir", "/"))
    return inner, tuple(args), sources


def _ancestors(path: str) -> list[str]:
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: index + 1]) for index in range(len(parts))]


def _drop(job: Job) -> tuple[str, ...]:
    if job.uid is None or "uid-drop" in job.without:
        return ()
    uid = str(job.uid)
    # No `--pdeathsig`: killed before it has set up its child, bubblewrap would leave that child waiting for ever. It
    # sets the death signal itself when it may, and what is orphaned before that ends at the gate.
    return (job.setpriv, "--reuid", uid, "--regid", uid, "--clear-groups", "--inh-caps=-all", "--")


def _system(layout: Layout) -> list[Arg]:
    args: list[Arg] = ["--ro-bind", "/usr", "/usr"]
    for target, path in layout.links:
        args.extend(("--symlink", target, path))
    for path in layout.folders:
        args.extend(("--ro-bind", path, path))
    return args


def _namespaces(job: Job) -> list[Arg]:
    off = job.without
    args: list[Arg] = [
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--uid",
        "1000",
        "--gid",
        "1000",
    ]
    flags = {
        "pids": ("--unshare-pid",),
        "network": ("--unshare-net",),
        "disable-userns": ("--disable-userns",),
        "capabilities": ("--cap-drop", "ALL"),
        "new-session": ("--new-session",),
        "die-with-parent": ("--die-with-parent",),
        "clean-environment": ("--clearenv",),
    }
    for layer, flag in flags.items():
        if layer not in off:
            args.extend(flag)
    return [*args, "--hostname", "sandbox"]


def _options(job: Job, staged: dict[str, str]) -> tuple[Arg, ...]:
    off = job.without
    args = [*_namespaces(job), *_system(job.layout), "--proc", "/proc"]
    if job.uid is not None and "proc-sys" not in off:
        args.extend(("--ro-bind", "/proc/sys", "/proc/sys"))
    args.extend(("--dev", "/dev"))
    # bubblewrap's own tmpfs mounts are bounded only by half of the machine's memory
    sized = "sized-tmpfs" not in off
    args.extend((*(("--size", str(SHM_BYTES)) if sized else ()), "--perms", "1777", "--tmpfs", "/dev/shm"))
    args.extend((*(("--size", str(job.limits.tmp_bytes)) if sized else ()), "--perms", "1777", "--tmpfs", "/tmp"))
    args.extend(("--dir", "/etc"))
    for name in _data(job):
        if name.startswith("etc-"):
            args.extend(("--perms", "0444", "--ro-bind-data", Fd(name), f"/etc/{name[4:]}"))
    for path in job.layout.shared:
        args.extend(("--ro-bind-try", path, path))
    for host, inside in _binds(job):
        args.extend(("--ro-bind", staged.get(host, host), inside))
    if job.egress is not None:
        args.extend(("--perms", "0444", "--ro-bind-data", Fd("listener"), "/run/listener.py"))
    if job.boot:
        # a copy in our own tmpfs, not a bound file: bun looks up the file's name, and a bound one has none left
        args.extend(("--perms", "0444", "--file", Fd("boot"), _boot_path(job)))
    args.extend(_grants(job.grants, staged))
    if sized:
        args.extend(("--remount-ro", "/dev"))
    if "read-only-root" not in off:
        args.extend(("--remount-ro", "/"))
    for name, value in environment(job):
        args.extend(("--setenv", name, value))
    args.extend(("--chdir", "/tool" if job.command is None else "/"))
    if "seccomp" not in off:
        args.extend(("--seccomp", Fd("seccomp")))
    args.extend(("--json-status-fd", Fd("status"), "--block-fd", Fd("block")))
    return tuple(args)


def _grants(grants: Iterable[Grant], staged: dict[str, str]) -> list[Arg]:
    args: list[Arg] = []
    for grant in grants:
        flag = "--bind" if grant.writable else "--ro-bind"
        if grant.fd in staged:
            args.extend((flag, staged[grant.fd], grant.dest))
        else:
            args.extend((f"{flag}-fd", Fd(grant.fd), grant.dest))
    return args


def environment(job: Job) -> list[tuple[str, str]]:
    """The script's whole environment (S10): fixed names, the proxy's, then the request's own."""
    base = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "MALLOC_ARENA_MAX": "2",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
    }
    if job.egress is not None:
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            base[name] = base[name.lower()] = proxy
        base["NO_PROXY"] = base["no_proxy"] = "localhost,127.0.0.1,::1"
        base["NODE_USE_ENV_PROXY"] = "1"
        if job.layout.certificates is not None:
            base["SSL_CERT_FILE"] = base["REQUESTS_CA_BUNDLE"] = job.layout.certificates
    return [*base.items(), *job.env]


def _command(job: Job) -> tuple[Arg, ...]:
    if job.command is not None:
        return job.command
    script = f"/tool/{job.script}"
    path, rest = (_boot_path(job), (script, *job.args)) if job.boot else (script, job.args)
    program = job.interpreter.path
    if job.interpreter.language == "python":
        # not -I: a script's siblings are importable (trap 19)
        command: tuple[Arg, ...] = (program, "-s", "-B", path, *rest)
    elif job.interpreter.language == "nodejs":
        heap = max(16, job.limits.memory_bytes * 3 // 4 // MIB)
        command = (program, f"--max-old-space-size={heap}", path, *rest)
    else:
        command = (program, "run", path, *rest)
    if job.egress is None:
        return command
    return (job.egress.path, "-I", "-S", "/run/listener.py", Fd("handoff"), *command)


def _boot_path(job: Job) -> str:
    return "/run/boot.py" if job.interpreter.language == "python" else "/run/boot.mjs"


def _data(job: Job) -> dict[str, bytes]:
    data = {
        "etc-passwd": b"tool:x:1000:1000:tool:/tmp:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
        "etc-group": b"tool:x:1000:\nnogroup:x:65534:\n",
        "etc-hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n",
        "etc-nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
    }
    if job.egress is not None:
        data["listener"] = job.listener
    if job.boot:
        data["boot"] = job.boot
    return data


def shown(args: Sequence[Arg]) -> list[str]:
    """Arguments with descriptors as `{name}`, for messages and golden tests."""
    return [f"{{{arg.name}}}" if isinstance(arg, Fd) else arg for arg in args]
