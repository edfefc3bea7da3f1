"""What each method declares of itself: params, result, words, errors. Reads declarations; must not know what a method does.

A method's result is the return annotation of its handler, its words are the handler's docstring (``params.py``).
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from tamis.protocols.contract import InitializeResult
from tamis.server.rpc.initializing import FINISHES, InitializeParams, stability
from tamis.server.rpc.params import Empty, Group
from tamis.server.rpc.session import GIVEN_BY

# Docstrings as hosts read them: plain back-ticks, on one line, without the notes of where a rule is from. Such a note stands in parentheses, as in
# "(seed 001 §6.1)", "(ruling 20)" or "(A40 to A44)", and names a document that users do not have.


_PARENTHESES = re.compile(r" ?\(([^()]*)\)")
_NOTE = re.compile(
    r"(?:^|, )(?:seeds? \d{3}(?: §[\d.]+)?|§[\d.]+|rulings? \d+|issue [\d.]+|[ADFVW]\d{1,3}|interface(?:, [A-Z]\w+)?)"
    r"(?: (?:and|to) (?:§[\d.]+|\d+|[ADFVW]\d{1,3}))*(?=, |$)"
)


def plain(text: str) -> str:
    """A docstring, or a part of one, as a host reads it."""
    return _PARENTHESES.sub(_without_notes, " ".join(text.replace("``", "`").split())).strip()


def _without_notes(match: re.Match[str]) -> str:
    kept = _NOTE.sub("", match[1]).removeprefix(", ")
    return match[0].replace(match[1], kept) if kept else ""


_ALWAYS = ("invalidRequest", "invalidParams", "internalError", "overloaded")


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """One method as it is described."""

    name: str
    params: type[msgspec.Struct]
    results: tuple[Any, ...]
    """The type of its result; several where the request decides which it is, ``NoneType`` for ``null``."""
    summary: str
    description: str
    """What the docstring says behind its first paragraph."""
    stability: str
    finishes: bool
    """Whether a cancelled request still gets its result."""
    errors: tuple[str, ...]
    """The names of the errors that it may give."""

    @property
    def title(self) -> str:
        """``tool/list`` as ``ToolList``."""
        parts = self.name.replace(".", "/").split("/")
        return "".join(part[:1].upper() + part[1:] for part in parts)


def _initialize() -> InitializeResult:
    """Begins a session: says who the host is and what it can do. May be left out; may be sent once.

    Without it the root is ``--root`` or found from the current folder, what the user trusted holds, and nobody can be
    asked.
    """
    raise NotImplementedError  # a declaration: the session's own code answers


def _shutdown() -> None:
    """Ends the session's work: every later request is an error; the notification ``exit`` ends the daemon."""


_SESSION: Group = {"initialize": (InitializeParams, _initialize), "shutdown": (Empty, _shutdown)}


def described(declared: Group) -> list[Described]:
    """Every method in the order of names, from what its group declares. Raises ``TypeError`` for a result that is not declared."""
    methods: Mapping[str, tuple[type[msgspec.Struct], Callable[..., Any]]] = {**_SESSION, **declared}
    return [_described(name, kind, handler) for name, (kind, handler) in sorted(methods.items())]


def _described(name: str, kind: type[msgspec.Struct], handler: Callable[..., Any]) -> Described:
    summary, _, rest = " ".join(
        line if line else "\n" for line in (inspect.getdoc(handler) or "").splitlines()
    ).partition(" \n ")
    return Described(
        name=name,
        params=kind,
        results=_results(name, handler),
        summary=plain(summary),
        description=plain(rest),
        stability=stability(name),
        finishes=name in FINISHES,
        errors=(
            *_ALWAYS,
            # one that gives its result when it is cancelled has none to give where the daemon ends before it could
            "requestCancelled",
            *(error for error, methods in GIVEN_BY.items() if name in methods),
        ),
    )


def _results(name: str, handler: Callable[..., Any]) -> tuple[Any, ...]:
    hints = get_type_hints(handler)
    if "return" not in hints:
        raise TypeError(f"the handler of '{name}' says nothing of its result: annotate what it returns")
    wanted = hints["return"]
    parts = get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)
    return tuple(dict.fromkeys(_awaited(part) for part in parts))


def _awaited(kind: Any) -> Any:
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, Awaitable):
        return get_args(kind)[-1]
    return kind
