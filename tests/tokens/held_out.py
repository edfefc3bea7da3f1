"""Texts by kind that the token estimate was not fitted on, and what gpt-tokenizer counts for them."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

from tests.node_runtime import NODE, node_project

ROOT = Path(__file__).resolve().parent.parent.parent
EMOJI = [
    "😃",
    "😅",
    "🎊",
    "🛰️",
    "👏",
    "👍🏿",
    "💜",
    "☑️",
    "⛔",
    "🔋",
    "🌏",
    "🇫🇷",
    "🇯🇵",
    "👩\u200d🔧",
    "🧳",
    "📐",
    "🦀",
    "🖌️",
    "🔦",
    "🗒️",
    "⌛",
    "🚴\u200d♂️",
    "🍐",
    "🐼",
    "🌕",
    "🧫",
    "🥈",
    "🏹",
    "😢",
    "🤨",
]


def held_out(corpora: Path) -> dict[str, list[str]]:
    """Documents by kind of text."""
    rng = random.Random(20261122)
    docs = [
        re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        for page in sorted((ROOT / "docs").glob("*.md"))
    ]
    seeds = [seed.read_text("utf-8") for seed in sorted((corpora.parent / "seeds").glob("*.txt"))]
    words = re.findall(r"\w+", docs[0])
    return {
        "English": docs,
        "Chinese": [re.sub(r"```.*?```", "", seed, flags=re.DOTALL) for seed in seeds],
        "mixed": seeds,
        "code": [file.read_text("utf-8") for file in sorted((ROOT / "sandbox").glob("*.py"))],
        "JSON schema": [file.read_text("utf-8") for file in sorted((corpora / "mcp-tools").rglob("*.json"))[:40]],
        "tool calls": [_calls(corpora, name) for name in ("vcp", "action_inputs")],
        "emoji": [" ".join(rng.choice(EMOJI) + rng.choice(("", " " + rng.choice(words))) for _ in range(400))],
        "numbers": [_numbers(rng) for _ in range(5)],
        "blanks": [
            "\n".join(" " * rng.randint(0, 50) + rng.choice(words) + "\n" * rng.randint(0, 4) for _ in range(200))
        ],
    }


def _calls(corpora: Path, name: str) -> str:
    rows = (corpora / "calls" / f"{name}.jsonl").read_text("utf-8").splitlines()[:200]
    return "\n\n".join(json.loads(row)["text"] for row in rows)


def _numbers(rng: random.Random) -> str:
    forms = (
        lambda: str(rng.getrandbits(90)),
        lambda: f"{rng.random() * 1e4:.8f}",
        lambda: f"{rng.getrandbits(128):032x}",
    )
    return "\n".join(rng.choice(forms)() for _ in range(100))


def gpt_tokenizer_counts(texts: list[str], folder: Path) -> list[tuple[int, int]]:
    """(o200k_base, cl100k_base) of each text, from the locked npm package."""
    project = node_project(Path(__file__).parent, folder / "tokens")
    done = subprocess.run(
        [NODE, "count.mjs"],
        cwd=project,
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return [(new, old) for new, old in json.loads(done.stdout)]
