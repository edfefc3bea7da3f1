"""The tolerant JSON reader: what it accepts, where it says faults are, what it survives."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.jsontext.parse import MAX_ERRORS, MAX_JSON_DEPTH, parse_json
from tests.growth import growth, loops

_FRAGMENTS = ["{", "}", "[", "]", ",", ":", '"a"', '"b\\n"', "1", "-1.5e3", "true", "null", " ", "\n", '"', "\\"]
_FRAGMENTS += [
    "'s'",
    "word",
    "NaN",
    "01",
    "-",
    '"\\u12"',
    "\t",
    "#x\n",
    "\ufeff",
    "é",
    "{}",
    "[]",
    '"k":',
    "1e999",
    "\x0b",
]


def accepted(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def codes(text: str, *, comments: bool = True) -> list[str]:
    return [diag.code for diag in parse_json(text, comments=comments).diagnostics]


@given(st.lists(st.sampled_from(_FRAGMENTS), max_size=10).map("".join))
def test_without_errors_exactly_when_msgspec_accepts(text: str):
    tree = parse_json(text, comments=False)
    assert tree.ok == accepted(text)
    if tree.ok and tree.root is not None:
        assert tree.root.to_python() == msgspec.json.decode(text)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4)
        ),
    )
)
def test_every_json_value_comes_back_and_every_span_holds_its_value(value: object):
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    tree = parse_json(text, comments=False)
    assert tree.ok and tree.root is not None
    assert tree.root.to_python() == msgspec.json.decode(text)
    stack = [tree.root]
    while stack:
        node = stack.pop()
        assert msgspec.json.decode(text[node.start : node.end]) == node.to_python()
        stack += node.items
        for member in node.members:
            assert msgspec.json.decode(text[member.key_start : member.key_end]) == member.key
            assert text[member.colon] == ":"
            if member.value is not None:
                stack.append(member.value)


@given(st.lists(st.sampled_from([*_FRAGMENTS, "// c\n", "/* c */"]), max_size=12).map("".join))
def test_broken_text_never_raises_and_every_offset_has_a_place(text: str):
    tree = parse_json(text)
    for offset in range(len(text) + 1):
        tree.pointer_at(offset)
    assert all(0 <= diag.span[0] <= diag.span[1] <= len(text) for diag in tree.diagnostics)


def test_comments_and_trailing_commas_are_hints_with_a_fix_and_errors_when_strict():  # ruling 31
    text = '{\n  // why\n  "a": [1, 2,], /* b */\n}'
    tree = parse_json(text)
    assert tree.ok
    assert [(diag.code, diag.severity) for diag in tree.diagnostics] == [
        ("MF525", "hint"),
        ("MF526", "hint"),
        ("MF526", "hint"),
        ("MF525", "hint"),
    ]
    assert [text[slice(*span)] for span in tree.comments] == ["// why", "/* b */"]
    edits = sorted((edit for diag in tree.diagnostics if diag.fix for edit in diag.fix.edits), key=lambda e: -e.start)
    for edit in edits:
        text = text[: edit.start] + edit.new_text + text[edit.end :]
    assert msgspec.json.decode(text) == {"a": [1, 2]}
    assert not parse_json('{"a": 1,}', comments=False).ok
    assert not parse_json("// c\n1", comments=False).ok


def test_a_duplicate_key_is_reported_at_the_later_one_which_counts():
    text = '{"a": 1, "b": 2, "a": 3}'
    tree = parse_json(text)
    assert [(diag.code, diag.span) for diag in tree.diagnostics] == [("MF524", (17, 20))]
    assert tree.root is not None and tree.root.to_python() == {"a": 3, "b": 2}
    found = tree.node_at("/a")
    assert found is not None and found.value == 3


def test_a_lone_surrogate_escape_becomes_the_replacement_character_with_a_warning():
    tree = parse_json('["\\ud800", "\\ud83d\\ude00"]')
    assert [diag.code for diag in tree.diagnostics] == ["MF527"]
    assert tree.root is not None and tree.root.to_python() == ["\ufffd", "😀"]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "01", "1.", ".5", "+1", "0x1", "1_000"])
def test_numbers_outside_of_json_are_refused_at_their_place(word: str):
    tree = parse_json(f"[1, {word}]")
    assert [(diag.code, diag.span) for diag in tree.diagnostics] == [("MF523", (4, 4 + len(word)))]


def test_an_integer_keeps_every_digit_up_to_the_limit_and_is_refused_with_a_message_above_it():
    assert parse_json("9" * 4300).root.to_python() == int("9" * 4300)  # type: ignore[union-attr]
    (diag,) = parse_json("9" * 4301).diagnostics
    assert diag.code == "MF523" and "4300" in str(diag.args["reason"])


def test_a_string_ends_at_its_line_so_that_one_stray_quote_spoils_one_line():
    tree = parse_json('{\n "a": "x,\n "b": 2,\n "c": 3\n}')
    assert tree.root is not None
    assert tree.root.get("b") is not None and tree.root.get("c") is not None
    assert tree.diagnostics[0].code == "MF522"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"a" 1}', {"a": 1}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ("{a: 1, 'b': 'x'}", {"a": 1, "b": "x"}),
        ('{"a": True, "b": None}', {"a": True, "b": None}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": , "b": 2}', {"b": 2}),
        ('{"a": 1,, "b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1', {"a": 1}),
        ('{"a": {"b": [1', {"a": {"b": [1]}}),
    ],
)
def test_as_much_of_a_broken_text_as_possible_is_read(text: str, wanted: object):
    tree = parse_json(text)
    assert not tree.ok
    assert tree.root is not None and tree.root.to_python() == wanted


@pytest.mark.parametrize(
    ("text", "path", "slot"),
    [
        ('{"a": {"b|": 1}}', ("a", "b"), "key"),
        ('{"a": {"b": |}}', ("a", "b"), "value"),
        ('{"a": {"b": |', ("a", "b"), "value"),
        ('{"a": [1, |', ("a", 1), "value"),
        ('{"a": [1, {"x": "y|"}]}', ("a", 1, "x"), "value"),
        ("{|}", (), "key"),
        ('{"a": 1, |}', (), "gap"),
        ('{"a": "|', ("a",), "value"),
        ('{"a": {|', ("a",), "key"),
    ],
)
def test_the_place_at_an_offset_is_found_in_whole_and_in_broken_text(text: str, path: tuple[object, ...], slot: str):
    offset = text.index("|")
    place = parse_json(text.replace("|", "")).pointer_at(offset)
    assert (place.path, place.slot) == (path, slot)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100000,
        "{" * 100000,
        '{"a":' * 100000,
        "[" * 50000 + "]" * 50000,
        '"' * 300000,
        ",[" * 100000,
        "'" * 300000,
        "/*" * 200000,
        "//\n" * 100000,
        "1" * 500000,
        "\\" * 300000,
        '["\\' * 50000,
        ":" * 300000,
    ],
)
def test_hostile_texts_end_quickly_with_few_findings(text: str):
    assert loops(lambda: parse_json(text), tries=1) < 300
    tree = parse_json(text)
    assert len(tree.diagnostics) <= 2 * MAX_ERRORS + 1


def test_time_grows_linearly_with_a_stray_quote_in_a_minified_text():
    def build(n: int) -> str:
        text = "{" + ",".join(f'"k{i}": {{"a": "text", "n": [{i}, 2.5]}}' for i in range(n)) + "}"
        return text[: len(text) // 2] + '"' + text[len(text) // 2 :]

    assert growth(build, parse_json, 2_000) <= 8


def test_one_changed_character_anywhere_gives_a_tree_and_located_findings(is_long: bool):
    chance = random.Random(7)
    text = msgspec.json.format(
        msgspec.json.encode({"a": [1, {"b": "c d"}], "e": None, "f": {"g": [True, -2.5]}})
    ).decode()
    for _ in range(20_000 if is_long else 400):
        at = chance.randrange(len(text))
        broken = text[:at] + chance.choice('{}[],:"\\x1 \n') + text[at + chance.randrange(2) :]
        tree = parse_json(broken, comments=False)
        assert tree.ok == accepted(broken), broken


@pytest.mark.parametrize("text", ['{"a\udfff: 1}', "{\udfff: 1}", '{"a": \udfff}', "{'\udfff': '\udfff'}"])
def test_half_a_surrogate_pair_has_a_fix_that_can_be_sent(text: str) -> None:
    for diag in parse_json(text).diagnostics:
        for edit in diag.fix.edits if diag.fix is not None else ():
            msgspec.json.encode(edit.new_text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * MAX_JSON_DEPTH + "1" + "}" * MAX_JSON_DEPTH,
        "[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH,
        "[" * MAX_JSON_DEPTH + "1" + ",]" * MAX_JSON_DEPTH,
        '{"a":[' * (MAX_JSON_DEPTH // 2) + "]}" * (MAX_JSON_DEPTH // 2),
    ],
)
def test_the_deepest_nest_that_is_allowed_is_read_to_its_end(text: str) -> None:
    tree = parse_json(text)
    assert tree.ok and tree.root is not None and tree.root.closed and tree.root.end == len(text)


def test_a_comma_missing_behind_an_empty_container_is_put_behind_it() -> None:
    text = '{a: [] "b": 1}'
    (missing,) = [diag for diag in parse_json(text).diagnostics if "','" in str(diag.args["reason"])]
    assert missing.fix is not None
    (edit,) = missing.fix.edits
    assert text[: edit.start] + edit.new_text + text[edit.end :] == '{a: [], "b": 1}'
