"""Protocols of installed packages: found by entry point when asked for, checked, guarded, and run like any other."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols import plugins
from tamis.protocols.model import ReadOptions
from tamis.protocols.plugins import find_protocol
from tamis.protocols.reader import read_text
from tamis.server.cli.main import main
from tamis.server.runtime.settings import protocols
from tamis.server.runtime.settings.protocols import installed_protocols, load_also, load_protocol
from tests.daemon import answers_of
from tests.protocols.plugin_source import INVOKE, example_source

ECHO = {
    "toolId": "core:echo",
    "displayName": "Echo",
    "description": "Gives back the text that it is given.",
    "version": "1.0.0",
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["text"],
    },
    "handler": {"type": "external-script", "language": "python", "scriptPath": "echo.py"},
}
SCRIPT = "import json, sys\nprint(json.dumps({'given': json.load(sys.stdin)}))\n"


def package(folder: Path, name: str, source: str, entry: str, version: str = "0.1") -> None:
    """A package as an installer leaves it: its module, and metadata with one entry point."""
    module = f"tamis_{name}"
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[tamis.protocols]\n{entry}\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "echo.tool.json").write_text(json.dumps(ECHO))
    (folder / "echo.py").write_text(SCRIPT)
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    package(folder, "invoke", example_source(), "invoke = tamis_invoke:INVOKE")
    return folder


@pytest.fixture(autouse=True)
def _nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process knows of protocols is that of one test."""
    monkeypatch.setattr(plugins, "_known", {})
    monkeypatch.setattr(protocols, "_ASKED", {})


def tamis(root: Path, site: Path | None, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """A command in this process, with the packages of a folder, as a process of its own would find them."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(plugins, "_known", {})
        patch.setattr(protocols, "_ASKED", {})
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
        for name in [name for name in sys.modules if name.startswith("tamis_")]:
            patch.delitem(sys.modules, name)
        if site is not None:
            patch.syspath_prepend(str(site))
        code = main([*words, "--root", str(root)])
    said: list[str] = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code, *said)


def in_a_process(root: Path, site: Path | None, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site) if site else ""}
    return subprocess.run(
        [sys.executable, "-m", "tamis.server.cli.main", *words, "--root", str(root)],
        input=text,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def daemon(root: Path, site: Path | None, requests: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    command = [sys.executable, "-m", "tamis.server.cli.main", "rpc", "--root", str(root)]
    return answers_of(command, requests, {**os.environ, "PYTHONPATH": str(site) if site else ""})[0]


def test_a_third_partys_protocol_is_parsed_run_and_observed(root: Path, site: Path) -> None:
    """V01, from outside: nothing of the package is known to Tamis but its entry point."""
    parsed = in_a_process(root, site, "parse", "--protocol", "invoke", text=INVOKE)
    assert parsed.returncode == 0, parsed.stderr
    call = json.loads(parsed.stdout)["calls"][0]
    assert (call["protocol"], call["toolId"], call["args"]) == ("invoke", "core:echo", {"text": "a < b"})
    ran = tamis(root, site, "run", "--yes", "--protocol", "invoke", text=INVOKE)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == (
        "<results>\nObservation: Tool core:echo executed successfully. "
        'Result: {"given": {"text": "a < b"}}\n</results>\n'
    )


def test_auto_reads_it_only_where_the_settings_name_it(root: Path, site: Path) -> None:
    assert json.loads(tamis(root, site, "parse", text=INVOKE).stdout)["calls"] == []
    (root / "tamis.toml").write_text('[protocol]\nalso = ["invoke", "vcp"]\n')
    assert len(json.loads(tamis(root, site, "parse", text=INVOKE).stdout)["calls"]) == 1
    ran = tamis(root, site, "run", "--yes", text=INVOKE)
    assert "executed successfully" in ran.stdout


def test_documents_are_checked_with_it_too(root: Path) -> None:
    note = root / "note.md"
    text = '<tool_call>{"name": "core:echo", "arguments": {"text": 5}}</tool_call>'
    note.write_text(text)
    assert tamis(root, None, "check", str(note)).returncode == 0
    (root / "tamis.toml").write_text('[protocol]\nalso = ["hermes"]\n')
    checked = tamis(root, None, "check", str(note))
    assert checked.returncode == 1
    assert f":1:{text.index('5') + 1}: error" in checked.stdout
    assert "VA410" in checked.stdout


def test_the_methods_for_hosts_find_it_too(root: Path, site: Path) -> None:
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 2, "method": "tool/parse", "params": {"text": INVOKE, "protocol": "invoke"}},
        {"jsonrpc": "2.0", "id": 3, "method": "tool/parse", "params": {"text": INVOKE, "protocol": "invok"}},
        {"jsonrpc": "2.0", "id": 4, "method": "tool/executeText", "params": {"text": INVOKE, "protocol": "invoke"}},
        {"jsonrpc": "2.0", "id": 5, "method": "tool/parse", "params": {"text": INVOKE}},
    ]
    (root / "tamis.toml").write_text('[protocol]\nalso = ["hermes"]\n')
    answers = daemon(root, site, requests)
    protocols = answers[1]["result"]["capabilities"]["experimental"]["tamis"]["protocols"]
    assert {"action", "tam", "vcp", "json", "hermes"} <= {*protocols}
    assert answers[2]["result"]["calls"][0]["toolId"] == "core:echo"
    assert answers[3]["error"]["code"] == -32602
    assert "did you mean 'invoke'" in answers[3]["error"]["message"]
    assert answers[4]["result"]["results"][0]["status"] == "success"
    assert answers[5]["result"]["calls"] == []


def test_hermes_runs_with_typed_arguments(root: Path) -> None:
    text = '<tool_call>\n{"name": "core:echo", "arguments": {"text": "5", "n": 5}}\n</tool_call>'
    ran = tamis(root, None, "run", "--yes", "--protocol", "hermes", text=text)
    assert ran.stdout == (
        '<tool_response>\n{"name": "core:echo", "content": {"given": {"text": "5", "n": 5}}}\n</tool_response>\n'
    ), ran.stderr
    wrong = tamis(root, None, "run", "--yes", "--protocol", "hermes", text=text.replace('"n": 5', '"n": "5"'))
    assert "Input parameter 'n' must be an integer" in wrong.stdout


def test_a_parsed_call_is_checked_as_it_was_typed(root: Path) -> None:
    """``tool/execute`` of a call off the wire, in a process that parsed nothing."""
    call = {"callId": "c", "protocol": "hermes", "toolId": "core:echo", "args": {"text": "5", "n": 5}}
    wrong = {**call, "args": {"text": "5", "n": "5"}}
    requests = [
        {"jsonrpc": "2.0", "id": i, "method": "tool/execute", "params": {"call": one}}
        for i, one in enumerate((call, wrong))
    ]
    answers = daemon(root, None, requests)
    assert answers[0]["result"]["output"] == {"given": {"text": "5", "n": 5}}
    assert answers[1]["result"]["error"]["type"] == "ParameterValidationError"


def test_call_json_runs_in_auto(root: Path) -> None:
    """W14."""
    text = json.dumps({"toolName": "core:echo", "arguments": {"text": "5", "n": 5}})
    ran = tamis(root, None, "run", "--yes", text=text)
    assert json.loads(ran.stdout) == {
        "toolName": "core:echo",
        "status": "success",
        "result": {"given": {"text": "5", "n": 5}},
    }


BAD = {
    "raising": ("raise RuntimeError('no luck')", "cannot be loaded: RuntimeError: no luck"),
    "missing": ("", "cannot be loaded: AttributeError"),
    "syntax": ("def (", "cannot be loaded: SyntaxError"),
    "leaving": ("import sys; sys.exit(3)", "cannot be loaded: SystemExit"),
    "api": (
        example_source().replace("api = 1", "api = 7"),
        "version 7 of the interface, this Tamis has version 1",
    ),
    "id": (example_source().replace('id = "invoke"', 'id = "vcp"'), "its id is 'vcp'"),
    "method": (example_source().replace("def write_calls", "def write"), "it has no write_calls"),
    "markers": (example_source().replace("markers = Markers", "marks = Markers"), "its markers are no"),
    "empty": (
        example_source().replace("re.compile(HEAD + r'[^\"<>]+\">')", 're.compile("x*")'),
        "matches an empty text",
    ),
    "pattern": (example_source().replace('stray="</invoke>"', 'stray="("'), "cannot be used"),
}


@pytest.mark.parametrize(("source", "said"), BAD.values(), ids=BAD)
def test_a_plug_in_that_cannot_be_used_is_a_sentence(root: Path, tmp_path: Path, source: str, said: str) -> None:
    site = tmp_path / "bad"
    package(site, "invoke", source, "invoke = tamis_invoke:INVOKE")
    done = tamis(root, site, "parse", "--protocol", "invoke", text=INVOKE)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_settings_problem_is_named_and_everything_else_works(root: Path) -> None:
    (root / "tamis.toml").write_text('[protocol]\nalso = ["nobody"]\ndefault = "hermse"\n')
    parsed = tamis(root, None, "parse", text="<ACTION><core:echo><text>x</text></core:echo></ACTION>")
    assert len(json.loads(parsed.stdout)["calls"]) == 1
    assert "protocol.also: no protocol 'nobody'" in parsed.stderr
    report = json.loads(tamis(root, None, "doctor", "--json").stdout)
    texts = [check["text"] for check in report["checks"] if check["name"] == "configuration"]
    assert any("protocol.also: no protocol 'nobody'" in text for text in texts)
    assert any("protocol.default" in text and "did you mean 'hermes'" in text for text in texts)


def test_two_packages_with_one_id_are_refused(root: Path, site: Path) -> None:
    package(site, "other", example_source(), "invoke = tamis_other:INVOKE")
    done = tamis(root, site, "parse", "--protocol", "invoke", text=INVOKE)
    assert done.returncode == 2
    assert "two packages bring the protocol 'invoke'" in done.stderr


def test_a_profile_may_name_a_protocol_of_a_package(root: Path, site: Path) -> None:
    (root / "tamis.toml").write_text('profile = "agent_profile.json"\n')
    profile = {"tool_ids_inventory": ["core:echo"], "toolCallConfig": {"enabled": True, "protocol": "invoke"}}
    (root / "agent_profile.json").write_text(json.dumps(profile))
    assert tamis(root, site, "run", "--yes", "--protocol", "invoke", text=INVOKE).returncode == 0
    report = json.loads(tamis(root, site, "doctor", "--json").stdout)
    assert not [check for check in report["checks"] if check["name"] == "configuration" and check["state"] == "error"]


SAYS_THAT_IT_RUNS = 'import pathlib\npathlib.Path(__file__).with_name("was-loaded").touch()\n'
PROFILE = {"tool_ids_inventory": ["core:echo"], "toolCallConfig": {"enabled": True, "protocol": "invoke"}}


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    """A package whose module leaves a file when it is loaded."""
    folder = tmp_path / "site"
    package(folder, "invoke", SAYS_THAT_IT_RUNS + example_source(), "invoke = tamis_invoke:INVOKE")
    return folder


@pytest.mark.parametrize(
    "words", [["check"], ["list"], ["doctor"], ["prompt"], ["run", "--yes"], ["trust"]], ids=" ".join
)
def test_a_stranger_s_profile_loads_no_installed_package(
    untrusted: None, root: Path, telling: Path, words: list[str]
) -> None:  # ruling 58
    (root / "tamis.toml").write_text('profile = "agent_profile.json"\n')
    (root / "agent_profile.json").write_text(json.dumps(PROFILE))
    tamis(root, telling, *words, text="<ACTION></ACTION>")
    assert not (telling / "was-loaded").exists()


def test_a_call_says_why_the_protocol_of_a_stranger_s_profile_is_not_loaded(
    untrusted: None, root: Path, telling: Path
) -> None:
    (root / "tamis.toml").write_text('profile = "agent_profile.json"\n')
    (root / "agent_profile.json").write_text(json.dumps(PROFILE))
    called = tamis(root, telling, "call", "core:echo", "--args", '{"text": "a"}')
    assert called.returncode == 3
    assert "names the protocol 'invoke'" in called.stdout
    assert "tamis trust --yes" in called.stdout
    assert not (telling / "was-loaded").exists()


@pytest.mark.parametrize("profile", ["other.agent_profile.json", "link"])
def test_a_stranger_s_profile_of_one_agent_loads_none_either(
    untrusted: None, root: Path, telling: Path, tmp_path: Path, profile: str
) -> None:  # ruling 58
    target = tmp_path / "elsewhere.json"
    target.write_text(json.dumps(PROFILE))
    place = root / "other.agent_profile.json"
    place.symlink_to(target) if profile == "link" else place.write_text(json.dumps(PROFILE))
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 2, "method": "prompt/generate", "params": {"context": {"agentId": "other"}}},
    ]
    answers = daemon(root, telling, requests)
    assert "names the protocol 'invoke'" in json.dumps(answers[2])
    assert not (telling / "was-loaded").exists()


def test_a_host_that_does_not_trust_the_folder_is_obeyed_although_the_user_does(
    root: Path, telling: Path
) -> None:  # ruling 58
    (root / "tamis.toml").write_text('profile = "agent_profile.json"\n')
    (root / "agent_profile.json").write_text(json.dumps(PROFILE))
    for trusted, loaded in ((False, False), (True, True)):
        options = {"initializationOptions": {"trusted": trusted}}
        requests = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": options},
            {"jsonrpc": "2.0", "id": 2, "method": "prompt/generate", "params": {}},
        ]
        daemon(root, telling, requests)
        assert (telling / "was-loaded").exists() is loaded


@pytest.mark.parametrize("how", ["trust", "own settings"])
def test_the_user_s_word_loads_the_protocol_of_a_profile(
    untrusted: None, root: Path, telling: Path, tmp_path: Path, how: str
) -> None:
    (root / "tamis.toml").write_text('profile = "agent_profile.json"\n')
    (root / "agent_profile.json").write_text(json.dumps(PROFILE))
    own = tmp_path / "own.toml"
    own.write_text('[protocol]\nalso = ["invoke"]\n' if how == "own settings" else "")
    if how == "trust":
        assert tamis(root, telling, "trust", "--yes").returncode == 0
    called = tamis(root, telling, "call", "--config", str(own), "core:echo", "--args", '{"text": "a"}')
    assert called.returncode == 0, called.stderr


# A fault while reading

FAULTY = """
from tamis.protocols.base import Markers
from tamis.protocols.model import Block, Call, Diag
import re

class Faulty:
    id = "faulty"
    api = 1
    opener = re.compile("@[a-z]+@")
    markers = Markers(open="@x@", close="@@", stray="@@")

    def read_block(self, source, opener, limit, options):
        kind = source.text[opener[0] + 1 : opener[1] - 1]
        span = (opener[0], limit)
        if kind == "raise":
            raise RuntimeError("broken")
        if kind == "none":
            return None
        if kind == "far":
            return Block("faulty", (opener[0], limit + 5), opener)
        if kind == "back":
            return Block("faulty", (0, opener[1]), opener)
        if kind == "other":
            return Block("vcp", span, opener)
        if kind == "call":
            return Block("faulty", opener, opener, calls=[Call("faulty", "x", (0, 1), (0, limit))])
        if kind == "cut":
            return Block("faulty", span, opener, None, "truncated", [Call("faulty", "x", span, span)])
        return Block("faulty", span, opener, diagnostics=[Diag("ZZ999", span)])

    def parse_tool_requests(self, text, options=None):
        raise RuntimeError
    format_tool_results = generate_tool_definitions = write_calls = parse_tool_requests

FAULTY = Faulty()
"""


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if find_protocol("faulty") is None:
        package(tmp_path / "faulty", "faulty", FAULTY, "faulty = tamis_faulty:FAULTY")
        monkeypatch.syspath_prepend(str(tmp_path / "faulty"))
        assert load_protocol("faulty") == ""
    return "faulty"


@pytest.mark.parametrize("kind", ["raise", "none", "far", "back", "other", "call", "cut", "code"])
def test_a_fault_of_a_plug_in_costs_its_own_block(faulty: str, kind: str) -> None:
    text = f"x @{kind}@ y\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」v「末」\n<<<[END_TOOL_REQUEST]>>>"
    document = read_text(text, "auto", ReadOptions(also=(faulty,)))
    assert [call.tool_id for call in document.calls if call.executable] == ["v"]
    assert [diag.code for diag in document.diagnostics] == ["TC026"]


def test_results_of_a_plug_in_that_fails_are_worded_by_action(faulty: str) -> None:
    from tamis.protocols.observation import observation
    from tests.protocols.plugin_source import result

    assert observation(result(output="x"), faulty) == "Observation: Tool core:echo executed successfully. Result: x"


def test_what_is_installed_can_be_listed_and_ids_of_auto_are_passed_over() -> None:
    assert "hermes" in installed_protocols()
    assert load_also(["vcp", "hermes", "hermes", "json", "auto"]) == (("hermes",), ())
    assert load_protocol("action") == ""
    assert "known: action" in load_protocol("nobody")


def test_no_package_is_looked_at_for_a_built_in_protocol(root: Path) -> None:
    """Start-up is part of the interface."""
    code = (
        "import sys\nfrom tamis.server.cli.main import main\n"
        f"sys.stdin = open({str(root / 'echo.py')!r})\n"
        f"main(['parse', '--root', {str(root)!r}, '--protocol', 'vcp'])\n"
        "assert 'importlib.metadata' not in sys.modules, 'looked at packages'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
