"""Daemons that misbehave in one way each: small scripts that read requests by line."""

from __future__ import annotations

import sys

_HEAD = "import json, os, signal, sys, time\ndef out(m): sys.stdout.write(json.dumps(m) + '\\n'); sys.stdout.flush()\n"


def fake(body: str) -> list[str]:
    """The command of a daemon with this program; ``out(message)`` is there to write."""
    return [sys.executable, "-c", _HEAD + body]


ECHO = """
for line in sys.stdin:
    m = json.loads(line)
    if 'id' in m and 'method' in m:
        out({'jsonrpc': '2.0', 'id': m['id'], 'result': m.get('params')})
"""
DIES = """
for number in range(30):
    print('line', number, file=sys.stderr, flush=True)
sys.stdin.readline()
sys.exit(7)
"""
SILENT = "for line in sys.stdin: pass\n"
NO_JSON = "sys.stdin.readline()\nprint('Traceback: not a message')\nsys.stdout.flush()\ntime.sleep(86400)\n"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.write(2, b'up\\n')\ntime.sleep(86400)\n"
OTHER_SHAPE = """
m = json.loads(sys.stdin.readline())
out({'jsonrpc': '2.0', 'id': m['id'], 'result': {'tools': 'many'}})
sys.stdin.read()
"""
TWICE = """
m = json.loads(sys.stdin.readline())
for value in (1, 2):
    out({'jsonrpc': '2.0', 'id': m['id'], 'result': value})
out({'jsonrpc': '2.0', 'id': 999, 'result': 'of nobody'})
out({'jsonrpc': '2.0', 'method': 'x/told', 'params': {'a': 1}})
m = json.loads(sys.stdin.readline())
out({'jsonrpc': '2.0', 'id': m['id'], 'result': 3})
sys.stdin.read()
"""
ASKS = """
m = json.loads(sys.stdin.readline())
while m['method'] == 'initialize':
    m = json.loads(sys.stdin.readline())
replies = []
for number, (method, params) in enumerate(m['params']['ask']):
    out({'jsonrpc': '2.0', 'id': 'q-%d' % number, 'method': method, 'params': params})
    replies.append(json.loads(sys.stdin.readline()))
out({'jsonrpc': '2.0', 'id': m['id'], 'result': replies})
sys.stdin.read()
"""
"""Sends the requests that it is told to, one after the other, and gives the replies as its result."""

REGISTERS = """
m = json.loads(sys.stdin.readline())
out({'jsonrpc': '2.0', 'id': m['id'], 'result': {'registered': [], 'rejected': [], 'toolIds': {}}})
""" + ASKS.lstrip("\n")
