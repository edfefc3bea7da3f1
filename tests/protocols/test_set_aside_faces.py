"""What rewrites and explains texts follows the reader: a block that is set aside stays as it is (issue 14, ruling 44)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.protocols.api import make_reader
from tamis.protocols.convert.convert import ConvertOptions, convert
from tamis.protocols.model import ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.repair import alternatives, explain, mended
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.rpc import streams
from tamis.server.runtime.runtime import Runtime
from tests.cli.process import tamis
from tests.protocols.contexts import ACTION, SET_ASIDE, VCP

FAULTY = "<ACTION><Danger><path>/etc/x</Danger></ACTION>"
"""A block that a safe repair mends where it runs."""
every_context = pytest.mark.parametrize("wrap", SET_ASIDE.values(), ids=SET_ASIDE)


@every_context
def test_convert_leaves_a_block_that_is_set_aside_and_says_so(wrap: str) -> None:  # ruling 44
    text = wrap.format(ACTION)
    done = convert(read_text(text), "tam", ConvertOptions())
    assert done.text.strip() == text.strip()
    assert [loss.code for loss in done.losses] == ["TC057"]


@every_context
def test_repair_leaves_a_block_that_is_set_aside(wrap: str) -> None:  # rulings 1 44
    assert mended(read_text(FAULTY), read_text).edits
    text = wrap.format(FAULTY)
    assert mended(read_text(text), read_text).edits == ()


@every_context
def test_explain_offers_no_reading_that_hides_why_a_block_is_set_aside(wrap: str) -> None:  # ruling 44
    document = read_text(wrap.format(ACTION))
    for reading in alternatives(document, read_text):
        # Only an option of the reader makes such a block run, never an edit that is not asked for.
        assert reading.options
        assert reading.edits == ()
    assert explain(document, read_text, None).assumptions == []


def test_explain_names_the_option_under_which_reasoning_and_fences_run() -> None:  # rulings 5 7
    for wrap, option in (("<think>{}</think>", "reasoningCalls"), ("```\n{}\n```\nx", "fencedCalls")):
        (reading,) = alternatives(read_text(wrap.format(ACTION)), read_text)
        assert reading.options == {option: "run"}


def test_format_writes_the_call_and_no_block_that_is_set_aside(tmp_path: Path) -> None:
    """Ruling 44: in one file, the call is written canonically and each quoted block stays byte for byte."""
    closed = [
        "comment",
        "quote",
        "fence with text behind",
        "element with attributes",
        "code",
        "quotation marks",
        "echo",
    ]
    parts = [SET_ASIDE[name].format(ACTION) for name in closed]
    quoted = "\n\n".join([*parts, SET_ASIDE["comment"].format(VCP)])
    path = tmp_path / "notes.md"
    path.write_text(f"{quoted}\n\n{ACTION}\n", encoding="utf-8")
    assert tamis("format", "notes.md", cwd=tmp_path).returncode == 0
    written = path.read_text("utf-8")
    assert written == f"{quoted}\n\n<ACTION>\n  <Danger>\n    <path>/etc/x</path>\n  </Danger>\n</ACTION>\n"
    calls = read_text(written, "auto", ReadOptions()).calls
    assert [call.executable for call in calls].count(True) == 1


def test_the_bound_is_the_same_for_the_library_the_daemon_and_the_editor(tmp_path: Path) -> None:  # TC028
    known = {
        ReadOptions().max_blocks,
        make_reader(options={"strict": True}).options.max_blocks,
        Runtime(tmp_path).read_options().max_blocks,
        Snapshot("a.md", "text", "", None).reading.max_blocks,
        streams.MAX_BLOCKS,
    }
    assert known == {100_000}


def test_convert_says_what_of_a_text_it_did_not_read() -> None:  # TC028
    bounded = ReadOptions(max_blocks=2)
    done = convert(read_text(f"{VCP}\n{VCP}\n{VCP}", "auto", bounded), "tam", ConvertOptions(reading=bounded))
    assert done.text.endswith(VCP)
    assert [loss.code for loss in done.losses] == ["TC055"]
    assert done.losses[0].message.startswith("The rest of the text is left as it is: More than 2 blocks")
