"""What a written value will be read as: the tool's schema, asked beforehand.

Must not know how a protocol spells a value.
"""

from __future__ import annotations

from typing import Literal

from tamis.protocols.model import Json, ToolHint
from tamis.protocols.schema.check import check_schema
from tamis.protocols.schema.coerce import Node, Reading, Run
from tamis.protocols.schema.coerce_json import read_json_text
from tamis.protocols.schema.coerce_plan import compile_nodes
from tamis.protocols.schema.valid import Check, compile_valid_at
from tamis.protocols.writing.values import is_object, same

Verdict = Literal["exact", "text", "no"]
"""How a value comes back. ``exact``: equal, after coercion where a schema is known. ``text``: as the JSON text of the value,
because no schema says otherwise. ``no``: as something else."""


class Expectation:
    """The schema of one tool as the reader of its calls will apply it; without a schema, values stay as they are written."""

    def __init__(self, tool: ToolHint | None, reading: Reading) -> None:
        self._reading: Reading = reading
        self._schema: Json = None
        self._nodes: Node | None = None
        self._fits: dict[str, Check | None] = {}
        if tool is None or not tool.parameters:
            return
        if any(issue.severity == "error" for issue in check_schema(tool.parameters)):
            return
        self._schema = tool.parameters
        self._nodes = compile_nodes(self._schema, lambda part: compile_valid_at(tool.parameters, part))

    def read(self, name: str, raw: Json) -> tuple[Json, bool]:
        """What the schema makes of a raw argument, and whether it has nothing to say about it."""
        if self._nodes is None:
            return raw, True
        run = Run(self._reading)
        made = self._nodes.coerce({name: raw}, None, run)
        return (made[name] if is_object(made) else raw), not run.errors and not run.warnings

    def verdict(self, name: str, raw: Json, wanted: Json) -> Verdict:
        """How ``wanted`` comes back when ``raw`` is read."""
        made, _ = self.read(name, raw)
        if same(made, wanted):
            return "exact"
        if self._nodes is not None and self.fits(name, wanted):
            return "no"
        if same(raw, wanted):
            # The value as it was written somewhere else: no schema has read it yet, or none can.
            return "exact"
        if isinstance(raw, str) and not isinstance(wanted, str):
            value, notes = read_json_text(raw)
            return "text" if not notes and same(value, wanted) else "no"
        return "no"

    def clean(self, name: str, raw: Json, wanted: Json) -> bool:
        """Whether ``raw`` is read as ``wanted`` without a word."""
        made, silent = self.read(name, raw)
        return silent and same(made, wanted)

    def fits(self, name: str, value: Json) -> bool:
        """Whether a typed value is one that the parameter's own schema allows; False where it has none."""
        if name not in self._fits:
            self._fits[name] = self._check(name)
        check = self._fits[name]
        return check is not None and check(value)

    def _check(self, name: str) -> Check | None:
        properties = self._schema.get("properties") if is_object(self._schema) else None
        part = properties.get(name) if is_object(properties) else None
        if not is_object(part) or not part:
            return None
        compiled = compile_valid_at(self._schema, part)
        # Outside the compiled keywords the coercion's own types decide: a value of another type does not fit.
        return compiled if compiled is not None else lambda _: True


class Expectations:
    """One ``Expectation`` per tool of a call list, made when it is first asked for."""

    def __init__(self, tools: dict[str, ToolHint], reading: Reading) -> None:
        self._tools = tools
        self._reading: Reading = reading
        self._made: dict[str, Expectation] = {}

    def of(self, tool_id: str) -> Expectation:
        """The expectation for a tool's calls."""
        found = self._made.get(tool_id)
        if found is None:
            found = self._made[tool_id] = Expectation(self._tools.get(tool_id), self._reading)
        return found
