"""The daemon's own log, for people and for collectors (D27, D94)."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.runtime.observe.tracing import Trace
from tamis.server.runtime.observe.trail import Log, Trail


def lines(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return capfd.readouterr().err.splitlines()


def test_a_json_line_has_the_fields_of_its_event(capfd: pytest.CaptureFixture[str]) -> None:
    trail = Trail(None, Log("info", "json"), "/root", "call-1", Trace("a" * 32, "b" * 16))
    trail.of_tool("core:echo", "1.0.0")
    trail.note("call.ended", "info", status="success", durationMs=1.5)
    (line,) = lines(capfd)
    told = json.loads(line)
    assert (told["level"], told["message"], told["callId"], told["tool"]) == (
        "info",
        "call.ended",
        "call-1",
        "core:echo",
    )
    assert (told["status"], told["durationMs"], told["traceId"]) == ("success", 1.5, "a" * 32)
    assert told["time"].endswith("+00:00")


def test_text_lines_are_for_people(capfd: pytest.CaptureFixture[str]) -> None:
    trail = Trail(None, Log("info"), "/root", "call-1")
    trail.of_tool("core:echo", "1.0.0")
    trail.note("call.ended", "info", status="success")
    assert lines(capfd) == ["tamis: info: call-1 core:echo call.ended status=success"]


def test_a_long_json_line_is_shortened_and_stays_json(capfd: pytest.CaptureFixture[str]) -> None:
    Trail(None, Log("debug", "json"), "/root", "c").note("x", "info", big=["工" * 900] * 9, small="kept")
    (line,) = lines(capfd)
    told = json.loads(line)
    assert len(line.encode()) < 4096
    assert (told["small"], told["shortened"]) == ("kept", True)
    assert "big" not in told


def test_below_its_level_nothing_is_written(capfd: pytest.CaptureFixture[str]) -> None:
    log = Log("warning", "json")
    log.event("info", "quiet", {})
    log.write("warning", "loud")
    assert [json.loads(line)["message"] for line in lines(capfd)] == ["loud"]


def test_secrets_are_hidden_in_both_forms(capfd: pytest.CaptureFixture[str]) -> None:
    for form in ("text", "json"):
        trail = Trail(None, Log("info", form), "/root", "c")
        trail.keep_secret(["hunter2hunter2"])
        trail.note("x", "info", words="pass hunter2hunter2 on")
    assert "hunter2" not in capfd.readouterr().err


@given(st.text(), st.dictionaries(st.text(max_size=8), st.text(max_size=3000), max_size=20))
def test_whatever_is_logged_is_one_line_of_json(what: str, fields: dict[str, str]) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream, contextlib.redirect_stderr(stream):
        Log("debug", "json").event("info", what, fields)
    with open(reader, "rb") as stream:
        content = stream.read()
    assert content.count(b"\n") == 1
    assert content.endswith(b"\n")
    assert json.loads(content)["level"]


def test_threads_that_write_at_once_fail_none_of_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[BaseException] = []
    with (tmp_path / "log").open("w") as place:
        monkeypatch.setattr(sys, "stderr", place)

        def write() -> None:
            log = Log("debug")
            try:
                for number in range(300):
                    log.write("warning", f"line {number}")
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=write) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
    assert len((tmp_path / "log").read_text().splitlines()) == 8 * 300
