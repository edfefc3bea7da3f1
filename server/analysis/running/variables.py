"""What stands in ``{{…}}`` in the arguments of a call that a person runs: a variable of an environment, an earlier result, a secret.

Only editors and ``tamis test`` fill arguments in; a model's text is never filled, so these marks are text there. What is put in is never looked
through again, and in a value that is one JSON document it stays inside the value that it stands in. Secrets are only named here: whoever runs
the call brings their values. Must not read, run or ask anything.
"""

from __future__ import annotations

import functools
import json
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import date, time
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.model import Block, Call, Diag, Document, Edit, Fix, Json, Piece, Value
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import index_in, is_list, is_object
from tamis.protocols.suggest import best, hint
from tamis.server.analysis.describe import code
from tamis.server.analysis.kinds import holds_calls

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.runtime.settings.config import Settings

SHARED = "shared"
"""The environment whose variables hold in every other one too."""
SECRET = "secret:"
HIDDEN = "***"
MAX_FILLED_CHARS = 16 * 1024 * 1024
"""More is not put into one call."""
_REFERENCE = lazy(r"(\\?)\{\{[ \t]*(secret:[A-Za-z_]\w*|[A-Za-z_][\w-]*(?:\.[\w-]+|\[\d+\])*)[ \t]*\}\}")
_NAME = lazy(r"(?:<!--[ \t]*|^[ \t]*(?:\#|//)[ \t]*)tamis-name:[ \t]*([^\s>]*)[ \t]*(?:-->)?[ \t]*$", re.M)
_BESIDE = lazy(r"[ \t]*(?:$|<!--[ \t]*tamis-|(?:\#|//)[ \t]*tamis-|(?:`{3,}|~{3,}))")
_QUOTE = lazy(r'(?<!\\)(?:\\\\)*"')
_GOOD_NAME = lazy(r"[A-Za-z_][\w-]*")
MAX_LINES_ABOVE = 8
MAX_CHARS_ABOVE = 4_096
MAX_NAME_CHARS = 64
MAX_NAMES = 500
"""More are not offered."""
_PART = lazy(r"[\w-]+")
_KEPT = "variables"


class Named(msgspec.Struct, frozen=True):
    """A block with the name that a comment above it gives; ``span`` is the name."""

    name: str
    span: Span
    block: int


class Variables(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What references may lead to. ``results`` holds what named blocks gave last; ``named`` are all names of the document, in order."""

    environment: str = "default"
    values: Mapping[str, Any] = {}
    origins: Mapping[str, str] = {}
    """The environment that each variable is from."""
    environments: tuple[str, ...] = ()
    named: tuple[Named, ...] = ()
    results: Mapping[str, Any] = {}
    secrets: Mapping[str, str] = {}

    @property
    def in_use(self) -> bool:
        """Whether marks are read at all: where nobody declares anything, a template's ``{{name}}`` is text as ever."""
        return bool(self.environments or self.named)

    @functools.cached_property
    def by_name(self) -> Mapping[str, Named]:
        """The block that each name means: the first that has it."""
        return {variable.name: variable for variable in reversed(self.named)}


class Reference(msgspec.Struct, frozen=True):
    """One ``{{…}}``: where it stands in the source, what it names, and whether it is all of its value."""

    span: Span
    name: str
    parameter: str
    whole: bool

    @property
    def secret(self) -> str:
        """The secret that it names; empty where it names none."""
        return self.name.removeprefix(SECRET) if self.name.startswith(SECRET) else ""

    @property
    def head(self) -> str:
        """The first name of its path: the variable or the block."""
        return re.split(r"[.\[]", self.name, maxsplit=1)[0]


class Filled(msgspec.Struct, frozen=True):
    """A call with its references put in. ``unknown`` are those that lead nowhere, ``open`` those whose values only a run has."""

    call: Call
    unknown: tuple[Reference, ...] = ()
    open: tuple[Reference, ...] = ()
    secrets: tuple[Reference, ...] = ()
    too_long: bool = False


def variables_of(settings: Settings | None, named: Sequence[Named] = ()) -> Variables:
    """The variables of the environment that the settings choose; those of ``shared`` hold too, where it does not say otherwise."""
    environments = settings.environments if settings is not None else {}
    chosen = settings.environment if settings is not None else "default"
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name in (SHARED, chosen):
        for key, value in environments.get(name, {}).items():
            values[key], origins[key] = _plain(value), name
    return Variables(
        environment=chosen, values=values, origins=origins, environments=tuple(environments), named=tuple(named)
    )


def _plain(value: Any) -> Any:
    """A TOML value as JSON has it: times as text."""
    if is_object(value):
        return {key: _plain(item) for key, item in value.items()}
    if is_list(value):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date | time) else value


def variables_in(snapshot: Snapshot) -> Variables:
    """Those of a document: of its folder's settings, with the names of its blocks; looked for once."""
    known: Variables | None = snapshot.__dict__.get(_KEPT)
    if known is None:
        known = variables_of(snapshot.settings.config, names_in(snapshot) if holds_calls(snapshot.kind) else ())
        snapshot.__dict__[_KEPT] = known
    return known


def names_in(snapshot: Snapshot) -> list[Named]:
    """The names that comments give to blocks, in the document's order; also those that are given twice or cannot be names."""
    return named_blocks(snapshot.document) if "tamis-name:" in snapshot.text else []


def named_blocks(document: Document) -> list[Named]:
    """The same of a text that was read."""
    if "tamis-name:" not in document.text:
        return []
    names: list[Named] = []
    for number, block in enumerate(document.blocks):
        heading = None if block.aside or not block.calls else _name_above(document.text, block.span[0])
        if heading is not None:
            names.append(Named(heading[0], heading[1], number))
    return names


def _name_above(text: str, at: int) -> tuple[str, Span] | None:
    """The name in the comments directly above an offset's line."""
    floor = max(0, at - MAX_CHARS_ABOVE)
    end = text.rfind("\n", floor, at)
    for _ in range(MAX_LINES_ABOVE):
        if end < 0:
            return None
        start = text.rfind("\n", floor, end) + 1
        if start == 0 and floor > 0:
            return None
        line = text[start:end].rstrip("\r")
        match = _NAME.search(line)
        if match is not None:
            return match[1], (start + match.start(1), start + match.end(1))
        if _BESIDE.match(line) is None:
            return None
        end = start - 1
    return None


def is_name(text: str) -> bool:
    """Whether a block can be called so."""
    return len(text) <= MAX_NAME_CHARS and _GOOD_NAME.fullmatch(text) is not None


def known_names(variables: Variables, block: int | None = None) -> dict[str, str]:
    """What a reference may name, each with a few words on it; of blocks those before ``block``."""
    descriptions = {
        f"{variable.name}.output": "the result of an earlier block"
        for variable in islice((one for one in variables.named if _is_before(one, block)), MAX_NAMES)
    }
    paths = dict(islice(_paths(variables.values), MAX_NAMES))
    return descriptions | {name: _shown(value) for name, value in paths.items()}


def _paths(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variables and what is below them, the outer ones first; what stands in lists has no name."""
    waiting = deque([("", values)])
    while waiting:
        above, here = waiting.popleft()
        for name, value in here.items():
            if _PART.fullmatch(name):
                yield above + name, value
                if is_object(value):
                    waiting.append((f"{above}{name}.", value))


def _is_before(named: Named, block: int | None) -> bool:
    return is_name(named.name) and (block is None or named.block < block)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def told(reference: Reference, variables: Variables, block: int) -> str:
    """A reference in a few words of Markdown: what it stands for and where that is from; never a secret's value."""
    if reference.secret:
        return f"The secret {code(reference.secret)}, which only a parameter marked `x-secret` is given. Its value is never shown."
    first = variables.by_name.get(reference.head)
    if first is not None and _is_before(first, block):
        return f"From the last result of the block {code(reference.head)} above."
    value = _walk(variables.values.get(reference.head, MISSING), reference.name)
    if value is MISSING or not variables.in_use:
        return ""
    return f"{code(value)}, the variable {code(reference.name)} of `environments.{variables.origins[reference.head]}`"


# Looking up


def look_up(reference: Reference, variables: Variables, block: int | None) -> Any:
    """What a reference leads to; ``MISSING`` where it leads nowhere, ``OPEN`` where only a run has it."""
    if reference.secret:
        return variables.secrets.get(reference.secret, OPEN)
    first = variables.by_name.get(reference.head)
    if first is not None:
        if not _is_before(first, block) or reference.name == reference.head:
            return MISSING
        if reference.head not in variables.results:
            return OPEN
        return _walk(variables.results[reference.head], reference.name)
    return _walk(variables.values.get(reference.head, MISSING), reference.name)


MISSING: Any = object()
OPEN: Any = object()


def _walk(value: Any, path: str) -> Any:
    for step in re.findall(r"\.([\w-]+)|\[(\d+)\]", path):
        name = step[0] or step[1]
        if is_object(value) and name in value:
            value = value[name]
        elif is_list(value) and (index := index_in(value, name)) >= 0:
            value = value[index]
        else:
            return MISSING
    return value


# Calls of texts


def references_in(decoded: str) -> Iterator[re.Match[str]]:
    """The references of a decoded text; the name is the second group. ``\\{{name}}`` is none."""
    return (match for match in _REFERENCE.finditer(decoded) if not match[1])


def references(call: Call, text: str) -> Iterator[Reference]:
    """The references in a call's arguments, by place."""
    for param in call.params:
        for _, value in param.value.walk():
            if value.kind != "text" or "{{" not in text[value.span[0] : value.span[1]]:
                continue
            decoded = Decoded(value, text)
            for match in references_in(decoded.text):
                whole = value is param.value and match.span() == (0, len(decoded.text))
                yield Reference(decoded.span(*match.span()), match[2], param.name, whole)


def reference_at(snapshot: Snapshot, offset: int) -> tuple[Reference, int] | None:
    """The reference under an offset, with the number of its block."""
    if "{{" not in snapshot.text[max(0, offset - 512) : offset + 2]:
        return None
    for number, block in enumerate(snapshot.document.blocks):
        if block.aside or not block.span[0] <= offset <= block.span[1]:
            continue
        for call in block.calls:
            for reference in references(call, snapshot.text):
                if reference.span[0] <= offset <= reference.span[1]:
                    return reference, number
    return None


def filled(call: Call, text: str, variables: Variables, block: int | None = None) -> Filled:
    """A call with everything put in that is known; what is not stays as it is written."""
    if not any("{{" in text[param.span[0] : param.span[1]] for param in call.params):
        return Filled(call)
    mentions = list(references(call, text))
    if not variables.in_use:
        mentions = [reference for reference in mentions if reference.secret]
    values = {reference.span: look_up(reference, variables, block) for reference in mentions}
    left = MAX_FILLED_CHARS
    for reference in mentions:
        value = values[reference.span]
        left -= len(_as_text(value)) if value is not MISSING and value is not OPEN else 0
        if left < 0:
            values[reference.span] = MISSING
    unknown = tuple(reference for reference in mentions if values[reference.span] is MISSING)
    waiting = tuple(reference for reference in mentions if values[reference.span] is OPEN)
    known = {span: value for span, value in values.items() if value is not MISSING and value is not OPEN}
    if known or variables.in_use:
        params = [
            msgspec.structs.replace(param, value=_filled_value(param.value, text, known)) for param in call.params
        ]
        call = msgspec.structs.replace(call, params=params)
    return Filled(
        call, unknown, waiting, tuple(reference for reference in mentions if reference.secret), too_long=left < 0
    )


def _filled_value(value: Value, text: str, known: Mapping[Span, Any]) -> Value:
    if value.kind == "list":
        return msgspec.structs.replace(value, items=[_filled_value(item, text, known) for item in value.items])
    if value.kind == "object":
        entries = {name: _filled_value(part, text, known) for name, part in value.entries.items()}
        return msgspec.structs.replace(value, entries=entries)
    if value.kind != "text" or "{{" not in text[value.span[0] : value.span[1]]:
        return value
    decoded = Decoded(value, text)
    strings = _in_strings(decoded.text)
    pieces: list[Piece] = []
    at = 0
    for match in _REFERENCE.finditer(decoded.text):
        span = decoded.span(*match.span())
        if match[1]:
            # `\{{name}}` is how the text `{{name}}` is written
            put = decoded.text[match.start() + 1 : match.end()]
        elif span in known:
            put = _as_text(known[span], None if strings is None else strings[match.start()])
        else:
            continue
        pieces += decoded.pieces(at, match.start())
        pieces.append(Piece(*span, put))
        at = match.end()
    if not pieces:
        return value
    return msgspec.structs.replace(value, pieces=(*pieces, *decoded.pieces(at, len(decoded.text))))


class Decoded:
    """A value's text, whose parts lead back to the source quickly however many pieces it has."""

    def __init__(self, value: Value, source: str) -> None:
        texts = [source[piece.start : piece.end] if piece.text is None else piece.text for piece in value.pieces]
        self.text = "".join(texts)
        self._pieces = value.pieces
        self._starts: list[int] = [0]
        for text in texts:
            self._starts.append(self._starts[-1] + len(text))

    def _at(self, offset: int) -> int:
        return min(bisect_right(self._starts, offset) - 1, len(self._pieces) - 1)

    def span(self, start: int, end: int) -> Span:
        """Where ``text[start:end]``, which is not empty, stands in the source."""
        first, last = self._at(start), self._at(end - 1)
        begin, stop = self._pieces[first], self._pieces[last]
        return (
            begin.start + (start - self._starts[first] if begin.text is None else 0),
            stop.start + end - self._starts[last] if stop.text is None else stop.end,
        )

    def pieces(self, start: int, end: int) -> Iterator[Piece]:
        """The pieces of ``text[start:end]``."""
        for number in range(self._at(start), self._at(end - 1) + 1) if start < end else ():
            piece, at = self._pieces[number], self._starts[number]
            first, last = max(start - at, 0), min(end, self._starts[number + 1]) - at
            if piece.text is None:
                yield Piece(piece.start + first, piece.start + last)
            else:
                yield Piece(piece.start, piece.end, piece.text[first:last])


def _in_strings(decoded: str) -> dict[int, bool] | None:
    """Of a text that is a JSON document once its references are values: which of these stand inside a string. None of any other text.

    What is put into a document stays inside the value that it stands in, whatever it holds.
    """
    if not decoded.lstrip().startswith(("{", "[")):
        return None
    inside, at = False, 0
    places: dict[int, bool] = {}
    parts: list[str] = []
    for match in _REFERENCE.finditer(decoded):
        if match[1]:
            continue
        part = decoded[at : match.start()]
        inside ^= len(_QUOTE.findall(part)) % 2 == 1
        places[match.start()] = inside
        parts += (part, "x" if inside else "0")
        at = match.end()
    whole = "".join((*parts, decoded[at:]))
    if not whole.lstrip().startswith(("{", "[")):
        return None
    try:
        msgspec.json.decode(whole.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return places


def _as_text(value: Any, in_string: bool | None = None) -> str:
    """A value as it is put into a text; ``in_string`` says of a JSON document where it stands there, None where the text is none."""
    if in_string is False:
        return json.dumps(value, ensure_ascii=False)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False)[1:-1] if in_string else text


# Values of manifests


def filled_json(value: Json, variables: Variables) -> tuple[Json, list[str]]:
    """A JSON value with its references put in, a whole one as the value that it names; and the names that lead nowhere."""
    unknown: list[str] = []

    def put(here: Any) -> Any:
        if is_object(here):
            return {key: put(item) for key, item in here.items()}
        if is_list(here):
            return [put(item) for item in here]
        return _filled_string(here, variables, unknown) if isinstance(here, str) and "{{" in here else here

    try:
        return put(value), unknown
    except RecursionError:
        return value, unknown


def _filled_string(text: str, variables: Variables, unknown: list[str]) -> Any:
    def named(match: re.Match[str]) -> Any:
        reference = Reference((0, 0), match[2], "", whole=False)
        if not variables.in_use and not reference.secret:
            return MISSING
        content = look_up(reference, variables, None)
        if content is MISSING or content is OPEN:
            unknown.append(match[2])
            return MISSING
        return content

    whole = _REFERENCE.fullmatch(text)
    if whole is not None and not whole[1]:
        filling = named(whole)
        return text if filling is MISSING else filling

    def put(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:] if variables.in_use else match[0]
        filling = named(match)
        return match[0] if filling is MISSING else _as_text(filling)

    return _REFERENCE.sub(put, text)


def secrets_of(value: Json) -> Iterator[tuple[tuple[str, ...], str, bool]]:
    """The secrets that a JSON value names: the names of the members above, the secret, and whether it is the whole of its text."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        path, here = stack.pop()
        if is_object(here):
            stack += [((*path, key), item) for key, item in here.items()]
        elif is_list(here):
            stack += [((*path, str(number)), item) for number, item in enumerate(here)]
        elif isinstance(here, str) and SECRET in here:
            for match in references_in(here):
                if match[2].startswith(SECRET):
                    yield path, match[2].removeprefix(SECRET), match.span() == (0, len(here))


def takes_secret(parameters: Mapping[str, Json] | None, name: str) -> bool:
    """Whether a parameter is marked as one that holds a secret."""
    properties = (parameters or {}).get("properties")
    schema = properties.get(name) if is_object(properties) else None
    return is_object(schema) and schema.get("x-secret") is True


# Findings


def reference_findings(snapshot: Snapshot, variables: Variables) -> list[Diag]:
    """What is wrong with the references and the names of a text."""
    diagnostics = _of_names(variables)
    for number, block in enumerate(snapshot.document.blocks):
        if block.aside or "{{" not in snapshot.text[block.span[0] : block.span[1]]:
            continue
        for call in block.calls:
            result = filled(call, snapshot.text, variables, number)
            found = [
                _of_unknown(reference, variables, number, too_long=result.too_long) for reference in result.unknown
            ]
            # while the folder's settings are still read, nobody knows which variables there are
            diagnostics += [diag for diag in found if diag.code != "VA470" or snapshot.settings.config is not None]
            diagnostics += _of_secrets(snapshot, call, result.secrets)
    return diagnostics


def example_references(snapshot: Snapshot, variables: Variables) -> list[tuple[Span, Diag | None]]:
    """The texts with references in the inputs of a manifest's examples, each with what is wrong with it."""
    root = snapshot.manifest.tree.root
    examples = root.get("examples") if root is not None and root.kind == "object" else None
    example_references: list[tuple[Span, Diag | None]] = []
    for example in examples.items if examples is not None and examples.kind == "array" else ():
        stack = [example.get("input")] if example.kind == "object" else []
        while stack:
            node = stack.pop()
            if node is None:
                continue
            if node.kind == "string" and isinstance(node.value, str) and "{{" in node.value:
                example_references += _of_example(node.span, node.value, variables)
            stack += [member.value for member in node.members] + node.items
    return example_references


def _of_example(span: Span, text: str, variables: Variables) -> Iterator[tuple[Span, Diag | None]]:
    names = [match[2] for match in references_in(text)]
    if not variables.in_use:
        names = [name for name in names if name.startswith(SECRET)]
    unknown = [name for name in filled_json(text, variables)[1] if not name.startswith(SECRET)]
    if not names:
        return
    diag = None
    if unknown:
        args: dict[str, str | int] = {"name": unknown[0], "environment": variables.environment}
        diag = Diag("VA470", span, {**args, "hint": _hint(variables, best(unknown[0], known_names(variables)))})
    yield span, diag


def _of_names(variables: Variables) -> list[Diag]:
    diagnostics: list[Diag] = []
    seen: set[str] = set()
    for variable in variables.named:
        if not is_name(variable.name):
            why = f"a name begins with a letter and holds letters, digits, '_' and '-', at most {MAX_NAME_CHARS}"
            diagnostics.append(Diag("VA473", variable.span, {"name": variable.name[:MAX_NAME_CHARS], "why": why}))
        elif variable.name in seen:
            diagnostics.append(
                Diag("VA473", variable.span, {"name": variable.name, "why": "an earlier block has it already"})
            )
        seen.add(variable.name)
    return diagnostics


def _of_unknown(reference: Reference, variables: Variables, block: int, *, too_long: bool) -> Diag:
    if too_long:
        why = f"; all that is put in here has more than {MAX_FILLED_CHARS} characters"
        return Diag(
            "VA470", reference.span, {"name": reference.name, "environment": variables.environment, "hint": why}
        )
    if reference.head in variables.by_name:
        why = "does not stand before this one"
        if reference.name == reference.head:
            why = f"gives a result: write {reference.head}.output"
        return Diag("VA471", reference.span, {"name": reference.head, "why": why})
    near = best(reference.name, known_names(variables, block))
    if near is None:
        fix = Fix("Write it as text: \\{{", (Edit(reference.span[0], reference.span[0], "\\"),), "unsafe")
    else:
        fix = Fix(f"Change to '{near}'", (Edit(*reference.span, "{{" + near + "}}"),), "unsafe")
    args: dict[str, str | int] = {
        "name": reference.name,
        "environment": variables.environment,
        "hint": _hint(variables, near),
    }
    return Diag("VA470", reference.span, args, fix=fix)


def _hint(variables: Variables, near: str | None) -> str:
    """What may be meant instead of a name that is no variable; first that the chosen environment is none."""
    chosen = variables.environment
    if near is None and chosen not in (*variables.environments, "default"):
        return f"; no environment has that name{hint(best(chosen, variables.environments))}"
    return hint(near)


def _of_secrets(snapshot: Snapshot, call: Call, secrets: Sequence[Reference]) -> list[Diag]:
    tool = snapshot.tool(call.tool_id, call.protocol) if secrets else None
    if tool is None:
        return []
    parameters = tool.manifest.parameters
    return [
        Diag("VA472", secret.span, {"name": secret.secret, "p": secret.parameter})
        for secret in secrets
        if not (secret.whole and takes_secret(parameters, secret.parameter))
    ]


def needed(block: Block, text: str, variables: Variables) -> list[Named]:
    """The named blocks whose results a block uses, in the order of the document, without those that these use in turn."""
    heads = {reference.head for call in block.calls for reference in references(call, text) if not reference.secret}
    found = (variables.by_name.get(head) for head in heads)
    return sorted((variable for variable in found if variable is not None), key=lambda variable: variable.block)


def chain_of(snapshot: Snapshot, block: int, variables: Variables) -> list[int]:
    """The numbers of all blocks that have to run for one, in the order of the document, itself the last; alone where it uses none."""
    blocks, chosen, waiting = snapshot.document.blocks, {block}, [block]
    while waiting:
        number = waiting.pop()
        for variable in needed(blocks[number], snapshot.text, variables):
            if variable.block < number and variable.block not in chosen:
                chosen.add(variable.block)
                waiting.append(variable.block)
    return sorted(chosen)


def result_of(status: str, output: Any) -> dict[str, Any]:
    """A finished block as references see it: ``name.output`` and ``name.status``."""
    return cast(
        "dict[str, Any]", {"status": status} if output is msgspec.UNSET else {"status": status, "output": output}
    )


# Ready to run


class NotReady(Exception):  # noqa: N818 (an outcome, not a fault)
    """A call cannot be run as it stands; the text says why."""


class NoResultYet(NotReady):
    """A call uses the result of the block of that name, which has no good one. What can be done about it, each face says itself."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the block '{name}' has no good result yet")
        self.name = name


SecretOf = Callable[[str, Any], Awaitable[tuple[str, tuple[str, ...]]]]
"""Gives the value of a secret for a tool, and how it may be spelled. Raises ``NotReady`` where the tool may not have it."""


async def ready_to_run(
    document: Document, block: int, variables: Variables, tool_of: Callable[[Call], Any], secret_of: SecretOf
) -> tuple[Document, tuple[str, ...]]:
    """The calls of a document of one block with everything put in, and the spellings of the secrets among it. Raises ``NotReady``.

    ``block`` is its number in the whole text. A secret is asked for only where its value can be put nowhere but into a marked parameter.
    """
    calls: list[Call] = []
    spellings: set[str] = set()
    for call in document.calls:
        secrets: dict[str, str] = {}
        named = [reference for reference in references(call, document.text) if reference.secret]
        tool = tool_of(call) if named else None
        for reference in named:
            if tool is None or not (reference.whole and takes_secret(tool.manifest.parameters, reference.parameter)):
                raise NotReady(
                    message(Diag("VA472", reference.span, {"name": reference.secret, "p": reference.parameter}))
                )
        for reference in named:
            secrets[reference.secret], spelled = await secret_of(reference.secret, tool)
            spellings.update(spelled)
        result = filled(call, document.text, msgspec.structs.replace(variables, secrets=secrets), block)
        for reference in result.unknown:
            path = reference.name
            if reference.head in variables.results and reference.head != path:
                raise NotReady(f"the last result of the block '{reference.head}' has no {path.partition('.')[2]}")
            raise NotReady(message(_of_unknown(reference, variables, block, too_long=result.too_long)))
        for reference in result.open:
            raise NoResultYet(reference.head)
        calls.append(result.call)
    kept = {id(old): new for old, new in zip(document.calls, calls, strict=True)}
    blocks = [
        msgspec.structs.replace(block, calls=[kept[id(call)] for call in block.calls]) for block in document.blocks
    ]
    return msgspec.structs.replace(document, blocks=blocks, calls=calls), tuple(
        sorted(spellings, key=len, reverse=True)
    )


async def example_ready(
    arguments: dict[str, Any], variables: Variables, tool: Any, secret_of: SecretOf
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The input of a manifest's example with everything put in, and the spellings of the secrets among it. Raises ``NotReady``."""
    secrets: dict[str, str] = {}
    spellings: set[str] = set()
    named = list(secrets_of(arguments))
    for path, name, whole in named:
        if not (whole and len(path) == 1 and takes_secret(tool.manifest.parameters, path[0])):
            raise NotReady(message(Diag("VA472", (0, 0), {"name": name, "p": ".".join(path)})))
    for _, name, _ in named:
        secrets[name], spelled = await secret_of(name, tool)
        spellings.update(spelled)
    args, unknown = filled_json(arguments, msgspec.structs.replace(variables, secrets=secrets))
    if unknown:
        near = hint(best(unknown[0], known_names(variables)))
        raise NotReady(
            message(Diag("VA470", (0, 0), {"name": unknown[0], "environment": variables.environment, "hint": near}))
        )
    return cast("dict[str, Any]", args), tuple(sorted(spellings, key=len, reverse=True))
