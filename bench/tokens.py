"""What definitions cost in a prompt: exact tokens beside the same tools as minified OpenAI JSON (A53)."""

from __future__ import annotations

import json
from pathlib import Path

from tamis.protocols.plugins import BUILT_IN, find_protocol
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.texts.exports import describe
from tamis.server.runtime.texts.prompts import prompt_tool
from tamis.server.runtime.texts.token_counts import count_tokens

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TOOLS = 10


def bench_tokens() -> str:
    """Ten tools of the examples, in each protocol and style."""
    runtime = Runtime(EXAMPLES)
    tools = [tool for tool in runtime.registry.current() if tool.kind == "tool"][:TOOLS]
    functions = [getattr(describe(tool, "openai", runtime.registry), "definition", None) for tool in tools]
    minified, exact = count_tokens(json.dumps(functions, separators=(",", ":"), ensure_ascii=False))
    lines = [
        f"### Prompt tokens ({TOOLS} tools of `examples/`, {'o200k_base' if exact else 'estimated'}; minified OpenAI JSON has {minified})",
        "",
        "| protocol | full | of the JSON (≤ 1) | compact | of the JSON (≤ 0.33) |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in BUILT_IN:
        protocol = find_protocol(name)
        assert protocol is not None
        shown = [prompt_tool(tool, name, "tag", runtime.registry) for tool in tools]
        full = count_tokens(protocol.generate_tool_definitions(shown, "full"))[0]
        compact = count_tokens(protocol.generate_tool_definitions(shown, "compact"))[0]
        lines.append(f"| {name} | {full} | {full / minified:.2f} | {compact} | {compact / minified:.2f} |")
    return "\n".join(lines) + "\n"
