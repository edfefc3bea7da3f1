"""What is offered to be run, converted or copied: pure, at every byte of half-typed texts, and proven by reading again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.running.lenses import Around, lenses, run_actions
from tamis.server.analysis.running.rewriting import FORMS, PROTOCOLS, converted, copied
from tamis.server.analysis.running.runnables import MAX_TARGETS, Place, digest_of, places, selected, target_at, targets
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.lsp.client_settings import changed, read_options
from tamis.server.lsp.running.runs import MAX_RUNS, Run, Runs
from tamis.server.runtime.calls.checking import check_parsed
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.loader import FoundFile, Scan
from tamis.server.runtime.tools.reading import build_registry
from tests.growth import growth
from tests.lsp.markers import FOLDER, read_case
from tests.sample_tools import action, tam, vcp

CASES = [*sorted(FOLDER.glob("*.txt")), *sorted((FOLDER / "run").glob("*.txt"))]
MANIFEST = {
    "toolId": "t:echo",
    "displayName": "Echo",
    "description": "Gives back what it is given.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "t.py", "language": "python"},
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}},
}
REGISTRY = build_registry(Scan((FoundFile("/w/t.tool.json", json.dumps(MANIFEST)),), ()), Settings())


def snapshot(text: str, path: str = "/w/a.md") -> Snapshot:
    return Snapshot(path, kind_of(path, ""), text, REGISTRY)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_no_prefix_of_a_document_makes_offers_fail(path: Path, is_long: bool) -> None:
    step = 1 if is_long else 61
    for name, text in read_case(path).documents.items():
        for end in range(0, len(text) + 1, step):
            here = snapshot(text[:end], f"/w/{name}")
            for lens in lenses(here, Around()):
                assert 0 <= lens.span[0] <= lens.span[1] <= end
                assert 0 <= lens.target.span[0] <= lens.target.span[1] <= end
                assert lens.title or lens.resolve
            run_actions(here, (end, end), Around())


def test_a_long_log_of_calls_is_offered_in_linear_time() -> None:
    def build(size: int) -> str:
        return (vcp("t:echo", text="a") + "\n\n") * size

    assert growth(build, lambda text: lenses(snapshot(text), Around()), 100) < 8
    many = snapshot((vcp("t:echo", text="a") + "\n\n") * (MAX_TARGETS + 10))
    assert len(targets(many)) == MAX_TARGETS


def test_the_target_around_a_place_is_the_smallest_one() -> None:
    text = "x " + tam({"command": "t:echo", "text": "one"}, {"command": "t:echo", "text": "two"})
    here = snapshot(text)
    at = text.index("two")
    call = target_at(here, (at, at))
    assert call is not None
    assert (call.kind, call.step) == ("call", 2)
    assert [one.args(text) for one in selected(here.document, call).calls] == [{"text": "two"}]
    block = target_at(here, here.document.blocks[0].span)
    assert block is not None
    assert block.kind == "block"
    assert target_at(here, (0, 0)) is None


def meant(here: Snapshot) -> list[object]:
    """What the calls of a text come to: their arguments as the tool gets them."""
    tool = REGISTRY.get("t:echo")
    assert tool is not None
    calls = [call for call in here.document.calls if call.executable]
    return [check_parsed(call, here.text, tool).coerced for call in calls]


VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=40)


@given(VALUES, st.sampled_from(PROTOCOLS), st.sampled_from(FORMS))
def test_what_is_copied_is_the_same_call_whatever_the_value(value: str, source: str, form: str) -> None:
    text = {"action": action, "vcp": vcp}.get(source, lambda name, **args: tam({"command": name, **args}))(
        "t:echo", text=value
    )
    here = snapshot(f"Before.\n\n{text}\n\nBehind.\n")
    found = [one for one in targets(here) if one.kind == "block" and not one.reason]
    if len(found) != 1 or len(here.document.calls) != 1:
        return  # the value ended the block
    args = meant(here)
    made = copied(here, found[0], form)
    if made.problem:
        return
    if form == "cli":
        words = shlex.split(made.text)
        assert words[:3] == ["tamis", "call", "t:echo"]
        assert [json.loads(words[4])] == args
    elif form in PROTOCOLS:
        assert meant(snapshot(made.text)) == args
    else:
        assert msgspec.json.decode(made.text)


@given(VALUES, st.sampled_from(PROTOCOLS))
def test_a_conversion_in_place_leaves_everything_else_and_means_the_same(value: str, to: str) -> None:
    first = vcp("t:echo", text="first")
    text = f"你好 🚄\n\n{first}\n\n{vcp('t:echo', text=value)}\n\nEnd.\n"
    here = snapshot(text)
    blocks = [one for one in targets(here) if one.kind == "block" and not one.reason]
    if len(blocks) != 2:
        return
    made = converted(here, blocks[1], to)
    if made.edit is None:
        assert made.problem
        return
    after = text[: made.edit.start] + made.edit.new_text + text[made.edit.end :]
    assert after.startswith(f"你好 🚄\n\n{first}\n\n")
    assert after.endswith("\n\nEnd.\n")
    assert meant(snapshot(after)) == meant(here)


def test_a_block_becomes_a_second_action_block_which_is_a_call_of_its_own() -> None:
    """Editors, defect 7: in an editor each block is its own call (ruling 14 is about a model's turn)."""
    text = action("t:echo", text="a") + "\n\n" + vcp("t:echo", text="b")
    here = snapshot(text)
    made = converted(here, targets(here)[1], "action")
    assert made.edit is not None
    after = snapshot(text[: made.edit.start] + made.edit.new_text + text[made.edit.end :])
    assert [(one.kind, one.reason) for one in targets(after)] == [("block", ""), ("block", "")]
    assert meant(after) == meant(here)


def test_a_digest_is_short_and_names_the_text() -> None:
    assert digest_of("a") != digest_of("b")
    assert len(digest_of("你好\ud800")) == 16


# Where a script failed


def test_the_innermost_line_of_the_tools_own_files_comes_first() -> None:
    python = [
        "stdout: ignored",
        'stderr:   File "/tool/tool.py", line 9, in <module>',
        'stderr:   File "/usr/lib/python3.11/json/__init__.py", line 299, in load',
        'stderr:   File "/tool/lib/part.py", line 3, in inner',
    ]
    assert places(python) == [Place("lib/part.py", 2), Place("tool.py", 8)]
    node = [
        "stderr: /tool/tool.js:3",
        "stderr:     at f (/tool/tool.js:3:21)",
        "stderr:     at Object.<anonymous> (/tool/main.mjs:20:1)",
        "stderr:     at file:///tool/other.mjs:7:1",
        "stderr:     at Module._compile (node:internal/modules/cjs/loader:1521:14)",
    ]
    assert places(node) == [Place("tool.js", 2), Place("main.mjs", 19), Place("other.mjs", 6)]


def test_a_script_cannot_point_outside_its_folder() -> None:
    lines = ['File "/tool/../etc/passwd", line 1', 'File "/etc/passwd", line 1', "    at x (/tool/../../a.js:1:1)"]
    assert places([f"stderr: {line}" for line in lines]) == []
    assert places([f"stderr: {'at ' * 5_000}/tool/x.js:1:1"]) == []


# Settings, keeping


def test_the_editor_settings_are_read_nested_and_dotted_and_only_close() -> None:
    own = read_options({"settings": {"execution": {"timeoutMs": 5}, "codeLens.enable": False, "policy": {}}})
    assert (own.timeout_ms, own.switch("codeLens.enable"), own.trusted) == (5, False, True)
    assert "policy" not in own.values
    assert [read_options({"trusted": said}).trusted for said in (False, 0, "no", None, True)] == [
        False,
        False,
        False,
        True,
        True,
    ]
    strict = changed(own, {"execution.requireConfirmation": "writes", "trusted": False})
    assert strict.trusted is False
    assert [strict.confirmation(policy) for policy in ("never", "writes", "always")] == ["writes", "writes", "always"]
    assert (
        changed(own, {"execution.requireConfirmation": 7, "execution.timeoutMs": True}).confirmation("writes")
        == "writes"
    )


def kept(number: int, digest: str = "d") -> Run:
    return Run(
        run=number,
        uri="file:///a.md",
        kind="run",
        target="block",
        digest=digest,
        tool_ids=("t:echo",),
        status="success",
        exit_code=0,
        duration_ms=1.0,
        when="",
        outcome="",
        observation="",
        results=[],
    )


def test_results_are_bounded_and_belong_to_one_of_equal_texts() -> None:
    runs = Runs()
    for number in range(1, MAX_RUNS + 10):
        runs.add(kept(number), 0)
    assert runs.get(1) is None
    assert runs.get(MAX_RUNS + 9) is not None
    runs = Runs()
    text = "aa"
    runs.add(kept(1, digest_of("a")), 1)
    assert {span: run.run for span, run in runs.results("file:///a.md", text, [(0, 1), (1, 2)]).items()} == {(1, 2): 1}
    assert runs.results("file:///a.md", "ab", [(0, 1), (1, 2)]) == {}
    assert not runs.has("file:///a.md")
