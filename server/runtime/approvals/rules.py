"""The operator's rules on calls: by tool, by caller, by a parameter's value (D81).

``policy.rules`` in order, then ``policy.tools``, the most exact name first. Patterns are of whole values and know only ``*``, ``?`` and
``[…]``, so that none takes long, whatever a model wrote. Must not ask anyone, nor know what a call may do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, cast

import msgspec

from tamis.protocols.observation import plain
from tamis.server.runtime.records.trail import Caller
from tamis.server.runtime.settings.config import Policy, PolicyRule, Verdict

MAX_SHOWN = 200


class Ruling(msgspec.Struct, frozen=True):
    """What was found to hold: the verdict, the rule's name in ``tamis.toml``, the operator's reason."""

    verdict: Verdict
    name: str
    reason: str = ""
    condition: str = ""
    """What the rule looks at in arguments and caller; empty for one that holds for every call of the tool."""

    @property
    def sentence(self) -> str:
        """Why the call was refused; a model reads it."""
        said = f": {plain(self.reason[:MAX_SHOWN])}" if self.reason else ""
        return f"{self.name} in tamis.toml denies it{said}"


def ruling(policy: Policy, tool_id: str, version: str, args: dict[str, Any], caller: Caller) -> Ruling | None:
    """The rule that decides about a call; None when no rule speaks of it."""
    if not policy.rules and not policy.tools:
        return None
    names = (tool_id, f"{tool_id}@{version}")
    for number, rule in enumerate(policy.rules, 1):
        if _fits_tool(rule.tool, names) and _fits_caller(rule, caller) and _fits_value(rule, args):
            return Ruling(rule.verdict, f"rule {number} of policy.rules", rule.reason, _condition(rule))
    found = max((name for name in policy.tools if _fits_tool(name, names)), key=_exactness, default=None)
    if found is None:
        return None
    return Ruling(policy.tools[found], f"policy.tools '{plain(found[:MAX_SHOWN])}'")


def verdicts(policy: Policy, tool_id: str, version: str, caller: Caller) -> set[Verdict | None]:
    """What the rules may say of the caller's calls of a tool, by their arguments; None: nothing."""
    names = (tool_id, f"{tool_id}@{version}")
    found: set[Verdict | None] = set()
    for rule in policy.rules:
        if _fits_tool(rule.tool, names) and _fits_caller(rule, caller):
            found.add(rule.verdict)
            if not rule.parameter:
                return found
    name = max((name for name in policy.tools if _fits_tool(name, names)), key=_exactness, default=None)
    return {*found, None if name is None else policy.tools[name]}


def told(policy: Policy) -> list[str]:
    """Each rule in words, in the order in which they are looked at."""
    said: list[str] = []
    for number, rule in enumerate(policy.rules, 1):
        whose = [f"{name} {value}" for name, value in _whose(rule) if value != "*"]
        value = [f"{rule.parameter} is {rule.matches}"] if rule.parameter else []
        words = "; ".join((rule.tool, *whose, *value))
        said.append(
            f"rule {number} of policy.rules: {rule.verdict} {words}{f' ({rule.reason})' if rule.reason else ''}"
        )
    names = sorted(policy.tools, key=_exactness, reverse=True)
    said.extend(f"policy.tools: {policy.tools[name]} {name}" for name in names)
    return [plain(words) for words in said]


def _exactness(name: str) -> tuple[bool, int, str]:
    return (not any(mark in name for mark in "*?["), len(name), name)


def _fits_tool(pattern: str, names: Iterable[str]) -> bool:
    # an id may hold a bracket, which a pattern reads otherwise
    return any(pattern == name or fnmatchcase(name, pattern) for name in names)


def _whose(rule: PolicyRule) -> tuple[tuple[str, str], ...]:
    return (("face", rule.face), ("client", rule.client), ("agent", rule.agent), ("session", rule.session))


def _fits_caller(rule: PolicyRule, caller: Caller) -> bool:
    client = caller.client if isinstance(caller.client, str) else ""
    known = {"face": caller.face, "client": client, "agent": caller.agent_id, "session": caller.session_id}
    return all(pattern == "*" or fnmatchcase(known[name], pattern) for name, pattern in _whose(rule))


def _fits_value(rule: PolicyRule, args: dict[str, Any]) -> bool:
    if not rule.parameter:
        return True
    values = list(_leaves(_named(args, rule.parameter)))
    fitting = (rule.matches == "*" or fnmatchcase(value, rule.matches) for value in values)
    # What opens must fit everything that is given; what closes, any part of it.
    return bool(values) and (all(fitting) if rule.verdict == "allow" else any(fitting))


def _named(args: dict[str, Any], parameter: str) -> list[Any]:
    """The values that a name or a JSON Pointer leads to; ``*`` in a pointer is each item or member."""
    if not parameter.startswith("/"):
        return [args[parameter]] if parameter in args else []
    found: list[Any] = [args]
    for part in parameter[1:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        below: list[Any] = []
        for value in found:
            if isinstance(value, dict):
                members = cast("dict[str, Any]", value)
                below += members.values() if part == "*" else [members[name]] if name in members else []
            elif isinstance(value, list):
                items = cast("list[Any]", value)
                at = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else len(items)
                below += items if part == "*" else items[at : at + 1]
        found = below
    return found


def _leaves(values: Iterable[Any]) -> Iterator[str]:
    """Each text, number, boolean and null below, a text as it is and the others as JSON; an empty list or object is one too."""
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, dict) and value:
            stack.extend(cast("dict[str, Any]", value).values())
        elif isinstance(value, list) and value:
            stack.extend(cast("list[Any]", value))
        else:
            yield value if isinstance(value, str) else json.dumps(value)


def _condition(rule: PolicyRule) -> str:
    conditions = [*_whose(rule), ("parameter", rule.parameter), ("matches", rule.matches)]
    given = {name: value for name, value in conditions if value not in ("*", "")}
    return json.dumps({**given, "tool": rule.tool}, sort_keys=True) if given else ""
