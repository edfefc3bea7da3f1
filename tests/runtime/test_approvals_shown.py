"""What a person sees of a call: bounded, without secrets, with nothing hidden (D74, D83, V61)."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import Granted, Permissions
from tamis.server.runtime.execution.approvals.replies import (
    MAX_NAMES,
    MAX_PREVIEW_CHARS,
    preview,
    risk_of,
    sentence,
    visible,
    with_secrets,
)
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.policy.rules import ruling, told
from tamis.server.runtime.settings.config import Policy, PolicyRule

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=12,
)
NOTHING = Permissions(requested={}, granted=Granted(), denied=[])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 你好 😀 é ❤️", "plain 你好 😀 é ❤️"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb\ufeff\xad\u2066", "a\\u200bb\\ufeff\\u00ad\\u2066"),
        ("\x1b[31m\x07\x9b", "\\u001b[31m\\u0007\\u009b"),
        ("\U000e0041\U000e0100", "\\U000e0041\\U000e0100"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u3164\u2028\ud800", "\\u3164\\u2028\\ud800"),
    ],
)
def test_what_cannot_be_seen_is_shown(text: str, shown: str) -> None:  # D74
    assert visible(text) == shown


@given(st.text())
def test_nothing_that_hides_is_left(text: str) -> None:  # D74
    left = [
        unicodedata.category(char) for char in visible(text) if char not in "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd"
    ]
    assert not {"Cc", "Cs", "Zl", "Zp"} & set(left)
    assert not any(
        unicodedata.bidirectional(char) in ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI") for char in visible(text)
    )


@given(st.dictionaries(st.text(max_size=200), JSON, max_size=60))
def test_a_preview_is_bounded(args: dict[str, Any]) -> None:  # V61
    shown = preview(args)
    # names are kept, so many of them make it longer
    assert len(shown) <= MAX_PREVIEW_CHARS + 13 * 100 * min(len(args), MAX_NAMES) + 100
    assert shown.isprintable() or visible(shown) == shown


def test_a_long_value_hides_neither_another_nor_its_own_end() -> None:  # V61
    shown = preview({"text": "a" * 10_000_000 + "; rm -rf /", "path": "/etc/passwd", "n": 3})
    assert len(shown) <= MAX_PREVIEW_CHARS + 100
    assert '"path":"/etc/passwd"' in shown
    assert '"n":3' in shown
    assert '; rm -rf /"' in shown
    assert "characters cut" in shown


def test_arguments_that_are_nested_too_deep_are_said_to_be() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert "nested too deeply" in preview({"a": deep})


@pytest.mark.parametrize(
    ("granted", "more", "risk"),
    [
        (Granted(), {}, "low"),
        (Granted(read=["/srv"]), {}, "medium"),
        (Granted(), {"secrets": True}, "medium"),
        (Granted(), {"unconfined": True}, "medium"),
        (Granted(write=["/srv"]), {}, "high"),
        (Granted(hosts=["example.com"]), {}, "high"),
        (Granted(capabilities=["subprocess"]), {}, "high"),
        (Granted(), {"builds": True}, "high"),
    ],
)
def test_the_risk_is_what_the_call_may_do(granted: Granted, more: dict[str, bool], risk: str) -> None:
    permissions = Permissions(requested={}, granted=granted, denied=[])
    assert risk_of(permissions, **{"builds": False, "secrets": False, "unconfined": False, **more}) == risk


def test_a_sentence_cannot_be_changed_by_what_it_shows() -> None:  # D74
    said = sentence("t:x\u202e", "safe\nAllowed already", '{"a":1}', NOTHING, 100)
    assert said == 'Run t:x\\u202e (safe\\nAllowed already) with these arguments? {"a":1}'


@given(JSON)
def test_a_mask_only_stands_for_what_was_masked(value: Any) -> None:  # D83
    assert with_secrets(value, {"a": 1}, {"a": 1}) == value
    assert with_secrets({"k": "***", "v": value}, {"k": "***", "v": 1}, {"k": "hidden", "v": 1}) == {
        "k": "hidden",
        "v": value,
    }


def test_a_text_with_a_mask_inside_stands_for_what_was_shown_so() -> None:  # D83
    shown, real = {"text": "Bearer ***", "other": "a ***"}, {"text": "Bearer hidden", "other": "a hidden"}
    assert with_secrets(shown | {"other": "b ***"}, shown, real) == real | {"other": "b ***"}


@pytest.mark.parametrize(
    ("tools", "verdict"),
    [
        ({"a:*": "deny", "a:b": "allow"}, "allow"),
        ({"a:*": "deny", "*": "allow"}, "deny"),
        ({"b:*": "deny"}, None),
        ({"a:b@1.*": "ask", "a:*": "deny"}, "ask"),
        ({"a:[bc]": "ask"}, "ask"),
    ],
)
def test_the_most_exact_name_decides(tools: dict[str, Any], verdict: str | None) -> None:
    found = ruling(Policy(tools=tools), "a:b", "1.2.0", {}, Caller())
    assert (found.verdict if found is not None else None) == verdict


def test_a_pattern_takes_no_time_whatever_it_is_shown() -> None:  # F18
    rule = PolicyRule(parameter="text", matches="*a*a*a*a*a*a*b", verdict="deny")
    assert ruling(Policy(rules=(rule,)), "t", "1", {"text": "a" * 300_000}, Caller()) is None


@given(JSON, st.text(max_size=8), st.text(max_size=8))
def test_rules_read_any_arguments(value: Any, parameter: str, matches: str) -> None:
    for verdict in ("allow", "deny"):
        for pointer in (parameter, f"/{parameter}", "/*", "/*/*"):
            rule = PolicyRule(parameter=pointer, matches=matches, verdict=verdict)
            found = ruling(Policy(rules=(rule,)), "t", "1", {"a": value, parameter: value}, Caller())
            assert found is None or found.verdict == verdict


def test_the_rules_are_told_in_words() -> None:  # D81
    rules = (
        PolicyRule(tool="files:*", agent="reader", parameter="path", matches="/etc/*", verdict="deny", reason="no"),
    )
    assert [rule.words for rule in told(Policy(rules=rules, tools={"a:*": "ask", "a:b": "allow"}))] == [
        "rule 1 of policy.rules: deny files:*; agent reader; path is /etc/* (no)",
        "policy.tools: allow a:b",
        "policy.tools: ask a:*",
    ]
