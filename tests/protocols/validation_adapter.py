"""Adapter of the schema checker for the corpus's validation scorer (its contract is in the scorer's first lines)."""

from __future__ import annotations

from typing import Any

from tamis.protocols.schema.plan import Plan, compile_plan
from tamis.protocols.schema.words import label
from tamis.protocols.suggest import best

_PLANS: dict[str, Plan] = {}
_KINDS = {
    "VA403": "unknown",
    "VA404": "missing",
    "VA430": "enum",
    "VA431": "const",
    "VA432": "pattern",
    "VA433": "minimum",
    "VA434": "maximum",
    "VA440": "anyOf",
    "VA420": "json",
    "VA421": "json",
    "VA424": "json",
}


def check(tool: str, raw: Any, tools: dict[str, Any]) -> dict[str, Any]:
    if tool not in tools:
        error: dict[str, Any] = {"kind": "unknown_tool", "tool": tool}
        found = best(tool, tools)
        return {"valid": False, "errors": [error | ({"suggest": found} if found else {})]}
    plan = _PLANS.get(tool) or _PLANS.setdefault(tool, compile_plan(tools[tool]))
    outcome = plan.check(raw)
    if outcome.valid:
        return {"valid": True, "args": outcome.coerced, "warn": bool(outcome.warnings)}
    errors: list[dict[str, Any]] = []
    for finding in outcome.errors:
        one: dict[str, Any] = {"kind": _KINDS.get(finding.code, "type"), "param": label(finding.path)}
        if finding.suggestion is not None:
            one["suggest"] = finding.suggestion
        errors.append(one)
    return {"valid": False, "errors": errors}
