"""The elements of one level of an ACTION block, and what stands between them (rulings 17 and 18).

Elements that are never closed end where the rulings say; each is reported with the edit that closes it. Must not know what
an element means to a call.
"""

from __future__ import annotations

from tamis.protocols.action.decode import trim_blank, trim_layout
from tamis.protocols.action.findings import Element, Findings
from tamis.protocols.action.names import (
    INPUTS_ALIASES,
    STRONG_TOOL_ID,
    TOOL_ID_ALIASES,
)
from tamis.protocols.action.tokens import INVISIBLE, Token
from tamis.protocols.action.values import HTML, ValueReader
from tamis.protocols.model import (
    Comment,
    Edit,
    ReadOptions,
)
from tamis.protocols.patterns import lazy

_EXCERPT = 40
_NO_TAG = "?"
"""For ``_alias``: no single other tag would do."""
_TAG_SAFE = lazy(r"[A-Za-z_][\w.:\-/]*")


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
        self.opener_end = 0
        self.cut = False
        """True when the block is open at its end inside a call."""

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
            if not closed and out and text[at : token.start].strip():
                return out
            if token.kind == "close" and token.partner < 0:
                self._gap(at, token.start)
                at = token.end
                i += 1
                continue
            self._gap(at, token.start)
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
        if closed or (not out and text[at:end].strip()):
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

    def _gap(self, start: int, end: int) -> None:
        """Text between elements: layout is nothing, anything else is noise (TC011)."""
        if start >= end:
            return
        gap = self.text[start:end]
        if gap.isspace():
            return
        rest = gap.strip()
        if not rest:
            return
        if all(char in INVISIBLE or char.isspace() for char in rest):
            code = f"{ord(next(char for char in rest if char in INVISIBLE)):04X}"
            edit = Edit(start, end, "".join(char for char in gap if char not in INVISIBLE))
            self.findings.add(
                "TC013", (start, end), {"hex": code, "where": "the layout"}, edits=(edit,), title="Remove the character"
            )
            return
        lead = len(gap) - len(gap.lstrip())
        self._noise(start + lead, start + lead + len(rest))

    def _noise(self, start: int, end: int) -> None:
        excerpt = self.text[start : min(end, start + _EXCERPT)]
        self.findings.add(
            "TC011", (start, end), {"excerpt": excerpt}, edits=(Edit(start, end, ""),), title="Remove the text"
        )

    def _element(self, i: int, b: int, end: int, level: str, *, closed: bool) -> tuple[Element | None, int]:
        token = self.tokens[i]
        if token.kind == "self" or (i < token.partner < b):
            element, after = self.values.element(i)
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
        token = self.tokens[i]
        self.values.check_tag(token)
        if token.key in TOOL_ID_ALIASES and token.attributes is None:
            stop = next((k for k in range(i + 1, b) if self.tokens[k].kind in ("open", "self", "comment")), b)
            here = self.tokens[stop].start if stop < b else end
            if self.text[token.end : here].strip():
                return self._ended(i, stop, here, "AX102")
        stop, unclear = b, False
        k = i + 1
        while k < b:
            inner = self.tokens[k]
            if inner.kind == "open" and not inner.raw:
                if k > i + 1 and inner.name in self.options.tools:
                    stop = k
                    break
                if token.key in INPUTS_ALIASES and inner.key in STRONG_TOOL_ID:
                    stop = k
                    break
                unclear = unclear or self._sibling(token, k)
            k = inner.partner + 1 if inner.kind == "open" and inner.partner > k else k + 1
        here = self.tokens[stop].start if stop < b else end
        code = "AX156" if token.key in INPUTS_ALIASES else "AX103"
        return self._ended(i, stop, here, code, error=unclear)

    def _sibling(self, token: Token, k: int) -> bool:
        """True when the element ``k`` looks like another tool: as far indented as the open one, with elements inside."""
        inner = self.tokens[k]
        if inner.partner <= k + 1 or not any(
            self.tokens[m].kind == "open" for m in range(k + 1, min(inner.partner, k + 9))
        ):
            return False
        return _indent(self.text, token.start) == _indent(self.text, inner.start)

    def _open_at_tool(self, i: int, b: int, end: int) -> tuple[Element, int]:
        """A parameter that is never closed: its value ends at the next parameter or the tool's end (ruling 18)."""
        text, token = self.text, self.tokens[i]
        self.values.check_tag(token)
        k = i + 1
        unclear = False
        while k < b:
            inner = self.tokens[k]
            if inner.kind == "open" and not inner.raw:
                glued = inner.start > 0 and not text[inner.start - 1].isspace() and text[inner.start - 1] != ">"
                if inner.partner > k:
                    # In the middle of a sentence it may as well be markup of the open value.
                    unclear = (inner.key == token.key or inner.key in HTML) and _in_sentence(
                        text, token.end, inner.start
                    )
                    break
                if inner.key == token.key and not token.attributes:
                    follow = self.tokens[k + 1] if k + 1 < b else None
                    rest = text[inner.end : follow.start if follow is not None else end]
                    if not rest.strip() and text[token.end : inner.start].strip():
                        return self._missing_slash(i, k)
                first = _line_start(text, inner.start)
                if inner.key == token.key or first or not (glued or inner.key in HTML):
                    unclear = inner.key in HTML or (inner.key != token.key and not first)
                    break
            k += 1
        here = self.tokens[k].start if k < b else end
        after = b if k >= b else k
        if not unclear:
            unclear = self._noise_behind(after, b, end)
        return self._ended(i, k, here, "AX102", error=unclear)

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
        edit = Edit(closing.start + 1, closing.start + 1, "/")
        self.findings.add(
            "AX132", (closing.start, closing.end), {"name": token.name}, edits=(edit,), title=f"Write </{token.name}>"
        )
        element = Element(token, i + 1, k, token.end, closing.start, closing.end, closed=True)
        return element, k + 1

    def _ended(self, i: int, stop: int, here: int, code: str, *, error: bool = False) -> tuple[Element, int]:
        token = self.tokens[i]
        end = trim_blank(self.text, token.end, here)[1]
        where = "the end of the block"
        if stop < len(self.tokens):
            after = self.tokens[stop]
            where = self.text[after.start : min(after.end, after.start + _EXCERPT)]
        raw = self.text[token.name_span[0] : token.name_span[1]]
        edits: tuple[Edit, ...] = (Edit(end, end, f"</{raw}>"),)
        start = trim_blank(self.text, token.end, here)[0]
        if code == "AX102" and trim_layout(self.text, token.end, end)[0] != start:
            # The value of an open element is trimmed; a closed one keeps more of its layout.
            edits = (Edit(token.end, start, ""), *edits)
        args: dict[str, str | int] = {"name": token.name, "tool": token.name, "where": where}
        self.findings.add(
            code, (token.start, token.end), args, edits=edits, title=f"Insert </{token.name}>", error=error
        )
        return Element(token, i + 1, stop, token.end, end, end, closed=False), stop

    def _has_elements(self, element: Element) -> bool:
        return any(self.tokens[k].kind in ("open", "self") for k in range(element.a, element.b))


def _indent(text: str, at: int) -> int:
    """The column of a tag that is first on its line, else -1."""
    line = max(text.rfind("\n", max(0, at - 200), at), text.rfind("\r", max(0, at - 200), at)) + 1
    return at - line if line and not text[line:at].strip() else -1


def _in_sentence(text: str, start: int, at: int) -> bool:
    line = max(text.rfind("\n", start, at), start)
    return bool(text[line:at].strip()) and text[at - 1].isspace()


def _line_start(text: str, at: int) -> bool:
    return _indent(text, at) >= 0
