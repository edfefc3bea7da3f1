"""Manifests that ask for too much, lie, or break the rules: none gives its script more than the operator allows.

Each row is a manifest and how a call of it must end; the script behind it tries what the manifest asks for.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool

# What no script may reach, whatever its manifest asks for: the path of a secret comes as `text`.
TRIES = """
import json, os, sys
def works(work):
    try: work()
    except (OSError, ValueError): return False
    return True
secret = json.load(sys.stdin)["text"]
reached = [name for name, work in {
    "secret": lambda: open(secret).read(),
    "beside": lambda: open(os.path.join(os.path.dirname(secret), "made"), "w"),
    "own script": lambda: open(__file__, "a"),
    "own folder": lambda: open("/tool/made", "w"),
    "accounts": lambda: open("/etc/shadow").read(),
    "home": lambda: os.listdir(os.path.dirname(os.path.dirname(secret))) and os.listdir("/root"),
    "kernel": lambda: open("/proc/sys/kernel/core_pattern", "w"),
    "devices": lambda: open("/dev/made", "w"),
    "run": lambda: os.listdir("/run/user"),
    "settings": lambda: open("/etc/made", "w"),
}.items() if works(work)]
print(json.dumps(reached))
"""


@dataclass(frozen=True)
class Row:
    """`ends` is one of the ways below; `says` must be in what the caller is told."""

    id: str
    ends: str
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    handler: dict[str, Any] = field(default_factory=dict[str, Any])
    policy: dict[str, Any] = field(default_factory=dict[str, Any])
    arrange: Callable[[Path], None] | None = None
    says: str = ""


def _files(read: list[str] | None = None, write: list[str] | None = None) -> dict[str, Any]:
    return {"securityContext": {"fileAccess": {"allowRead": read or [], "allowWrite": write or []}}}


def _hosts(*names: str) -> dict[str, Any]:
    return {"securityContext": {"networkAccess": {"allowHosts": list(names)}}}


def _needs(*names: str) -> dict[str, Any]:
    return {"securityContext": {"requiredCapabilities": list(names)}}


def _execution(**fields: Any) -> dict[str, Any]:
    return {"execution": fields}


def _linked(folder: Path) -> None:
    (folder / "linked.py").symlink_to("tool.py")


def _out(folder: Path) -> None:
    (folder.parent / "outside.py").write_text("print('\"BROKEN\"')")
    (folder / "linked.py").symlink_to("../outside.py")


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "linked.py")


def _folder(folder: Path) -> None:
    (folder / "linked.py").mkdir()


def _folder_link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir()
    (folder.parent / "elsewhere" / "tool.py").write_text("print('\"BROKEN\"')")
    (folder / "sub").symlink_to("../elsewhere")


def _writable_link(folder: Path) -> None:
    (folder / "out").symlink_to(folder.parent)


def _script_below(folder: Path) -> None:
    (folder / "bin").mkdir()
    (folder / "tool.py").rename(folder / "bin" / "tool.py")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# The ways to end:
#   unknown   the manifest is not registered, and says why
#   blocked   the tool is known and does not run
#   refused   the run is refused as a matter of security
#   error     the run cannot start, for a reason that is said
#   denied    it runs without what it asked for, and the denial is told
#   held      it runs, and reaches nothing
READ_EVERYTHING = ("/", "/etc", "/etc/**", "/root/**", "/home", "/var/**", "/usr/../etc", "/tmp/**")
ODD_READS = (
    "~",
    "~/.ssh/**",
    "../**",
    "../../etc/passwd",
    "..",
    "$HOME/**",
    "file:///etc/passwd",
    "C:\\Windows",
    "a\\..\\b",
    "/proc/**",
    "/proc/self/root",
    "/sys",
    "/dev/**",
    "/run",
    "",
)
ODD_WRITES = ("/", "/**", ".", "./**", "*", "**", "self", "..", "../x", "/etc", "~", "a*", "out/*/x", "/proc/x", "")

ROWS = (
    *(Row(f"read {path}", "denied", _files(read=[path]), says=path) for path in READ_EVERYTHING if ".." not in path),
    *(Row(f"read {path!r}", "unknown or denied", _files(read=[path])) for path in (*ODD_READS, "/usr/../etc")),
    *(Row(f"write {path!r}", "unknown or denied", _files(write=[path])) for path in ODD_WRITES),
    Row(
        "read everything where the operator opened a root",
        "denied",
        _files(read=["/"]),
        policy={"readRoots": ["/usr/share"]},
    ),
    Row("write above the opened root", "denied", _files(write=["/usr"]), policy={"writeRoots": ["/usr/share"]}),
    Row(
        "a system place that the operator opened by mistake",
        "unknown",
        _files(read=["/proc/sys"]),
        policy={"readRoots": ["/"]},
    ),
    Row("all of the host, opened by mistake", "refused or denied", _files(read=["/etc"]), policy={"readRoots": ["/"]}),
    Row(
        "to write the host, opened by mistake",
        "refused or denied",
        _files(write=["/etc/x"]),
        policy={"writeRoots": ["/"]},
    ),
    *(
        Row(f"host {name!r}", "unknown or denied", _hosts(name))
        for name in (
            "*",
            "*.com",
            "http://x.org/",
            "user@x.org",
            "x.org:0",
            "x.org:99999",
            "127.0.0.1",
            "169.254.169.254",
            "[::1]",
            "0x7f.1",
            "2130706433",
            "localhost",
            "x y",
            "",
            "%2e%2e",
            "x.org\0",
            "*:443",
        )
    ),
    Row(
        "an address that the policy's pattern does not open", "denied", _hosts("10.0.0.1"), policy={"allowHosts": ["*"]}
    ),
    *(
        Row(f"capability {name!r}", "blocked or unknown", _needs(name))
        for name in ("root", "CAP_SYS_ADMIN", "network", "write", "gpu", "*", "", "__proto__")
    ),
    Row("script that is missing", "error or refused", handler={"scriptPath": "none.py"}),
    Row("script outside the folder", "unknown or refused", handler={"scriptPath": "../outside.py"}, arrange=_out),
    Row("script that is absolute", "unknown or refused", handler={"scriptPath": "/usr/bin/env"}),
    Row("script with escaped dots", "error or refused", handler={"scriptPath": "%2e%2e/outside.py"}, arrange=_out),
    Row("script with backslashes", "unknown or refused", handler={"scriptPath": "..\\outside.py"}, arrange=_out),
    Row("script with a NUL", "unknown or refused", handler={"scriptPath": "tool.py\0"}),
    Row("script that is empty", "unknown", handler={"scriptPath": ""}),
    Row("script with a newline", "unknown or error or refused", handler={"scriptPath": "tool.py\n--version"}),
    Row("script that is a link inside", "error or refused", handler={"scriptPath": "linked.py"}, arrange=_linked),
    Row("script that is a link outside", "error or refused", handler={"scriptPath": "linked.py"}, arrange=_out),
    Row("script that is a FIFO", "error or refused", handler={"scriptPath": "linked.py"}, arrange=_fifo),
    Row("script that is a folder", "error or refused", handler={"scriptPath": "linked.py"}, arrange=_folder),
    Row("script below a link", "error or refused", handler={"scriptPath": "sub/tool.py"}, arrange=_folder_link),
    Row(
        "script where the tool may write",
        "refused or blocked or unknown or denied",
        _files(write=["bin"]),
        handler={"scriptPath": "bin/tool.py"},
        arrange=_script_below,
    ),
    Row(
        "script where the tool may write, deeper",
        "refused or blocked or unknown or denied",
        _files(write=["bin/**"]),
        handler={"scriptPath": "bin/tool.py"},
        arrange=_script_below,
    ),
    Row("writable folder that is a link", "denied", _files(write=["out"]), arrange=_writable_link),
    Row("writable folder below a link", "denied", _files(write=["out/new"]), arrange=_writable_link),
    Row("writable folder that is the script", "refused or unknown or denied or blocked", _files(write=["tool.py"])),
    Row(
        "writable folder that is the manifest", "refused or unknown or denied or blocked", _files(write=["x.tool.json"])
    ),
    *(
        Row(f"language {name!r}", "unknown or error", handler={"language": name})
        for name in ("sh", "perl", "Python; rm", "../python", "", "python\0", 3, None, ["python"])
    ),
    *(
        Row(f"entry point {name!r}", "unknown or error", handler={"entryPoint": name})
        for name in (
            "__import__('os').system('id')",
            "os.system",
            "--version",
            "-c",
            "main;x",
            "a b",
            "",
            "__class__.__init__",
            1,
        )
    ),
    Row(
        "limits above the operator's",
        "held",
        _execution(limits={"memoryBytes": 1 << 50, "processes": 1 << 30}, timeoutMs=10**9),
    ),
    *(
        Row(f"limits {value!r}", "unknown or held", _execution(limits={"memoryBytes": value}))
        for value in (-1, 0, 1.5, "1 GB", True, None, 10**400)
    ),
    *(Row(f"time {value!r}", "unknown or held", _execution(timeoutMs=value)) for value in (-1, 0, "x", 10**30, False)),
    Row("limits of unknown names", "unknown or held", _execution(limits={"root": 1, "__class__": 2})),
    Row("integrity of another script", "refused", _execution(integrity=_digest("print(1)")), says="integrity"),
    Row("integrity that is no digest", "unknown or refused", _execution(integrity="sha256-AAAA")),
    Row("integrity of a weak kind", "unknown or refused", _execution(integrity="md5-" + "A" * 22)),
    Row(
        "an environment of its own",
        "unknown or held",
        {"env": {"LD_PRELOAD": "/tool/x.so"}, "environment": {"PATH": "/tool"}},
    ),
    Row(
        "handler with an environment",
        "unknown or held",
        handler={"env": {"PYTHONPATH": "/tool", "LD_PRELOAD": "/tool/x.so"}, "args": ["--", "-c"], "cwd": "/"},
    ),
    Row(
        "interpreter of its own",
        "unknown or held",
        handler={"interpreter": "/tool/sh", "command": ["/bin/sh", "-c", "id"]},
    ),
    Row("security context that is no object", "unknown or held", {"securityContext": ["/"]}),
    Row("security context of null", "unknown or held", {"securityContext": None}),
    Row(
        "file access of wrong types",
        "unknown",
        {"securityContext": {"fileAccess": {"allowRead": "/", "allowWrite": {"a": 1}}}},
    ),
    Row("a granted and a refused path", "denied", _files(read=["data", "/etc"])),
    Row(
        "ten thousand paths", "unknown or denied or refused", _files(read=[f"/etc/{index}" for index in range(10_000)])
    ),
    Row("a path of a megabyte", "unknown or denied or refused", _files(read=["/" + "x" * 1_000_000])),
    Row(
        "trusts itself",
        "unknown or held",
        {"trusted": True, "sandbox": False, "sandboxed": False, "policy": {"writeRoots": ["/"]}},
    ),
    Row("overrides the operator's sandbox", "unknown or held", _execution(sandbox="off", mode="unsafe")),
)


def _call(root: Path, tool_id: str, secret: Path, policy: dict[str, Any]) -> ExecutionResult:
    async def run() -> ExecutionResult:
        context = Runtime(root, {"policy": policy, "sandbox": {"wallMs": 20_000}}).call_context()
        return await execute(CallRequest(call_id="c", name=tool_id, args={"text": str(secret)}), context)

    return asyncio.run(run())


def _ended(result: ExecutionResult) -> str:
    if result.status == "success":
        return "denied" if result.permissions.denied else "held"
    if result.error is UNSET:
        return result.status
    if result.error.type == "UnknownTool":
        return "unknown"
    if result.status == "blocked":
        return "blocked"
    return "refused" if result.error.type == "SecurityError" else "error"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id[:60])
def test_hostile_manifest(row: Row, tmp_path: Path) -> None:
    secret = tmp_path / "user" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("secret")
    root = tmp_path / "work"
    root.mkdir()
    folder = make_tool(root, "hostile:tool", TRIES, **row.fields)
    place = folder / "x.tool.json"
    manifest = json.loads(place.read_text())
    manifest["handler"].update(row.handler)
    place.write_text(json.dumps(manifest))
    if row.arrange is not None:
        row.arrange(folder)
    before = (folder / "tool.py").read_bytes() if (folder / "tool.py").is_file() else b""
    result = _call(root, "hostile:tool", secret, row.policy)
    told = json.dumps(
        [row.id, result.status, str(result.error), str(result.permissions.denied)[:2000], str(result.output)]
    )
    assert _ended(result) in row.ends.split(" or "), told
    assert "BROKEN" not in str(result.output), told
    if result.status == "success":
        assert result.output == [], told
    else:
        assert result.error is not UNSET and result.error.message, told
        assert result.output is UNSET or result.output is None, told
    assert row.says in told, told
    assert all(denied.reason for denied in result.permissions.denied)
    # nothing of the host was changed or made
    assert secret.read_text() == "secret"
    assert os.listdir(secret.parent) == ["secret.txt"]
    assert sorted(os.listdir(tmp_path)) == ["user", "work"]
    if before:
        assert (folder / "tool.py").read_bytes() == before
    assert result.observation


def test_a_set_uid_leftover_with_an_odd_name_reaches_the_caller_as_text(tmp_path: Path) -> None:
    # what a script leaves is told in the result, whatever bytes its name has
    script = "import os\nfor n in (b'\\xff\\xfe', b'a\\nb', b'\\x1b[2J'): os.mkfifo(b'/tool/out/' + n)\nprint('1')"
    make_tool(tmp_path, "hostile:tool", script, securityContext={"fileAccess": {"allowWrite": ["out"]}})
    result = _call(tmp_path, "hostile:tool", tmp_path, {})
    assert result.status == "success", result
    text = str(result.permissions) + str(result.sandbox) + result.observation + str(getattr(result, "violations", ""))
    text.encode("utf-8")
    assert "\x1b" not in text
    assert os.listdir(tmp_path / "hostile_tool" / "out") == []


@pytest.mark.parametrize("digits", [400, 4300, 4301, 100_000])
@pytest.mark.parametrize("name", ["timeoutMs", "memoryBytes"])
def test_a_number_of_any_length_is_read(tmp_path: Path, name: str, digits: int) -> None:
    # one such manifest must not keep the others from being read
    execution = {"timeoutMs": 77} if name == "timeoutMs" else {"limits": {"memoryBytes": 77}}
    folder = make_tool(tmp_path, "hostile:tool", "print(1)", execution=execution)
    place = folder / "x.tool.json"
    place.write_text(place.read_text().replace("77", "9" * digits))
    make_tool(tmp_path, "honest:tool", "print(1)")
    assert _ended(_call(tmp_path, "hostile:tool", tmp_path, {})) in ("unknown", "held")
    assert _ended(_call(tmp_path, "honest:tool", tmp_path, {})) == "held"


def test_there_are_as_many_as_are_judged() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) > 20
