"""The workspace index: what counts as naming a tool, whose name it is, and that it keeps up with edits (issue 5, D52, V45)."""

from __future__ import annotations

import json
import threading

from hypothesis import given
from hypothesis import strategies as st

from tamis.server.analysis.index import WorkspaceIndex


def manifest(tool_id: str, **fields: object) -> str:
    return json.dumps({"toolId": tool_id, "displayName": tool_id, "version": "1.0.0", **fields})


def action(tool_id: str) -> str:
    return f"<ACTION><{tool_id}><a>1</a></{tool_id}></ACTION>"


def vcp(name: str) -> str:
    return f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」{name}「末」\n<<<[END_TOOL_REQUEST]>>>\n"


def found(index: WorkspaceIndex, tool_id: str) -> list[tuple[str, str, str]]:
    """Occurrences as (file, role, the text of the span)."""
    return [(one.path, one.role, index.text(one.path)[slice(*one.span)]) for one in index.occurrences(tool_id)]


def test_every_role_is_found() -> None:
    index = WorkspaceIndex()
    index.update("/a.tool.json", manifest("x:a", aliases=["al"], protocolConfig={"vcpCommand": "Cmd"}))
    index.update("/b.tool.json", manifest("x:b", dependencies={"x:a": "*"}))
    index.update("/agent_profile.json", '{"tool_ids_inventory": ["x:a", "x:b"]}')
    index.update("/c.md", action("x:a"))
    assert found(index, "x:a") == [
        ("/a.tool.json", "declaration", "x:a"),
        ("/a.tool.json", "alias", "al"),
        ("/a.tool.json", "alias", "Cmd"),
        ("/agent_profile.json", "profile", "x:a"),
        ("/b.tool.json", "dependency", "x:a"),
        ("/c.md", "call", "x:a"),
    ]


def test_a_call_has_both_tags() -> None:
    index = WorkspaceIndex()
    index.update("/c.md", action("x:a"))
    (call,) = index.occurrences("x:a")
    assert [index.text("/c.md")[slice(*span)] for span in call.spans] == ["x:a", "x:a"]


def test_an_edit_replaces_what_was_known() -> None:
    index = WorkspaceIndex()
    index.update("/c.md", action("x:a"))
    assert len(index.occurrences("x:a")) == 1
    index.update("/c.md", action("x:b"))
    assert (index.occurrences("x:a"), len(index.occurrences("x:b"))) == ([], 1)
    index.update("/c.md", "nothing here")
    assert index.occurrences("x:b") == []
    assert index.files() == []


def test_a_removed_file_or_folder_is_forgotten() -> None:
    index = WorkspaceIndex()
    for path in ("/t/a.md", "/t/b/c.md", "/tt.md"):
        index.update(path, action("x:a"))
    index.occurrences("x:a")
    index.remove_folder("/t")
    assert [one.path for one in index.occurrences("x:a")] == ["/tt.md"]
    index.remove("/tt.md")
    index.remove("/never.md")
    assert index.occurrences("x:a") == []


def test_a_pinned_call_covers_the_id_alone() -> None:
    index = WorkspaceIndex()
    index.update("/a.tool.json", manifest("x:a"))
    index.update("/c.md", "<ACTION><tool_id>x:a@^1.2</tool_id><inputs></inputs></ACTION>")
    assert found(index, "x:a")[1] == ("/c.md", "call", "x:a")


def test_a_vcp_method_name_means_its_tool_and_the_longest_id_wins() -> None:
    # V45: both `x_a` with method `b_c` and `x_a_b` with method `c` could be meant.
    index = WorkspaceIndex()
    handler = {"type": "service-method", "serviceName": "S"}
    index.update("/1.tool.json", manifest("x_a", handler={**handler, "methodName": "b_c"}))
    index.update("/2.tool.json", manifest("x_a_b", handler={**handler, "methodName": "c"}))
    index.update("/c.vcp", vcp("x_a_b_c"))
    assert index.resolve("x_a_b_c", "vcp") == "x_a_b"
    assert index.resolve("x_a_b_c", "tam") is None
    assert found(index, "x_a_b")[1:] == [("/c.vcp", "call", "x_a_b")]
    assert found(index, "x_a") == [("/1.tool.json", "declaration", "x_a")]


def test_an_exact_id_wins_over_a_method_name() -> None:
    index = WorkspaceIndex()
    handler = {"type": "service-method", "serviceName": "S", "methodName": "b"}
    index.update("/1.tool.json", manifest("x:a", handler=handler))
    index.update("/2.tool.json", manifest("x:a_b"))
    index.update("/c.vcp", vcp("x:a_b"))
    assert index.resolve("x:a_b", "vcp") == "x:a_b"
    assert [one.path for one in index.occurrences("x:a")] == ["/1.tool.json"]


def test_no_name_reaches_a_neighbour() -> None:
    # Ruling 3: case and separators are a suggestion's matter.
    index = WorkspaceIndex()
    index.update("/a.tool.json", manifest("x:a"))
    assert [index.resolve(name) for name in ("X:A", "x_a", "x:a ", "x:", "a")] == [None] * 5


def test_an_alias_of_two_tools_belongs_to_the_first_id() -> None:
    # As the registry has it (A16).
    index = WorkspaceIndex()
    index.update("/2.tool.json", manifest("x:b", aliases=["al"]))
    index.update("/1.tool.json", manifest("x:a", aliases=["al", "x:b"]))
    index.update("/c.md", action("al") + action("x:b"))
    assert (index.resolve("al"), index.resolve("x:b")) == ("x:a", "x:b")
    assert [one.path for one in index.occurrences("x:b") if one.role == "call"] == ["/c.md"]
    assert index.names("x:a") == ["x:a", "al"]


def test_a_broken_manifest_still_declares_its_id() -> None:
    index = WorkspaceIndex()
    index.update("/a.tool.json", '{ "toolId": "x:a", "parameters": { "prop')
    assert index.resolve("x:a") == "x:a"


def test_a_workflow_is_known_by_its_file_name() -> None:
    # W02; other JSON files are none of it.
    index = WorkspaceIndex()
    index.update("/f/sum.json", '{"interfaceInputs": {}}')
    index.update("/f/package.json", '{"name": "has interfaceInputs"}')
    assert [tool.tool_id for tool in index.tools()] == ["workflow:sum"]
    assert index.files() == ["/f/sum.json"]


def test_prose_costs_nothing_and_is_not_kept() -> None:
    index = WorkspaceIndex()
    index.update("/a.md", "a < b and <b>bold</b> " * 1000)
    assert index.files() == []
    assert not index.knows("/a.md")


def test_other_protocols_are_read_once_they_are_wanted() -> None:
    from tamis.server.runtime.settings.protocols import load_also

    text = 'Well: <tool_call>{"name": "x:a", "arguments": {}}</tool_call>'
    index = WorkspaceIndex()
    index.read_also(load_also(("hermes",))[0])
    index.update("/a.md", text)
    assert found(index, "x:a") == [("/a.md", "call", "x:a")]


def test_threads_may_feed_and_ask_at_once() -> None:
    index = WorkspaceIndex()
    index.update("/a.tool.json", manifest("x:a"))
    failures: list[BaseException] = []

    def feed(name: str) -> None:
        try:
            for i in range(150):
                index.update(f"/{name}.md", action("x:a") + " " * i)
                index.occurrences("x:a")
                if i % 10 == 9:
                    index.remove(f"/{name}.md")
        except BaseException as error:  # shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=feed, args=(name,)) for name in "bcde"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [one.path for one in index.occurrences("x:a")] == ["/a.tool.json"]


TEXTS = (
    manifest("x:a", aliases=["al"]),
    manifest("x:b", aliases=["al", "x:a"], dependencies={"x:a": "*"}),
    manifest("x:a", handler={"type": "service-method", "serviceName": "S", "methodName": "m"}),
    action("x:a") + action("al"),
    vcp("x:a_m") + vcp("x:b@1") + vcp("al"),
    "no calls",
    '{"tool_ids_inventory": ["x:a", "al"]}',
    action("x_a") + vcp("x_a@1") + action("flow") + action("x_n"),
    '{"interfaceInputs": {}}',
    '{"interfaceInputs": {}, "id": "al", "nodes": [{"type": "x:a@^1"}, {"type": "map", "config": {"type": "flow"}}]}',
    '[{"fullType": "x:n", "toolId": "x:a@^1"}, {"fullType": "x:b"}, {"fullType": "x.a"}, {"fullType": 1}]',
    '{"fullType": "x:a"}',
    "",
)
PATHS = (
    *("/1.tool.json", "/2.tool.json", "/a.md", "/b.vcp", "/agent_profile.json", "/f/flow.json"),
    *("/f/more.json", "/n.node.json"),
)


@given(st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from((None, *TEXTS)), st.booleans()), max_size=14))
def test_after_any_edits_the_index_is_that_of_the_last_texts(edits: list[tuple[str, str | None, bool]]) -> None:
    index = WorkspaceIndex()
    last: dict[str, str] = {}
    for path, text, asked in edits:
        if text is None:
            index.remove(path)
            last.pop(path, None)
        else:
            index.update(path, text)
            last[path] = text
        if asked:
            index.occurrences("x:a")
    fresh = WorkspaceIndex()
    for path, text in sorted(last.items()):
        fresh.update(path, text)
    for name in ("x:a", "x:b", "al", "x:a_m", "workflow:flow", "x_a", "x:n", "x_n", "flow"):
        assert index.occurrences(name) == fresh.occurrences(name)
        assert index.may_mean(name) == fresh.may_mean(name)
        assert index.exports(name) == fresh.exports(name)
        assert index.resolve(name, "vcp") == fresh.resolve(name, "vcp")
    assert index.tools() == fresh.tools()
    assert index.files() == fresh.files()


def test_a_call_by_the_name_of_an_export_means_the_tool_unless_two_share_it() -> None:  # F25
    index = WorkspaceIndex()
    index.update("/a.tool.json", manifest("x:a"))
    assert [index.resolve("x_a", protocol) for protocol in ("json", "vcp", "")] == ["x:a", "x:a", None]
    index.update("/b.tool.json", manifest("x.a"))
    assert index.resolve("x_a", "json") is None
    index.remove("/b.tool.json")
    assert index.resolve("x_a@1.0.0", "action") == "x:a"


def test_a_file_of_nodes_declares_each_of_them() -> None:  # A41
    index = WorkspaceIndex()
    index.update("/n.node.json", '[{"fullType": "x:n", "toolId": "x:a@^1"}, {"fullType": "x:m"}, {}]')
    assert [(tool.tool_id, tool.path, tool.declared.kind) for tool in index.tools()] == [
        ("x:m", "/n.node.json", "node"),
        ("x:n", "/n.node.json", "node"),
    ]
    (use,) = index.occurrences("x:a")
    assert (use.role, use.name) == ("dependency", "x:a")
    assert index.resolve("x_m", "json") == "x:m"
    index.update("/n.node.json", '{"fullType": "x:k"}')
    assert [tool.tool_id for tool in index.tools()] == ["x:k"]
    assert (index.resolve("x_m", "json"), index.resolve("x_k", "json")) == (None, "x:k")


def test_a_workflow_names_the_tools_of_its_nodes() -> None:  # W02
    index = WorkspaceIndex()
    nodes = '[{"type": "input"}, {"fullType": "x:a"}, {"type": "map", "config": {"type": "x:a@1"}}, {"type": 1}, 2]'
    index.update("/f/flow.json", f'{{"interfaceInputs": {{}}, "id": "own", "nodes": {nodes}}}')
    assert [(one.role, one.name) for one in index.occurrences("x:a")] == [("dependency", "x:a")] * 2
    assert index.names("workflow:flow") == ["workflow:flow", "flow", "own"]
    assert index.occurrences("input") == []
