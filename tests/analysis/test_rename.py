"""Renames over random workspaces: there and back gives the same bytes, and references are exactly the places that were written.

Every verb that moves is also asked at every place of texts that end anywhere: none may raise (issue 5, half-typed at every byte).
"""

from __future__ import annotations

import contextlib
import json
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.navigation.definition import declaration, definition, implementation
from tamis.server.analysis.navigation.links import linked_names, links_of
from tamis.server.analysis.navigation.proof import apply
from tamis.server.analysis.navigation.references import callers_at, find_references, highlights
from tamis.server.analysis.navigation.rename import prepare, remembered, rename
from tamis.server.analysis.navigation.reverse import Memory
from tamis.server.analysis.navigation.spelled import RenameEdit, RenameRefusedError, in_files
from tamis.server.analysis.navigation.symbols import outline
from tamis.server.analysis.snapshot import Settings, Snapshot
from tamis.server.runtime.settings.config import Settings as RuntimeSettings
from tamis.server.runtime.settings.protocols import load_also
from tamis.server.runtime.tools.loader import FoundFile, Scan
from tamis.server.runtime.tools.reading import build_registry
from tests.analysis.few_examples import FEW

ALSO = load_also(("hermes",))[0]
PARAMETERS = ("text", "file_path", "mode")
TOOLS = ("core:echo", "vendor:工具", "plain_tool", "core:echo-two")


class World(NamedTuple):
    """Texts by path, and every place of each id that was written: path to the number of its places."""

    files: dict[str, str]
    uses: dict[str, dict[str, int]]


def manifest(tool_id: str, others: tuple[str, ...]) -> str:
    properties = {name: {"type": "string", "description": "A value of the call."} for name in PARAMETERS}
    return json.dumps(
        {
            "toolId": tool_id,
            "displayName": tool_id,
            "description": "A tool that does nothing at all, for the sake of a test.",
            "version": "1.0.0",
            "handler": {"type": "external-script", "scriptPath": "x.py", "language": "python"},
            "parameters": {"type": "object", "properties": properties, "required": ["text"]},
            "examples": [{"description": "One.", "input": {"text": "hi", "mode": "loud"}}],
            "dependencies": dict.fromkeys(others, "*"),
        },
        ensure_ascii=False,
        indent=2,
    )


def block(form: str, tool: str, params: list[str], value: str) -> str:
    if form == "tag":
        inner = "".join(f"<{name}>{value}</{name}>" for name in params)
        return f"<ACTION>\n<{tool}>{inner}</{tool}>\n</ACTION>"
    if form == "inputs":
        inner = "".join(f'<input name="{name}">{value}</input>' for name in params)
        return f"<ACTION><tool_id>{tool}</tool_id><inputs>{inner}</inputs></ACTION>"
    if form == "tam":
        lines = [f"{name}_1: »»»{value}«««" for name in params]
        return "\n".join(["<|[REQUEST_TOOL]|>", f"command_1: »»»{tool}«««", *lines, "<|[END_TOOL]|>"])
    if form == "vcp":
        lines = [f"{name}:「始」{value}「末」," for name in params]
        return "\n".join(
            ["<<<[TOOL_REQUEST]>>>", f"tool_name:「始」{tool}@1「末」,", *lines, "<<<[END_TOOL_REQUEST]>>>"]
        )
    call = {"name": tool, "arguments": dict.fromkeys(params, value)}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


FORMS = st.sampled_from(("tag", "inputs", "tam", "vcp", "hermes"))
PROSE = st.sampled_from(("", "Some words.\n", "你好 😋 𝒳\r\n", "core:echo in prose\n", "- a list\n"))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    tools = draw(st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3, unique=True))
    files: dict[str, str] = {}
    uses: dict[str, dict[str, int]] = {tool: {} for tool in tools}

    def used(tool: str, path: str) -> None:
        uses[tool][path] = uses[tool].get(path, 0) + 1

    for i, tool in enumerate(tools):
        others = tuple(draw(st.lists(st.sampled_from(tools), max_size=2, unique=True)))
        path = f"/w/{i}.tool.json"
        files[path] = manifest(tool, others)
        for other in (tool, *others):
            used(other, path)
    listed = draw(st.lists(st.sampled_from(tools), max_size=3, unique=True))
    files["/w/agent_profile.json"] = json.dumps({"tool_ids_inventory": listed}, ensure_ascii=False)
    for tool in listed:
        used(tool, "/w/agent_profile.json")
    for i in range(draw(st.integers(0, 3))):
        path = f"/w/{i}.md"
        text = draw(PROSE)
        for _ in range(draw(st.integers(1, 4))):
            tool = draw(st.sampled_from(tools))
            params = draw(st.lists(st.sampled_from(PARAMETERS), max_size=3, unique=True))
            form = draw(FORMS)
            if form == "tag" and tool[0] not in "cvp":
                form = "inputs"
            text += block(form, tool, params, draw(st.sampled_from(("a", "值😋", "1")))) + "\n\n" + draw(PROSE)
            used(tool, path)
        files[path] = text
    return World(files, uses)


class Workspace:
    """Texts with their registry and index."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        found = tuple(FoundFile(path, text) for path, text in files.items() if path.endswith(".tool.json"))
        self.registry = build_registry(Scan(found, ()), RuntimeSettings())
        self.index = WorkspaceIndex(ALSO)
        for path, text in files.items():
            self.index.update(path, text)

    def snapshot(self, path: str) -> Snapshot:
        return Snapshot(
            path,
            kind_of(path, ""),
            self.files[path],
            self.registry,
            settings=Settings(also=ALSO, allow_multiple_blocks=True),
            index=self.index,
        )

    def renamed(self, path: str, offset: int, new: str) -> Workspace:
        return self.with_edits(rename(self.snapshot(path), offset, new))

    def with_edits(self, made: list[RenameEdit]) -> Workspace:
        edits = in_files(made)
        return Workspace(
            {name: apply(text, [one.edit for one in edits.get(name, ())]) for name, text in self.files.items()}
        )


def declared_at(files: dict[str, str], tool: str) -> tuple[str, int]:
    path = next(path for path, text in files.items() if f'"toolId": "{tool}"' in text)
    return path, files[path].index(f'"toolId": "{tool}"') + len('"toolId": "') + 1


@FEW
@given(worlds(), st.data())
def test_references_of_a_declaration_are_exactly_the_places_that_name_it(world: World, data: st.DataObject) -> None:
    workspace = Workspace(world.files)
    tool = data.draw(st.sampled_from(sorted(world.uses)))
    path, offset = declared_at(world.files, tool)
    sites = find_references(workspace.snapshot(path), offset)
    counted: dict[str, int] = {}
    for site in sites:
        assert world.files[site.path][slice(*site.span)] == tool
        counted[site.path] = counted.get(site.path, 0) + 1
    assert counted == world.uses[tool]
    # The same from every one of those places.
    for site in sites:
        assert find_references(workspace.snapshot(site.path), site.span[0] + 1) == sites


@pytest.mark.slow
@FEW
@given(worlds(), st.data())
def test_renaming_a_tool_there_and_back_gives_the_same_bytes(world: World, data: st.DataObject) -> None:
    before = Workspace(world.files)
    tool = data.draw(st.sampled_from(sorted(world.uses)))
    new = data.draw(st.sampled_from(("core:new", "neu", "vendor:新😋", "a:b-c_d.e")))
    path, offset = declared_at(world.files, tool)
    after = before.renamed(path, offset, new)
    assert not after.index.occurrences(tool)
    assert {p: len(t) for p, t in after.files.items()} == {
        p: len(t)
        + sum((len(new) - len(tool)) * len(one.spans) for one in before.index.occurrences(tool) if one.path == p)
        for p, t in before.files.items()
    }
    assert after.renamed(path, offset, tool).files == world.files


@FEW
@given(worlds(), st.data())
def test_renaming_a_parameter_there_and_back_gives_the_same_bytes(world: World, data: st.DataObject) -> None:
    before = Workspace(world.files)
    path = data.draw(st.sampled_from(sorted(path for path in world.files if path.endswith(".tool.json"))))
    name = data.draw(st.sampled_from(PARAMETERS))
    new = data.draw(st.sampled_from(("words", "source_file", "文本")))
    offset = world.files[path].index(f'"{name}": {{') + 1
    after = before.renamed(path, offset, new)
    assert f'"{name}": {{' not in after.files[path]
    assert after.renamed(path, offset, name).files == world.files


# Several spellings of one name


SPELLED = {
    "core:echo": ("core:echo", "core_echo", "core:echo@^1", "core_echo@1", "echo_it"),
    "plain_tool": ("plain_tool", "plain_tool@1"),
    "a.b:c": ("a.b:c", "a_b_c", "a.b_c", "say"),
}
NEW_IDS = ("neu", "plain", "core:say", "vendor:new", "a.b:d", "x.y", "say_it", "core:echo-two")
OTHERS = ("neu", "core_say", "x_y", "core:say", "unknown")
"""Names in calls that no tool has, until one is renamed to them."""


@st.composite
def spelled_worlds(draw: st.DrawFn) -> tuple[dict[str, str], str]:
    tool = draw(st.sampled_from(sorted(SPELLED)))
    own = json.loads(manifest(tool, ()))
    own["aliases"] = draw(st.lists(st.sampled_from(("echo_it", "say", "core_say", "neu_x")), max_size=2, unique=True))
    files = {"/w/0.tool.json": json.dumps(own, ensure_ascii=False, indent=2)}
    names = (*SPELLED[tool], *own["aliases"])
    for i in range(draw(st.integers(1, 3))):
        path = f"/w/{i}.{draw(st.sampled_from(('md', 'tam', 'json')))}"
        named = draw(st.lists(st.sampled_from((*names, *draw(st.sampled_from(((), OTHERS))))), min_size=1, max_size=4))
        if path.endswith(".json"):
            calls = [{"name": name, "arguments": {"text": "a"}} for name in named]
            files[path[:-5] + ".md"] = json.dumps(calls, ensure_ascii=draw(st.booleans()))
            continue
        forms = st.sampled_from(("tam",) if path.endswith(".tam") else ("inputs", "tam", "hermes"))
        keys = st.lists(st.sampled_from(("text", "filePath", "File Path", "file_path")), max_size=1)
        files[path] = "\n\n".join(block(draw(forms), name, draw(keys), "a") for name in named)
    listed = draw(st.lists(st.sampled_from(names[:3]), max_size=3, unique=True))
    profile = json.dumps({"tool_ids_inventory": listed})
    files["/w/agent_profile.json"] = profile.replace("core:", draw(st.sampled_from(("core:", "c\\u006fre:"))))
    return files, tool


def there_and_back(
    files: dict[str, str], at: tuple[str, int], old: str, new: str, back_at: tuple[str, str]
) -> tuple[dict[str, str], dict[str, str], dict[str, str], dict[str, str]]:
    """The texts after a rename, and after the one backwards, without and with the memory of it; and what was said to be lost, by file."""
    before = Workspace(files)
    path, offset = at
    edits = rename(before.snapshot(path), offset, new)
    done = remembered(before.snapshot(path), offset, new, edits)
    assert done is not None
    memory = Memory()
    memory.keep(done)
    after = before.with_edits(edits)
    lost = {one.path: f"{one.lost} " for one in edits if one.lost}
    path, found = back_at
    offset = after.files[path].index(found) + len(found) - 2
    forgot = after.with_edits(rename(after.snapshot(path), offset, old)).files
    knew = after.with_edits(rename(after.snapshot(path), offset, old, memory=memory)).files
    return after.files, forgot, knew, lost


@FEW
@given(spelled_worlds(), st.sampled_from(NEW_IDS))
def test_a_rename_is_undone_by_its_reverse_or_says_where_it_is_not(
    given_: tuple[dict[str, str], str], new: str
) -> None:
    files, tool = given_
    try:
        _, forgot, knew, lost = there_and_back(
            files, declared_at(files, tool), tool, new, ("/w/0.tool.json", f'"toolId": "{new}"')
        )
    except RenameRefusedError:
        return
    assert knew == files
    said = "".join(lost.values())
    for path, text in files.items():
        if forgot[path] == text:
            assert path not in lost or "elsewhere" in lost[path], path
        else:
            assert path in lost or f"{path}:" in said, path


@FEW
@given(spelled_worlds(), st.sampled_from(("words", "sourceFile", "文本")))
def test_a_parameters_rename_is_undone_by_its_reverse_or_says_where_it_is_not(
    given_: tuple[dict[str, str], str], new: str
) -> None:
    files, _ = given_
    at = "/w/0.tool.json", files["/w/0.tool.json"].index('"file_path": {') + 2
    try:
        _, forgot, knew, lost = there_and_back(files, at, "file_path", new, ("/w/0.tool.json", f'"{new}": {{'))
    except RenameRefusedError:
        return
    assert knew == files
    for path, text in files.items():
        assert (forgot[path] == text) == (path not in lost), path


TEXTS = {
    "/w/a.md": "😋 "
    + block("tag", "core:echo", ["text", "mode"], "值")
    + "\n"
    + block("vcp", "core:echo", ["text"], "x"),
    "/w/b.tam": block("tam", "core:echo", ["text", "file_path"], "a") + "\ncommon_x",
    "/w/c.md": block("inputs", "core:echo", ["text"], "<b>") + block("hermes", "core:echo", ["mode"], "y"),
    "/w/x.tool.json": manifest("core:half", ("core:echo",)).replace('"type": "string"', '"$ref": "#/$defs/a"', 1),
    "/w/agent_profile.json": '{"tool_ids_inventory": ["core:echo", "x"], "toolCallConfig": {"toolToggles": {"core:echo": true}}}',
}


@pytest.mark.parametrize("path", TEXTS)
def test_every_verb_answers_in_text_that_ends_anywhere(path: str, is_long: bool) -> None:
    whole = TEXTS[path]
    for end in range(0, len(whole) + 1, 1 if is_long else 7):
        files = {"/w/0.tool.json": manifest("core:echo", ()), path: whole[:end]}
        workspace = Workspace(files)
        snapshot = workspace.snapshot(path)
        outline(snapshot)
        links_of(snapshot)
        for offset in {0, end // 2, max(0, end - 1), end}:
            for verb in (
                definition,
                declaration,
                implementation,
                find_references,
                highlights,
                linked_names,
                callers_at,
            ):
                verb(snapshot, offset)
            with contextlib.suppress(RenameRefusedError):
                what = prepare(snapshot, offset)
                assert files[path][slice(*what.span)] in (what.name, f"{what.name}_1")
                rename(snapshot, offset, "brand_new")


@FEW
@given(st.text(st.sampled_from('<>/ACTION"{}[]:,«»「」始末 \n\rabc:core_1😋'), max_size=80), st.integers(0, 80))
def test_every_verb_answers_in_any_text(text: str, offset: int) -> None:
    for path in ("/w/a.md", "/w/x.tool.json", "/w/agent_profile.json", "/w/b.tam", "/w/c.vcp", "/w/f.json"):
        workspace = Workspace({"/w/0.tool.json": manifest("core:echo", ()), path: text})
        snapshot = workspace.snapshot(path)
        for verb in (definition, declaration, implementation, find_references, highlights, linked_names, callers_at):
            verb(snapshot, min(offset, len(text)))
        outline(snapshot)
        links_of(snapshot)
