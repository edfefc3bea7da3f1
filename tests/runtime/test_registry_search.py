"""``tool/list``: filters, pages and the offline search (D51, D56, D87)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.manifest.reading import Manifest, ServiceMethod
from tamis.server.runtime.tools.listing import ToolFilter, WrongCursorError, page
from tamis.server.runtime.tools.registry import Registry, Tool
from tamis.server.runtime.tools.search import Search, query_terms, terms
from tests.growth import loops


def tool(tool_id: str, name: str = "", description: str = "", version: str = "1.0.0", **fields: Any) -> Tool:
    manifest = Manifest(tool_id, name or tool_id, description, version, ServiceMethod("S", "m"), **fields)
    return Tool(manifest, f"/{tool_id}.tool.json")


TOOLS = [
    tool("core:read-file", "Read file", "Gives the text of one file.", tags=("files",)),
    tool("core:writeFile", "Write file", "Stores a text in a file; readers see it at once.", tags=("files",)),
    tool("web:weather", "天气查询", "查询一个城市的天气预报。", tags=("天气",)),
    tool("web:search", "网页搜索", "在网上搜索关键词，返回网页列表。"),
    tool(
        "math:convert",
        "Unit converter",
        "Converts lengths and weights.",
        parameters={"type": "object", "properties": {"from_unit": {"description": "Such as mile"}, "value": {}}},
    ),
    tool("img:日本語ツール", "画像変換", "画像を変換します。"),
    tool("c++:format", "Formats C++", "Runs clang-format."),
    tool("core:old", "Legacy", "Was READ once.", version="0.1.0"),
]


def found(query: str, tools: list[Tool] | None = None) -> list[str]:
    return [one.tool_id for _, one in Search(Registry(tools or TOOLS).tools).ranked(query)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("core:read-file", "core:read-file"),
        ("read file", "core:read-file"),
        ("READ", "core:read-file"),
        ("writefile", "core:writeFile"),
        ("write", "core:writeFile"),
        ("weath", "web:weather"),
        ("wether", "web:weather"),  # a letter is missing
        ("convertr", "math:convert"),
        ("天气", "web:weather"),
        ("城市天气", "web:weather"),
        ("搜索", "web:search"),
        ("请查询北京的天气", "web:weather"),
        ("画像", "img:日本語ツール"),
        ("ツール", "img:日本語ツール"),
        ("气", "web:weather"),
        ("from unit", "math:convert"),
        ("mile", "math:convert"),
        ("c++", "c++:format"),
        ("ＦＩＬＥ", "core:read-file"),  # full width
    ],
)
def test_the_best_tool_comes_first(query: str, first: str) -> None:  # D87: search by text
    assert found(query)[:1] == [first]


def test_fields_count_by_their_weight() -> None:
    ranked = found(
        "pear", [tool("a:1", description="a pear"), tool("a:2", tags=("pear",)), tool("a:3", "Pear"), tool("a:pear")]
    )
    assert ranked == ["a:3", "a:pear", "a:2", "a:1"]


def test_every_word_must_be_found() -> None:
    assert found("file weather") == []
    assert found("qqqq") == []
    assert found("rd") == [], "short words have no slips"


def test_a_word_that_begins_something_is_no_slip_of_another() -> None:
    assert found("weat", [tool("a:wheat"), tool("a:weather")]) == ["a:weather"]


def test_the_order_does_not_depend_on_the_order_of_registration() -> None:
    assert found("file", TOOLS[::-1]) == found("file", TOOLS)


@given(st.text(max_size=60))
def test_any_query_is_answered(query: str) -> None:
    ranked = Search(TOOLS).ranked(query)
    assert [score for score, _ in ranked] == sorted((score for score, _ in ranked), reverse=True)


@given(st.lists(st.sampled_from(["read", "文件", "x", "ab", "名", "αβγ", "fooBar"]), min_size=1, max_size=4))
def test_what_stands_in_a_name_is_found_by_its_words(words: list[str]) -> None:
    name = " ".join(words)
    assert found(name, [tool("t:x", name)]) == ["t:x"]


@given(st.text(max_size=80))
def test_the_words_of_a_query_are_words_of_the_same_text(text: str) -> None:
    held = {word.casefold() for word in terms(text)} | {word for part in terms(text) for word in terms(part.casefold())}
    assert all(
        any(form.startswith(word) for form in held) or word in held for group in query_terms(text) for word in group
    )


def test_hostile_queries_and_tools_cost_little() -> None:  # F18
    tools = [tool(f"t:{number}", "a" * 4_000, "b " * 20_000) for number in range(50)]
    search = Search(tools)
    queries = ("a" * 100_000, "ab " * 50_000, "天" * 100_000, "\0" * 1000, "aaaaaaab " * 1000)
    assert loops(lambda: [search.ranked(query) for query in queries]) < 100


def test_five_thousand_tools_are_searched(is_long: bool) -> None:
    words = ["read", "write", "file", "mail", "image", "convert", "网页", "天气", "search", "list"]
    count = 5_000
    tools = [
        tool(
            f"ns{number % 7}:{words[number % 10]}-{number}",
            f"{words[number % 10]} {words[number // 10 % 10]}",
            f"Tool {number} does {words[number // 100 % 10]} things with {words[number % 10]}.",
        )
        for number in range(count if is_long else 1_500)
    ]
    search = Search(tools)
    queries = ["read file", "wriet", "天气", "mail list", "conv", "ns3"]
    assert all(search.ranked(query) for query in queries)
    # measured: one loop for the six of them with 1500 tools
    assert loops(lambda: [search.ranked(query) for query in queries]) < len(tools) / 30


# Pages


def pages(registry: Registry, wanted: ToolFilter, limit: int) -> list[str]:
    seen: list[str] = []
    cursor = None
    while True:
        got = page(registry, wanted, lambda _: True, cursor=cursor, limit=limit)
        seen += [f"{one.tool_id}@{one.version}" for one in got.tools]
        cursor = got.next
        if cursor is None:
            return seen


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(["1.0.0", "2.0.0-rc.1", "2.0.0", "x"])), unique=True),
    st.integers(1, 5),
)
def test_pages_together_are_the_whole_list(keys: list[tuple[str, str]], limit: int) -> None:
    registry = Registry([tool(f"n:{name}", "word", version=version) for name, version in keys])
    whole = [f"{one.tool_id}@{one.version}" for one in registry.tools]
    assert pages(registry, ToolFilter(), limit) == whole
    assert sorted(pages(registry, ToolFilter(query="word"), limit)) == sorted(whole)


@pytest.mark.parametrize("query", [None, "tool"])
def test_a_cursor_stays_right_while_tools_come_and_go(query: str | None) -> None:
    tools = [tool(f"n:t{number}", "tool") for number in range(9)]
    wanted = ToolFilter(query=query)
    first = page(Registry(tools), wanted, lambda _: True, limit=4)
    assert [one.tool_id for one in first.tools] == ["n:t0", "n:t1", "n:t2", "n:t3"]
    # The last one shown is gone, one before it is new.
    later = Registry([tool("n:a", "tool"), *tools[:3], *tools[4:]])
    second = page(later, wanted, lambda _: True, cursor=first.next, limit=4)
    assert [one.tool_id for one in second.tools] == ["n:t4", "n:t5", "n:t6", "n:t7"]


def test_a_cursor_belongs_to_its_filter() -> None:
    registry = Registry([tool(f"n:t{number}") for number in range(3)])
    first = page(registry, ToolFilter(), lambda _: True, limit=1)
    with pytest.raises(WrongCursorError, match="another filter"):
        page(registry, ToolFilter(namespace="n"), lambda _: True, cursor=first.next, limit=1)


@given(st.text(max_size=40) | st.binary(max_size=30).map(lambda data: data.hex()))
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(WrongCursorError):
        page(Registry(TOOLS), ToolFilter(), lambda _: True, cursor=cursor, limit=1)


def test_every_part_of_a_filter_must_fit() -> None:  # D51
    registry = Registry(TOOLS)

    def ids(callable_ids: str = "core", **wanted: Any) -> list[str]:
        got = page(registry, ToolFilter(**wanted), lambda one: one.namespace == callable_ids, limit=100)
        return [one.tool_id for one in got.tools]

    assert ids(namespace="core") == ["core:old", "core:read-file", "core:writeFile"]
    assert ids(tags=["files"], query="write") == ["core:writeFile"]
    assert ids(tags=["files", "天气"]) == []
    assert ids(namespace="web", callable=True) == []
    assert ids(namespace="web", callable=False) == ["web:search", "web:weather"]
