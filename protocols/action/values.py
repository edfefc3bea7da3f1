"""Values of ACTION parameters: from the tokens inside an element to text, lists and objects.

The order of questions: does the tool's schema say text, do only elements stand here (rulings 2 and 15), or is this text
that happens to hold markup? Every assumption is reported with the edit that makes it unnecessary. Must not know calls.
"""

from __future__ import annotations

import re
from html.entities import html5

import msgspec

from tamis.protocols.action.attributes import read_attributes
from tamis.protocols.action.decode import (
    INPUT_ALIASES,
    SECTION_LIKE,
    Decoded,
    as_cdata,
    clip,
    indent,
    is_doubled,
    trim_blank,
    trim_cdata,
    trim_layout,
    trim_tail,
)
from tamis.protocols.action.findings import Element, Findings
from tamis.protocols.action.tokens import DECORATION, MARKER_KEY, Token, whole_name
from tamis.protocols.edges import Slip, slip_before, slip_behind
from tamis.protocols.invisible import IN_TAGS
from tamis.protocols.model import MAX_DEPTH, MAX_NAME_CHARS, Comment, Edit, Json, Piece, Value
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

_MAX_FIX = 1 << 20
"""Characters of a value up to which a fix writes it out again."""
_MAX_ESCAPES = 16
_MAX_ALONE = 8
"""Tokens of an element that may hold nothing but an empty pair of its own tag, with comments."""
_LIKE_CDATA = lazy(
    r"(?:[<＜]?!?[ \t]?\[[ \t]?(?i:CDATA)[ \t]?[\[({]|<!\[(?i:CDATA)[({])(?P<body>(?s:.*?))[\])}][ \t]?[\])}][ \t]?[>＞]?\Z"
)
_HALF_END = lazy(r"\]\s?\]\s{0,4}(?:>|<|&gt;)|</(?i:inputs|tool_id|action)>\s{0,40}\Z")
"""What may have been meant as the end of a section."""
_XML_NAME = lazy(r"[^\W\d][\w.:\-]*")
_IDENTIFIER = lazy(r"[A-Za-z_][\w.\-]*")
_MIXED_SCRIPT = lazy(r"(?=.*[A-Za-z])(?=.*[\u0370-\u03ff\u0400-\u04ff])")
HTML = frozenset(  # a string that splits reads better than fifty quoted words
    [
        "a",
        "abbr",
        "b",
        "big",
        "blockquote",
        "body",
        "br",
        "center",
        "dd",
        "del",
        "div",
        "dl",
        "dt",
        "em",
        "font",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "hr",
        "html",
        "i",
        "iframe",
        "img",
        "ins",
        "kbd",
        "li",
        "nav",
        "ol",
        "p",
        "pre",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "svg",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "tt",
        "u",
        "ul",
        "var",
        "wbr",
    ]
)
"""Tags that stand in texts and often are not closed there."""


def wants_text(schema: Json) -> bool:
    """True when a schema takes nothing but text (so that markup in it is text, AX115)."""
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    if isinstance(kind, list):
        return bool(kind) and "string" in kind and all(k in ("string", "null") for k in kind)
    if kind is None and isinstance(schema.get("enum"), list):
        options = schema["enum"]
        return isinstance(options, list) and bool(options) and all(isinstance(o, str) for o in options)
    return kind == "string"


def takes(schema: Json, kind: str) -> bool:
    """True when a schema names ``kind`` as its type or one of its types."""
    if not isinstance(schema, dict):
        return False
    declared = schema.get("type")
    return declared == kind or (isinstance(declared, list) and kind in declared)


def property_schema(schema: Json, name: str) -> Json:
    """The schema of a property, or None."""
    if not isinstance(schema, dict):
        return None
    properties = schema.get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def item_schema(schema: Json) -> Json:
    """The schema of a list's items, or None."""
    return schema.get("items") if isinstance(schema, dict) else None


class _MixedError(Exception):
    """Text beside elements somewhere inside: the whole parameter is text (AX114)."""


class _Content(msgspec.Struct, frozen=True, gc=False):
    """What stands inside an element: its text decoded, and what of it may be markup."""

    decoded: Decoded
    literal: Decoded
    """The text of the sections alone."""
    sections: list[Token]
    comments: list[Token]
    raw: Token | None
    """The first tag without a partner."""
    own: Token | None
    """The first tag of the element's own name."""
    balanced: int
    """Tags that stand in pairs, or alone and closed."""
    beside: bool
    """Whether text stands beside sections and comments."""

    @property
    def markup(self) -> bool:
        return self.raw is not None or self.own is not None or self.balanced > 0


class ValueReader:
    """Reads the values of one block."""

    def __init__(self, text: str, tokens: list[Token], findings: Findings) -> None:
        self.text = text
        self.tokens = tokens
        self.findings = findings

    def read(self, element: Element, schema: Json, name: str) -> Value:
        """The value of a parameter's element."""
        if self._only_own_pair(element) and property_schema(schema, element.name) is None:
            self.findings.add("AX128", (element.open, element.outer_end), {"name": element.name}, error=True)
        if wants_text(schema):
            return self._text(element, name, declared=True)
        diagnostics, kept = self.findings.list, len(self.findings.list)
        kept_comments = len(self.findings.comments)
        try:
            return self._value(element, schema, name, 0)
        except _MixedError:
            before = diagnostics[:kept]
            known = {id(diag) for diag in before}
            errors = [diag for diag in self.findings.list if diag.severity == "error" and id(diag) not in known]
            self.findings.list = [*before, *errors]
            del self.findings.comments[kept_comments:]
            if (takes(schema, "array") or takes(schema, "object")) and not takes(schema, "string"):
                # No text can be meant: a slip beside the elements made one of them (ruling 67).
                self.findings.add("AX114", (element.start, element.end), {"param": name}, error=True)
            return self._text(element, name, mixed=True, unclear=bool(errors))

    def read_plain(self, element: Element, name: str) -> Value:
        """The text of an element that holds a name, or the JSON of all parameters: no parameter's value."""
        return self._text(element, name, declared=True, plain=True)

    def _only_own_pair(self, element: Element) -> bool:
        """True when nothing but an empty element of the same tag stands in an element (ruling 52)."""
        if not element.closed or not element.a < element.b <= element.a + _MAX_ALONE:
            return False
        if self.tokens[element.a].key not in (element.key, ""):
            return False
        tokens = [token for token in self.tokens[element.a : element.b] if token.kind != "comment"]
        if not tokens or tokens[0].key != element.key or tokens[0].kind not in ("open", "self"):
            return False
        if [token.kind for token in tokens[1:]] != (["close"] if tokens[0].kind == "open" else []):
            return False
        if len(tokens) == 2 and self.tokens[tokens[0].partner] is not tokens[1]:
            return False
        at, rest = element.start, ""
        for token in self.tokens[element.a : element.b]:
            rest += self.text[at : token.start].strip()
            at = token.end
        return not rest + self.text[at : element.end].strip()

    def _value(self, element: Element, schema: Json, name: str, depth: int) -> Value:
        if depth and wants_text(schema):
            return self._text(element, name, declared=True)
        children = self._children(element)
        if children and not (takes(schema, "object") or takes(schema, "array")):
            # An attribute has no place in lists and objects: markup with attributes is text.
            if any(child.token.attributes is not None for child in children):
                raise _MixedError
        else:
            for child in children:
                self._ignore_attributes(child)
        if not children:
            return self._text(element, name)
        if depth > MAX_DEPTH:
            self.findings.add("TC020", (element.open, element.start), {"limit": MAX_DEPTH}, error=True)
            return Value("text", (element.start, element.end))
        is_list = all(child.name == "item" for child in children)
        if is_list and takes(schema, "object") and not takes(schema, "array"):
            is_list = False
        span = trim_blank(self.text, element.start, element.end)
        if is_list:
            inner = item_schema(schema)
            items = [self._value(child, inner, name, depth + 1) for child in children]
            return Value("list", span, items=items, item_list=True)
        entries: dict[str, Value] = {}
        single = takes(schema, "array") and isinstance(item_schema(schema), dict)
        inner_schema = item_schema(schema) if single else schema
        for child in children:
            self.check_name(child.token, tool=False)
            part = property_schema(inner_schema, child.name)
            listed = takes(part, "array") and not takes(part, "object")
            value = self._value(child, part, name, depth + 1)
            before = entries.get(child.name)
            if before is None and listed and value.kind == "object":
                value = Value("list", value.span, items=[value], repeated=True)
            entries[child.name] = value if before is None else join(before, value)
        value = Value("object", span, entries=entries)
        if single and isinstance(inner_schema, dict) and set(entries) <= set(_names(inner_schema)):
            return Value("list", span, items=[value], repeated=True)
        return value

    def _ignore_attributes(self, child: Element) -> None:
        for attribute in read_attributes(self.text, child.token.attributes):
            args: dict[str, str | int] = {"name": attribute.name, "tag": child.name}
            edits = (Edit(*attribute.span, ""),)
            self.findings.add("AX136", attribute.span, args, edits=edits, title="Remove the attribute")

    def _children(self, element: Element) -> list[Element]:
        """The child elements when nothing but elements stands inside; none when it is text."""
        children: list[Element] = []
        comments: list[Token] = []
        other = False
        at = element.start
        i = element.a
        while i < element.b:
            token = self.tokens[i]
            closed = token.kind == "self" or (token.kind == "open" and i < token.partner < element.b)
            other = other or bool(self.text[at : token.start].strip())
            if closed and token.key != MARKER_KEY and not token.raw:
                child, i = self.element(i)
                children.append(child)
                at = child.outer_end
                continue
            if token.kind == "comment" and not token.flag:
                comments.append(token)
                at = token.end
                i += 1
                continue
            if token.kind == "close" and token.partner < 0 and not token.raw and children:
                # Reported as stray where the tags were paired: it closes nothing (F8).
                at = token.end
                i += 1
                continue
            if token.kind == "open" and not other and self._unclear(element, i):
                self.findings.add(
                    "AX102", (token.start, token.end), {"name": token.name, "where": f"</{element.name}>"}, error=True
                )
            other = True
            at = token.end
            i += 1
        other = other or bool(self.text[at : element.end].strip())
        if not children:
            return []
        if other:
            raise _MixedError
        for token in comments:
            self._leave_out(token, element.name)
        return children

    def _unclear(self, element: Element, i: int) -> bool:
        """An element that begins a value and is never closed: structure that lost a tag, or text with a tag in it?"""
        token = self.tokens[i]
        if token.partner >= 0 or token.flag or token.key in HTML or _IDENTIFIER.fullmatch(token.name) is None:
            return False
        return bool(self.text[token.end : element.end].strip())

    def element(self, i: int) -> tuple[Element, int]:
        """The closed element that token ``i`` opens, and the index behind it; odd spellings of its tags are reported."""
        token = self.tokens[i]
        self.check_tag(token)
        if token.kind == "self":
            return Element(token, i + 1, i + 1, token.end, token.end, token.end, closed=True), i + 1
        close = self.tokens[token.partner]
        self.check_tag(close)
        return Element(token, i + 1, token.partner, token.end, close.start, close.end, closed=True), token.partner + 1

    def check_tag(self, token: Token) -> None:
        """Reports a tag whose brackets or blanks are off."""
        if token.flag == "space" and token.kind != "self":
            start, end = token.name_span
            slash = "/" if token.kind == "close" else ""
            edit = Edit(token.start, start, f"<{slash}")
            raw = self.text[token.start : min(token.end, end + 1)]
            self.findings.add("AX131", (token.start, token.end), {"raw": raw}, edits=(edit,), title="Remove the space")
        elif token.flag == "junk":
            start, end = token.name_span[1], token.end - 1
            name = self.text[start:end].strip()
            args: dict[str, str | int] = {"name": name, "tag": f"/{token.name}"}
            self.findings.add("AX136", (start, end), args, edits=(Edit(start, end, ""),), title="Remove the attribute")
        elif token.flag in ("bracket", "bracket-value"):
            end = token.name_span[1]
            edit = Edit(end, token.end if token.flag == "bracket-value" else end, ">")
            # ``<a/<b``: with its bracket the tag would close itself.
            slash = token.name.endswith("/")
            args = {"name": token.name}
            self.findings.add("AX130", (token.start, end), args, edits=(edit,), title="Insert >", error=slash)

    def forget_junk(self, element: Element) -> None:
        """Takes back the finding about words behind the name in a closing tag: they belong to the name (AX134)."""
        diagnostics = self.findings.list
        at = next((k for k in range(len(diagnostics) - 1, -1, -1) if diagnostics[k].code == "AX136"), None)
        if at is not None and element.end <= diagnostics[at].span[0] < element.outer_end:
            del diagnostics[at]

    def check_name(self, token: Token, *, tool: bool) -> None:
        """Reports what had to be dropped from a name, and names that XML would not take (ruling 13)."""
        start, end = token.name_span
        self.check_raw_name(token.name, start, end)

    def check_raw_name(self, name: str, start: int, end: int) -> None:
        """As ``check_name``, for a name that stands at ``start:end``."""
        raw = self.text[start:end]
        if len(name) > MAX_NAME_CHARS:
            self.findings.add(
                "TC022", (start, end), {"limit": MAX_NAME_CHARS, "what": "characters in a name"}, error=True
            )
            return
        if raw == name and _XML_NAME.fullmatch(name) is not None and name.isascii():
            return
        invisible = next((at for at in range(start, end) if self.text[at] in IN_TAGS), None)
        edits = (Edit(start, end, name),)
        # What is left may be no name of a tag, but a closing tag, say: then there is no one reading (ruling 1).
        lost = raw != name and not whole_name(name)
        if invisible is not None:
            code = f"{ord(self.text[invisible]):04X}"
            self.findings.add(
                "TC013",
                (start, end),
                {"hex": code, "where": "a name"},
                edits=edits,
                title="Remove the character",
                error=lost,
            )
        if any(char in DECORATION for char in raw):
            edits = () if invisible else edits
            self.findings.add("AX153", (start, end), edits=edits, title="Remove the quotes", error=lost)
        if not name.isascii() and _MIXED_SCRIPT.match(name) is not None:
            self.findings.add("TC016", (start, end), {"raw": name, "script": "Cyrillic or Greek"}, repair=False)
        if _XML_NAME.fullmatch(name) is None:
            self.findings.add("AX133", (start, end), {"name": name}, repair=False)

    # Text

    def _text(
        self,
        element: Element,
        name: str,
        *,
        declared: bool = False,
        mixed: bool = False,
        unclear: bool = False,
        plain: bool = False,
    ) -> Value:
        """The content as text: entities decoded once, CDATA and comments as they stand.

        ``plain``: no value of a parameter but a name or JSON, in which a comment is nothing.
        """
        text = self.text
        if not plain:
            self._check_edges(element, name)
        bare = element.closed and element.a == element.b and text.find("<", element.start, element.end) < 0
        if bare and text.find("&", element.start, element.end) < 0:
            # Nothing to decode and nothing to report: most values, also in a block that has a fault elsewhere.
            start, end = trim_layout(text, element.start, element.end)
            if not (text.startswith(SECTION_LIKE, start, end) and text.endswith("]]>", start, end)):
                return Value("text", (start, end), (Piece(start, end),) if start < end else ())
        content = self._content(element, plain=plain)
        sections, comments = content.sections, content.comments
        if comments and not content.markup:
            if plain:
                return self._text_without_comments(element, name, comments, sections)
            if not (declared or mixed or content.beside or sections):
                return self._left_out(element, name, comments)
            self._check_comments(element, comments)
        if sections and not (content.beside or content.markup or comments):
            for section in sections:
                self._check_section(section, name)
            start, end = self._section_edges(sections)
            return Value("text", (start, end), tuple(clip(content.literal.pieces, start, end)), cdata=True)
        trim = trim_layout if element.closed else trim_blank
        start, end = trim(text, element.start, element.end)
        if not sections and text.startswith(("!", "[", "<", "＜"), start):
            like = _LIKE_CDATA.match(text, start, end)
            if like is not None:
                return self._like_section(like, start, end, name)
        value = Value("text", (start, end), tuple(clip(content.decoded.pieces, start, end)))
        self._report_text(
            element,
            value,
            content.decoded,
            name,
            content.raw,
            content.own,
            sections,
            content.balanced,
            declared=declared,
            mixed=mixed,
            unclear=unclear,
        )
        return value

    def _check_edges(self, element: Element, name: str) -> None:
        """Reports pieces of tags and of section marks at the edges of a text (ruling 67)."""
        text, tag = self.text, element.token
        start, end = element.start, element.end
        raw = text[tag.name_span[0] : tag.name_span[1]]
        lead = text[start : start + 16].lstrip()[:1]
        is_plain = element.a == element.b and (lead or start == end) and lead not in "<![>"
        tags = (text[tag.start : start], text[end : element.outer_end])
        if is_plain and tags == (f"<{raw}>", f"</{raw}>") and not text.endswith("<", start, end):
            # Most values: correct tags, and nothing like a mark beside them.
            return
        if tag.kind != "self" and tag.name == raw:
            opening = text[tag.start : start] if tag.attributes is not None else f"<{raw}>"
            if tag.attributes is not None and element.key in INPUT_ALIASES:
                opening = f'<{raw} name="{name}">'
            doubled = text[start : start + 1] == ">" and is_doubled(text, start, end)
            self._slipped(slip_before(text, (start, end), (tag.start, start), (opening,), doubled=doubled), name)
            last = end
            if end == element.outer_end:
                # Ended by a tag that is not its own: blanks before that tag are layout.
                last = start + len(text[start:end].rstrip())
            closing = (last, last if end == element.outer_end else element.outer_end)
            self._slipped(slip_behind(text, (start, closing[0]), closing, (f"</{raw}>",)), name)
        first, last = trim_blank(text, start, end)
        sections = [token for token in self.tokens[element.a : element.b] if token.kind == "cdata"]
        if (not sections or first < sections[0].start) and _LIKE_CDATA.match(text, first, last) is None:
            self._slipped(slip_before(text, (first, last), (first, first), ("<![CDATA[",)), name)
        if not sections:
            return
        head, tail = sections[0], sections[-1]
        if tail.flag == "unterminated":
            ending = (tail.content[1], tail.end)
            self._slipped(slip_behind(text, tail.content, ending, ("]]>",), doubled=False), name)
        for a, b, mark in ((start, head.start, "<![CDATA["), (tail.end, end, "]]>")):
            if b - a == 1 and not text[a].isspace():
                self._slipped(Slip((a, b), mark), name)

    def _slipped(self, slip: Slip | None, name: str) -> None:
        if slip is None:
            return
        args: dict[str, str | int] = {"raw": self.text[slice(*slip.span)], "param": name, "mark": slip.mark}
        edits = (Edit(*slip.span, slip.mark),)
        self.findings.add("TC062", slip.span, args, edits=edits, title=f"Write {slip.mark}", error=True)

    def _content(self, element: Element, *, plain: bool) -> _Content:
        """What the tokens inside an element are, and their text decoded; a comment is text unless ``plain``."""
        text = self.text
        decoded = Decoded()
        literal = Decoded()
        sections: list[Token] = []
        comments: list[Token] = []
        raw: Token | None = None
        own: Token | None = None
        balanced = 0
        beside = False
        at = element.start
        inner = [self.tokens[k] for k in range(element.a, element.b) if self.tokens[k].start >= element.start]
        for token in inner:
            if token.start < at or token.start >= element.end:
                continue
            if token.kind == "cdata":
                beside = beside or bool(text[at : token.start].strip())
                decoded.text(text, at, token.start)
                decoded.literal(*token.content)
                literal.literal(*token.content)
                sections.append(token)
                at = token.end
            elif token.kind == "comment" and not token.flag:
                comments.append(token)
                if not plain:
                    beside = beside or bool(text[at : token.start].strip())
                    decoded.text(text, at, token.start)
                    decoded.literal(token.start, token.end)
                    at = token.end
            elif token.flag in ("own", "own-unclear") and token.raw:
                own = own or token
            elif token.kind == "self" or (token.partner >= 0 and not token.raw):
                balanced += 1
            elif raw is None:
                raw = token
        beside = beside or bool(text[at : element.end].strip())
        decoded.text(text, at, element.end)
        return _Content(decoded, literal, sections, comments, raw, own, balanced, beside)

    def _like_section(self, mark: re.Match[str], start: int, end: int, name: str) -> Value:
        """A value in marks that are nearly those of a section: nobody means them as text (AX122)."""
        a, b = mark.span("body")
        body = (Piece(a, b),) if a < b else ()
        wrap = (Edit(start, end, as_cdata(self.text[a:b])),) if b - a <= _MAX_FIX else ()
        self.findings.forget_pairing(start, end)
        args: dict[str, str | int] = {"raw": self.text[start:a], "param": name}
        self.findings.add("AX122", (start, a), args, edits=wrap, title="Write <![CDATA[")
        return Value("text", (a, b), body, cdata=True)

    def _left_out(self, element: Element, name: str, comments: list[Token]) -> Value:
        """Comments with no text beside them, where no schema takes text: they are left out, and nothing stays (ruling 17)."""
        self._check_comments(element, comments)
        for token in comments:
            self._leave_out(token, name)
        return Value("text", (element.start, element.start))

    def _leave_out(self, token: Token, name: str) -> None:
        edits = (Edit(token.start, token.end, ""),)
        args: dict[str, str | int] = {"param": name}
        self.findings.add(
            "AX127", (token.start, token.end), args, edits=edits, title="Remove the comment", unsafe=True, repair=False
        )
        self.findings.comments.append(_comment(self.text, token))

    def _check_comments(self, element: Element, comments: list[Token]) -> None:
        """A comment that holds the tag which closes its element: whether the value ended there is unclear (AX123)."""
        for token in comments:
            if _closes(self.text[token.start : token.end], element.key):
                self.findings.add("AX123", (token.start, token.end), error=True)

    def _text_without_comments(
        self, element: Element, name: str, comments: list[Token], sections: list[Token]
    ) -> Value:
        """A name or JSON with comments in it: they are no part of it; blanks beside one at an edge go with it."""
        text = self.text
        decoded = Decoded()
        literal = Decoded()
        edges: list[Span] = []
        plain = False
        at = element.start
        for token in sorted([*comments, *sections], key=_start):
            edges.append((at, token.start))
            plain = plain or bool(text[at : token.start].strip())
            decoded.text(text, at, token.start)
            if token.kind == "cdata":
                decoded.literal(*token.content)
                literal.literal(*token.content)
                edges.append(token.content)
            else:
                self.findings.comments.append(_comment(text, token))
                if f"</{element.key}" in text[token.start : token.end].lower():
                    self.findings.add("AX123", (token.start, token.end), error=True)
            at = token.end
        edges.append((at, element.end))
        decoded.text(text, at, element.end)
        if sections and not plain and not text[at : element.end].strip():
            for section in sections:
                self._check_section(section, name)
            start, end = self._section_edges(sections)
            return Value("text", (start, end), tuple(clip(literal.pieces, start, end)), cdata=True)
        full = [edge for edge in edges if text[edge[0] : edge[1]].strip()]
        if not full:
            return Value("text", (element.start, element.start))
        if edges[0] == full[0]:
            start = trim_layout(text, element.start, full[0][1])[0]
        else:
            start = trim_blank(text, *full[0])[0]
        if edges[-1] == full[-1]:
            end = trim_layout(text, full[-1][0], element.end)[1]
        else:
            end = trim_blank(text, *full[-1])[1]
        value = Value("text", (start, end), tuple(clip(decoded.pieces, start, end)))
        self._report_text(element, value, decoded, name, None, None, sections, 0, declared=False, mixed=False)
        return value

    def _section_edges(self, sections: list[Token]) -> Span:
        first, last = sections[0].content, sections[-1].content
        if len(sections) == 1:
            return trim_cdata(self.text, *first)
        start = trim_cdata(self.text, *first)[0]
        return start, trim_tail(self.text, *last)

    def _check_section(self, token: Token, name: str, wrap: tuple[Edit, ...] | None = None) -> bool:
        """Reports a CDATA section whose marks are off, with ``wrap`` as its fix if given; True when it was reported."""
        start, end = token.content
        span, edit, title = (token.start, start), Edit(end, end, ""), "Write the value as one CDATA section"
        args: dict[str, str | int] = {"param": name}
        if token.flag == "unterminated":
            inline = wrap is not None
            if inline or _HALF_END.search(self.text, start, min(end, start + _MAX_FIX)) is not None:
                # Behind other text it may be a word about sections.
                self.findings.add("AX120", span, args, error=True)
                return True
            code, edit, title = "AX120", Edit(end, token.end, "]]>"), "Insert ]]>"
            self._check_spelling(token, wrap)
        elif token.flag == "early":
            body = self.text[start:end].replace("]]>", "]]]]><![CDATA[>")
            code, edit, title = "AX121", Edit(start, end, body), "Split the section"
        elif token.flag == "spelling":
            args = {"raw": self.text[token.start : start]}
            code, edit, title = "AX122", Edit(token.start, start, "<![CDATA["), "Write <![CDATA["
        elif token.flag == "doubtful":
            # Closing tags, then the start of another section: a section that was never closed, or a text about markup.
            self.findings.add("AX120", span, args, error=True)
            return True
        else:
            return False
        self.findings.add(code, span, args, edits=(edit,) if wrap is None else wrap, title=title)
        return True

    def _check_spelling(self, token: Token, wrap: tuple[Edit, ...] | None) -> None:
        """Reports the opening mark of a section that is also never closed."""
        start, raw = token.content[0], self.text[token.start : token.content[0]]
        if raw != "<![CDATA[":
            edits = (Edit(token.start, start, "<![CDATA["),) if wrap is None else ()
            self.findings.add("AX122", (token.start, start), {"raw": raw}, edits=edits, title="Write <![CDATA[")

    def _report_text(
        self,
        element: Element,
        value: Value,
        decoded: Decoded,
        name: str,
        raw: Token | None,
        own: Token | None,
        sections: list[Token],
        balanced: int,
        *,
        declared: bool,
        mixed: bool,
        unclear: bool = False,
    ) -> None:
        text, add = self.text, self.findings.add
        start, end = value.span
        stray = self._stray_bracket(element, sections)
        if raw is not None or own is not None or balanced:
            self.findings.forget_pairing(element.start, element.end)
        wrap: tuple[Edit, ...] = ()
        if end - start <= _MAX_FIX and not unclear:
            wrap = (Edit(start, end, as_cdata(value.text(text))),)
        title = "Wrap the value in CDATA"
        if sections and text.find("]]>", max(start, sections[-1].end), end) >= 0:
            # An end that belongs to no section: the last one may reach to it, or not.
            add("AX121", (sections[-1].start, end), {"param": name}, edits=wrap, title=title, error=True)
            wrap = ()
        for section in sections:
            if self._check_section(section, name, wrap):
                wrap = ()
        if own is not None:
            self._report_own(element, own, wrap)
            wrap = ()
        if raw is not None or stray >= 0:
            at = min(x for x in (raw.start if raw is not None else end, stray if stray >= 0 else end))
            # A tag that is never closed and stands where the parameters stand: the next one, or a line of this value?
            column = indent(text, raw.start) if raw is not None and raw.kind == "open" else -1
            unclear = column >= 0 and column == indent(text, element.open)
            add("AX110", (at, at + 1), {"char": "<", "param": name}, edits=wrap, title=title, error=unclear)
            wrap = ()
        elif balanced and declared:
            add("AX115", (start, end), {"param": name}, edits=wrap, title=title, repair=False)
            wrap = ()
        elif balanced and mixed:
            add("AX114", (start, end), {"param": name}, edits=wrap, title=title)
            wrap = ()
        inside = [at for at in decoded.raw_ampersands if start <= at < end]
        if inside:
            if wrap and len(inside) <= _MAX_ESCAPES:
                wrap = tuple(Edit(at, at + 1, "&amp;") for at in inside)
            add("AX111", (inside[0], inside[0] + 1), {"param": name}, edits=wrap, title="Escape &")
        seen: set[str] = set()
        for span, entity in decoded.undefined:
            if entity in seen or not start <= span[0] < end:
                continue
            seen.add(entity)
            char = html5.get(f"{entity};")
            edits = (Edit(span[0], span[1], char),) if char is not None and "<" not in char else ()
            add("AX113", span, {"name": entity}, edits=edits, title="Write the character", unsafe=True)

    def _report_own(self, element: Element, own: Token, wrap: tuple[Edit, ...]) -> None:
        """Reports a value that holds its own closing tag."""
        text, span, args = self.text, (own.start, own.end), {"name": own.name}
        # Behind it the next element of the name may begin, with a slip in its tag (ruling 67).
        follows = slip_before(text, (own.end, element.end), (own.end, own.end), (f"<{element.name}>",)) is not None
        if own.flag == "own" and not follows:
            self.findings.add("AX112", span, {**args}, edits=wrap, title="Wrap the value in CDATA")
        else:
            self.findings.add("AX112", span, {**args}, error=True)

    def _stray_bracket(self, element: Element, sections: list[Token]) -> int:
        """Offset of the first ``<`` that begins no tag, or -1."""
        at = element.start
        for k in range(element.a, element.b):
            token = self.tokens[k]
            if token.start < at:
                continue
            position = self.text.find("<", at, min(token.start, element.end))
            if position >= 0:
                return position
            at = token.end
        return self.text.find("<", at, element.end) if at < element.end else -1


def join(before: Value, value: Value) -> Value:
    """Two values of one name: a list (ruling 15). One that its schema made a list of one gives its item."""
    span = (before.span[0], max(before.span[1], value.span[1]))
    items = value.items if value.kind == "list" and value.repeated else [value]
    if before.kind == "list" and before.repeated:
        before.items.extend(items)
        before.span = span
        return before
    return Value("list", span, items=[before, *items], repeated=True)


def _names(schema: dict[str, Json]) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _closes(comment: str, key: str) -> bool:
    """Whether a comment holds the tag that closes an element."""
    return any(part.lstrip().startswith((">", "-->")) for part in comment.lower().split(f"</{key}")[1:])


def _start(token: Token) -> int:
    return token.start


def _comment(text: str, token: Token) -> Comment:
    return Comment((token.start, token.end), text[token.content[0] : token.content[1]].strip())
