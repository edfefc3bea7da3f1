"""Request ∩ policy = grant, and every refusal has its reason (ruling 38, D39-D41, D85)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.protocols.manifest.reading import FileAccess, Manifest, SecurityContext, read_manifest
from tamis.server.runtime.config import Policy
from tamis.server.runtime.permissions import Grant, grant


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


def files(read: list[str] | None = None, write: list[str] | None = None, **policy: Any) -> Grant:
    context = {"fileAccess": {"allowRead": read or [], "allowWrite": write or []}}
    return grant(manifest_with(context), Policy(**policy))


def hosts(asked: list[str], *opened: str, cidrs: tuple[str, ...] = ()) -> Grant:
    context = {"networkAccess": {"allowHosts": asked}}
    return grant(manifest_with(context), Policy(allow_hosts=opened, allow_cidrs=cidrs))


def test_nothing_asked_is_nothing_granted() -> None:  # D72
    found = grant(manifest_with({}), Policy(allow_hosts=("*",), write_roots=("/",)))
    assert (found.read, found.write, found.own_write, found.hosts, found.blocked) == ((), (), (), (), "")


@pytest.mark.parametrize("pattern", ["self", "./*", "./**", "data", "data/**"])
def test_reading_below_the_own_folder_is_always_granted(pattern: str) -> None:  # D39
    found = files(read=[pattern])
    assert (found.read, found.permissions.granted.read, found.permissions.denied) == ((), [pattern], [])


def test_writing_a_folder_below_the_own_is_granted_when_declared() -> None:  # D18
    assert files(write=[".cache/**"]).own_write == (".cache",)


@pytest.mark.parametrize("pattern", ["./**", "self", "./*"])
def test_writing_the_own_folder_as_a_whole_is_refused(pattern: str) -> None:
    # Reading the manifest refuses it already; the grant does not rely on that.
    access = FileAccess(allow_write=(pattern,))
    manifest = msgspec.structs.replace(manifest_with({}), security_context=SecurityContext(file_access=access))
    found = grant(manifest, Policy(write_roots=("/",)))
    assert found.own_write == ()
    assert "its own script" in found.permissions.denied[0].reason


def test_an_absolute_path_needs_a_root_of_the_policy(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    assert files(read=[f"{inside}/**"]).permissions.denied[0].reason.startswith("policy.readRoots")
    assert files(read=[f"{inside}/**"], read_roots=(str(tmp_path),)).read == (str(inside.resolve()),)
    assert files(write=[str(inside)], read_roots=(str(tmp_path),)).write == ()
    assert files(write=[str(inside)], write_roots=(str(tmp_path),)).write == (str(inside.resolve()),)


def test_a_link_out_of_a_root_is_not_inside_it(tmp_path: Path) -> None:  # S1
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "secret")
    found = files(read=[str(tmp_path / "root" / "link")], read_roots=(str(tmp_path / "root"),))
    assert found.read == ()


def test_a_folder_whose_name_only_begins_like_a_root_is_not_inside_it(tmp_path: Path) -> None:  # S1
    found = files(read=[f"{tmp_path}/rootkit"], read_roots=(f"{tmp_path}/root",))
    assert found.read == ()


def test_a_resource_uri_is_no_path() -> None:
    access = FileAccess(allow_read=("fam://a/b",), allow_write=("fam://a/b",))
    manifest = msgspec.structs.replace(manifest_with({}), security_context=SecurityContext(file_access=access))
    found = grant(manifest, Policy())
    assert (found.read, found.own_write, len(found.permissions.denied)) == ((), (), 2)


def test_a_host_needs_both_sides() -> None:  # D40, D17
    assert (
        hosts(["example.com"]).permissions.denied[0].reason == "policy.allowHosts in tamis.toml does not open this host"
    )
    assert hosts(["example.com"], "example.com").hosts == ("example.com",)
    assert hosts(["api.example.com"], "*.example.com").hosts == ("api.example.com",)
    assert hosts(["example.com"], "*.example.com").hosts == ()


def test_a_request_wider_than_the_policy_is_narrowed_to_it() -> None:
    assert hosts(["*.example.com"], "api.example.com").hosts == ("api.example.com",)


def test_any_public_host_is_not_any_address() -> None:
    assert hosts(["example.com"], "*").hosts == ("example.com",)
    assert hosts(["127.0.0.1"], "*").hosts == ()
    assert hosts(["127.0.0.1"], "*", cidrs=("127.0.0.0/8",)).hosts == ("127.0.0.1",)


def test_a_required_capability_that_is_not_given_keeps_the_tool_from_running() -> None:  # D41
    manifest = manifest_with({"requiredCapabilities": ["subprocess"]})
    assert "policy.capabilities" in grant(manifest, Policy()).blocked
    assert grant(manifest, Policy(capabilities=("subprocess",))).blocked == ""


def test_an_unknown_capability_is_refused_even_if_the_policy_names_it() -> None:  # D41
    found = grant(manifest_with({"requiredCapabilities": ["root"]}), Policy(capabilities=("root",)))
    assert "no capability of this name" in found.blocked
