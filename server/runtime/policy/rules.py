"""The operator's rules on calls: by tool, by caller, by a parameter's value (D81).

``policy.rules`` in order, then ``policy.tools``, the most exact name first. Patterns are of whole values and know only ``*``, ``?`` and
``[…]``, so that none takes long, whatever a model wrote. Must not ask anyone, nor know what a call may do.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

import msgspec

from tamis.protocols.manifest.reading import Manifest
from tamis.protocols.model import unescape_pointer
from tamis.protocols.observation import plain
from tamis.protocols.schema.words import index_in
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.settings.config import LayeredPolicy, Policy, PolicyRule, RuleSet, Verdict

MAX_SHOWN = 200
_HERE = "tamis.toml"


class Ruling(msgspec.Struct, frozen=True):
    """What was found to hold: the verdict, the rule's name in ``tamis.toml``, the operator's reason."""

    verdict: Verdict
    name: str
    reason: str = ""
    condition: str = ""
    """What the rule looks at in arguments and caller; empty for one that holds for every call of the tool."""
    where: str = "tamis.toml"
    """The file that the rule stands in."""
    unless: Literal["never", "writes", "always"] = "never"
    """When a folder wants a person to be asked although the rule allows the call."""

    @property
    def sentence(self) -> str:
        """Why the call was refused; a model reads it."""
        text = f": {plain(self.reason[:MAX_SHOWN])}" if self.reason else ""
        return f"{self.name} in {self.where} denies it{text}"


_STRICTNESS: tuple[Verdict, ...] = ("allow", "ask", "deny")
_CONFIRMATIONS = ("never", "writes", "always")


def ruling(policy: Policy, tool_id: str, version: str, args: dict[str, Any], caller: Caller) -> Ruling | None:
    """The rule that decides about a call; None when no rule speaks of it.

    The operator's first rule that fits decides; what a folder forbids, or wants to be asked for, holds beside it (ruling 58).
    """
    if not isinstance(policy, LayeredPolicy):
        if not policy.rules and not policy.tools:
            return None
        return _decided([RuleSet(_HERE, policy.rules, policy.tools)], (tool_id, f"{tool_id}@{version}"), args, caller)
    names = (tool_id, f"{tool_id}@{version}")
    decided = _decided(policy.chain, names, args, caller)
    unless = 0
    for rule_set in policy.held:
        other = _decided([rule_set], names, args, caller)
        if other is None:
            unless = max(unless, _CONFIRMATIONS.index(rule_set.confirmation))
        elif other.verdict != "allow" and (
            decided is None or _STRICTNESS.index(other.verdict) > _STRICTNESS.index(decided.verdict)
        ):
            decided = other
    if decided is None or decided.verdict != "allow":
        return decided
    return msgspec.structs.replace(decided, unless=_CONFIRMATIONS[unless])


def _decided(chain: Sequence[RuleSet], names: tuple[str, str], args: dict[str, Any], caller: Caller) -> Ruling | None:
    for rule_set in chain:
        for number, rule in enumerate(rule_set.rules, 1):
            if _fits_tool(rule.tool, names) and _fits_caller(rule, caller) and _fits_value(rule, args):
                name = f"rule {number} of policy.rules"
                return Ruling(rule.verdict, name, rule.reason, _condition(rule), _shown_file(rule_set.where))
    best = _most_exact(chain, names)
    if best is None:
        return None
    name, rule_set = best
    shown = f"policy.tools '{plain(name[:MAX_SHOWN])}'"
    return Ruling(rule_set.tools[name], shown, where=_shown_file(rule_set.where))


def _most_exact(chain: Sequence[RuleSet], names: tuple[str, str]) -> tuple[str, RuleSet] | None:
    """The most exact name of all tables that fits, as the strongest source has it."""
    fitting = [(name, rule_set) for rule_set in chain for name in rule_set.tools if _fits_tool(name, names)]
    return max(fitting, key=lambda entry: _exactness(entry[0]), default=None)


def speaks_of(policy: Policy, tool_id: str, version: str) -> bool:
    """Whether a rule could decide about a call of a tool, whoever calls it and with whatever arguments: where none could, ``ruling`` gives None."""
    names = (tool_id, f"{tool_id}@{version}")
    rule_sets = (
        (*policy.chain, *policy.held)
        if isinstance(policy, LayeredPolicy)
        else (RuleSet(_HERE, policy.rules, policy.tools),)
    )
    patterns = (name for one in rule_sets for name in (*(rule.tool for rule in one.rules), *one.tools))
    return any(_fits_tool(pattern, names) for pattern in patterns)


def _shown_file(where: str) -> str:
    return _HERE if where.endswith(f"/{_HERE}") else plain(where)


def verdicts(policy: Policy, tool_id: str, version: str, caller: Caller) -> set[Verdict | None]:
    """What the rules may say of the caller's calls of a tool, by their arguments; None: nothing."""
    names = (tool_id, f"{tool_id}@{version}")
    if not isinstance(policy, LayeredPolicy):
        return _possible([RuleSet(_HERE, policy.rules, policy.tools)], names, caller)
    outcomes = _possible(policy.chain, names, caller)
    for rule_set in policy.held:
        outcomes |= _possible([rule_set], names, caller) - {"allow", None}
        if rule_set.confirmation != "never":
            outcomes.add("ask")
    return outcomes


def might_ask(policy: Policy, manifest: Manifest, caller: Caller) -> bool:
    """Whether a call of a tool might need a person's word, whatever it is given and granted."""
    outcomes = verdicts(policy, manifest.tool_id, manifest.version, caller)
    unruled = policy.require_confirmation != "never" or manifest.execution.require_confirmation
    return "ask" in outcomes or (None in outcomes and unruled)


def _possible(chain: Sequence[RuleSet], names: tuple[str, str], caller: Caller) -> set[Verdict | None]:
    verdicts: set[Verdict | None] = set()
    for rule_set in chain:
        for rule in rule_set.rules:
            if _fits_tool(rule.tool, names) and _fits_caller(rule, caller):
                verdicts.add(rule.verdict)
                if not rule.parameter:
                    return verdicts
    best = _most_exact(chain, names)
    return {*verdicts, None if best is None else best[1].tools[best[0]]}


class Told(msgspec.Struct, frozen=True):
    """A rule in words, and the file that it stands in; ``idle``: it would allow, and its file can only ask and forbid."""

    words: str
    where: str
    idle: bool = False


def told(policy: Policy) -> list[Told]:
    """Each rule, in the order in which they are looked at."""
    layered = isinstance(policy, LayeredPolicy)
    chain = policy.chain if layered else (RuleSet(_HERE, policy.rules, policy.tools),)
    held = policy.held if layered else ()
    named = any(_shown_file(rule_set.where) != _HERE for rule_set in (*chain, *held))
    return [
        Told(plain(words), rule_set.where, verdict == "allow" and narrows)
        for narrows, rule_sets in ((False, chain), (True, held))
        for rule_set in rule_sets
        for verdict, words in _told(rule_set, named=named)
    ]


def _told(rules: RuleSet, *, named: bool) -> Iterator[tuple[Verdict, str]]:
    place = f" in {_shown_file(rules.where)}" if named else ""
    for number, rule in enumerate(rules.rules, 1):
        whose = [f"{name} {value}" for name, value in _whose(rule) if value != "*"]
        value = [f"{rule.parameter} is {rule.matches}"] if rule.parameter else []
        words = "; ".join((rule.tool, *whose, *value))
        reason = f" ({rule.reason})" if rule.reason else ""
        yield rule.verdict, f"rule {number} of policy.rules{place}: {rule.verdict} {words}{reason}"
    for name in sorted(rules.tools, key=_exactness, reverse=True):
        yield rules.tools[name], f"policy.tools{place}: {rules.tools[name]} {name}"


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
    nodes: list[Any] = [args]
    for part in parameter[1:].split("/"):
        name = unescape_pointer(part)
        below: list[Any] = []
        for value in nodes:
            if isinstance(value, dict):
                members = cast("dict[str, Any]", value)
                below += members.values() if part == "*" else [members[name]] if name in members else []
            elif isinstance(value, list):
                items = cast("list[Any]", value)
                at = index_in(items, name)
                below += items if part == "*" else [items[at]] if at >= 0 else []
        nodes = below
    return nodes


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
    terms = {name: value for name, value in conditions if value not in ("*", "")}
    return json.dumps({**terms, "tool": rule.tool}, sort_keys=True) if terms else ""


# How many calls a minute are let through, and which tool is refused suspiciously often (D84). One of each per runtime.


WINDOW_S = 60.0
MAX_COUNTED = 1_000
"""From so many tools, agents and sessions on, those that are quiet are forgotten."""


class Full(msgspec.Struct, frozen=True):
    """Why a call may not run now: the bound and the setting that it comes from, and the seconds after which one more may."""

    limit: int
    setting: str
    wait_s: float


class CallRate:
    """Counts calls in the last minute: all together, tool by tool, agent by agent and session by session."""

    def __init__(
        self,
        calls_per_minute: int,
        of_tool: Mapping[str, int] | None = None,
        of_agent: Mapping[str, int] | None = None,
        of_session: int = 0,
    ) -> None:
        """``of_tool``, ``of_agent``: bounds by id, ``*`` for each that has none of its own; 0 is no bound. Calls that name no agent or session
        count as those of one."""
        self._limit = calls_per_minute
        self._of_tool = of_tool or {}
        self._of_agent = of_agent or {}
        self._of_session = of_session
        self._is_bound = bool(calls_per_minute > 0 or of_tool or of_agent or of_session > 0)
        self._times: dict[tuple[str, str], deque[float]] = {}
        self._sweep_at = MAX_COUNTED

    def take(self, tool_id: str = "", agent_id: str = "", session_id: str = "") -> Full | None:
        """Counts one call that may run, and gives None; one that may not is not counted."""
        if not self._is_bound:
            return None
        bounds = [
            (self._limit, "policy.callsPerMinute", ""),
            (_bound(self._of_tool, tool_id), f"policy.toolCallsPerMinute of {tool_id}", tool_id),
            # their ids are the host's words and nothing for a model
            (_bound(self._of_agent, agent_id), "policy.agentCallsPerMinute, this agent's", agent_id),
            (self._of_session, "policy.sessionCallsPerMinute, this session's", session_id),
        ]
        now = time.monotonic()
        counted: list[deque[float]] = []
        for limit, setting, name in bounds:
            if limit <= 0:
                continue
            times = self._times.setdefault((setting, name), deque())
            while times and now - times[0] >= WINDOW_S:
                times.popleft()
            if len(times) >= limit:
                return Full(limit, setting, WINDOW_S - (now - times[0]))
            counted.append(times)
        for times in counted:
            times.append(now)
        if len(self._times) > self._sweep_at:
            self._sweep(now)
        return None

    def _sweep(self, now: float) -> None:
        """Forgets who did not call within the minute: hosts make new sessions all the time."""
        self._times = {key: times for key, times in self._times.items() if times and now - times[-1] < WINDOW_S}
        self._sweep_at = max(MAX_COUNTED, 2 * len(self._times))


def _bound(bounds: Mapping[str, int], name: str) -> int:
    return bounds.get(name, bounds.get("*", 0)) if bounds else 0


SUSPICIOUS = 10
MAX_TOOLS = 1_000


class Refusals:
    """Counts, tool by tool, what was refused in the last minute for reasons of security. It only tells: each refusal stands anyway."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def add(self, tool_id: str, count: int) -> bool:
        """Counts refusals of a tool; whether they became suspicious with these (said once, then again from zero)."""
        now = time.monotonic()
        if tool_id not in self._times and len(self._times) >= MAX_TOOLS:
            self._times.pop(next(iter(self._times)))
        times = self._times.setdefault(tool_id, deque(maxlen=SUSPICIOUS))
        times.extend([now] * min(count, SUSPICIOUS))
        if len(times) < SUSPICIOUS or now - times[0] >= WINDOW_S:
            return False
        times.clear()
        return True
