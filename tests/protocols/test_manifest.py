"""Manifests: the seed's sample reads clean, and every fault is said at the exact key or value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.manifest.json_schema import manifest_schema
from tamis.protocols.manifest.reading import (
    ExternalScript,
    Manifest,
    ServiceMethod,
    is_semver,
    is_version_range,
    read_manifest,
)
from tamis.protocols.manifest.security import host_pattern_fault, path_pattern_fault

GOOD: dict[str, Any] = {
    "toolId": "custom:count-words",
    "displayName": "Count words",
    "description": "Counts the words of a text file and gives their number.",
    "version": "1.2.0",
    "handler": {"type": "external-script", "scriptPath": "count.py", "language": "python"},
}


def manifest(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes}, ensure_ascii=False, indent=2)


def without(*names: str) -> str:
    return json.dumps({name: value for name, value in GOOD.items() if name not in names}, indent=2)


def said(text: str, *, strict: bool = False) -> list[tuple[str, str, str]]:
    """Level, code and the source of each finding."""
    found = read_manifest(text, strict=strict).diagnostics
    return [(severity(diag), diag.code, text[diag.span[0] : diag.span[1]]) for diag in found]


def read(text: str) -> Manifest:
    reading = read_manifest(text)
    assert reading.manifest is not None, [message(diag) for diag in reading.diagnostics]
    return reading.manifest


def test_the_seeds_sample_reads_clean_with_its_comments():  # D44, D45
    text = (Path(__file__).parent / "seed_manifest.jsonc").read_text()
    reading = read_manifest(text)
    assert {severity(diag) for diag in reading.diagnostics} == {"hint"}
    found = reading.manifest
    assert found is not None
    assert found.tool_id == "core:execute-python-script" and found.namespace == "core"
    assert found.handler == ServiceMethod("ExternalScriptExecutionService", "executeScript")
    assert found.security_context.file_access.allow_read == ("self", "./*", ".cache/**")
    assert found.security_context.network.allow_hosts == ()
    assert len(found.examples) == 2 and found.tags[-1] == "execution"
    assert {level for level, *_ in said(text, strict=True)} == {"error"}  # strictJson


def test_every_field_is_read():
    text = manifest(
        **{"$schema": "./tool.schema.json", "x-team": 1},
        parameters={"type": "object", "properties": {"path": {"type": "string"}}},
        output={"type": ["object", "null"]},
        securityContext={
            "fileAccess": {"allowRead": ["data/**"], "allowWrite": ["out"]},
            "networkAccess": {"allowHosts": ["api.example.com:443"]},
            "requiredCapabilities": ["gpu"],
        },
        examples=[{"description": "d", "input": {"path": "a"}, "expectedOutput": None}, {"input": {}}],
        tags=["a"],
        aliases=["count_words"],
        agentCallable=False,
        protocolConfig={"vcpCommand": "CountWords"},
        execution={"mode": "async", "timeoutMs": 500, "idempotent": True, "limits": {"wallMs": 100}},
        dependencies={"core:read": "^1.0"},
    )
    found = read(text)
    assert said(text) == []
    assert found.handler == ExternalScript("count.py", "python")
    assert found.vcp_command == "CountWords" and found.agent_callable is False
    assert (found.execution.mode, found.execution.timeout_ms, found.execution.limits) == ("async", 500, {"wallMs": 100})
    assert found.examples[0].expected_output is None and found.examples[1].input == {}
    assert found.dependencies == {"core:read": "^1.0"} and found.raw["x-team"] == 1


@pytest.mark.parametrize("name", ["toolId", "displayName", "description", "version", "handler"])
def test_a_missing_required_field_is_an_error_at_the_object(name: str):  # D29 to D33
    assert said(without(name)) == [("error", "MF501", "{")]


def test_a_misspelled_required_field_is_one_error_at_its_key_with_a_safe_fix():
    text = manifest().replace('"toolId"', '"tool_id"')
    (diag,) = read_manifest(text).diagnostics
    assert (severity(diag), diag.code, text[slice(*diag.span)]) == ("error", "MF504", '"tool_id"')
    assert diag.fix is not None and diag.fix.applicability == "safe"
    edit = diag.fix.edits[0]
    assert read_manifest(text[: edit.start] + edit.new_text + text[edit.end :]).manifest is not None


@pytest.mark.parametrize(
    ("changes", "level", "code", "place"),
    [
        ({"toolId": ""}, "error", "MF505", '""'),
        ({"toolId": "a b"}, "error", "MF506", '"a b"'),
        ({"toolId": "a@1"}, "error", "MF506", '"a@1"'),
        ({"toolId": "plain"}, "hint", "MF507", '"plain"'),
        ({"toolId": 5}, "error", "MF502", "5"),
        ({"displayName": " "}, "error", "MF505", '" "'),
        ({"version": "1.0"}, "hint", "MF508", '"1.0"'),
        ({"description": "Counts"}, "hint", "MF509", '"Counts"'),
        ({"tags": ["a", "a"]}, "warning", "MF518", '"a"'),
        ({"tags": "a"}, "error", "MF502", '"a"'),
        ({"agentCallable": "yes"}, "error", "MF502", '"yes"'),
        ({"aliases": ["a b"]}, "error", "MF506", '"a b"'),
        ({"unknown": 1}, "warning", "MF504", '"unknown"'),  # ruling 33
        ({"execution": {"mode": "Async"}}, "error", "MF503", '"Async"'),
        ({"execution": {"timeoutMs": 0}}, "error", "MF531", "0"),
        ({"execution": {"timeoutMs": 1.5}}, "error", "MF502", "1.5"),
        ({"execution": {"integrity": "md5-x"}}, "error", "MF533", '"md5-x"'),
        ({"execution": {"limits": {"wallMss": 1}}}, "warning", "MF504", '"wallMss"'),
        ({"dependencies": {"a:b": "new"}}, "error", "MF534", '"new"'),
        ({"protocolConfig": {"vcpCommand": ""}}, "error", "MF505", '""'),
        ({"handler": {"type": "script"}}, "error", "MF503", '"script"'),
        ({"handler": {"scriptPath": "a.py"}}, "error", "MF501", "{"),
        ({"handler": []}, "error", "MF502", "[]"),
    ],
)
def test_a_fault_is_at_its_key_or_value(changes: dict[str, Any], level: str, code: str, place: str):  # D28 to D46
    assert said(manifest(**changes)) == [(level, code, place)]


def script(**changes: Any) -> str:
    return manifest(handler={**GOOD["handler"], **changes})


@pytest.mark.parametrize("path", ["/etc/x.py", "../x.py", "a/../../x.py", "C:/x.py", "a\\b.py", "scripts/"])
def test_a_script_path_that_leaves_the_folder_is_refused(path: str):  # D34, S1
    assert said(script(scriptPath=path)) == [("error", "MF511", json.dumps(path))]


def test_the_handlers_fields_depend_on_its_type():  # D34 to D36
    needs = read_manifest(manifest(handler={"type": "external-script"})).diagnostics
    assert [(diag.code, diag.args["k"]) for diag in needs] == [("MF501", "scriptPath"), ("MF501", "language")]
    needs = read_manifest(manifest(handler={"type": "service-method"})).diagnostics
    assert [diag.args["k"] for diag in needs] == ["serviceName", "methodName"]
    assert said(script(serviceName="x")) == [("warning", "MF510", '"serviceName"')]
    assert read(script(entryPoint="main")).handler == ExternalScript("count.py", "python", "main")


@pytest.mark.parametrize(("word", "meant"), [("node", "nodejs"), ("Python", "python"), ("typescript", "nodejs")])
def test_a_wrong_language_proposes_the_right_one(word: str, meant: str):
    (diag,) = read_manifest(script(language=word)).diagnostics
    assert diag.code == "MF503" and diag.fix is not None and diag.fix.edits[0].new_text == json.dumps(meant)


def test_faults_of_the_schemas_are_inside_them():  # D37, D38
    properties = {
        "a": {"type": "int"},
        "b": {"pattern": "("},
        "c": {"minLenght": 1},
        "d": {"type": "integer", "default": "x"},
    }
    text = manifest(parameters={"type": "object", "properties": properties, "required": ["aa"]})
    assert said(text) == [
        ("error", "VA450", '"int"'),
        ("error", "VA450", '"("'),
        ("warning", "VA452", '"minLenght"'),
        ("warning", "MF515", '"aa"'),
    ]
    text = manifest(output={"$ref": "https://example.com/s.json"})
    assert said(text) == [("error", "VA451", '"https://example.com/s.json"')]
    properties = {"d": {"type": "integer", "default": "x"}, "e": {"type": "string", "pattern": "(?=a)(a+)+$"}}
    assert said(manifest(parameters={"type": "object", "properties": properties})) == [
        ("warning", "MF532", '"x"'),
        ("warning", "MF519", '"(?=a)(a+)+$"'),
    ]
    assert said(manifest(parameters={"type": "array"})) == [("error", "MF535", '"array"')]
    assert said(manifest(parameters=[])) == [("error", "MF502", "[]")]


def test_an_example_is_held_against_the_schemas_at_the_failing_place():  # D42, VA453
    parameters = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "o": {"type": "object", "required": ["k"]}},
        "required": ["n"],
    }
    output = {"type": "object", "properties": {"r": {"type": "integer"}}, "required": ["r"]}
    examples = [
        {"input": {"n": "3", "m": 1}, "expectedOutput": {"r": "x"}},
        {"input": {"o": {}}, "expectedOutput": {"r": 1, "more": 2}},
    ]
    text = manifest(parameters=parameters, output=output, examples=examples)
    assert said(text) == [
        ("warning", "VA453", '"3"'),
        ("warning", "VA453", '"m"'),
        ("warning", "MF517", '"x"'),
        ("warning", "VA453", "{"),
        ("warning", "VA453", "{"),
    ]
    # of a failure neither the output nor, where that is what fails, the input has to fit
    failure = {"success": False, "error": {"type": "ParameterValidationError"}}
    other = {"success": False, "error": {"type": "ScriptError"}}
    examples = [{"input": {"n": "x"}, "expectedOutput": failure}, {"input": {"n": 1}, "expectedOutput": other}]
    assert (
        said(
            manifest(
                parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
                output=output,
                examples=examples,
            )
        )
        == []
    )
    wrong = manifest(
        parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
        examples=[{"input": {"n": "x"}, "expectedOutput": other}],
    )
    assert [code for _, code, _ in said(wrong)] == ["VA453"]
    assert said(manifest(examples=[{}])) == [("error", "MF501", "{")]
    assert said(manifest(examples=[{"input": 1}])) == [("error", "MF502", "1")]


# securityContext


@pytest.mark.parametrize(
    "pattern",
    ["self", "./*", "./**", ".cache/**", "data", "data/**", "data/*.csv", "/srv/data/**", "fam://docs/a/**", "a..b/c"],
)
def test_read_patterns_that_can_be_granted(pattern: str):  # D39
    assert path_pattern_fault(pattern, write=False) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        " ",
        "..",
        "../x",
        "a/../b",
        "/proc/self",
        "/sys",
        "/dev/sda",
        "/run/x",
        "~/x",
        "a\\b",
        "C:/x",
        "http://x/y",
        "a\0b",
    ],
)
def test_patterns_that_can_never_be_granted(pattern: str):  # D39, S1
    assert path_pattern_fault(pattern, write=False) is not None
    assert path_pattern_fault(pattern, write=True) is not None


@pytest.mark.parametrize(
    "pattern", [".", "./", "./*", "./**", "self", "*", "**", "/", "/**", "*.txt", "out/*.txt", "a/**/b"]
)
def test_write_patterns_are_plain_folders_and_never_the_tools_own(pattern: str):
    assert path_pattern_fault(pattern, write=True) is not None


@pytest.mark.parametrize("pattern", [".cache/**", "out", "out/", "./out", "/srv/out/**", "fam://results/"])
def test_write_patterns_that_can_be_granted(pattern: str):
    assert path_pattern_fault(pattern, write=True) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "example.com",
        "*.example.com",
        "api.example.com:443",
        "a.b:*",
        "localhost",
        "127.0.0.1",
        "10.0.0.1:80",
        "[::1]",
        "[::1]:80",
        "例子.中国",
        "my_host.example",
        "example.com.",
    ],
)
def test_host_patterns(pattern: str):  # D40
    assert host_pattern_fault(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "*.com",
        "a*.x.y",
        "*.*.x.y",
        "https://x.y",
        "x.y/z",
        "x y",
        "u@x.y",
        "x%20y",
        "127.1",
        "2130706433",
        "0x7f.1",
        "x.y:0",
        "x.y:65536",
        "x.y:http",
        "::1",
        "[::1",
        "[x]",
        "-a.b",
        "a..b",
        "x.y:",
        "*:80",
        "1.2.3.4.5",
        "*.1.2.3.4",
    ],
)
def test_host_patterns_that_are_refused(pattern: str):  # D40
    assert host_pattern_fault(pattern) is not None


@pytest.mark.parametrize("pattern", ["10.0.0.0/8", "192.168.1.1/255.255.0.0", "fd00::/8", "[fd00::]/8"])
def test_a_range_is_told_from_a_url(pattern: str):
    assert "policy.allowCidrs" in (host_pattern_fault(pattern) or "")
    assert "a host, not a URL" in (host_pattern_fault("https://" + pattern) or "")


def test_a_misplaced_or_begun_field_is_answered_with_the_right_one():
    text = manifest(
        securityContext={"allowHosts": [], "allowRead": [], "allowWrite": []},
        execution={"limits": {"memory": 1, "cpu": 1, "std": 1}},
    )
    assert [message(diag) for diag in read_manifest(text).diagnostics] == [
        "Unknown field 'allowHosts', did you mean 'networkAccess.allowHosts'?",
        "Unknown field 'allowRead', did you mean 'fileAccess.allowRead'?",
        "Unknown field 'allowWrite', did you mean 'fileAccess.allowWrite'?",
        "Unknown field 'memory', did you mean 'memoryBytes'?",
        "Unknown field 'cpu', did you mean 'cpuSeconds'?",
        "Unknown field 'std'",
    ]


def test_faults_of_the_security_context_are_located():  # D39 to D41
    text = manifest(
        securityContext={
            "fileAccess": {"allowRead": ["../x"], "allowWrite": ["./*"], "allowread": []},
            "networkAccess": {"allowHosts": ["*"]},
            "requiredCapabilities": ["netwrok"],
        }
    )
    assert said(text) == [
        ("error", "MF512", '"../x"'),
        ("error", "MF512", '"./*"'),
        ("warning", "MF504", '"allowread"'),
        ("error", "MF513", '"*"'),
        ("warning", "MF514", '"netwrok"'),
    ]
    asks = manifest(securityContext={"requiredCapabilities": ["root"]})
    assert read(asks).security_context.unknown_capabilities == ("root",)


@pytest.mark.parametrize(
    "name", ["PATH", "path", "LD_PRELOAD", "NODE_OPTIONS", "HTTPS_PROXY", "PYTHONPATH", "1A", "A-B", "É", ""]
)
def test_names_that_no_variable_of_a_tool_can_have_are_errors(name: str):  # ruling 60
    assert said(manifest(env={name: "x"})) == [("error", "MF537", f'"{name}"')]
    assert said(manifest(securityContext={"secrets": [name]})) == [("error", "MF537", f'"{name}"')]


def test_variables_and_secrets_are_read():  # ruling 60
    found = read(manifest(env={"UNITS": "metric", "NODE_ENV": ""}, securityContext={"secrets": ["WEATHER_KEY"]}))
    assert found.env == {"UNITS": "metric", "NODE_ENV": ""}
    assert found.security_context.secrets == ("WEATHER_KEY",)


def test_a_variable_that_is_a_secret_too_and_values_that_are_no_text_are_errors():  # ruling 60
    assert said(manifest(env={"A": "x"}, securityContext={"secrets": ["A"]})) == [("error", "MF537", '"A"')]
    assert said(manifest(env={"A": 1, "B": "x\0y"})) == [("error", "MF502", "1"), ("error", "MF537", '"B"')]
    assert said(manifest(env=[])) == [("error", "MF502", "[]")]


# Other shapes and broken files


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ({"name": "x", "description": "d", "parameters": {}}, "openai"),
        ({"type": "function", "function": {"name": "x"}}, "openai"),
        ({"name": "x", "inputSchema": {"type": "object"}}, "mcp"),
        ({"name": "x", "input_schema": {"type": "object"}}, "anthropic"),
        ({"id": "x", "implementation": {}}, "implementation"),
        ({"name": "x", "pluginType": "synchronous", "communication": {}}, "vcp"),
        ({"openapi": "3.1.0", "paths": {}}, "openapi"),
        ({"tools": [{"name": "x", "inputSchema": {}}]}, "list"),
        ([{"name": "x", "inputSchema": {}}], "list"),
    ],
)
def test_a_foreign_shape_gets_one_diagnostic_that_names_it(text: Any, shape: str):  # ruling 32
    (diag,) = read_manifest(json.dumps(text)).diagnostics
    assert diag.code == "MF516" and diag.data["shape"] == shape


def test_tools_of_mcp_servers_are_recognised(corpora: Path):  # ruling 32
    seen = 0
    for path in sorted((corpora / "mcp-tools").rglob("*.json")):
        stack: list[Any] = [json.loads(path.read_text())]
        while stack:
            node = stack.pop()
            if isinstance(node, dict):
                if "inputSchema" in node and "name" in node:
                    seen += 1
                    (diag,) = read_manifest(json.dumps(node)).diagnostics
                    assert diag.data["shape"] == "mcp"
                else:
                    stack.extend(node.values())
            elif isinstance(node, list):
                stack.extend(node)
    assert seen > 50


def test_a_broken_file_still_says_what_else_is_wrong():
    text = '{"toolId": "a b", "version": 1, "handler": {"type": "x"'
    codes = {code for _, code, _ in said(text)}
    assert {"MF521", "MF506", "MF502", "MF503"} <= codes
    assert read_manifest(text).tree.node_at("/handler/type") is not None


def test_an_empty_file_is_one_error():
    assert [code for _, code, _ in said("")] == ["MF520"]


@pytest.mark.slow
@given(st.data())
def test_no_damage_raises_and_a_manifest_means_no_error(data: st.DataObject):
    text = manifest(
        parameters={"type": "object", "properties": {"a": {"type": "string"}}}, examples=[{"input": {"a": "x"}}]
    )
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 12)))
    text = text[:at] + data.draw(st.text('{}[]",:x1 \\\n', max_size=4)) + text[end:]
    reading = read_manifest(text)
    errors = [diag for diag in reading.diagnostics if severity(diag) == "error"]
    assert (reading.manifest is None) == bool(errors)
    for diag in reading.diagnostics:
        assert 0 <= diag.span[0] <= diag.span[1] <= len(text)
        assert (diag.code in CATALOGUE and "{" not in message(diag).replace("'{'", "").replace(text, "")) or "{" in text


@pytest.mark.parametrize("value", [None, True, 3, "x", [], {}, [1], {"a": 1}])
@pytest.mark.parametrize(
    "name",
    [
        *GOOD,
        "parameters",
        "output",
        "securityContext",
        "examples",
        "tags",
        "aliases",
        "execution",
        "dependencies",
        "protocolConfig",
    ],
)
def test_any_value_in_any_field_is_a_manifest_or_an_error(name: str, value: Any):
    reading = read_manifest(manifest(**{name: value}))
    assert (reading.manifest is None) == any(severity(diag) == "error" for diag in reading.diagnostics)


# The published schema


@pytest.mark.parametrize("name", ["toolId", "displayName", "description", "version", "handler"])
def test_the_published_schema_asks_for_the_same_required_fields(name: str):
    assert not Draft7Validator(manifest_schema()).is_valid(json.loads(without(name)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"handler": {"type": "service-method", "serviceName": "s", "methodName": "m"}},
        {"handler": {"type": "service-method"}},
        {"handler": {"type": "external-script", "scriptPath": "a.py"}},
        {"handler": {"type": "x"}},
        {"handler": {"type": "external-script", "scriptPath": "a.js", "language": "node"}},
        {"tags": "x"},
        {"tags": ["x"]},
        {"examples": [{}]},
        {"examples": [{"input": {}}]},
        {"agentCallable": 1},
        {"execution": {"mode": "later"}},
        {"execution": {"limits": {"wallMs": 5}}},
        {"execution": {"timeoutMs": 0}},
        {"dependencies": {"a:b": 1}},
        {"x-own": 1},
    ],
)
def test_the_published_schema_and_the_reader_give_the_same_verdict(changes: dict[str, Any]):
    schema = manifest_schema()
    Draft7Validator.check_schema(schema)
    accepted = read_manifest(manifest(**changes)).manifest is not None
    assert Draft7Validator(schema).is_valid({**GOOD, **changes}) == accepted


def test_every_field_of_the_published_schema_is_described():
    def bare(node: Any, path: str) -> list[str]:
        found: list[str] = []
        for name, part in node.get("properties", {}).items():
            if "const" in part:
                continue
            if "description" not in part and not path.endswith("/limits"):
                found.append(f"{path}/{name}")
            found += bare(part, f"{path}/{name}") + bare(
                part.get("items", {}) if isinstance(part.get("items"), dict) else {}, f"{path}/{name}[]"
            )
        return found

    assert bare(manifest_schema(), "") == []


@pytest.mark.parametrize(
    ("text", "good"), [("1.0.0", True), ("1.2.3-rc.1+b", True), ("1.0", False), ("v1.0.0", False), ("01.0.0", False)]
)
def test_semantic_versions(text: str, good: bool):  # D32
    assert is_semver(text) == good


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("^1.2.3", True),
        ("~1.2", True),
        (">=1.0 <2", True),
        ("1.x", True),
        ("*", True),
        ("1 || 2", True),
        ("1.0 - 2.0", True),
        (">= 1.2", True),
        ("", False),
        ("new", False),
        ("1.2.3.4", False),
        ("||", False),
    ],
)
def test_version_ranges(text: str, good: bool):
    assert is_version_range(text) == good


@pytest.mark.parametrize(
    ("mapping", "place"),
    [
        ({"who": "id"}, '"who"'),  # the tool has no such parameter
        ({"a": "id", "b": "id"}, '"id"'),  # two lead to one
        ({"a": "b"}, '"b"'),  # the tool's own b is there too
    ],
)
def test_a_mapping_of_parameters_that_cannot_be_is_an_error_at_its_place(
    mapping: dict[str, str], place: str
) -> None:  # D96
    handler = {"type": "service-method", "serviceName": "S", "methodName": "m", "parameterMapping": mapping}
    properties = {name: {"type": "string", "description": "A text."} for name in ("a", "b")}
    found = said(manifest(handler=handler, parameters={"type": "object", "properties": properties}))
    assert [one for one in found if one[0] == "error"] == [("error", "MF539", place)]


def test_a_mapping_follows_the_parameters_while_they_are_edited() -> (
    None
):  # D96: the handler itself stays as it was read
    handler = {"type": "service-method", "serviceName": "S", "methodName": "m", "parameterMapping": {"a": "id"}}
    before = read_manifest(manifest(handler=handler, parameters={"type": "object", "properties": {"a": {}}}))
    after = read_manifest(
        manifest(handler=handler, parameters={"type": "object", "properties": {"c": {}}}), memory=before.memory
    )
    assert before.manifest is not None
    assert [diag.code for diag in after.diagnostics if diag.code == "MF539"] == ["MF539"]
