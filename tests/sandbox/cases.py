"""The attack corpus: small scripts, each with the outcome that it must have.

An attack prints `held` when it was refused and `BROKEN …` when it got through; `check` is a plain run. Cases are
bounded in size and time, because the meta-tests run some of them with one layer switched off.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    id: str
    source: str
    kind: str = "ok"
    limit: str | None = None
    error: str = ""
    stdout: str | None = None
    stdin: bytes = b""
    args: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=dict)
    """Fields of `Limits` that differ from the tests' own small defaults."""
    layer: str = ""
    """The layer whose absence this case shows, for the meta-test; empty when none."""
    root_only: bool = False


_PRELUDE = """
import os, sys, ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def held(reason=""):
    print("held"); sys.stdout.flush(); os._exit(0)
def broken(reason):
    print("BROKEN", reason); sys.stdout.flush(); os._exit(0)
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args])
    return result, ctypes.get_errno()
def refused(number, *args, codes=(errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT)):
    result, code = call(number, *args)
    held() if result < 0 and code in codes else broken(f"result {result} errno {code}")
def cannot(work, *kinds):
    try:
        work()
    except (kinds or (OSError,)):
        held()
    broken("it worked")
"""


def attack(name: str, body: str, **more: Any) -> Case:
    more.setdefault("stdout", "held\n")
    return Case(name, _PRELUDE + textwrap.dedent(body), **more)


def works(name: str, body: str, stdout: str | None = None, **more: Any) -> Case:
    return Case(name, textwrap.dedent(body), stdout=stdout, **more)


WORKS = (
    works(
        "w01-json-in-out", "import json,sys; print(json.dumps(json.load(sys.stdin)))", '{"a": 1}\n', stdin=b'{"a": 1}'
    ),
    works(
        "w02-args",
        "import sys; print(sys.argv[1:])",
        "['a b', ';touch x', '$(id)']\n",
        args=("a b", ";touch x", "$(id)"),
    ),
    works(
        "w03-threads",
        "import threading as t\nx=[t.Thread(target=lambda:None) for _ in range(16)]\n[i.start() for i in x];[i.join() for i in x];print('ok')",
        "ok\n",
    ),
    works(
        "w04-subprocess",
        "import subprocess as s; print(s.run(['/bin/echo','hi'],capture_output=True,text=True).stdout, end='')",
        "hi\n",
    ),
    works(
        "w05-multiprocessing",
        "import multiprocessing as m\nif __name__=='__main__':\n  m.set_start_method('fork')\n  with m.Pool(2) as p: print(p.map(abs,[-1,-2]))",
        "[1, 2]\n",
    ),
    works(
        "w06-asyncio",
        "import asyncio\nasync def f():\n  p=await asyncio.create_subprocess_exec('/bin/echo','x',stdout=-1)\n  print((await p.communicate())[0])\nasyncio.run(f())",
        "b'x\\n'\n",
    ),
    works(
        "w07-sqlite-in-tmp",
        "import sqlite3; d=sqlite3.connect('/tmp/a.db'); d.execute('create table t(a)'); d.execute('insert into t values(1)'); d.commit(); print(d.execute('select a from t').fetchall())",
        "[(1,)]\n",
    ),
    works(
        "w08-tempfile",
        "import tempfile\nwith tempfile.NamedTemporaryFile() as f: f.write(b'x'*100000); print(f.name.startswith('/tmp'))",
        "True\n",
    ),
    works(
        "w09-own-loopback",
        "import socket\ns=socket.create_server(('127.0.0.1',0)); c=socket.create_connection(s.getsockname()); a,_=s.accept(); c.send(b'x'); print(a.recv(1))",
        "b'x'\n",
    ),
    works("w10-unicode", "import sys; print('💥 中文', sys.stdin.read())", "💥 中文 é\n", stdin="é".encode()),
    works("w11-getpass-user", "import getpass,os; print(getpass.getuser(), os.path.expanduser('~'))", "tool /tmp\n"),
    works("w12-hostname", "import socket; print(socket.gethostname())", "sandbox\n"),
    works("w13-exit-code-zero-with-stderr", "import sys; sys.stderr.write('warn\\n'); print(1)", "1\n"),
    works(
        "w14-big-file-within-limit",
        "open('/tmp/x','wb').write(b'x'*8_000_000); import os; print(os.path.getsize('/tmp/x'))",
        "8000000\n",
    ),
    works("w15-semaphores", "import multiprocessing as m; s=m.Semaphore(1); print(s.acquire())", "True\n"),
)

PROTOCOL = (
    Case("p01-exit-code", "import sys; sys.exit(3)", kind="error", error="ScriptError"),
    Case("p02-exception", "raise ValueError('no')", kind="error", error="ScriptError"),
    Case("p03-syntax-error", "def (", kind="error", error="ScriptError"),
    Case("p04-killed-by-own-signal", "import os; os.kill(os.getpid(), 9)", kind="error", error="ScriptError"),
    Case("p05-abort", "import os; os.abort()", kind="error", error="ScriptError"),
    Case("p06-stdin-not-read", "print('x')", stdout="x\n", stdin=b"y" * 900_000),
    Case(
        "p07-stdin-closed-early",
        "import os,time; os.close(0); time.sleep(0.05); print('x')",
        stdout="x\n",
        stdin=b"y" * 900_000,
    ),
    # S8: big in both directions, output first
    Case(
        "p08-big-both-ways",
        "import sys; sys.stdout.write('o'*900000); sys.stdout.flush(); print(len(sys.stdin.read()))",
        stdin=b"i" * 1_000_000,
    ),
    Case(
        "p09-stdin-over-limit",
        "print('must not run')",
        kind="limit",
        limit="stdin",
        error="ResourceError",
        stdin=b"x" * 1_048_577,
        stdout="",
    ),
    Case(
        "p10-stdout-over-cap",
        "import sys\nwhile True: sys.stdout.write('x'*65536)",
        kind="limit",
        limit="stdout",
        error="ResourceError",
    ),
    Case(
        "p11-stdout-just-over-cap-then-exit", "print('x'*1048576)", kind="limit", limit="stdout", error="ResourceError"
    ),
    Case("p12-stdout-exactly-cap", "import sys; sys.stdout.write('x'*1048576)", stdout="x" * 1048576),
    Case("p13-stderr-over-keep", "import sys; sys.stderr.write('e'*1000000); print('fine')", stdout="fine\n"),
    Case(
        "p14-stderr-flood",
        "import sys\nwhile True: sys.stderr.write('x'*65536)",
        kind="limit",
        limit="stderr",
        error="ResourceError",
    ),
    Case(
        "p15-closes-stdout-then-works",
        "import os,time; print('x',flush=True); os.close(1); time.sleep(0.1)",
        kind="ok",
        stdout="x\n",
    ),
    Case("p16-missing-script", "", kind="refused", error="SecurityError"),
    Case("p17-exit-255", "import sys; sys.exit(255)", kind="error", error="ScriptError"),
)

TIME = (
    Case(
        "t01-sleep",
        "import time; time.sleep(60)",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 400},
    ),
    Case("t02-busy", "while True: pass", kind="timeout", limit="wall", error="TimeoutError", limits={"wall_ms": 400}),
    Case(
        "t03-ignores-signals",
        "import signal,time\nfor s in range(1,32):\n  try: signal.signal(s, signal.SIG_IGN)\n  except OSError: pass\ntime.sleep(60)",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 400},
    ),
    Case(
        "t04-daemons-and-hang",
        "import os,time\nfor _ in range(5):\n  if os.fork()==0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(60)\ntime.sleep(60)",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 400},
    ),
    # S4: the answer does not wait for a grandchild that keeps stdout open, and the grandchild does not survive
    Case(
        "t05-grandchild-holds-stdout",
        "import os,time\nif os.fork()==0:\n  os.setsid(); time.sleep(60)\nprint('x')",
        stdout="x\n",
    ),
    Case(
        "t06-endless-output-does-not-move-deadline",
        "import time\nwhile True: print('.',flush=True); time.sleep(0.02)",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 400},
    ),
    Case(
        "t07-cpu",
        "while True: pass",
        kind="limit",
        limit="cpu",
        error="ResourceError",
        limits={"cpu_seconds": 1, "wall_ms": 8000},
        layer="rlimits",
    ),
    Case(
        "t08-cpu-ignores-sigxcpu",
        "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
        kind="limit",
        limit="cpu",
        error="ResourceError",
        limits={"cpu_seconds": 1, "wall_ms": 8000},
    ),
    Case(
        "t09-stops-itself",
        "import os,signal; os.kill(os.getpid(), signal.SIGSTOP)",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 400},
    ),
    Case(
        "t10-stops-pid-1",
        "import os,signal\ntry: os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGKILL)\nexcept OSError: pass\nprint('x')",
        stdout="x\n",
    ),
)

MEMORY = (
    Case(
        "m01-one-big-block",
        "x=bytearray(400_000_000); print(len(x))",
        kind="limit",
        limit="memory",
        error="ResourceError",
        limits={"memory_bytes": 100_000_000},
        layer="rlimits+watchdog",
    ),
    Case(
        "m02-touch-slowly",
        "import time\nx=[]\nwhile True: x.append(bytearray(4_000_000)); time.sleep(0.005)",
        kind="limit",
        limit="memory",
        error="ResourceError",
        limits={"memory_bytes": 100_000_000},
    ),
    # each process stays below its own limit; only the sum passes it
    Case(
        "m03-many-processes",
        "import os,time\nfor _ in range(6):\n  if os.fork()==0:\n    x=b'y'*40_000_000; time.sleep(5); os._exit(0)\ntime.sleep(5)",
        kind="limit",
        limit="memory",
        error="ResourceError",
        limits={"memory_bytes": 100_000_000, "wall_ms": 3000},
        layer="watchdog",
    ),
    Case(
        "m04-shared-pages-count-once",
        "import os,time\nx=b'y'*60_000_000\nfor _ in range(6):\n  if os.fork()==0: time.sleep(0.5); os._exit(0)\nfor _ in range(6): os.wait()\nprint('x')",
        stdout="x\n",
        limits={"memory_bytes": 120_000_000},
    ),
    attack(
        "m05-tmp-is-bounded",
        "cannot(lambda: [open(f'/tmp/{i}','wb').write(b'x'*1_000_000) for i in range(40)])",
        limits={"tmp_bytes": 16_000_000},
        layer="sized-tmpfs",
    ),
    attack(
        "m06-shm-is-bounded",
        "cannot(lambda: [open(f'/dev/shm/{i}','wb').write(b'x'*1_000_000) for i in range(40)])",
        layer="sized-tmpfs",
    ),
    attack("m07-root-not-writable", "cannot(lambda: open('/x','wb'))", layer="read-only-root"),
    attack("m08-dev-not-writable", "cannot(lambda: open('/dev/x','wb'))", layer="sized-tmpfs"),
    attack("m09-memfd", "cannot(lambda: os.memfd_create('x'))", layer="seccomp"),
    attack("m10-sysv-shm", "refused(29, 0, 4096, 0o1600)", layer="seccomp"),
    Case(
        "m11-file-size",
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen('/tmp/x','wb').write(b'x'*3_000_000)",
        kind="limit",
        limit="files",
        error="ResourceError",
        limits={"file_bytes": 1_000_000},
        layer="rlimits",
    ),
    Case(
        "m12-file-size-python",
        "open('/tmp/x','wb').write(b'x'*3_000_000)",
        kind="limit",
        limit="files",
        error="ResourceError",
        limits={"file_bytes": 1_000_000},
    ),
    Case(
        "m13-open-files",
        "x=[open('/dev/null') for _ in range(5000)]",
        kind="limit",
        limit="files",
        error="ResourceError",
        limits={"open_files": 64},
        layer="rlimits",
    ),
    Case(
        "m14-fork-bomb",
        "import os\nfor _ in range(60):\n  if os.fork()==0:\n    import time; time.sleep(3); os._exit(0)\nprint('forked')",
        kind="limit",
        limit="processes",
        error="ResourceError",
        limits={"processes": 20},
        layer="rlimits",
    ),
    Case(
        "m15-exact-process-count",
        "import os,time\nn=0\ntry:\n  while True:\n    if os.fork()==0: time.sleep(2); os._exit(0)\n    n+=1\nexcept BlockingIOError: pass\nprint(n+1)",
        stdout="20\n",
        limits={"processes": 20},
    ),
    Case(
        "m16-too-many-files",
        "for i in range(200000): open(f'/tmp/{i}','w').close()",
        kind="limit",
        limit="files",
        error="ResourceError",
        limits={"wall_ms": 20000},
        layer="watchdog",
    ),
)

FILES = (
    attack("f01-own-script", "cannot(lambda: open(__file__,'a'))"),
    attack("f02-own-folder", "cannot(lambda: open('/tool/new','w'))"),
    attack("f03-chmod-own", "cannot(lambda: os.chmod(__file__, 0o777))"),
    attack("f04-utime-own", "cannot(lambda: os.utime(__file__))"),
    attack("f05-host-passwd", "held() if 'root:' not in open('/etc/passwd').read() else broken('host accounts')"),
    attack("f06-shadow", "cannot(lambda: open('/etc/shadow'))"),
    attack("f07-home", "cannot(lambda: os.listdir('/root'))"),
    attack("f08-home-user", "cannot(lambda: os.listdir('/home'))"),
    attack("f09-var", "cannot(lambda: os.listdir('/var'))"),
    attack("f10-run", "cannot(lambda: os.listdir('/run'))"),
    attack("f11-sys", "cannot(lambda: os.listdir('/sys'))"),
    attack("f12-usr-write", "cannot(lambda: open('/usr/bin/x','w'))"),
    attack(
        "f13-setuid-bit-chmod",
        "open('/tmp/x','w').close(); cannot(lambda: os.chmod('/tmp/x', 0o4755))",
        layer="seccomp",
    ),
    attack(
        "f14-setuid-bit-open",
        "cannot(lambda: os.close(os.open('/tmp/x', os.O_CREAT|os.O_WRONLY, 0o4755)))",
        layer="seccomp",
    ),
    attack("f15-setuid-bit-mknod", "cannot(lambda: os.mknod('/tmp/x', 0o104755))", layer="seccomp"),
    attack("f16-device-node", "cannot(lambda: os.mknod('/tmp/x', 0o20666, os.makedev(1, 1)))"),
    attack(
        "f17-descriptors",
        "held() if set(os.listdir('/proc/self/fd')) <= {'0','1','2','3'} else broken(os.listdir('/proc/self/fd'))",
    ),
    attack("f18-pid-1-root", "cannot(lambda: os.listdir('/proc/1/root/root'))"),
    attack(
        "f19-oldroot",
        "held() if not (os.path.exists('/oldroot') or os.path.exists('/newroot') or os.path.exists('/stage')) else broken('old root')",
    ),
    attack(
        "f20-xattr", "open('/tmp/x','w').close(); cannot(lambda: os.setxattr('/tmp/x','user.a',b'b'))", layer="seccomp"
    ),
    attack("f21-remount", "refused(165, b'none', b'/tool', b'', 0x20 | 0x1000, b'')"),
    attack("f22-block-device", "cannot(lambda: open('/dev/vda','rb'), OSError)"),
    attack("f23-kernel-log", "cannot(lambda: open('/dev/kmsg','rb'))"),
    attack("f24-host-mem", "cannot(lambda: open('/proc/kcore','rb').read(8))"),
    attack("f25-machine-id", "cannot(lambda: open('/etc/machine-id'))"),
    attack("f26-sysrq", "cannot(lambda: os.close(os.open('/proc/sysrq-trigger', os.O_WRONLY)))"),
)

KERNEL = (
    attack("k01-core-pattern", "cannot(lambda: os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)))"),
    attack("k02-vm-settings", "cannot(lambda: os.close(os.open('/proc/sys/vm/overcommit_memory', os.O_WRONLY)))"),
    attack("k03-userns", "refused(272, 0x10000000)", layer="seccomp+disable-userns"),
    attack("k04-userns-clone", "refused(56, 0x10000000 | 17, 0, 0, 0, 0)", layer="seccomp+disable-userns"),
    attack("k05-clone3-absent", "refused(435, 0, 0, codes=(errno.ENOSYS,))", layer="seccomp"),
    attack(
        "k06-ptrace",
        "pid=os.fork()\nif pid==0:\n  import time; time.sleep(2); os._exit(0)\nrefused(101, 16, pid, 0, 0)",
        layer="seccomp",
    ),
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
        "s=open('/proc/self/status').read(); held() if 'CapEff:\\t0000000000000000' in s and 'CapBnd:\\t0000000000000000' in s else broken(s)",
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
    attack("k23-signal-others", "cannot(lambda: os.kill(-1, 0), ProcessLookupError)"),
    # host root may write these whatever its capabilities; opened only, never written
    attack(
        "k24-core-pattern-as-root",
        "cannot(lambda: os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)))",
        layer="uid-drop+proc-sys",
        root_only=True,
    ),
    attack("k25-chroot", "cannot(lambda: os.chroot('/tmp'))"),
    attack("k26-sethostname", "cannot(lambda: __import__('socket').sethostname('x'))"),
    attack("k27-settime", "cannot(lambda: __import__('time').clock_settime(0, 0))"),
    attack(
        "k28-raise-limits",
        "import resource as r; cannot(lambda: r.setrlimit(r.RLIMIT_NPROC, (100000, 100000)), ValueError, OSError)",
    ),
    attack("k29-host-terminal", "cannot(lambda: open('/dev/tty','w'))"),
    attack(
        "k30-oom-score",
        "open('/proc/self/oom_score_adj').read() == '500\\n' or broken('preferred'); f=os.open('/proc/self/oom_score_adj', os.O_WRONLY); cannot(lambda: os.write(f, b'-500'))",
    ),
    attack(
        "k31-sysctl-is-readonly",
        "import re; l=[x for x in open('/proc/self/mountinfo') if ' /proc/sys ' in x]; held() if l and ' ro,' in l[-1] else broken(l)",
        layer="proc-sys",
        root_only=True,
    ),
)

NETWORK = (
    attack("n01-connect-out", "import socket; cannot(lambda: socket.create_connection(('1.1.1.1', 80), 2))"),
    attack("n02-no-names", "import socket; cannot(lambda: socket.getaddrinfo('example.org', 80))"),
    attack(
        "n03-only-loopback",
        "import socket; n=[x for _, x in socket.if_nameindex()]; held() if n == ['lo'] else broken(n)",
        layer="network",
    ),
    attack("n04-raw-socket", "import socket; cannot(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))"),
    attack("n05-packet-socket", "import socket; cannot(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))"),
    attack("n06-vsock", "cannot(lambda: __import__('socket').socket(40, 1))", layer="seccomp"),
    attack("n07-unix-socket", "cannot(lambda: __import__('socket').socket(1, 1))", layer="seccomp"),
    attack("n08-alg-socket", "cannot(lambda: __import__('socket').socket(38, 5))"),
    attack("n09-host-metadata", "import socket; cannot(lambda: socket.create_connection(('169.254.169.254', 80), 2))"),
    attack(
        "n10-host-loopback",
        "import socket,sys; cannot(lambda: socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2))",
        layer="network",
    ),
)

ENVIRONMENT = (
    attack("e01-no-host-variables", "held() if 'TAMIS_TEST_SECRET' not in os.environ else broken('leak')"),
    attack(
        "e02-nothing-else",
        "extra=set(os.environ)-{'PATH','HOME','TMPDIR','LANG','MALLOC_ARENA_MAX','PYTHONUNBUFFERED','PYTHONDONTWRITEBYTECODE','NO_COLOR','PWD','LC_CTYPE'}; held() if not extra else broken(extra)",
    ),
    attack(
        "e03-parent-environ",
        "try: d=open('/proc/1/environ','rb').read()\nexcept OSError: held()\nheld() if b'TAMIS_TEST_SECRET' not in d else broken('leak')",
    ),
    attack("e04-cwd", "held() if os.getcwd() == '/tool' else broken(os.getcwd())"),
    attack("e05-own-session", "held() if os.getsid(0) != 0 else broken('session')", layer="new-session"),
)

ALL = (*WORKS, *PROTOCOL, *TIME, *MEMORY, *FILES, *KERNEL, *NETWORK, *ENVIRONMENT)
