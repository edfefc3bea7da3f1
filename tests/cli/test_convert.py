"""``tamis convert``: the text on stdout, the losses on stderr, the exit code."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.in_process import tamis
from tests.sample_tools import action, make_tool, vcp


def test_a_text_is_converted_in_place(tmp_path: Path) -> None:
    text = "Look:\r\n" + action("echo", text="a &lt; b") + "\r\nthere.\r\n"
    done = tamis("convert", "--to", "tam", cwd=tmp_path, data=text)
    assert done.stdout == (
        "Look:\r\n<|[REQUEST_TOOL]|>\r\ncommand:»»»echo«««\r\ntext:»»»a < b«««\r\n<|[END_TOOL]|>\r\nthere.\r\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_losses_are_said_on_stderr_and_do_not_fail(tmp_path: Path) -> None:
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»echo«««\nretry:»»»2«««\n<|[END_TOOL]|>"
    done = tamis("convert", "--to", "vcp", cwd=tmp_path, data=text)
    assert done.returncode == 0
    assert done.stderr == "tamis: /calls/0/retry: retry 2 is not carried over to VCP: it has no place for it [TC052]\n"


def test_a_call_that_stays_exits_with_one(tmp_path: Path) -> None:
    text = vcp("echo", a_b="1") + "\n<ACTION></ACTION>"
    done = tamis("convert", "--to", "tam", cwd=tmp_path, data=text)
    assert done.returncode == 1
    assert "<|[REQUEST_TOOL]|>" in done.stdout and done.stdout.endswith("\n<ACTION></ACTION>")
    assert "[TC055]" in done.stderr


def test_registered_tools_type_the_values_of_vendor_json(tmp_path: Path) -> None:
    make_tool(tmp_path, "count", properties={"n": {"type": "integer"}})
    (tmp_path / "call.md").write_text(action("count", n="7"), encoding="utf-8")
    typed = tamis("convert", "--to", "anthropic", "call.md", cwd=tmp_path)
    assert json.loads(typed.stdout)["content"][0]["input"] == {"n": 7}
    plain = tamis("convert", "--to", "anthropic", "--no-tools", "call.md", cwd=tmp_path)
    assert json.loads(plain.stdout)["content"][0]["input"] == {"n": "7"}


def test_vendor_json_is_read_too(tmp_path: Path) -> None:  # W14
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "x"}},
    }
    done = tamis("convert", "--to", "action", "--shape", "inputs", cwd=tmp_path, data=json.dumps(request))
    assert '<input name="text">x</input>' in done.stdout


def test_hermes_is_a_target_as_well(tmp_path: Path) -> None:
    done = tamis("convert", "--to", "hermes", cwd=tmp_path, data=action("echo", text="x"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("<tool_call>\n")
    back = tamis("convert", "--to", "action", "--from", "hermes", cwd=tmp_path, data=done.stdout)
    assert "<text>x</text>" in back.stdout


def test_an_unknown_form_is_wrong_usage(tmp_path: Path) -> None:
    done = tamis("convert", "--to", "xml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no target 'xml'; known: action, tam, vcp" in done.stderr


def test_an_unknown_form_is_answered_with_all_of_them(tmp_path: Path) -> None:
    done = tamis("convert", "--to", "foo", cwd=tmp_path, data="x")
    assert done.returncode == 2
    assert all(name in done.stderr for name in ("action", "tam", "vcp", "json", "hermes", "openai", "anthropic", "mcp"))


def test_a_shape_that_means_nothing_and_hermes_that_is_not_read_are_said(tmp_path: Path) -> None:
    done = tamis("convert", "--to", "mcp", "--shape", "tag", cwd=tmp_path, data="<tool_call>{}</tool_call>")
    assert "--shape is of ACTION; it means nothing with --to mcp" in done.stderr
    assert "<tool_call> is not read" in done.stderr
    assert "tamis: /:" not in done.stderr
