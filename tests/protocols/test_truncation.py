"""A text that ends inside a call shows it, whatever the host says of its end (ruling 51)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tamis.protocols.model import Call, ReadOptions
from tamis.protocols.reader import read_text
from tests.protocols.corpus_adapter import tools
from tests.protocols.json_calls import block as hermes_block
from tests.protocols.json_calls import read as read_hermes

FILES = ["action_tag", "action_inputs", "tam", "vcp", "contexts"]
REPAIRED = {
    "action": re.compile(r"(?:</[^<>]+>|/>|-->)\s*\Z"),
    "tam": re.compile(r"(?:« ?« ?«|<<<|»»»|[\r\n][ \t]*(?:#|//|--)[^\r\n]*)[\s,;，；、|`\u200b\ufeff]*\Z"),
    "vcp": re.compile(r"(?!)"),
}
"""Behind what a block may lack its closing marker: a complete tool element, a closed value or a comment, nothing (rulings 18, 22, 29)."""
FAKE_CLOSE = re.compile(r"</ACTION>")


def executable(text: str, options: ReadOptions, start: int) -> list[Call]:
    return [call for call in read_text(text, options=options).calls if call.executable and call.span[0] >= start]


@pytest.mark.parametrize("name", FILES)
def test_a_prefix_runs_nothing_of_the_block_it_cuts_unless_a_ruling_closes_it(
    corpora: Path, name: str, is_long: bool
) -> None:  # ruling 51
    prefixes = 0
    for line in (corpora / "calls" / f"{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        text = row.get("text", "")
        if row.get("want") == "never":
            continue
        options = ReadOptions(tools=tools(row) if "expect" in row else {})
        whole = read_text(text, options=options)
        step = 1 if is_long else 1 + len(text) // 25
        for block in whole.blocks:
            wanted = [(call.tool_id, call.args(text)) for call in block.calls]
            for cut in range(block.open[1] + len(row["id"]) % step, block.span[1], step):
                prefixes += 1
                part = text[:cut]
                calls = executable(part, options, block.span[0])
                if not calls or (part.endswith("«««") and text[cut] == "«"):
                    # Nothing in the shorter text shows that the run of the delimiter goes on.
                    continue
                inside = part[block.open[1] :]
                if block.protocol == "action" and FAKE_CLOSE.search(inside):
                    # The marker in a value closes the shorter text (ruling 18).
                    continue
                assert REPAIRED[block.protocol].search(inside), (row["id"], part[-80:])
                for call in calls:
                    given = call.args(part)
                    own = {name: value for name, value in given.items() if f"common_{name}" not in part}
                    same = [args for tool_id, args in wanted if tool_id == call.tool_id]
                    assert any(own.items() <= args.items() for args in same), (row["id"], part[-80:])
                    assert block.protocol != "action" or given in same, (row["id"], part[-80:])
    assert prefixes > (1000 if is_long else 50)


ACTION = "<ACTION><T><a>1</a></T>"
INPUTS = '<ACTION><tool_id>T</tool_id><inputs><input name="a">1</input>'
TAM = "<|[REQUEST_TOOL]|>\ncommand:»»»T«««\na:»»»1«««\n"
VCP = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」,\na:「始」1「末」\n"


@pytest.mark.parametrize(
    "text",
    [
        *(ACTION + rest for rest in ("<", "</", "</ACT", "</ACTION", "</ACTION\n", "<U", "<U>", "<!-", "<![CDATA[")),
        "<ACTION><T><a>1</a>",
        "<ACTION><T><a>1</a><b/>\n",
        "<ACTION><T><a><![CDATA[1</a></T>",
        "<ACTION><T><a><![CDATA[</a></T>",
        INPUTS,
        "<ACTION><tool_id>T</tool_id>",
        '<ACTION><tool_id>T</tool_id><input name="a">1</input>',
        *(TAM + rest for rest in ("o", "only_if", "only_if:", "only_if: ", "only_if:»", "only_if:»»", "only_if:»»»")),
        *(TAM + rest for rest in ("only if", "- ", "**only_if", "on_error_1 :", "only_if\n", "# note\nonly_if")),
        *(TAM + rest for rest in ("<", "<|", "<|[", "<|[END_", "<|[END_TOOL]", "<|[END_TOOL]|", "```\n<|[")),
        *(TAM + rest for rest in ("b:»»»2", "b:»»»2«", "b:»»»2««", "b:»»»2««\n", "b:>>>2<<", "b:»»»2 <<<", "b:2««")),
        *(VCP + rest for rest in ("", "<<<[END_", "<<<[END_TOOL_REQUEST]", "<<<[END_TOOL_REQUEST]>>", "b:「始」2「末")),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_a_text_that_ends_inside_something_runs_nothing(text: str, complete: bool) -> None:  # ruling 51
    document = read_text(text, options=ReadOptions(complete=complete))
    assert document.blocks[0].calls == [] or not any(call.executable for call in document.calls)
    assert document.diagnostics


@pytest.mark.parametrize(
    "rest",
    [
        "\n\nDone",
        " ",
        "\n",
        "\nI wait for the result now.",
        "\n\nLet me wait",
        "# a note",
        "\n<b>bold</b> text",
        "\n好的，我等。",
    ],
)
def test_an_unclosed_tam_block_with_closed_values_runs_where_text_follows(rest: str) -> None:  # ruling 22
    document = read_text(TAM.rstrip("\n") + rest)
    expected = rest != "\n\nDone"
    assert [call.executable for call in document.calls] == [expected]


def test_a_marker_with_brackets_missing_is_whole_where_text_follows() -> None:  # rulings 28 and 51
    assert [call.executable for call in read_text(f"{VCP}<<<[END_TOOL_REQUEST]>>\nDone.").calls] == [True]


def test_markers_with_two_brackets_on_both_sides_are_whole_at_the_end() -> None:  # rulings 28 and 51
    text = f"{VCP}<<[END_TOOL_REQUEST]>>".replace("<<<[TOOL_REQUEST]>>>", "<<[TOOL_REQUEST]>>")
    assert [call.executable for call in read_text(text).calls] == [True]


def test_every_prefix_of_a_hermes_block_runs_the_whole_call_or_nothing() -> None:  # ruling 51
    args = {"a": "1", "b": {"c": ['<tool_call>{"name": "x", "arguments": {}}</tool_call>', "}"]}, "d": 5}
    text = hermes_block("f", args)
    for cut in range(1, len(text)):
        for complete in (True, False):
            calls = [call for call in read_hermes(text[:cut], complete=complete).calls if call.executable]
            assert [call.args(text[:cut]) for call in calls] in ([], [args]), text[:cut]
            assert not calls or text[:cut].rstrip().endswith("}"), text[:cut]


def test_no_prefix_of_call_json_runs() -> None:  # ruling 51
    text = '{"toolName": "f", "arguments": {"a": "<ACTION><T/></ACTION>", "b": [1, {"c": "}"}]}}'
    assert [call.executable for call in read_text(text).calls] == [True]
    for cut in range(1, len(text)):
        assert not any(call.executable for call in read_text(text[:cut]).calls), text[:cut]
