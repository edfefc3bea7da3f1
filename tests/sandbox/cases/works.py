"""What honest scripts do must work: a sandbox that breaks tools is switched off by its users."""

from __future__ import annotations

import os
from typing import Any

from tamis.sandbox.model import Mount
from tests.sandbox.cases.base import Place, works


def _siblings(place: Place) -> dict[str, Any]:
    package = place.folder / "pack"
    package.mkdir()
    package.joinpath("__init__.py").write_text("from . import inner\nNAME = inner.NAME\n")
    package.joinpath("inner.py").write_text("NAME = 'inner'\n")
    place.folder.joinpath("beside.py").write_text("NAME = 'beside'\n")
    place.folder.joinpath("data.txt").write_text("data\n")
    return {}


def _named(name: str) -> Any:
    """Moves the tool into a folder of this name."""

    def arrange(place: Place) -> dict[str, Any]:
        moved = place.root / name
        place.folder.rename(moved)
        return {"folder": str(moved)}

    return arrange


def _granted(place: Place) -> dict[str, Any]:
    data = place.data()
    return {"args": (str(data),), "write": (Mount(str(data)),)}


def _named_grant(place: Place) -> dict[str, Any]:
    data = place.root / "a b\n--ro-bind x;$(id) '\"中"
    data.mkdir()
    data.joinpath("in.txt").write_text("granted")
    return {"args": (str(data),), "read": (Mount(str(data)),)}


WORKS = (
    works(
        "w01-json-in-out", "import json,sys; print(json.dumps(json.load(sys.stdin)))", '{"a": 1}\n', stdin=b'{"a": 1}'
    ),
    works(
        "w02-args",
        "import sys; print(sys.argv[1:])",
        "['a b', ';touch x', '$(id)', '--help', '-c', '--']\n",
        args=("a b", ";touch x", "$(id)", "--help", "-c", "--"),
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
        "w05-multiprocessing-fork",
        "import multiprocessing as m\nif __name__=='__main__':\n  m.set_start_method('fork')\n  with m.Pool(2) as p: print(p.map(abs,[-1,-2]))",
        "[1, 2]\n",
    ),
    works(
        "w06-asyncio-subprocess",
        "import asyncio\nasync def f():\n  p=await asyncio.create_subprocess_exec('/bin/echo','x',stdout=-1)\n  print((await p.communicate())[0])\nasyncio.run(f())",
        "b'x\\n'\n",
    ),
    works(
        "w07-sqlite-in-tmp",
        """
        import sqlite3
        d = sqlite3.connect('/tmp/a.db'); d.execute('pragma journal_mode=wal')
        d.execute('create table t(a)'); d.execute('insert into t values(1)'); d.commit()
        print(d.execute('select a from t').fetchall())
        """,
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
    works("w13-exit-code-zero-with-stderr", "import sys; sys.stderr.write('warn\\n'); print(1)", "1\n", stderr="warn"),
    works(
        "w14-big-file-within-limit",
        "open('/tmp/x','wb').write(b'x'*8_000_000); import os; print(os.path.getsize('/tmp/x'))",
        "8000000\n",
    ),
    works("w15-semaphores", "import multiprocessing as m; s=m.Semaphore(1); print(s.acquire())", "True\n"),
    works(
        "w16-modules-beside-the-script",
        "import beside, pack; print(beside.NAME, pack.NAME, open('data.txt').read(), end='')",
        "beside inner data\n",
        arrange=_siblings,
    ),
    works(
        "w17-multiprocessing-spawn",
        """
        import multiprocessing as m
        def double(x): return 2*x
        if __name__ == '__main__':
            with m.get_context('spawn').Pool(1) as p: print(p.map(double, [1, 2]))
        """,
        "[2, 4]\n",
    ),
    works(
        "w18-shared-memory",
        """
        from multiprocessing import shared_memory, resource_tracker
        a = shared_memory.SharedMemory(create=True, size=1_000_000); a.buf[:2] = b'hi'
        b = shared_memory.SharedMemory(name=a.name); print(bytes(b.buf[:2])); b.close(); a.close(); a.unlink()
        """,
        "b'hi'\n",
    ),
    works(
        "w19-anonymous-mappings",
        "import mmap\na=mmap.mmap(-1,1_000_000); b=mmap.mmap(-1,1_000_000,flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS)\na[:1]=b[:1]=b'x'; print(a[0]+b[0])",
        "240\n",
    ),
    works(
        "w20-shell-pipeline",
        "import subprocess as s; print(s.run('seq 5 | sort -r | head -n 2 | tr \"\\\\n\" ,', shell=True, capture_output=True, text=True).stdout)",
        "5,4,\n",
    ),
    works(
        "w21-http-on-own-loopback",
        """
        import http.server, threading, urllib.request
        class H(http.server.BaseHTTPRequestHandler):
            def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b'served')
            def log_message(self, *_): pass
        s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H); threading.Thread(target=s.serve_forever, daemon=True).start()
        print(urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').read())
        """,
        "b'served'\n",
    ),
    works(
        "w22-signals-and-alarms",
        "import signal\nsignal.signal(signal.SIGALRM, lambda *_: print('rang'))\nsignal.setitimer(signal.ITIMER_REAL, 0.05); signal.pause()",
        "rang\n",
    ),
    works(
        "w23-random", "import secrets,uuid,random; print(len(secrets.token_bytes(8)), len(str(uuid.uuid4())))", "8 36\n"
    ),
    works("w24-certificates", "import ssl; print(ssl.create_default_context().verify_mode.name)", "CERT_REQUIRED\n"),
    works(
        "w25-clock",
        "import time,datetime; print(time.time() > 1.7e9, datetime.datetime.now().year > 2020)",
        "True True\n",
    ),
    works(
        "w26-process-pool",
        "from concurrent.futures import ProcessPoolExecutor as P\nif __name__=='__main__':\n  with P(2) as p: print(sum(p.map(abs, range(-5,0))))",
        "15\n",
    ),
    works(
        "w27-links-and-renames-in-tmp",
        """
        import os
        os.makedirs('/tmp/a/b'); open('/tmp/a/x', 'w').write('x'); os.link('/tmp/a/x', '/tmp/a/b/y'); os.symlink('x', '/tmp/a/s')
        os.rename('/tmp/a', '/tmp/c'); os.chmod('/tmp/c/x', 0o700); os.mkfifo('/tmp/c/f'); print(sorted(os.listdir('/tmp/c')), open('/tmp/c/s').read())
        """,
        "['b', 'f', 's', 'x'] x\n",
    ),
    works(
        "w28-locks",
        "import fcntl\nf=open('/tmp/l','w'); fcntl.flock(f, fcntl.LOCK_EX|fcntl.LOCK_NB); g=open('/tmp/m','w'); fcntl.lockf(g, fcntl.LOCK_EX); print('ok')",
        "ok\n",
    ),
    works(
        "w49-as-many-threads-as-processes-are-allowed",
        "import threading as t\nb=t.Barrier(60)\nx=[t.Thread(target=b.wait) for _ in range(59)]\n[i.start() for i in x]; b.wait(); [i.join() for i in x]; print('ok')",
        "ok\n",
    ),
    works(
        "w29-many-threads",
        "import threading as t,time\nx=[t.Thread(target=time.sleep,args=(0.1,)) for _ in range(32)]\n[i.start() for i in x];[i.join() for i in x];print('ok')",
        "ok\n",
    ),
    works("w30-empty-stdin", "import sys; print(repr(sys.stdin.read()))", "''\n"),
    works("w31-script-named-like-an-option", "print(__file__)", "/tool/--version.py\n", script="--version.py"),
    works("w32-script-name-with-blanks", "print('ran')", "ran\n", script="a b'\"$(id);中 .py"),
    works("w33-script-in-deep-folders", "print('ran')", "ran\n", script="/".join(["d"] * 40) + "/x.py"),
    works("w34-folder-with-newline", "print('ran')", "ran\n", arrange=_named("a\nb")),
    works("w35-folder-like-an-option", "print('ran')", "ran\n", arrange=_named("--ro-bind")),
    works("w36-folder-unicode-and-blanks", "print('ran')", "ran\n", arrange=_named(" 中文 é\t'\" ")),
    works("w37-folder-with-odd-bytes", "print('ran')", "ran\n", arrange=_named(os.fsdecode(b"\xff\xfe"))),
    works(
        "w38-grant-with-odd-name",
        "import sys; print(open(sys.argv[1]+'/in.txt').read())",
        "granted\n",
        arrange=_named_grant,
    ),
    works(
        "w39-write-grant",
        "import sys,os; os.chdir(sys.argv[1]); open('o.txt','w').write('x'); os.makedirs('a/b'); os.rename('o.txt','a/b/o'); print(open('a/b/o').read())",
        "x\n",
        arrange=_granted,
    ),
    works("w40-exec-another-program", "import os; os.execv('/bin/echo', ['echo', 'replaced'])", "replaced\n"),
    works(
        "w41-names-and-interfaces",
        "import socket,os; print(socket.gethostbyname('localhost'), [n for _, n in socket.if_nameindex()], os.getuid())",
        "127.0.0.1 ['lo'] 1000\n",
    ),
    works(
        "w42-streams-by-path",
        "import shutil; open('/dev/stdout','w').write(open('/dev/stdin').read()); open('/dev/null','w').write('x'); print(len(open('/dev/urandom','rb').read(3)))",
        "input3\n",
        stdin=b"input",
    ),
    works(
        "w43-recursion-within-reason",
        "import sys\nsys.setrecursionlimit(20000)\ndef f(n): return n and 1+f(n-1)\nprint(f(9000))",
        "9000\n",
    ),
    works(
        "w44-archive",
        "import zipfile,io\nb=io.BytesIO()\nwith zipfile.ZipFile(b,'w') as z: z.writestr('a','x'*1000)\nprint(zipfile.ZipFile(b).read('a')[:1])",
        "b'x'\n",
    ),
    works(
        "w45-socketpair-and-poll",
        "import socket,selectors\na,b=socket.socketpair(); s=selectors.DefaultSelector(); s.register(b, 1); a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536); a.send(b'x'); print(len(s.select(1)), b.recv(1))",
        "1 b'x'\n",
    ),
    works(
        "w51-node-json",
        "let s=''; process.stdin.on('data',d=>s+=d).on('end',()=>console.log(JSON.stringify(JSON.parse(s))))",
        '{"a":1}\n',
        stdin=b'{"a": 1}',
        language="nodejs",
    ),
    works(
        "w52-node-child-and-worker",
        """
        const {execFileSync} = require('child_process'); const {Worker, isMainThread, parentPort} = require('worker_threads');
        if (isMainThread) { const w = new Worker(__filename); w.on('message', m => console.log(execFileSync('/bin/echo', [m]).toString().trim())); }
        else parentPort.postMessage('from worker');
        """,
        "from worker\n",
        language="nodejs",
    ),
    works(
        "w53-node-module",
        "import fs from 'node:fs'; console.log(fs.readdirSync('/tool').length)",
        "1\n",
        language="nodejs",
        script="tool.mjs",
    ),
    # trust 5: no System V semaphores are needed for any of these
    works(
        "w54-semaphores-of-multiprocessing",
        "import multiprocessing as m\ns=m.Semaphore(1); q=m.Queue()\ndef go():\n  with s: q.put(7)\np=m.Process(target=go); p.start(); print(q.get()); p.join()\nwith m.Pool(2) as pool: print(sum(pool.map(abs, [-1, -2])))",
        "7\n3\n",
    ),
    works(
        "w55-sockets-of-every-allowed-kind",
        "import socket as s\nfor f in (s.AF_INET, s.AF_INET6):\n  for t, p in ((s.SOCK_STREAM, 0), (s.SOCK_STREAM, 6), (s.SOCK_DGRAM, 0), (s.SOCK_DGRAM, 17)): s.socket(f, t | s.SOCK_NONBLOCK, p).close()\nprint(len(s.if_nameindex()))",
        "1\n",
    ),
)
