"""The names that the ACTION protocol reserves, and what models write instead of them (ruling 12)."""

from __future__ import annotations

TOOL_ID = "tool_id"
INPUTS = "inputs"
INPUT = "input"

TOOL_ID_ALIASES = frozenset({"tool_id", "toolid", "tool-id", "tool", "tool_name", "toolname", "tool-name"})
STRONG_TOOL_ID = frozenset({"tool_id", "toolid", "tool-id"})
INPUTS_ALIASES = frozenset(
    {"inputs", "parameters", "params", "arguments", "args", "tool_inputs", "tool_input", "input_parameters"}
)
INPUT_ALIASES = frozenset({"input", "parameter", "param", "argument", "arg"})
NAME_ATTRIBUTES = ("name", "key", "id", "param", "parameter", "param_name", "field", "input", "n")
VALUE_ATTRIBUTES = ("value", "val", "content", "text")
TOOL_ATTRIBUTES = ("tool_id", "toolid", "tool-id", "tool", "tool_name", "name", "id", "type")
STRONG_TOOL_ATTRIBUTES = ("tool_id", "toolid", "tool-id", "tool", "tool_name")
WRAPPERS = frozenset(
    {"invoke", "tool", "tool_call", "toolcall", "function", "function_call", "call", "use_tool", "tool_use"}
)
"""Elements that hold a call instead of being one: ``<invoke name="X">``, ``<tool_call><tool_id>…``."""
