"""OpenAPI documents, MCP listings and Python files as manifests: each part where it belongs, each loss with code and place (D88)."""

from __future__ import annotations

import ast
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import message, severity
from tamis.protocols.manifest.from_openapi import import_openapi
from tamis.protocols.manifest.from_python import import_functions
from tamis.protocols.manifest.imported import Imported
from tamis.protocols.manifest.imports import import_mcp, import_tools, shape_of
from tamis.protocols.manifest.reading import read_manifest
from tests.protocols.openapi_document import pets


def sound(made: Imported) -> dict[str, dict[str, Any]]:
    """The manifests by bare name; every one reads without an error."""
    for tool in made.tools:
        faults = [message(d) for d in read_manifest(json.dumps(tool.manifest)).diagnostics if severity(d) == "error"]
        assert faults == [], tool.name
    return {tool.name: tool.manifest for tool in made.tools}


def notes(made: Imported) -> set[tuple[str, str]]:
    return {(note.code, note.path) for note in (*made.notes, *(note for tool in made.tools for note in tool.notes))}


def operation(**fields: Any) -> dict[str, Any]:
    paths = {
        "/x/{id}": {
            "get": {"operationId": "getX", "parameters": [{"name": "id", "in": "path", "schema": {}}], **fields}
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "X", "version": "1.0.0"},
        "servers": [{"url": "https://x.example"}],
        "paths": paths,
    }


def test_an_operation_has_its_parameters_its_host_and_its_output() -> None:  # interop §2.4
    made = import_openapi(pets(), "pets")
    tools = sound(made)
    assert list(tools) == ["getPet", "delete-pets-petId", "createPet"]
    get = tools["getPet"]
    assert {name: one["x-in"] for name, one in get["parameters"]["properties"].items()} == {
        "petId": "path",
        "tags": "query",
        "where": "query",
        "X-Trace": "header",
    }
    assert get["parameters"]["required"] == ["petId"]
    assert get["securityContext"] == {"networkAccess": {"allowHosts": ["api.example.com"]}}
    assert get["execution"] == {"idempotent": True}
    assert (get["tags"], get["version"]) == (["pets"], "1.2.0")
    assert tools["delete-pets-petId"]["execution"] == {"idempotent": True, "requireConfirmation": True}
    assert get["handler"]["scriptPath"] in made.scripts
    assert ("credentials", "/components/securitySchemes") in notes(made)


def test_schemas_of_3_0_come_out_in_todays_words_and_stand_alone() -> None:
    tools = sound(import_openapi(pets(), "pets"))
    body, output = tools["createPet"]["parameters"], tools["createPet"]["output"]
    pet = body["$defs"]["Pet"]
    assert "id" not in pet["properties"]  # readOnly: never sent
    assert pet["required"] == ["name"]
    assert pet["properties"]["tag"] == {"type": ["string", "null"]}
    assert pet["properties"]["age"] == {"type": "number", "exclusiveMinimum": 0}
    assert pet["properties"]["name"]["examples"] == ["Rex"]
    assert "pin" not in output["$defs"]["Pet"]["properties"]  # writeOnly: never given
    validator = jsonschema.Draft202012Validator(body)
    assert validator.is_valid({"body": {"name": "a", "kids": [{"name": "b"}]}})
    assert not validator.is_valid({"body": {"name": "a", "kids": [{}]}})


def test_3_1_schemas_are_taken_as_they_are() -> None:
    schema = {"type": ["integer", "null"], "exclusiveMinimum": 0, "examples": [1]}
    listed = [{"name": "id", "in": "path", "schema": schema}]
    (tool,) = sound(import_openapi(operation(parameters=listed), "x")).values()
    assert tool["parameters"]["properties"]["id"] == {**schema, "x-in": "path"}


def test_the_script_is_python_and_has_a_function_for_every_operation() -> None:
    document = pets()
    document["info"]["title"] = 'Evil """ title \\ \n import os'
    document["paths"]["/class"] = {
        "get": {"operationId": "class", "responses": {}},
        "put": {"operationId": "call"},
        "post": {"operationId": "1/x y"},
    }
    made = import_openapi(document, "my pets")
    (text,) = made.scripts.values()
    tree = ast.parse(text)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    wanted = {tool["handler"]["entryPoint"] for tool in sound(made).values()}
    assert wanted <= functions
    assert len(wanted) == len(made.tools) == 6
    # what another program of the same name does is not undone by an operation's name
    assert functions >= {"call", "decoded"}
    assert "call" not in wanted


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"parameters": [{"$ref": "other.yaml#/x"}]}, None),
        ({"requestBody": {"content": {"multipart/form-data": {}}}}, ("parameters-dropped", "/requestBody")),
        (
            {"requestBody": {"content": {"application/x-www-form-urlencoded": {"encoding": {"a": {"style": "odd"}}}}}},
            ("changed", "/requestBody/content/application~1x-www-form-urlencoded/encoding/a"),
        ),
        (
            {"parameters": [{"name": "id", "in": "path"}, {"name": "q", "in": "query", "allowReserved": True}]},
            ("changed", "/parameters/1/allowReserved"),
        ),
        ({"callbacks": {"x": {}}}, ("field-dropped", "/callbacks")),
        (
            {"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "http://else/where"}}}}}},
            ("ref-unresolved", "/responses/200/content/application~1json/schema"),
        ),
        ({"security": [{"nowhere": []}]}, ("credentials", "/security")),
        ({"servers": [{"url": "http://localhost:8080"}]}, ("server-unreachable", None)),
        ({"servers": [{"url": "https://a.example"}, {"url": "https://b.example"}]}, ("assumed", None)),
        (
            {"requestBody": {"content": {"application/json": {"schema": {"discriminator": {}}}}}},
            ("field-dropped", "/requestBody/content/application~1json/schema/discriminator"),
        ),
        ({"operationId": "get x!"}, ("name-changed", "/operationId")),
    ],
)
def test_what_cannot_be_taken_over_is_said(fields: dict[str, Any], note: tuple[str, str | None] | None) -> None:
    made = import_openapi(operation(**fields), "x")
    sound(made)
    told = notes(made)
    if note is None:
        assert "parameters-dropped" in {code for code, _ in told}
        assert made.tools == ()  # a part of its path is then nobody's
    else:
        code, path = note
        assert any(code == one and (path is None or where == f"/paths/~1x~1{{id}}/get{path}") for one, where in told), (
            told
        )


@pytest.mark.parametrize(
    ("scheme", "said", "sent"),
    [
        (
            {"type": "oauth2", "flows": {"clientCredentials": {}, "implicit": {}}},
            "OAuth 2 (clientCredentials, implicit)",
            1,
        ),
        (
            {"type": "openIdConnect", "openIdConnectUrl": "https://x"},
            "OpenID Connect: the script fetches and renews no",
            1,
        ),
        ({"type": "http", "scheme": "digest"}, "the scheme 's' is not known to the script", 0),
        ({"type": "mutualTLS"}, "the scheme 's' is not known to the script", 0),
        ({"type": "http", "scheme": "Bearer"}, "", 1),
    ],
)
def test_credentials_that_the_script_cannot_get_are_said(scheme: dict[str, Any], said: str, sent: int) -> None:
    document = operation(security=[{"s": []}]) | {"components": {"securitySchemes": {"s": scheme}}}
    made = import_openapi(document, "x")
    told = [note.message for tool in made.tools for note in tool.notes if note.code == "credentials"]
    assert [said in one for one in told] == ([True] if said else [])
    (script,) = made.scripts.values()
    assert ("SCHEMES = {'s': ['bearer', '', 'X_S']}" in script) == bool(sent)
    asked = [tool.manifest["securityContext"].get("secrets") for tool in made.tools]
    assert asked == [["X_S"] if sent else None]


@pytest.mark.parametrize(
    ("security", "secrets"),
    [([{"a": []}, {"b": []}], ["X_A"]), ([{"a": [], "b": []}], ["X_A", "X_B"]), ([{}, {"a": []}], None)],
)
def test_an_operation_asks_for_the_secrets_of_its_first_way_to_authorize(security: Any, secrets: Any) -> None:
    scheme = {"type": "apiKey", "in": "header", "name": "K"}
    document = operation(security=security) | {"components": {"securitySchemes": {"a": scheme, "b": scheme}}}
    (tool,) = import_openapi(document, "x").tools
    assert tool.manifest["securityContext"].get("secrets") == secrets


def test_a_body_that_is_left_out_says_whether_the_service_asks_for_it() -> None:
    for required in (False, True):
        body = {"required": required, "content": {"multipart/form-data": {"schema": {"type": "object"}}}}
        made = import_openapi(operation(requestBody=body), "x")
        (told,) = [note.message for tool in made.tools for note in tool.notes if note.code == "parameters-dropped"]
        assert told.startswith(
            "a body of multipart/form-data is left out: the script sends JSON, URL-encoded forms and"
        )
        assert ("the service asks for one" in told) == required


@pytest.mark.parametrize(
    ("media", "encoding", "body", "sent"),
    [
        ("application/x-www-form-urlencoded", {}, {"a": "b c", "n": 1, "l": [1, "ä"]}, "a=b+c&n=1&l=1&l=%C3%A4"),
        ("application/x-www-form-urlencoded; charset=utf-8", {}, {"t": True, "no": None}, "t=true"),
        (
            "application/x-www-form-urlencoded",
            {"l": {"style": "pipeDelimited"}, "o": {"style": "deepObject"}, "j": {"contentType": "application/json"}},
            {"l": [1, 2], "o": {"x": 1}, "j": {"y": [2]}},
            "l=1%7C2&o%5Bx%5D=1&j=%7B%22y%22%3A+%5B2%5D%7D",
        ),
        ("application/x-www-form-urlencoded", {}, "a=b", "a=b"),
    ],
)
def test_a_form_is_written_as_its_document_says(media: str, encoding: Any, body: Any, sent: str) -> None:  # D88
    content = {media: {"schema": {} if isinstance(body, dict) else {"type": "string"}, "encoding": encoding}}
    made = import_openapi(operation(requestBody={"content": content}), "x")
    (tool,) = sound(made).values()
    assert tool["parameters"]["properties"]["body"]["type"] == ("object" if isinstance(body, dict) else "string")
    (script,) = made.scripts.values()
    world: dict[str, Any] = {"__file__": "x.py"}
    exec(compile(script, "x.py", "exec"), world)  # the script's own code, which only defines functions
    (fields,) = [one["fields"] for one in world["OPERATIONS"].values()]
    assert world["encoded"](body, media, fields) == sent.encode()


def test_names_that_meet_in_two_places_both_get_through() -> None:
    listed = [{"name": "id", "in": place, "schema": {"type": "string"}} for place in ("path", "query", "header")]
    listed.append({"name": "body", "in": "query", "schema": {}})
    made = import_openapi(operation(parameters=listed), "x")
    (tool,) = sound(made).values()
    assert list(tool["parameters"]["properties"]) == ["id", "query_id", "header_id", "query_body"]


def test_servers_have_variables_and_the_nearest_counts() -> None:
    document = operation()
    document["servers"] = [
        {
            "url": "https://{region}.x.example:{port}/v1/",
            "variables": {"region": {"default": "eu"}, "port": {"default": 8443}},
        }
    ]
    (tool,) = sound(import_openapi(document, "x")).values()
    assert tool["securityContext"]["networkAccess"]["allowHosts"] == ["eu.x.example:8443"]
    document["servers"] = [{"url": "/relative"}]
    assert import_openapi(document, "x").tools == ()
    (tool,) = sound(import_openapi(document, "x", "https://given.example/base")).values()
    assert tool["securityContext"]["networkAccess"]["allowHosts"] == ["given.example"]


def test_a_schema_that_refers_to_itself_without_end_is_bounded() -> None:
    document = operation(requestBody={"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}})
    loops = {
        "A": {"$ref": "#/components/schemas/B"},
        "B": {"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]},
    }
    document["components"] = {"schemas": loops}
    (tool,) = import_openapi(document, "x").tools
    # no schema at all: reading the manifest says so, and `tamis import` leaves the tool out
    assert read_manifest(json.dumps(tool.manifest)).manifest is None
    deep: Any = {}
    for _ in range(500):
        deep = {"items": deep}
    document["components"] = {"schemas": {"A": deep}}
    assert "too-large" in {code for code, _ in notes(import_openapi(document, "x"))}


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "x", "#/paths", "#/components/schemas/A", "path", "query", "https://a.example"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "$ref",
                        "name",
                        "in",
                        "schema",
                        "parameters",
                        "get",
                        "post",
                        "requestBody",
                        "content",
                        "application/json",
                    ),
                    *(
                        "responses",
                        "200",
                        "servers",
                        "url",
                        "security",
                        "type",
                        "properties",
                        "required",
                        "a",
                        "operationId",
                    ),
                    *(
                        "tools",
                        "inputSchema",
                        "_meta",
                        "annotations",
                        "dev.tamis/examples",
                        "input",
                        "function",
                        "description",
                    ),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(_json, _json, _json)
def test_no_document_raises_and_every_manifest_is_sound(paths: Any, components: Any, servers: Any) -> None:
    document = {
        "openapi": "3.0.1",
        "paths": {"/a": paths, "/b/{x}": {"get": paths}},
        "components": components,
        "servers": servers,
    }
    for base in ("", "https://b.example"):
        made = import_openapi(document, "x", base)
        sound(made)
        assert made.tools or made.why_not
        for text in made.scripts.values():
            ast.parse(text)


@given(_json)
def test_no_listing_raises_and_every_manifest_is_sound(data: Any) -> None:
    for listing in (
        data,
        {"tools": data},
        [{"name": "x", "inputSchema": {}, **(data if isinstance(data, dict) else {})}],
    ):
        made = import_mcp(listing, "s")
        for tool in made.tools:
            handler: Any = tool.manifest["handler"]
            assert (handler["type"], handler["server"]) == ("mcp", "s")
        shape = shape_of(listing)
        if shape is not None:
            import_tools(shape, listing)


@given(st.text(max_size=200))
def test_no_source_raises(source: str) -> None:
    made = import_functions(source, "x.py")
    assert made.tools or made.why_not


def test_what_tamis_itself_once_said_of_a_tool_is_restored() -> None:
    meta = {
        "dev.tamis/toolId": "core:echo",
        "dev.tamis/version": "2.0.0",
        "dev.tamis/tags": ["a"],
        "dev.tamis/examples": [{"input": {}}],
    }
    made = import_mcp([{"name": "core_echo", "description": "Gives back.", "inputSchema": {}, "_meta": meta}], "s")
    (tool,) = sound(made).values()
    assert (tool["toolId"], tool["version"], tool["tags"], tool["examples"]) == (
        "core:echo",
        "2.0.0",
        ["a"],
        [{"input": {}}],
    )
    assert notes(made) == set()
    broken = {"dev.tamis/toolId": "a b", "dev.tamis/version": 3, "dev.tamis/tags": "x", "dev.tamis/examples": [1]}
    (kept,) = sound(
        import_mcp([{"name": "e", "description": "Gives back.", "inputSchema": {}, "_meta": broken}], "s")
    ).values()
    assert (kept["toolId"], kept["version"], "tags" in kept, "examples" in kept) == ("custom:e", "0.1.0", False, False)
