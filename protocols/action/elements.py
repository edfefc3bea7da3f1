"""The elements of one level of an ACTION block, and what stands between them (rulings 17 and 18).

Elements that are never closed end where the rulings say; each is reported with the edit that closes it. Must not know what
an element means to a call.
"""

from __future__ import annotations

from tamis.protocols.action.decode import (
    INPUTS_ALIASES,
    STRONG_TOOL_ID,
    TOOL_ID_ALIASES,
    has_text,
    indent,
    trim_blank,
    trim_layout,
)
from tamis.protocols.action.findings import Element, Findings
from tamis.protocols.action.tokens import DECORATION, MARKER_KEY, Token
from tamis.protocols.action.values import HTML, ValueReader
from tamis.protocols.invisible import IN_TAGS
from tamis.protocols.model import (
    Comment,
    Edit,
    ReadOptions,
)
from tamis.protocols.patterns import lazy

_EXCERPT = 40
_NO_TAG = "?"
"""For ``_alias``: no single other tag would do."""
_SPOILT_LEFT = lazy(
    r"(?:(?P<bracket>\\?[<＜]\s{0,4}[/\\／|]{0,2})|(?P<entity>\\?&(?:lt|#60);)?\s{0,4}[/\\／|]{1,2})\s{0,4}\Z"
)
_SPOILT_RIGHT = lazy(r"\s{0,4}+/?(?:(?P<bracket>\\?[>＞]{1,2})|(?P<entity>\\?&(?:gt|#62);))?\Z")
"""What stands around the name of a closing tag that is written as it must not be."""
_MAX_SPOILT = 24
_MAX_NOISE = 400
_LOOSE = " \t\r\n>"
_SEEN = lazy(rf"[^\s{''.join(sorted(IN_TAGS))}]")
_LOST_TAG = lazy(r"(?:^|[\s<＜\\]|&lt;)/{0,1}[^\W\d][\w.:\-]{0,80}(?:\\?[>＞]|&gt;)|(?i:\bname)\s{0,4}=\s{0,4}[\"'“「]")
"""A tag that lost a bracket, in text between elements: what it opened must not be dropped."""


class ElementReader:
    """Reads the levels of one block."""

    def __init__(
        self, text: str, tokens: list[Token], inner_end: dict[int, int], findings: Findings, options: ReadOptions
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.inner_end = inner_end
        self.findings = findings
        self.options = options
        self.values = ValueReader(text, tokens, findings)
        self.end = 0
        """Where the last thing that belongs to the block ends."""
        self.opener_start = 0
        self.opener_end = 0
        self.cut = False
        """True when the block is open at its end inside a call."""
        self.declared: frozenset[str] = frozenset()
        """The parameters that the schema of the call names which is being read."""
        self._closed_names: frozenset[str] | None = None

    def elements(self, a: int, b: int, start: int, end: int, level: str, *, closed: bool = True) -> list[Element]:
        """The elements of a level, with comments, noise and stray markup between them taken note of.

        ``level`` is ``block`` (tools, reserved elements) or ``tool`` (parameters). With ``closed`` false the block has no
        closing marker, and ends where text follows a complete element.
        """
        text, out = self.text, list[Element]()
        at, i = start, a
        while i < b:
            token = self.tokens[i]
            if token.start >= end:
                break
            if token.start < at or token.raw or (token.kind == "close" and 0 <= token.partner < a):
                i += 1
                continue
            if not closed and out and has_text(text, at, token.start):
                return out
            if token.kind == "close" and token.partner < 0:
                self._gap(at, token.start)
                at = token.end
                i += 1
                continue
            self._gap(at, token.start, token.end if token.kind == "open" else 0)
            if token.kind in ("open", "self"):
                element, i = self._element(i, b, end, level, closed=closed)
                if element is None:
                    return out
                out.append(element)
                at = element.outer_end
                if not closed:
                    self.end = at
                continue
            self._markup(token)
            at = token.end
            i += 1
        if closed or (not out and has_text(text, at, end)):
            self._gap(at, end)
        return out

    def _markup(self, token: Token) -> None:
        span = (token.start, token.end)
        add = self.findings.add
        remove = (Edit(token.start, token.end, ""),)
        if token.kind == "comment":
            if token.flag:
                edit = Edit(token.end, token.end, "-->")
                add("AX123", span, edits=(edit,), title="Insert -->", unsafe=True, error=True)
                return
            body = self.text[token.content[0] : token.content[1]]
            self.findings.comments.append(Comment(span, body.strip()))
        elif token.kind == "pi":
            add("AX125", span, edits=remove, title="Remove the instruction")
        elif token.kind == "doctype":
            add("AX126", span, edits=remove, title="Remove the declaration", unsafe=True, error=True)
        elif token.kind == "cdata":
            self._noise(token.start, token.end)

    def _gap(self, start: int, end: int, opened: int = 0) -> None:
        """Text between elements: layout is nothing, anything else is noise (TC011); ``opened``: where the tag behind it ends."""
        if start >= end:
            return
        text = self.text
        # Without a copy: many blocks of a text may each reach to its end.
        first, last = trim_blank(text, start, end)
        if first == last:
            return
        if _SEEN.search(text, first, last) is None:
            code = f"{ord(next(char for char in text[first:last] if char in IN_TAGS)):04X}"
            edit = Edit(start, end, "".join(char for char in text[start:end] if char not in IN_TAGS))
            self.findings.add(
                "TC013", (start, end), {"hex": code, "where": "the layout"}, edits=(edit,), title="Remove the character"
            )
            return
        # Quotes on both sides of a tag: the second one may be part of the value, or not.
        quoted = opened > 0 and text[end - 1] in DECORATION + "*" and text.startswith(text[end - 1], opened)
        lost = _LOST_TAG.search(text[first : min(last, first + _MAX_NOISE)]) is not None
        self._noise(first, last, error=quoted or lost)

    def _noise(self, start: int, end: int, *, error: bool = False) -> None:
        excerpt = self.text[start : min(end, start + _EXCERPT)]
        edits = (Edit(start, end, ""),)
        self.findings.add(
            "TC011", (start, end), {"excerpt": excerpt}, edits=edits, title="Remove the text", error=error
        )

    def _element(self, i: int, b: int, end: int, level: str, *, closed: bool) -> tuple[Element | None, int]:
        token = self.tokens[i]
        if token.kind == "self" or (i < token.partner < b):
            element, after = self.values.element(i)
            if token.kind == "open" and self.tokens[token.partner].key != token.key:
                end = trim_blank(self.text, element.start, element.end)[1]
                at = self._spoilt(token, element.start, end)
                if at >= 0:
                    # Closed twice, both times oddly: where the element ends is unclear.
                    args: dict[str, str | int] = {"raw": self.text[at:end], "canonical": f"</{token.name}>"}
                    self.findings.add("TC004", (at, end), args, error=True)
            if i in self.inner_end:
                element.end = self.inner_end[i]
            return element, after
        if level == "block":
            if not closed:
                self.cut = True
                return None, b
            return self._open_at_block(i, b, end)
        return self._open_at_tool(i, b, end)

    def _open_at_block(self, i: int, b: int, end: int) -> tuple[Element, int]:
        """A tool, ``<tool_id>`` or ``<inputs>`` that is never closed: it ends with the block (ruling 18)."""
        text, token = self.text, self.tokens[i]
        self.values.check_tag(token)
        if token.key in TOOL_ID_ALIASES and token.attributes is None:
            stop = next((k for k in range(i + 1, b) if self.tokens[k].kind in ("open", "self", "comment")), b)
            here = self.tokens[stop].start if stop < b else end
            if self.text[token.end : here].strip():
                if stop < b and self.tokens[stop].key == token.key and self.tokens[stop].partner < 0:
                    return self._missing_slash(i, stop)
                return self._ended(i, stop, here, "AX102")
        stop, unclear = b, False
        columns = set[int]()
        k = i + 1
        at = token.end
        while k < b:
            inner = self.tokens[k]
            if text[at : inner.start].strip() and self._spoilt(token, at, trim_blank(text, at, inner.start)[1]) >= 0:
                stop = k
                break
            if inner.kind in ("open", "self") and inner.key == token.key and not inner.raw:
                if inner.partner < 0 and not self._more(k + 1, b, inner.end, end):
                    return self._missing_slash(i, k)
                unclear = True
            if inner.kind == "open" and not inner.raw:
                if k > i + 1 and inner.name in self.options.tools:
                    stop = k
                    break
                if token.key in INPUTS_ALIASES and inner.key in STRONG_TOOL_ID:
                    stop = k
                    break
                unclear = unclear or self._sibling(token, k) or ":" in inner.name or "/" in inner.name
                if inner.partner > k and k > i + 1 and indent(text, inner.start) < 0:
                    # Nothing in it, and no layout to tell a parameter from another tool.
                    unclear = unclear or not text[inner.end : self.tokens[inner.partner].start].strip()
                columns.add(indent(text, inner.start))
            k = inner.partner + 1 if inner.kind == "open" and inner.partner > k else k + 1
            at = self.tokens[k - 1].end
        column = indent(text, token.start)
        if column in columns and (len(columns) > 1 or column > max(0, indent(text, self.opener_start))):
            # As far indented as the open tool where the block indents its levels: it may be a tool of its own.
            unclear = True
        here = self.tokens[stop].start if stop < b else end
        code = "AX156" if token.key in INPUTS_ALIASES else "AX103"
        return self._ended(i, stop, here, code, error=unclear)

    def _more(self, k: int, b: int, at: int, end: int) -> bool:
        """True when anything but blanks and comments stands between token ``k`` and the end."""
        for token in self.tokens[k:b]:
            if token.kind != "comment" or self.text[at : token.start].strip():
                return True
            at = token.end
        return bool(self.text[at:end].strip())

    def _sibling(self, token: Token, k: int) -> bool:
        """True when the element ``k`` looks like another tool: as far indented as the open one, with elements and no text inside."""
        inner = self.tokens[k]
        if inner.partner > k + 1 and self.text[inner.end : self.tokens[k + 1].start].strip():
            return False
        if inner.partner <= k + 1 or not any(
            self.tokens[m].kind == "open" for m in range(k + 1, min(inner.partner, k + 9))
        ):
            return False
        return indent(self.text, token.start) == indent(self.text, inner.start)

    def _open_at_tool(self, i: int, b: int, end: int) -> tuple[Element, int]:
        """A parameter that is never closed: its value ends at the next parameter or the tool's end (ruling 18)."""
        text, token = self.text, self.tokens[i]
        self.values.check_tag(token)
        k = i + 1
        unclear = False
        while k < b:
            inner = self.tokens[k]
            if inner.kind == "self" and inner.key == token.key and inner.attributes is None:
                follow = self.tokens[k + 1] if k + 1 < b else None
                rest = text[inner.end : follow.start if follow is not None else end]
                if not rest.strip(_LOOSE):
                    return self._missing_slash(i, k)
            if inner.kind == "open" and inner.key == MARKER_KEY:
                # A block quoted in the value (ruling 50).
                k = max(inner.partner, k) + 1
                continue
            if inner.kind == "open" and not inner.raw:
                glued = inner.start > 0 and not text[inner.start - 1].isspace() and text[inner.start - 1] != ">"
                if inner.partner > k:
                    # In the middle of a sentence it may as well be markup of the open value.
                    same = inner.key == token.key
                    unclear = (same or inner.key in HTML) and _in_sentence(text, token.end, inner.start)
                    if same and not text[inner.end : self.tokens[inner.partner].start].strip():
                        unclear = True
                    break
                if inner.key == token.key and not inner.attributes:
                    follow = self.tokens[k + 1] if k + 1 < b else None
                    rest = text[inner.end : follow.start if follow is not None else end]
                    if not rest.strip(_LOOSE) and text[token.end : inner.start].strip():
                        return self._missing_slash(i, k)
                if self._names_param(inner):
                    break
                first = _line_start(text, inner.start)
                if inner.key == token.key or first or not (glued or inner.key in HTML):
                    unclear = inner.key in HTML or (inner.key != token.key and not first)
                    break
            k += 1
        here = self.tokens[k].start if k < b else end
        after = b if k >= b else k
        if k < b and not text[token.end : here].strip():
            # Nothing before the next element: it may as well be a part of the open one.
            column = indent(text, token.start)
            unclear = unclear or column < 0 or indent(text, here) != column
        if not unclear:
            unclear = self._noise_behind(after, b, end) or text[here - 1] == "\\"
        return self._ended(i, k, here, "AX102", error=unclear)

    def _names_param(self, token: Token) -> bool:
        """True when a tag is the name of a parameter: by the schema, or because the block has it as a closed element (ruling 52)."""
        if token.name in self.declared:
            return True
        if token.key in HTML:
            return False
        if self._closed_names is None:
            self._closed_names = frozenset(
                token.name for token in self.tokens if token.kind == "open" and token.partner >= 0
            )
        return token.name in self._closed_names

    def _noise_behind(self, k: int, b: int, end: int) -> bool:
        """True when text stands between the parameters that follow: then the open value may not have ended there."""
        at = None
        while k < b:
            token = self.tokens[k]
            if at is not None and self.text[at : token.start].strip():
                return True
            if token.kind == "open" and token.partner > k and token.partner < b:
                k = token.partner
                at = self.tokens[k].end
            elif token.kind == "open":
                return False
            else:
                at = token.end
            k += 1
        return at is not None and bool(self.text[at:end].strip())

    def _missing_slash(self, i: int, k: int) -> tuple[Element, int]:
        token, closing = self.tokens[i], self.tokens[k]
        raw = self.text[slice(*token.name_span)]
        edit = Edit(closing.start, closing.end, f"</{raw}>")
        self.findings.add(
            "AX132", (closing.start, closing.end), {"name": token.name}, edits=(edit,), title=f"Write </{token.name}>"
        )
        element = Element(token, i + 1, k, token.end, closing.start, closing.end, closed=True)
        return element, k + 1

    def _ended(self, i: int, stop: int, here: int, code: str, *, error: bool = False) -> tuple[Element, int]:
        token = self.tokens[i]
        end = trim_blank(self.text, token.end, here)[1]
        # A tag that lacks its bracket, is never closed and holds nothing: nothing says that it is one.
        error = error or (code == "AX102" and token.flag.startswith("bracket") and end == token.end)
        closer = self._spoilt_close(i, stop, end) if not error else None
        if closer is not None:
            return closer, stop
        where = "the end of the block"
        if stop < len(self.tokens):
            after = self.tokens[stop]
            where = self.text[after.start : min(after.end, after.start + _EXCERPT)]
        raw = self.text[token.name_span[0] : token.name_span[1]]
        edits: tuple[Edit, ...] = (Edit(end, end, f"</{raw}>"),)
        start = trim_blank(self.text, token.end, here)[0]
        if (code == "AX102" or i + 1 == stop) and trim_layout(self.text, token.end, end)[0] != start:
            # The value of an open element is trimmed; a closed one keeps more of its layout.
            edits = (Edit(token.end, start, ""), *edits)
        args: dict[str, str | int] = {"name": token.name, "tool": token.name, "where": where}
        self.findings.add(
            code, (token.start, token.end), args, edits=edits, title=f"Insert </{token.name}>", error=error
        )
        return Element(token, i + 1, stop, token.end, end, end, closed=False), stop

    def _spoilt_close(self, i: int, stop: int, end: int) -> Element | None:
        """The element when what stands at its end was meant as its closing tag: ``/a>``, ``＜/a＞``, ``<\\/a>``, ``&lt;/a&gt;``."""
        token = self.tokens[i]
        at = self._spoilt(token, token.end, end)
        if at < 0 or (stop - 1 > i and self.tokens[stop - 1].end > at):
            # There is none, or it is a part of another tag.
            return None
        raw = self.text[slice(*token.name_span)]
        args: dict[str, str | int] = {"raw": self.text[at:end], "canonical": f"</{token.name}>"}
        edits = (Edit(at, end, f"</{raw}>"),)
        again = self._spoilt(token, token.end, trim_blank(self.text, token.end, at)[1]) >= 0
        self.findings.add("TC004", (at, end), args, edits=edits, title=f"Write </{token.name}>", error=again)
        return Element(token, i + 1, stop, token.end, at, end, closed=True)

    def _spoilt(self, token: Token, start: int, end: int) -> int:
        """Where the misspelled closing tag of ``token`` begins that ends at ``end``; -1 where there is none."""
        name = self.text[slice(*token.name_span)]
        start = max(start, end - len(name) - _MAX_SPOILT)
        tail = self.text[start:end]
        right = _SPOILT_RIGHT.search(tail)
        if right is None or not tail[: right.start()].lower().endswith(name.lower()):
            return -1
        left = _SPOILT_LEFT.search(tail, 0, right.start() - len(name))
        if left is None:
            return -1
        # A slash and the name alone may be the end of a path, and an entity goes with an entity.
        if (left["entity"] is None) != (right["entity"] is None) or not (
            left["bracket"] or right.group().strip("/ \t\n")
        ):
            return -1
        return start + left.start()

    def _has_elements(self, element: Element) -> bool:
        return any(self.tokens[k].kind in ("open", "self") for k in range(element.a, element.b))


def _in_sentence(text: str, start: int, at: int) -> bool:
    line = max(text.rfind("\n", start, at), start)
    return bool(text[line:at].strip()) and text[at - 1].isspace()


def _line_start(text: str, at: int) -> bool:
    return indent(text, at) >= 0
