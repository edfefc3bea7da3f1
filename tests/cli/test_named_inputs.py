"""What may stand for a file on the command line: FIFOs, pipes of a shell, folders, devices, sockets (finding of a fresh user)."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from tamis.server.cli import inputs
from tests.cli import process
from tests.cli.in_process import tamis
from tests.cli.process import COMMAND

TEXT = "<ACTION>\n<nobody:knows></nobody:knows>\n</ACTION>\n"
NAMING = [
    ["run", "--dry-run", "PLACE"],
    ["parse", "PLACE"],
    ["convert", "--to", "json", "PLACE"],
    ["stats", "PLACE"],
    ["parse", "--jsonl", "PLACE"],
    ["test", "PLACE"],
    ["call", "nobody:knows", "--args", "@PLACE"],
    ["import", "openai", "PLACE"],
]


def begun(words: list[str], place: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *(word.replace("PLACE", str(place)) for word in words)],
        cwd=place.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("words", NAMING, ids=" ".join)
def test_whoever_waits_for_a_fifo_is_told_so_and_can_end_it(tmp_path: Path, words: list[str]) -> None:
    place = tmp_path / "pipe.md"
    os.mkfifo(place)
    with begun(words, place) as waiting:
        assert waiting.stderr is not None
        for line in waiting.stderr:
            if "is a FIFO: waiting for what another program writes into it; Ctrl-C ends this" in line:
                break
        waiting.send_signal(signal.SIGINT)
        waiting.communicate()
    assert waiting.returncode == 130


def test_what_is_written_into_a_fifo_is_read(tmp_path: Path) -> None:
    place = tmp_path / "pipe.md"
    os.mkfifo(place)
    threading.Thread(target=place.write_text, args=(TEXT,), daemon=True).start()
    done = tamis("parse", str(place), cwd=tmp_path)
    assert [call["toolId"] for call in json.loads(done.stdout)["calls"]] == ["nobody:knows"]


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0"])
def test_a_pipe_of_the_shell_is_read_without_a_word(tmp_path: Path, name: str) -> None:
    done = process.tamis("parse", name, cwd=tmp_path, data=TEXT)
    assert [call["toolId"] for call in json.loads(done.stdout)["calls"]] == ["nobody:knows"]
    assert done.stderr == ""


def test_a_log_in_a_process_substitution_is_read_from_its_beginning(tmp_path: Path) -> None:
    """What a look for Parquet took of a pipe was gone."""
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"text": TEXT}) + "\n" for _ in range(2_000)))
    words = shlex.join(COMMAND)
    done = subprocess.run(
        ["bash", "-c", f"{words} parse --jsonl <(cat log.jsonl)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("nobody:knows") == 2_000, done.stderr
    assert done.returncode == 0


def test_a_pipe_with_more_than_one_text_holds_is_read_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was opened again for its calls, behind what had been read."""
    monkeypatch.setattr(inputs, "MAX_TEXT_BYTES", 1 << 20)
    reads, writes = os.pipe()
    long = TEXT + ("." * 99 + "\n") * 11_000

    def write() -> None:
        with open(writes, "w") as pipe:
            pipe.write(long)

    writer = threading.Thread(target=write)
    writer.start()
    done = tamis("parse", f"/dev/fd/{reads}", cwd=tmp_path)
    os.close(reads)
    writer.join()
    assert [call["toolId"] for call in json.loads(done.stdout)["calls"]] == ["nobody:knows"], done.stderr
    assert "only its calls are printed" in done.stderr


@pytest.mark.parametrize(
    ("words", "kind"),
    # a folder is what `tamis test` searches
    [
        (words, kind)
        for words in NAMING
        for kind in ("folder", "device", "socket")
        if (words[0], kind) != ("test", "folder")
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_is_no_file_is_said_and_not_opened(tmp_path: Path, words: list[str], kind: str) -> None:
    place = tmp_path / "place.md"
    listener = socket.socket(socket.AF_UNIX)
    if kind == "folder":
        place.mkdir()
    elif kind == "socket":
        listener.bind(str(place))
    else:
        place.symlink_to("/dev/zero")
    done = tamis(*(word.replace("PLACE", str(place)) for word in words), cwd=tmp_path)
    listener.close()
    assert done.returncode == 2
    assert f"'{place}' is a {kind}; name a file" in done.stderr


def test_the_empty_device_is_an_empty_text(tmp_path: Path) -> None:
    done = tamis("parse", "/dev/null", cwd=tmp_path)
    assert json.loads(done.stdout)["calls"] == []
