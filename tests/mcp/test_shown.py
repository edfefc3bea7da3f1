"""Prompts, resources, completion (mcp, Server)."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.sandbox.paths.never import is_hidden_name
from tamis.server.mcp import showing
from tamis.server.mcp.showing import MAX_FOLLOWED, Following, Shown, as_content
from tamis.server.mcp.tools import Kept, write_cursor
from tamis.server.runtime.calls.runner import empty_result
from tamis.server.runtime.policy import resources
from tamis.server.runtime.policy.resources import ResourceError, ShownPlaces
from tamis.server.runtime.settings.config import Policy, Settings
from tamis.server.runtime.tools.registry import Registry
from tamis.server.wire.jsonrpc import RpcError
from tests.mcp.raw_client import RawClient, meta
from tests.sample_tools import make_tool

SECRET = {"key": {"type": "string", "x-secret": True, "default": "hidden-value"}, "unit": {"enum": ["m", "mm", "km"]}}


def completed(server: RawClient, ref: dict[str, Any], name: str, value: str) -> list[str]:
    told = {"ref": ref, "argument": {"name": name, "value": value}}
    return server.modern("completion/complete", told)["result"]["completion"]["values"]


@pytest.mark.parametrize(
    ("name", "marker"),
    [("tools-action", "<ACTION>"), ("tools-tam", "<|[REQUEST_TOOL]|>"), ("tools-vcp", "<<<[TOOL_REQUEST]>>>")],
)
def test_a_prompt_tells_the_tools_in_each_protocol(server: RawClient, name: str, marker: str) -> None:
    assert name in {one["name"] for one in server.modern("prompts/list")["result"]["prompts"]}
    told = server.modern("prompts/get", {"name": name})["result"]["messages"]
    assert told[0]["role"] == "user"
    assert marker in told[0]["content"]["text"]
    assert "core:fails" in told[0]["content"]["text"]


def test_a_prompt_tells_of_the_tools_that_are_named(server: RawClient) -> None:
    arguments = {"tools": "core_echo, core_slow", "style": "compact"}
    told = server.modern("prompts/get", {"name": "tools-action", "arguments": arguments})["result"]
    assert "core:fails" not in told["messages"][0]["content"]["text"]


@pytest.mark.parametrize(
    "params",
    [{}, {"name": "x"}, {"name": ["tools-vcp"]}, {"name": "tools-vcp", "arguments": {"style": "loud"}},
     {"name": "tools-vcp", "arguments": {"tools": 7}}, {"name": "tools-vcp", "arguments": {"tools": "no_such"}}],
    ids=str,
)  # fmt: skip
def test_what_is_no_prompt_is_refused(server: RawClient, params: dict[str, Any]) -> None:
    assert server.modern("prompts/get", params)["error"]["code"] == -32602


def test_a_definition_is_read_without_the_values_of_secrets(root: Path) -> None:
    make_tool(root, "core:keyed", properties=SECRET)
    with RawClient(root) as server:
        listed = server.modern("resources/list")["result"]["resources"]
        assert "tamis:tool/core_keyed" in {one["uri"] for one in listed}
        held = server.modern("resources/read", {"uri": "tamis:tool/core_keyed"})["result"]["contents"][0]
    assert json.loads(held["text"])["toolId"] == "core:keyed"
    assert held["mimeType"] == "application/json"
    assert "hidden-value" not in held["text"]


def test_the_result_of_a_call_is_kept_with_its_logs(server: RawClient) -> None:
    address = server.call("core_fails")["_meta"]["dev.tamis/result"]
    held = server.modern("resources/read", {"uri": address})["result"]["contents"][0]
    assert "stderr: what went wrong" in json.loads(held["text"])["logs"]
    assert address in {one["uri"] for one in server.modern("resources/list")["result"]["resources"]}


def test_a_kept_result_has_the_observation_that_its_call_did_not_wait_for(server: RawClient) -> None:  # issue 18, bars
    address = server.call("core_echo", {"text": "hi <b>"})["_meta"]["dev.tamis/result"]
    held = server.modern("resources/read", {"uri": address})["result"]["contents"][0]
    told = 'Observation: Tool core:echo executed successfully. Result: {"text": "hi <b>"}'
    assert json.loads(held["text"])["observation"] == told


def test_no_other_address_is_read(server: RawClient) -> None:
    addresses: list[Any] = ["tamis:tool/no", "tamis:tool/../core_echo", "tamis-result:call-9", "file:///etc/passwd", ""]
    addresses += ["fam://x/y", "FAM://", "fam://" + "x" * 9_000, "tamis:profile", "tamis:profile/../x", 7, None]
    codes = [server.modern("resources/read", {"uri": uri})["error"]["code"] for uri in addresses]
    assert codes == [-32602] * len(addresses)


def test_a_missing_resource_has_its_own_code_before_the_stateless_revision(server: RawClient) -> None:
    server.shake()
    assert server.ask("resources/read", {"uri": "tamis:tool/no"})["error"]["code"] == -32002


def test_names_styles_and_values_are_completed(root: Path) -> None:
    make_tool(root, "core:keyed", properties=SECRET)
    prompt = {"type": "ref/prompt", "name": "tools-vcp"}
    with RawClient(root) as server:
        assert completed(server, prompt, "style", "c") == ["compact"]
        assert completed(server, prompt, "tools", "core_echo,core_s") == ["core_echo,core_slow"]
        assert completed(server, {"type": "ref/resource", "uri": "tamis:tool/{name}"}, "name", "core_k") == [
            "core_keyed"
        ]
        of_tool = {"type": "ref/resource", "uri": "tamis:tool/core_keyed"}
        assert completed(server, of_tool, "unit", "m") == ["m", "mm"]
        assert completed(server, of_tool, "key", "") == []
        for wrong in ({}, {"ref": prompt}, {"ref": {"type": "x"}, "argument": {"name": "a", "value": ""}}):
            assert server.modern("completion/complete", wrong)["error"]["code"] == -32602


# Files behind `fam://`, and agents' profiles (mcp, Server: places that the policy shows)


@pytest.fixture
def places(root: Path) -> Path:
    notes = root / "notes"
    (notes / "sub dir").mkdir(parents=True)
    (notes / "a.md").write_text("# A\n")
    (notes / "sub dir" / "50% ü?#.json").write_text("{}")
    (notes / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (notes / ".hidden").write_text("no")
    (notes / "host.key").write_text("no")
    (root / "beside.txt").write_text("no")
    (notes / "link.txt").symlink_to(root / "beside.txt")
    (notes / "way").symlink_to(root)
    os.mkfifo(notes / "pipe")
    os.mkdir(bytes(notes) + b"/\xff")
    (root / ".env").write_text("no")
    (root / "tamis.toml").write_text('[resources]\nnotes = "notes"\nhere = "."\n')
    return root


def told_of(server: RawClient, uri: str) -> dict[str, Any]:
    return server.modern("resources/read", {"uri": uri})["result"]["contents"][0]


def test_files_of_a_place_are_listed_and_read_with_their_types(places: Path) -> None:
    with RawClient(places) as server:
        listed = {one["uri"]: one for one in server.modern("resources/list")["result"]["resources"]}
        notes = sorted(uri for uri in listed if uri.startswith("fam://notes/"))
        odd = "fam://notes/sub%20dir/50%25%20%C3%BC%3F%23.json"
        assert notes == ["fam://notes/a.md", "fam://notes/dot.png", odd]
        assert listed[odd] == {"uri": odd, "name": "50% ü?#.json", "mimeType": "application/json", "size": 2}
        assert told_of(server, odd) == {"uri": odd, "mimeType": "application/json", "text": "{}"}
        assert told_of(server, "fam://notes/a.md")["mimeType"] == "text/markdown"
        image = told_of(server, "fam://notes/dot.png")
        assert (image["mimeType"], image["blob"]) == ("image/png", "iVBORw0KGgoA")
        templates = server.modern("resources/templates/list")["result"]["resourceTemplates"]
        assert "fam://{place}/{+path}" in {one["uriTemplate"] for one in templates}


@pytest.mark.parametrize(
    "uri",
    ["fam://notes/../beside.txt", "fam://notes/%2e%2e/beside.txt", "fam://notes/..%2fbeside.txt", "fam://notes/link.txt",
     "fam://notes/way/beside.txt", "fam://notes/pipe", "fam://notes/.hidden", "fam://notes/host.key", "fam://notes",
     "fam://notes/", "fam://notes/a.md/", "fam://notes//a.md", "fam://notes/a.md%00", "fam://notes/%ff", "fam://here/.env",
     "fam://here/tamis.toml", "fam://here/.git/config", "fam://notes/%252e%252e/beside.txt", "fam:///etc/passwd",
     "fam://notes/sub%20dir", "fam://%2e%2e/beside.txt", "fam://no/a.md"],
)  # fmt: skip
def test_nothing_is_read_that_a_place_does_not_show(places: Path, uri: str) -> None:
    """trust.md: nothing outside of what the policy shows, and one answer for what is hidden and what is not there."""
    shown = _shown_places(places)
    with pytest.raises(ResourceError, match=r"^there is no such resource$"):
        shown.read(uri)
    assert shown.stamp(uri) is None


def test_a_place_outside_of_the_root_needs_the_policy_and_trust(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (other / "a.txt").write_text("a")
    given = Settings(resources={"other": str(other)})
    opened = Settings(resources={"other": str(other)}, policy=Policy(read_roots=(str(other),)))
    assert ShownPlaces(given, root, Registry(), outside=True).tops == {}
    assert ShownPlaces(opened, root, Registry(), outside=False).tops == {}
    assert [file.uri for file in ShownPlaces(opened, root, Registry(), outside=True).files()] == ["fam://other/a.txt"]


def test_a_place_that_is_a_link_out_of_the_root_or_is_never_shown_is_none(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / ".ssh").mkdir(parents=True)
    (root / "deep" / ".git").mkdir(parents=True)
    (root / "out").symlink_to("/etc")
    places = {"out": "out", "keys": ".ssh", "history": "deep/.git", "gone": "gone", "nul": "a\0b"}
    assert ShownPlaces(Settings(resources=places), root, Registry(), outside=True).tops == {"gone": str(root / "gone")}
    assert ShownPlaces(Settings(resources=places), root, Registry(), outside=True).files() == []


def test_a_place_that_becomes_a_link_after_it_was_judged_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root" / "notes").mkdir(parents=True)
    (tmp_path / "a.txt").write_text("no")
    shown = ShownPlaces(Settings(resources={"notes": "notes"}), tmp_path / "root", Registry(), outside=False)
    (tmp_path / "root" / "notes").rmdir()
    (tmp_path / "root" / "notes").symlink_to(tmp_path)
    with pytest.raises(ResourceError):
        shown.read("fam://notes/a.txt")
    assert shown.files() == []


def test_a_file_that_is_too_large_says_so(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MAX_SHOWN_BYTES", 3)
    with pytest.raises(ResourceError, match=r"^it has 4 bytes; at most 3 are read$"):
        _shown_places(places).read("fam://notes/a.md")


def test_so_many_files_are_listed_at_most(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MAX_SHOWN_FILES", 2)
    assert len(_shown_places(places).files()) == 2


def _shown_places(root: Path) -> ShownPlaces:
    return ShownPlaces(Settings(resources={"notes": "notes", "here": "."}), root, Registry(), outside=True)


_NAMES = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=("Cs",)), min_size=1, max_size=40)


@given(names=st.lists(_NAMES, min_size=1, max_size=3))
def test_each_file_that_is_listed_is_read_by_its_address(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        path = root.joinpath("notes", *names)
        path.parent.mkdir(parents=True)
        path.write_bytes("/".join(names).encode())
        shown = _shown_places(root)
        files = [file for file in shown.files() if file.uri.startswith("fam://notes/")]
        hidden = any(name.startswith(".") or is_hidden_name(name) for name in names)
        assert len(files) <= (0 if hidden else 1)
        for file in files:
            assert file.uri.isascii()
            assert shown.read(file.uri) == "/".join(names).encode()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.ts", b"let a = 1", {"mimeType": "text/plain", "text": "let a = 1"}),
        ("a.svg", b"<svg/>", {"mimeType": "image/svg+xml", "text": "<svg/>"}),
        ("a.png", b"no image", {"mimeType": "text/plain", "text": "no image"}),
        ("a.tar.gz", b"\x1f\x8b", {"mimeType": "application/gzip", "blob": "H4s="}),
        ("a", b"\0", {"mimeType": "application/octet-stream", "blob": "AA=="}),
        ("data:x-y/z,", b"a", {"mimeType": "text/plain", "text": "a"}),
    ],
)
def test_what_a_file_holds_is_told_by_its_name_and_its_bytes(name: str, content: bytes, told: dict[str, str]) -> None:
    assert as_content(f"fam://notes/{name}", content) == told


def test_the_list_of_resources_goes_on_behind_each_page(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(250):
        (places / "notes" / f"n{number:03}.txt").touch()
    with RawClient(places) as server:
        server.call("core_echo", {"text": "x"})
        uris: list[str] = []
        pages, cursor = 0, None
        while pages == 0 or cursor:
            page = server.modern("resources/list", {"cursor": cursor} if cursor else {})["result"]
            uris += [one["uri"] for one in page["resources"]]
            pages, cursor = pages + 1, page.get("nextCursor")
        assert server.modern("tools/list", {"cursor": write_cursor("fam://x", "u")})["error"]["code"] == -32602
    assert pages == 3
    assert len(uris) == len(set(uris))
    assert uris[0].startswith("tamis:tool/")
    assert uris[-1] == "tamis-result:call-1"
    assert len([uri for uri in uris if uri.startswith("fam://notes/")]) == 253


def test_what_is_kept_of_results_is_bounded_by_its_size_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go first, one that is too large is not kept at all, and what is counted is what is there."""
    kept = Kept(listed=True)
    shown = Shown(cast("Any", None), kept)
    monkeypatch.setattr(showing, "MAX_RESULT_BYTES", 4_500)
    for number, size in enumerate((1_000, 1_000, 1_000, 5_000, 2_000, 10)):
        result = empty_result(f"call-{number}", "t:x", "success")
        result.output = "x" * size
        assert shown.keep(result) == ("" if size == 5_000 else f"tamis-result:call-{number}")
        assert kept.result_bytes == sum(map(len, kept.results.values())) <= 4_500
    assert list(kept.results) == ["call-2", "call-4", "call-5"]
    shown.keep(empty_result("call-4", "t:x", "success"))  # an id that came again
    assert kept.result_bytes == sum(map(len, kept.results.values()))


def test_places_and_paths_are_completed(places: Path) -> None:
    files = {"type": "ref/resource", "uri": "fam://{place}/{+path}"}
    with RawClient(places) as server:
        assert completed(server, files, "place", "n") == ["notes"]
        assert completed(server, files, "path", "a") == []
        told = {"ref": files, "context": {"arguments": {"place": "notes"}}}
        for value, paths in (("a", ["a.md"]), ("sub", ["sub dir/50%25 ü?#.json"]), ("../", []), ("li", [])):
            asked = told | {"argument": {"name": "path", "value": value}}
            assert server.modern("completion/complete", asked)["result"]["completion"]["values"] == paths


def test_profiles_are_told_without_what_is_not_about_calls(root: Path) -> None:
    profile = {"toolCallConfig": {"enabled": True}, "tool_ids_inventory": ["core:echo"], "model": {"apiKey": "hidden"}}
    (root / "tamis.toml").write_text('profile = "agent_profile.json"\n')
    (root / "agent_profile.json").write_text(json.dumps(profile))
    (root / "luna.agent_profile.json").write_text(json.dumps(profile | {"tool_ids_inventory": []}))
    (root / "far.agent_profile.json").symlink_to(root / "agent_profile.json")
    with RawClient(root) as server:
        listed = [one["uri"] for one in server.modern("resources/list")["result"]["resources"]]
        assert [uri for uri in listed if "profile" in uri] == ["tamis:profile", "tamis:profile/luna"]
        shown = json.loads(told_of(server, "tamis:profile")["text"])
        assert shown == {"toolCallConfig": {"enabled": True}, "tool_ids_inventory": ["core:echo"]}
        assert json.loads(told_of(server, "tamis:profile/luna")["text"])["tool_ids_inventory"] == []
        assert server.modern("resources/read", {"uri": "tamis:profile/far"})["error"]["code"] == -32602
        template = {"type": "ref/resource", "uri": "tamis:profile/{agentId}"}
        assert completed(server, template, "agentId", "l") == ["luna"]


def test_a_file_that_is_followed_is_told_when_it_changes(places: Path) -> None:
    method = "notifications/resources/updated"
    with RawClient(places) as server:
        assert server.shake()["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}
        assert server.ask("resources/subscribe", {"uri": "fam://here/.env"})["error"]["code"] == -32002
        assert server.ask("resources/subscribe", {"uri": "fam://notes/a.md"})["result"] == {}
        listening = {"notifications": {"resourceSubscriptions": ["fam://notes/dot.png", "fam://no/x"]}, "_meta": meta()}
        server.send({"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": listening})
        while not (agreed := server.later("notifications/subscriptions/acknowledged")):
            server.next()
        assert agreed[0]["notifications"] == {"resourceSubscriptions": ["fam://notes/dot.png"]}
        (places / "notes" / "a.md").write_text("# Another\n")
        (places / "notes" / "dot.png").unlink()
        while len(server.later(method)) < 2:
            server.next()
        told = sorted(server.later(method), key=lambda params: params["uri"])
        assert told[0] == {"uri": "fam://notes/a.md"}
        assert told[1] == {"uri": "fam://notes/dot.png", "_meta": {"io.modelcontextprotocol/subscriptionId": "s"}}
        assert server.ask("resources/unsubscribe", {"uri": "fam://notes/a.md"})["result"] == {}
        too_many = {"uri": [1]}
        assert server.ask("resources/subscribe", too_many)["error"]["code"] == -32602


def test_followed_resources_are_bounded() -> None:
    class Present:
        async def stamps(self, uris: tuple[str, ...]) -> dict[str, object]:
            return dict.fromkeys(uris, 1)

    async def follow() -> None:
        following = Following(cast("Any", Present()), print)
        assert len(await following.begin(tuple(map(str, range(MAX_FOLLOWED))))) == MAX_FOLLOWED
        assert await following.begin(("1",)) == ["1"]
        with pytest.raises(RpcError, match="at most 100 resources"):
            await following.begin(("other",))
        following.end(tuple(map(str, range(MAX_FOLLOWED))))
        assert await following.begin(("other",)) == ["other"]
        following.close()

    asyncio.run(follow())
