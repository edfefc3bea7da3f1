"""Streams, exit codes and their corner cases (S4, S8, S10)."""

from __future__ import annotations

from typing import Any

from tests.sandbox.cases.base import Case, Place, fails, nothing_runs, over, works

_MIB = 1_048_576


def _missing(place: Place) -> dict[str, Any]:
    return {"script": "missing.py"}


PROTOCOL = (
    fails("p01-exit-code", "import sys; sys.exit(3)"),
    fails("p02-exception", "raise ValueError('no')", stderr="ValueError: no"),
    fails("p03-syntax-error", "def ("),
    fails("p04-killed-by-own-signal", "import os; os.kill(os.getpid(), 9)"),
    fails("p05-abort", "import os; os.abort()"),
    works("p06-stdin-not-read", "print('x')", "x\n", stdin=b"y" * 900_000),
    works(
        "p07-stdin-closed-early",
        "import os,time; os.close(0); time.sleep(0.05); print('x')",
        "x\n",
        stdin=b"y" * 900_000,
    ),
    # S8: big in both directions, output first
    works(
        "p08-big-both-ways",
        "import sys; sys.stdout.write('o'*900000); sys.stdout.flush(); print(len(sys.stdin.read()))",
        "o" * 900_000 + "1000000\n",
        stdin=b"i" * 1_000_000,
    ),
    over("p09-stdin-over-limit", "stdin", "print('must not run')", stdin=b"x" * (_MIB + 1), stdout=""),
    over("p10-stdout-over-cap", "stdout", "while True: sys.stdout.write('x'*65536)"),
    over("p11-stdout-just-over-cap-then-exit", "stdout", f"print('x'*{_MIB})"),
    works("p12-stdout-exactly-cap", f"import sys; sys.stdout.write('x'*{_MIB})", "x" * _MIB),
    works("p13-stderr-over-keep", "import sys; sys.stderr.write('e'*1000000); print('fine')", "fine\n"),
    over("p14-stderr-flood", "stderr", "while True: sys.stderr.write('x'*65536)"),
    works("p15-closes-stdout-then-works", "import os,time; print('x',flush=True); os.close(1); time.sleep(0.1)", "x\n"),
    Case("p16-missing-script", "", kind="refused", error="SecurityError", stdout="", arrange=_missing),
    fails("p17-exit-255", "import sys; sys.exit(255)"),
    works("p18-binary-output", "import sys; sys.stdout.buffer.write(bytes(range(256))*3)", bytes(range(256)) * 3),  # pyright: ignore[reportArgumentType]
    works("p19-partial-line", "import os,time; os.write(1,b'par'); time.sleep(0.05); os.write(1,b'tial')", "partial"),
    works(
        "p20-nul-bytes-in", "import sys; print(sys.stdin.buffer.read())", "b'\\x00\\xff\\n\\x00'\n", stdin=b"\0\xff\n\0"
    ),
    over(
        "p21-floods-both-streams",
        ("stdout", "stderr"),
        "import threading\nthreading.Thread(target=lambda: [os.write(2, b'e'*65536) for _ in range(9999)], daemon=True).start()\nwhile True: os.write(1, b'o'*65536)",
    ),
    works("p22-output-after-close", "import os\nd=os.dup(1); os.close(1); os.write(d, b'late'); os.close(d)", "late"),
    works(
        "p23-closes-all-three",
        "import os\nos.write(1,b'x')\nfor n in (0,1,2): os.close(n)\nos._exit(0)",
        "x",
        stdin=b"y" * 100_000,
    ),
    fails(
        "p24-closes-all-and-fails-later", "import os,time\nfor n in (0,1,2): os.close(n)\ntime.sleep(0.1); os._exit(4)"
    ),
    works(
        "p25-reads-stdin-late",
        "import sys,time; time.sleep(0.3); print(len(sys.stdin.read()))",
        "900000\n",
        stdin=b"y" * 900_000,
    ),
    works(
        "p26-reads-stdin-bytewise", "import os\nn=0\nwhile os.read(0,1): n+=1\nprint(n)", "5000\n", stdin=b"y" * 5000
    ),
    works("p27-reads-half-of-stdin", "import os; print(len(os.read(0,10)))", "10\n", stdin=b"y" * 900_000),
    works("p28-output-at-exit", "import atexit; atexit.register(print, 'last'); print('first')", "first\nlast\n"),
    fails("p29-unflushed-and-killed", "import os; print('lost'); os.kill(os.getpid(), 15)", args=()),
    fails("p30-segmentation-fault", "import ctypes; ctypes.string_at(0)"),
    fails("p31-signal-like-exit-code", "import os; os._exit(137)"),
    fails("p32-exit-message", "import sys; sys.exit('words')", stderr="words"),
    fails("p33-hangup", "import os,signal; os.kill(0, signal.SIGHUP)"),
    fails("p34-broken-utf8-in-stderr", "import os,sys; os.write(2, b'\\xff\\xfe\\x00'); sys.exit(1)"),
    works("p35-escape-sequences", "import sys; sys.stderr.write('\\x1b[31mred\\x1b]0;t\\x07'); print(1)", "1\n"),
    works("p36-many-small-writes", "import os\nfor i in range(20000): os.write(1, b'.')", "." * 20_000),
    # S4: what a grandchild writes after the script's end may be lost, but nobody waits for it
    works(
        "p37-grandchild-floods-after-exit",
        # it floods once the script is gone: before that the flood would be the script's own
        "import os\np=os.getpid()\nif os.fork()==0:\n  os.setsid()\n  while os.getppid()==p: pass\n  while True: os.write(2, b'x'*4096)\nprint('x')",
        "x\n",
        after=nothing_runs,
    ),
    works(
        "p38-nonblocking-stdout",
        "import os,time\nos.set_blocking(1, False)\nn=0\nwhile n<600000:\n  try: n+=os.write(1, b'x'*1000)\n  except BlockingIOError: time.sleep(0.001)",
        "x" * 600_000,
    ),
    works(
        "p39-shrinks-its-pipes",
        "import fcntl\nfor n in (1,2): fcntl.fcntl(n, 1031, 4096)\nprint('y'*300000, end='')",
        "y" * 300_000,
        stdin=b"z" * 100_000,
    ),
    works("p40-stderr-onto-stdout", "import os; os.dup2(1,2); os.write(2, b'both\\n')", "both\n"),
    works(
        "p41-two-processes-write",
        "import os\nfor _ in range(4):\n  if os.fork()==0: os.write(1, b'c'*1000); os._exit(0)\nfor _ in range(4): os.wait()",
        "c" * 4000,
    ),
    works("p42-stdin-exactly-limit", "import sys; print(len(sys.stdin.read()))", f"{_MIB}\n", stdin=b"x" * _MIB),
    works("p43-says-nothing", "pass", ""),
    works("p44-empty-script", "", ""),
    works("p45-starts-with-newlines", "print('\\n\\ngo\\n')", "\n\ngo\n\n"),
    works(
        "p46-stdin-that-looks-like-the-gate",
        "import sys; print(repr(sys.stdin.read()))",
        "'go\\ngo\\n'\n",
        stdin=b"go\ngo\n",
    ),
    fails("p47-keyboard-interrupt", "raise KeyboardInterrupt"),
    works("p48-byte-order-mark", "\ufeffprint('x')", "x\n"),
    works("p49-windows-line-ends", "if True:\r\n    print('x')\r\n", "x\n"),
    fails("p50-script-not-utf8", b"print('\xff')\n"),
    fails("p52-import-that-is-missing", "import no_such_module_here", stderr="ModuleNotFoundError"),
    works(
        "p53-thread-that-fails",
        "import threading as t\nx=t.Thread(target=lambda: 1/0); x.start(); x.join(); print('x')",
        "x\n",
    ),
    works(
        "p54-daemon-thread-still-writes",
        "import threading as t,sys\nt.Thread(target=lambda: [sys.stderr.write('.') for _ in range(10**9)], daemon=True).start(); print('x', flush=True); import os; os._exit(0)",
        "x\n",
    ),
    works("p55-reads-its-output-pipe", "import os\ntry: os.read(1, 10)\nexcept OSError: print('refused')", "refused\n"),
    works(
        "p56-reopens-its-output",
        "import os\nfd=os.open('/proc/self/fd/1', os.O_WRONLY); os.write(fd, b'again\\n')",
        "again\n",
    ),
    # reading what it wrote itself may lose its output, and nothing else
    Case(
        "p57-steals-its-own-output",
        "import os\nfd=os.open('/proc/self/fd/1', os.O_RDONLY|os.O_NONBLOCK)\nos.write(1, b'mine\\n')\nos._exit(0)",
    ),
    fails(
        "p58-exits-while-a-child-holds-the-pipes",
        "import os,time\nif os.fork()==0: time.sleep(3600)\nos._exit(9)",
        after=nothing_runs,
    ),
    works("p59-long-single-line", "print('l'*1000000)", "l" * 1_000_000 + "\n"),
    works(
        "p60-stdout-closed-by-child-only",
        "import os\nif os.fork()==0: os.close(1); os._exit(0)\nos.wait(); print('x')",
        "x\n",
    ),
)
