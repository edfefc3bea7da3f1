"""Regular expressions must mean the same on every Python that the project runs on."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import tamis.protocols
import tamis.server
from tamis.protocols.pairs.walk import Dialect
from tamis.protocols.tam.dialect import DIALECT
from tamis.protocols.vcp.dialect import DIALECTS as VCP_DIALECTS

parser: Any = importlib.import_module("re._parser")
constants: Any = importlib.import_module("re._constants")
DIALECTS = (DIALECT, *VCP_DIALECTS.values())
LOOKS = {constants.ASSERT, constants.ASSERT_NOT, constants.AT}


def modules() -> Iterator[Any]:
    for package in (tamis.protocols, tamis.server):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if ".cli.main" not in found.name:
                yield importlib.import_module(found.name)


@functools.cache
def patterns() -> list[tuple[str, str, int]]:
    found: dict[tuple[str, int], str] = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                found.setdefault((value.pattern, value.flags), f"{module.__name__}.{name}")
            elif type(value).__name__ in ("_Lazy", "_Signed"):
                found.setdefault((value.pattern, value._wanted_flags), f"{module.__name__}.{name}")
    return [(where, pattern, flags) for (pattern, flags), where in found.items()]


def looks_in_possessive(node: Any, inside: bool = False) -> bool:
    for code, argument in node:
        if inside and code in LOOKS:
            return True
        within = inside or code == constants.POSSESSIVE_REPEAT
        parts = argument if isinstance(argument, (list, tuple)) else [argument]
        stack = list(parts)
        while stack:
            part = stack.pop()
            if isinstance(part, parser.SubPattern):
                if looks_in_possessive(part, within):
                    return True
            elif isinstance(part, (list, tuple)):
                stack.extend(part)
    return False


def test_there_are_patterns_to_look_at() -> None:
    assert len(patterns()) > 100
    assert looks_in_possessive(parser.parse("x(?:a(?!b))*+"))
    assert not looks_in_possessive(parser.parse("(?>(?:a(?!b))*)(?=x)"))


@pytest.mark.parametrize(
    ("where", "pattern", "flags"),
    patterns(),
    ids=lambda value: value if isinstance(value, str) and value.startswith("tamis") else "",
)
def test_no_possessive_repeat_holds_a_look_around(where: str, pattern: str, flags: int) -> None:
    """Debian 12's Python 3.11.2 does not go back to where the repeat began when a look-around in it fails."""
    assert not looks_in_possessive(
        parser.parse(pattern, flags & ~re.UNICODE if isinstance(pattern, bytes) else flags)
    ), where


_PARTS = (
    *(
        "<",
        "<<",
        "<<<",
        "<|",
        "＜",
        "《",
        "[",
        "]",
        ">",
        ">>",
        "]|>",
        "]>>>",
        "｜",
        "［",
        " ",
        "\t",
        "\u200b",
        "/",
        "x",
    ),
    *("REQUEST_TOOL", "end_tool", "TOOL_REQUEST", "END_TOOL_REQUEST", "_EXP", *(d.open_text for d in DIALECTS)),
    *(d.close_text for d in DIALECTS),
)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.open_text)
def test_markers_are_found_alike_by_their_first_sign_and_by_the_whole_pattern(dialect: Dialect) -> None:
    chance = random.Random(5)
    count = 0
    for _ in range(2_000):
        text = "".join(chance.choices(_PARTS, k=chance.randint(1, 10)))
        for pattern in (dialect.opens, dialect.closes):
            expected = [match.span() for match in re.finditer(pattern.pattern, text)]
            assert [match.span() for match in pattern.finditer(text)] == expected, text
            count += bool(expected)
    assert count > 50
