"""Tools, arguments and forms for the tests of grammars."""

from __future__ import annotations

from tamis.protocols.base import PromptTool, Shape
from tamis.protocols.hermes.protocol import HERMES
from tamis.protocols.model import Json, ToolHint
from tamis.protocols.plugins import find_protocol, register

if find_protocol("hermes") is None:
    register(HERMES)

FORMS: list[tuple[str, Shape]] = [
    ("action", "tag"),
    ("action", "inputs"),
    ("tam", "tag"),
    ("vcp", "tag"),
    ("hermes", "tag"),
    ("json", "tag"),
]
_NODE: dict[str, Json] = {
    "type": "object",
    "properties": {"v": {"type": "number"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "required": ["v"],
}
SEARCH = PromptTool(
    "search",
    "Finds things.",
    {
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "limit": {"type": "integer", "minimum": 0},
            "mode": {"enum": ["a<b&c", "plain", " edges ", "x]]>y", "«««", 'say "so"']},
            "opts": {
                "type": "object",
                "properties": {
                    "deep": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "n": {"type": "null"},
                },
                "required": ["tags"],
            },
            "tree": {"$ref": "#/$defs/node"},
        },
        "required": ["q", "opts"],
        "$defs": {"node": _NODE},
    },
)
NAMES = PromptTool(
    "names",
    "Has names that need care.",
    {
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "base64": {"type": "boolean"},
            "q_2": {"type": ["integer", "null"]},
            "request_id": {"const": "r-1"},
            "ratio": {"type": "number", "minimum": 0},
        },
        "required": ["base64"],
    },
)
SHAPES = PromptTool(
    "shapes",
    "Has composed schemas.",
    {
        "type": "object",
        "properties": {
            "pair": {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "boolean"}],
                "items": False,
                "minItems": 2,
            },
            "few": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
            "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "boolean"}}]},
            "both": {"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"y": {"type": "integer"}}, "required": ["y"]}]},
            "own": {"$ref": "#/properties/few"},
            "level": {"enum": [1, 2, 3.5]},
            "free": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"any": {"type": ["string", "integer"]}},
            },
        },
        "$defs": {"a": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}},
    },
)
NOTHING = PromptTool("nothing", "Takes nothing.", {})
TOOLS = [SEARCH, NAMES, SHAPES, NOTHING]
HINTS = {tool.name: ToolHint(tool.name, tool.parameters) for tool in TOOLS}

_TEXTS = [
    *(
        "",
        "word",
        "two\nlines",
        " edges ",
        "a<b & c>",
        "]]>",
        "x]] >",
        "«««",
        "»x",
        "x«",
        "「末」",
        "「始",
        "C:\\temp",
        "a:\nb",
        '"quoted"',
    ),
    *(
        "</q>",
        "</input>",
        "<|[END_TOOL]|>",
        "<<<[END_TOOL_REQUEST]>>>",
        "</tool_call>",
        "\t",
        "é 中文 😀",
        "\\",
        "null",
        "12",
        "{}",
        "[1",
    ),
    *("line\rreturn", "\u3000wide", "tail\n", "<![CDATA[x]]>", "&amp;", "```", "<think>", "command: x"),
]
ARGUMENTS: list[tuple[str, dict[str, Json]]] = [
    *(("search", {"q": text, "opts": {"tags": []}}) for text in _TEXTS),
    *(("search", {"q": "x", "opts": {"tags": [text], "n": None}}) for text in _TEXTS),
    *(
        ("search", {"q": "x", "mode": mode, "opts": {"tags": []}})
        for mode in ("a<b&c", "plain", " edges ", "x]]>y", "«««", 'say "so"')
    ),
    ("search", {"q": "x", "limit": 12, "opts": {"deep": True, "tags": ["a", "b"]}}),
    ("search", {"q": "x", "opts": {"tags": []}, "tree": {"v": 1.5, "kids": [{"v": -2e-7}, {"v": 3, "kids": []}]}}),
    *(
        ("search", {"q": "x", "opts": {"tags": []}, "tree": {"v": number}})
        for number in (0, -1, 1e300, 0.1, 123456789, 2.5e-10)
    ),
    ("names", {"base64": True}),
    ("names", {"filePath": "/x y", "base64": False, "q_2": 7, "request_id": "r-1", "ratio": 0.25}),
    ("names", {"base64": False, "q_2": None}),
    ("shapes", {"pair": [1, False]}),
    ("shapes", {"few": ["a", "b", "a"], "either": 3}),
    ("shapes", {"either": [True, False], "both": {"x": "<&>", "y": -4}}),
    ("shapes", {"own": ["b"], "level": 3.5, "free": {}}),
    ("shapes", {"level": 2, "free": {"any": 5}}),
    ("shapes", {"free": {"any": "five"}}),
    ("shapes", {}),
    ("nothing", {}),
]
