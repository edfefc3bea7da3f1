"""Memory, files, processes, threads and descriptors: everything that can be used up has an end (S5, S6)."""

from __future__ import annotations

import textwrap
from typing import Any

from tamis.sandbox.model import Mount
from tests.sandbox.cases.base import Case, Place, attack, nothing_runs, over, works

_SMALL = {"memory_bytes": 100_000_000}
_HELD_BY_BOTH = "rlimits+watchdog+cgroup"


def _data(place: Place) -> dict[str, Any]:
    data = place.data()
    return {"args": (str(data),), "write": (Mount(str(data)),)}


_SPREAD = """
import time, select, socket, struct
keep = []
libc.mmap.restype = ctypes.c_void_p
def spread(n, work):
    for _ in range(n):
        if os.fork() == 0:
            try: work()
            except (OSError, MemoryError): pass
            time.sleep(3600); os._exit(0)
    time.sleep(3600)
"""


def _unseen(name: str, body: str) -> Case:
    """Memory of the kernel that no process's numbers show (trust 5): 80 to 500 MB of it under a limit of 64."""
    return over(
        name,
        "memory",
        _SPREAD + textwrap.dedent(body),
        limits={"memory_bytes": 67_108_864},
        layer="watchdog+cgroup",
        after=nothing_runs,
    )


def _scattered(name: str, count: int, apart: int) -> Case:
    """So many pages, each `1 << apart` bytes from the next."""
    return _unseen(
        name,
        f"""
        def work():
            for n in range({count}):
                p = 0x100000000000 + n * (1 << {apart})
                if libc.mmap(ctypes.c_void_p(p), ctypes.c_size_t(4096), 1, 0x100022, -1, ctypes.c_long(0)) == p: ctypes.string_at(p, 1)
        spread(16, work)
        """,
    )


UNSEEN = (
    _unseen(
        "m61-mappings",
        """
        def work():
            base = libc.mmap(None, ctypes.c_size_t(4096 * 60000), 0, 0x22, -1, ctypes.c_long(0))
            for at in range(0, 60000, 2): libc.mprotect(ctypes.c_void_p(base + at * 4096), ctypes.c_size_t(4096), 1)
        spread(9, work)
        """,
    ),
    # a page that was read in each 2 MiB, or in each GiB, costs a page of tables or two, and no memory of its own
    _scattered("m62-tables-of-scattered-pages", 3000, 21),
    _scattered("m63-tables-of-far-pages", 1500, 30),
    # not in a control group's numbers either
    _unseen(
        "m64-file-locks",
        """
        import fcntl
        def work():
            for i in range(200):
                f = open(f'/tmp/{os.getpid()}-{i}', 'w+b'); keep.append(f)
                for at in range(0, 800, 2): fcntl.lockf(f, fcntl.LOCK_EX, 1, 10000 - at)
        spread(9, work)
        """,
    ),
    _unseen(
        "m65-events-that-wait",
        """
        fds = [libc.inotify_init() for _ in range(120)]
        os.mkdir('/tmp/d')
        for f in fds: libc.inotify_add_watch(f, b'/tmp/d', 0xfff)
        for i in range(3000): open('/tmp/d/' + 'x' * 240 + str(i % 7), 'w').close()
        spread(0, None)
        """,
    ),
    # not in a control group's numbers either
    _unseen(
        "m66-terminals",
        """
        import tty
        def work():
            for _ in range(100):
                m, s = os.openpty(); keep.append((m, s)); tty.setraw(s)
                for x in (m, s):
                    os.set_blocking(x, False)
                    try:
                        while True: os.write(x, b'x' * 4096)
                    except BlockingIOError: pass
        spread(16, work)
        """,
    ),
    _unseen(
        "m67-watches-of-epoll",
        """
        def work():
            t = [os.eventfd(0) for _ in range(100)]; keep.append(t)
            for _ in range(120):
                e = select.epoll(); keep.append(e)
                for x in t: e.register(x, 1)
        spread(50, work)
        """,
    ),
    _unseen(
        "m68-pipes",
        """
        def work():
            while True:
                r, w = os.pipe(); keep.append((r, w)); os.set_blocking(w, False)
                try:
                    while True: os.write(w, b'x' * 65536)
                except BlockingIOError: pass
        spread(60, work)
        """,
    ),
    _unseen(
        "m69-files-made-as-they-are-read",
        """
        e = select.epoll()
        for _ in range(120): e.register(os.eventfd(0), 1)
        def work():
            while True:
                f = os.open(f'/proc/self/fdinfo/{e.fileno()}', 0); os.read(f, 10); keep.append(f)
        spread(60, work)
        """,
    ),
    _unseen(
        "m70-filters-of-sockets",
        """
        b = ctypes.create_string_buffer(b'\\x06\\0\\0\\0\\0\\0\\xff\\x7f' * 4096)
        def work():
            while True:
                s = socket.socket(2, 2); keep.append(s); s.setsockopt(1, 26, struct.pack('HL', 4096, ctypes.addressof(b)))
        spread(12, work)
        """,
    ),
)

MEMORY = (
    *UNSEEN,
    attack(
        "m71-table-of-futexes",
        "r = libc.prctl(78, 1, ctypes.c_long(1 << 21), 0, 0); held() if r < 0 else broken(r)",
    ),
    # what is bounded by the number of open files and by the limits of timers stays below the limit of memory
    works(
        "m72-event-descriptors-are-small",
        "import os,time\nfor _ in range(20):\n  if os.fork()==0:\n    x=[]\n    try:\n      while True: x.append(os.eventfd(0))\n    except OSError: pass\n    time.sleep(0.6); os._exit(0)\nfor _ in range(20): os.wait()\nprint('x')",
        "x\n",
    ),
    over(
        "m01-one-big-block",
        "memory",
        "x=bytearray(400_000_000); import time; time.sleep(0.3); print(len(x))",
        limits=_SMALL,
        layer=_HELD_BY_BOTH,
    ),
    over(
        "m02-touch-slowly",
        "memory",
        "import time\nx=[]\nwhile True: x.append(bytearray(4_000_000)); time.sleep(0.005)",
        limits=_SMALL,
    ),
    # each process stays below its own limit; only the sum passes it
    over(
        "m03-many-processes",
        "memory",
        "import time\nfor _ in range(6):\n  if os.fork()==0:\n    x=b'y'*40_000_000; time.sleep(3600); os._exit(0)\ntime.sleep(3600)",
        limits=_SMALL,
        layer="watchdog+cgroup",
    ),
    works(
        "m04-shared-pages-count-once",
        "import os,time\nx=b'y'*60_000_000\nfor _ in range(6):\n  if os.fork()==0: time.sleep(0.5); os._exit(0)\nfor _ in range(6): os.wait()\nprint('x')",
        "x\n",
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
    over(
        "m11-file-size",
        "files",
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen('/tmp/x','wb').write(b'x'*3_000_000)",
        limits={"file_bytes": 1_000_000},
        layer="rlimits",
    ),
    over(
        "m12-file-size-python", "files", "open('/tmp/x','wb').write(b'x'*3_000_000)", limits={"file_bytes": 1_000_000}
    ),
    over(
        "m13-open-files",
        "files",
        "x=[open('/dev/null') for _ in range(5000)]",
        limits={"open_files": 64},
        layer="rlimits",
    ),
    over(
        "m14-fork-bomb",
        "processes",
        "for _ in range(60):\n  if os.fork()==0:\n    import time; time.sleep(3600); os._exit(0)\nprint('forked')",
        limits={"processes": 20},
        layer="rlimits+cgroup",
        after=nothing_runs,
    ),
    works(
        "m15-exact-process-count",
        "import os,time\nn=0\ntry:\n  while True:\n    if os.fork()==0: time.sleep(3600); os._exit(0)\n    n+=1\nexcept BlockingIOError: pass\nprint(n+1)",
        "20\n",
        limits={"processes": 20},
    ),
    over(
        "m16-too-many-files",
        "files",
        "for i in range(200000): open(f'/tmp/{i}','w').close()",
        layer="watchdog",
    ),
    over(
        "m17-private-mappings",
        "memory",
        "import mmap,time\nx=[]\nwhile True:\n  m=mmap.mmap(-1, 4_000_000, flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS); m[:]=b'x'*4_000_000; x.append(m)",
        limits=_SMALL,
    ),
    over(
        "m18-shared-mappings",
        "memory",
        "import mmap,time\nx=[]\nfor _ in range(60):\n  m=mmap.mmap(-1, 4_000_000); m[:]=b'x'*4_000_000; x.append(m); time.sleep(0.002)\ntime.sleep(3600)",
        limits=_SMALL,
        layer="watchdog+cgroup",
    ),
    # pages of shared memory that no process maps any more are in nobody's numbers, and stay
    over(
        "m19-shared-memory-let-go-of",
        "memory",
        """
        import mmap, time
        m = mmap.mmap(-1, 600_000_000)
        for at in range(0, 600_000_000, 4_096_000):
            n = min(4_096_000, 600_000_000 - at); m[at:at+n] = b'x'*n; m.madvise(mmap.MADV_DONTNEED, at, n)
        time.sleep(3600); m[599_999_999]
        """,
        limits=_SMALL,
        layer="watchdog+cgroup",
    ),
    over(
        "m20-dev-zero-shared",
        "memory",
        """
        import mmap, time
        f = open('/dev/zero', 'r+b'); m = mmap.mmap(f.fileno(), 600_000_000)
        for at in range(0, 600_000_000, 4_096_000):
            n = min(4_096_000, 600_000_000 - at); m[at:at+n] = b'x'*n; m.madvise(mmap.MADV_DONTNEED, at, n)
        time.sleep(3600); m[599_999_999]
        """,
        limits=_SMALL,
    ),
    # what waits in sockets is in no process's numbers
    over(
        "m21-socketpair-buffers",
        ("memory", "files"),
        """
        import socket, time
        for _ in range(12):
            if os.fork() == 0: break
        pairs = []
        for _ in range(110):
            a, b = socket.socketpair(); pairs.append((a, b))
            for x in (a, b):
                x.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24); x.setblocking(False)
                try:
                    while True: x.send(b'x' * 65536)
                except BlockingIOError: pass
        time.sleep(3600)
        """,
        limits=_SMALL,
        layer="watchdog+cgroup",
    ),
    over(
        "m22-tcp-buffers",
        "memory",
        """
        import socket, time
        l = socket.create_server(('127.0.0.1', 0)); pairs = []
        for _ in range(100):
            a = socket.create_connection(l.getsockname()); b, _ = l.accept(); pairs.append((a, b))
            for x in (a, b):
                x.setblocking(False)
                try:
                    while True: x.send(b'x' * 65536)
                except BlockingIOError: pass
        time.sleep(3600)
        """,
        limits=_SMALL,
        layer="watchdog+cgroup",
    ),
    over(
        "m23-udp-buffers",
        "memory",
        """
        import socket, time
        keep = []
        for _ in range(12):
            if os.fork() == 0: break
        for _ in range(120):
            b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
            b.bind(('127.0.0.1', 0)); b.setblocking(False); keep.append(b)
            try:
                for _ in range(300): b.sendto(b'x' * 60000, b.getsockname())
            except OSError: pass
        time.sleep(3600)
        """,
        limits=_SMALL,
        layer="watchdog+cgroup",
    ),
    attack(
        "m24-pipe-buffers",
        """
        import fcntl
        total, keep = 0, []
        try:
            for _ in range(120):
                r, w = os.pipe(); keep.append((r, w)); os.set_blocking(w, False)
                try: fcntl.fcntl(w, 1031, 1 << 20)
                except OSError: pass
                try:
                    while True: total += os.write(w, b'x' * 65536)
                except BlockingIOError: pass
        except OSError: pass
        held() if total <= 80_000_000 else broken(total)
        """,
        limits={"memory_bytes": 100_000_000},
    ),
    over("m25-endless-recursion", "memory", "sys.setrecursionlimit(10**9)\ndef f(): f()\nf()", limits=_SMALL),
    over(
        "m26-copies-on-write",
        "memory",
        "import time\nx=bytearray(50_000_000)\nfor _ in range(5):\n  if os.fork()==0:\n    for i in range(0, len(x), 4096): x[i]=1\n    time.sleep(3600); os._exit(0)\ntime.sleep(3600)",
        limits=_SMALL,
    ),
    attack(
        "m27-threads",
        "import threading,time\ndef go():\n  for _ in range(2000): threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\ncannot(go, RuntimeError)",
        limits={"processes": 30},
        layer="rlimits+cgroup",
    ),
    over(
        "m28-fork-bomb-in-own-sessions",
        "processes",
        "import time\nfor _ in range(80):\n  if os.fork()==0:\n    os.setsid(); time.sleep(3600)",
        limits={"processes": 20},
        after=nothing_runs,
    ),
    works(
        "m29-exponential-fork-bomb",
        "import os\ntry:\n  while True: os.fork()\nexcept OSError: pass\nif os.getpid() == 2 or True: os.write(1, b'.')",
        None,
        limits={"processes": 20},
        after=nothing_runs,
    ),
    attack(
        "m30-vfork-and-clone",
        """
        import subprocess
        procs = []
        def go():
            for _ in range(100): procs.append(subprocess.Popen(['/bin/sleep', '3600'], close_fds=False))
        cannot(go)
        """,
        limits={"processes": 20},
        after=nothing_runs,
    ),
    attack("m31-sparse-file", "f=open('/tmp/s','wb'); cannot(lambda: os.truncate('/tmp/s', 1<<40))"),
    attack(
        "m32-preallocation",
        "f=open('/tmp/s','wb'); cannot(lambda: [os.posix_fallocate(open(f'/tmp/{i}','wb').fileno(), 0, 8_000_000) for i in range(10)])",
        limits={"tmp_bytes": 16_000_000},
    ),
    attack(
        "m33-deleted-but-open-files",
        "keep=[]; n=0\ntry:\n  for i in range(60):\n    f=open('/tmp/x','wb',0); n+=f.write(b'x'*1_000_000); os.unlink('/tmp/x'); keep.append(f)\nexcept OSError: pass\nheld() if n<=16_100_000 else broken(n)",
        limits={"tmp_bytes": 16_000_000},
    ),
    over(
        "m34-hard-links-and-long-names",
        "files",
        "open('/tmp/x','w').close()\nfor i in range(200000): os.link('/tmp/x', '/tmp/'+str(i).zfill(250))",
    ),
    attack(
        "m35-deep-folders",
        "try:\n  for i in range(3000): os.mkdir('d'*200) if i else os.chdir('/tmp') or os.mkdir('d'*200); os.chdir('d'*200)\nexcept OSError: pass\nheld()",
    ),
    over("m36-folder-flood", "files", "for i in range(200000): os.mkdir(f'/dev/shm/{i}')"),
    attack(
        "m37-locked-memory",
        "import mmap\nm=mmap.mmap(-1, 64_000_000, flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS); p=ctypes.addressof(ctypes.c_char.from_buffer(m))\nrefused(149, p, 64_000_000, codes=(errno.EPERM, errno.ENOMEM, errno.EAGAIN))",
    ),
    attack(
        "m38-lock-all-of-it",
        "r=call(151, 3); x=None\ntry: x=bytearray(64_000_000)\nexcept MemoryError: held()\nheld() if r[0] < 0 else broken('all was locked')",
    ),
    attack(
        "m39-terabyte-mapping",
        "import mmap; cannot(lambda: mmap.mmap(-1, 1<<40, flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS|0x4000))",
        layer="rlimits",
    ),
    attack(
        "m40-huge-pages",
        "import mmap; cannot(lambda: mmap.mmap(-1, 1<<30, flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS|0x40000))",
    ),
    attack("m41-message-queue", "refused(240, b'q', 0o102, 0o600, 0)", layer="seccomp"),
    attack(
        "m42-sysv-messages",
        "import time\nids=[]\nwhile len(ids) < 40000:\n  r,e=call(68, 0, 0o1600)\n  if r<0: break\n  ids.append(r)\nheld() if len(ids) < 40000 else broken(len(ids))",
    ),
    attack(
        "m43-queued-signals",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK,[40]); n=0\nwhile n<5000 and libc.sigqueue(os.getpid(), 40, None)==0: n+=1\nheld() if n<=256 else broken(n)",
        layer="rlimits",
    ),
    attack(
        "m44-timers",
        "t=ctypes.c_int(); n=0\nwhile n<5000 and libc.syscall(222, 0, None, ctypes.byref(t))==0: n+=1\nheld() if n<=256 else broken(n)",
        layer="rlimits",
    ),
    attack(
        "m45-event-descriptors",
        "import select\nx=[]\ncannot(lambda: [x.append(select.epoll()) or x.append(os.eventfd(0)) for _ in range(2000)])",
        limits={"open_files": 64},
    ),
    attack(
        "m46-descriptors-in-flight",
        "import socket,array\na,b=socket.socketpair(); n=0\ndef go():\n  for _ in range(100000):\n    x,y=socket.socketpair(); x.setblocking(False)\n    socket.send_fds(x,[b'x'],[a.fileno(), b.fileno(), y.fileno()]); x.close(); y.close()\ntry: go()\nexcept OSError: pass\nheld()",
        limits={"open_files": 64},
    ),
    over(
        "m47-tmp-and-heap-together",
        ("memory", "files"),
        "import time\nfor i in range(400): open(f'/tmp/{i}','wb').write(b'x'*1_000_000)",
        limits={"tmp_bytes": 16_000_000},
    ),
    over(
        "m48-fills-tmp",
        "files",
        "while True: open('/tmp/x','ab').write(b'x'*1_000_000)",
        limits={"tmp_bytes": 8_000_000},
    ),
    over(
        "m49-node-heap",
        "memory",
        "const x=[]; while (true) x.push(new Array(1000).fill(Math.random()))",
        language="nodejs",
        limits={"memory_bytes": 150_000_000},
    ),
    over(
        "m50-node-buffers",
        "memory",
        "const x=[]; setInterval(() => x.push(Buffer.alloc(8e6, 1)), 1)",
        language="nodejs",
        limits={"memory_bytes": 150_000_000},
    ),
    over(
        "m51-largest-file-in-a-granted-folder",
        "files",
        "f=open(sys.argv[1]+'/big','wb')\nwhile True: f.write(b'x'*1_000_000)",
        limits={"file_bytes": 4_000_000},
        arrange=_data,
    ),
    over(
        "m52-many-small-mappings",
        "memory",
        "import mmap,time\nx=[]\nwhile True:\n  m=mmap.mmap(-1, 65536, flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS); m[0]=1; m[:]=b'x'*65536; x.append(m)",
        limits=_SMALL,
    ),
    attack(
        "m53-huge-thread-stacks",
        "import threading,time\nthreading.stack_size(256_000_000)\ndef go():\n  for _ in range(60): threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\ncannot(go, RuntimeError)",
        limits=_SMALL,
    ),
    over(
        "m54-heap-by-brk",
        "memory",
        "libc.sbrk.restype=ctypes.c_void_p\nlibc.malloc.restype=ctypes.c_void_p\nwhile True:\n  p=libc.malloc(100_000)\n  if not p: raise MemoryError\n  ctypes.memset(p, 1, 100_000)",
        limits=_SMALL,
    ),
    attack("m55-inotify", "n=0\nwhile n<100000 and libc.inotify_init()>=0: n+=1\nheld() if n<256 else broken(n)"),
    over(
        "m56-decompression-bomb",
        "memory",
        "import zlib\nbomb=zlib.compress(b'0'*50_000_000)\nx=[zlib.decompress(bomb) for _ in range(9)]",
        limits=_SMALL,
    ),
    over("m57-string-doubling", "memory", "x='a'\nwhile True: x+=x", limits=_SMALL),
    # address space that was read once costs page tables, which count for nobody
    attack(
        "m58-page-tables",
        "import mmap\nn=0; keep=[]\ntry:\n  while n<(1<<37):\n    keep.append(mmap.mmap(-1, 1<<30, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS)); n+=1<<30\nexcept OSError: pass\nheld() if n<=(3<<30) else broken(n)",
        limits=_SMALL,
    ),
    works(
        "m59-chain-of-processes",
        "import os,time\nn=0\ntry:\n  while n<100:\n    if os.fork(): time.sleep(1.5); os._exit(0)\n    n+=1\nexcept OSError: os.write(1, str(n+1).encode())",
        None,
        limits={"processes": 20},
        after=nothing_runs,
    ),
    attack(
        "m60-larger-socket-buffers",
        """
        import socket
        a, b = socket.socketpair(); a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24); a.setblocking(False); n = 0
        try:
            while True: n += a.send(b'x' * 65536)
        except BlockingIOError: pass
        held() if n <= 2 * int(sys.argv[1]) else broken(n)
        """,
        args=("@socket-buffer",),
        layer="seccomp",
    ),
)
