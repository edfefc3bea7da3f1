"""What always holds of the verbs that show: tokens, folds, selections, edits, whatever the text is (D93)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tamis.protocols.changes import applied, are_in_order, layout_edits, line_edits, shrunk
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.model import Block
from tamis.server.analysis.describe import plain_text
from tamis.server.analysis.hover.explain import explain
from tamis.server.analysis.hover.signature import signature_at
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.shown.block_tokens import TokenCache, semantic_tokens
from tamis.server.analysis.shown.folding import folds
from tamis.server.analysis.shown.formatting import Layout, format_document, format_ranges
from tamis.server.analysis.shown.inlay import inlay_hints
from tamis.server.analysis.shown.on_type import TRIGGERS, on_type
from tamis.server.analysis.shown.selection import selection
from tamis.server.analysis.shown.token_kinds import KINDS, MODIFIERS, Token
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.lsp.documents import Document
from tamis.server.lsp.features import formatting
from tamis.server.lsp.fold_data import Wish, fold_ranges
from tamis.server.lsp.token_data import Legend, delta, encode, legend_for
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.loader import FoundFile, Scan
from tamis.server.runtime.tools.reading import build_registry
from tamis.server.runtime.tools.registry import Registry
from tests.lsp.markers import FOLDER, language, read_case

CASES = sorted((FOLDER / "show").glob("*.txt"))
DOCUMENTS = [
    (f"{path.stem}/{name}", name, text)
    for path in CASES
    for name, text in read_case(path).documents.items()
    if not name.startswith("tools/") and not name.endswith(".py")
]
TOOL = next(
    text for path in CASES for name, text in read_case(path).documents.items() if name == "tools/echo.tool.json"
)
REGISTRY: Registry = build_registry(Scan((FoundFile("/w/tools/echo.tool.json", TOOL),), ()), Settings())
LEGEND = legend_for({"tokenTypes": list(KINDS), "tokenModifiers": list(MODIFIERS)})


def snapshot_of(name: str, text: str) -> Snapshot:
    path = f"/w/{name}"
    return Snapshot(path, kind_of(path, language(name)), text, REGISTRY)


def every_document(check: Callable[[str, str], None]) -> Callable[[], None]:
    """One test that checks every document of the marker files, and names the one that fails."""

    def test() -> None:
        assert len(DOCUMENTS) > 50
        for label, name, text in DOCUMENTS:
            try:
                check(name, text)
            except AssertionError as error:
                raise AssertionError(f"{label}: {error}") from error

    test.__name__ = check.__name__
    test.__doc__ = check.__doc__
    return test


@every_document
def test_tokens_are_in_order_apart_and_a_range_gives_the_same_ones(name: str, text: str) -> None:
    snapshot = snapshot_of(name, text)
    tokens = semantic_tokens(snapshot)
    assert all(0 <= token[0] < token[1] <= len(text) for token in tokens)
    assert all(one[1] <= other[0] for one, other in pairwise(tokens))
    for start in range(0, len(text), max(1, len(text) // 5)):
        span = (start, min(len(text), start + 40))
        assert semantic_tokens(snapshot, span) == [t for t in tokens if t[0] < span[1] and span[0] < t[1]]
    assert semantic_tokens(snapshot, cache=TokenCache()) == tokens
    whole = semantic_tokens(snapshot, whole=True)
    assert all(one[1] <= other[0] for one, other in pairwise(whole))
    assert set(tokens) <= set(whole)


def decoded(text: str, data: list[int], legend: Legend, units: str) -> list[tuple[int, int, int, str]]:
    """Encoded tokens as (line, start unit, length, kind)."""
    found: list[tuple[int, int, int, str]] = []
    line = character = 0
    for at in range(0, len(data), 5):
        lines, characters, length, kind, _ = data[at : at + 5]
        line, character = (line + lines, characters) if lines else (line, character + characters)
        found.append((line, character, length, legend.kinds[kind]))
    return found


@every_document
def test_encoded_tokens_stay_within_their_lines_in_every_encoding(name: str, text: str) -> None:
    tokens = semantic_tokens(snapshot_of(name, text))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for encoding, codec, width in (("utf-8", "utf-8", 1), ("utf-16", "utf-16-le", 2), ("utf-32", "utf-32-le", 4)):
        data = encode(text, tokens, LEGEND, encoding, multiline=False)  # pyright: ignore[reportArgumentType]
        for line, character, length, _ in decoded(text, data, LEGEND, codec):
            units = lines[line].encode(codec)
            assert length > 0
            assert (character + length) * width <= len(units)
            units[character * width : (character + length) * width].decode(codec)
    assert encode(text, [], LEGEND, "utf-16", multiline=False) == []


def test_a_token_over_lines_is_cut_only_for_clients_that_cannot_take_it() -> None:
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»core:echo«««\ntext:»»»a😋\r\nb«««\n<|[END_TOOL]|>"
    tokens = [t for t in semantic_tokens(snapshot_of("a.tam", text)) if KINDS[t[2]] == "string"]
    assert [row[:3] for row in decoded(text, encode(text, tokens, LEGEND, "utf-16", multiline=True), LEGEND, "")] == [
        (2, 8, 6)
    ]
    cut = decoded(text, encode(text, tokens, LEGEND, "utf-16", multiline=False), LEGEND, "")
    assert [row[:3] for row in cut] == [(2, 8, 3), (3, 0, 1)]


def test_delta_applied_is_full_after_random_edits() -> None:
    random.seed(7)
    for _, name, text in DOCUMENTS:
        before = encode(text, semantic_tokens(snapshot_of(name, text)), LEGEND, "utf-16", multiline=False)
        for _ in range(3):
            at = random.randrange(len(text) + 1)
            end = min(len(text), at + random.randrange(4))
            text = text[:at] + random.choice(["", "x", "\n", '"', "»»»", "😋", "«««\nb:"]) + text[end:]
            after = encode(text, semantic_tokens(snapshot_of(name, text)), LEGEND, "utf-16", multiline=False)
            made = list(before)
            for edit in delta(before, after):
                made[edit["start"] : edit["start"] + edit["deleteCount"]] = edit["data"]
            assert made == after
            before = after


def test_a_delta_of_long_data_touches_only_what_changed() -> None:
    before = [n % 7 for n in range(50_000)]
    after = [*before[:20_000], 99, *before[20_005:]]
    (edit,) = delta(before, after)
    assert edit["start"] >= 20_000 - 8
    assert len(edit["data"]) <= 10
    assert delta(before, list(before)) == []


def test_a_client_with_few_kinds_gets_the_nearest_ones_and_one_with_none_gets_nothing() -> None:
    few = legend_for({"tokenTypes": ["keyword", "variable", "string"], "tokenModifiers": []})
    assert set(few.kinds) == {"keyword", "variable", "string"}
    assert few.kinds[few.kind_of[KINDS.index("parameter")]] == "variable"
    assert few.kind_of[KINDS.index("number")] == -1
    assert legend_for({}).kinds == ()
    assert legend_for({"tokenTypes": "no", "tokenModifiers": [1, None]}).kinds == ()


@every_document
def test_folds_are_within_the_text_and_hold_one_another(name: str, text: str) -> None:
    found = folds(snapshot_of(name, text))
    for fold in found:
        assert 0 <= fold.span[0] < fold.span[1] <= len(text)
    for i, one in enumerate(found):
        for other in found[i + 1 :]:
            apart = one.span[1] <= other.span[0]
            assert apart or other.span[1] <= one.span[1], "folds never cross"


@every_document
def test_folded_lines_are_valid_and_no_more_than_the_client_takes(name: str, text: str) -> None:
    document = Document(f"file:///w/{name}", language(name), 1, text, "utf-16")
    found = folds(snapshot_of(name, text))
    ranges = fold_ranges(document, found, Wish(lines_only=True))
    starts = [item["startLine"] for item in ranges]
    assert len(starts) == len(set(starts))
    assert all(item["startLine"] < item["endLine"] for item in ranges)
    assert all("startCharacter" not in item and "collapsedText" not in item for item in ranges)
    for limit in (1, 2, 3):
        kept = fold_ranges(document, found, Wish(lines_only=True, limit=limit))
        assert len(kept) == min(limit, len(ranges))
        assert all(item in ranges for item in kept)


@pytest.mark.slow
@every_document
def test_selections_hold_the_place_and_one_another_strictly(name: str, text: str) -> None:
    snapshot = snapshot_of(name, text)
    for offset in range(0, len(text) + 1, max(1, len(text) // 60)):
        spans = selection(snapshot, offset)
        assert spans[-1] == (0, len(text))
        for span in spans:
            assert span[0] <= offset <= span[1]
        for inner, outer in pairwise(spans):
            assert outer[0] <= inner[0] and inner[1] <= outer[1] and inner != outer


@every_document
def test_formatting_again_changes_nothing_and_no_meaning_is_lost(name: str, text: str) -> None:
    for layout in (Layout(), Layout(4), Layout(insert_spaces=False)):
        snapshot = snapshot_of(name, text)
        edits = format_document(snapshot, layout)
        assert are_in_order(edits)
        after = applied(text, edits)
        assert format_document(snapshot_of(name, after), layout) == ()
        keep_meaning(name, text, after)


def keep_meaning(name: str, before: str, after: str) -> None:
    if name.endswith(".json"):
        one, other = parse_json(before), parse_json(after)
        assert (one.root and one.root.to_python()) == (other.root and other.root.to_python())
        assert len(one.comments) == len(other.comments)
        keys = [list(json_keys(tree.root)) for tree in (one, other)]
        assert keys[0] == keys[1], "the order of keys stays"
        return
    one, other = snapshot_of(name, before).document, snapshot_of(name, after).document
    assert [(c.tool_id, c.args(before), c.step, c.executable) for c in one.calls] == [
        (c.tool_id, c.args(after), c.step, c.executable) for c in other.calls
    ]


def json_keys(node: object) -> list[str]:
    members = getattr(node, "members", [])
    found = [key for member in members for key in (member.key, *json_keys(member.value))]
    return found + [key for item in getattr(node, "items", []) for key in json_keys(item)]


@every_document
def test_formatting_a_range_touches_its_lines_only_and_keeps_the_meaning(name: str, text: str) -> None:
    random.seed(3)
    for _ in range(4):
        start = random.randrange(len(text) + 1)
        end = random.randrange(start, len(text) + 1)
        edits = format_ranges(snapshot_of(name, text), [(start, end)])
        assert are_in_order(edits)
        after = applied(text, edits)
        keep_meaning(name, text, after)
        whole = {(e.start, e.end, e.new_text) for e in format_document(snapshot_of(name, text))}
        assert {(e.start, e.end, e.new_text) for e in edits} <= whole


def random_json(depth: int = 0) -> object:
    kind = random.randrange(6 if depth < 4 else 4)
    if kind == 4:
        return [random_json(depth + 1) for _ in range(random.randrange(4))]
    if kind == 5:
        return {f"k{i}😋": random_json(depth + 1) for i in range(random.randrange(4))}
    return random.choice([1, -2.5, True, None, "a b", "tab\t", "你好", "// no comment", ", ]"])


def messy(value: object) -> str:
    """JSON text with blanks and comments in odd places."""
    text = json.dumps(value, ensure_ascii=False, indent=random.choice([None, 1, 3]))
    if random.random() < 0.5:
        text = "\n\n " + text + " "
    return text.replace("\n", random.choice(["\n", "\r\n", "\n\n"]))


def test_random_json_is_formatted_by_edits_of_layout_alone(is_long: bool) -> None:
    random.seed(11)
    for _ in range(2_000 if is_long else 150):
        text = messy({"toolId": random_json(), "x": random_json()})
        edits = format_document(snapshot_of("m.tool.json", text))
        after = applied(text, edits)
        assert json.loads(after) == json.loads(text)
        assert format_document(snapshot_of("m.tool.json", after)) == ()
        for edit in edits:
            assert not text[edit.start : edit.end].strip() and not edit.new_text.strip(), "only blanks change"
        start = random.randrange(len(text))
        part = format_ranges(snapshot_of("m.tool.json", text), [(start, min(len(text), start + 20))])
        assert json.loads(applied(text, part)) == json.loads(text)


def test_edits_between_texts_lead_from_one_to_the_other(is_long: bool) -> None:
    random.seed(5)
    letters = ["a", "b\n", "  ", "\n", "\r\n", ",", "{", "你"]
    for _ in range(5_000 if is_long else 400):
        one = "".join(random.choices(letters, k=random.randrange(20)))
        other = "".join(random.choices(letters, k=random.randrange(20)))
        edits = line_edits(one, other)
        assert are_in_order(edits) and applied(one, edits) == other
        found = layout_edits(one, other)
        assert found is None or (are_in_order(found) and applied(one, found) == other)
        assert all(shrunk(one, edit) == edit for edit in edits if edit.start != edit.end and edit.new_text)


HALF = [(label, name, text) for label, name, text in DOCUMENTS if len(text) < 700]


def test_every_verb_at_every_place_of_half_typed_text_gives_an_answer(is_long: bool) -> None:
    """Half-typed everything: no verb raises, wherever the text ends and wherever it is asked."""
    random.seed(1)
    asked = 0
    for _, name, text in HALF:
        step = 1 if is_long else max(1, len(text) // 7)
        for end in range(0, len(text) + 1, step):
            cut = text[:end]
            snapshot = snapshot_of(name, cut)
            places = range(len(cut) + 1) if is_long else [end, random.randrange(end + 1)]
            for offset in places:
                explain(snapshot, offset)
                selection(snapshot, offset)
                signature_at(snapshot, offset)
                for typed in TRIGGERS:
                    edits = on_type(snapshot, offset, typed)
                    assert are_in_order(edits)
                asked += 1
            assert are_in_order(format_document(snapshot))
            inlay_hints(snapshot)
            folds(snapshot)
            semantic_tokens(snapshot, (end // 2, end))
    assert asked > 300


def test_what_is_typed_for_the_user_keeps_the_blocks_around_it() -> None:
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»core:echo«««\ntext:»»»"
    (edit,) = on_type(snapshot_of("a.tam", text), len(text), "»")
    assert applied(text, [edit]).endswith("text:»»»«««")
    assert on_type(snapshot_of("a.tam", applied(text, [edit])), len(text), "»") == ()


def test_the_announced_characters_are_the_ones_that_are_answered() -> None:
    assert formatting.TYPED == TRIGGERS


def test_hints_of_results_stand_behind_what_was_run() -> None:
    from tamis.server.analysis.shown.inlay import HintWish

    text = "a\n<|[REQUEST_TOOL]|>\ncommand:»»»core:echo«««\ntext:»»»a«««\n<|[END_TOOL]|>\nb"
    snapshot = snapshot_of("a.md", text)
    block = snapshot.document.blocks[0]
    found = inlay_hints(snapshot, None, HintWish(parameters=False, results={block.span: "✓ 12 ms"}))
    assert [(hint.offset, hint.parts[0].text, hint.left) for hint in found] == [(block.span[1], "✓ 12 ms", True)]
    stale = inlay_hints(snapshot, None, HintWish(parameters=False, results={(0, len(text) + 5): "old"}))
    assert stale == []


def test_plain_text_has_no_marks_of_markdown() -> None:
    markdown = "**Echo** `core:echo` · [a.json](file:///a.json)\n\nA \\*b\\*\n\n---\n\n````text\n**kept** ```\n````"
    assert plain_text(markdown) == "Echo core:echo · a.json (file:///a.json)\n\nA *b*\n\n    **kept** ```"


def test_what_a_hover_shows_is_what_prompt_generate_writes(tmp_path: Path) -> None:
    """The hover's text of a tool stands in the prompt word for word, and its count is the prompt's own (D93, V66)."""
    from tamis.server.analysis.hover.tools import PromptView, prompt_texts
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.texts.prompts import PromptRequest, Prompts

    (tmp_path / "echo.tool.json").write_text(TOOL)
    (tmp_path / "echo.py").write_text("print('{}')")
    runtime = Runtime(tmp_path)
    tool = runtime.registry.get("core:echo")
    assert tool is not None
    snapshot = Snapshot(str(tmp_path / "a.md"), "text", "", runtime.registry)
    for one in prompt_texts(snapshot, tool, PromptView()):
        made = Prompts().generate(runtime, PromptRequest(protocol=one.protocol))
        assert one.text in made.text
        assert one.tokens == made.tokens.per_tool["core:echo"]
        assert one.exact == made.tokens.exact


def test_a_long_text_asks_only_about_what_a_range_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted, not time: a range of a text with a thousand blocks makes tokens for the blocks it touches."""
    block = "<|[REQUEST_TOOL]|>\ncommand:»»»core:echo«««\ntext:»»»a{}«««\n<|[END_TOOL]|>\n\n"
    text = "".join(block.format(i) for i in range(1000))
    snapshot = snapshot_of("a.md", text)

    asked: list[Block] = []
    plain = TokenCache.of

    def counting(cache: TokenCache, snapshot: Snapshot, block: Block) -> list[Token]:
        asked.append(block)
        return plain(cache, snapshot, block)

    monkeypatch.setattr(TokenCache, "of", counting)
    middle = len(text) // 2
    assert semantic_tokens(snapshot, (middle, middle + 200))
    assert len(asked) <= 5


def test_sorting_keys_as_well_is_the_canonical_form() -> None:
    from tamis.protocols.manifest.format import format_manifest

    text = '{"version": "1", // one\n "toolId": "core:m",\n "handler": {"scriptPath": "a", "type": "external-script"}}'
    edits = format_document(snapshot_of("m.tool.json", text), sort_keys=True)
    assert applied(text, edits) == format_manifest(text).text


def test_the_ends_of_a_file_are_as_the_editor_wants_them() -> None:
    def end(text: str, **wish: bool) -> str:
        return applied(text, format_document(snapshot_of("m.tool.json", text), Layout(**wish)))[2:]

    assert end("{}") == "\n"
    assert end("{}", insert_final_newline=False) == ""
    assert end("{}\n\n\n") == "\n"
    assert end("{}\n\n\n", trim_final_newlines=False) == "\n\n\n"
    assert end("{}\r\n\r\n", trim_final_newlines=False) == "\r\n\r\n"
