"""TOML with places: every table, key and value with where it stands, also in half-typed text.

The standard library's ``tomllib`` is the authority on scalars and gives no places; the structure (tables, dotted keys, arrays, inline
tables) is read here, and its rules are tested to be those of ``tomllib``. What cannot be read is an error with a place and costs its
line only. Linear, never raises. Must not know settings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

MAX_DEPTH = 100
"""Arrays and inline tables nest no deeper; what lies deeper is not read."""

MAX_ERRORS = 100
"""Of more errors some say less."""
_MARGIN = 200

Path = tuple[str, ...]
"""The names that lead to a key."""
ValueKind = Literal["text", "integer", "float", "boolean", "time", "array", "table", "bad"]

_BARE_KEY = lazy(r"[A-Za-z0-9_-]+")
_BASIC = lazy(r'"(?:[^"\\\n]++|\\[^\n])*+"')
_LITERAL = lazy(r"'[^'\n]*+'")
_LONG = {'"""': lazy(r'\\(?s:.)|"{3,5}'), "'''": lazy(r"'{3,5}")}
_BARE = lazy(r"\d{4}-\d\d-\d\d \d\d:[0-9:.+Zz-]*|[^\s,#\[\]{}=\"']+")
_BLANKS = lazy(r"[ \t]*")
_LINE = lazy(r"[^\n]*")
_BAD_IN_COMMENT = lazy(r"[\x00-\x08\x0b-\x1f\x7f]")
_WHOLE = lazy(r"(?:0|[1-9][0-9]{0,15})\Z")
_PLAIN = lazy(r"[ !#-&(-\[\]-~\u00a0-\ud7ff]*\Z")
# In an array that was not closed, a line like this is the next setting (`name =`) or table (`[name]`, no list of values).
_NEXT = lazy(
    r"[ \t]*(?:[A-Za-z0-9_.\"'-]+[ \t]*=|\[{1,2}[ \t]*(?!true\b|false\b|inf\b|nan\b)[A-Za-z_][A-Za-z0-9_.\"'-]*[ \t]*\])"
)


class TomlError(NamedTuple):
    """What keeps a text from being TOML, and where."""

    span: Span
    message: str


class TomlValue(msgspec.Struct):
    """A value as it stands. ``value`` is what it means, None for ``bad``; an array has ``items``, an inline table ``entries``.

    ``closed``: its quote or bracket is there.
    """

    kind: ValueKind
    span: Span
    value: Any = None
    items: list[TomlValue] = []
    entries: list[TomlEntry] = []
    closed: bool = True


class TomlEntry(msgspec.Struct):
    """``a.b = value``: the parts of the key with their places; ``equals`` is -1 where no ``=`` was typed yet."""

    names: tuple[str, ...]
    spans: tuple[Span, ...]
    equals: int = -1
    value: TomlValue | None = None

    @property
    def span(self) -> Span:
        """From the key to the end of the value."""
        end = self.value.span[1] if self.value is not None else max(self.equals + 1, self.spans[-1][1])
        return self.spans[0][0], end


class TomlTable(msgspec.Struct):
    """``[a.b]`` or ``[[a.b]]`` with the entries below it; the first table of a tree has no header (``header`` is empty there)."""

    names: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    header: Span = (0, 0)
    array: bool = False
    closed: bool = True
    entries: list[TomlEntry] = []


class TomlTree(msgspec.Struct):
    """A text as it was read. ``errors`` is empty exactly when ``tomllib`` reads it, and then ``value`` is what that gives.

    Twice the exception: deeper than ``MAX_DEPTH``, and a byte order mark at the start, which is passed over.
    """

    text: str
    tables: list[TomlTable]
    comments: list[Span]
    errors: list[TomlError]
    value: dict[str, Any]

    def table_at(self, offset: int) -> TomlTable:
        """The table that an offset belongs to: the last whose header begins before it."""
        toml_table = self.tables[0]
        for table in self.tables[1:]:
            if table.header[0] >= offset:
                break
            toml_table = table
        return toml_table


@lru_cache(maxsize=2)
def read_toml(text: str) -> TomlTree:
    """Reads a text. Never raises. The last two trees are kept, and are shared by all who ask for them: nobody changes one."""
    return _Reader(text).read()


class Place(NamedTuple):
    """Where a setting stands: its key, and its value; a table's header is its key and has no value."""

    key: Span
    value: Span


def toml_places(text: str | TomlTree) -> dict[Path, Place]:
    """The places of all keys by their path; of a key that stands more than once the first."""
    tree = read_toml(text) if isinstance(text, str) else text
    places: dict[Path, Place] = {}
    for table in tree.tables:
        _names(places, (), table.names, table.spans)
        _entries(places, table.names, table.entries)
    return places


def _names(places: dict[Path, Place], above: Path, names: Path, spans: tuple[Span, ...]) -> None:
    for index, span in enumerate(spans):
        places.setdefault((*above, *names[: index + 1]), Place(span, (span[1], span[1])))


def _entries(places: dict[Path, Place], above: Path, entries: list[TomlEntry]) -> None:
    for entry in entries:
        _names(places, above, entry.names[:-1], entry.spans[:-1])
        path = (*above, *entry.names)
        value = entry.value
        end = max(entry.equals + 1, entry.spans[-1][1])
        places.setdefault(path, Place(entry.spans[-1], value.span if value is not None else (end, end)))
        if value is not None:
            _entries(places, path, value.entries)


def paths_by_name(places: dict[Path, Place]) -> dict[str, Path]:
    """Paths by their dotted names; names may hold dots themselves: the first path counts."""
    by_name: dict[str, Path] = {}
    for path in places:
        by_name.setdefault(".".join(path), path)
    return by_name


_AT = lazy(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


def syntax_fault(text: str, error: Exception) -> TomlError:
    """Where and why a text is no TOML, which ``tomllib`` refused with ``error``."""
    if isinstance(error, RecursionError):
        return TomlError((0, 0), "it is nested too deep")
    # The library says where it gave up; what is wrong often stands before that.
    errors = read_toml(text).errors
    if errors:
        return errors[0]
    phrase = str(error)
    match = _AT.search(phrase)
    at = len(text)
    if match is not None and match[1]:
        lines = text.split("\n")
        line = min(int(match[1]), len(lines)) - 1
        at = min(len(text), sum(len(line) + 1 for line in lines[:line]) + int(match[2]) - 1)
    reason = phrase[: match.start()] if match is not None else phrase
    end = text.find("\n", at)
    return TomlError((at, len(text) if end < 0 else max(at, end)), reason[:1].lower() + reason[1:])


class _Nest:
    """A name as far as it was defined: what may still be added to it."""

    __slots__ = ("at", "data", "explicit", "frozen", "items", "names")

    def __init__(self, at: int) -> None:
        self.names: dict[str, _Nest] = {}
        self.items: list[_Nest] | None = None
        self.data: Any = {}
        self.explicit = False
        self.frozen = False
        self.at = at


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.errors: list[TomlError] = []
        self.comments: list[Span] = []
        self.tables = [TomlTable(entries=[])]
        self.root = _Nest(0)
        self.current: _Nest | None = self.root
        self.pending: list[_Nest] = []
        self.line = -1
        """Where the line begins that an array has come to."""

    def read(self) -> TomlTree:
        text = self.text
        while self.at < len(text):
            self._blanks()
            char = text[self.at : self.at + 1]
            if char == "":
                break
            if char == "\n" or text.startswith("\r\n", self.at):
                self.at += 1 if char == "\n" else 2
                continue
            start, error_count = self.at, len(self.errors)
            if char == "[":
                self._header()
            elif char != "#":
                entry = self._entry(self.current, self.pending)
                if entry is not None:
                    self.tables[-1].entries.append(entry)
            self._end_of_line(start, error_count)
        self.errors.sort(key=lambda error: error.span)
        return TomlTree(text, self.tables, self.comments, self.errors, self.root.data)

    # Lines

    def _blanks(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match is not None else self.at

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return end - 1 if end > at and self.text[end - 1] == "\r" and end < len(self.text) else end

    def _error(self, start: int, end: int, message: str) -> None:
        self.errors.append(TomlError((start, max(start, end)), message))

    def _end_of_line(self, start: int, error_count: int) -> None:
        """A comment, then the end; anything else is an error, unless the line has one already."""
        self._blanks()
        line = self.text.rfind("\n", start, self.at) + 1
        if line > start and not self.text[line : self.at].strip():
            return  # a value that was not closed ended where the next line begins
        end = self._line_end(self.at)
        if self.text.startswith("#", self.at):
            self._comment(end)
        elif self.at < end and len(self.errors) == error_count:
            self._error(self.at, end, "a line holds one setting; this stands behind its end")
        self.at = max(self.at, end)

    def _comment(self, end: int) -> None:
        self.comments.append((self.at, end))
        bad = _BAD_IN_COMMENT.search(self.text, self.at, end)
        if bad is not None:
            self._error(*bad.span(), "a control character cannot stand in a comment")
        self.at = end

    def _space(self) -> None:
        """Blanks, line ends and comments, as arrays have them."""
        while True:
            self._blanks()
            if self.text.startswith("#", self.at):
                self._comment(self._line_end(self.at))
            elif self.text.startswith(("\n", "\r\n"), self.at):
                self.at += 1 if self.text[self.at] == "\n" else 2
                self.line = self.at
            else:
                return

    # Headers

    def _header(self) -> None:
        start = self.at
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        self._blanks()
        names, spans = self._key()
        self._blanks()
        close = "]]" if array else "]"
        closed = self.text.startswith(close, self.at)
        error_count = len(self.errors)
        if closed:
            self.at += len(close)
        for node in self.pending:
            node.explicit = True
        self.pending = []
        end = self.at if closed else self._line_end(self.at)
        self.tables.append(TomlTable(names, spans, (start, end), array, closed, []))
        self.current = None
        if not names or (names[-1] == "" and spans[-1][0] == spans[-1][1]):
            self._error(start, self.at, "a table's name is missing")
            self.at = end
            return
        if not closed:
            self._error(start, self.at, f"'{close}' is missing")
        self.current = self._declare(names, spans, array)
        if len(self.errors) > error_count and not closed:
            self.at = end

    def _declare(self, names: tuple[str, ...], spans: tuple[Span, ...], array: bool) -> _Nest | None:
        """The table that a header opens; None where it cannot be opened."""
        node = self.root
        for name, span in zip(names[:-1], spans[:-1], strict=True):
            child = node.names.get(name)
            if child is None:
                child = self._nest(node, name, span[0])
            elif child.items is not None:
                child = child.items[-1]
            if child.frozen:
                self._set_already(names, spans, child.at)
                return None
            node = child
        name = names[-1]
        child = node.names.get(name)
        if array:
            if child is None:
                child = self._nest(node, name, spans[-1][0])
                child.items, child.explicit = [], True
                node.data[name] = child.data = []
            if child.frozen or child.items is None:
                self._set_already(names, spans, child.at)
                return None
            item = _Nest(spans[-1][0])
            child.items.append(item)
            child.data.append(item.data)
            return item
        if child is None:
            child = self._nest(node, name, spans[-1][0])
        elif child.explicit or child.frozen or child.items is not None:
            self._set_already(names, spans, child.at)
            return child if child.items is None and not child.frozen else None
        child.explicit = True
        return child

    def _nest(self, node: _Nest, name: str, at: int) -> _Nest:
        child = node.names[name] = _Nest(at)
        node.data[name] = child.data
        return child

    def _set_already(self, names: tuple[str, ...], spans: tuple[Span, ...], at: int) -> None:
        if len(self.errors) >= MAX_ERRORS:
            self._error(spans[0][0], spans[-1][1], f"'{'.'.join(names)}' is set already")
            return
        line = self.text.count("\n", 0, at) + 1
        self._error(spans[0][0], spans[-1][1], f"'{'.'.join(names)}' is set already, in line {line}")

    # Entries

    def _key(self) -> tuple[tuple[str, ...], tuple[Span, ...]]:
        """A dotted key. A part that is not there yet (behind a dot) is an empty name, and an error."""
        names: list[str] = []
        spans: list[Span] = []
        dot = -1
        while True:
            start = self.at
            char = self.text[start : start + 1]
            if char in ('"', "'") and char:
                value = self._text_value(many=False)
                names.append(
                    value.value if isinstance(value.value, str) else self.text[start + 1 : value.span[1]].strip(char)
                )
                spans.append(value.span)
            else:
                match = _BARE_KEY.match(self.text, start)
                if match is None:
                    if names:
                        names.append("")
                        spans.append((dot, dot))
                        self._error(dot, dot, "a name is missing behind '.'")
                    return tuple(names), tuple(spans)
                self.at = match.end()
                names.append(match[0])
                spans.append(match.span())
            behind = self.at
            self._blanks()
            if not self.text.startswith(".", self.at):
                self.at = behind
                return tuple(names), tuple(spans)
            self.at += 1
            dot = self.at
            self._blanks()

    def _entry(self, nest: _Nest | None, pending: list[_Nest] | None, depth: int = 0) -> TomlEntry | None:
        """``key = value`` into a table; ``pending`` is None inside of an inline table. None: no key stands here, and nothing was read."""
        start = self.at
        names, spans = self._key()
        if not names:
            return self._no_key(start, depth)
        entry = TomlEntry(names, spans)
        error_count = len(self.errors)
        self._blanks()
        if not self.text.startswith("=", self.at):
            self._error(start, spans[-1][1], "'=' and a value are missing")
            return entry
        entry.equals = self.at
        self.at += 1
        self._blanks()
        entry.value = self._value(depth)
        if entry.value is None and len(self.errors) == error_count:
            self._error(spans[0][0], self.at, "the value is missing")
        if names[-1] or spans[-1][0] < spans[-1][1]:
            self._put(nest, pending, entry)
        return entry

    def _no_key(self, start: int, depth: int) -> None:
        end = self._line_end(start)
        if not depth:
            self._error(start, end, "a name was expected")
            self.at = end

    def _put(self, nest: _Nest | None, pending: list[_Nest] | None, entry: TomlEntry) -> None:
        if nest is None:
            return
        nests: list[_Nest] = []
        for name, span in zip(entry.names[:-1], entry.spans[:-1], strict=True):
            child = nest.names.get(name)
            if child is None:
                child = self._nest(nest, name, span[0])
            elif child.explicit or child.frozen or child.items is not None:
                self._set_already(entry.names, entry.spans, child.at)
                return
            nests.append(child)
            nest = child
        name = entry.names[-1]
        before = nest.names.get(name)
        if pending is not None:
            pending += nests
        if before is not None:
            self._set_already(entry.names, entry.spans, before.at)
            return
        value = entry.value
        if value is None or value.kind == "bad":
            return
        child = self._nest(nest, name, entry.spans[-1][0])
        child.frozen = True
        nest.data[name] = child.data = value.value

    # Values

    def _value(self, depth: int) -> TomlValue | None:
        char = self.text[self.at : self.at + 1]
        if char in ('"', "'") and char:
            return self._text_value(many=True)
        if char in ("[", "{") and char:
            if depth >= MAX_DEPTH:
                self._error(self.at, self.at + 1, "this is nested too deep")
                start, self.at = self.at, len(self.text)
                return TomlValue("bad", (start, self.at), closed=False)
            return self._array(depth + 1) if char == "[" else self._inline(depth + 1)
        match = _BARE.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return self._scalar(match.span())

    def _scalar(self, span: Span) -> TomlValue:
        word = self.text[span[0] : span[1]]
        if word in ("true", "false"):
            return TomlValue("boolean", span, word == "true")
        if _WHOLE.match(word):
            return TomlValue("integer", span, int(word))
        value = _decoded(word)
        if value is None or isinstance(value, str):
            quoted = "" if word[:1].isdigit() else "; texts stand in quotes"
            self._error(*span, f"'{_short(word)}' is no value{quoted}")
            return TomlValue("bad", span)
        kind: ValueKind = "integer" if isinstance(value, int) else "float" if isinstance(value, float) else "time"
        return TomlValue(kind, span, value)

    def _text_value(self, *, many: bool) -> TomlValue:
        text, start = self.text, self.at
        char = text[start]
        if text.startswith(char * 3, start):
            end = self._long_end(start, char * 3)
            closed = end > 0
            end = end if closed else len(text)
            self.at = end
            if not many:
                self._error(start, end, "a name cannot be a text of several lines")
                return TomlValue("bad", (start, end), closed=closed)
        else:
            match = (_BASIC if char == '"' else _LITERAL).match(text, start)
            closed = match is not None
            end = match.end() if match is not None else self._line_end(start)
            self.at = end
        if not closed:
            self._error(start, end, "the closing quote is missing")
            return TomlValue("bad", (start, end), closed=False)
        return self._decoded_text((start, end), char)

    def _decoded_text(self, span: Span, char: str) -> TomlValue:
        whole = self.text[span[0] : span[1]]
        inside = whole[1:-1]
        if char not in inside and _PLAIN.match(inside):
            return TomlValue("text", span, inside)
        value = _decoded(whole)
        if not isinstance(value, str):
            self._error(*span, "this text has a character or an escape that TOML does not know")
            return TomlValue("bad", span)
        return TomlValue("text", span, value)

    def _long_end(self, start: int, quotes: str) -> int:
        for match in _LONG[quotes].finditer(self.text, start + 3):
            if match[0][0] == quotes[0]:
                return match.end()
        return -1

    def _array(self, depth: int) -> TomlValue:
        start = self.at
        self.at += 1
        value = TomlValue("array", (start, start), [], [], closed=False)
        while True:
            self._space()
            if self.text.startswith("]", self.at):
                self.at += 1
                value.closed = True
                break
            if self._next_statement():
                break
            item = self._value(depth)
            if item is None:
                if self._stray(","):
                    continue
                break
            value.items.append(item)
            value.value.append(item.value)
            self._space()
            if self.text.startswith(",", self.at):
                self.at += 1
            elif not self.text.startswith("]", self.at):
                if self.at >= len(self.text) or self._next_statement():
                    break
                if self._value_begins():
                    self._error(self.at, self.at, "',' is missing")
                elif not self._stray(""):
                    break
        if not value.closed:
            self._error(start, start + 1, "']' is missing")
        value.span = (start, self.at)
        return value

    def _value_begins(self) -> bool:
        return self.text[self.at : self.at + 1] in ('"', "'", "[", "{") or _BARE.match(self.text, self.at) is not None

    def _stray(self, marks: str) -> bool:
        """Passes over a mark that does not belong; false where the value ends instead."""
        char = self.text[self.at : self.at + 1]
        if char == "" or char not in marks + "=":
            return False
        self._error(self.at, self.at + 1, f"'{char}' was not expected")
        self.at += 1
        return True

    def _next_statement(self) -> bool:
        """Whether a line begins here that is no part of an array."""
        if self.line < 0 or self.at - self.line > _MARGIN or self.text[self.line : self.at].strip():
            return False
        return _NEXT.match(self.text, self.at) is not None

    def _inline(self, depth: int) -> TomlValue:
        start = self.at
        self.at += 1
        nest = _Nest(start)
        value = TomlValue("table", (start, start), nest.data, [], [], closed=False)
        self._blanks()
        comma = -1
        while not self.text.startswith("}", self.at):
            entry = self._entry(nest, None, depth)
            if entry is None:
                if not self._stray(","):
                    break
                self._blanks()
                continue
            comma = -1
            value.entries.append(entry)
            self._blanks()
            if self.text.startswith(",", self.at):
                comma = self.at
                self.at += 1
                self._blanks()
            elif not self.text.startswith("}", self.at):
                if _BARE_KEY.match(self.text, self.at) is None:
                    break
                self._error(self.at, self.at, "',' is missing")
        if self.text.startswith("}", self.at):
            if comma >= 0:
                self._error(comma, comma + 1, "no ',' stands before '}'")
            self.at += 1
            value.closed = True
        else:
            self._error(start, start + 1, "'}' is missing on the line")
        value.span = (start, self.at)
        return value


def _decoded(word: str) -> Any:
    """What one scalar means; None for none."""
    import tomllib

    try:
        return tomllib.loads(f"k = {word}\n")["k"]
    except (ValueError, RecursionError):
        return None


def _short(word: str) -> str:
    return word if len(word) <= 40 else word[:39] + "…"
