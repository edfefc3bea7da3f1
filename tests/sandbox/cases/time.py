"""What does not end by itself: one wall clock, and the whole namespace is dead afterwards (S3, S4)."""

from __future__ import annotations

from tests.sandbox.cases.base import Case, late, nothing_runs, over, works

_CPU = {"cpu_seconds": 1}

TIME = (
    late("t01-sleep", "import time; time.sleep(3600)"),
    late("t02-busy", "while True: pass"),
    late(
        "t03-ignores-signals",
        "import signal,time\nfor s in range(1,65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\ntime.sleep(3600)",
    ),
    late(
        "t04-daemons-and-hang",
        "import time\nfor _ in range(5):\n  if os.fork()==0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(3600)\ntime.sleep(3600)",
    ),
    # S4: the answer does not wait for a grandchild that keeps stdout open, and the grandchild does not survive
    works(
        "t05-grandchild-holds-stdout",
        "import os,time\nif os.fork()==0:\n  os.setsid(); time.sleep(3600)\nprint('x')",
        "x\n",
        after=nothing_runs,
    ),
    late(
        "t06-endless-output-does-not-move-deadline", "import time\nwhile True: print('.',flush=True); time.sleep(0.02)"
    ),
    over("t07-cpu", "cpu", "while True: pass", limits=_CPU, layer="rlimits"),
    over(
        "t08-cpu-ignores-sigxcpu",
        "cpu",
        "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
        limits=_CPU,
    ),
    late("t09-stops-itself", "import signal; os.kill(os.getpid(), signal.SIGSTOP)"),
    works(
        "t10-signals-pid-1",
        "import os,signal\nfor s in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM, signal.SIGINT):\n  try: os.kill(1, s)\n  except OSError: pass\nprint('x')",
        "x\n",
    ),
    late(
        "t11-stops-everything",
        "import signal\nfor _ in range(4):\n  if os.fork()==0:\n    while True: pass\nos.kill(-1, signal.SIGSTOP); os.kill(os.getpid(), signal.SIGSTOP)",
    ),
    late(
        "t12-stopped-children-hold-the-pipes",
        "import signal,time\nfor _ in range(4):\n  if os.fork()==0: os.kill(os.getpid(), signal.SIGSTOP)\nfor _ in range(4): os.wait()",
    ),
    # every process lives a moment only: what is killed one by one is never caught
    late(
        "t13-comet",
        "import time\nfirst=os.getpid()\nfor _ in range(10**9):\n  if os.fork(): os._exit(0) if os.getpid() != first else time.sleep(3600)",
    ),
    late("t14-zombies", "import time\nfor _ in range(40):\n  if os.fork()==0: os._exit(0)\ntime.sleep(3600)"),
    late(
        "t15-all-signals-blocked",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1,65))\nwhile True: pass",
    ),
    late(
        "t16-alarm-storm",
        "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 1e-5, 1e-5)\nwhile True: pass",
    ),
    late("t17-waits-for-a-fifo", "os.mkfifo('/tmp/f'); open('/tmp/f')"),
    late("t18-deadlock", "import threading as t\nl=t.Lock(); l.acquire(); l.acquire()"),
    late(
        "t19-waits-for-its-own-lock",
        "import fcntl\na=open('/tmp/l','w'); fcntl.flock(a, 2)\nif os.fork()==0:\n  b=open('/tmp/l','w'); fcntl.flock(b, 2)\nos.wait()",
    ),
    late("t20-arithmetic-without-a-bytecode", "print(7**(10**8) % 3)"),
    late("t21-backtracking", "import re; re.match('(a+)+$', 'a'*64 + 'b')"),
    late(
        "t22-thread-that-never-ends",
        "import threading as t,time; t.Thread(target=time.sleep, args=(9999,)).start(); print('main ends')",
    ),
    late("t23-sleeps-for-years", "import time; time.sleep(1e8)"),
    late(
        "t24-fork-storm",
        "while True:\n  try:\n    if os.fork()==0: os._exit(0)\n  except OSError: pass\n  try: os.waitpid(-1, 1)\n  except OSError: pass",
        limits={"processes": 20},
    ),
    late("t25-exec-storm", "os.execv(sys.executable, [sys.executable, '-S', '-E', *sys.argv])"),
    late(
        "t26-vfork-storm",
        "import subprocess\nwhile True:\n  try: subprocess.run(['/bin/true'], check=False)\n  except OSError: pass",
    ),
    # leaves at once, with many behind it that run on
    works(
        "t27-leaves-spinners",
        "import os\nfor _ in range(30):\n  if os.fork()==0:\n    os.setsid()\n    while True: pass\nprint('x')",
        "x\n",
        after=nothing_runs,
    ),
    works(
        "t28-forks-while-it-exits",
        "import os\nif os.fork()==0:\n  os.setsid()\n  while True:\n    try:\n      if os.fork(): os._exit(0)\n    except OSError: pass\nprint('x')",
        "x\n",
        after=nothing_runs,
        limits={"processes": 20},
    ),
    works(
        "t29-daemon-that-ignores-everything",
        "import os,signal,time\nif os.fork()==0:\n  os.setsid(); signal.pthread_sigmask(signal.SIG_BLOCK, range(1,65))\n  if os.fork(): os._exit(0)\n  os.close(0); os.close(1); os.close(2); time.sleep(3600)\nprint('x')",
        "x\n",
        after=nothing_runs,
    ),
    late(
        "t30-many-threads-spin",
        "import threading as t\ndef f():\n  while True: pass\nfor _ in range(30): t.Thread(target=f, daemon=True).start()\nf()",
    ),
    late("t31-busy-children", "for _ in range(8):\n  if os.fork()==0:\n    while True: pass\nos.wait()"),
    late("t32-lowest-priority", "os.nice(19)\nwhile True: pass"),
    late(
        "t33-own-timers-changed",
        "import signal,time\nsignal.setitimer(signal.ITIMER_VIRTUAL, 0.01, 0.01); signal.signal(signal.SIGVTALRM, signal.SIG_IGN)\nwhile True: pass",
    ),
    Case(
        "t34-node-spins",
        "while (true) {}",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 700},
        language="nodejs",
        after=nothing_runs,
    ),
    Case(
        "t35-node-interval",
        "setInterval(() => {}, 10)",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 700},
        language="nodejs",
        after=nothing_runs,
    ),
    Case(
        "t36-node-ignores-signals",
        "for (const s of ['SIGTERM','SIGINT','SIGHUP']) process.on(s, () => {}); process.stdin.resume(); setInterval(() => {}, 1000); require('child_process').spawn('/bin/sleep', ['60'], {detached: true})",
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits={"wall_ms": 700},
        language="nodejs",
        after=nothing_runs,
    ),
    late(
        "t37-waits-for-stdin-of-a-child",
        "import subprocess; subprocess.Popen(['/bin/cat'], stdin=subprocess.PIPE).wait()",
    ),
)
