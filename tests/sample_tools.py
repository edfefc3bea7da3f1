"""Small tools for tests, and texts that call them in each protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ECHO = "import json, sys\nprint(json.dumps(json.load(sys.stdin)))\n"
SUFFIXES = {"python": "py", "nodejs": "js", "bun": "ts"}


def make_tool(
    root: Path,
    tool_id: str,
    script: str = ECHO,
    *,
    language: str = "python",
    properties: dict[str, Any] | None = None,
    required: list[str] | None = None,
    **fields: Any,
) -> Path:
    """Writes a manifest and its script below ``root``; returns the tool's folder."""
    folder = root / tool_id.replace(":", "_").replace(".", "_")
    folder.mkdir(parents=True, exist_ok=True)
    name = f"tool.{SUFFIXES[language]}"
    manifest: dict[str, Any] = {
        "toolId": tool_id,
        "displayName": tool_id,
        "description": f"Test tool {tool_id}: does what its name says, for the tests of this project.",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": name, "language": language},
        "parameters": {
            "type": "object",
            "properties": properties if properties is not None else {"text": {"type": "string"}},
            "required": required or [],
            "additionalProperties": False,
        },
        **fields,
    }
    (folder / name).write_text(script, encoding="utf-8")
    (folder / "x.tool.json").write_text(json.dumps(manifest, ensure_ascii=False, indent=2), encoding="utf-8")
    return folder


def action(tool_id: str, **args: str) -> str:
    """A canonical ACTION block by tag."""
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in args.items())
    return f"<ACTION><{tool_id}>{inner}</{tool_id}></ACTION>"


def vcp(tool_id: str, **args: str) -> str:
    """A canonical VCP block."""
    fields = ",\n".join(f"{name}:「始」{value}「末」" for name, value in {"tool_name": tool_id, **args}.items())
    return f"<<<[TOOL_REQUEST]>>>\n{fields}\n<<<[END_TOOL_REQUEST]>>>"


def tam(*steps: dict[str, str]) -> str:
    """A canonical TAM block of numbered steps; keys as written, ``command`` first."""
    lines = [f"{name}_{number}:»»»{value}«««" for number, step in enumerate(steps, 1) for name, value in step.items()]
    return "<|[REQUEST_TOOL]|>\n" + "\n".join(lines) + "\n<|[END_TOOL]|>"
