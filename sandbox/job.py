"""One run as data, whatever the backend: the job that decides everything, and the plan that a backend makes of it.

Pure: opens nothing, starts nothing. Descriptors that the launcher will open stand as `Fd(name)`, files of arguments
as `ArgFile`.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence

import msgspec

from tamis.sandbox.model import Interpreter, Language, Limits
from tamis.sandbox.warm import boot as warm_boot

SHM_BYTES = 16_777_216
MIB = 1_048_576
STACK_BYTES = 4_194_304
MIN_OPEN_FILES = 32
MIN_FILE_BYTES = 4096
PROXY_PORT = 3128
SECRETS_FOLDER = "/run/secrets"
PRELOAD_PATH = "/run/proxy.cjs"
UID_INSIDE = 1000
LAYERS = (
    *("namespaces", "seccomp", "rlimits", "cgroup", "watchdog", "sized-tmpfs", "read-only-root", "disable-userns"),
    *("capabilities", "clean-environment", "new-session", "die-with-parent", "network", "pids", "uid-drop", "proc-sys"),
)
"""Every layer by name. All are on where they can be; only a test's meta-check leaves one out to see that its cases then fail."""


class Fd(msgspec.Struct, frozen=True):
    """Stands for the number of a descriptor that the launcher opens under this name."""

    name: str


class FdPath(msgspec.Struct, frozen=True):
    """Stands for the path by which the started program itself opens this descriptor."""

    name: str


class ArgFile(msgspec.Struct, frozen=True):
    """Stands for the number of a descriptor whose content is these arguments, each ended by NUL."""

    name: str
    args: tuple[str | Fd, ...]


Arg = str | Fd | FdPath | ArgFile


class Grant(msgspec.Struct, frozen=True):
    """A folder or file shown at `dest`; `fd` names its opened descriptor, `path` is where it was walked to."""

    fd: str
    dest: str
    writable: bool = False
    path: str = ""


class Hidden(msgspec.Struct, frozen=True):
    """A name at the top of the tool's folder that the script does not see: an empty file or folder stands over it."""

    name: str
    is_folder: bool = False


class Binary(msgspec.Struct, frozen=True):
    """The program that sandboxes. `libraries` is the folder of bundled libraries that it finds relative to itself."""

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
    kernel: tuple[str, ...] = ("/proc/sys",)
    """What of /proc is settings of the whole machine's, to be shown read-only."""


class InsideFile(msgspec.Struct, frozen=True):
    """A small file made inside. `copied`: in the sandbox's own tmpfs, not a bound file, which has no name left to look
    up (bun does)."""

    name: str
    path: str
    content: bytes
    copied: bool = False


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
    hidden: tuple[Hidden, ...] = ()
    """What of `/tool` is masked, each name walked to without following links."""
    files: tuple[InsideFile, ...] = ()
    """Files that are made inside, beside the ones of every run."""
    warm: bytes = b""
    """A program of the same language that makes ready for the script and waits for a second word to go (`warm_boot`)."""
    is_gate: bool = False
    """`warm` is the gate itself, and looks at nothing of the tool before the word."""
    forks: bool = False
    """`warm` is a template, which makes a sandbox for each call inside this one."""
    environment: str = ""
    """What kind of dependency environment is shown at /env: `python`, `javascript`, or none."""
    uid: int | None = None
    setpriv: str = "/usr/bin/setpriv"
    view: tuple[str, ...] = ()
    """As root: the command that enters the mount namespace in which folders stand whose owner is `uid`; empty where none does."""
    egress: Interpreter | None = None
    """The Python that makes the proxy's listener inside; None means no network at all."""
    listener: bytes = b""
    """What that Python runs."""
    preload: bytes = b""
    """What a Node.js script's clients need to find the proxy."""
    program: tuple[str, ...] = ()
    """Run this instead of a script."""
    machine: str = "x86_64"
    """Whose call numbers the filter uses."""
    without: frozenset[str] = frozenset()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the launcher executes.

    `data` are descriptors by name with their bytes. `reports` are pipes that the sandbox writes its state to, `holds`
    pipes that it waits for; both are kept open here under `NAME-read` and `NAME-write`. `rlimits` are set from outside.
    `gates` are how many gates stand one after the other when the sandbox tells that it stands by them alone.
    """

    argv: tuple[Arg, ...]
    data: dict[str, bytes]
    reports: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    rlimits: tuple[tuple[int, int, int], ...] = ()
    gates: int = 0
    bare: bool = False
    """Not a sandbox: a plain child below its keeper, which is all there is to hold on to."""
    compared: tuple[tuple[str, str], ...] = ()
    """(descriptor, path inside): what was mounted by name and must be what the descriptor has, or nothing is run."""


def rlimits(limits: Limits, language: Language | str, *, extra_processes: int) -> tuple[tuple[int, int, int], ...]:
    """(resource, soft, hard) rows.

    RLIMIT_DATA is the memory limit; RLIMIT_AS only a coarse backstop and none for V8 and JavaScriptCore, which
    reserve far more than they use (S5). `extra_processes` are the sandbox's own that are counted with the script's.
    """
    memory = limits.memory_bytes
    if language == "nodejs":
        # V8 of Node 24 reserves 512 MiB for code as private writable memory before it runs a line; the watchdog
        # holds what is really used.
        data, space = memory + 768 * MIB, 64 * 1024 * MIB
    elif language == "bun":
        data, space = max(memory + 256 * MIB, 512 * MIB), 64 * 1024 * MIB
    else:
        data, space = memory + 64 * MIB, memory + 1024 * MIB
    same = {
        resource.RLIMIT_DATA: data,
        resource.RLIMIT_AS: space,
        resource.RLIMIT_NPROC: limits.processes + extra_processes,
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
    # The stack of every thread counts against RLIMIT_DATA: at 8 MiB each, 40 threads would use up the default memory.
    rows.append((resource.RLIMIT_STACK, STACK_BYTES, resource.RLIM_INFINITY))
    # SIGXCPU at the soft limit tells why; SIGKILL one second later, should the script ignore it.
    cpu = max(limits.cpu_seconds, 1)
    rows.append((resource.RLIMIT_CPU, cpu, cpu + 1))
    return tuple(rows)


def runtime_binds(job: Job) -> list[tuple[str, str]]:
    """(host path, path inside) of everything but grants that is shown read-only, in mounting order."""
    binds = [*job.interpreter.binds, *(job.egress.binds if job.egress else ())]
    return list(dict.fromkeys(binds))


def environment(job: Job) -> list[tuple[str, str]]:
    """The variables of a run: a few fixed names, the environment's, the proxy's, then the request's own."""
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
    if job.environment == "python":
        base["PATH"] = "/env/bin:" + base["PATH"]
        base["VIRTUAL_ENV"] = "/env"
    elif job.environment == "javascript":
        base["PATH"] = "/env/node_modules/.bin:" + base["PATH"]
    if job.egress is not None:
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            base[name] = base[name.lower()] = proxy
        base["NO_PROXY"] = base["no_proxy"] = "localhost,127.0.0.1,::1"
        if not _preloads(job):
            base["NODE_USE_ENV_PROXY"] = "1"
        if job.layout.certificates is not None:
            base["SSL_CERT_FILE"] = base["REQUESTS_CA_BUNDLE"] = job.layout.certificates
    return [*base.items(), *job.env]


def command(job: Job) -> tuple[Arg, ...]:
    """What runs inside: the interpreter with the script, behind the listener when there is egress."""
    words: tuple[Arg, ...] = job.program or _script_command(job)
    if job.egress is None:
        return words
    return (job.egress.path, "-I", "-S", "/run/listener.py", Fd("handoff"), *words)


def _script_command(job: Job) -> tuple[Arg, ...]:
    script = f"/tool/{job.script}"
    path, rest = (boot_path(job), (script, *job.args)) if job.boot else (script, job.args)
    program = job.interpreter.path
    if job.interpreter.language == "python":
        # not -I: a script's siblings are importable (trap 19)
        program = "/env/bin/python" if job.environment == "python" else program
        starter: tuple[Arg, ...] = (warm_boot.PYTHON_PATH,) if job.warm else ()
        if job.forks:
            starter = (*starter, Fd("control"))
        return (*job.interpreter.command(program), "-s", "-B", *starter, path, *rest)
    if job.interpreter.language == "nodejs":
        heap = max(16, job.limits.memory_bytes * 3 // 4 // MIB)
        preload = ("--require", PRELOAD_PATH) if _preloads(job) else ()
        starter = ("--require", warm_boot.NODE_PATH) if job.warm else ()
        return (program, f"--max-old-space-size={heap}", *preload, *starter, path, *rest)
    # a package that is not there is an error, not a download
    return (program, "run", "--no-install", path, *rest)


def _preloads(job: Job) -> bool:
    return bool(job.egress and job.preload and job.interpreter.language == "nodejs" and not job.program)


def boot_path(job: Job) -> str:
    """Where the boot program stands inside."""
    return "/run/boot.py" if job.interpreter.language == "python" else "/run/boot.mjs"


def inside_files(job: Job) -> tuple[InsideFile, ...]:
    """The files that every run gets: accounts and names, and the programs that start the script."""
    accounts = f"tool:x:{UID_INSIDE}:{UID_INSIDE}:tool:/tmp:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
    files = [
        InsideFile("etc-passwd", "/etc/passwd", accounts.encode()),
        InsideFile("etc-group", "/etc/group", f"tool:x:{UID_INSIDE}:\nnogroup:x:65534:\n".encode()),
        InsideFile("etc-hosts", "/etc/hosts", b"127.0.0.1 localhost sandbox\n::1 localhost\n"),
        InsideFile("etc-nsswitch.conf", "/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files\n"),
    ]
    if job.egress is not None:
        files.append(InsideFile("listener", "/run/listener.py", job.listener))
    if _preloads(job):
        files.append(InsideFile("preload", PRELOAD_PATH, job.preload))
    if job.boot:
        files.append(InsideFile("boot", boot_path(job), job.boot, copied=True))
    if job.warm:
        place = warm_boot.PYTHON_PATH if job.interpreter.language == "python" else warm_boot.NODE_PATH
        files.append(InsideFile("warm", place, job.warm, copied=True))
    files.extend(job.files)
    return tuple(files)


def shown(args: Sequence[Arg]) -> list[str]:
    """Arguments with descriptors as `{name}`, for messages and golden tests."""
    return [arg if isinstance(arg, str) else _placeholder(arg) for arg in args]


def _placeholder(arg: Fd | FdPath | ArgFile) -> str:
    return f"/proc/self/fd/{{{arg.name}}}" if isinstance(arg, FdPath) else f"{{{arg.name}}}"
