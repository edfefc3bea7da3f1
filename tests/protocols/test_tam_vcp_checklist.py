"""What is left of the seeds' lists for TAM and VCP: the form itself, layers, comments, and fields that reach a call untouched."""

from __future__ import annotations

import ast

import pytest

from tamis.protocols.catalogue import severity
from tamis.protocols.model import ReadOptions, ToolHint
from tests.conftest import ROOT
from tests.protocols.tam_vcp_blocks import call, codes, read, repaired, runs, tam, vcp


# T04, T05
@pytest.mark.parametrize(
    "value", ["v", "a: b", "a\nb", "»", "{'k': \"v\"}", "\\n", "&amp;", "@{x}", "  inner  blanks  x"]
)
def test_a_pair_is_key_colon_delimited_value(value: str) -> None:
    found = call(tam("command:»»»T.t«««", f"key:»»»x{value}y«««"))
    assert found.params[0].name == "key"
    assert runs(tam("command:»»»T.t«««", f"key:»»»x{value}y«««")) == [("T.t", {"key": f"x{value}y"})]


# T34, V26: reading knows nothing of running
@pytest.mark.parametrize("room", ["tam", "vcp", "pairs"])
def test_the_readers_import_nothing_that_could_run_a_tool(room: str) -> None:
    for path in sorted((ROOT / "protocols" / room).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                assert not name.startswith(
                    ("subprocess", "os", "socket", "asyncio", "tamis.server", "tamis.sandbox")
                ), path


# T35: what is not the best form is said, and one edit away from it
def test_a_block_that_is_not_written_in_the_best_form_is_brought_to_it() -> None:
    text = tam("// plan", "Command_1：>>>File.Write<<<", "- filePath 1:»»/a««,", "on_error_1=»»»stop«««")
    best = tam("# plan", "command_1:»»»File.Write«««", "file_path_1:»»»/a«««", "on_error_1:»»»stop«««")
    again = repaired(repaired(text))
    assert [line.strip() for line in again.splitlines()] == best.splitlines()
    assert codes(again) == []


def test_ruling_25_comments_between_fields_come_back_with_their_ranges() -> None:
    text = tam("# one", "command:»»»T.t«««", "  # two: »»»x«««", "x:»»»# three«««", "#")
    document = read(text)
    assert [comment.text for comment in document.comments] == ["# one", "# two: »»»x«««", "#"]
    assert all(text[slice(*comment.span)] == comment.text for comment in document.comments)
    assert runs(text) == [("T.t", {"x": "# three"})]
    assert not any(severity(diag) in ("warning", "error") for diag in document.diagnostics)


# T17, T22, T23, T24, T25, T30: every modifier in one block, in several steps
def test_modifiers_stand_apart_from_the_arguments_in_every_step() -> None:
    text = tam(
        "request_id:»»» req-1 «««",
        "comment:»»»why«««",
        "common_dir:»»»@{root}/out«««",
        "command_1:»»»A.a«««",
        "type_hint_data_1:»»»base64«««",
        "data_1:»»»aGk=«««",
        "uri_image_1:»»»fam://x/i.png«««",
        "on_error_1:»»»continue«««",
        "retry_1:»»»2«««",
        "command_2:»»»B.b«««",
        "dir_2:»»»@{dir}«««",
        "comment_2:»»»a parameter«««",
    )
    one, two = read(text).calls
    assert (one.args(text), one.uris, one.type_hints) == (
        {"data": "aGk=", "dir": "@{root}/out"},
        {"image": "fam://x/i.png"},
        {"data": "base64"},
    )
    assert (one.on_error, one.retry, one.request_id) == ("continue", 2, "req-1")
    assert two.args(text) == {"dir": "@{dir}", "comment": "a parameter"}
    assert (two.on_error, two.retry, two.request_id) == (None, None, "req-1")


@pytest.mark.parametrize("known", ["Tool_run", "Tool"])
def test_ruling_30_the_tool_that_a_vcp_name_stands_for_guides_the_reading(known: str) -> None:
    text = vcp("tool_name:「始」Tool「末」,", "command:「始」run「末」,", "ink:「始」blue「末」")
    options = ReadOptions(tools={known: ToolHint(known, {"properties": {"ink": {}}})})
    assert call(text, options=options).args(text) == {"command": "run", "ink": "blue"}
    assert call(text).meta == {"ink": "blue"}


# V20, V36, V41
def test_many_requests_keep_their_order_and_no_request_is_no_error() -> None:
    text = "\n".join(vcp(f"tool_name:「始」T{i}「末」", f"x:「始」{i}「末」") for i in range(5))
    assert runs(text) == [(f"T{i}", {"x": str(i)}) for i in range(5)]
    assert (read("Nothing here.").calls, codes("Nothing here.")) == ([], [])


# V38, V39, V40
def test_a_missing_name_drops_the_block_a_later_value_wins_and_an_empty_one_is_no_missing_one() -> None:
    assert (runs(vcp("x:「始」1「末」")), codes(vcp("x:「始」1「末」"))) == ([], ["VC302"])
    text = vcp("tool_name:「始」T「末」", "x:「始」1「末」", "x:「始」「末」")
    assert runs(text) == [("T", {"x": ""})]
    assert codes(text) == ["TC060"]
