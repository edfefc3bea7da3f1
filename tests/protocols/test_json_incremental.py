"""A JSON tree after an edit is the tree of the new text, findings and all; and what the edit left alone is the same as before."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.jsontext import edit as edit_module
from tamis.protocols.jsontext.edit import edited
from tamis.protocols.jsontext.green import Branch
from tamis.protocols.jsontext.parse import MAX_ERRORS, MAX_JSON_DEPTH, Known, Reader, parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, memo_of
from tamis.protocols.model import Json

Edit = tuple[int, int, str]

FRAGMENTS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    '""',
    '"a"',
    '"a":',
    '"a": 1,',
    "1",
    "-1.5e3",
    "tru",
    "e",
    " ",
    "\n",
    "\r\n",
]
FRAGMENTS += [
    "\r",
    "\\",
    "'",
    "'s'",
    "x",
    "#x\n",
    "//",
    "// c\n",
    "/*",
    "*/",
    "/* c */",
    "{}",
    "[]",
    "[1, 2]",
    ",,",
    "}{",
    "][",
]
FRAGMENTS += [
    '{"a": {"b": [1]}},',
    '"x" "y": 1,',
    "a: 1,",
    '"\\ud800"',
    "你好",
    "😀",
    "\ufeff",
    "\t",
    "",
    "9" * 4301,
    "[[[",
    "}}}",
]
VALID: Json = {
    "a": [1, {"b": "c d"}, [], {}],
    "e": None,
    "f": {"g": [True, -2.5], "h": {"i": {"j": "你好 😀"}}},
    "k": [[1, 2], [3, 4], [5, 6]],
}
BROKEN = [
    "",
    "1",
    '{"a": [1, 2, "b": {"c": 3, }',
    '{"a" 1 "b": {"c": [1 2]}, d: {"e": 1}}',
    '{"x" "k": {"a": 1}, "y" : : 2, {"z": 3}}',
    '// c\n{"a": 1, /* b */ "b": [1, 2,],} // d\n',
    '[{"a": 1}, }, {"b": [}], 1]]] 2',
    '{"a": {"a": 1, "a": 2}, "a": 3}',
    '{"s": "open\n, "t": "x\\q", "u": [1]}',
    # the closer of a list is missing before a name
    '{"p": {"r": ["text",\n "a": false, "q": 1}, "z": [1]}',
    '{"r": ["a" "b": {"c": [1, "d": 2]}, "e": [ "f": 1, ], "g": ["h", /*x*/ "i" /*y*/ : 1, "\\ud800": 2]}',
    "[" + ",".join(["{,}"] * (MAX_ERRORS // 2)) + "]",
    "[" + ",".join(["{,}"] * (MAX_ERRORS + 10)) + "]",
    "[" + ",".join(["/**/1"] * (MAX_ERRORS + 10)) + "]",
    '{"a":' * (MAX_JSON_DEPTH - 2) + "1" + "}" * (MAX_JSON_DEPTH - 2),
    "[" * (MAX_JSON_DEPTH + 5),
]


def shown(tree: JsonTree) -> list[object]:
    """Everything that a tree tells, as data that can be compared."""
    rows: list[object] = [tree.text, tree.diagnostics, tree.comments, tree.trailing_commas, tree.ok]
    stack = [tree.root] if tree.root is not None else []
    while stack:
        node = stack.pop()
        rows.append((node.kind, node.span, repr(node.value), node.closed))
        rows += [(one.key, one.key_span, one.colon, one.value is None) for one in node.members]
        stack += node.items
        stack += [one.value for one in node.members if one.value is not None]
    rows.append(None if tree.root is None else repr(tree.root.to_python()))
    return rows


def containers(node: JsonNode | None) -> Iterator[JsonNode]:
    """Every object and list of a tree."""
    stack = [node] if node is not None else []
    while stack:
        here = stack.pop()
        if here.kind in ("object", "array"):
            yield here
            stack += [child for i in range(len(here.greens)) if (child := here.child(i)) is not None]


def after(tree: JsonTree, edit: Edit) -> JsonTree:
    """The edited tree, compared with the text read anew."""
    start, end, new = edit
    now = edited(tree, start, end, new)
    assert now.text == tree.text[:start] + new + tree.text[end:]
    assert shown(now) == shown(parse_json(now.text, comments=tree.reading.lenient)), (tree.text, edit)
    return now


edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(FRAGMENTS), st.booleans()), min_size=1, max_size=12
)


def run(text: str, lenient: bool, steps: list[tuple[float, int, str, bool]]) -> None:
    tree = parse_json(text, comments=lenient)
    last = 0
    for where, width, new, near in steps:
        # People type where they have just typed.
        start = min(last, len(tree.text)) if near else int(where * len(tree.text))
        end = min(start + (width if width < 9 else 0), len(tree.text))
        tree = after(tree, (start, end, new))
        last = start + len(new)


@given(st.sampled_from([None, 2]), st.booleans(), edits)
def test_edits_of_a_valid_document_give_what_reading_it_anew_gives(
    indent: int | None, lenient: bool, steps: list[tuple[float, int, str, bool]]
) -> None:
    separators = (",", ":") if indent is None else None
    run(json.dumps(VALID, indent=indent, separators=separators, ensure_ascii=False), lenient, steps)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join), st.booleans(), edits)
def test_edits_of_a_broken_text_give_what_reading_it_anew_gives(
    text: str, lenient: bool, steps: list[tuple[float, int, str, bool]]
) -> None:
    run(text, lenient, steps)


@pytest.mark.slow
@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_edits_at_many_places_of_a_text_with_caps_give_what_reading_it_anew_gives(text: str) -> None:
    chance = random.Random(text)
    for lenient in (True, False):
        tree = parse_json(text, comments=lenient)
        for start in {0, 1, len(text), *(chance.randrange(len(text) + 1) for _ in range(3))}:
            start = min(start, len(text))
            after(tree, (start, min(start + chance.randrange(3), len(text)), chance.choice(FRAGMENTS)))


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("[1, 2]", (2, 4, "")),  # two numbers become one
        ("[12]", (2, 2, " ")),
        ('{"a": 1}', (2, 2, '"')),
        ('{"a": "b"}', (8, 9, "")),  # the closing quote goes
        ('{"a": "",\n "b": 1}', (7, 7, "x")),
        ('{"a": ""}', (7, 8, "")),
        ('{"a": 1,\r\n"b": 2}', (9, 9, " ")),  # between CR and LF
        ('{"a": "x\r\n"}', (9, 10, "")),
        ("", (0, 0, "{}")),
        ("{}", (0, 2, "")),
        ("[1]", (3, 3, " 2")),
        ("[1]", (0, 0, "\ufeff")),
        ('["a", /* b */ {"c": 1}]', (6, 8, "")),
        ('["a", {"c": 1}, 2 // d\n]', (2, 2, "// ")),
        ('{"x" "k": 1, "z": 2}', (10, 11, "y")),  # what a name without a colon is depends on what follows
        ('[[1], x, {"a": [}]}]', (3, 3, "}")),  # a closer that closes something around
        ('{"a": [1, 2}', (10, 10, "]")),
        ('{"a": [1, {"b": 2', (17, 17, "3")),
        ('[[1, {"a": 1]], 2]', (11, 11, "}")),
    ],
)
@pytest.mark.parametrize("lenient", [True, False])
def test_an_edit_that_joins_splits_opens_or_closes_gives_what_reading_anew_gives(
    text: str, edit: Edit, lenient: bool
) -> None:
    now = after(parse_json(text, comments=lenient), edit)
    after(now, (edit[0], edit[0] + len(edit[2]), text[edit[0] : edit[1]]))


def test_an_earlier_version_stays_as_it_was() -> None:
    tree = parse_json('{"a": {"b": [1, {"c": 2}]}, "a": 3}')
    before = shown(tree)
    for at in range(len(tree.text)):
        edited(tree, at, at + 1, "")
    assert shown(tree) == before == shown(parse_json(tree.text))


def document(members: int) -> str:
    """A manifest with many parameters."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "enum": [1, 2]}}, "required": ["n"]}
    return json.dumps(
        {"toolId": "core:x", "parameters": {"properties": {f"p{i}": schema for i in range(members)}}}, indent=1
    )


def test_python_data_and_memos_of_containers_that_an_edit_leaves_alone_are_the_same_objects() -> None:
    tree = parse_json(document(40))
    memos = {node.span: memo_of(node) for node in containers(tree.root)}
    data = {node.span: node.to_python() for node in containers(tree.root)}
    at = tree.text.index('"p20"') + 30
    now = edited(tree, at, at, "\n")
    kept = 0
    for node in containers(now.root):
        old = node.span if node.end <= at else (node.start - 1, node.end - 1) if node.start > at else None
        if old is not None:
            assert memo_of(node) is memos[old]
            assert node.to_python() is data[old]
            kept += 1
    assert kept == len(memos) - 4  # the root, parameters, properties and p20
    assert all(memo_of(node) is not memos.get(node.span) for node in containers(now.root) if node.start < at < node.end)


def test_a_stray_quote_in_a_long_line_forgets_nothing_when_it_is_gone() -> None:
    text = json.dumps({f"p{i}": {"type": "string", "list": [i]} for i in range(300)}, separators=(",", ":"))
    tree = parse_json(text)
    memos = [memo_of(node) for node in containers(tree.root)]
    at = text.index('"p100"') + 2
    broken = edited(tree, at, at, '"')
    assert broken.reading.stopped
    again = edited(edited(broken, at + 1, at + 1, "x"), at, at + 2, "")
    assert shown(again) == shown(tree)
    known = {id(memo) for memo in memos}
    assert sum(id(memo_of(node)) in known for node in containers(again.root)) == len(memos) - 1


def test_children_can_be_walked_without_views() -> None:
    root = parse_json('{"a": [1], "b":, "c": {"d": 2}}').root
    assert root is not None and list(root.keys) == ["a", "b", "c"]
    assert [green is None for green in root.greens] == [False, True, False]
    assert [None if (child := root.child(i)) is None else child.to_python() for i in range(3)] == [[1], None, {"d": 2}]
    assert memo_of(root.greens[0]) is memo_of(root.get("a"))
    assert root.members[2].value is root.child(2)


def characters_read(tree: JsonTree, edit: Edit, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many characters are read for an edit; containers that are taken over are not."""
    read: list[int] = []

    class Counting(Reader):
        def __init__(self, text: str, *rest: object) -> None:
            read.append(len(text))
            super().__init__(text, *rest)  # type: ignore[arg-type]

        def take(self, known: Mapping[int, Known], at: int) -> Branch | None:
            found = super().take(known, at)
            read.append(0 if found is None else -found.length)
            return found

    monkeypatch.setattr(edit_module, "Reader", Counting)
    edited(tree, *edit)
    return sum(read)


@pytest.mark.slow
@pytest.mark.parametrize("name", ['"p3"', '"p1000"', '"p1999"'])
@pytest.mark.parametrize(("offset", "new"), [(1, "x"), (12, "7"), (25, " "), (0, "\n")])
def test_a_key_typed_in_a_large_document_reads_its_neighbourhood_only(
    name: str, offset: int, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = parse_json(document(2000))
    at = tree.text.index(name) + offset
    assert characters_read(tree, (at, at, new), monkeypatch) < 2000


@pytest.mark.slow
@pytest.mark.parametrize("new", ["{", "}", "]", '"'])
def test_a_stray_mark_in_a_large_document_passes_over_what_it_does_not_touch(
    new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = parse_json(document(2000))
    at = tree.text.index('"properties"', tree.text.index('"p1000"'))
    assert characters_read(tree, (at, at, new), monkeypatch) < len(tree.text) / 3
    broken = edited(tree, at, at, new)
    assert characters_read(broken, (at, at + 1, ""), monkeypatch) < len(tree.text) / 3


def test_a_key_typed_in_a_flat_list_of_thousands_reads_its_neighbours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = parse_json(json.dumps([f"text {i}" for i in range(20_000)]))
    at = tree.text.index("text 9999") + 3
    assert characters_read(tree, (at, at, "x"), monkeypatch) < 200


def test_a_key_typed_deep_in_a_nest_reads_little_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"a":' * 400 + "1" + "}" * 400
    tree = parse_json(text)
    assert characters_read(tree, (2001, 2001, '"'), monkeypatch) < 12 * len(text)


def test_long_sessions_of_edits_give_what_reading_anew_gives(is_long: bool) -> None:
    chance = random.Random(11)
    starts = [json.dumps(VALID, indent=2, ensure_ascii=False), json.dumps(VALID), document(12), *BROKEN[2:9]]
    for _ in range(1_500 if is_long else 6):
        tree = parse_json(chance.choice(starts), comments=chance.random() < 0.7)
        at = 0
        for _ in range(40):
            at = min(at + chance.randrange(-3, 4), len(tree.text)) if chance.random() < 0.6 else chance.randrange(10**6)
            at = max(at % (len(tree.text) + 1), 0)
            end = min(at + chance.choice([0, 0, 1, 2, 30]), len(tree.text))
            tree = after(tree, (at, end, chance.choice(FRAGMENTS)))
