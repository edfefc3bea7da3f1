"""Sentences are for people: nothing that is done depends on how a finding is worded (findings carry data)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("protocols", "sandbox", "environments", "server", "client")
FILES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if "node_modules" not in path.parts]
WORDS = frozenset({"message", "problem", "reason", "sentence", "why"})
"""What a sentence is called."""
LOOKS = frozenset(
    {
        "startswith",
        "endswith",
        "removeprefix",
        "removesuffix",
        "partition",
        "rpartition",
        "find",
        "index",
        "count",
        "split",
    }
)
MATCHES = frozenset({"search", "match", "fullmatch", "findall", "finditer"})
LEFT = {
    "choice.py": 1,  # bubblewrap's own words
    "dependencies.py": 1,  # an installer's own words
    "doctor.py": 3,
    "errors.py": 1,  # jsonschema's own words
    "findings.py": 2,
    "reach.py": 2,
    "reading.py": 5,
}
"""What is still decided by a sentence, in how many places of files of a name; these numbers only fall."""
SHOWN = frozenset({"'{p}' in CATALOGUE[code].message", "sentence.removeprefix(_ERROR)"})
"""The pattern of a sentence, and a sentence that is written without its beginning."""


def is_sentence(node: ast.AST) -> bool:
    """Whether an expression is the text of a finding, as far as its name tells."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in WORDS
        case ast.Subscript(value=ast.Attribute(attr="args") | ast.Name(id="args"), slice=ast.Constant(value=name)):
            return name in WORDS
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return is_sentence(inner)
        case ast.Call(func=ast.Name(id="message")):
            return True
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="args"), attr="get"), args=[ast.Constant(value=name), *_]
        ):
            return name in WORDS
        case _:
            return False


def decisions(source: str) -> list[str]:
    """Where a sentence is looked into, as it is written."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in LOOKS and is_sentence(value):
                found.append(ast.unparse(node))
            case ast.Call(func=ast.Attribute(attr=name), args=[*_, last]) if name in MATCHES and is_sentence(last):
                found.append(ast.unparse(node))
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]) if is_sentence(right):
                # a JSON-RPC message is no sentence: its members are single words
                if not (isinstance(right, ast.Name) and right.id == "message") or " " in ast.unparse(left):
                    found.append(ast.unparse(node))
            case _:
                pass
    return found


def test_nothing_is_decided_by_the_words_of_a_finding() -> None:
    found: dict[str, list[str]] = {}
    for path in FILES:
        for decision in decisions(path.read_text("utf-8")):
            if decision not in SHOWN:
                found.setdefault(path.name, []).append(decision)
    more = {name: seen for name, seen in found.items() if len(seen) > LEFT.get(name, 0)}
    assert not more


@pytest.mark.parametrize(
    "source",
    [
        "reason.startswith('names need')",
        "'digits' in str(diag.args.get('reason', ''))",
        "re.search('is a number', diag.args['reason'])",
        "message(diag).endswith('twice')",
        "if 'leads nowhere' in issue.message: pass",
        "any(words in reason for words in BEYOND)",
        "PATTERN.match(problem)",
    ],
)
def test_what_is_decided_by_words_is_seen(source: str) -> None:
    assert decisions(source)


@pytest.mark.parametrize("source", ["'id' in message", "diag.args.get('fault') == 'digits'", "text.startswith('x')"])
def test_what_is_decided_by_data_is_not(source: str) -> None:
    assert not decisions(source)
