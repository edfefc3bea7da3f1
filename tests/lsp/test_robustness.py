"""No text and no offset makes an analysis raise, and edits and spans stay inside the text (S9, F1, F18)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.analysis.actions.fixes import fix_all, quick_fixes
from tamis.server.analysis.completion.proposals import complete
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.hover.explain import explain
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.snapshot import FolderFacts, Snapshot
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.loader import FoundFile, Scan
from tamis.server.runtime.tools.reading import build_registry
from tamis.server.runtime.tools.registry import Registry
from tests.growth import growth
from tests.lsp.markers import FOLDER, read_case

CASES = sorted(FOLDER.glob("*.txt"))


def registry() -> Registry:
    text = read_case(CASES[0]).documents["tools/echo.tool.json"]
    return build_registry(Scan((FoundFile("/w/tools/echo.tool.json", text),), ()), Settings())


REGISTRY = registry()


def ask_everything(path: str, text: str, offset: int) -> None:
    snapshot = Snapshot(path, kind_of(path, ""), text, REGISTRY, folder=FolderFacts(frozenset({"echo.py"})))
    size = len(text)
    for finding in diagnose(snapshot):
        assert 0 <= finding.span[0] <= finding.span[1] <= size
        assert finding.message
        if finding.fix is not None:
            assert all(0 <= edit.start <= edit.end <= size for edit in finding.fix.edits)
    for item in complete(snapshot, offset).items:
        start, end = item.span
        assert 0 <= start <= offset <= end <= size
        assert "\n" not in text[start:end]
    explain(snapshot, offset)
    quick_fixes(snapshot, (offset, offset))
    before = -1
    for edit in fix_all(snapshot):
        assert before <= edit.start <= edit.end
        before = edit.end


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_prefix_of_every_marker_document(path: Path, is_long: bool) -> None:
    step = 1 if is_long else 53
    for name, text in read_case(path).documents.items():
        for end in range(0, len(text) + 1, step):
            ask_everything(f"/w/{name}", text[:end], end)
            ask_everything(f"/w/{name}", text, end)


PIECES = st.sampled_from(
    [
        *(
            "<ACTION>",
            "</ACTION>",
            "<core:echo>",
            "</core:echo>",
            "<text>",
            "</text>",
            "<",
            "</",
            "<![CDATA[",
            "]]>",
            "<!--",
        ),
        *("<tool_id>", "core:echo", "<inputs>", '<input name="', '">', "</input>"),
        *(
            "<|[REQUEST_TOOL]|>",
            "<|[END_TOOL]|>",
            "command_1:",
            "command:",
            "»»»",
            "«««",
            "text_1",
            "mode:",
            ">>>",
            "<<<",
        ),
        *("<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>", "tool_name:", "「始」", "「末」", ","),
        *("\n", "\r\n", " ", "你好", "😋", "\u2028", "```\n", "`", "<think>", "</think>", "\x00"),
        *(
            '{"toolId": ',
            '"handler": {',
            '"type": ',
            '"external-script"',
            '"parameters": {',
            "[",
            "]",
            "{",
            "}",
            ":",
            '"',
            "//",
            "/*",
        ),
    ]
)


@given(
    st.lists(PIECES, max_size=30),
    st.sampled_from(["a.md", "a.tam", "a.vcp", "a.tool.json", "agent_profile.json"]),
    st.data(),
)
def test_any_text_of_any_kind(pieces: list[str], name: str, data: st.DataObject) -> None:
    text = "".join(pieces)
    ask_everything(f"/w/{name}", text, data.draw(st.integers(0, len(text))))


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("a.md", "<ACTION>"),
        ("a.md", "<core:echo><text>"),
        ("a.tam", "<|[REQUEST_TOOL]|>\ncommand:»»»"),
        ("a.vcp", "<<<[TOOL_REQUEST]>>>\ntool_name:「始」"),
        ("a.tool.json", '{"a": ['),
    ],
)
def test_completion_in_a_large_half_written_text_takes_linear_time(name: str, unit: str) -> None:
    def build(count: int) -> str:
        return "<ACTION>" * (name == "a.md") + unit * count

    def ask(text: str) -> None:
        complete(Snapshot(f"/w/{name}", kind_of(name, ""), text, REGISTRY), len(text))

    assert growth(build, ask, 500) < 8


@pytest.mark.parametrize("levels", [64, 98, 99, 100, 101, 300])
@pytest.mark.parametrize(
    ("opens", "closes"),
    [('{"properties":{"a":', "}}"), ('{"items":', "}"), ('{"allOf":[', "]}"), ('{"$defs":{"a":', "}}")],
)
def test_a_manifest_of_any_depth_is_judged(
    opens: str, closes: str, levels: int
) -> None:  # S9: it ended `check` for a whole folder
    schema = opens * levels + '{"$ref":"#"}' + closes * levels
    text = (
        '{"toolId":"e:d","displayName":"a","description":"x","version":"1.0.0",'
        '"handler":{"type":"external-script","scriptPath":"echo.py","language":"python"},'
        f'"parameters":{schema},"output":{schema}}}'
    )
    ask_everything("/w/tools/d.tool.json", text, text.index('"$ref"'))
