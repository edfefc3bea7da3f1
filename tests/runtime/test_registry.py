"""The registry: names, versions, dependencies between tools, sources, reloads (issue 6; A16, A41, A43, D48 to D53, D90, D91)."""

from __future__ import annotations

import json
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.manifest.reading import Manifest, ServiceMethod
from tamis.protocols.model import Json
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.texts.exports import Form, exported_names
from tamis.server.runtime.tools.registry import ConflictPolicy, Registry, Tool, difference
from tests.sample_tools import make_tool


def tool(
    tool_id: str,
    version: str = "1.0.0",
    *,
    service: str = "S",
    method: str = "",
    path: str = "",
    parameters: dict[str, Json] | None = None,
    needs: dict[str, str] | None = None,
    **fields: Any,
) -> Tool:
    manifest = Manifest(
        tool_id,
        tool_id,
        "Does what its name says.",
        version,
        ServiceMethod(service, method or tool_id),
        parameters={"type": "object", "properties": {}} if parameters is None else parameters,
        dependencies=needs or {},
        raw={"toolId": tool_id, "version": version},
        **fields,
    )
    return Tool(manifest, path or f"/t/{tool_id}-{version}.tool.json")


def reached(registry: Registry, name: str, **how: Any) -> str:
    found = registry.resolve(name, **how).tool
    return "" if found is None else f"{found.tool_id}@{found.version}"


# Names and versions


def test_a_call_by_alias_or_vcp_command_reaches_the_tool() -> None:  # A16, V18
    registry = Registry([tool("core:read", aliases=("read", "读取"), protocol_config={"vcpCommand": "ReadFile"})])
    assert {reached(registry, name) for name in ("core:read", "read", "读取", "ReadFile")} == {"core:read@1.0.0"}
    assert reached(registry, "Read") == ""  # F25: never a neighbour


VERSIONS = ["1.0.0", "1.2.0", "1.2.9", "2.0.0", "3.0.0-beta.1"]


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        (None, "2.0.0"),
        ("^1.0", "1.2.9"),
        ("~1.2.0", "1.2.9"),
        ("1.2.0", "1.2.0"),
        ("<1.2", "1.0.0"),
        ("1.0 - 1.2.0", "1.2.0"),
        ("^1 || ^3", "1.2.9"),
        ("*", "2.0.0"),
        ("latest", "2.0.0"),
        (">=3.0.0-alpha", "3.0.0-beta.1"),
        ("^3.0.0", ""),
        ("^4", ""),
        ("nonsense", ""),
    ],
)
def test_versions_stand_side_by_side_and_a_range_picks_the_newest_in_it(
    wanted: str | None, got: str
) -> None:  # D90, ruling 35
    registry = Registry([tool("core:x", version, aliases=("x",)) for version in VERSIONS])
    expected = f"core:x@{got}" if got else ""
    assert reached(registry, "core:x", version=wanted) == expected
    if wanted is not None:
        assert reached(registry, f"core:x@{wanted}") == expected
        assert reached(registry, f"x@{wanted}") == expected
    assert registry.versions("core:x@9") == VERSIONS[::-1]


def test_a_tool_that_has_pre_releases_only_is_called_by_its_newest() -> None:
    registry = Registry([tool("core:x", version) for version in ("1.0.0-alpha", "1.0.0-rc.1", "draft")])
    assert reached(registry, "core:x") == "core:x@1.0.0-rc.1"
    assert reached(registry, "core:x@^1.0.0") == ""


def test_readers_know_the_parameters_of_a_pinned_tool(
    tmp_path: Path,
) -> None:  # ruling 35: the version that is called guides the reading
    for version, name in (("1.0.0", "oldName"), ("2.0.0", "newName")):
        folder = make_tool(tmp_path / version, "core:x", properties={name: {"type": "string"}}, version=version)
        assert folder.is_dir()
    runtime = Runtime(tmp_path)
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»core:x@{}«««\n{}:»»»1«««\n<|[END_TOOL]|>"
    for wanted, key, meant in (("^1", "old_name", "oldName"), ("2.0.0", "new_name", "newName")):
        (call,) = runtime.parse(text.format(wanted, key), "tam").calls
        assert call.args == {meant: "1"}


# VCP's ways to name a method (ruling 30, V45)


def methods() -> Registry:
    return Registry(
        [
            tool("math", service="Math", method="add"),
            tool("math_add", service="Other", method="go"),
            tool("core:text", service="Text", method="upper", aliases=("text",)),
            tool("core:lower", service="Text", method="lower"),
            tool("one", service="Twice", method="run"),
            tool("two", service="Twice", method="run"),
            tool("a", service="A1", method="b_c"),
            tool("a_b", service="A2", method="c"),
            tool(
                "free",
                service="Free",
                method="go",
                parameters={"type": "object", "properties": {"command": {"type": "string"}}},
            ),
        ]
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("core:text_upper", "core:text"),
        ("text_upper", "core:text"),
        ("Text_upper", "core:text"),
        ("Text_lower", "core:lower"),
        ("math_add", "math_add"),  # an id is an id, also where it spells a method
        ("a_b_c", "a_b"),  # the longest match first
        ("text_lower", ""),  # F25: the alias `text` is another tool's
        ("core:text_upper@^1", "core:text"),
        ("core:text_upper@^2", ""),
    ],
)
def test_a_vcp_name_may_be_the_tool_with_its_method(name: str, expected: str) -> None:  # V45, ruling 30
    found = methods().resolve(name, protocol="vcp").tool
    assert (found.tool_id if found is not None else "") == expected


def test_only_vcp_spells_methods() -> None:
    assert methods().resolve("Text_upper", protocol="action").tool is None


def test_a_vcp_name_that_fits_several_tools_equally_well_reaches_none_and_names_them() -> None:  # F25
    found = methods().resolve("Twice_run", protocol="vcp")
    assert (found.tool, found.candidates) == (None, ("one", "two"))


@pytest.mark.parametrize(
    ("name", "command", "expected", "takes"),
    [
        ("Text", "lower", "core:lower", True),
        ("core:text", "upper", "core:text", True),
        ("text", "upper", "core:text", True),
        ("math", "add", "math", True),  # its own method, also where the whole would be another tool's id
        ("free", "go", "free", False),  # the tool has a parameter of that name
        ("Text", "middle", "", False),
        ("core:text", "middle", "core:text", False),  # then it is an unknown argument
    ],
)
def test_a_vcp_command_names_the_method_of_a_tool(
    name: str, command: str, expected: str, takes: bool
) -> None:  # ruling 30
    found = methods().resolve(name, protocol="vcp", command=command)
    assert (found.tool.tool_id if found.tool is not None else "") == expected
    assert found.takes_command is takes


# Conflicts


def test_a_second_definition_of_an_id_and_version_is_a_conflict() -> None:  # ruling 35, D52
    first, second = tool("core:x", path="/a"), tool("core:x", path="/b")
    kept: dict[ConflictPolicy, str] = {}
    for policy in ("keepFirst", "replace", "error"):
        registry = Registry([first, second], on_conflict=policy)
        found = registry.get("core:x")
        assert found is not None
        kept[policy] = found.path if found.available else "none"
        (conflict,) = registry.conflicts
        assert {conflict.kept, conflict.dropped} == {"/a", "/b"}
    assert kept == {"keepFirst": "/a", "replace": "/b", "error": "none"}
    assert first.available, "a registry changes no tool that another one holds too"


def test_the_same_tool_registered_twice_is_one_tool() -> None:
    one = tool("core:x")
    registry = Registry([one, one])
    assert (registry.tools, registry.conflicts) == ([one], [])


@pytest.mark.parametrize(
    ("policy", "reached_id", "candidates"), [("keepFirst", "a", ()), ("replace", "b", ()), ("error", "", ("a", "b"))]
)
def test_two_manifests_that_claim_the_same_alias(
    policy: ConflictPolicy, reached_id: str, candidates: tuple[str, ...]
) -> None:  # A16, F25
    for order in (("a", "b"), ("b", "a")):  # the order of files decides nothing
        registry = Registry([tool(name, aliases=("go",)) for name in order], on_conflict=policy)
        found = registry.resolve("go")
        assert (found.tool.tool_id if found.tool else "", found.candidates) == (reached_id, candidates)
        (conflict,) = registry.conflicts
        assert "the name 'go'" in conflict.message


def test_an_alias_never_takes_an_id_from_its_tool() -> None:
    registry = Registry([tool("a", aliases=("b",)), tool("b")], on_conflict="replace")
    assert reached(registry, "b") == "b@1.0.0"
    assert len(registry.conflicts) == 1


# Dependencies between tools (D91)


def reasons(*tools: Tool) -> dict[str, str]:
    registry = Registry(tools)
    return {one.tool_id: one.reason for one in registry.tools if not one.available}


def test_a_missing_dependency_and_one_that_does_not_fit_make_a_tool_unavailable() -> None:  # D91
    found = reasons(
        tool("gap", needs={"no:such": "^1"}),
        tool("old", needs={"base": "^2"}),
        tool("fine", needs={"base": "^1.0"}),
        tool("base", "1.4.0"),
    )
    assert set(found) == {"gap", "old"}
    assert "'no:such', which is not registered" in found["gap"]
    assert "'base' ^2, but there is 1.4.0" in found["old"]


def test_every_fault_is_an_error_with_its_file() -> None:  # D91
    registry = Registry([tool("gap", needs={"no:such": "^1", "nor:this": "*"}, path="/t/gap.tool.json")])
    assert [(one.path, one.tool_id) for one in registry.errors] == [("/t/gap.tool.json", "gap")] * 2
    assert "'nor:this'" in registry.errors[1].message


def test_a_circle_of_tools_is_reported_on_each_of_them() -> None:  # D91
    ring = [tool(name, needs={other: "*"}) for name, other in (("a", "b"), ("b", "c"), ("c", "a"))]
    found = reasons(*ring, tool("d", needs={"a": "*"}), tool("e"))
    assert "a → b → c → a" in found["a"]
    assert "b → c → a → b" in found["b"]
    assert found["d"].startswith("it depends on 'a', which is not available")
    assert "e" not in found


def test_a_tool_that_depends_on_itself_is_a_circle_of_one() -> None:
    assert "x → x" in reasons(tool("x", needs={"x": "*"}))["x"]


def test_a_version_may_build_on_an_older_one_of_the_same_tool() -> None:
    assert reasons(tool("x", "2.0.0", needs={"x": "^1"}), tool("x", "1.0.0")) == {}


def test_what_a_tool_needs_must_be_there_all_the_way_down() -> None:
    chain = [tool(f"t{number:05}", needs={f"t{number + 1:05}": "*"}) for number in range(3_000)]
    found = reasons(*chain)
    assert len(found) == 3_000
    assert "t03000', which is not registered" in found["t02999"]
    assert all("not available" in found[one.tool_id] for one in chain[:-1])
    closed = [*chain, tool("t03000", needs={"t00000": "*"})]
    assert "3001 tools lead to each other" in reasons(*closed)["t00000"]


def test_the_dependency_faults_of_a_draft_are_those_of_the_draft() -> None:
    registry = Registry([tool("a", needs={"b": "*"}), tool("b")])
    assert registry.dependency_faults("b", "1.0.0", {}) == []
    (fault,) = registry.dependency_faults("b", "1.0.0", {"a": "^1"})
    assert (fault.name, fault.kind, fault.detail) == ("a", "cycle", "b → a → b")


# Etag and changes


def test_the_etag_is_one_of_content_not_of_order_or_process(tmp_path: Path) -> None:
    tools = [tool(f"core:{name}", version) for name in "abc" for version in ("1.0.0", "2.0.0")]
    tag = Registry(tools).etag()
    for seed in range(5):
        shuffled = random.Random(seed).sample(tools, len(tools))
        assert Registry(shuffled).etag() == tag
    assert Registry(tools[1:]).etag() != tag
    assert Registry([*tools[1:], tools[0].unavailable("gone")]).etag() != tag
    for folder in ("one", "two"):
        make_tool(tmp_path / folder, "core:x", "print(1)")
    assert Runtime(tmp_path / "one").registry.etag() == Runtime(tmp_path / "two").registry.etag()


def test_changes_name_what_is_new_gone_and_other() -> None:
    before = Registry([tool("a"), tool("b"), tool("c")])
    after = Registry([tool("a"), tool("b", tags=("t",)).unavailable("x"), tool("d")])
    change = difference(before, after)
    assert (change.added, change.removed, change.updated) == (("d@1.0.0",), ("c@1.0.0",), ("b@1.0.0",))
    assert not difference(before, Registry([tool("a"), tool("b"), tool("c")])).any


# From disk


def test_all_sources_give_tools_to_one_registry(tmp_path: Path) -> None:  # A43, D69, A41, A42
    make_tool(tmp_path, "core:script")
    (tmp_path / "blur.node.json").write_text(json.dumps({"fullType": "image:Blur", "description": "Blurs an image."}))
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "greet.json").write_text(json.dumps({"interfaceInputs": {}, "nodes": [], "edges": []}))
    runtime = Runtime(tmp_path, {"workflows": ["flows"]})
    registered = runtime.parts.host_services.register("Host", [{"name": "ping", "description": "Says pong, always."}])
    assert registered.registered
    found = {one.tool_id: (one.origin, one.kind) for one in runtime.registry.tools}
    assert found == {
        "core:script": ("manifest", "tool"),
        "image:Blur": ("node", "tool"),
        "workflow:greet": ("workflow", "workflow"),
        "Host:ping": ("host", "service"),
    }
    own = runtime.registry.get("system:get_current_time")
    assert own is not None
    assert own.origin == "builtin"


def test_a_file_that_defines_one_of_tamis_own_ids_is_the_one_that_counts(tmp_path: Path) -> None:
    make_tool(tmp_path, "ReadWorldStateTool", version="0.0.1")
    found = Runtime(tmp_path).registry.get("ReadWorldStateTool")
    assert found is not None
    assert (found.origin, found.version) == ("manifest", "0.0.1")


def test_tools_of_the_host_come_and_go_without_a_reload(tmp_path: Path) -> None:  # D53
    make_tool(tmp_path, "core:needs", dependencies={"Host:ping": "*"})
    runtime = Runtime(tmp_path)
    needing = runtime.registry.get("core:needs")
    assert needing is not None
    assert not needing.available
    held = runtime.registry
    runtime.parts.host_services.register("Host", [{"name": "ping", "description": "Says pong, always."}])
    change = runtime.services_changed()
    assert [one.partition("@")[0] for one in change.added] == ["Host:ping"]
    assert change.updated == ("core:needs@1.0.0",)
    needing = runtime.registry.get("core:needs")
    assert needing is not None
    assert needing.available
    assert held.get("Host:ping") is None, "who holds a registry keeps it as it is"
    runtime.parts.host_services.unregister("Host", None)
    assert len(runtime.services_changed().removed) == 1


def test_a_reload_reads_again_only_what_changed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_tool(tmp_path, f"core:{name}")
    runtime = Runtime(tmp_path)
    before = {one.tool_id: one for one in runtime.registry.tools}
    make_tool(tmp_path, "core:b", version="1.1.0")
    after = {one.tool_id: one for one in runtime.reload().tools}
    assert after["core:a"] is before["core:a"]
    assert after["core:b"].version == "1.1.0"
    (tmp_path / "core_a" / "tool.py").unlink()
    gone = runtime.reload().get("core:a")
    assert gone is not None
    assert "does not exist" in gone.reason


def test_a_reload_reads_the_settings_too(tmp_path: Path) -> None:
    make_tool(tmp_path / "one", "core:a")
    make_tool(tmp_path / "two", "core:b")
    (tmp_path / "tamis.toml").write_text('tools = ["one"]\n')
    runtime = Runtime(tmp_path)
    assert [one.tool_id for one in runtime.registry.tools] == ["core:a"]
    (tmp_path / "tamis.toml").write_text('tools = ["two"]\n[policy]\ncallsPerMinute = 5\n')
    assert [one.tool_id for one in runtime.reload().tools] == ["core:b"]
    assert runtime.parts.settings.policy.calls_per_minute == 5
    (tmp_path / "tamis.toml").write_text("tools = [")
    assert runtime.reload().tools == []
    assert runtime.call_context().closed, "a file that cannot be read closes everything"


def test_a_workflow_with_another_graph_is_another_tool(tmp_path: Path) -> None:  # W20
    (tmp_path / "flows").mkdir()
    flow: dict[str, Any] = {"interfaceInputs": {}, "nodes": [], "edges": []}
    (tmp_path / "flows" / "f.json").write_text(json.dumps(flow))
    runtime = Runtime(tmp_path, {"workflows": ["flows"]})
    before = runtime.registry.get("workflow:f")
    runtime.reload()
    assert runtime.registry.get("workflow:f") is before, "what did not change is not taken anew"
    flow["nodes"] = [{"id": "n", "type": "constant", "config": {"value": 1}}]
    (tmp_path / "flows" / "f.json").write_text(json.dumps(flow))
    change = runtime.take(runtime.read_again())
    assert change.updated == ("workflow:f@0.0.0",)
    assert runtime.registry.get("workflow:f") is not before


def test_a_workflow_that_a_tool_could_have_put_there_is_not_registered(tmp_path: Path) -> None:
    make_tool(tmp_path, "core:writer", securityContext={"fileAccess": {"allowWrite": ["out"]}})
    out = tmp_path / "core_writer" / "out"
    out.mkdir()
    (out / "f.json").write_text(json.dumps({"interfaceInputs": {}, "nodes": [], "edges": []}))
    registry = Runtime(tmp_path, {"workflows": ["core_writer/out"]}).registry
    assert [one.tool_id for one in registry.tools] == ["core:writer"]
    assert "could have put it there" in registry.errors[0].message


def test_an_older_reading_never_takes_the_place_of_a_newer(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    assert runtime.registry.tools == []
    old = runtime.read_again()
    make_tool(tmp_path, "core:a")
    runtime.take(runtime.read_again())
    assert not runtime.take(old).any
    assert runtime.registry.get("core:a") is not None


@pytest.mark.parametrize("seed", range(4))
def test_what_is_reloaded_is_what_a_fresh_start_reads(tmp_path: Path, seed: int) -> None:  # D53
    chance = random.Random(seed)
    runtime = Runtime(tmp_path)
    assert runtime.registry.tools == []

    def edit() -> None:
        name = chance.choice("abcde")
        folder, what = tmp_path / f"core_{name}", chance.randrange(6)
        if what < 3 or not folder.exists():
            version = chance.choice(["1.0.0", "1.1.0"])
            make_tool(
                tmp_path, f"core:{name}", version=version, dependencies={f"core:{chance.choice('abcde')}": "^1.1"}
            )
        elif what == 3:
            (folder / "x.tool.json").write_text("{")
        elif what == 4:
            (folder / "tool.py").unlink(missing_ok=True)
        else:
            (folder / "x.tool.json").unlink(missing_ok=True)

    for _ in range(25):
        edit()
        before = runtime.registry
        change = runtime.take(runtime.read_again())
        fresh = Runtime(tmp_path).registry
        assert runtime.registry.etag() == fresh.etag()
        assert (runtime.registry.errors, runtime.registry.conflicts) == (fresh.errors, fresh.conflicts)
        assert change == difference(before, fresh), "what is told is what is different"


def test_files_that_come_and_vanish_while_they_are_read_stop_nothing(tmp_path: Path) -> None:  # D48
    make_tool(tmp_path, "core:stays")
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            folder = make_tool(tmp_path, f"core:t{number % 5}")
            (folder / "x.tool.json").unlink()
            os.replace(folder / "tool.py", folder / "other.py")
            (folder / "other.py").unlink()
            folder.rmdir()
            number += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        runtime = Runtime(tmp_path)
        for _ in range(40):
            assert runtime.reload().get("core:stays") is not None
    finally:
        stop.set()
        thread.join()
    assert [one.tool_id for one in runtime.reload().tools] == ["core:stays"]


@pytest.mark.parametrize(
    "tool_id",
    [
        "工具:读取文件",
        "وكيل:قراءة",
        "𝒯:🛠",
        "a",
        "a" * 256,
        "core:" + "é" * 200,
        "x/y.json",
        "ns:a:b",
        "नमस्ते:दुनिया",
        "ID-1.2_3",
    ],
)
def test_ids_of_every_script_and_length_are_registered_and_found(tmp_path: Path, tool_id: str) -> None:
    folder = tmp_path / "t"
    make_tool(folder, "core:x")
    path = folder / "core_x" / "x.tool.json"
    manifest = json.loads(path.read_text("utf-8")) | {"toolId": tool_id}
    path.write_text(json.dumps(manifest, ensure_ascii=False), "utf-8")
    runtime = Runtime(folder)
    assert reached(runtime.registry, f"{tool_id}@^1") == f"{tool_id}@1.0.0"
    listed = runtime.list_tools()
    assert [one.tool_id for one in listed.tools] == [tool_id]


def test_an_id_that_is_too_long_or_holds_markup_is_an_error_of_its_file_alone(tmp_path: Path) -> None:  # D48
    for number, tool_id in enumerate(("a" * 257, "a b", "a<b", "x@1", "")):
        folder = make_tool(tmp_path / str(number), "core:x")
        path = folder / "x.tool.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"toolId": tool_id}), "utf-8")
    make_tool(tmp_path, "core:fine")
    registry = Runtime(tmp_path).registry
    assert [one.tool_id for one in registry.tools] == ["core:fine"]
    assert len(registry.errors) == 5


@pytest.mark.parametrize("name", ["a\0b", "x" * 5_000, "", "no/such", "/dev/null", "tamis.toml/x", "\ud800"])
def test_folders_that_cannot_be_are_errors_and_stop_nothing(tmp_path: Path, name: str) -> None:  # D48
    make_tool(tmp_path / "fine", "core:fine")
    settings = {"tools": ["fine", name], "workflows": [name], "profile": name}
    runtime = Runtime(tmp_path, settings)
    runtime.watched = True
    assert runtime.registry.get("core:fine") is not None
    assert runtime.read_again().found.errors or not name
    runtime.reload()


def test_ten_thousand_manifests_are_registered(tmp_path: Path, is_long: bool) -> None:
    count = 9_999 if is_long else 600
    folder = make_tool(tmp_path, "core:t0")
    text = (folder / "x.tool.json").read_text("utf-8")
    for number in range(1, count):
        (folder / f"t{number}.tool.json").write_text(text.replace('"core:t0"', f'"core:t{number}"'), "utf-8")
    runtime = Runtime(tmp_path)
    assert len(runtime.registry.tools) == count
    seen: list[str] = []
    cursor = None
    while True:
        page = runtime.list_tools(cursor=cursor)
        seen += [one.tool_id for one in page.tools]
        if not isinstance(page.next_cursor, str):
            break
        cursor = page.next_cursor
    assert seen == sorted(f"core:t{number}" for number in range(count))


# names that exports give


@pytest.mark.parametrize("protocol", ["", "json", "action", "tam", "vcp", "hermes"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [("pets_listPets", "pets:listPets"), ("pets_listPets@1.0.0", "pets:listPets"), ("_9_x", "9:x")],
)
def test_the_name_of_an_export_reaches_its_tool_in_every_protocol(protocol: str, name: str, expected: str) -> None:
    registry = Registry([tool("pets:listPets"), tool("9:x")])
    found = registry.resolve_call(name, protocol, {}).tool
    assert found is not None and found.tool_id == expected
    assert registry.hints()["pets_listPets"].tool_id == "pets:listPets"
    assert registry.resolve_call("pets_listPets@9", protocol, {}).tool is None


def test_the_name_of_an_export_that_two_tools_share_reaches_none_and_names_both() -> None:  # F25
    registry = Registry([tool("a:b"), tool("a.b")])
    assert registry.resolve_call("a_b", "json", {}).candidates == ("a.b", "a:b")
    for tool_id, name in exported_names(registry, "openai").items():
        found = registry.resolve_call(name, "json", {}).tool
        assert found is not None and found.tool_id == tool_id


@pytest.mark.parametrize("other", [tool("a_b"), tool("other", aliases=("a_b",))])
def test_ids_and_aliases_go_before_the_names_of_exports(other: Tool) -> None:
    registry = Registry([tool("a:b"), other])
    found = registry.resolve_call("a_b", "json", {}).tool
    assert found is other
    assert exported_names(registry, "openai")["a:b"] != "a_b"
    assert registry.resolve_call("a_b@9", "json", {}).tool is None


@given(
    st.lists(st.text("ab.:_1-", min_size=1, max_size=5) | st.sampled_from(["if", "if_"]), max_size=8, unique=True),
    st.sampled_from(["openai", "gemini", "cursor", "smolagents"]),
)
def test_every_exported_name_means_its_tool_and_no_other(ids: list[str], form: Form) -> None:  # F25
    registry = Registry([tool(tool_id) for tool_id in ids])
    for tool_id, name in exported_names(registry, form).items():
        meant = registry.resolve_call(name, "json", {})
        assert meant.tool is None or meant.tool.tool_id == tool_id
        assert meant.tool is not None or tool_id in meant.candidates


@pytest.mark.parametrize("form", ["cursor", "smolagents"])
def test_a_name_without_dashes_reaches_its_tool_and_not_the_one_that_has_it_elsewhere(form: Form) -> None:
    """interop §2.3: Cursor calls `net_get-rows` by `net_get_rows`."""
    alone = Registry([tool("net:get-rows")])
    assert exported_names(alone, form) == {"net:get-rows": "net_get_rows"}
    assert alone.resolve_call("net_get_rows", "json", {}).tool is alone.get("net:get-rows")
    both = Registry([tool("net:get-rows"), tool("net:get_rows")])
    names = exported_names(both, form)
    assert {both.resolve_call(name, "json", {}).tool for name in names.values()} == set(both.tools)
    assert both.resolve_call("net_get_rows", "json", {}).tool is both.get("net:get_rows")


def _root_with(tmp_path: Path, broken: str) -> Runtime:
    for name, text in (("a", broken), ("b", json.dumps(SOUND))):
        (tmp_path / f"{name}.tool.json").write_text(text, "utf-8")
    (tmp_path / "b.py").write_text("print(1)\n", "utf-8")
    return Runtime(tmp_path)


SOUND = {
    "toolId": "b",
    "displayName": "B",
    "description": "Prints one.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "language": "python", "scriptPath": "b.py"},
    "parameters": {"type": "object", "properties": {}},
}


def test_a_reference_of_thousands_of_digits_keeps_no_other_tool_away(tmp_path: Path) -> None:
    reference = {"type": "object", "allOf": [True], "properties": {"x": {"$ref": "#/allOf/" + "1" * 5_000}}}
    runtime = _root_with(tmp_path, json.dumps({**SOUND, "toolId": "a", "parameters": reference}))
    assert runtime.registry.resolve("b").tool is not None
    assert [error.path for error in runtime.registry.errors] == [str(tmp_path / "a.tool.json")]


def test_a_fault_while_one_manifest_is_read_keeps_no_other_tool_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tamis.server.runtime.tools import reading

    read = reading.read_manifest

    def failing(text: str, **options: Any) -> Any:
        if '"a"' in text:
            raise ZeroDivisionError("in a rule")
        return read(text, **options)

    monkeypatch.setattr(reading, "read_manifest", failing)
    runtime = _root_with(tmp_path, json.dumps({**SOUND, "toolId": "a"}))
    assert runtime.registry.resolve("b").tool is not None
    (error,) = runtime.registry.errors
    assert error.message == "reading it failed by a fault of Tamis (ZeroDivisionError: in a rule); please report it"
