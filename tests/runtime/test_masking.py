"""What ``x-secret`` marks is in no observation and in no output while it arrives; the result's own output is the host's (D83)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.observe.masking import MaskedStreams, secret_texts, without
from tamis.server.runtime.runtime import Runtime
from tests.runtime.run_tool import run_tool
from tests.sample_tools import make_tool

KEY = {"key": {"type": "string", "x-secret": True}}
ECHO = "import json, sys\nkey = json.load(sys.stdin)['key']\nprint(json.dumps({'said': f'with {key}', key: [key]}))"
SECRET = 'hunter2 "hunter2"'


def test_a_successful_output_is_masked_in_the_observation_alone(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:secret", ECHO, properties=KEY)
    for style in ("action", "action-inputs", "tam", "vcp"):
        result = run_tool(tmp_path, "test:secret", {"key": SECRET}, style=style)
        assert result.output == {"said": f"with {SECRET}", SECRET: [SECRET]}
        assert "hunter2" not in result.observation
        assert '{"said": "with ***", "***": ["***"]}' in result.observation


def test_an_unfit_secret_is_masked_in_the_observation(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:secret", ECHO, properties={"key": {"enum": ["one", "two"], "x-secret": True}})
    result = run_tool(tmp_path, "test:secret", {"key": "hunter2-hunter2"})
    assert result.status == "error"
    assert "hunter2" not in result.observation


def test_secrets_within_a_marked_object_and_numbers_are_known() -> None:
    args = {"login": {"user": "some one", "pins": [4711, 12]}, "shown": "plain"}
    found = secret_texts(args, {"login": "***", "shown": "plain"})
    assert {"some one", "4711"} <= set(found)
    assert without("some one has 4711, not 12 plain", found) == "*** has ***, not 12 plain"


def test_what_a_script_prints_is_masked_while_it_arrives(tmp_path: Path) -> None:
    script = (
        "import json, sys, time\nkey = json.load(sys.stdin)['key']\n"
        "for part in (key[:5], key[5:] + ' and ' + key[:4], 'x'):\n"
        "    sys.stderr.write(part)\n    sys.stderr.flush()\n    time.sleep(0.1)\nprint('1')"
    )
    make_tool(tmp_path, "test:secret", script, properties=KEY)
    told: list[str] = []

    async def run() -> Any:
        context = Runtime(tmp_path).call_context(
            on_output=lambda _call, stream, text: told.append(text) if stream == "stderr" else None
        )
        return await execute(CallRequest(call_id="c", name="test:secret", args={"key": "hunter2-hunter2"}), context)

    assert asyncio.run(run()).status == "success"
    assert "".join(told) == "*** and huntx"


@given(
    secrets=st.lists(st.text(alphabet="abé", min_size=4, max_size=8), min_size=1, max_size=2),
    text=st.text(alphabet="abé.", max_size=60),
    cuts=st.lists(st.integers(0, 120), max_size=6),
)
def test_pieces_give_what_the_whole_gives(secrets: list[str], text: str, cuts: list[int]) -> None:
    ordered = sorted(secrets, key=len, reverse=True)
    data = text.encode()
    whole: list[str] = []
    parts: list[str] = []
    for told, places in ((whole, []), (parts, sorted(cuts))):
        streams = MaskedStreams(ordered, lambda _stream, shown, told=told: told.append(shown))
        edges = [0, *places, len(data)]
        for start, end in pairwise(edges):
            streams.piece("stdout", data[start:end])
        streams.end()
    assert "".join(whole) == "".join(parts)
    if len(set(secrets)) == 1:
        assert "".join(whole) == without(text, ordered)


def test_a_long_secret_against_a_stream_of_its_letters_is_not_slow() -> None:  # F18
    secret = "a" * 200_000 + "b"
    told: list[str] = []
    streams = MaskedStreams((secret,), lambda _stream, shown: told.append(shown))
    for _ in range(16):
        streams.piece("stdout", b"a" * 65_535 + b"c")
    streams.end()
    assert sum(map(len, told)) == 16 * 65_536


def test_of_a_call_with_very_many_secrets_nothing_is_shown() -> None:  # F18
    secrets = secret_texts([f"secret{i}" for i in range(2_000)], "***")
    assert (without("some text", secrets), without("", secrets)) == ("***", "")
    told: list[str] = []
    streams = MaskedStreams(secrets, lambda _stream, shown: told.append(shown))
    for _ in range(3):
        streams.piece("stderr", b"secret1999")
    streams.end()
    assert told == ["***"]
