"""Writing calls and prompts, beside reading what was written and beside a plain template."""

from __future__ import annotations

import json
from time import process_time

from bench.measure import Sample, in_turn, table
from bench.texts import LINE
from tamis.protocols.base import Example, PlainCall, PromptTool, WriteOptions
from tamis.protocols.model import Json
from tamis.protocols.plugins import BUILT_IN, find_protocol
from tamis.protocols.reader import read_text

CALL = PlainCall("Files:write_file", {"path": "src/app.ts", "content": LINE * 40, "mode": "replace"})
PARAMETERS: dict[str, Json] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Path of the file."},
        "line": {"type": "integer", "minimum": 1},
        "recursive": {"type": "boolean"},
    },
    "required": ["path"],
}


def bench_write() -> str:
    """One 2 KB call written (which proves itself by reading it back), and the definitions of 20 tools."""
    rows: list[tuple[str, Sample, Sample, str]] = []
    tools = [
        PromptTool(f"Files:tool_{n}", "Does something with a file.", PARAMETERS, (Example("One", {"path": "a"}),))
        for n in range(20)
    ]
    plain = [{"name": tool.name, "description": tool.description, "parameters": PARAMETERS} for tool in tools]
    for name in BUILT_IN:
        protocol = find_protocol(name)
        assert protocol is not None
        written = protocol.write_calls([CALL], WriteOptions())
        assert not written.refusals, written.refusals
        text = written.text
        assert [call.executable for call in read_text(text).calls] == [True]
        found = in_turn(
            {
                "write": lambda protocol=protocol: protocol.write_calls([CALL], WriteOptions()),
                "reading it": lambda text=text: read_text(text),
            },
            clock=process_time,
        )
        rows.append((f"{name}: a 2 KB call written and proved", found["write"], found["reading it"], ""))
        found = in_turn(
            {
                "define": lambda protocol=protocol: protocol.generate_tool_definitions(tools),
                "json.dumps of the same": lambda: json.dumps(plain),
            },
            clock=process_time,
        )
        rows.append((f"{name}: definitions of 20 tools", found["define"], found["json.dumps of the same"], ""))
    return table("Writing", rows)
