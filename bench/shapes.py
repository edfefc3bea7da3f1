"""How each request of an editor grows with the document, for every shape that a document can take: work that is a square is named.

Each shape is a document of ``n`` of something and one of ``4n``. A real server gets both over pipes, with each request that an editor sends, and what
it spends is its own processor time, so that a busy machine does not decide. Linear work gives 4, a square gives 16. ``SHAPES`` is the list to add to
when a document may hold something new, ``REQUESTS`` when the server answers something new.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.lsp_client import Message, Server
from bench.lsp_texts import position
from bench.measure import EFFORT, shown

TIMES = 4
GROWS = 7.0
"""A larger ratio than this is told; linear work beside a garbage collection or a cold cache stays below it."""
WORTH_S = 0.04
"""What takes less than this at ``4n`` is never told."""
AGAIN = 2
"""What seems to grow is measured again this often, and the least counts."""
LEAST_S = 0.002
"""Times below it count as this."""
QUIET_S = 0.03
"""A server that has said and done nothing for so long is idle."""
SILENCE_S = 5.0
"""There are documents about which nothing is said: findings are waited for no longer than this."""
_NAME = re.compile(r"[a-z_]+[0-9]+|(?:text|data|count)(?=[:>])", re.IGNORECASE)
"""What shapes count up, so that ``n`` and ``4n`` are asked about the same kind of place."""
WIDE = 250
"""Parameters of the tool that wide calls are of."""


class Shape(NamedTuple):
    """The name of its file, how much of it is ``n``, and the document of ``n``."""

    file: str
    n: int
    build: Callable[[int], str]


# Manifests


def _manifest(**members: Any) -> str:
    whole: dict[str, Any] = {
        "toolId": "bench:shape",
        "displayName": "Shape",
        "description": "A tool that is there to have a shape; its parameters do nothing at all.",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": "tool.py", "language": "python"},
        "parameters": {"type": "object", "properties": {"one": {"type": "string", "description": "The one."}}},
    }
    return json.dumps(whole | members, indent=2, ensure_ascii=False)


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def _schema(properties: dict[str, Any], **more: Any) -> str:
    return _manifest(parameters=_object(properties, **more))


def _numbered(n: int, make: Callable[[int], Any], name: str = "p") -> dict[str, Any]:
    return {f"{name}{i}": make(i) for i in range(n)}


def _plain(i: int) -> dict[str, Any]:
    return {"type": "string", "description": f"Parameter {i}."}


def _integer(i: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": i, "description": f"Parameter {i}."}


def _one_example(properties: dict[str, Any], given: dict[str, Any], **more: Any) -> str:
    example = {"description": "All at once.", "input": given}
    return _manifest(parameters=_object(properties, **more), examples=[example])


def _examples(n: int, make: Callable[[int], Any], **more: Any) -> str:
    properties = {"one": {"type": "string"}, "two": {"type": "integer"}}
    listed = [{"description": f"Number {i}.", "input": make(i)} for i in range(n)]
    return _manifest(parameters=_object(properties, additionalProperties=False, **more), examples=listed)


def _nested(n: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string"}
    for i in range(n):
        inner = _object({f"level{i}": inner})
    return inner


def _repeated(member: str, n: int) -> str:
    """A manifest with the same text ``n`` times behind its first brace; ``{i}`` counts."""
    return "{\n" + "".join(f"  {member.replace('{i}', str(i))},\n" for i in range(n)) + _manifest()[2:]


def _chain(i: int, n: int) -> dict[str, Any]:
    return {"$ref": f"#/$defs/d{i + 1}"} if i + 1 < n else {"type": "string"}


def _minified(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


_MANIFESTS: dict[str, tuple[int, Callable[[int], str]]] = {
    "parameters": (250, lambda n: _schema(_numbered(n, _plain))),
    "parameters in one line": (250, lambda n: _minified(_schema(_numbered(n, _plain)))),
    "parameters, CRLF": (250, lambda n: _schema(_numbered(n, _integer)).replace("\n", "\r\n")),
    "parameters, not ASCII": (
        250,
        lambda n: _schema(_numbered(n, lambda i: {"type": "string", "description": f"参数 🚀 {i}"}, "名")),
    ),
    "parameters, all required": (250, lambda n: _schema(_numbered(n, _integer), required=[f"p{i}" for i in range(n)])),
    "required, none of them there": (250, lambda n: _schema({"one": {}}, required=[f"q{i}" for i in range(n)])),
    "required and misspelt": (
        150,
        lambda n: _schema(_numbered(n, _plain, "name"), required=[f"nome{i}" for i in range(n)]),
    ),
    "required, the same again": (250, lambda n: _schema({"one": {}}, required=["one"] * n)),
    "parameters without a type": (250, lambda n: _schema(_numbered(n, lambda i: {"description": f"{i}"}))),
    "parameters with wrong types": (250, lambda n: _schema(_numbered(n, lambda i: {"type": "strin"}))),
    "parameters with wrong bounds": (
        250,
        lambda n: _schema(_numbered(n, lambda i: {"type": "integer", "minimum": 5, "maximum": 1, "default": "x"})),
    ),
    "parameters with unknown keywords": (
        250,
        lambda n: _schema(_numbered(n, lambda i: {"type": "string", "minLenth": 1})),
    ),
    "parameters of nearly one name": (
        250,
        lambda n: _schema(_numbered(n, lambda i: {"type": "string"}, "a_parameter_that_has_a_long_name_")),
    ),
    "parameters in objects of eight": (60, lambda n: _schema(_numbered(n, lambda i: _object(_numbered(8, _plain))))),
    "parameters nested": (60, lambda n: _schema({"one": _nested(n)})),
    "unknown keywords of one schema": (
        250,
        lambda n: _schema({"one": {"type": "string"} | {f"minLenth{i}": i for i in range(n)}}),
    ),
    "patterns of names": (
        250,
        lambda n: _schema({}, patternProperties={f"^p{i}_": {"type": "string"} for i in range(n)}),
    ),
    "patterns of texts": (
        250,
        lambda n: _schema(_numbered(n, lambda i: {"type": "string", "pattern": f"^[a-z]{{{i % 9}}}$", "default": "A"})),
    ),
    "words of an enum": (500, lambda n: _schema({"one": {"enum": [f"word{i}" for i in range(n)]}})),
    "words of an enum, the same again": (500, lambda n: _schema({"one": {"enum": ["word"] * n}})),
    "objects of an enum": (250, lambda n: _schema({"one": {"enum": [{"a": i} for i in range(n)]}})),
    "wrong words of an enum": (250, lambda n: _schema({"one": {"type": "string", "enum": list(range(n))}})),
    "wrong defaults of one enum": (
        150,
        lambda n: _schema(
            {
                "one": {
                    "type": "array",
                    "items": {"enum": [f"word{i}" for i in range(n)]},
                    "default": [f"wort{i}" for i in range(n)],
                }
            }
        ),
    ),
    "definitions and references": (
        250,
        lambda n: _schema(_numbered(n, lambda i: {"$ref": f"#/$defs/d{i}"}), **{"$defs": _numbered(n, _plain, "d")}),
    ),
    "references to one definition": (
        250,
        lambda n: _schema(
            _numbered(n, lambda i: {"$ref": "#/$defs/d"}), **{"$defs": {"d": _object(_numbered(9, _plain))}}
        ),
    ),
    "references to nothing": (
        250,
        lambda n: _schema(_numbered(n, lambda i: {"$ref": f"#/$defs/e{i}"}), **{"$defs": _numbered(n, _plain, "d")}),
    ),
    "references by anchor": (
        250,
        lambda n: _schema(
            _numbered(n, lambda i: {"$ref": f"#a{i}"}), **{"$defs": _numbered(n, lambda i: {"$anchor": f"a{i}"}, "d")}
        ),
    ),
    "a chain of references": (
        100,
        lambda n: _schema({"one": {"$ref": "#/$defs/d0"}}, **{"$defs": _numbered(n, lambda i: _chain(i, n), "d")}),
    ),
    "branches of oneOf": (
        250,
        lambda n: _schema({"one": {"oneOf": [{"const": f"c{i}", "title": f"{i}"} for i in range(n)]}}),
    ),
    "objects of anyOf": (
        150,
        lambda n: _one_example(
            {"one": {"anyOf": [_object({f"k{i}": {"const": i}}, required=[f"k{i}"]) for i in range(n)]}},
            {"one": {"k": 1}},
        ),
    ),
    "parts of allOf": (
        150,
        lambda n: _one_example(
            {"one": {"allOf": [_object({f"k{i}": {"type": "integer"}}) for i in range(n)]}},
            {"one": {f"k{i}": "x" for i in range(n)}},
        ),
    ),
    "conditions": (
        150,
        lambda n: _schema(
            {"one": {"type": "string"}},
            allOf=[
                {"if": {"properties": {"one": {"const": f"c{i}"}}}, "then": {"required": ["one"]}} for i in range(n)
            ],
        ),
    ),
    "dependent names": (
        150,
        lambda n: _schema(_numbered(n, _plain), dependentRequired={f"p{i}": [f"p{i + 1}"] for i in range(n)}),
    ),
    "an output of many": (250, lambda n: _manifest(output=_object(_numbered(n, _plain)))),
    "examples": (150, lambda n: _examples(n, lambda i: {"one": f"x{i}", "two": i})),
    "examples that are wrong": (150, lambda n: _examples(n, lambda i: {"one": i, "two": "x"})),
    "examples with an unknown member": (150, lambda n: _examples(n, lambda i: {"one": "x", f"tow{i}": i})),
    "examples that lack one": (150, lambda n: _examples(n, lambda i: {"two": i}, required=["one"])),
    "examples without input": (150, lambda n: _manifest(examples=[{"description": "x"}] * n)),
    "examples of many parameters": (
        30,
        lambda n: _manifest(
            parameters=_object(_numbered(50, _plain)),
            examples=[{"description": f"{i}", "input": _numbered(50, str)} for i in range(n)],
        ),
    ),
    "an example with unknown members": (
        500,
        lambda n: _one_example({"one": {"type": "string"}}, _numbered(n, str, "u"), additionalProperties=False),
    ),
    "an example with misspelt members": (
        150,
        lambda n: _one_example(_numbered(n, _plain, "name"), _numbered(n, str, "nome"), additionalProperties=False),
    ),
    "an example with wrong members": (250, lambda n: _one_example(_numbered(n, _integer), _numbered(n, lambda i: "x"))),
    "an example that lacks all": (
        250,
        lambda n: _one_example(_numbered(n, _integer), {}, required=[f"p{i}" for i in range(n)]),
    ),
    "an example with a long list": (
        250,
        lambda n: _one_example({"one": {"type": "array", "items": {"type": "integer"}}}, {"one": list(range(n))}),
    ),
    "an example with a long wrong list": (
        250,
        lambda n: _one_example(
            {"one": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}}, {"one": ["x"] * n}
        ),
    ),
    "an example with wrong objects": (
        150,
        lambda n: _one_example(
            {
                "one": {
                    "type": "array",
                    "items": _object({"a": {"type": "integer"}}, required=["b"], additionalProperties=False),
                }
            },
            {"one": [{"a": "x", "c": i} for i in range(n)]},
        ),
    ),
    "an example with a long text": (
        2_000,
        lambda n: _one_example({"one": {"type": "integer"}}, {"one": "a word and\n" * n}),
    ),
    "an example nested": (
        60,
        lambda n: _one_example(
            {"one": {"type": "integer"}}, {"one": functools.reduce(lambda inner, i: [inner], range(n), 1)}
        ),
    ),
    "JSON texts in an example": (
        150,
        lambda n: _one_example({"one": {"type": "array"}}, {"one": [f'{{"a": [{i}, "x"]}}' for i in range(n)]}),
    ),
    "a long description": (4_000, lambda n: _manifest(description="A word and another. " * n)),
    "a long description with escapes": (4_000, lambda n: _manifest(description='A "word"\n\t\\and ' * n)),
    "unknown members": (250, lambda n: _repeated('"member{i}": 1', n)),
    "misspelt members": (250, lambda n: _repeated('"discription{i}": "x"', n)),
    "unknown members of the security context": (250, lambda n: _manifest(securityContext=_numbered(n, str, "secrts"))),
    "duplicate members": (250, lambda n: _repeated('"tags": []', n)),
    "duplicate parameters": (
        250,
        lambda n: _schema({"one": {"type": "string"}}).replace(
            '"one": {', '"one": {},\n"one": {' + '},\n"one": {' * n, 1
        ),
    ),
    "tags": (500, lambda n: _manifest(tags=[f"tag{i}" for i in range(n)])),
    "tags, the same again": (500, lambda n: _manifest(tags=["tag"] * n)),
    "aliases": (250, lambda n: _manifest(aliases=[f"bench:alias{i}" for i in range(n)])),
    "hosts and paths": (
        150,
        lambda n: _manifest(
            securityContext={
                "networkAccess": {"allowHosts": [f"h{i}.example.com" for i in range(n)]},
                "fileAccess": {
                    "allowRead": [f"data/{i}" for i in range(n)],
                    "allowWrite": [f"../{i}" for i in range(n)],
                },
            }
        ),
    ),
    "secrets and capabilities": (
        250,
        lambda n: _manifest(
            securityContext={
                "secrets": [f"KEY_{i}" for i in range(n)],
                "requiredCapabilities": [f"cap{i}" for i in range(n)],
            }
        ),
    ),
    "variables": (
        250,
        lambda n: _manifest(
            env={f"NAME_{i}": "x" for i in range(n)},
            handler={"type": "external-script", "scriptPath": "tool.py", "language": "python"},
        ),
    ),
    "other tools that it needs": (250, lambda n: _manifest(dependencies={f"bench:other{i}": "^1" for i in range(n)})),
    "mapped parameters": (
        250,
        lambda n: _manifest(
            handler={
                "type": "service-method",
                "serviceName": "a",
                "methodName": "b",
                "parameterMapping": _numbered(n, str, "m"),
            }
        ),
    ),
    "silenced findings": (250, lambda n: _repeated('// tamis-ignore LN714\n  "member{i}": 1', n)),
    "ignored codes": (250, lambda n: _manifest(**{"x-tamis-ignore": [f"LN{700 + i % 99}" for i in range(n)]})),
    "comments": (500, lambda n: "// a comment\n/* and one */\n" * n + _manifest()),
    "commas too many": (250, lambda n: _schema(_numbered(n, _plain)).replace('."\n', '.",\n')),
    "commas missing": (250, lambda n: _schema(_numbered(n, _plain)).replace("},", "}")),
    "broken: not closed": (250, lambda n: _schema(_numbered(n, _plain)).rstrip("} \n")),
    "broken: brackets that open": (250, lambda n: '{"toolId": ' + "[" * n),
    "broken: brackets that close": (250, lambda n: _manifest() + "]}" * n),
    "broken: texts that are not closed": (250, lambda n: _repeated('"tags": "x', n)),
    "broken: half typed members": (250, lambda n: _repeated('"descr', n)),
    "broken: words": (250, lambda n: _repeated("nil: None", n)),
}


# Calls


def _action(name: str, given: dict[str, str]) -> str:
    return f"<ACTION><{name}>\n{''.join(f'<{key}>{value}</{key}>{chr(10)}' for key, value in given.items())}</{name}></ACTION>\n"


def _tam(name: str, given: dict[str, str]) -> str:
    fields = "".join(f"{key}:»»»{value}«««\n" for key, value in {"command": name, **given}.items())
    return f"<|[REQUEST_TOOL]|>\n{fields}<|[END_TOOL]|>\n"


def _vcp(name: str, given: dict[str, str]) -> str:
    fields = ",\n".join(f"{key}:「始」{value}「末」" for key, value in {"tool_name": name, **given}.items())
    return f"<<<[TOOL_REQUEST]>>>\n{fields}\n<<<[END_TOOL_REQUEST]>>>\n"


_WRITERS = {"ACTION": _action, "TAM": _tam, "VCP": _vcp}
_Writer = Callable[[str, dict[str, str]], str]


def _steps(n: int) -> str:
    lines = "".join(f"command_{i}:»»»bench:few«««\ntext_{i}:»»»x«««\ncount_{i}:»»»y«««\n" for i in range(1, n + 1))
    return f"<|[REQUEST_TOOL]|>\n{lines}<|[END_TOOL]|>\n"


def _json_of(n: int) -> str:
    return json.dumps([{"name": f"n{i}", "values": [i, "x"]} for i in range(n)], ensure_ascii=False)


_CALLS: dict[str, tuple[int, Callable[[_Writer, int], str]]] = {
    "blocks": (
        150,
        lambda write, n: "".join(
            f"Step {i}.\n\n{write('bench:few', {'text': f'x{i}', 'count': '1'})}\n" for i in range(n)
        ),
    ),
    "blocks with wrong values": (
        150,
        lambda write, n: write("bench:few", {"text": "x", "count": "many", "txet": "y"}) * n,
    ),
    "blocks of unknown tools": (150, lambda write, n: "".join(write(f"bench:fwe{i}", {"text": "x"}) for i in range(n))),
    "blocks, CRLF": (
        150,
        lambda write, n: (write("bench:few", {"text": "x", "count": "many"}) * n).replace("\n", "\r\n"),
    ),
    "blocks, not closed": (150, lambda write, n: write("bench:few", {"text": "x"})[:-12] * n),
    "wide": (WIDE, lambda write, n: write(f"bench:wide{n}", {f"p{i}": str(i) for i in range(n)})),
    "wide, wrong values": (WIDE, lambda write, n: write(f"bench:wide{n}", {f"p{i}": "x" for i in range(n)})),
    "wide, unknown names": (WIDE, lambda write, n: write(f"bench:wide{n}", {f"q{i}": "x" for i in range(n)})),
    "wide, nearly its names": (WIDE, lambda write, n: write(f"bench:wide{n}", {f"pp{i}": "1" for i in range(n)})),
    "a long value": (2_000, lambda write, n: write("bench:few", {"text": "a line & of <text>\n" * n})),
    "a JSON text": (150, lambda write, n: write("bench:few", {"data": _json_of(n)})),
    "JSON texts": (150, lambda write, n: write("bench:few", {"data": '{"a": 1}'}) * n),
}
"""For each protocol that has blocks."""

_TEXTS: dict[str, tuple[int, Callable[[int], str]]] = {
    "ACTION in one line": (150, lambda n: _action("bench:few", {"text": "x", "count": "y"}).replace("\n", "") * n),
    "ACTION with a deep value": (250, lambda n: _action("bench:few", {"data": "<a>" * n + "</a>" * n})),
    "ACTION with a deep value, not closed": (250, lambda n: _action("bench:few", {"data": "<a>" * n})),
    "ACTION with a list of elements": (250, lambda n: _action("bench:few", {"data": "<item>1</item>" * n})),
    "ACTION with many calls": (
        150,
        lambda n: f"<ACTION>\n{'<bench:few><text>x</text><count>y</count></bench:few>' * n}</ACTION>\n",
    ),
    "ACTION half typed": (150, lambda n: "<ACTION><bench:few><te\n\n" * n),
    "ACTION with one name again": (150, lambda n: f"<ACTION><bench:few>{'<text>x</text>' * n}</bench:few></ACTION>\n"),
    "TAM with steps": (150, _steps),
    "TAM with one name again": (
        150,
        lambda n: _tam("bench:few", {"text": "x"}).replace("text:»»»x«««\n", "text:»»»x«««\n" * n),
    ),
    "TAM half typed": (150, lambda n: "<|[REQUEST_TOOL]|>\ncommand:»»»bench:few\n\n" * n),
    "VCP half typed": (150, lambda n: "<<<[TOOL_REQUEST]>>>\ntool_name:「始」bench:few\n\n" * n),
    "fences with calls": (150, lambda n: f"```xml\n{_action('bench:few', {'text': 'x'})}```\n\n" * n),
    "fences, not closed": (250, lambda n: "```json\n{\n\n" * n),
    "JSON calls in a text": (
        150,
        lambda n: '{"tool_calls": [{"toolName": "bench:few", "arguments": {"text": "x", "count": "y"}}]}\n\n' * n,
    ),
    "one JSON document of calls": (
        150,
        lambda n: json.dumps(
            {
                "tool_calls": [
                    {"id": f"c{i}", "function": {"name": "bench:few", "arguments": '{"text": 1}'}} for i in range(n)
                ]
            },
            indent=1,
        ),
    ),
    "references to results and variables": (
        150,
        lambda n: _action("bench:few", {"text": "{{city}} {{result.1.text}}"}) * n,
    ),
    "expectations": (150, lambda n: _action("bench:few", {"text": "x"}) + '\n```expect\n{"text": "x"}\n```\n\n' * n),
    "prose": (4_000, lambda n: "A line of prose with `bench:few` in it, and <b>marks</b>.\n" * n),
    "prose in one line": (4_000, lambda n: "Words with `bench:few` in them. " * n),
    "silenced findings in a text": (
        150,
        lambda n: f"<!-- tamis-ignore AC104 -->\n{_action('bench:few', {'txet': 'x'})}" * n,
    ),
}


# Settings, workflows, profiles and plug-ins


def _servers(n: int) -> str:
    return "".join(
        f'[mcpServers.server{i}]\nfolder = "servers/{i}"\nscript = "server.py"\nargs = ["-x"]\n\n' for i in range(n)
    )


_SETTINGS: dict[str, tuple[int, Callable[[int], str]]] = {
    "servers": (300, _servers),
    "servers with wrong settings": (300, lambda n: _servers(n).replace("script =", "scirpt =")),
    "servers, CRLF": (300, lambda n: _servers(n).replace("\n", "\r\n")),
    "rules": (300, lambda n: "".join(f'[[policy.rules]]\nverdict = "ask"\ntool = "bench:t{i}"\n\n' for i in range(n))),
    "rules that are wrong": (
        300,
        lambda n: "".join(f'[[policy.rules]]\nverdict = "aks"\ntol = "bench:t{i}"\n\n' for i in range(n)),
    ),
    "unknown settings": (250, lambda n: "".join(f"unknown{i} = {i}\n" for i in range(n))),
    "unknown settings of a table": (250, lambda n: "[sandbox]\n" + "".join(f"wallMss{i} = {i}\n" for i in range(n))),
    "unknown tables": (300, lambda n: "".join(f"[polices{i}]\na = 1\n\n" for i in range(n))),
    "verdicts of tools": (250, lambda n: "[policy.tools]\n" + "".join(f'"bench:t{i}" = "deny"\n' for i in range(n))),
    "wrong verdicts of tools": (250, lambda n: "[policy.tools]\n" + "".join(f'"bench:t{i}" = {i}\n' for i in range(n))),
    "folders": (500, lambda n: "tools = [\n" + "".join(f'  "tools/{i}",\n' for i in range(n)) + "]\n"),
    "wrong folders": (500, lambda n: f"tools = {list(range(n))}\n"),
    "dotted names": (250, lambda n: "".join(f'policy.tools."t{i}" = "ask"\n' for i in range(n))),
    "a table in a line": (
        250,
        lambda n: "environments = { dev = {" + ", ".join(f'n{i} = "x"' for i in range(n)) + "} }\n",
    ),
    "variables of environments": (300, lambda n: "".join(f'[environments.e{i}]\ncity = "Oslo"\n\n' for i in range(n))),
    "levels of findings": (250, lambda n: "[lint]\n" + "".join(f'LN{i} = "off"\n' for i in range(n))),
    "secrets": (300, lambda n: "".join(f'[secrets.KEY{i}]\nenv = "KEY{i}"\n\n' for i in range(n))),
    "comments": (500, lambda n: "# a comment\n" * n + "[sandbox]\nwallMs = 1\n"),
    "one setting again": (250, lambda n: 'logLevel = "info"\n' * n),
    "broken: values missing": (250, lambda n: "[sandbox]\n" + "wallMs =\n" * n),
    "broken: texts that are not closed": (250, lambda n: 'profile = "x\n' * n),
    "broken: lists that are not closed": (250, lambda n: "tools = [\n" * n),
}


def _workflow(n: int, kind: str, edge: Callable[[int], dict[str, str]], count: int) -> str:
    nodes = [{"id": f"n{i}", "type": kind, "config": {"template": "{{a}} {{b}}"}} for i in range(n)]
    named = {
        "name": "Shape",
        "description": "A shape.",
        "version": "1.0.0",
        "interfaceInputs": {},
        "interfaceOutputs": {},
    }
    return json.dumps({**named, "nodes": nodes, "edges": [edge(i) for i in range(count)]}, indent=1)


def _edge(source: int, target: int) -> dict[str, str]:
    return {"source": f"n{source}", "sourceHandle": "text", "target": f"n{target}", "targetHandle": "a"}


_WORKFLOWS: dict[str, tuple[int, Callable[[int], str]]] = {
    "a chain of nodes": (200, lambda n: _workflow(n, "template", lambda i: _edge(i, i + 1), n - 1)),
    "a circle of nodes": (200, lambda n: _workflow(n, "template", lambda i: _edge(i, (i + 1) % n), n)),
    "nodes of unknown types": (200, lambda n: _workflow(n, "tempalte", lambda i: _edge(i, i + 1), n - 1)),
    "edges into one node": (200, lambda n: _workflow(n, "merge", lambda i: _edge(i, 0), n)),
    "edges to nothing": (200, lambda n: _workflow(2, "template", lambda i: _edge(0, i + 9), n)),
    "nodes of one id": (
        200,
        lambda n: _workflow(n, "template", lambda i: _edge(0, 0), 1).replace('"id": "n', '"id": "n0", "was": "n'),
    ),
    "nodes that call tools": (200, lambda n: _workflow(n, "bench:few", lambda i: _edge(i, i + 1), n - 1)),
}
_PROFILES: dict[str, tuple[int, Callable[[int], str]]] = {
    "tools of a profile": (
        300,
        lambda n: json.dumps({"tool_ids_inventory": [f"bench:t{i}" for i in range(n)]}, indent=1),
    ),
    "toggles of a profile": (
        300,
        lambda n: json.dumps({"toolCallConfig": {"toolToggles": _numbered(n, bool, "bench:t")}}, indent=1),
    ),
    "unknown members of a profile": (
        300,
        lambda n: json.dumps({"toolCallConfig": _numbered(n, str, "timeuot")}, indent=1),
    ),
}
_PLUGINS: dict[str, tuple[int, Callable[[int], str]]] = {
    "commands of a plug-in": (
        100,
        lambda n: json.dumps(
            {
                "name": "Shape",
                "displayName": "Shape",
                "description": "x",
                "capabilities": {
                    "invocationCommands": [
                        {"commandIdentifier": f"c{i}", "description": "参数:\n- text (字符串, 必需): x\n"}
                        for i in range(n)
                    ]
                },
            },
            indent=1,
        ),
    ),
}


def _all() -> Iterator[tuple[str, Shape]]:
    def of(kind: str, file: str, rows: dict[str, tuple[int, Callable[[int], str]]]) -> Iterator[tuple[str, Shape]]:
        for name, (n, build) in rows.items():
            yield f"{kind}: {name}", Shape(file, n, build)

    yield from of("manifest", "shape.tool.json", _MANIFESTS)
    for protocol, write in _WRITERS.items():
        for name, (n, build) in _CALLS.items():
            yield f"{protocol}: {name}", Shape("shape.md", n, functools.partial(build, write))
    yield from of("text", "shape.md", _TEXTS)
    yield from of("settings", "tamis.toml", _SETTINGS)
    yield from of("workflow", "shape.json", _WORKFLOWS)
    yield from of("profile", "agent_profile.json", _PROFILES)
    yield from of("plug-in", "plugin-manifest.json", _PLUGINS)


SHAPES: dict[str, Shape] = dict(_all())


# Requests


class _Editor:
    """One document in a server, and what an editor asks of it."""

    def __init__(self, server: Server, path: Path, text: str) -> None:
        self.server = server
        self.uri = path.as_uri()
        self.results: dict[str, Any] = {}
        """What was answered last, by method."""
        self.findings: list[Message] = []
        self.end = position(text, len(text))
        # A name in the middle and the last one: where an answer looks at all that stands before, the last is the worst.
        names = [match.start() + 1 for match in _NAME.finditer(text)] or [len(text) // 2]
        self.places = [position(text, names[len(names) // 2]), position(text, names[-1])]
        self._version = 1
        self._text = text

    def open(self) -> None:
        """To its findings."""
        language = "json" if self.uri.endswith(".json") else "toml" if self.uri.endswith(".toml") else "markdown"
        document = {"uri": self.uri, "languageId": language, "version": 1, "text": self._text}
        self._tell("didOpen", {"textDocument": document})

    def change(self) -> None:
        """A letter is typed in the middle and taken away again, each to its findings."""
        start = self.places[0]
        end = {"line": start["line"], "character": start["character"] + 1}
        for stop, text in ((start, "x"), (end, "")):
            self._version += 1
            edit = {"range": {"start": start, "end": stop}, "text": text}
            document = {"uri": self.uri, "version": self._version}
            self._tell("didChange", {"textDocument": document, "contentChanges": [edit]})

    def _tell(self, method: str, params: Message) -> None:
        self.server.notify(f"textDocument/{method}", params)
        self._until_idle(wanted=True)

    def close(self) -> None:
        """Closes the document."""
        self.server.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})
        self._until_idle(wanted=False)

    def _until_idle(self, *, wanted: bool) -> None:
        """Until the server does nothing any more, and has said its findings where they are ``wanted``."""
        until, spent = time.monotonic() + SILENCE_S, self.server.processor_seconds()
        while True:
            message = self.server.read(QUIET_S)
            if message is None:
                if not wanted or time.monotonic() > until:
                    before, spent = spent, self.server.processor_seconds()
                    if spent - before < QUIET_S / 20:
                        return
            elif message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == self.uri:
                self.findings = message["params"]["diagnostics"]
                wanted = wanted and message["params"].get("version") != self._version

    def ask(self, method: str) -> None:
        """One request, at each of the places where it is about places."""
        for params in REQUESTS[method](self):
            answer = self.server.ask(method, {"textDocument": {"uri": self.uri}} | params)
            self.results[method] = answer.get("result") or self.results.get(method)

    def first(self, method: str) -> list[Message]:
        """The first of what was answered, to ask on with; nothing where there was none."""
        result = self.results.get(method)
        items = result["items"] if isinstance(result, dict) and "items" in result else result
        return items[:1] if isinstance(items, list) else []


_Params = Callable[[_Editor], list[Message]]
_OPTIONS = {"options": {"tabSize": 2, "insertSpaces": True}}


def _once(_: _Editor) -> list[Message]:
    return [{}]


def _places(editor: _Editor, **more: Any) -> list[Message]:
    return [{"position": place, **more} for place in editor.places]


def _ranges(editor: _Editor, **more: Any) -> list[Message]:
    """All of it, and no more than a place."""
    whole = {"start": {"line": 0, "character": 0}, "end": editor.end}
    return [{"range": {"start": place, "end": place}, **more} for place in editor.places] + [{"range": whole, **more}]


def _resolves(method: str) -> _Params:
    return lambda editor: editor.first(method)


def _of_item(editor: _Editor) -> list[Message]:
    return [{"item": item} for item in editor.first("textDocument/prepareCallHierarchy")]


REQUESTS: dict[str, _Params] = {
    "textDocument/completion": _places,
    "completionItem/resolve": _resolves("textDocument/completion"),
    "textDocument/hover": _places,
    "textDocument/signatureHelp": _places,
    "textDocument/definition": _places,
    "textDocument/declaration": _places,
    "textDocument/implementation": _places,
    "textDocument/references": lambda editor: _places(editor, context={"includeDeclaration": True}),
    "textDocument/documentHighlight": _places,
    "textDocument/prepareCallHierarchy": _places,
    "callHierarchy/incomingCalls": _of_item,
    "callHierarchy/outgoingCalls": _of_item,
    "textDocument/prepareRename": _places,
    "textDocument/rename": lambda editor: _places(editor, newName="renamed"),
    "textDocument/linkedEditingRange": _places,
    "textDocument/documentSymbol": _once,
    "workspace/symbol": lambda editor: [{"query": ""}, {"query": "p1"}],
    "workspaceSymbol/resolve": _resolves("workspace/symbol"),
    "textDocument/semanticTokens/full": _once,
    "textDocument/semanticTokens/full/delta": lambda editor: [
        {"previousResultId": (editor.results.get("textDocument/semanticTokens/full") or {}).get("resultId", "")}
    ],
    "textDocument/semanticTokens/range": _ranges,
    "textDocument/foldingRange": _once,
    "textDocument/selectionRange": lambda editor: [{"positions": editor.places}],
    "textDocument/documentLink": _once,
    "documentLink/resolve": _resolves("textDocument/documentLink"),
    "textDocument/inlayHint": _ranges,
    "inlayHint/resolve": _resolves("textDocument/inlayHint"),
    "textDocument/codeLens": _once,
    "codeLens/resolve": _resolves("textDocument/codeLens"),
    "textDocument/codeAction": lambda editor: _ranges(editor, context={"diagnostics": editor.findings}),
    "textDocument/formatting": lambda _: [_OPTIONS],
    "textDocument/rangeFormatting": lambda editor: _ranges(editor, **_OPTIONS),
    "textDocument/rangesFormatting": lambda editor: [
        {"ranges": [params["range"] for params in _ranges(editor)], **_OPTIONS}
    ],
    "textDocument/onTypeFormatting": lambda editor: _places(editor, ch="\n", **_OPTIONS),
    "textDocument/diagnostic": _once,
    "workspace/willRenameFiles": lambda editor: [{"files": [{"oldUri": editor.uri, "newUri": editor.uri + "x"}]}],
}
"""What an editor asks of a document beside opening and changing it: what each request is asked with."""


def _spent(server: Server, path: Path, text: str) -> dict[str, float]:
    """The processor seconds of each request about a document; it is closed afterwards."""
    editor = _Editor(server, path, text)
    steps: dict[str, Callable[[], None]] = {"open": editor.open, "change": editor.change}
    steps |= {method: functools.partial(editor.ask, method) for method in REQUESTS}
    spent: dict[str, float] = {}
    for name, step in steps.items():
        before = server.processor_seconds()
        step()
        spent[name] = server.processor_seconds() - before
    editor.close()
    return spent


def _least(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: min(seconds, other[name]) for name, seconds in one.items()}


def _growing(small: dict[str, float], large: dict[str, float]) -> list[str]:
    return [
        name for name, seconds in large.items() if seconds > WORTH_S and seconds / max(small[name], LEAST_S) > GROWS
    ]


def _measured(server: Server, root: Path, shape: Shape) -> tuple[dict[str, float], dict[str, float]]:
    """What each request takes at ``n`` and at ``4n``."""
    sizes = EFFORT.size(shape.n), EFFORT.size(shape.n) * TIMES
    texts = [shape.build(size) for size in sizes]
    paths: list[Path] = []
    for size, text in zip(sizes, texts, strict=True):
        # In a folder of its own: a settings file at the root would act.
        (root / str(size)).mkdir(exist_ok=True)
        paths.append(root / str(size) / shape.file)
        paths[-1].write_text(text, encoding="utf-8", newline="")
    try:
        _spent(server, paths[0], texts[0])  # what is loaded at the first time
        small, large = (_spent(server, path, text) for path, text in zip(paths, texts, strict=True))
        for _ in range(AGAIN):
            if not _growing(small, large):
                break
            small, large = (
                _least(known, _spent(server, path, text))
                for known, path, text in zip((small, large), paths, texts, strict=True)
            )
    finally:
        for path in paths:
            path.unlink()
    return small, large


def _start(root: Path) -> Server:
    """A server for an editor that shows everything, in a folder with the tools that the calls are of."""
    from tests.sample_tools import make_tool

    some: dict[str, Any] = {"text": {"type": "string"}, "count": {"type": "integer"}, "data": {}}
    make_tool(root / "tools", "bench:few", properties=some)
    for n in {EFFORT.size(WIDE), EFFORT.size(WIDE) * TIMES}:
        make_tool(root / "tools", f"bench:wide{n}", properties=_numbered(n, _integer))
    server = Server([str(Path(sys.executable).parent / "tamis"), "lsp"], root, pulls=False)
    server.initialize(
        {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}, **_CAPABILITIES}
    )
    server.settle(1.0)
    return server


_CAPABILITIES: Message = {
    "semanticTokens": {
        "requests": {"full": {"delta": True}, "range": True},
        "tokenTypes": [
            "namespace",
            "type",
            "class",
            "enum",
            "parameter",
            "variable",
            "property",
            "enumMember",
            "event",
            "function",
            "method",
            "macro",
            "keyword",
            "modifier",
            "comment",
            "string",
            "number",
            "regexp",
            "operator",
            "decorator",
        ],
        "tokenModifiers": ["declaration", "definition", "readonly", "deprecated", "documentation", "defaultLibrary"],
        "formats": ["relative"],
    },
    "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    "rename": {"prepareSupport": True},
}


def bench_shapes(words: tuple[str, ...] = ()) -> str:
    """Which requests grow faster than the document; ``words`` choose the shapes whose names hold one of them."""
    lines = [
        f"### Shapes (`tamis lsp`: processor time at n and at {TIMES}n, for {len(REQUESTS) + 2} requests of {len(SHAPES)} shapes of documents)",
        "",
        "| shape | request | n | at n | at 4n | ratio | bar |",
        "|---|---|---|---|---|---|---|",
    ]
    slowest: dict[str, tuple[float, float, str]] = {}
    with tempfile.TemporaryDirectory() as name, _start(Path(name)) as server:
        for shape_name, shape in SHAPES.items():
            if words and not any(word in shape_name for word in words):
                continue
            small, large = _measured(server, Path(name), shape)
            size = EFFORT.size(shape.n)
            if words:
                print(
                    f"{shape_name}: {shown(sum(small.values()))} → {shown(sum(large.values()))}",
                    file=sys.stderr,
                    flush=True,
                )
            lines += [
                f"| {shape_name} | `{method}` | {size} | {shown(small[method])} | {shown(large[method])} "
                f"| {large[method] / max(small[method], LEAST_S):.1f} **over** | ≤ {GROWS:g} |"
                for method in _growing(small, large)
            ]
            for method, seconds in large.items():
                if seconds > slowest.get(method, (0.0,))[0]:
                    slowest[method] = (seconds, small[method], shape_name)
    lines += [
        f"| slowest of all: {shape_name} | `{method}` | {EFFORT.size(SHAPES[shape_name].n)} | {shown(before)} | {shown(seconds)} "
        f"| {seconds / max(before, LEAST_S):.1f} | ≤ {GROWS:g} |"
        for method, (seconds, before, shape_name) in slowest.items()
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(bench_shapes(tuple(sys.argv[1:]) or ("",)))
