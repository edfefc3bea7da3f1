"""Replacing a piece of a text: the piece must be found exactly, or the answer says where the nearest stands. Pure."""

from __future__ import annotations

import difflib

import msgspec

MAX_SHOWN_LINES = 8
_MAX_COMPARED_LINES = 20_000
_MAX_LINE_CHARS = 160
_LEAST_LIKENESS = 0.6


class Edited(msgspec.Struct, frozen=True):
    """The text after an edit: how many pieces were replaced, and the first line that changed, from 1."""

    text: str
    replaced: int
    line: int


class DoesNotFit(ValueError):  # noqa: N818 (an outcome, not a fault)
    """Why an edit cannot be applied, with the lines where to look."""


def apply_edit(text: str, search: str, replace: str, *, every: bool = False) -> Edited:
    """Puts ``replace`` in the place of ``search``, which stands exactly once, or wherever it stands with ``every``.

    A text with Windows line ends is searched with them, and keeps them. Raises ``DoesNotFit``.
    """
    if "\r\n" in text and "\r\n" not in search:
        search, replace = search.replace("\n", "\r\n"), replace.replace("\r\n", "\n").replace("\n", "\r\n")
    if search == replace:
        raise DoesNotFit("search_string and replace_string are the same text: nothing would change")
    starts = _starts(text, search)
    if not starts:
        raise DoesNotFit(_why_absent(text, search))
    if len(starts) > 1 and not every:
        lines = [str(_line(text, at)) for at in starts[:MAX_SHOWN_LINES]]
        more = " and more" if len(starts) > MAX_SHOWN_LINES else ""
        raise DoesNotFit(
            f"search_string stands {len(starts)} times in the file, at the lines {', '.join(lines)}{more}; "
            "give more of the text around the one that is meant, or replace_all"
        )
    return Edited(text.replace(search, replace), len(starts), _line(text, starts[0]))


def _starts(text: str, search: str) -> list[int]:
    starts: list[int] = []
    at = text.find(search)
    while at >= 0:
        starts.append(at)
        at = text.find(search, at + len(search))
    return starts


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _why_absent(text: str, search: str) -> str:
    wanted = [" ".join(line.split()) for line in search.splitlines()]
    lines = text.splitlines()
    shown = [" ".join(line.split()) for line in lines[:_MAX_COMPARED_LINES]]
    while wanted and not wanted[0]:
        wanted.pop(0)
    while wanted and not wanted[-1]:
        wanted.pop()
    if not wanted:
        return "search_string holds only blanks that do not stand so in the file"
    for number in range(len(shown) - len(wanted) + 1):
        if shown[number : number + len(wanted)] == wanted:
            return (
                f"search_string stands at line {number + 1} only with other blanks or indentation; "
                f"the line is {_quoted(lines[number])}"
            )
    near = difflib.get_close_matches(wanted[0][:_MAX_LINE_CHARS], _comparable(shown), 1, _LEAST_LIKENESS)
    if near:
        number = next(n for n, line in enumerate(shown) if line[:_MAX_LINE_CHARS] == near[0])
        return f"search_string does not stand in the file; the nearest to its first line is line {number + 1}: {_quoted(lines[number])}"
    return f"search_string does not stand in the file, which has {len(lines)} lines, nor anything like its first line"


def _comparable(lines: list[str]) -> list[str]:
    """The lines that are compared by likeness, which takes time: so many at most."""
    return [line[:_MAX_LINE_CHARS] for line in lines if line][:2_000]


def _quoted(line: str) -> str:
    return repr(line if len(line) <= _MAX_LINE_CHARS else line[: _MAX_LINE_CHARS - 1] + "…")
