"""The rules of ``answer_rules.py`` on half-typed and odd documents: those of the marker files, changed at random (D93; longer with ``--long``)."""

from __future__ import annotations

import random
import time
from functools import cache
from pathlib import Path

import pytest

from tamis.server.analysis.snapshot import Snapshot
from tests.lsp.answer_rules import LAWS, Law
from tests.lsp.marker_core import core_of
from tests.lsp.markers import FOLDER, Core, opened, read_case
from tests.lsp.typed_texts import PIECES, TEXTS

CASES = sorted(FOLDER.rglob("*.txt"))
MAX_CHARS = 6_000
DOCUMENTS = 30


def with_text(core: Core, name: str, text: str) -> Snapshot:
    """A document of a case with another text."""
    old = core.snapshot(name)
    base = old.index
    assert base is not None
    return Snapshot(
        old.path,
        old.kind,
        text,
        old.registry,
        folder=old.folder,
        settings=old.settings,
        neighbours=old.neighbours,
        index=cache(lambda: base.with_texts({old.path: text})),
        script=old.script,
        workflows=old.workflows,
        settings_faults=old.settings_faults,
        is_graph=old.is_graph,
    )


def mutated(text: str, draw: random.Random) -> str:
    """A text as somebody may have left it."""
    for _ in range(draw.choice((0, 1, 1, 2, 4))):
        at = draw.randint(0, len(text))
        kind = draw.random()
        if kind < 0.4:
            text = text[:at] + draw.choice(PIECES) + text[at:]
        elif kind < 0.6:
            text = text[:at] + text[at + draw.randint(1, 12) :]
        elif kind < 0.7:
            text = text[:at]
        elif kind < 0.8:
            other = draw.choice(list(TEXTS.values()))
            start = draw.randint(0, len(other))
            text = text[:at] + other[start : start + draw.randint(1, 80)] + text[at:]
        elif kind < 0.9:
            text = text.replace("\n", draw.choice(("\r\n", "\r", "\n\n")), draw.randint(1, 5))
        else:
            lines = text.splitlines(keepends=True)
            draw.shuffle(lines[: draw.randint(0, len(lines))])
            text = "".join(lines)
    return text


@cache
def core(path: Path, folder: Path) -> Core:
    return core_of(read_case(path), folder / path.stem)


def broken(law: Law, folder: Path, seed: object, *, count: int = 0, seconds: float = 0.0) -> tuple[int, str]:
    """How many documents a law was asked of, and what broke it."""
    draw = random.Random(str(seed))
    done, until = 0, time.monotonic() + seconds
    while done < count or time.monotonic() < until:
        case = core(draw.choice(CASES), folder)
        names = [name for name, text in opened(case.case) if len(text) < MAX_CHARS]
        if not names:
            continue
        name = draw.choice(names)
        text = mutated(case.text(name), draw)
        done += 1
        try:
            law(with_text(case, name, text), lambda other, case=case, name=name: with_text(case, name, other), draw)
        except Exception as error:  # said with the text that it is about
            return done, f"{case.case.path.stem}/{name}: {error!r}\n{text!r}"
    return done, ""


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law: Law, tmp_path_factory: pytest.TempPathFactory, is_long: bool) -> None:
    folder = tmp_path_factory.mktemp("laws")
    seed = random.randrange(10**9) if is_long else law.__name__
    done, found = broken(law, folder, seed, count=DOCUMENTS, seconds=60 if is_long else 0)
    assert not found, f"seed {seed}, document {done}: {found}"
