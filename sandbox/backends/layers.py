"""What each layer of a run protects from, in a line for the operator. Data; the names are `job.LAYERS`."""

from __future__ import annotations

PROTECTS: dict[str, str] = {
    "namespaces": "the host's files, users, IPC and host name are not there",
    "seccomp": "calls that reach past the namespaces (keyrings, io_uring, vsock, ptrace, bpf, mounts) are refused",
    "rlimits": "memory, processor time, processes, open files and file sizes are bounded for each process",
    "cgroup": "memory and processes of the whole run are bounded by the kernel",
    "watchdog": "memory of all processes together and files in /tmp are counted every 50 ms",
    "sized-tmpfs": "/tmp, /dev/shm and /dev cannot fill the machine's memory",
    "read-only-root": "nothing outside /tmp and the granted folders can be written",
    "disable-userns": "no further user namespaces can be made inside",
    "capabilities": "no capability is left, and none can be gained",
    "clean-environment": "none of the daemon's variables, secrets among them, reaches a script",
    "new-session": "a script has no terminal to type into",
    "die-with-parent": "nothing outlives the daemon",
    "network": "no network but what allowHosts grants through the daemon's proxy",
    "pids": "other processes are neither seen nor signalled",
    "uid-drop": "as root: a script runs as a user of its own, never as the host's root",
    "proc-sys": "the kernel's settings are read-only",
}
