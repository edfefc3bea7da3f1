"""The tools that the official conformance suite calls by name, as a folder of Tamis."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

from tests.sample_tools import make_tool


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_DOT = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
PNG = (
    b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", _DOT) + _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + _chunk(b"IEND", b"")
)
WAV = (
    b"RIFF"
    + struct.pack("<I4s4sIHHIIHH4sI", 38, b"WAVE", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8, b"data", 2)
    + b"\x80\x80"
)
IMAGE = {"$part": "image", "mimeType": "image/png", "data": base64.b64encode(PNG).decode()}
AUDIO = {"$part": "audio", "mimeType": "audio/wav", "data": base64.b64encode(WAV).decode()}
RESOURCE = {
    "$part": "resource",
    "uri": "test://embedded-resource",
    "mimeType": "text/plain",
    "text": "This is an embedded resource content.",
}
TEXT = {"type": "text", "text": "Multiple content types test:"}
OUTPUTS: dict[str, Any] = {
    "test_simple_text": "This is a simple text response for testing.",
    "test_image_content": IMAGE,
    "test_audio_content": AUDIO,
    "test_embedded_resource": RESOURCE,
    "test_multiple_content_types": [TEXT, IMAGE, RESOURCE],
}
ASKS = (
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
)
"""Tools that a person is asked about; what the suite would have them ask for is no question that Tamis puts."""
SAYS = "import sys, time\n{}print('\"done\"')\n"
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _line(text: str, pause: float = 0.05) -> str:
    return f"print({text!r}, file=sys.stderr, flush=True)\ntime.sleep({pause})\n"


def make_tools(root: Path) -> None:
    """Writes the folder."""
    (root / "tamis.toml").write_text("[sandbox]\nwallMs = 20000\n")
    for name, output in OUTPUTS.items():
        make_tool(root, name, f"print({json.dumps(output)!r})\n", properties={})
    make_tool(
        root, "test_error_handling", "raise SystemExit('This tool intentionally returns an error')", properties={}
    )
    steps = "".join(_line(f"[progress] {done}/100 step", 0.1) for done in (0, 50, 100))
    make_tool(root, "test_tool_with_progress", SAYS.format(steps), properties={})
    logs = "".join(
        _line(text) for text in ("Tool execution started", "Tool processing data", "Tool execution completed")
    )
    make_tool(root, "test_tool_with_logging", SAYS.format(logs), properties={})
    make_tool(root, "test_logging_tool", SAYS.format(_line("said", 0)), properties={})
    for name in ASKS:
        make_tool(root, name, properties={}, execution={"requireConfirmation": True})
    make_tool(
        root,
        "greet",
        'import json, sys\nprint(json.dumps("Hello, " + json.load(sys.stdin).get("name", "") + "!"))\n',
        properties={"name": {"type": "string"}},
    )
    slow = "import json, sys, time\ntime.sleep(json.load(sys.stdin).get('seconds', 1))\nprint('\"done\"')\n"
    seconds = {"seconds": {"type": "number"}, "label": {"type": "string"}}
    make_tool(root, "slow_compute", slow, properties=seconds, execution={"mode": "async"})
    make_tool(root, "failing_job", "raise SystemExit('it failed')", properties={}, execution={"mode": "async"})
    headers = {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    }
    make_tool(root, "test_headers", properties=headers)
    make_tool(root, "json_schema_2020_12_tool", parameters=SCHEMA)
