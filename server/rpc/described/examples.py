"""Worked examples of the main methods. A test asks a daemon in ``examples/`` for each, in order, and compares."""

from __future__ import annotations

from typing import Any

import msgspec


class Example(msgspec.Struct, frozen=True):
    """One request and its result."""

    method: str
    name: str
    params: dict[str, Any]
    result: Any


EXAMPLES: tuple[Example, ...] = (
    Example(
        "tool/parse",
        "a call by tag",
        {"text": "Let me count. <ACTION><text:statistics><text>One. Two.</text></text:statistics></ACTION>"},
        {
            "responseText": "Let me count. ",
            "trailingText": "",
            "blocks": [
                {
                    "protocol": "action",
                    "range": {
                        "start": {"line": 0, "character": 14},
                        "end": {"line": 0, "character": 88},
                        "offset": [14, 88],
                    },
                    "complete": True,
                }
            ],
            "calls": [
                {
                    "callId": "call-1",
                    "index": 0,
                    "protocol": "action",
                    "toolId": "text:statistics",
                    "args": {"text": "One. Two."},
                    "complete": True,
                    "executable": True,
                    "repairs": [],
                    "range": {
                        "start": {"line": 0, "character": 22},
                        "end": {"line": 0, "character": 79},
                        "offset": [22, 79],
                    },
                    "toolIdRange": {
                        "start": {"line": 0, "character": 23},
                        "end": {"line": 0, "character": 38},
                        "offset": [23, 38],
                    },
                    "argRanges": {
                        "/text": {
                            "start": {"line": 0, "character": 45},
                            "end": {"line": 0, "character": 54},
                            "offset": [45, 54],
                        }
                    },
                }
            ],
            "diagnostics": [],
            "comments": [],
            "reasoning": [],
        },
    ),
    Example(
        "tool/validate",
        "a parameter that is misspelt",
        {"toolId": "units:convert", "args": {"value": "3", "from_unit": "km", "to_units": "mi"}},
        {
            "valid": False,
            "errors": [
                {
                    "code": "VA403",
                    "slug": "unknown-parameter",
                    "path": "/to_units",
                    "message": "Unknown parameter 'to_units', did you mean 'to_unit'?",
                    "expected": 'one of "value", "from_unit", "to_unit", "significant_digits"',
                    "received": '"to_units"',
                    "suggestion": "to_unit",
                }
            ],
            "warnings": [],
        },
    ),
    Example(
        "tool/execute",
        "a tool that succeeds",
        {"toolId": "units:convert", "args": {"value": 26.2, "from_unit": "mi", "to_unit": "km"}},
        {
            "callId": "call-1",
            "toolId": "units:convert",
            "version": "1.0.0",
            "status": "success",
            "output": {
                "value": 42.1648,
                "unit": "km",
                "dimension": "length",
                "exact": False,
                "text": "26.2 mi = 42.1648 km",
            },
            "logs": [],
            "logsTruncated": False,
            "durationMs": 316.559,
            "usage": {"cpuMs": 56.939, "maxRssBytes": 13107200},
            "sandbox": {
                "backend": "bubblewrap",
                "version": "0.11.0",
                "layers": [
                    "namespaces",
                    "seccomp",
                    "rlimits",
                    "cgroup",
                    "watchdog",
                    "sized-tmpfs",
                    "read-only-root",
                    "disable-userns",
                    "capabilities",
                    "clean-environment",
                    "new-session",
                    "die-with-parent",
                    "network",
                    "pids",
                    "uid-drop",
                    "proc-sys",
                ],
                "warm": False,
            },
            "permissions": {
                "requested": {},
                "granted": {"read": [], "write": [], "hosts": [], "capabilities": []},
                "denied": [],
            },
            "attempts": 1,
            "replayed": False,
            "observation": 'Observation: Tool units:convert executed successfully. Result: {"value": 42.1648, "unit": "km", "dimension": "length", "exact": false, "text": "26.2 mi = 42.1648 km"}',
        },
    ),
    Example(
        "tool/execute",
        "a tool that there is not",
        {"toolId": "unit:convert"},
        {
            "callId": "call-2",
            "toolId": "unit:convert",
            "version": "",
            "status": "error",
            "error": {
                "type": "UnknownTool",
                "message": "Unknown tool ID 'unit:convert', did you mean 'units:convert'?",
                "details": {
                    "errors": [
                        {
                            "code": "VA401",
                            "slug": "unknown-tool",
                            "path": "",
                            "message": "Unknown tool ID 'unit:convert', did you mean 'units:convert'?",
                            "suggestion": "units:convert",
                        }
                    ],
                    "code": "toolNotFound",
                },
            },
            "logs": [],
            "logsTruncated": False,
            "durationMs": 0.375,
            "usage": {"cpuMs": 0.0, "maxRssBytes": 0},
            "sandbox": None,
            "permissions": {
                "requested": {},
                "granted": {"read": [], "write": [], "hosts": [], "capabilities": []},
                "denied": [],
            },
            "attempts": 0,
            "replayed": False,
            "observation": "Observation: Error - Unknown tool ID 'unit:convert', did you mean 'units:convert'?",
        },
    ),
    Example(
        "tool/executeText",
        "a model's text",
        {
            "text": "Converting. <ACTION><units:convert><value>1</value><from_unit>km</from_unit><to_unit>m</to_unit></units:convert></ACTION>"
        },
        {
            "parse": {
                "responseText": "Converting. ",
                "trailingText": "",
                "blocks": [
                    {
                        "protocol": "action",
                        "range": {
                            "start": {"line": 0, "character": 12},
                            "end": {"line": 0, "character": 121},
                            "offset": [12, 121],
                        },
                        "complete": True,
                    }
                ],
                "calls": [
                    {
                        "callId": "text-3-1",
                        "index": 0,
                        "protocol": "action",
                        "toolId": "units:convert",
                        "args": {"value": "1", "from_unit": "km", "to_unit": "m"},
                        "complete": True,
                        "executable": True,
                        "repairs": [],
                        "range": {
                            "start": {"line": 0, "character": 20},
                            "end": {"line": 0, "character": 112},
                            "offset": [20, 112],
                        },
                        "toolIdRange": {
                            "start": {"line": 0, "character": 21},
                            "end": {"line": 0, "character": 34},
                            "offset": [21, 34],
                        },
                        "argRanges": {
                            "/value": {
                                "start": {"line": 0, "character": 42},
                                "end": {"line": 0, "character": 43},
                                "offset": [42, 43],
                            },
                            "/from_unit": {
                                "start": {"line": 0, "character": 62},
                                "end": {"line": 0, "character": 64},
                                "offset": [62, 64],
                            },
                            "/to_unit": {
                                "start": {"line": 0, "character": 85},
                                "end": {"line": 0, "character": 86},
                                "offset": [85, 86],
                            },
                        },
                    }
                ],
                "diagnostics": [],
                "comments": [],
                "reasoning": [],
            },
            "results": [
                {
                    "callId": "text-3-1",
                    "toolId": "units:convert",
                    "version": "1.0.0",
                    "status": "success",
                    "output": {
                        "value": 1000,
                        "unit": "m",
                        "dimension": "length",
                        "exact": True,
                        "text": "1 km = 1000 m",
                    },
                    "logs": [],
                    "logsTruncated": False,
                    "durationMs": 126.94,
                    "usage": {"cpuMs": 68.042, "maxRssBytes": 13111296},
                    "sandbox": {
                        "backend": "bubblewrap",
                        "version": "0.11.0",
                        "layers": [
                            "namespaces",
                            "seccomp",
                            "rlimits",
                            "cgroup",
                            "watchdog",
                            "sized-tmpfs",
                            "read-only-root",
                            "disable-userns",
                            "capabilities",
                            "clean-environment",
                            "new-session",
                            "die-with-parent",
                            "network",
                            "pids",
                            "uid-drop",
                            "proc-sys",
                        ],
                        "warm": False,
                    },
                    "permissions": {
                        "requested": {},
                        "granted": {"read": [], "write": [], "hosts": [], "capabilities": []},
                        "denied": [],
                    },
                    "attempts": 1,
                    "replayed": False,
                    "observation": 'Observation: Tool units:convert executed successfully. Result: {"value": 1000, "unit": "m", "dimension": "length", "exact": true, "text": "1 km = 1000 m"}',
                }
            ],
            "observation": 'Observation: Tool units:convert executed successfully. Result: {"value": 1000, "unit": "m", "dimension": "length", "exact": true, "text": "1 km = 1000 m"}',
        },
    ),
    Example(
        "tool/convert",
        "ACTION as VCP",
        {"text": "<ACTION><text:statistics><text>Hi</text></text:statistics></ACTION>", "to": "vcp"},
        {
            "text": "<<<[TOOL_REQUEST]>>>\ntool_name:「始」text:statistics「末」,\ntext:「始」Hi「末」\n<<<[END_TOOL_REQUEST]>>>",
            "losses": [],
        },
    ),
    Example(
        "tool/repair",
        "a closing tag of another name",
        {"text": "<ACTION><text:statistics><text>Hi</txt></text:statistics></ACTION>"},
        {
            "edits": [
                {
                    "range": {
                        "start": {"line": 0, "character": 35},
                        "end": {"line": 0, "character": 38},
                        "offset": [35, 38],
                    },
                    "newText": "text",
                }
            ],
            "text": "<ACTION><text:statistics><text>Hi</text></text:statistics></ACTION>",
            "calls": [
                {
                    "callId": "call-1",
                    "index": 0,
                    "protocol": "action",
                    "toolId": "text:statistics",
                    "args": {"text": "Hi"},
                    "complete": True,
                    "executable": True,
                    "repairs": [],
                    "range": {
                        "start": {"line": 0, "character": 8},
                        "end": {"line": 0, "character": 58},
                        "offset": [8, 58],
                    },
                    "toolIdRange": {
                        "start": {"line": 0, "character": 9},
                        "end": {"line": 0, "character": 24},
                        "offset": [9, 24],
                    },
                    "argRanges": {
                        "/text": {
                            "start": {"line": 0, "character": 31},
                            "end": {"line": 0, "character": 33},
                            "offset": [31, 33],
                        }
                    },
                }
            ],
        },
    ),
    Example(
        "prompt/generate",
        "one tool in few words",
        {"protocol": "action", "toolIds": ["units:convert"], "style": "compact", "instructions": False},
        {
            "text": "You have access to the following tools and skills:\n\n**Tools (direct function calls):**\n\n*   `<units_convert>`(value: number -1e30..1e30, from_unit: string, to_unit: string, significant_digits?: integer 1..15 = 6): Converts a quantity between units of length, mass, temperature, time, speed, area, volume, energy, pressure or data, with exact factors.",
            "etag": "41e6a354134fe1eb",
            "protocol": "action",
            "style": "compact",
            "fewShot": 0,
            "tokens": {"total": 89, "exact": True, "perTool": {"units:convert": 71}},
            "macro": {
                "name": "tools",
                "type": "VALUE",
                "phase": "SUBSTITUTE",
                "description": "Injects the definitions of the tools that the current agent may call, in the protocol's format",
                "example": "{{tools}}",
                "acceptsArgs": False,
                "priority": 95,
                "supported": True,
                "contextFree": False,
            },
            "notes": [],
        },
    ),
    Example(
        "observation/format",
        "a result of the host's own",
        {"protocol": "action", "results": [{"toolId": "host:read", "output": {"hp": 10}}]},
        {"text": 'Observation: Tool host:read executed successfully. Result: {"hp": 10}'},
    ),
    Example("parse/open", "a text that will come in pieces", {"protocol": "action"}, {"streamId": "stream-1"}),
)
