"""Logins to MCP servers: where tokens come from, how they are renewed, and that they go nowhere else (mcp, Client; issue 18)."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import stat
import sys
import threading
import types
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import ExecutionResult
from tamis.server.cli.mcp_login import log_in
from tamis.server.runtime.handlers.mcp.logins import Login, Logins
from tamis.server.runtime.handlers.mcp.oauth import Client, OAuthError, is_of, issuer_documents, read_challenge
from tamis.server.runtime.settings.loading import load_settings
from tests.runtime import mcp_calls
from tests.runtime.oauth_server import Guarded


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Guarded]:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setitem(sys.modules, "keyring", None)
    made = Guarded()
    yield made
    made.close()


def settle(root: Path, url: str, more: str = "", policy: str = "", hosts: str = '"far.test:*"') -> None:
    pins = '"far.test" = "127.0.0.1", "other.test" = "127.0.0.1"'
    (root / "tamis.toml").write_text(
        f'[policy]\nallowCidrs = ["127.0.0.0/8"]\nallowHosts = [{hosts}]\npin = {{ {pins} }}\n{policy}\n'
        f'[mcpServers.far]\nurl = "{url}"\n{more}\n'
    )
    manifest = {
        "toolId": "mcp:echo",
        "displayName": "echo",
        "description": "Gives back what it was given, by a server that is far away.",
        "version": "1.0.0",
        "handler": {"type": "mcp", "server": "far", "tool": "echo"},
    }
    (root / "echo.tool.json").write_text(json.dumps(manifest))


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def browser(address: str, change: Callable[[str], str] = lambda where: where) -> None:
    """What a person's browser does: opens the address at the authorization server, and goes where that leads."""
    parts = urlsplit(address)
    here = parts._replace(netloc=f"127.0.0.1:{parts.port}").geturl()
    try:
        urllib.request.build_opener(_Stay()).open(here).close()
    except urllib.error.HTTPError as answer:
        with answer:
            urllib.request.urlopen(change(answer.headers["Location"])).close()


def login(
    root: Path, change: Callable[[str], str] = lambda where: where, scopes: list[str] | None = None, secret: str = ""
) -> Login:
    settings = load_settings(root).settings
    seen: list[BaseException] = []

    def show(address: str) -> None:
        def go() -> None:
            try:
                browser(address, change)
            except urllib.error.HTTPError as error:
                seen.append(error)

        threading.Thread(target=go, daemon=True).start()

    made = asyncio.run(log_in(settings.mcp_servers["far"], settings, scopes or [], show, secret))
    Logins().keep(made)
    return made


def calls(root: Path, times: int = 1, between: Callable[[], None] = lambda: None) -> list[ExecutionResult]:
    from tamis.server.runtime.runtime import Runtime

    async def work(around: Any) -> list[ExecutionResult]:
        results: list[ExecutionResult] = []
        for number in range(times):
            if number:
                between()
            results.append(await mcp_calls.call(around, "echo", text="x"))
        return results

    return mcp_calls.run(Runtime(root), work)


def authorizations(far: Guarded) -> list[dict[str, str]]:
    """What browsers asked for, from now on."""
    asked: list[dict[str, str]] = []
    authorize = far.authorize

    def note(at: Any, told: dict[str, str]) -> None:
        asked.append(told)
        authorize(at, told)

    far.authorize = note  # type: ignore[method-assign]
    return asked


def words(result: ExecutionResult) -> str:
    return "" if result.error is None else str(result.error.message)


def test_a_call_without_a_login_ends_with_the_command_that_a_person_runs(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    (result,) = calls(tmp_path)
    assert result.status == "error"
    assert "`tamis mcp login far`" in words(result)
    assert set(far.paths()) == {"/mcp"}, "a call begins no login"
    assert not any("initialize" in body for *_, body in far.asked), "what refuses a token says nothing of the revision"


def test_after_a_login_calls_have_its_token_and_show_it_to_nobody(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    made = login(tmp_path)
    results = calls(tmp_path, times=2)
    assert [one.status for one in results] == ["success", "success"]
    assert far.tokens_seen()[-1] == f"Bearer {made.tokens.access}"
    # the server gave it back, as one that wants it told would
    assert made.tokens.access not in str(results)
    assert "Bearer" in str(results[0].output)


def test_a_login_asks_as_the_specification_wants_it(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    asked = authorizations(far)
    login(tmp_path)
    (told,) = asked
    assert told["resource"] == far.url
    assert told["code_challenge_method"] == "S256"
    assert told["scope"] == "read"
    assert urlsplit(told["redirect_uri"]).hostname == "127.0.0.1"
    assert far.forms[0]["resource"] == far.url
    assert far.clients[0]["application_type"] == "native"


def test_a_login_is_in_a_file_that_only_its_user_reads(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    made = login(tmp_path)
    files = [path for path in (tmp_path / "state" / "mcp-logins").iterdir() if path.suffix == ".json"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600]
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700
    assert Logins().get(far.url) == made
    assert made.tokens.access not in repr(made)
    files[0].chmod(0o644)
    assert Logins().get(far.url) is None, "others could have written it"


def test_a_login_stands_in_the_keyring_where_there_is_one(
    far: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: dict[tuple[str, str], str] = {}
    keyring: Any = types.ModuleType("keyring")
    keyring.set_password = lambda service, user, text: held.__setitem__((service, user), text)
    keyring.get_password = lambda service, user: held.get((service, user))
    keyring.delete_password = lambda service, user: held.pop((service, user))
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    settle(tmp_path, far.url)
    made = login(tmp_path)
    assert list(held) == [("tamis mcp", far.url)]
    (file,) = (tmp_path / "state" / "mcp-logins").glob("*.json")
    assert made.tokens.access not in file.read_text()
    assert calls(tmp_path)[0].status == "success"
    assert Logins().forget(far.url)
    assert held == {}


def test_a_token_that_has_ended_is_renewed_before_a_call_and_the_refresh_token_replaced(
    far: Guarded, tmp_path: Path
) -> None:
    settle(tmp_path, far.url)
    far.life = 1
    before = login(tmp_path)
    far.life = 3_600
    assert calls(tmp_path)[0].status == "success"
    after = Logins().get(far.url)
    assert after is not None
    assert far.forms[-1]["grant_type"] == "refresh_token"
    assert {before.tokens.refresh, before.tokens.access}.isdisjoint({after.tokens.refresh, after.tokens.access})
    assert far.refresh == {after.tokens.refresh}


def test_a_token_that_the_server_refuses_is_renewed_and_the_call_made_once_more(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    login(tmp_path)
    results = calls(tmp_path, 2, far.good.clear)
    assert [one.status for one in results] == ["success", "success"]
    assert [form["grant_type"] for form in far.forms] == ["authorization_code", "refresh_token"]


def test_a_login_that_was_revoked_is_forgotten_and_its_call_says_what_to_do(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    made = login(tmp_path)
    far.good.clear()
    far.refresh.clear()
    (result,) = calls(tmp_path)
    assert "`tamis mcp login far`" in words(result)
    assert made.tokens.refresh not in str(result), "the server's words repeat it"
    assert Logins().get(far.url) is None
    before = len(far.forms)
    calls(tmp_path)
    assert len(far.forms) == before, "nothing is tried again"


def test_two_processes_renew_a_login_once(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    far.life = 1
    login(tmp_path)
    far.life = 3_600
    failed: list[str] = []

    def work() -> None:
        failed.extend(words(one) for one in calls(tmp_path) if one.status != "success")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [form["grant_type"] for form in far.forms].count("refresh_token") == 1


def test_more_rights_are_asked_of_a_person_and_the_command_is_safe_to_copy(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    login(tmp_path)
    far.scope_wanted = "write $(touch${IFS}/tmp/x) 'quoted' `x`"
    (result,) = calls(tmp_path)
    told = words(result)
    assert "tamis mcp login far --scope" in told
    typed = told.partition("run `")[2].rpartition("`")[0]
    assert shlex.split(typed)[:5] == ["tamis", "mcp", "login", "far", "--scope"]
    assert len(shlex.split(typed)) == 6, "what a server wrote is one word"


def test_the_scopes_of_a_person_s_word_are_asked_for(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    asked = authorizations(far)
    login(tmp_path, scopes=["read", "write"])
    assert asked[0]["scope"] == "read write"


def test_what_a_refresh_token_wants_is_asked_for_where_it_is_known(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    far.meta = {"scopes_supported": ["read", "offline_access"]}
    asked = authorizations(far)
    login(tmp_path)
    assert asked[0]["scope"] == "read offline_access"


# what takes tokens elsewhere


def _refused(root: Path, pattern: str, **how: Any) -> None:
    with pytest.raises(OAuthError, match=pattern):
        login(root, **how)
    assert not list((root / "state").glob("mcp-logins/*.json"))


def test_a_document_of_another_resource_is_refused(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    far.resource = {"resource": "https://bank.example/mcp"}
    _refused(tmp_path, "another server")


def test_a_document_of_another_issuer_is_refused(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    far.meta = {"issuer": "https://honest.example"}
    _refused(tmp_path, "is one of")


def test_an_authorization_server_without_pkce_is_refused(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    far.meta = {"code_challenge_methods_supported": ["plain"]}
    _refused(tmp_path, "S256")


@pytest.mark.parametrize("iss", ["https://evil.example", ""], ids=["another", "none"])
def test_an_answer_of_another_authorization_server_is_refused(far: Guarded, tmp_path: Path, iss: str) -> None:
    settle(tmp_path, far.url)
    far.answer = {"iss": iss}
    _refused(tmp_path, "not from")
    assert far.forms == [], "its code was sent to nobody"


def test_an_answer_to_another_login_changes_nothing(
    far: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(tmp_path, far.url)
    monkeypatch.setattr("tamis.server.cli.mcp_login.WAIT_S", 1.0)
    far.answer = {"state": "of-another-login"}
    _refused(tmp_path, "nobody answered")
    assert far.forms == []


def test_a_refusal_of_a_person_is_told(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    far.answer = {"error": "access_denied", "code": ""}
    _refused(tmp_path, "access_denied")


@pytest.mark.parametrize("path", ["/token", "/register", "/.well-known/oauth-protected-resource/mcp", "/mcp"])
def test_no_redirect_is_followed(far: Guarded, tmp_path: Path, path: str) -> None:
    other = Guarded("other.test")
    settle(tmp_path, far.url, hosts='"far.test:*", "other.test:*"')
    far.does[path] = lambda at: at.say(307, b"", Location=f"{other.origin}{path}")
    _refused(tmp_path, "redirects")
    assert other.asked == []
    other.close()


@pytest.mark.parametrize("place", ["token_endpoint", "registration_endpoint"])
def test_a_private_address_or_a_host_that_was_not_granted_is_not_asked(
    far: Guarded, tmp_path: Path, place: str
) -> None:
    other = Guarded("other.test")
    settle(tmp_path, far.url)
    far.meta = {place: f"{other.origin}/token"}
    _refused(tmp_path, "policy.allowHosts")
    assert other.asked == []
    other.close()


def test_an_address_inside_is_refused_though_its_name_is_granted(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url, hosts='"far.test:*", "169.254.169.254:*"')
    far.resource = {"authorization_servers": ["https://169.254.169.254"]}
    _refused(tmp_path, "policy.allowCidrs")


@pytest.mark.parametrize(
    "where",
    [
        "http://other.example/token",
        "file:///etc/passwd",
        "https://user:pw@far.test/",
        "https://far.test/#x",
        "javascript:1",
    ],
)
def test_an_address_that_is_not_safe_is_refused_before_a_browser_is_shown_it(
    far: Guarded, tmp_path: Path, where: str
) -> None:
    settle(tmp_path, far.url)
    far.meta = {"authorization_endpoint": where}
    _refused(tmp_path, "https|no address|user")


def test_a_login_is_for_the_address_that_it_was_made_for(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    login(tmp_path)
    other = Guarded("other.test")
    settle(tmp_path, other.url, hosts='"far.test:*", "other.test:*"')
    (result,) = calls(tmp_path)
    assert "`tamis mcp login far`" in words(result)
    assert set(other.tokens_seen()) == {""}
    other.close()


def test_a_token_stays_here_when_the_pin_of_its_login_is_gone(far: Guarded, tmp_path: Path) -> None:
    """issue 18: what a login without encryption on this machine gave never goes to another machine so."""
    settle(tmp_path, far.url)
    login(tmp_path)
    settings = tmp_path / "tamis.toml"
    settings.write_text(settings.read_text().replace('"far.test" = "127.0.0.1"', '"far.test" = "192.0.2.7"'))
    (result,) = calls(tmp_path)
    assert "is not https, and tokens are not sent without encryption" in words(result)


def test_a_record_that_was_put_in_the_place_of_another_s_is_none(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    login(tmp_path)
    logins = Logins()
    os.replace(logins._file(far.url), logins._file("https://bank.example/mcp"))  # pyright: ignore[reportPrivateUsage]
    assert logins.get("https://bank.example/mcp") is None


def test_a_login_is_renewed_where_it_was_made_whatever_the_server_says_since(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    far.life = 1
    login(tmp_path)
    far.life = 3_600
    other = Guarded("other.test")
    far.resource = {"authorization_servers": [other.origin]}
    far.meta = {"token_endpoint": f"{other.origin}/token"}
    settle(tmp_path, far.url, hosts='"far.test:*", "other.test:*"')
    assert calls(tmp_path)[0].status == "success"
    assert other.asked == []
    other.close()


def test_another_issuer_in_the_settings_ends_a_login(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url)
    login(tmp_path)
    settle(tmp_path, far.url, '[mcpServers.far.oauth]\nissuer = "https://other.example"')
    assert "`tamis mcp login far`" in words(calls(tmp_path)[0])
    with pytest.raises(OAuthError, match="the settings"):
        login(tmp_path)


@pytest.mark.parametrize("token", ["a b", "x\r\nX-Evil: 1", "é", "", 5])
def test_a_token_that_cannot_be_a_header_is_refused(far: Guarded, tmp_path: Path, token: Any) -> None:
    settle(tmp_path, far.url)
    far.grant = lambda scope="": {"access_token": token, "token_type": "Bearer"}  # type: ignore[method-assign]
    _refused(tmp_path, "no bearer token")


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff", b"{", b"[]", b"null", b'"' + b"x" * 300_000 + b'"'], ids=len)
def test_a_bad_document_ends_the_login(far: Guarded, tmp_path: Path, body: bytes) -> None:
    settle(tmp_path, far.url)
    far.does["/token"] = lambda at: at.say(200, body)
    _refused(tmp_path, "no token|more than")


# who asks


def _secrets(url: str, origin: str, more: str = "") -> tuple[str, str]:
    own = f'[mcpServers.far.oauth]\nclientId = "known"\nclientSecret = "FAR"\nissuer = "{origin}"\n{more}'
    return own, '[policy.secrets]\n"mcp-server:far" = ["FAR"]\n[secrets]\nFAR = { env = "FAR_SECRET" }'


def test_a_client_with_a_secret_needs_no_person(far: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_SECRET", far.client_secret or "a-secret-of-the-client")
    far.client_secret = "a-secret-of-the-client"
    own, policy = _secrets(far.url, far.origin, 'grant = "clientCredentials"')
    settle(tmp_path, far.url, own, policy)
    results = calls(tmp_path, 2, far.good.clear)
    assert [one.status for one in results] == ["success", "success"]
    assert [form["grant_type"] for form in far.forms] == ["client_credentials"] * 2
    assert {form["resource"] for form in far.forms} == {far.url}
    assert not list((tmp_path / "state").glob("mcp-logins/*.json"))
    assert "a-secret-of" not in str(far.forms)


def test_a_client_s_secret_goes_to_the_authorization_server_of_the_settings_only(
    far: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAR_SECRET", "a-secret-of-the-client")
    other = Guarded("other.test")
    far.resource = {"authorization_servers": [other.origin]}
    own, policy = _secrets(far.url, far.origin, 'grant = "clientCredentials"')
    settle(tmp_path, far.url, own, policy, hosts='"far.test:*", "other.test:*"')
    (result,) = calls(tmp_path)
    assert "the settings" in words(result)
    assert other.asked == []
    other.close()


def test_a_client_s_secret_is_granted_by_the_policy(
    far: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAR_SECRET", "a-secret-of-the-client")
    own, _ = _secrets(far.url, far.origin, 'grant = "clientCredentials"')
    settle(tmp_path, far.url, own, '[secrets]\nFAR = { env = "FAR_SECRET" }')
    (result,) = calls(tmp_path)
    assert (result.status, "policy.secrets" in words(result)) == ("blocked", True)
    assert far.forms == []


def test_a_client_metadata_document_is_the_client_s_id(far: Guarded, tmp_path: Path) -> None:
    far.meta = {"client_id_metadata_document_supported": True}
    settle(tmp_path, far.url, '[mcpServers.far.oauth]\nclientMetadataUrl = "https://me.example/client.json"')
    assert login(tmp_path).client == Client("https://me.example/client.json")
    assert far.clients == []


def test_a_client_that_was_registered_by_hand_is_not_registered_again(far: Guarded, tmp_path: Path) -> None:
    settle(tmp_path, far.url, '[mcpServers.far.oauth]\nclientId = "by-hand"')
    assert login(tmp_path).client.client_id == "by-hand"
    assert far.clients == []


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('clientSecret = "KEY"', "issuer"),
        ('grant = "clientCredentials"', "clientSecret"),
        ('clientId = "x"\nclientMetadataUrl = "https://x.example/"', "one of both"),
        ('scopes = ["a b"]', "no scope"),
        ("redirectPort = 70000", "65535"),
    ],
)
def test_settings_that_cannot_be_used_are_said_without_a_try(
    far: Guarded, tmp_path: Path, lines: str, why: str
) -> None:
    settle(tmp_path, far.url, f"[mcpServers.far.oauth]\n{lines}")
    assert why in words(calls(tmp_path)[0])
    assert far.asked == []


# the command


def test_login_and_logout_are_commands(
    far: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tamis.server.cli import mcp_login
    from tamis.server.cli.main import main

    settle(tmp_path, far.url)

    def show(*pieces: str) -> None:
        threading.Thread(target=browser, args=("".join(pieces),), daemon=True).start()

    monkeypatch.setattr(mcp_login, "write_line", show)
    assert main(["mcp", "login", "far", "--no-browser", "--root", str(tmp_path)]) == 0
    assert Logins().get(far.url) is not None
    assert "access-token" not in "".join(capsys.readouterr())
    assert main(["mcp", "logout", "far", "--root", str(tmp_path)]) == 0
    assert Logins().get(far.url) is None
    assert far.forms[-1]["token"].startswith("refresh-token")
    assert main(["mcp", "login", "fra", "--root", str(tmp_path)]) == 2
    assert "did you mean 'far'" in capsys.readouterr().err


# texts


@given(st.text(max_size=200))
def test_any_header_is_read(header: str) -> None:
    challenge = read_challenge(401, header)
    assert '"' not in challenge.scope


@pytest.mark.parametrize(
    ("header", "scope", "where"),
    [
        ('Bearer realm="a, b", scope="x y", resource_metadata="https://a.example/x"', "x y", "https://a.example/x"),
        ('Basic realm="x", Bearer scope=x', "x", ""),
        ('Negotiate abc==, bearer resource_metadata="https://a.example/"', "", "https://a.example/"),
        ('Bearer scope="x\\"y"', "", ""),
        ("Bearer", "", ""),
    ],
)
def test_a_challenge_says_what_is_wanted(header: str, scope: str, where: str) -> None:
    challenge = read_challenge(401, header)
    assert (challenge.scope, challenge.resource_metadata) == (scope, where)


@pytest.mark.parametrize(
    ("resource", "is_it"),
    [
        ("https://a.example/mcp", True),
        ("https://A.example/mcp", True),
        ("https://a.example:443/mcp/", True),
        ("https://a.example", True),
        ("https://a.example/m", False),
        ("https://a.example/mcp/more", False),
        ("https://b.example/mcp", False),
        ("http://a.example/mcp", False),
        ("https://a.example:444/mcp", False),
        ("https://a.example@b.example/mcp", False),
        ("https://[/", False),
        ("", False),
    ],
)
def test_a_resource_is_the_server_or_above_it(resource: str, is_it: bool) -> None:
    assert is_of(resource, "https://a.example/mcp") is is_it


def test_where_the_document_of_an_issuer_may_stand() -> None:
    assert issuer_documents("https://a.example/t") == (
        "https://a.example/.well-known/oauth-authorization-server/t",
        "https://a.example/.well-known/openid-configuration/t",
        "https://a.example/t/.well-known/openid-configuration",
    )
