"""`tamis stats` (C3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols import count
from tamis.server.logs import records
from tests.cli.in_process import Tamis

ACTION = "<ACTION><t:a><x>1</x></t:a></ACTION>"
RECORDS: list[dict[str, Any]] = [
    {"text": ACTION, "model": "m"},
    {"text": f"<think>{ACTION}</think>", "model": "m"},
    {"text": ACTION.removesuffix("</ACTION>"), "model": "n"},
    {"text": "prose"},
    {"text": ACTION[:-7]},
    {"text": ACTION[:-20]},
]


def log(tamis: Tamis, name: str = "log.jsonl", times: int = 1) -> Path:
    path = tamis.folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS) * times)
    return path


def without_tools(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if "nknown" not in name and name != "toolsKnown"}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_counts_are_those_of_the_library(tamis: Tamis, jobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C3: `--json`, over several files and processes."""
    monkeypatch.setattr(records, "BLOCK_BYTES", 16 * 1024)  # the log has several
    log(tamis, times=200)
    log(tamis, "b.jsonl")
    done = tamis("stats", "--json", "--jobs", jobs, "log.jsonl", "b.jsonl")
    wanted = count([(one["text"], one.get("model", "")) for one in RECORDS] * 201).data()
    assert (done.code, done.err) == (0, "")
    assert without_tools(done.json()) == without_tools(wanted)


@pytest.mark.slow
def test_the_table_shows_the_counts(tamis: Tamis) -> None:
    """C3: for persons."""
    log(tamis)
    done = tamis("stats", "log.jsonl")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert done.code == 0
    assert lines[0].startswith("6 texts (") and lines[0].endswith("4 of them with calls")
    assert "all 4 2 1 1 0 1" in lines and "t:a 4 2 1 1 0 1" in lines
    assert "m 2 1 1 0 0 0" in lines and "by model" in lines
    assert "1 reasoning" in lines and any(line.startswith("1 TC002 ") for line in lines)
    assert "unknown tools" in lines and "2 t:a" in lines
    assert "besides: 1 blocks cut off before a call, 0 refused without one" in lines


@pytest.mark.slow
def test_broken_records_are_told_and_counted(tamis: Tamis) -> None:
    """C3: and the rest is counted; the exit code stays 0."""
    path = log(tamis)
    path.write_text(f"x\n{path.read_text()}[1]\n")
    done = tamis("stats", "log.jsonl")
    assert done.code == 0 and "2 records without a text" in done.out
    assert "log.jsonl:1: " in done.err and "log.jsonl:8: " in done.err
    assert tamis("stats", "log.jsonl", "--json").json()["broken"] == 2


@pytest.mark.slow
def test_one_page_is_written(tamis: Tamis) -> None:
    """C3: with a title of the files' names."""
    log(tamis)
    done = tamis("stats", "log.jsonl", "--html", "out.html", "--json")
    text = (tamis.folder / "out.html").read_text()
    assert done.code == 0 and done.json()["calls"] == 4
    assert "<h1>Tool calls in log.jsonl</h1>" in text and "<svg" in text and "<script" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "cannot read 'nowhere'"),
        (["log.jsonl", "nowhere"], "cannot read 'nowhere'"),
        (["log.jsonl", "--html", "no/folder/x"], "--html: the folder of 'no/folder/x' does not exist"),
        (["log.jsonl", "--model", "a..b"], "'a..b' is no field"),
    ],
)
def test_wrong_usage_is_told(tamis: Tamis, words: list[str], told: str) -> None:
    """C3: exit code 2."""
    log(tamis)
    done = tamis("stats", *words)
    assert done.code == 2 and told in done.err and not done.out


@pytest.mark.slow
def test_the_model_is_looked_for_where_it_is_said(tamis: Tamis) -> None:
    """C3: `--model` and `--field`."""
    (tamis.folder / "a.jsonl").write_text(json.dumps({"meta": {"by": "q"}, "message": {"content": ACTION}}))
    done = tamis("stats", "a.jsonl", "--json", "--model", "meta.by", "--field", "message.content")
    assert list(done.json()["models"]) == ["q"] and done.json()["models"]["q"]["executable"] == 1


@pytest.mark.slow
def test_the_page_goes_to_standard_output(tamis: Tamis) -> None:
    done = tamis("stats", "--html", "-", log(tamis))
    assert done.code == 0
    assert done.out.startswith("<!") and done.out.rstrip().endswith("</html>") and "\nby protocol\n" not in done.out
    assert not (tamis.folder / "-").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--html", "-", "--json"], "both write to standard output"),
        (["--html", "."], "'.' is a folder; name a file in it"),
        (["--html", "none/page.html"], "the folder of 'none/page.html' does not exist"),
    ],
)
def test_a_place_where_no_page_can_be_written_is_said_before_anything_is_read(
    words: list[str], why: str, tamis: Tamis
) -> None:
    done = tamis("stats", *words, "no-such-log")
    assert (done.code, why in done.err) == (2, True)


@pytest.mark.slow
def test_a_page_that_cannot_be_written_is_a_message(tamis: Tamis) -> None:
    done = tamis("stats", "--html", "/dev/full", log(tamis))
    assert (done.code, done.err) == (2, "tamis: --html: cannot write '/dev/full': No space left on device\n")


@pytest.mark.slow
def test_half_of_a_character_in_a_name_does_not_end_the_page(tamis: Tamis) -> None:
    path = log(tamis)
    path.write_text('{"text": "<ACTION><t:x><p>1</p></t:x></ACTION>", "model": "m\\ud800"}\n')
    done = tamis("stats", "--html", "page.html", path)
    assert (done.code, "</html>" in (tamis.folder / "page.html").read_text("utf-8")) == (0, True)
