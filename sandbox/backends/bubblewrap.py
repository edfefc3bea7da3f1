"""Bubblewrap: from a job to its arguments, where the program is, and what its messages mean. Builds purely.

Two shapes:

- ordinary user: one bubblewrap in a new user namespace;
- root: an outer bubblewrap, still root, builds a small root that holds only what this run needs, gives up root for a
  uid of its own (`setpriv`), and starts the same inner bubblewrap as an ordinary user. So the script is never the
  host's root, which could write `/proc/sys` whatever its capabilities; folders below `/root` can still be shown; and
  the inner set-up, which no longer sees the host's tree, cannot be led out of it (CVE-2026-87766).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from tamis.sandbox import job as jobs
from tamis.sandbox.job import SHM_BYTES, UID_INSIDE, ArgFile, Fd, Hidden, Job, Layout, Plan

# bubblewrap sets its death signals without looking whether its parent is already dead, and takes the end of
# `--block-fd` for the word to go. So the last word is given here: the gate says that it stands, reads one line of
# stdin (bytewise: what follows is the script's), and a daemon that died meanwhile has nothing started.
GATE = ("/bin/sh", "-c", 'echo; read -r go && exec "$@"', "sh")

SimpleArg = str | Fd


def build(job: Job) -> Plan:
    """The plan of a job. Pure: the same job gives the same plan."""
    root = job.uid is not None
    inner_binary, stage, sources = _stage(job) if root else (job.binary.path, (), {})
    gate = () if job.is_gate else GATE
    inner = (inner_binary, "--args", ArgFile("args", _options(job, sources)), "--", *gate, *jobs.command(job))
    outer = (job.binary.path, "--args", ArgFile("stage-args", stage), "--", *_drop(job)) if root else ()
    dropped = root and "uid-drop" not in job.without
    return Plan(
        argv=(*job.view, *outer, *inner),
        data={
            **{file.name: file.content for file in jobs.inside_files(job)},
            **{f"mask{index}": b"" for index, entry in enumerate(job.hidden) if not entry.is_folder},
        },
        reports=("stage-status", "status") if root else ("status",),
        holds=("stage-block", "block") if root else ("block",),
        # pid 1, and as root its monitor too
        rlimits=()
        if "rlimits" in job.without
        else jobs.rlimits(job.limits, job.interpreter.language, extra_processes=2 if dropped else 1),
    )


def _stage(job: Job) -> tuple[str, tuple[SimpleArg, ...], dict[str, str]]:
    """The outer root: (path of the inner bubblewrap, options, staged place by source)."""
    # A process namespace of its own, because the death signal of a parent that is root without capabilities does not
    # reach a child with another uid: only the end of the namespace's init takes the inner bubblewrap with it.
    args: list[SimpleArg] = ["--die-with-parent", "--unshare-pid", *_system(job.layout)]
    args.extend(("--bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev"))
    places: set[str] = set()

    def folder(path: str) -> None:
        for place in _ancestors(path):
            if place not in places:
                places.add(place)
                args.extend(("--perms", "0755", "--dir", place))

    folder("/tmp/x")
    for path in job.layout.shared:
        folder(path)
        args.extend(("--ro-bind-try", path, path))
    sources: dict[str, str] = {}
    folder("/stage/x")
    for index, (host, _) in enumerate(jobs.runtime_binds(job)):
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


def _system(layout: Layout) -> list[SimpleArg]:
    args: list[SimpleArg] = ["--ro-bind", "/usr", "/usr"]
    for target, path in layout.links:
        args.extend(("--symlink", target, path))
    for path in layout.folders:
        args.extend(("--ro-bind", path, path))
    return args


def _namespaces(job: Job) -> list[SimpleArg]:
    off = job.without
    uid = str(UID_INSIDE)
    args: list[SimpleArg] = ["--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    args.extend(("--uid", uid, "--gid", uid))
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
        # a template's forks enter user namespaces of their own, and forbid any further one there
        if layer not in off and not (job.forks and layer == "disable-userns"):
            args.extend(flag)
    return [*args, "--hostname", "sandbox"]


def _options(job: Job, staged: dict[str, str]) -> tuple[SimpleArg, ...]:
    off = job.without
    args = [*_namespaces(job), *_system(job.layout), "--proc", "/proc"]
    # a template's forks mount a /proc each, which the kernel allows only where nothing covers any of the one that is there
    if "proc-sys" not in off and not job.forks:
        args.extend(("--ro-bind", "/proc/sys", "/proc/sys"))
    if "pids" not in off and not job.forks:
        # bubblewrap's own init has the script's user, so its memory would be open to it
        args.extend(("--ro-bind", "/dev/null", "/proc/1/mem", "--size", "4096", "--perms", "0555"))
        args.extend(("--tmpfs", "/proc/1/task", "--remount-ro", "/proc/1/task"))
    args.extend(("--dev", "/dev"))
    # bubblewrap's own tmpfs mounts are bounded only by half of the machine's memory
    sized = "sized-tmpfs" not in off
    args.extend((*(("--size", str(SHM_BYTES)) if sized else ()), "--perms", "1777", "--tmpfs", "/dev/shm"))
    args.extend((*(("--size", str(job.limits.tmp_bytes)) if sized else ()), "--perms", "1777", "--tmpfs", "/tmp"))
    args.extend(("--dir", "/etc"))
    files = jobs.inside_files(job)
    for file in files:
        if file.path.startswith("/etc/"):
            # written into the sandbox's own root, which becomes read-only: a mount for each takes 0.1 ms longer
            args.extend(("--perms", "0444", "--file", Fd(file.name), file.path))
    for path in job.layout.shared:
        args.extend(("--ro-bind-try", path, path))
    for host, inside in jobs.runtime_binds(job):
        args.extend(("--ro-bind", staged.get(host, host), inside))
    for file in files:
        if not file.path.startswith("/etc/"):
            args.extend(("--perms", "0444", "--file" if file.copied else "--ro-bind-data", Fd(file.name), file.path))
    args.extend(_grants(job, staged))
    if job.environment == "javascript":
        # Node and bun look for packages in every folder above the script's
        args.extend(("--symlink", "env/node_modules", "/node_modules"))
    if sized:
        args.extend(("--remount-ro", "/dev"))
    if "read-only-root" not in off:
        args.extend(("--remount-ro", "/"))
    for name, value in jobs.environment(job):
        args.extend(("--setenv", name, value))
    args.extend(("--chdir", "/tool" if job.script or any(grant.dest == "/tool" for grant in job.grants) else "/"))
    if "seccomp" not in off:
        args.extend(("--seccomp", Fd("seccomp")))
    args.extend(("--json-status-fd", Fd("status"), "--block-fd", Fd("block")))
    return tuple(args)


def _grants(job: Job, staged: dict[str, str]) -> list[SimpleArg]:
    args: list[SimpleArg] = []
    for grant in job.grants:
        flag = "--bind" if grant.writable else "--ro-bind"
        if grant.fd in staged:
            args.extend((flag, staged[grant.fd], grant.dest))
        else:
            args.extend((f"{flag}-fd", Fd(grant.fd), grant.dest))
        if grant.dest == "/tool":
            args.extend(_masks(job.hidden))
    return args


def _masks(hidden: Iterable[Hidden]) -> list[SimpleArg]:
    """Empty files and folders over what is hidden: the names are there and were walked to, so nothing is made for them."""
    args: list[SimpleArg] = []
    for index, entry in enumerate(hidden):
        place = f"/tool/{entry.name}"
        if entry.is_folder:
            args.extend(("--size", "4096", "--perms", "0555", "--tmpfs", place, "--remount-ro", place))
        else:
            args.extend(("--perms", "0444", "--ro-bind-data", Fd(f"mask{index}"), place))
    return args
