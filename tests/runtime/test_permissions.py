"""Request ∩ policy = grant, and every refusal has its reason (ruling 38, D39-D41, D72, D85)."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.protocols.manifest.reading import FileAccess, Manifest, SecurityContext, read_manifest
from tamis.sandbox.network.hosts import opening
from tamis.server.runtime.policy.path_grants import MAX_PATHS, Place, expand
from tamis.server.runtime.policy.permissions import MAX_REQUESTS, Grant, grant, permissions_of
from tamis.server.runtime.settings.config import AuditSettings, Policy, Settings
from tamis.server.runtime.tools.reading import load_registry
from tests.sample_tools import make_tool


def manifest_with(context: dict[str, Any]) -> Manifest:
    fields = {
        "toolId": "t:t",
        "displayName": "t",
        "description": "d",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": "t.py", "language": "python"},
        "securityContext": context,
    }
    reading = read_manifest(json.dumps(fields))
    assert reading.manifest is not None, reading.diagnostics
    return reading.manifest


def files(read: Sequence[str] = (), write: Sequence[str] = (), place: Place | None = None, **policy: Any) -> Grant:
    # Reading a manifest refuses some of these patterns already; the grant does not rely on that.
    access = FileAccess(allow_read=tuple(read), allow_write=tuple(write))
    manifest = msgspec.structs.replace(manifest_with({}), security_context=SecurityContext(file_access=access))
    return grant(manifest, Policy(**policy), place)


def hosts(asked: list[str], *opened: str, cidrs: tuple[str, ...] = ()) -> Grant:
    context = {"networkAccess": {"allowHosts": asked}}
    return grant(manifest_with(context), Policy(allow_hosts=opened, allow_cidrs=cidrs))


def refusal(found: Grant) -> str:
    """The reason of the only refusal; nothing else was granted."""
    assert (found.read, found.write, found.own_write) == ((), (), ())
    assert len(found.permissions.denied) == 1, found.permissions
    return found.permissions.denied[0].reason


def written(found: Grant) -> list[str]:
    return [folder.path for folder in (*found.write, *found.own_write)]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A real folder with a tool's folder, a folder of data and one that no root holds."""
    real = tmp_path.resolve()
    for name in ("tools/t", "data/sub", "outside"):
        (real / name).mkdir(parents=True)
    for name in ("tools/t/t.py", "data/a.csv", "data/b.csv", "data/c.txt", "data/sub/d.csv", "outside/secret"):
        (real / name).write_text("x")
    return real


@pytest.fixture
def place(top: Path) -> Place:
    return Place(
        folder=f"{top}/tools/t",
        hidden=(f"{top}/state",),
        protected=(f"{top}/tools/t/t.py", f"{top}/tools/t/t.tool.json", f"{top}/tamis.toml"),
        neighbours=(f"{top}/tools/t", f"{top}/tools/other"),
        searched=(f"{top}/tools",),
    )


def test_nothing_asked_is_nothing_granted() -> None:  # D72
    found = grant(manifest_with({}), Policy(allow_hosts=("*",), write_roots=("/",)))
    assert (found.read, found.write, found.own_write, found.hosts, found.blocked) == ((), (), (), (), "")


@pytest.mark.parametrize(
    "pattern", ["self", ".", "./", "*", "**", "./*", "./**", "data", "./data/**", "a/*.json", "%41"]
)
def test_reading_below_the_own_folder_is_always_granted(pattern: str) -> None:  # D39
    found = files(read=[pattern])
    assert (found.read, found.permissions.granted.read, found.permissions.denied) == ((), [pattern], [])


@pytest.mark.parametrize("pattern", [".cache/**", ".cache", "./.cache/", ".//.cache/./**"])
def test_writing_a_folder_below_the_own_is_granted_when_declared(pattern: str, place: Place) -> None:  # D18
    found = files(write=[pattern], place=place)
    assert (written(found), found.permissions.granted.write) == ([f"{place.folder}/.cache"], [pattern])
    assert not os.path.exists(f"{place.folder}/.cache"), "asking makes nothing yet"


@pytest.mark.parametrize("pattern", ["./**", "self", "./*", ".", "*", "./.", "/", "/**", "//", "/./"])
def test_writing_the_own_folder_or_everything_is_refused(pattern: str, place: Place) -> None:
    assert refusal(files(write=[pattern], place=place, write_roots=("/",)))


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("../x", "'..'"),
        ("a/../../x", "'..'"),
        ("a/..", "'..'"),
        ("%2e%2e/x", "escapes"),
        ("a%2Fb", "escapes"),
        ("a%5cb", "escapes"),
        ("a%00", "escapes"),
        ("a\\b", "backslash"),
        ("C:\\x", "backslash"),
        ("C:/x", "URI"),
        ("c:x", "another system"),
        ("//server\\share", "backslash"),
        ("a\0b", "NUL"),
        ("a\nb", "control"),
        ("a\u202eb", "cannot be seen"),
        ("a\u200bb", "cannot be seen"),
        ("~", "~"),
        ("~root/x", "~"),
        ("$HOME/x", "variables"),
        ("${HOME}", "variables"),
        ("%USERPROFILE%/x", "variables"),
        ("file:///etc/passwd", "URI"),
        ("file:/etc/passwd", "URI"),
        ("fam://a/b", "URI"),
        ("", "empty"),
        ("   ", "empty"),
        (" a", "blank"),
        ("a ", "blank"),
        ("{a,b}", "braces"),
        ("a" * 256, "255 bytes"),
        ("é" * 128, "255 bytes"),
        ("a/" * 65, "64 parts"),
        ("a" * 5000, "4096 characters"),
        ("a\ud800", "no bytes"),
    ],
)
def test_a_spelling_that_no_policy_can_grant_is_refused(pattern: str, reason: str, place: Place) -> None:  # D13
    for found in (files(read=[pattern], place=place), files(write=[pattern], place=place)):
        assert reason in refusal(found)


@pytest.mark.parametrize(
    "pattern", ["/srv/dаta", "／srv/data", "/SRV/DATA", "/srv/data ", "/srv/da\u0301ta", "/srv/data./x"]
)
def test_a_look_alike_of_a_root_is_another_path(pattern: str) -> None:
    found = files(read=[pattern], write=[pattern], read_roots=("/srv/data",), write_roots=("/srv/data",))
    assert (found.read, found.write) == ((), ())


def test_an_absolute_path_needs_a_root_of_the_policy(top: Path, place: Place) -> None:
    data = f"{top}/data"
    assert refusal(files(read=[f"{data}/**"])).startswith("policy.readRoots")
    assert refusal(files(write=[data], read_roots=(str(top),))).startswith("policy.writeRoots")
    assert files(read=[f"{data}/**"], read_roots=(str(top),)).read == (data,)
    assert files(read=[f"{data}/a.csv"], read_roots=(data,)).read == (f"{data}/a.csv",)
    assert written(files(write=[f"{data}/out/new/**"], place=place, write_roots=(data,))) == [f"{data}/out/new"]
    assert not os.path.exists(f"{data}/out")


@pytest.mark.parametrize("root", ["", ".", "data", "relative/x", "~", "\0"])
def test_a_root_that_is_no_absolute_path_opens_nothing(root: str, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(top)
    assert refusal(files(read=[f"{top}/data"], read_roots=(root,)))


def test_a_root_may_be_a_link_and_is_resolved_once(top: Path) -> None:
    (top / "link").symlink_to(top / "data")
    for asked in (f"{top}/link/a.csv", f"{top}/data/a.csv"):
        assert files(read=[asked], read_roots=(f"{top}/link",)).read == (f"{top}/data/a.csv",)


@pytest.mark.parametrize("target", ["outside", "outside/secret", "data/a.csv", "nowhere", "/etc"])
def test_a_link_below_a_root_is_not_followed(top: Path, target: str) -> None:  # S1, S2
    (top / "data" / "link").symlink_to(top / target)
    roots = {"read_roots": (f"{top}/data",), "write_roots": (f"{top}/data",)}
    for asked in ("link", "link/**", "link/new"):
        for found in (files(read=[f"{top}/data/{asked}"], **roots), files(write=[f"{top}/data/{asked}"], **roots)):
            assert "symbolic link" in refusal(found)
    assert files(read=[f"{top}/data/l*"], **roots).read == ()
    assert files(read=[f"{top}/data/*/s*"], **roots).read == ()


def test_a_link_in_the_own_folder_is_never_written_through(top: Path, place: Place) -> None:  # S2
    os.symlink(top / "outside", f"{place.folder}/out")
    assert "symbolic link" in refusal(files(write=["out/new"], place=place))


def test_a_folder_whose_name_only_begins_like_a_root_is_not_inside_it(top: Path) -> None:  # S1
    (top / "database").mkdir()
    assert refusal(files(read=[f"{top}/database"], read_roots=(f"{top}/data",)))


def test_what_is_not_there_is_granted_and_shows_nothing(top: Path) -> None:
    found = files(read=[f"{top}/data/new.csv", f"{top}/data/*.xml"], read_roots=(f"{top}/data",))
    assert (found.read, len(found.permissions.granted.read), found.permissions.denied) == ((), 2, [])


def test_a_glob_is_expanded_to_what_is_there(top: Path) -> None:
    def below(pattern: str) -> list[str]:
        found = files(read=[f"{top}/data/{pattern}"], read_roots=(f"{top}/data",))
        return [path.removeprefix(f"{top}/data/") for path in found.read]

    (top / "data" / ".hidden.csv").write_text("x")
    os.mkfifo(top / "data" / "pipe.csv")
    (top / "data" / "folder.csv").mkdir()
    assert below("*.csv") == ["a.csv", "b.csv", "folder.csv"]
    assert below("[ab].csv") == ["a.csv", "b.csv"]
    assert below("?.csv") == ["a.csv", "b.csv"]
    assert below("**/d.csv") == ["sub/d.csv"]
    assert below("**/*.txt") == ["c.txt"]
    assert below("*/d.csv") == ["sub/d.csv"]
    assert below(".h*") == [".hidden.csv"]
    assert below("*") == ["a.csv", "b.csv", "c.txt", "folder.csv", "sub"]


def test_a_glob_must_begin_below_a_root(top: Path) -> None:
    assert refusal(files(read=[f"{top}/*/a.csv"], read_roots=(f"{top}/data",)))


def test_a_glob_that_fits_too_much_is_cut_and_said(top: Path) -> None:
    for number in range(MAX_PATHS + 10):
        (top / "data" / f"n{number:04}").write_text("x")
    found = files(read=[f"{top}/data/n*"], read_roots=(f"{top}/data",))
    assert len(found.read) == MAX_PATHS
    assert "name their folder" in found.permissions.denied[0].reason


@pytest.mark.parametrize("call", ["open", "scandir"])
def test_a_glob_passes_over_a_folder_that_cannot_be_read(call: str, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = getattr(os, call)

    def refusing(folder: str | int, *rest: Any) -> Any:
        path = folder if isinstance(folder, str) else os.readlink(f"/proc/self/fd/{folder}")
        if path == f"{top}/data/sub":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(folder, *rest)

    assert expand(f"{top}/data", ("**", "*.csv")) == [f"{top}/data/{name}" for name in ("a.csv", "b.csv", "sub/d.csv")]
    monkeypatch.setattr(os, call, refusing)
    assert expand(f"{top}/data", ("**", "*.csv")) == [f"{top}/data/{name}" for name in ("a.csv", "b.csv")]


def test_endless_lists_of_requests_are_bounded(place: Place) -> None:
    found = files(write=[f"d{number}" for number in range(100_000)], place=place)
    assert len(found.own_write) == MAX_PATHS
    assert f"first {MAX_REQUESTS}" in found.permissions.denied[0].reason
    many = hosts([f"h{number}.example" for number in range(MAX_REQUESTS + 5)], "*")
    assert (len(many.hosts), len(many.permissions.denied)) == (MAX_REQUESTS, 1)


def test_a_capability_is_looked_at_once_and_none_is_passed_over() -> None:  # D41
    manifest = manifest_with({"requiredCapabilities": ["subprocess"] * 1_000 + ["gpu"]})
    found = grant(manifest, Policy(capabilities=("subprocess",)))
    assert found.permissions.granted.capabilities == ["subprocess"]
    assert "'gpu'" in found.blocked


@pytest.mark.parametrize("pattern", ["*.log", "out/*", "out/*.txt", "out/?", "o[u]t", "out/**/x"])
def test_only_a_folder_can_be_written(pattern: str, place: Place) -> None:
    assert "only a folder" in refusal(files(write=[pattern], place=place))
    assert refusal(files(write=["/srv/" + pattern], place=place, write_roots=("/srv",)))


def test_a_file_or_a_special_file_is_not_written(top: Path) -> None:
    assert "is a file" in refusal(files(write=[f"{top}/data/a.csv"], write_roots=(f"{top}/data",)))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{top}/data/s")
        for found in (
            files(read=[f"{top}/data/s"], read_roots=(f"{top}/data",)),
            files(write=[f"{top}/data/s"], write_roots=(f"{top}/data",)),
        ):
            assert "it is a socket, neither a plain file nor a folder" in refusal(found)


@pytest.mark.parametrize(
    "path", ["/proc", "/proc/self/**", "/sys/kernel", "/dev", "/dev/shm", "/run/user", "/etc", "/usr", "/home"]
)
def test_the_places_of_the_system_are_closed_whatever_the_policy_says(path: str) -> None:
    roots = {"read_roots": ("/",), "write_roots": ("/",)}
    assert refusal(files(read=[path], **roots))
    assert refusal(files(write=[path], **roots))


@pytest.mark.parametrize("path", ["/etc/hostname", "/usr/lib/x", "/tool/x", "/env/lib", "/stage/x"])
def test_where_the_sandbox_has_its_own_nothing_else_is_shown(path: str) -> None:
    assert "nothing can be shown" in refusal(files(read=[path], read_roots=("/",)))


@pytest.mark.parametrize("path", ["/etc/app", "/usr/local/share/app", "/var/lib/app", "/var/log/app"])
def test_the_systems_own_folders_are_never_written(path: str) -> None:
    assert "never written" in refusal(files(write=[path], write_roots=(path,)))


def test_a_tool_that_stands_in_a_folder_of_the_system_may_write_below_its_own() -> None:
    found = files(write=[".cache"], place=Place(folder="/var/lib/tamis/tools/t"))
    assert written(found) == ["/var/lib/tamis/tools/t/.cache"]


def test_what_every_sandbox_shows_needs_no_place_of_its_own() -> None:
    found = files(read=["/usr/share/zoneinfo/**"], read_roots=("/usr/share",))
    assert (found.read, found.permissions.granted.read) == ((), ["/usr/share/zoneinfo/**"])


def test_secrets_of_homes_are_closed_whatever_the_policy_says(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = top / "home" / "me"
    (home / ".ssh").mkdir(parents=True)
    (home / "work").mkdir()
    monkeypatch.setenv("HOME", str(home))
    (top / "backup" / ".gnupg").mkdir(parents=True)
    roots = {"read_roots": (str(top),), "write_roots": (str(top),)}
    for path in (home, home.parent, home / ".ssh", home / ".ssh" / "id", top, top / "backup", top / "x" / ".aws" / "c"):
        assert refusal(files(read=[f"{path}/**"], **roots))
        assert refusal(files(write=[str(path)], **roots))
    assert files(read=[f"{home}/work"], **roots).read == (f"{home}/work",)


def test_the_daemons_own_state_is_closed(top: Path, place: Place) -> None:
    (top / "state").mkdir()
    roots = {"read_roots": (str(top),), "write_roots": (str(top),)}
    for path in (f"{top}/state", f"{top}/state/audit.jsonl", f"{top}/**"):
        assert "keeps for itself" in refusal(files(read=[path], place=place, **roots))
        assert refusal(files(write=[path], place=place, **roots))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("tools", "its own script"),
        ("tools/t", "its own script"),
        ("tools/other/cache", "another tool"),
        ("tools/new", "searched for tools"),
    ],
)
def test_no_folder_is_writable_that_decides_what_tools_do(path: str, reason: str, top: Path, place: Place) -> None:
    found = files(write=[f"{top}/{path}/**"], place=place, write_roots=(f"{top}/tools",))
    assert reason in refusal(found)


@pytest.mark.parametrize("name", ["__pycache__", "node_modules", ".venv/lib", "src/__pycache__/x", ".git"])
def test_folders_of_code_are_not_writable(name: str, place: Place) -> None:
    assert "holds code" in refusal(files(write=[name], place=place))


@pytest.mark.parametrize("name", ["requirements.txt", "package.json", "uv.lock", "pyproject.toml", "tamis.toml"])
def test_a_folder_with_a_defining_file_is_not_writable(name: str, place: Place) -> None:
    os.mkdir(f"{place.folder}/sub")
    Path(place.folder, "sub", name).write_text("")
    assert name in refusal(files(write=["sub/**"], place=place))


def test_a_folder_with_a_script_of_any_tool_is_not_writable(place: Place) -> None:
    held = msgspec.structs.replace(place, protected=(*place.protected, f"{place.folder}/src/deep/main.py"))
    assert "'main.py'" in refusal(files(write=["src/**"], place=held))
    assert written(files(write=["source"], place=held))


def test_a_folder_that_is_masked_in_a_project_is_not_writable_there(place: Place) -> None:
    def reason(asked: str, stands: Place) -> str:
        found = files(write=[asked], place=stands)
        return refusal(found) if found.permissions.denied else ""

    masked = "'.secrets' is hidden from tools at the top of a project"
    project = msgspec.structs.replace(place, project=place.folder)
    assert [reason(asked, project) for asked in (".secrets", ".secrets/deep", "deep/.secrets")] == [masked, masked, ""]
    assert reason(".secrets", place) == ""
    # the first mark makes a project of the folder
    assert reason(".vscode", place) == masked.replace(".secrets", ".vscode")
    Path(place.folder, "tamis.toml").touch()
    assert reason(".secrets", place) == masked


def test_nested_writable_folders_are_one(place: Place) -> None:
    found = files(write=["out/a", "out", "out/b/c", "out2"], place=place)
    assert written(found) == [f"{place.folder}/out", f"{place.folder}/out2"]
    assert len(found.permissions.granted.write) == 4


def test_a_read_below_a_writable_folder_is_said_to_be_covered(top: Path, place: Place) -> None:
    data = f"{top}/data"
    found = files(
        read=[f"{data}/sub", data], write=[f"{data}/sub"], place=place, read_roots=(data,), write_roots=(data,)
    )
    assert (found.read, written(found)) == ((data,), [f"{data}/sub"])
    assert [denied.value for denied in found.permissions.denied] == [f"{data}/sub"]
    assert "below a folder granted for writing" in found.permissions.denied[0].reason


def test_every_refusal_of_a_policy_has_its_remedy_and_where_it_is_in_force(top: Path) -> None:
    for refused, setting, text in (
        (files(read=[f"{top}/data/**"]), "readRoots", f"{top}/data"),
        (files(write=[f"{top}/data"]), "writeRoots", f"{top}/data"),
        (hosts(["example.com"]), "allowHosts", "example.com"),
    ):
        reason = refused.permissions.denied[0].reason
        assert f'add "{text}" to policy.{setting} of your own configuration' in reason
        assert "of a folder that you trust (`tamis trust`)" in reason


@pytest.mark.parametrize("pattern", ["/**", "/proc/self/environ", "~/.ssh/id_rsa"])
def test_nobody_is_told_to_open_what_stays_closed_or_everything(pattern: str) -> None:
    pattern = pattern.replace("~", str(Path.home()))
    assert "your own configuration" not in refusal(files(read=[pattern]))


def test_a_path_that_would_be_two_roots_when_copied_is_one_text() -> None:
    reason = refusal(files(read=['/srv", "/']))
    assert 'add "/srv\\", \\"" to' in reason or 'add "/srv\\", \\"/" to' in reason


def test_nested_reads_are_one(top: Path) -> None:
    data = f"{top}/data"
    assert files(read=[f"{data}/a.csv", data, f"{data}/sub"], read_roots=(data,)).read == (data,)


def test_a_host_needs_both_sides() -> None:  # D40, D17
    reason = f"policy.allowHosts in force here does not open this host; {opening('allowHosts', 'example.com')}"
    assert hosts(["example.com"]).permissions.denied[0].reason == reason
    assert hosts(["example.com"], "example.com").hosts == ("example.com",)
    assert hosts(["api.example.com"], "*.example.com").hosts == ("api.example.com",)
    assert hosts(["example.com"], "*.example.com").hosts == ()


def test_a_request_wider_than_the_policy_is_narrowed_to_it() -> None:
    assert hosts(["*.example.com"], "api.example.com").hosts == ("api.example.com",)


def test_any_public_host_is_not_any_address() -> None:
    assert hosts(["example.com"], "*").hosts == ("example.com",)
    assert hosts(["10.1.2.3"], "*").hosts == ()
    assert hosts(["10.1.2.3"], "*", cidrs=("10.0.0.0/8",)).hosts == ("10.1.2.3",)
    reason = hosts(["10.1.2.3"], "*").permissions.denied[0].reason
    assert "10.1.2.3 is not public" in reason and opening("allowCidrs", "10.1.2.3/32") in reason


OPENING = opening("allowHosts", "api.test:18765")


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (("*",), f"it has '*', which means ports 80 and 443; {OPENING}"),
        (("api.test",), f"it has 'api.test', which means ports 80 and 443; {OPENING}"),
        (("api.test:8080", "other.test"), f"it has 'api.test:8080'; {OPENING}"),
    ],
)
def test_a_port_that_the_policy_does_not_open_is_told_as_one(policy: tuple[str, ...], told: str) -> None:
    reason = hosts(["api.test:18765"], *policy).permissions.denied[0].reason
    assert reason == f"policy.allowHosts in force here opens this host, but not this port: {told}"
    assert hosts(["api.test:18765"], *policy, "api.test:18765").hosts == ("api.test:18765",), "as was said"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "api.localhost", "127.0.0.1", "[::1]", "[0:0::1]"])
@pytest.mark.parametrize("port", ["", ":8000", ":*"])
def test_the_sandboxs_own_loopback_is_no_grant_and_the_way_to_the_machines_is_said(host: str, port: str) -> None:
    found = hosts([host + port], host + port, "*:*", cidrs=("127.0.0.0/8", "::1/128"))
    assert found.hosts == () and found.permissions.granted.hosts == []
    reason = found.permissions.denied[0].reason
    assert "is the sandbox itself" in reason
    address = "::1" if host.startswith("[") else "127.0.0.1"
    assert f'policy.pin = {{ "host.test" = "{address}" }}' in reason


def test_other_addresses_of_the_loopback_range_go_through_the_proxy() -> None:
    assert hosts(["127.0.0.2:80"], "127.0.0.2:80").hosts == ("127.0.0.2:80",)


def test_a_required_capability_that_is_not_given_keeps_the_tool_from_running() -> None:  # D41
    manifest = manifest_with({"requiredCapabilities": ["subprocess"]})
    assert "policy.capabilities" in grant(manifest, Policy()).blocked
    assert grant(manifest, Policy(capabilities=("subprocess",))).blocked == ""


def test_an_unknown_capability_is_refused_even_if_the_policy_names_it() -> None:  # D41
    found = grant(manifest_with({"requiredCapabilities": ["root"]}), Policy(capabilities=("root",)))
    assert "no capability of this name" in found.blocked


@pytest.mark.parametrize("name", ["network", "write"])
def test_a_tool_that_must_have_what_it_was_not_granted_is_blocked_with_the_cause(name: str) -> None:
    policy = Policy(capabilities=(name,))
    context: dict[str, Any] = {"requiredCapabilities": [name]}
    assert "asks for nothing" in grant(manifest_with(context), policy).blocked
    context |= {"networkAccess": {"allowHosts": ["a.example"]}, "fileAccess": {"allowWrite": ["/srv/x"]}}
    assert "policy." in grant(manifest_with(context), policy).blocked
    opened = msgspec.structs.replace(policy, allow_hosts=("a.example",), write_roots=("/srv",))
    found = grant(manifest_with(context), opened)
    assert (found.blocked, found.permissions.granted.capabilities) == ("", [name])


def test_a_tool_that_must_build_needs_the_operators_allow_build() -> None:
    manifest = manifest_with({"requiredCapabilities": ["build"]})
    assert "policy.allowBuild" in grant(manifest, Policy(capabilities=("build",))).blocked
    assert grant(manifest, Policy(capabilities=("build",), allow_build=True)).blocked == ""


@pytest.mark.parametrize("asked", ["", "/**", "/below/**"])
def test_a_root_that_is_not_there_grants_nothing_and_says_what_to_do(top: Path, asked: str) -> None:  # D85
    missing = f"{top}/outdir"
    wished = {"write": [missing + asked], "write_roots": (missing,)}
    reason = refusal(files(**wished))
    assert reason == f"policy.writeRoots in force here names {missing}, which is not there: make that folder"
    assert "policy.readRoots" in refusal(files(read=[missing + asked], read_roots=(missing,)))
    os.mkdir(missing)
    assert written(files(**wished)) == [missing + asked.removesuffix("/**")]


def test_a_place_of_the_sandboxs_own_is_refused_with_the_reason() -> None:
    reason = refusal(files(read=["/etc/hostname"], read_roots=("/etc",)))
    assert reason == "nothing can be shown at /etc/hostname: the sandbox has a /etc of its own"


@pytest.mark.parametrize("pattern", ["out", "out/**", "etc/cron.d", "./out"])
def test_a_tool_that_stands_in_no_folder_writes_nothing_below_it(
    pattern: str,
) -> None:  # tools of hosts and built-in ones
    found = files(write=[pattern], place=Place(), write_roots=("/",))
    assert "stands in no folder" in refusal(found)
    assert found.permissions.granted.write == []
    # Without a place at all it is the same.
    assert "stands in no folder" in refusal(files(write=[pattern], write_roots=("/",)))


@pytest.mark.parametrize(
    ("kind", "asked", "reason"),
    [("allowRead", "{root}/records/**", "keeps for itself"), ("allowWrite", "cache", "decides what tools do")],
)
def test_the_rights_that_are_told_are_those_of_the_tools_place(
    tmp_path: Path, kind: str, asked: str, reason: str
) -> None:
    folder = make_tool(
        tmp_path, "t:outer", securityContext={"fileAccess": {kind: [asked.format(root=tmp_path.resolve())]}}
    )
    make_tool(folder / "cache", "t:inner")
    settings = Settings(policy=Policy(read_roots=(str(tmp_path),)), audit=AuditSettings(path="records"))
    registry = load_registry(tmp_path, settings)
    tool = registry.get("t:outer")
    assert tool is not None
    told = permissions_of(tool, registry, settings, tmp_path)
    assert (told.granted.read, told.granted.write) == ([], [])
    assert [reason in item.reason for item in told.denied] == [True]
