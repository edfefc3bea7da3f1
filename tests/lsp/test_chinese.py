"""Issue 17, row 27: the server speaks Chinese where ``initialize.locale`` does, and English everywhere else, as before.

``server/lsp/zh-cn.json`` is held to the sources: a sentence that the code words and that has no Chinese one fails here, and so does one
of the catalogue that nothing words any more.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import CATALOGUE, message
from tamis.protocols.model import Diag
from tamis.server.analysis.actions.fixes import quick_fixes
from tamis.server.analysis.actions.refactorings import refactorings
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.kinds import kind_of, serves
from tamis.server.analysis.lints.ignore import ignoring
from tamis.server.analysis.running.lenses import Around, lenses
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.lsp.features.lifecycle import speaks_chinese
from tamis.server.lsp.words import Table, Template, catalogue, chinese
from tamis.server.runtime.settings.faults import disk_faults
from tests.analysis.few_examples import FEW
from tests.lsp.lsp_client import Client
from tests.lsp.marker_core import core_of
from tests.lsp.markers import CASES, case_id, opened, read_case
from tests.lsp.verbs import capabilities
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CHINESE = re.compile(r"[\u4e00-\u9fff]")
QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"(?:[^\"\\]|\\.)*\"|`[^`]*`")
HOLE = re.compile(r"\{(\w+)([~?]?)\}")


# Which locales


@pytest.mark.parametrize(
    "locale", ["zh", "zh-CN", "zh-cn", "zh_CN", "zh-Hans", "zh-TW", "zh-Hant-HK", "ZH", "zh_CN.UTF-8"]
)
def test_every_chinese_locale_is_spoken_to_in_simplified_chinese(locale: str) -> None:
    assert speaks_chinese(locale)


@pytest.mark.parametrize("locale", [None, "", "en", "de-DE", "C", "C.UTF-8", "zha", "x-zh", "en-zh"])
def test_any_other_locale_is_spoken_to_in_english(locale: str | None) -> None:
    assert not speaks_chinese(locale)


# The catalogue against the code


def literals(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may give, with ``x1`` in its holes; of a condition both sides. Nothing of what is no text."""
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.IfExp():
            yield from literals(node.body)
            yield from literals(node.orelse)
        case ast.BoolOp():
            for value in node.values:
                yield from literals(value)
        case ast.JoinedStr():
            parts: list[list[str]] = []
            for value in node.values:
                if isinstance(value, ast.FormattedValue):
                    parts.append(list(literals(value.value)) or ["1"])
                else:
                    parts.append(list(literals(value)))
            yield from map("".join, itertools.product(*parts))
        case _:
            return


@cache
def trees() -> list[tuple[str, ast.Module]]:
    paths = sorted(
        path for room in ("protocols", "server/analysis", "server/lsp") for path in (ROOT / room).rglob("*.py")
    )
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))) for path in paths]


@cache
def nodes() -> list[tuple[str, ast.Call | ast.FunctionDef]]:
    """All calls and functions of the rooms that word what editors are told."""
    return [
        (path, node)
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call | ast.FunctionDef)
    ]


def calls(name: str, *rooms: str) -> Iterator[ast.Call]:
    for path, node in nodes():
        if isinstance(node, ast.Call) and path.startswith(rooms):
            called = node.func
            if (called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")) == name:
                yield node


def given_as(call: ast.Call, at: int, *names: str) -> list[ast.expr]:
    """The arguments at a place, or by a name."""
    found = [keyword.value for keyword in call.keywords if keyword.arg in names]
    return found + call.args[at : at + 1]


def untold(kind: str, texts: set[str]) -> set[str]:
    """Texts for which a table has nothing, whatever phrase stands in their holes."""
    table = Table(catalogue()[kind])
    return {text for text in texts if CHINESE.search(text) is None and table.find(text, lambda phrase: phrase) is None}


def test_every_finding_has_a_chinese_sentence_with_the_same_holes() -> None:
    findings = catalogue()["findings"]
    assert findings.keys() == {entry.message for entry in CATALOGUE.values()}
    for english, other in findings.items():
        assert {name for name, _ in HOLE.findall(english)} == {name for name, _ in HOLE.findall(other)}, english
        assert CHINESE.search(other) or not re.search("[a-z]", HOLE.sub("", english)), english


@pytest.mark.parametrize("kind", ["phrases", "titles", "messages", "details", "lines", "sentences"])
def test_every_entry_of_the_catalogue_has_the_holes_of_its_sentence(kind: str) -> None:
    for english, other in catalogue()[kind].items():
        assert {name for name, _ in HOLE.findall(english)} == {name for name, _ in HOLE.findall(other)}, english


ACTIONS = re.compile(
    "(Add|Allow|Apply|Ask for|Bring|Change|Close|Convert|Create|Cut|Declare|Decode|Double|Escape|Ignore|Insert|Join|Keep|Make|Move|Name"
    "|Open|Pin|Put|Refuse|Remove|Rename|Replace|Require|Say|Sort|Split|Start|Swap|Take|Use|Wrap|Write|[▶■⇄✓✗] [A-Z]) "
)
WORDED = {
    "Add 1 '1'": ("Add tool 'a'", "Add workflow tool 'a'"),
    "Ignore 1 11": ("Ignore MF540 here (the tool stays not available)", "Ignore MF501 in this file"),
    "Open the 1": ("Open the manifest", "Open the workflow", "Open the node definition"),
    "Remove '1'1": ("Remove 'a', which is told no more", "Remove 'a', which is checked no more"),
    "▶ Test 1": ("▶ Test the example", "▶ Test all examples"),
    "1 has no 1 quote": ("'a has no closing quote", "a' has no opening quote"),
    "a whole number 1": ("a whole number from 1", "a whole number from 1 to 4"),
    "an object of 1s": ("an object of inputs", "an object of outputs"),
}
"""Sentences with words of ours in their holes, and what they become: their tables would not know them with a ``1`` there."""


def worded(texts: set[str]) -> set[str]:
    return {said for text in texts for said in WORDED.get(text, (text,))}


def test_every_title_of_a_fix_an_action_or_a_lens_has_a_chinese_one() -> None:
    titles: set[str] = set()
    for _, tree in trees():
        every = list(ast.walk(tree))
        aside = {id(node.value) for node in every if isinstance(node, ast.Expr)}
        aside |= {id(part) for node in every if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in every:
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in aside:
                titles.update(text for text in literals(node) if ACTIONS.match(text) and len(text) < 90)
    # other things that begin with such a word: sentences of findings and of cards, questions
    others = {entry.message for entry in CATALOGUE.values()} | catalogue()["messages"].keys()
    titles = {title for title in worded(titles) - others if not title.endswith(".")}
    assert len(titles) > 150
    assert untold("titles", titles) == set()


def test_every_progress_and_message_of_the_server_has_a_chinese_one() -> None:
    texts: set[str] = set()
    for name, at in (("Progress", 2), ("report", 0), ("message", 1), ("_chosen", 0), ("_begin", 0), ("end", 0)):
        for call in calls(name, "server/lsp/running"):
            for argument in given_as(call, at, "title"):
                # what is sliced to a length is the same text
                texts.update(literals(argument.value if isinstance(argument, ast.Subscript) else argument))
    for call in calls("RpcError", "server/lsp/running"):
        if call.args and isinstance(call.args[0], ast.Name) and call.args[0].id == "REQUEST_FAILED":
            texts.update(text for argument in call.args[1:2] for text in literals(argument))
    texts = {text.partition("\n")[0] for text in texts if re.search("[A-Za-z]{3}", text)}
    assert len(texts) > 20
    assert untold("messages", texts) == set()


def phrase_holes(code: str) -> set[str]:
    other = catalogue()["findings"][CATALOGUE[code].message]
    return {name for name, mark in HOLE.findall(other) if mark == "~"}


def test_every_phrase_that_code_puts_into_a_finding_has_a_chinese_one() -> None:
    texts: set[str] = set()
    for name in ("Diag", "add", "error", "warn", "_finding", "out_of_range", "wrong_type"):
        for call in calls(name, "protocols", "server/analysis"):
            first = call.args[0] if call.args else None
            code = first.value if isinstance(first, ast.Constant) else None
            if name in ("out_of_range", "wrong_type"):
                texts.update(text for argument in given_as(call, 2) for text in literals(argument))
                continue
            if not isinstance(code, str) or code not in CATALOGUE:
                continue
            holes = phrase_holes(code)
            for part in ast.walk(call):
                if isinstance(part, ast.Dict):
                    for key, value in zip(part.keys, part.values, strict=True):
                        if isinstance(key, ast.Constant) and key.value in holes:
                            texts.update(literals(value))
    for path, node in nodes():
        if isinstance(node, ast.FunctionDef) and re.search(r"fault|_risk$", node.name) and "/export/" not in path:
            for part in ast.walk(node):
                if isinstance(part, ast.Return) and part.value is not None:
                    texts.update(literals(part.value))
    # names, not words
    texts -= {"turn", "vcp"}
    texts = {text for text in texts if re.search("[A-Za-z]{3}", text)}
    assert len(texts) > 90
    words = chinese()
    assert {text for text in worded(texts) if words.phrase(text) is None} == set()


def test_what_fixed_words_stand_in_tables_of_the_code_has_chinese_ones() -> None:
    from tamis.protocols.context import CONTEXTS
    from tamis.protocols.manifest.foreign import SHAPES
    from tamis.protocols.schema.words import types_in_words

    types = ("string", "integer", "number", "boolean", "null", "array", "object")
    told = [*CONTEXTS.values(), *SHAPES.values(), *map(types_in_words, itertools.permutations(types, 2))]
    words = chinese()
    assert [text for text in told if CHINESE.search(words.phrase(text) or "") is None] == []


# What documents are told


@cache
def said_of(path: Path) -> list[tuple[str, str, str]]:
    """What is said of a marker file's documents, as (kind, code or place, text)."""
    import tempfile

    case = read_case(path)
    told: list[tuple[str, str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        core = core_of(case, Path(folder))
        for name, text in opened(case):
            snapshot = core.snapshot(name)
            whole = (0, len(text))
            for finding in diagnose(snapshot):
                told.append(("finding", finding.code, finding.message))
                told += [("related", finding.code, related.message) for related in finding.related]
            told += [("titles", "fix", action.fix.title) for action in quick_fixes(snapshot, whole)]
            if serves(snapshot.kind, "refactor"):
                told += [("titles", "action", item.title) for item in refactorings(snapshot, whole)]
                told += [("titles", "ignore", fix.title) for _, fix in ignoring(snapshot, whole)]
            if serves(snapshot.kind, "targets"):
                told += [("titles", "lens", lens.title) for lens in lenses(snapshot, Around(tries=True)) if lens.title]
    return told


def in_chinese(kind: str, code: str, text: str) -> str:
    words = chinese()
    if kind == "finding":
        return words.finding(code, text)
    return (words.phrase(text) or text) if kind == "related" else words.text(kind, text)


@pytest.mark.share(10)
@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_all_that_is_said_of_the_marker_files_is_said_in_chinese(path: Path) -> None:
    for kind, code, text in said_of(path):
        said = in_chinese(kind, code, text)
        assert CHINESE.search(said), (kind, code, text)
        for quoted in QUOTED.findall(text):
            assert quoted in said, (text, said)


# All marker files are analysed once more; the catalogue is held to the sources above.
@pytest.mark.long
def test_the_marker_files_hold_enough_to_show_it() -> None:
    told = {one for path in CASES for one in said_of(path)}
    assert len({code for kind, code, _ in told if kind == "finding"}) > 180
    assert len({text for kind, _, text in told if kind == "titles"}) > 90


# Hostile texts


SENTENCES = [entry.message for entry in CATALOGUE.values()]
PIECES = st.sampled_from(
    [
        *SENTENCES,
        *catalogue()["phrases"],
        "'",
        "''",
        "' is not one of ",
        ", did you mean '",
        "'?",
        ", got ",
        "{p}",
        "{x~}",
        "`",
        "**",
        "\n",
        "\\",
        "中",
    ]
)
HOSTILE = st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=4).map("".join)


@FEW
@given(st.sampled_from(sorted(CATALOGUE)), st.data())
def test_no_text_in_a_hole_is_changed_and_none_makes_half_a_sentence(code: str, data: st.DataObject) -> None:
    """Whatever names say: the sentence is Chinese with each of them verbatim, or it stays English."""
    other = catalogue()["findings"][CATALOGUE[code].message]
    marks = dict(HOLE.findall(other))
    names = dict.fromkeys(name for name, _ in HOLE.findall(CATALOGUE[code].message))
    ours = {"hint": ["", ", did you mean 'a; b'?"]}
    args: dict[str, str | int] = {
        name: data.draw(
            st.sampled_from(ours.get(name, ["a list", "the block", "it is empty"])) if marks[name] else HOSTILE
        )
        for name in names
    }
    english = message(Diag(code, (0, 0), args))
    said = chinese().finding(code, english)
    if said == english:
        return
    fixed = max(HOLE.sub("\0", other).split("\0"), key=len)
    assert fixed.strip() in said
    for name in names:
        shown = message(Diag(code, (0, 0), {**args}), "{" + name + "}")
        if not marks[name]:
            assert shown in said, (english, said)


@given(HOSTILE)
def test_any_text_as_a_title_a_message_or_a_card_is_answered(text: str) -> None:
    words = chinese()
    for kind in ("titles", "messages", "details", "lines"):
        words.text(kind, text)
    assert words.lines(f"```\n{text.replace('`', '')}\n```") == f"```\n{text.replace('`', '')}\n```"


@given(st.text(alphabet="'ab, ", max_size=30), st.text(alphabet="'ab, ", max_size=30))
def test_a_template_reads_back_what_was_put_into_it(one: str, other: str) -> None:
    template = Template("Key '{k}' twice in the JSON of '{p}'", "")
    assert {"k": one, "p": other} in list(template.readings(f"Key '{one}' twice in the JSON of '{other}'"))


def test_a_sentence_with_two_readings_stays_english() -> None:
    twice = "Key 'a' twice in the JSON of 'b' twice in the JSON of 'c'"
    assert chinese().finding("VA423", twice) == twice
    assert chinese().finding("VA423", "Key 'a' twice in the JSON of 'b'") == "'b' 的 JSON 中键 'a' 出现两次"


def test_what_would_be_tried_at_too_many_places_stays_english() -> None:
    long = "Key '" + "' twice in the JSON of '" * 300 + "'"
    assert chinese().finding("VA423", long) == long


def test_a_sentence_with_a_phrase_that_is_unknown_stays_english_as_a_whole() -> None:
    text = "'/x' cannot be granted: a reason that nobody has put into Chinese"
    assert chinese().finding("MF512", text) == text


# Through the server


MANIFEST = """{
  "toolId": "demo:count",
  "displayName": "Count",
  "description": "Counts the words of a text, for whoever wants to know; gives the number.",
  "version": "1.0.0",
  "handler": {"type": "external-script", "scriptPath": "./count.py", "language": "pyton"},
  "parameters": {"type": "object", "properties": {"text": {"type": "string", "description": "What to count."}}}
}
"""
CALL = "<ACTION>\n  <demo:sya><text>a</text></demo:sya>\n</ACTION>\n"
UNKNOWN = "未知的工具 ID 'demo:sya'，您是否指 'demo:say'？"


def session(root: Path, locale: str | None, *, pull: bool = False) -> Client:
    (root / "tools").mkdir(exist_ok=True)
    (root / "tamis.toml").write_text('tools = ["tools"]\n')
    (root / "tools" / "count.tool.json").write_text(MANIFEST)
    (root / "tools" / "say.tool.json").write_text(MANIFEST.replace("demo:count", "demo:say").replace("pyton", "python"))
    (root / "tools" / "count.py").write_text("print(1)\n")
    declared = capabilities()
    if pull:
        declared["textDocument"]["diagnostic"] = {}
        declared.setdefault("workspace", {})["diagnostics"] = {"refreshSupport": True}
    client = Client(cwd=root, inside=True)
    client.start(root, declared, locale=locale)
    return client


def shown(root: Path, locale: str | None) -> dict[str, Any]:
    """What a client is told of a call to a tool that is not there, and of a manifest with a slip."""
    with session(root, locale) as client:
        uri = (root / "a.md").as_uri()
        client.open(uri, CALL)
        pushed = client.published(uri)
        asked = {"textDocument": {"uri": uri}, "range": pushed[0]["range"], "context": {"diagnostics": pushed}}
        actions = client.call("textDocument/codeAction", asked)
        found = client.call("textDocument/codeLens", {"textDocument": {"uri": uri}})
        manifest = (root / "tools" / "count.tool.json").as_uri()
        client.open(manifest, MANIFEST)
        findings = client.published(manifest)
        return {"pushed": pushed, "actions": actions, "lenses": found, "findings": findings}


def test_findings_lenses_and_actions_are_chinese_and_edits_are_the_same(tmp_path: Path) -> None:
    english, other = shown(tmp_path, None), shown(tmp_path, "zh-CN")
    assert [item["message"] for item in other["pushed"]] == [UNKNOWN]
    assert any("不是 'handler.language' 的值" in item["message"] for item in other["findings"])
    titles = [action["title"] for action in other["actions"]]
    assert len(titles) > 2
    assert all(CHINESE.search(title) for title in titles)
    assert all(CHINESE.search(lens["command"]["title"]) for lens in other["lenses"] if "command" in lens)
    # the same in all but words
    assert without_words(other) == without_words(english)
    assert english == shown(tmp_path, "de")
    assert CHINESE.search(repr(english)) is None


FAULTY_SETTINGS = [
    'tools = "x"\n',
    "[policy]\nreadRoots = 3\n",
    '[policy]\nreadRoots = ["x"]\nwriteRoots = ["/no/such"]\n',
    '[policy.pin]\n"a.com" = "x"\n"b.com" = "127.0.0.1"\n"1.2.3.4" = "8.8.8.8"\n"*.x" = "1.1.1.1"\n',
    '[policy]\nallowHosts = ["http://x", "a@b", "", "a..b", "*"]\nallowCidrs = ["x", "10.1.2.3/8"]\n',
    "[polcy]\n",
    '[sandbox]\nwallMs = "x"\nopenFiles = 3\nprocesses = 0\ncpuSeconds = -1\n',
    'profile = "nope"\nworkflows = ["x"]\n',
    "[policy.rules]\n",
    '[[policy.rules]]\nparameter = "/~x"\nverdict = "ask"\n',
    '[dependencies]\nindexes = ["x", "http://u:p@x/y"]\n',
    '[policy.hosts."a.com"]\nsecret = ""\nheader = " "\n',
    '[lint]\nLN999 = "x"\ntargets = "x"\n',
]


@pytest.mark.parametrize("text", FAULTY_SETTINGS)
def test_what_is_wrong_with_settings_is_told_in_chinese(text: str, tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text(text)
    path = str(tmp_path / "tamis.toml")
    found = diagnose(Snapshot(path, kind_of(path, ""), text, None, settings_faults=disk_faults(tmp_path, text)))
    told = [chinese().finding(finding.code, finding.message) for finding in found]
    assert found
    english = [
        one for one in told if CHINESE.search(one) is None or re.search("[a-z]{3,} [a-z]{2,}", QUOTED.sub("", one))
    ]
    assert english == []


def test_a_number_below_nothing_stands_apart_from_chinese() -> None:
    assert chinese().finding("MF502", "'x' must be a whole number, not -1") == "'x' 必须是整数，不能是 -1"


def test_the_title_of_a_lens_that_was_cut_is_told_from_the_whole() -> None:
    reason = f"Not run: {message(Diag('HM603', (0, 0), {'reason': message(Diag('HM602', (0, 0), {'reason': 'it has none of the forms of call JSON'}))}))}"
    command = {"title": f"{reason[:60]}…", "command": "tamis.explain", "arguments": [{"reason": reason}]}
    told = chinese().answered("codeLens/resolve", {"command": command})["command"]
    assert told["title"].startswith("未运行：调用中的 JSON 无效：") and len(told["title"]) <= 61
    assert told["arguments"] == command["arguments"]
    somebody = {**command, "arguments": [{"reason": "another text"}]}
    assert chinese().answered("codeLens/resolve", {"command": somebody})["command"] == somebody


def without_words(value: Any) -> Any:
    """An answer without titles, messages and what carries them."""
    if isinstance(value, dict):
        return {name: without_words(part) for name, part in value.items() if name not in ("title", "message")}
    return [without_words(part) for part in value] if isinstance(value, list) else value


def test_an_action_is_found_by_the_range_whatever_the_client_sends_back_as_the_findings_words(tmp_path: Path) -> None:
    with session(tmp_path, "zh") as client:
        uri = (tmp_path / "tools" / "count.tool.json").as_uri()
        client.open(uri, MANIFEST)
        (finding,) = [item for item in client.published(uri) if item["code"] == "MF503"]
        asked = {"textDocument": {"uri": uri}, "range": finding["range"], "context": {"diagnostics": [finding]}}
        fix = next(one for one in client.call("textDocument/codeAction", asked) if one["kind"] == "quickfix")
        assert fix["title"] == "替换为 'python'"
        assert fix["kind"] == "quickfix"
        assert fix["diagnostics"][0]["message"] == finding["message"]


def test_findings_that_are_asked_for_are_chinese_too(tmp_path: Path) -> None:
    with session(tmp_path, "zh-Hans", pull=True) as client:
        uri = (tmp_path / "a.md").as_uri()
        client.open(uri, CALL)
        report = client.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        assert [item["message"] for item in report["items"]] == [UNKNOWN]
        # the same findings are not sent twice: the id does not hang on the words
        again = {"textDocument": {"uri": uri}, "previousResultId": report["resultId"]}
        assert client.call("textDocument/diagnostic", again)["kind"] == "unchanged"
        every = client.call("workspace/diagnostic", {"previousResultIds": []})
        told = [item["message"] for one in every["items"] for item in one["items"]]
        assert told
        assert all(CHINESE.search(text) for text in told)


def test_the_status_hovers_completions_and_refusals_are_chinese(tmp_path: Path) -> None:
    with session(tmp_path, "zh_CN") as client:
        (status,) = [one["params"] for one in client.messages if one.get("method") == "experimental/serverStatus"][-1:]
        assert status["message"] == "工具：1，清单的问题：1"
        assert status["health"] == "warning"
        uri = (tmp_path / "tools" / "count.tool.json").as_uri()
        client.open(uri, MANIFEST.replace("pyton", "python"))
        at = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 4}}
        hover = client.call("textDocument/hover", at)["contents"]["value"]
        assert CHINESE.search(hover)
        # a command that cannot be: editors show why
        refusal = client.fails("textDocument/rename", {**at, "newName": "x y"})
        assert CHINESE.search(refusal["message"])
        settings = (tmp_path / "tamis.toml").as_uri()
        client.open(settings, "[policy]\n\n", "toml")
        items = client.call(
            "textDocument/completion", {"textDocument": {"uri": settings}, "position": {"line": 1, "character": 0}}
        )["items"]
        details = [item["detail"] for item in items if item["label"] == "allowBuild"]
        assert details == ["boolean，默认 false，受信任之前仅限操作者"]


def test_what_a_tool_s_author_wrote_stays_as_it_is(tmp_path: Path) -> None:
    """A description that says word for word what the server could say itself is still its author's."""
    with session(tmp_path, "zh") as client:
        (tmp_path / "tools" / "mail.tool.json").write_text(
            MANIFEST.replace("demo:count", "demo:mail")
            .replace("pyton", "python")
            .replace("What to count.", "An e-mail address.")
        )
        client.notify(
            "workspace/didChangeWatchedFiles",
            {"changes": [{"uri": (tmp_path / "tools" / "mail.tool.json").as_uri(), "type": 1}]},
        )
        uri = (tmp_path / "a.md").as_uri()
        client.open(uri, "<ACTION>\n  <demo:mail><text>a</text></demo:mail>\n</ACTION>\n")
        client.published(uri)
        at = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 15}}
        # The new tool is read beside the document's first findings.
        hover = until(lambda: client.call("textDocument/hover", at))["contents"]["value"]
        assert hover == "**text**（string），属于 `demo:mail`\n\nAn e-mail address.\n\n工具得到 `a`"


def test_words_that_fail_cost_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.server.lsp import words

    def fails(*_: object) -> Any:
        raise ValueError

    monkeypatch.setitem(words._ANSWERED, "textDocument/codeLens", fails)
    monkeypatch.setitem(words._SENT, "textDocument/publishDiagnostics", fails)
    with session(tmp_path, "zh") as client:
        uri = (tmp_path / "a.md").as_uri()
        client.open(uri, CALL)
        assert [item["message"] for item in client.published(uri)] == [
            "Unknown tool ID 'demo:sya', did you mean 'demo:say'?"
        ]
        assert client.call("textDocument/codeLens", {"textDocument": {"uri": uri}})


def test_who_is_told_everything_in_english_never_loads_the_words(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = (
        "import sys\n"
        "from tamis.server.lsp.session import Session\n"
        "session = Session(lambda *a, **k: None, lambda work: None)\n"
        'session.receive([b\'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{},"locale":"en"}}\'])\n'
        "assert session.initialize is not None and session.words is None\n"
        "assert 'tamis.server.lsp.words' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Questions


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('Run demo:say (low risk)? {"a":1}', '运行 demo:say（风险：低）？{"a":1}'),
        (
            'Run demo:say (high risk: it may write /a, /b; be given the secret KEY)? {"a":1}',
            '运行 demo:say（风险：高；它可以写入 /a, /b；得到密钥 KEY）？{"a":1}',
        ),
        (
            'Run a:b (A) with these arguments? {"x":1} It may reach x.org.',
            '以这些参数运行 a:b (A)？{"x":1} 它可以访问 x.org。',
        ),
    ],
)
def test_a_question_says_the_same_in_chinese(asked: str, said: str) -> None:
    assert chinese().text("messages", asked) == said


@pytest.mark.parametrize(
    "asked",
    [
        # arguments that look like the end of the question, or like rights
        'Run demo:say (high risk: it may write /a)? {"a":"b (low risk)? {}"}',
        'Run a:b (A) with these arguments? {"x":"} It may read /a."} It may write /b.',
        'Run a:b (A with these arguments? {}) with these arguments? {"x":1}',
    ],
)
def test_a_question_that_its_arguments_could_falsify_stays_as_it_is_asked(asked: str) -> None:
    assert chinese().text("messages", asked) == asked


def test_the_chosen_button_is_known_by_its_english_title() -> None:
    import asyncio
    from concurrent.futures import Future
    from types import SimpleNamespace

    from tamis.server.lsp.client import Client as Asking

    sent: list[Any] = []

    def ask(_identity: str, method: str, params: Any) -> Future[Any]:
        sent.append(chinese().sent(method, params))
        answer: Future[Any] = Future()
        answer.set_result({"title": "拒绝"})
        return answer

    session: Any = SimpleNamespace(words=chinese())
    asking = Asking(session, SimpleNamespace(ask=ask, progress={}))
    chosen = asyncio.run(asking.choose("warning", "Run demo:say (low risk)? {}", ["Allow once", "Deny", "More…"]))
    assert chosen == "Deny"
    assert sent[0]["message"] == "运行 demo:say（风险：低）？{}"
    assert [action["title"] for action in sent[0]["actions"]] == ["允许一次", "拒绝", "更多…"]


def test_titles_that_would_become_the_same_stay_english() -> None:
    assert chinese().titles(["Remove the trailing comma", "Remove the trailing commas"]) == [
        "Remove the trailing comma",
        "Remove the trailing commas",
    ]


def test_what_is_said_of_an_edit_is_chinese_and_the_edit_the_same() -> None:
    edits = [{"textDocument": {"uri": "file:///a", "version": None}, "edits": [{"newText": "Examples and reasoning"}]}]
    note = {"label": "Not undone by renaming back", "description": "Renaming back leaves 'a:b' where 'a_b' stands now"}
    answer = chinese().answered("textDocument/rename", {"documentChanges": edits, "changeAnnotations": {"lost": note}})
    assert answer["documentChanges"] == edits
    assert answer["changeAnnotations"]["lost"] == {
        "label": "改回原名时不会恢复",
        "description": "改回原名后，现有 'a_b' 之处会是 'a:b'",
    }


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("✓ demo:say, 563 ms", "✓ demo:say，563 ms"),
        ("✗ demo:say: denied, 153 ms", "✗ demo:say：已拒绝，153 ms"),
        # what the script said is its own
        (
            "✗ 1 of 2 calls: demo:say: ScriptError: denied, really, 12 ms",
            "✗ 2 个调用中的 1 个：demo:say：ScriptError: denied, really，12 ms",
        ),
        ("✓ 2 of 2 examples passed", "✓ 2 个示例中通过 2 个"),
        (
            "✗ Example 1 of demo:say did not give its expectedOutput, 3 ms",
            "✗ demo:say 的示例 1 没有给出其 expectedOutput，3 ms",
        ),
    ],
)
def test_outcomes_keep_their_mark_and_the_words_of_the_script(told: str, said: str) -> None:
    assert chinese().text("messages", told) == said


def test_below_the_outcome_of_a_run_stands_what_the_tool_said() -> None:
    """The tool's output stays, also where it says what the server could say."""
    text = "✓ demo:say, 3 ms\nnothing was run\n✗ demo:say: denied, 153 ms"
    sent = chinese().sent("window/showMessage", {"type": 3, "message": text})
    assert sent["message"] == "✓ demo:say，3 ms\nnothing was run\n✗ demo:say: denied, 153 ms"


def test_every_setting_is_explained_in_chinese() -> None:
    from tamis.server.analysis.configuration.shown import setting_card
    from tamis.server.runtime.settings.schema import settings_schema

    def cards(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
        for name, part in schema.get("properties", {}).items():
            yield setting_card((*path, name), part)
            yield from cards(part, (*path, name))

    told = list(cards(settings_schema(), ()))
    assert len(told) > 300
    for card in told:
        for line in card.split("\n"):
            # an example is the same in every language
            if re.search("[A-Za-z]{3}", line) and not re.fullmatch(r"\*\*.*\*\*.*|(?:Example|Default) `.*`", line):
                assert CHINESE.search(chinese().lines(line)), line
