"""The names that the ACTION protocol reserves, and what models write instead of them (ruling 12)."""

from __future__ import annotations

TOOL_ID = "tool_id"
INPUTS = "inputs"
INPUT = "input"

TOOL_ID_ALIASES = frozenset({"tool_id", "toolid", "tool-id", "tool", "tool_name", "toolname", "tool-name"})
STRONG_TOOL_ID = frozenset({"tool_id", "toolid", "tool-id"})
WEAK_TOOL_ID = frozenset({"name", "id", "function", "function_name", "command", "method"})
"""Names that may stand for the tool's id where ``<inputs>`` follow and nothing else is one."""
INPUTS_ALIASES = frozenset(
    {"inputs", "parameters", "params", "arguments", "args", "tool_inputs", "tool_input", "input_parameters"}
)
INPUT_ALIASES = frozenset({"input", "parameter", "param", "argument", "arg"})
CONTEXT_NAMES = frozenset({"context", "execution_context", "executioncontext", "metadata", "meta"})
"""Children of ACTION that go with a call without being an input, whatever its schema says (seed 003 §4.3, D70)."""
NAME_ATTRIBUTES = (
    *("name", "key", "id", "param", "parameter", "param_name", "field", "input", "n"),
    *("parameter_name", "input_name", "arg", "argument", "arg_name", "label", "title", "var", "property", "prop"),
)
VALUE_ATTRIBUTES = ("value", "val", "content", "text")
TOOL_ATTRIBUTES = ("tool_id", "toolid", "tool-id", "tool", "tool_name", "name", "id", "type")
STRONG_TOOL_ATTRIBUTES = ("tool_id", "toolid", "tool-id", "tool", "tool_name")
WRAPPERS = frozenset(
    {"invoke", "tool", "tool_call", "toolcall", "function", "function_call", "call", "use_tool", "tool_use"}
)
"""Elements that hold a call instead of being one: ``<invoke name="X">``, ``<tool_call><tool_id>…``."""
COMMON_TAGS = (WRAPPERS | INPUT_ALIASES | INPUTS_ALIASES) - {INPUT} | {
    "think",
    "thinking",
    "function_calls",
    "tool_calls",
    "response",
}
"""Tags that models add from other formats: a stray one closes nothing that was meant."""
