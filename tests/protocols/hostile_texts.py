"""Texts on which a careless reader takes quadratic time."""

from __future__ import annotations

from collections.abc import Callable


def _value(inner: str) -> str:
    return f"<ACTION><T><p>{inner}</p></T></ACTION>"


STRESS: dict[str, Callable[[int], str]] = {
    "openers": lambda n: "<ACTION> " * n,
    "openers with tools": lambda n: "<ACTION><T><a>x</a>" * n,
    "openers with open CDATA": lambda n: "<ACTION><T><p><![CDATA[x" * n + "]]>",
    "closers": lambda n: "</ACTION> " * n,
    "CDATA openers": lambda n: _value("<![CDATA[ " * n),
    "CDATA sections": lambda n: _value("<![CDATA[x]]>" * n),
    "comments open": lambda n: _value("<!-- " * n),
    "comments": lambda n: _value("x<!-- c -->" * n),
    "nested closed": lambda n: _value("<a>" * n + "x" + "</a>" * n),
    "nested open": lambda n: "<ACTION><T>" + "<a>" * n,
    "distinct open": lambda n: "<ACTION><T>" + "".join(f"<a{i}>" for i in range(n)),
    "brackets": lambda n: _value("<" * n),
    "ampersands": lambda n: _value("&" * n),
    "half tags": lambda n: _value("<a " * n),
    "instructions": lambda n: _value("<? " * n),
    "stray closers": lambda n: "<ACTION><T><p>x</p>" + "</x>" * n + "</T></ACTION>",
    "own closers": lambda n: _value("a </p> " * n),
    "attributes": lambda n: "<ACTION><T " + " ".join(f'a{i}="1"' for i in range(n)) + "><p>x</p></T></ACTION>",
    "parameters": lambda n: "<ACTION><T>" + "".join(f"<p{i}>v</p{i}>" for i in range(n)) + "</T></ACTION>",
    "repeats": lambda n: "<ACTION><T>" + "<p>v</p>" * n + "</T></ACTION>",
    "open parameters": lambda n: "<ACTION><T>" + "\n".join(f"<p{i}>v" for i in range(n)) + "</T></ACTION>",
    "tools": lambda n: "<ACTION>" + "<T/>" * n + "</ACTION>",
    "blanks": lambda n: "<ACTION" + " " * n + "><T><p>x</p></T></ACTION" + " " * n + ">",
    "long name": lambda n: "<ACTION><" + "T" * n + "/></ACTION>",
    "backticks": lambda n: "`" * n,
    "code spans": lambda n: "` `` ``` " * n + "<ACTION>",
    "fences": lambda n: "```\nx\n```\n" * n + "<ACTION>",
    "wide openers": lambda n: "＜ACTION＞ x " * n,
    "reasoning": lambda n: "<think>" * n,
    "reasoning with openers": lambda n: "<think><ACTION><T>" * n,
    "one line of markers": lambda n: "</think> </ACTION> " * n,
    "control characters": lambda n: _value("\x00" * n),
    "big value": lambda n: _value("line of text\n" * n),
    "big CDATA": lambda n: _value("<![CDATA[" + "a < b & c\n" * n + "]]>"),
    "prose": lambda n: "3 < 5 & more, 中文.\n" * n,
}
