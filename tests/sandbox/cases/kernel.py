"""The kernel's interface: calls that no tool needs are refused, processes of the host are not there (items 2 and 5)."""

from __future__ import annotations

from tests.sandbox.cases.base import _PRELUDE, Case, attack  # pyright: ignore[reportPrivateUsage]

_CHILD = "pid=os.fork()\nif pid==0:\n  import time; time.sleep(3600); os._exit(0)\n"

KERNEL = (
    attack("k01-core-pattern", "cannot(lambda: os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)))"),
    attack(
        "k02-every-setting",
        "import glob\nfor p in glob.glob('/proc/sys/**', recursive=True):\n  if os.path.isfile(p):\n    try: os.close(os.open(p, os.O_WRONLY))\n    except OSError: continue\n    broken(p)\nheld()",
    ),
    attack("k03-userns", "refused(272, 0x10000000)", layer="seccomp+disable-userns"),
    attack("k04-userns-clone", "refused(56, 0x10000000 | 17, 0, 0, 0, 0)", layer="seccomp+disable-userns"),
    attack("k05-clone3-absent", "refused(435, 0, 0, codes=(errno.ENOSYS,))", layer="seccomp"),
    attack("k06-ptrace", _CHILD + "refused(101, 16, pid, 0, 0)", layer="seccomp"),
    attack("k07-keyring", "refused(250, 0, -3, 0)", layer="seccomp"),
    attack("k08-add-key", "refused(248, b'user', b'x', b'y', 1, -3)", layer="seccomp"),
    attack("k09-io-uring", "b=(ctypes.c_char*120)(); refused(425, 8, b, codes=(errno.ENOSYS,))", layer="seccomp"),
    attack("k10-bpf", "refused(321, 0, 0, 0)"),
    attack("k11-perf", "refused(298, 0, 0, -1, -1, 0)"),
    attack("k12-userfaultfd", "refused(323, 1)", layer="seccomp"),
    attack("k13-tiocsti", "import fcntl; refused(16, 0, 0x5412, b'x')"),
    attack("k14-tiocsti-high-bits", "refused(16, 0, 0x1_0000_5412, b'x', codes=(errno.EPERM,))", layer="seccomp"),
    attack("k15-personality", "refused(135, 0x0040000)", layer="seccomp"),
    attack("k16-pidfd-getfd", "fd=os.pidfd_open(os.getpid()); refused(438, fd, 0, 0)", layer="seccomp"),
    attack("k17-process-vm-read", "b=(ctypes.c_char*32)(); refused(310, os.getpid(), b, 1, b, 1, 0)", layer="seccomp"),
    # the 32-bit entry: getpid of the other table; a filter that judged by number alone would let chmod through
    Case(
        "k18-int-0x80",
        _PRELUDE
        + "import mmap\nm=mmap.mmap(-1,4096,prot=7)\nm.write(bytes.fromhex('b814000000cd80c3'))\nf=ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nprint('BROKEN', f())",
        kind="error",
        error="SecurityError",
        layer="seccomp",
    ),
    Case(
        "k19-x32",
        _PRELUDE + "call(0x40000000 + 39); print('BROKEN')",
        kind="error",
        error="SecurityError",
        layer="seccomp",
    ),
    attack(
        "k20-capabilities",
        "s=open('/proc/self/status').read(); held() if all(f'Cap{k}:\\t0000000000000000' in s for k in ('Inh','Prm','Eff','Bnd','Amb')) else broken(s)",
    ),
    attack(
        "k21-no-new-privileges",
        "held() if 'NoNewPrivs:\\t1' in open('/proc/self/status').read() else broken('can gain')",
    ),
    attack(
        "k22-host-processes",
        "held() if sum(n.isdigit() for n in os.listdir('/proc')) <= 2 else broken(os.listdir('/proc'))",
        layer="pids",
    ),
    # trust 8b: the sandbox's own init has the script's user
    attack(
        "k72-memory-of-init",
        "import glob\nfor p in {'/proc/1/mem', '/proc/1/task/1/mem', *glob.glob('/proc/[0-9]*/mem'), *glob.glob('/proc/[0-9]*/task/*/mem')}:\n"
        "  if int(p.split('/')[2]) == os.getpid(): continue\n"
        "  for how in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY):\n    try: os.close(os.open(p, how))\n    except OSError: continue\n    broken(p)\nheld()",
    ),
    attack("k23-signal-others", "cannot(lambda: os.kill(-1, 0), ProcessLookupError)"),
    # host root may write these whatever its capabilities; opened only, never written
    attack(
        "k24-core-pattern-as-root",
        "cannot(lambda: os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)))",
        layer="uid-drop+proc-sys",
        root_only=True,
    ),
    attack("k25-chroot", "cannot(lambda: os.chroot('/tmp'))"),
    attack(
        "k26-names",
        "import socket; tries(lambda: socket.sethostname('x'), lambda: libc.setdomainname(b'x', 1) and os.rmdir('/nothing'))",
    ),
    attack(
        "k27-settime",
        "import time; tries(lambda: time.clock_settime(0, 0), lambda: call(164, 0, 0)[0] and os.rmdir('/nothing'))",
    ),
    attack(
        "k28-raise-limits",
        "import resource as r\ndef up(n): return lambda: r.setrlimit(n, (1 << 40, 1 << 40))\ntries(*map(up, (r.RLIMIT_NPROC, r.RLIMIT_NOFILE, r.RLIMIT_DATA, r.RLIMIT_AS, r.RLIMIT_FSIZE, r.RLIMIT_CPU, r.RLIMIT_CORE, r.RLIMIT_MEMLOCK)))",
    ),
    attack("k29-host-terminal", "cannot(lambda: open('/dev/tty','w'))"),
    attack(
        "k30-oom-score",
        "open('/proc/self/oom_score_adj').read() == '500\\n' or broken('preferred'); f=os.open('/proc/self/oom_score_adj', os.O_WRONLY); cannot(lambda: os.write(f, b'-500'))",
    ),
    attack(
        "k31-sysctl-is-readonly",
        "l=[x for x in open('/proc/self/mountinfo') if ' /proc/sys ' in x]; held() if l and ' ro,' in l[-1] else broken(l)",
        layer="proc-sys",
    ),
    attack(
        "k32-every-namespace",
        "for f in (0x20000, 0x80, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):\n  if call(272, f)[0] == 0: broken(hex(f))\nheld()",
    ),
    attack(
        "k33-enter-namespaces",
        "for n in os.listdir('/proc/1/ns') if os.access('/proc/1/ns', os.R_OK) else []:\n  try: fd=os.open(f'/proc/1/ns/{n}', 0)\n  except OSError: continue\n  if call(308, fd, 0)[0] == 0: broken(n)\nr,e=call(308, os.pidfd_open(1), 0x20000000)\nheld() if r<0 else broken('setns')",
    ),
    attack(
        "k34-mount-calls",
        "for n,*a in ((165,b'none',b'/tmp',b'tmpfs',0,0),(166,b'/tool',2),(155,b'/tmp',b'/tmp'),(428,-100,b'/tool',0x1),(429,-1,b'',-100,b'/tmp',4),(430,b'tmpfs',0),(432,0,0,0),(433,-100,b'/tool',0),(442,-100,b'/tool',0,b'',0)):\n  if call(n,*a)[0] >= 0: broken(n)\nheld()",
    ),
    attack(
        "k35-modules-and-kexec",
        "for n,*a in ((175,b'',0,b''),(313,0,b'',0),(176,b'x',0),(246,0,0,0,0),(320,0,0,0,b'',0),(169,0xfee1dead,672274793,0,0),(163,b'/tmp/x'),(167,b'/tmp/x',0)):\n  if call(n,*a)[0] >= 0: broken(n)\nheld()",
    ),
    attack(
        "k36-ports", "for n,*a in ((172,3),(173,0x80,1,1),(154,0,0,0)):\n  if call(n,*a)[0] >= 0: broken(n)\nheld()"
    ),
    attack(
        "k37-kernel-log",
        "b=(ctypes.c_char*4096)()\nfor kind in (2,3,10):\n  if call(103, kind, b, 4096)[0] >= 0: broken(kind)\nheld()",
        layer="",
    ),
    attack(
        "k38-real-time",
        "tries(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(50)))",
    ),
    attack(
        "k39-higher-priority",
        "tries(lambda: os.nice(-5), lambda: os.setpriority(os.PRIO_PROCESS, 0, -10), lambda: call(251, 1, 0, (1 << 13))[0] and os.rmdir('/nothing'))",
    ),
    attack(
        "k40-become-another-user",
        "tries(lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setresuid(0,0,0), lambda: os.seteuid(0))",
    ),
    attack(
        "k41-own-uid-map",
        "tries(lambda: os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1'), lambda: os.write(os.open('/proc/self/gid_map', os.O_WRONLY), b'0 0 1'), lambda: os.write(os.open('/proc/self/setgroups', os.O_WRONLY), b'allow'))",
    ),
    attack(
        "k42-raise-capabilities",
        "r=libc.prctl(47, 2, 21, 0, 0); held() if r<0 and libc.prctl(24, 21, 0, 0, 0) != 0 or libc.prctl(23, 21) == 0 else broken(r)",
    ),
    attack(
        "k43-loosen-own-filter",
        "libc.prctl(22, 0, 0, 0, 0); libc.prctl(38, 0, 0, 0, 0); s=open('/proc/self/status').read(); held() if 'Seccomp:\\t2' in s and 'NoNewPrivs:\\t1' in s else broken(s)",
    ),
    attack(
        "k44-other-filter-on-top",
        "f=(ctypes.c_char*8)(0x06,0,0,0,0,0,0xff,0x7f); p=(ctypes.c_char*16)(); ctypes.memmove(p, (1).to_bytes(8,'little')+ctypes.addressof(f).to_bytes(8,'little'), 16); libc.prctl(22, 2, p, 0, 0); refused(250, 0, -3, 0)",
    ),
    attack(
        "k45-memory-of-pid-1",
        "tries(lambda: open('/proc/1/stack').read() or os.rmdir('/nothing'), lambda: os.readlink('/proc/1/cwd') in ('/', '/tool') and os.rmdir('/nothing'), lambda: os.listdir('/proc/1/map_files') and os.open('/proc/1/map_files/'+os.listdir('/proc/1/map_files')[0], 0))",
    ),
    attack("k46-ptrace-of-pid-1", "for r in (16, 0x4206):\n  if call(101, r, 1, 0, 0)[0] >= 0: broken(r)\nheld()"),
    attack("k47-ptrace-me", "refused(101, 0, 0, 0, 0)", layer="seccomp"),
    attack("k48-child-seized", _CHILD + "refused(101, 0x4206, pid, 0, 0)", layer="seccomp"),
    attack(
        "k49-memory-of-a-child",
        "import mmap\n" + _CHILD + "b=(ctypes.c_char*32)(); refused(311, pid, b, 1, b, 1, 0)",
        layer="seccomp",
    ),
    attack("k50-compare-processes", _CHILD + "refused(312, os.getpid(), pid, 0, 0, 0)", layer="seccomp"),
    attack("k51-handles", "b=(ctypes.c_char*256)(); m=ctypes.c_int(); refused(303, -100, b'/tmp', b, 0, 0)"),
    attack("k52-fanotify", "refused(300, 0, 0)", layer=""),
    attack("k53-numa", "b=(ctypes.c_char*64)(); refused(238, 0, 0, 0)", layer="seccomp"),
    attack("k54-vmsplice", "r,w=os.pipe(); b=(ctypes.c_char*16)(); refused(278, w, b, 0, 0)", layer="seccomp"),
    attack("k55-secret-memory", "refused(447, 0)", layer=""),
    attack(
        "k56-new-open",
        "b=(ctypes.c_char*24)(); refused(437, -100, b'/', b, 24, codes=(errno.ENOSYS,))",
        layer="seccomp",
    ),
    attack(
        "k57-line-discipline",
        "import pty\ntry: m,s=os.openpty()\nexcept OSError: held()\nrefused(16, s, 0x5423, b'\\x0f\\0\\0\\0', codes=(errno.EPERM,))",
    ),
    attack(
        "k58-own-pty-injection",
        "try: m,s=os.openpty()\nexcept OSError: held()\nrefused(16, s, 0x5412, b'x', codes=(errno.EPERM,))",
    ),
    attack(
        "k59-dumps",
        "import resource; libc.prctl(4, 1, 0, 0, 0); held() if resource.getrlimit(resource.RLIMIT_CORE) == (0, 0) else broken('core files')",
        layer="rlimits",
    ),
    attack(
        "k60-unknown-calls",
        "for n in (181, 182, 183, 184, 185, 236, 423, 999, 2000):\n  r,e=call(n,0,0,0,0,0,0)\n  if r>=0: broken(n)\nheld()",
    ),
    attack("k61-host-name-of-the-machine", "held() if os.uname().nodename == 'sandbox' else broken(os.uname())"),
    attack(
        "k62-own-namespaces",
        "import sys\nseen={n: os.readlink('/proc/self/ns/'+n) for n in ('user','pid','net','ipc','uts','mnt','cgroup')}; theirs=dict(x.split('=') for x in sys.argv[1:]); same=[n for n in seen if seen[n]==theirs.get(n)]; held() if not same else broken(same)",
        args=("@namespaces",),
        layer="network",
    ),
    attack(
        "k63-killing-the-monitor",
        "import signal\nfor pid in (os.getppid(), 1):\n  try: os.kill(pid, signal.SIGKILL)\n  except OSError: pass\nprint('held')",
    ),
    attack("k64-death-signal-off", "libc.prctl(1, 0, 0, 0, 0); libc.prctl(36, 1, 0, 0, 0); print('held')"),
    attack("k65-mempolicy-and-madvise", "refused(440, os.pidfd_open(os.getpid()), b'', 0, 0, 0)", layer="seccomp"),
    attack("k66-landlock-and-notify-do-no-harm", "call(444, 0, 0, 1); call(317, 1, 8, 0); refused(250, 0, -3, 0)"),
    # trust 5: memory that no process's own numbers show
    attack("k67-sysv-semaphores", "refused(64, 0, 250, 0o1600, codes=(errno.ENOSYS,))", layer="seccomp"),
    attack("k68-sysv-messages", "refused(68, 0, 0o1600, codes=(errno.ENOSYS,))", layer="seccomp"),
    attack("k69-landlock-rules", "refused(444, 0, 0, 1, codes=(errno.ENOSYS,))", layer="seccomp"),
    attack(
        "k70-machine-wide-aio", "b=(ctypes.c_long*1)(); refused(206, 128, b, codes=(errno.ENOSYS,))", layer="seccomp"
    ),
    attack(
        "k71-larger-pipes",
        "import fcntl\nr, w = os.pipe(); fcntl.fcntl(w, 1031, 4096); cannot(lambda: fcntl.fcntl(w, 1031, 1 << 17), PermissionError)",
        layer="seccomp",
    ),
)
