"""No switch on a protocol's name but in its own folder: what differs from one to another is carried by the protocol's object (house, second form)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = ("protocols", "server", "sandbox", "environments", "client", "package")
OWN = ("action", "tam", "vcp", "hermes", "calljson")
"""The folders of ``protocols/`` that are one protocol each."""
IDS = frozenset(("action", "tam", "vcp", "hermes"))
"""Not ``json``, which is also a format of everything else; a comparison of something called a protocol with it counts."""

QUOTED = re.compile(r"""["'](?:json|{})["']""".format("|".join(IDS)))
"""A text that is a protocol's name and nothing else, as only such a text is compared."""

ROWS = "protocols/plugins.py"
"""Where each protocol of the package is a row."""

HONEST = {
    "protocols/export/vcp.py": {
        "manifest.handler.result != 'vcp'": "how a script writes its result",
        "handler.result != 'vcp'": "how a script writes its result",
    },
    "protocols/manifest/imports.py": {"shape == 'vcp'": "a kind of imported tools, the project VCP"},
    "protocols/manifest/reading.py": {"result == 'vcp'": "how a script writes its result"},
    "protocols/streaming/partial.py": {
        "key == 'action'": "an element of that name",
        "key in ('action', 'inputs')": "elements of these names",
        "key not in ('action', 'inputs')": "elements of these names",
    },
    "server/analysis/manifests.py": {"shape[0] != 'vcp'": "a plug-in manifest of the project VCP"},
    "server/cli/export_command.py": {"target == 'vcp'": "a target of exported tools, the project VCP"},
    "server/cli/import_command.py": {"arguments.kind == 'vcp'": "a kind of imported tools, the project VCP"},
    "server/runtime/handlers/script/judge.py": {"handler.result == 'vcp'": "how a script writes its result"},
    "server/runtime/texts/exports.py": {"form == 'vcp'": "a target of exported tools, the project VCP"},
    "server/runtime/texts/converting.py": {
        "'hermes' not in also": "a sentence on the one form that models write unasked"
    },
}
"""Comparisons that are honest: by file, each as it is written, and why."""


def _words(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, (ast.Tuple, ast.Set, ast.List)):
        return {word for item in node.elts for word in _words(item)}
    return set()


def _names(words: set[str], beside: str) -> bool:
    return bool(words & IDS) or ("json" in words and "protocol" in beside)


def _is_a_table(node: ast.AST) -> bool:
    return isinstance(node, ast.Dict) and len({word for key in node.keys if key for word in _words(key)} & IDS) > 1


def _asks_the_beginning(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith"):
        return False
    return any(_words(argument) & IDS for argument in node.args)


def switches(source: str) -> Iterator[tuple[int, str]]:
    """Where a source compares with a protocol's name, matches on it, or looks something up by it: the line, and what stands there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_names(_words(side), ast.unparse(node)) for side in sides):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.MatchValue) and _words(node.value) & IDS:
            yield node.value.lineno, ast.unparse(node)
        elif isinstance(node, (ast.Dict, ast.Call)) and (_is_a_table(node) or _asks_the_beginning(node)):
            yield node.lineno, ast.unparse(node)


def test_a_comparison_a_match_and_a_table_by_protocol_are_seen() -> None:
    texts = (
        'a = x == "tam"',
        'a = "vcp" != x',
        'a = x in ("action", "vcp")',
        'a = call.protocol == "json"',
        'match x:\n    case "hermes":\n        pass',
        'a = {"tam": 1, "vcp": 2}',
        'a = x.startswith("vcp")',
    )
    assert [len(list(switches(text))) for text in texts] == [1] * len(texts)


def test_a_default_a_field_called_action_and_a_format_called_json_are_none() -> None:
    for text in ('def f(protocol="action"): ...', 'a = {"action": "close"}', 'a = form == "json"'):
        assert list(switches(text)) == []


def test_only_its_own_folder_asks_which_protocol_it_has() -> None:
    found = {
        f"{name}:{line}: {text}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for name in [path.relative_to(ROOT).as_posix()]
        if name != ROWS and not name.startswith(tuple(f"protocols/{folder}/" for folder in OWN))
        for source in [path.read_text("utf-8")]
        if QUOTED.search(source)  # reading what no name stands in takes most of the time
        for line, text in switches(source)
        if text not in HONEST.get(name, {})
    }
    assert found == set()


def test_each_exception_is_still_one() -> None:
    for name, texts in HONEST.items():
        assert set(texts) <= {text for _, text in switches((ROOT / name).read_text("utf-8"))}, name
