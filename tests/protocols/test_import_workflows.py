"""ComfyUI's API form and n8n's files as one tool each, every loss with its place (F9)."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import message, severity
from tamis.protocols.manifest.from_workflows import MAX_NODES, MAX_NOTES, import_comfyui, import_n8n
from tamis.protocols.manifest.imported import Imported
from tamis.protocols.manifest.reading import read_manifest
from tests.growth import steps
from tests.protocols.workflow_files import comfyui_graph, n8n_form, n8n_workflow


def tool(made: Imported) -> dict[str, Any]:
    """The one manifest, which reads without an error, beside a script that is Python."""
    assert made.why_not == ""
    (one,) = made.tools
    faults = [message(d) for d in read_manifest(json.dumps(one.manifest)).diagnostics if severity(d) == "error"]
    assert faults == []
    ((name, text),) = made.scripts.items()
    assert one.manifest["handler"]["scriptPath"] == name  # type: ignore[index,call-overload]
    ast.parse(text)
    return one.manifest


def notes(made: Imported) -> set[tuple[str, str]]:
    return {(note.code, note.path) for one in made.tools for note in one.notes}


def properties(made: Imported) -> dict[str, dict[str, Any]]:
    return tool(made)["parameters"]["properties"]


def test_texts_and_numbers_of_a_graph_are_parameters_with_their_values_as_defaults() -> None:  # F9
    made = import_comfyui(comfyui_graph(), "portrait")
    given_ = properties(made)
    assert {name: (schema["type"], schema["default"]) for name, schema in given_.items()} == {
        "seed": ("integer", 5),
        "steps": ("integer", 20),
        "cfg": ("number", 8),
        "denoise": ("number", 0.75),
        "Positive_text": ("string", "a cat"),
        "Negative_text": ("string", "blurred"),
        "width": ("integer", 512),
    }
    assert "required" not in tool(made)["parameters"]
    assert tool(made)["securityContext"]["networkAccess"] == {"allowHosts": ["comfyui.internal:8188"]}


def test_what_is_no_parameter_or_was_assumed_is_told_at_its_place() -> None:  # F9
    told = notes(import_comfyui(comfyui_graph(), "portrait"))
    assert told >= {
        ("value-kept", "/3/inputs/sampler_name"),
        ("value-kept", "/4/inputs/ckpt_name"),
        ("type-assumed", "/3/inputs/cfg"),
        ("name-changed", "/6/inputs/text"),
        ("files-by-address", ""),
        ("server-assumed", ""),
        ("description-missing", ""),
    }


def test_a_key_in_a_graph_is_in_neither_file() -> None:  # F9: what comes from others does not spread
    graph = comfyui_graph()
    graph["20"] = {"class_type": "Ask", "inputs": {"api_key": "sk-12345", "max_tokens": 5}}
    made = import_comfyui(graph, "portrait")
    assert tool(made)["securityContext"]["secrets"] == ["API_KEY"]
    assert "sk-12345" not in json.dumps(tool(made)) + "".join(made.scripts.values())
    assert ("credentials", "/20/inputs/api_key") in notes(made)
    assert "max_tokens" in properties(made)


def test_the_body_of_a_request_is_read_as_its_graph() -> None:  # F9
    made = import_comfyui({"client_id": "x", "prompt": comfyui_graph()}, "portrait")
    assert ("value-kept", "/prompt/4/inputs/ckpt_name") in notes(made)


def test_names_that_fall_together_are_distinct() -> None:  # F9
    graph = {
        str(at): {"class_type": "Text", "inputs": {"text": "a"}, "_meta": {"title": title}}
        for at, title in enumerate(["A b", "A-b", "a B", "a!b"])
    }
    names = list(properties(import_comfyui(graph, "x")))
    assert names == ["A_b_text", "A_b_text_2", "a_B_text_3", "a_b_text_4"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "API form is an object"),
        ({}, "API form is an object"),
        ({"1": {"class_type": "X", "inputs": []}}, '"1" is none'),
        ({"1": {"class_type": 3}}, '"1" is none'),
        ({"nodes": [], "links": []}, "export it once more in API form"),
        ({"1": {"class_type": "X", "inputs": {"a": ["2", 0]}}, "2": {"class_type": "X", "inputs": {"a": ["1", 0]}}}, "back to themselves"),
        ({"1": {"class_type": "X", "inputs": {"a": ["1", 0]}}}, "back to themselves"),
        ({"1": {"class_type": "X", "inputs": {"a": "x" * 9_000_000}}}, "too large"),
    ],
)  # fmt: skip
def test_a_graph_that_cannot_be_run_says_why(data: Any, words: str) -> None:  # F9
    made = import_comfyui(data, "x")
    assert words in made.why_not
    assert made.tools == ()


def test_a_graph_of_too_many_nodes_says_why() -> None:  # F9
    assert "100,000 nodes" in import_comfyui(chain(100_000), "x").why_not


def test_a_value_as_deep_as_json_goes_is_refused() -> None:  # F9
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert "deeper than" in import_comfyui({"1": {"class_type": "X", "inputs": {"a": value}}}, "x").why_not
    nodes = [{"name": "W", "type": "n8n-nodes-base.webhook", "parameters": {"path": "a", "x": value}}]
    assert import_n8n({"nodes": nodes, "connections": {}}, "x").tools


def chain(nodes: int) -> dict[str, Any]:
    return {
        str(at): {"class_type": "X", "inputs": {"seed": at, "name": "n", "from": [str(at - 1), 0]}}
        for at in range(nodes)
    }


def test_time_grows_with_the_graph() -> None:  # F9
    small, large = chain(MAX_NODES // 16), chain(MAX_NODES // 4)
    assert steps(lambda: import_comfyui(large, "x")) < 6 * steps(lambda: import_comfyui(small, "x"))


def test_the_notes_of_a_large_graph_have_an_end() -> None:  # F9
    made = import_comfyui(chain(MAX_NODES), "x")
    assert len(properties(made)) == 100
    assert len(made.tools[0].notes) == MAX_NOTES + 1
    assert made.tools[0].notes[-1].code == "more"


def test_no_text_of_a_graph_gets_out_of_its_literal() -> None:  # F9: the script is code that runs
    evil = '\'"""\n\\\nimport os\n\u2028\x00{graph}{{'
    graph = {evil: {"class_type": evil, "inputs": {evil: evil, "text": evil}, "_meta": {"title": evil}}}
    made = import_comfyui(graph, "x")
    tool(made)
    plain = import_comfyui({"1": {"class_type": "X", "inputs": {"text": "a"}}}, "x")
    ((text,), (usual,)) = made.scripts.values(), plain.scripts.values()
    assert [type(node) for node in ast.parse(text).body] == [type(node) for node in ast.parse(usual).body]
    assert text.isascii()


# n8n


def test_the_fields_that_a_workflow_reads_are_the_parameters_of_its_webhook() -> None:  # F9
    made = import_n8n(n8n_workflow(), "mail")
    manifest = tool(made)
    assert manifest["toolId"] == "custom:Answer-mail"
    assert list(manifest["parameters"]["properties"]) == ["subject", "user", "reply_to", "lang"]
    assert {("inferred", "/nodes/1/parameters/subject"), ("inferred", "/nodes/1/parameters/options/language")} <= notes(
        made
    )
    assert ("inactive", "/active") in notes(made)
    assert manifest["securityContext"] == {"networkAccess": {"allowHosts": ["n8n.internal:5678"]}}


def test_the_fields_of_a_form_are_parameters_under_their_labels() -> None:  # F9
    made = import_n8n(n8n_form(), "form")
    manifest = tool(made)
    schema = manifest["parameters"]
    assert {name: one.get("type") for name, one in schema["properties"].items()} == {
        "Your_name": "string", "Age": "number", "Colour": "string", "Days": "array",
    }  # fmt: skip
    assert schema["properties"]["Colour"]["enum"] == ["red", "blue"]
    assert schema["required"] == ["Your_name"]
    assert manifest["description"] == "Asks a person's colour for the test."
    assert ("parameters-dropped", "/nodes/0/parameters/formFields/values/4") in notes(made)


def test_parts_of_a_path_are_required_and_come_after_the_webhooks_id() -> None:  # F9
    data = n8n_workflow()
    data["nodes"][0]["parameters"]["path"] = "mail/:box/x y"
    data["nodes"][0]["webhookId"] = "0a-1b"
    made = import_n8n(data, "mail")
    assert tool(made)["parameters"]["required"] == ["box"]
    assert "/webhook/0a-1b/mail/{box}/x%20y" in next(iter(made.scripts.values()))


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"authentication": "headerAuth"}, ("credentials", "/nodes/0/parameters/authentication")),
        ({"authentication": "odd"}, ("credentials", "/nodes/0/parameters/authentication")),
        ({"httpMethod": "GET"}, ("parameters-dropped", "/nodes/1/parameters/subject")),
        ({"httpMethod": ["POST", "GET"]}, ("method-dropped", "/nodes/0/parameters/httpMethod")),
        ({"responseMode": "onReceived"}, ("result-lost", "/nodes/0/parameters/responseMode")),
    ],
)
def test_what_a_webhook_loses_is_told_at_its_place(change: dict[str, Any], note: tuple[str, str]) -> None:  # F9
    data = n8n_workflow()
    data["nodes"][0]["parameters"].update(change)
    assert note in notes(import_n8n(data, "mail"))


def test_a_second_trigger_is_told_and_a_disabled_one_is_none() -> None:  # F9
    data = n8n_workflow()
    again = {**data["nodes"][0], "name": "Again"}
    data["nodes"] += [again, {**again, "disabled": True}]
    at = len(data["nodes"]) - 2
    assert {place for code, place in notes(import_n8n(data, "x")) if code == "trigger-dropped"} == {f"/nodes/{at}"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "nodes and connections"),
        ({"nodes": {}, "connections": {}}, "nodes and connections"),
        ({"nodes": [1, None, {"type": "n8n-nodes-base.scheduleTrigger"}], "connections": {}}, "scheduleTrigger"),
        ({"nodes": [{}] * 100_000, "connections": {}}, "100,000 nodes"),
        ({"nodes": [{"type": "n8n-nodes-base.webhook", "parameters": {"path": "={{ 1 }}"}}], "connections": {}}, "no fixed path"),
        ({"nodes": [{"type": "n8n-nodes-base.formTrigger", "parameters": 3}], "connections": {}}, "no fixed path"),
    ],
)  # fmt: skip
def test_a_workflow_that_nothing_can_call_says_why(data: Any, words: str) -> None:  # F9
    made = import_n8n(data, "x")
    assert words in made.why_not
    assert made.tools == ()


@pytest.mark.parametrize(
    "url", ["ftp://x", "x", "http://", "http://u:p@h", "http://h/?k=1", "http://h\n", "http://[", "http://h:99999"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:  # F9
    assert "--base-url" in import_comfyui(comfyui_graph(), "x", url).why_not
    assert "--base-url" in import_n8n(n8n_workflow(), "x", url).why_not


def test_this_machine_by_its_name_is_told_to_be_out_of_reach() -> None:  # F9: inside the sandbox it is the sandbox
    assert ("server-unreachable", "") in notes(import_comfyui(comfyui_graph(), "x", "http://127.0.0.1:8188/"))


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5) | st.sampled_from(["n8n-nodes-base.webhook", "n8n-nodes-base.formTrigger", "={{ $json.body.x }}", "a/:b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["nodes", "connections", "type", "parameters", "path", "formFields", "values", "fieldLabel", "fieldType",
                         "class_type", "inputs", "_meta", "title", "text", "seed", "api_key", "1", "2", "prompt", "webhookId", "name"]),
        inner, max_size=6),
    max_leaves=20,
)  # fmt: skip
NODE = st.fixed_dictionaries({"class_type": st.text(min_size=1, max_size=4), "inputs": st.dictionaries(st.text(max_size=4) | st.sampled_from(["text", "seed", "token"]), VALUES, max_size=4), "_meta": VALUES})  # fmt: skip
TRIGGER = st.fixed_dictionaries({"type": st.sampled_from(["n8n-nodes-base.webhook", "n8n-nodes-base.formTrigger"]), "parameters": VALUES, "webhookId": VALUES, "name": VALUES})  # fmt: skip


@given(VALUES | st.dictionaries(st.text(max_size=3), NODE, max_size=4) | st.fixed_dictionaries({"nodes": st.lists(TRIGGER | VALUES, max_size=3), "connections": st.dictionaries(st.text(max_size=2), VALUES, max_size=2)}))  # fmt: skip
def test_any_json_gives_one_sound_tool_or_the_reason_why_not(data: Any) -> None:  # F9
    for made in (import_comfyui(data, "x"), import_n8n(data, "x")):
        if made.why_not:
            assert made.tools == ()
        else:
            tool(made)
