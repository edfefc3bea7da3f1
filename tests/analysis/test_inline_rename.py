"""Renames of variables, environments and names of blocks: there and back gives the same bytes, and nothing that a model wrote is touched (issue 17)."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.navigation.definition import definition
from tamis.server.analysis.navigation.proof import apply
from tamis.server.analysis.navigation.references import find_references, highlights
from tamis.server.analysis.navigation.rename import prepare, remembered, rename
from tamis.server.analysis.navigation.reverse import Memory
from tamis.server.analysis.navigation.spelled import RenameEdit, RenameRefusedError, in_files
from tamis.server.analysis.running.mentions import inline_at
from tamis.server.analysis.running.variables import names_in, reference_findings, variables_in
from tamis.server.analysis.snapshot import Settings, Snapshot
from tamis.server.runtime.settings.config import Settings as RuntimeSettings
from tests.analysis.few_examples import FEW

TOML = "/w/tamis.toml"
HEADS = ("city", "api", "a-b", "town_2")
PATHS = (*HEADS, "api.base", "api.deep.er", "names[0]", "names[0].city")
FIXED = """
environment = "dev"

[environments.shared]
city = "Oslo"
names = [{ city = "x" }]
api = { base = "http://localhost", deep = { er = 1 } }

[environments.dev]
"city" = "Bergen"
api.base = 'b'
a-b = 1

[environments."live"]
town_2 = 2.5
[environments."live".api]
base = "https://live"
[environments.live.api.deep]
'er' = 2
"""


class Folder:
    """Texts with the settings and the index that belong to them."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        config = tomllib.loads(files[TOML])
        self.config = RuntimeSettings(
            environment=config.get("environment", "default"), environments=config.get("environments", {})
        )
        self.index = WorkspaceIndex()
        for path, text in files.items():
            self.index.update(path, text)

    def snapshot(self, path: str) -> Snapshot:
        return Snapshot(
            path,
            kind_of(path, ""),
            self.files[path],
            None,
            settings=Settings(config=self.config),
            index=self.index,
            roots=("/w",),
        )

    def edited(self, edits: list[RenameEdit]) -> Folder:
        by_path = in_files(edits)
        return Folder({p: apply(t, [one.edit for one in by_path.get(p, ())]) for p, t in self.files.items()})


def action(value: str) -> str:
    return f"<ACTION><t:a><text>{value}</text></t:a></ACTION>"


def tam(value: str) -> str:
    return f"<|[REQUEST_TOOL]|>\ncommand: »»»t:a«««\ntext: »»»{value}«««\n<|[END_TOOL]|>"


def vcp(value: str) -> str:
    return f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」t:a「末」,\ntext:「始」{value}「末」\n<<<[END_TOOL_REQUEST]>>>"


BLOCKS = st.sampled_from((action, tam, vcp))
REFERENCES = st.sampled_from((*PATHS, "first.output", "first.output.city", "second.status", "secret:KEY"))
WRITTEN = REFERENCES.flatmap(
    lambda name: st.sampled_from(
        (f"{{{{{name}}}}}", f"{{{{ {name} }}}}", f"\\{{{{{name}}}}}", f"值😋{{{{{name}}}}} city")
    )
)


@st.composite
def folders(draw: st.DrawFn) -> dict[str, str]:
    files = {TOML: FIXED.replace("\n", draw(st.sampled_from(("\n", "\r\n"))))}
    for number in range(draw(st.integers(1, 2))):
        names = draw(st.sampled_from(((), ("first",), ("first", "second"), ("city",))))
        parts = [f"<!-- tamis-name: {name} -->\n{draw(BLOCKS)(draw(WRITTEN))}" for name in names]
        for _ in range(draw(st.integers(0, 3))):
            parts.append(draw(BLOCKS)("".join(draw(st.lists(WRITTEN, max_size=3)))))
            if draw(st.booleans()):
                parts.append(
                    f"```json expect\n{json.dumps({'a': draw(WRITTEN)}, ensure_ascii=draw(st.booleans()))}\n```"
                )
        if draw(st.booleans()):
            parts.append(f"<think>{action(draw(WRITTEN))}</think> and {{{{city}}}} in words")
        files[f"/w/{number}.md"] = "\n\n".join(parts)
    files["/w/chat.md"] = f"<|im_start|>assistant\n{action('{{city}} {{api.base}}')}<|im_end|>\n"
    example = {"description": "{{city}}", "input": {"text": draw(WRITTEN)}, "expectedOutput": [draw(WRITTEN)]}
    files["/w/t.tool.json"] = json.dumps({"toolId": "t:a", "examples": [example]}, ensure_ascii=draw(st.booleans()))
    return files


NEW = st.sampled_from(
    ("neu", "neu-2", "Neu", "base", "er", "first", "city", "live", "x-1", "_", "näme", "9", "", "a b", "}}", "a.b")
)


@FEW
@given(folders(), st.data(), NEW)
def test_a_rename_and_its_reverse_give_the_same_bytes(files: dict[str, str], data: st.DataObject, new: str) -> None:
    folder = Folder(files)
    path = data.draw(st.sampled_from(sorted(files)))
    snapshot = folder.snapshot(path)
    words = [match.start() for match in re.finditer(r"(?<![\w-])[a-z][\w-]+", files[path])]
    places = [at for at in words if inline_at(snapshot, at) is not None]
    assume(places)
    offset = data.draw(st.sampled_from(places))
    try:
        what = prepare(folder.snapshot(path), offset)
        assume(what.subject.names)
        edits = rename(folder.snapshot(path), offset, new)
        done = remembered(folder.snapshot(path), offset, new, edits)
    except RenameRefusedError:
        return
    assume(done is not None)
    assert done is not None
    after = folder.edited(edits)
    # What a model wrote, what is set aside and prose stay.
    assert after.files["/w/chat.md"] == files["/w/chat.md"]
    assert [t.count("in words") for t in after.files.values()] == [t.count("in words") for t in files.values()]
    for name in ("/w/0.md", "/w/1.md"):
        assert after.files.get(name, "").partition("<think>")[2] == files.get(name, "").partition("<think>")[2]
    # What was a finding is one, and nothing else is; of the transcript, which stays, variables are gone.
    for name in files:
        if name.endswith(".md") and name != "/w/chat.md":
            codes = [
                [one.code for one in reference_findings(snapshot, variables_in(snapshot))]
                for snapshot in (folder.snapshot(name), after.snapshot(name))
            ]
            assert codes[0] == codes[1], (name, codes)
    memory = Memory()
    memory.keep(done)
    back = in_files(edits)[path][0].edit.start if path in in_files(edits) else -1
    assert back >= 0
    start = next(spot for spot in range(back, back + 3) if _names(after, path, spot, new))
    try:
        again = rename(after.snapshot(path), start, what.name, memory=memory)
    except RenameRefusedError:
        # Of two blocks with one name the second took another: the way back is as closed as it was to begin with.
        named = [name.name for name in names_in(folder.snapshot(path))] if path.endswith(".md") else []
        assert named.count(what.name) > 1
        return
    assert after.edited(again).files == files


def _names(folder: Folder, path: str, offset: int, name: str) -> bool:
    try:
        return prepare(folder.snapshot(path), offset).name == name
    except RenameRefusedError:
        return False


@given(folders(), st.data())
def test_references_are_the_same_from_each_of_them(files: dict[str, str], data: st.DataObject) -> None:
    folder = Folder(files)
    path = data.draw(st.sampled_from(sorted(files)))
    offset = data.draw(st.integers(0, len(files[path])))
    snapshot = folder.snapshot(path)
    sites = find_references(snapshot, offset)
    for site in sites:
        assert find_references(folder.snapshot(site.path), site.span[0] + 1) == sites
    here = [site.span for site in sites if site.path == path]
    assert [one.span for one in highlights(snapshot, offset) if sites and one.span in here] == here


TEXT = (
    f"<!-- tamis-name: first -->\n{action('{{city}} {{api.base}}')}\n\n```json expect\n"
    '{"a": "{{city}} {{first.output}}"}\n```\n'
    f"{vcp('{{first.output.x}} {{secret:KEY}}')}\n"
)


@pytest.mark.parametrize("path", ["/w/a.md", "/w/t.tool.json", TOML])
def test_every_verb_answers_in_text_that_ends_anywhere(path: str) -> None:
    manifest = json.dumps(
        {"toolId": "t:a", "examples": [{"input": {"a": "{{city}}"}, "expectedOutput": "{{api.base}}"}]}
    )
    whole = {"/w/a.md": TEXT, "/w/t.tool.json": manifest, TOML: FIXED}
    for end in range(0, len(whole[path]) + 1, 3):
        folder = Folder(whole)
        folder.files = {**whole, path: whole[path][:end]}
        folder.index.update(path, whole[path][:end])
        snapshot = folder.snapshot(path)
        for offset in {0, end // 2, max(0, end - 1), end}:
            for verb in (definition, find_references, highlights):
                verb(snapshot, offset)
            with contextlib.suppress(RenameRefusedError):
                what = prepare(snapshot, offset)
                if what.subject.names:
                    assert snapshot.text[slice(*what.span)] == what.name
                rename(snapshot, offset, "brand_new")


def test_each_folder_has_variables_of_its_own() -> None:
    files = {TOML: FIXED, "/w/a.md": action("{{city}}"), "/w/in/tamis.toml": FIXED, "/w/in/b.md": action("{{city}}")}
    index = WorkspaceIndex()
    for path, text in files.items():
        index.update(path, text)
    settings = Settings(config=Folder({TOML: FIXED}).config)
    for path, own in (("/w/a.md", {TOML, "/w/a.md"}), ("/w/in/b.md", {"/w/in/tamis.toml", "/w/in/b.md"})):
        snapshot = Snapshot(path, "text", files[path], None, settings=settings, index=index, roots=("/w", "/w/in"))
        offset = files[path].index("city")
        assert {site.path for site in find_references(snapshot, offset)} == own
        assert {edit.path for edit in rename(snapshot, offset, "neu")} == own
