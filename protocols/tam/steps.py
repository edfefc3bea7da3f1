"""From the pairs of a TAM block to its calls: keys, steps, shared parameters, modifiers (seed 002 §3 and §4, rulings 20 to 27).

Must not know delimiters or markers.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.model import (
    MAX_NAME_CHARS,
    MAX_PROBLEMS,
    MAX_STEPS,
    Call,
    Edit,
    Fix,
    Param,
    Piece,
    ReadOptions,
    Value,
)
from tamis.protocols.pairs.walk import QUOTES, Findings, Lexed, Pair, delete, fix
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.suggest import best, hint
from tamis.protocols.tam.keys import Key, declared_names, is_canonical, parse_key, squash, suspicious_script, visible

TYPE_HINTS = ("text", "json", "base64")

_RESERVED = ("command", "on_error", "retry", "request_id", "comment")
_RESERVED_PREFIXES = ("common_", "uri_", "type_hint_")
_BLANKS = lazy(r"[ \t]*+")
_LINE_START = lazy(r"(?:\r\n|[\r\n])([ \t]*+)")
_WHOLE = lazy(r"[0-9]{1,9}")
_URI = lazy(r"[A-Za-z][A-Za-z0-9+.\-]*+:\S")
_VARIABLE = lazy(r"@\{([^{}\r\n]{0,80})\}")

Role = Literal["command", "param", "common", "on_error", "retry", "type_hint", "uri", "request_id", "comment"]


_NAMES_TOOL = frozenset(("tool", "toolname", "toolid", "functionname"))
"""What names the tool in VCP, ACTION and call JSON, as ``squash`` gives it."""


def _command_of(key: Key) -> str:
    """``command`` with the step of a key that was meant as one."""
    return "command" if key.number is None or squash(key.base) not in _NAMES_TOOL else f"command_{key.number}"


class _Field(msgspec.Struct):
    """A pair with its meaning; ``step`` None stands for the whole block."""

    index: int
    pair: Pair
    role: Role
    name: str
    step: int | None = None


def _for_block(name: str) -> bool:
    return name in ("request_id", "comment") or name.startswith("common_")


def trimmed(text: str, start: int, end: int) -> Span:
    """The span without blanks at both ends; an empty one stays where it is."""
    part = text[start:end]
    left = len(part) - len(part.lstrip())
    if left == len(part):
        return start, start
    return start + left, start + len(part.rstrip())


def value_of(text: str, pair: Pair, low: int) -> tuple[Value, bool]:
    """A value by ruling 21, and whether any indentation was removed.

    Continuation lines lose the indentation of the line on which their key stands, then both ends are trimmed. Each kept
    stretch is a piece of the source; nothing is unescaped.
    """
    start, end = trimmed(text, *pair.value)
    if start == end:
        return Value("text", (start, end)), False
    indent = _indentation(text, pair, low)
    if not indent:
        return Value("text", (start, end), (Piece(start, end),)), False
    pieces: list[Piece] = []
    at = start
    for match in _LINE_START.finditer(text, start, end):
        width = _shared(indent, match.group(1))
        if width:
            pieces.append(Piece(at, match.start(1)))
            at = match.start(1) + width
    removed = bool(pieces)
    pieces.append(Piece(at, end))
    return Value("text", (start, end), tuple(pieces)), removed


def _indentation(text: str, pair: Pair, low: int) -> str:
    """The blanks at the start of the line on which a pair's key stands.

    ``low`` is where the pair before it ends, or the block's opening marker begins: a line that began as another value has no
    indentation of its own.
    """
    line = max(text.rfind("\n", max(0, low - 1), pair.start), text.rfind("\r", max(0, low - 1), pair.start)) + 1
    if line == 0 and low > 0:
        return ""
    margin = _BLANKS.match(text, line, pair.start)
    return margin.group() if margin is not None else ""


def _shared(indent: str, blanks: str) -> int:
    width = 0
    for left, right in zip(indent, blanks, strict=False):
        if left != right:
            break
        width += 1
    return width


def make_calls(text: str, lexed: Lexed, start: int, options: ReadOptions) -> list[tuple[Call, set[int]]]:
    """The calls of a block in numeric order, each with the indices of the pairs that it was made of.

    ``start`` is where the line of the block's opening marker begins, as far as it is looked back.
    """
    return _Steps(text, lexed, start, options).calls()


class _Steps:
    """Working state of one block; ``make_calls`` is its only user."""

    def __init__(self, text: str, lexed: Lexed, start: int, options: ReadOptions) -> None:
        self.text = text
        self.lexed = lexed
        self.low = start
        self.found: Findings = lexed.findings
        self.tools = options.tools
        self.keys: list[Key] = [self.key(index, pair) for index, pair in enumerate(lexed.pairs)]
        self.commands: dict[int, _Field] = {}
        self.numbered = False
        self.declared: dict[int, dict[str, str]] = {}

    def calls(self) -> list[tuple[Call, set[int]]]:
        """Reads commands first, then places every other pair, then builds the calls."""
        self.find_commands()
        fields = [
            field
            for index, pair in enumerate(self.lexed.pairs)
            if (field := self.place(index, pair)) is not None and field.role != "comment"
        ]
        fields = self.last_wins(fields)
        if not self.commands:
            self.no_command()
            return []
        if len(self.commands) > MAX_STEPS:
            self.found.add("TC022", self.lexed.pairs[0].key, args={"limit": MAX_STEPS, "what": "steps"})
            return []
        order = list(self.commands)
        if order != sorted(order):
            listed = ", ".join(str(number) for number in sorted(order))
            first = self.commands[order[0]].pair.key
            self.found.add("TM233", first, args={"list": listed}, fix=self.reorder(fields), minor=True)
        return self.build(fields)

    def key(self, index: int, pair: Pair) -> Key:
        """A pair's key; underscores around a reserved one are emphasis, because no parameter is meant by it."""
        key = parse_key(visible(pair.raw))
        bare = key.normal.strip("_")
        if bare == key.normal or not bare or key.base in _RESERVED:
            return key
        inner = parse_key(bare)
        if inner.base not in _RESERVED and bare not in _RESERVED and not bare.startswith(_RESERVED_PREFIXES):
            return key
        # A quoted key is said already, as an error.
        if not pair.raw.startswith(QUOTES):
            change = self.rename(pair, bare)
            self.found.add("TM221", pair.key, index, args={"raw": pair.raw}, fix=change, repair=True)
        return inner

    def reorder(self, fields: list[_Field]) -> Fix | None:
        """The pairs written in the order in which they run; only where nothing else is to be said or moved along."""
        pairs = self.lexed.pairs
        if self.found.items or self.lexed.comments or len(pairs) > MAX_PROBLEMS:
            return None
        lows = [self.low, *(pair.end for pair in pairs)]
        if any(_indentation(self.text, pair, low) for pair, low in zip(pairs, lows, strict=False)):
            return None
        steps = {field.index: field.step or 0 for field in [*fields, *self.commands.values()]}
        ordered = sorted(range(len(pairs)), key=lambda i: steps.get(i, 0))
        edits = [
            Edit(pair.start, pair.end, self.text[pairs[i].start : pairs[i].end])
            for pair, i in zip(pairs, ordered, strict=True)
            if pair is not pairs[i]
        ]
        return fix("Write the steps in their order", *edits)

    # --- commands -------------------------------------------------------------------------------------------------

    def find_commands(self) -> None:
        plain: _Field | None = None
        for index, (pair, key) in enumerate(zip(self.lexed.pairs, self.keys, strict=True)):
            if key.base != "command" or (key.number is None and key.normal != "command"):
                continue
            step = 1 if key.number is None else key.number
            field = _Field(index, pair, "command", "command", step)
            if key.number is None:
                plain = plain or field
            else:
                self.numbered = True
            if not key.plain_number:
                self.found.add(
                    "TM234",
                    pair.key,
                    index,
                    args={"raw": pair.raw if key.bracketed else key.digits, "n": step},
                    fix=self.rename(pair, f"command_{step}"),
                    repair=True,
                )
            else:
                self.note_key(index, pair, key, field)
            if step in self.commands:
                args: dict[str, str | int] = {"_n": "" if key.number is None else f"_{step}"}
                self.found.add("TM203", pair.key, index, args=args, severity="error")
                continue
            self.commands[step] = field
            self.command_name(field)
        if plain is not None and self.numbered:
            fix = self.rename(plain.pair, "command_1") if self.commands.get(1) is plain else None
            self.found.add("TM204", plain.pair.key, plain.index, fix=fix, repair=True)

    def command_name(self, field: _Field) -> None:
        """What is to be said about a tool id, and what its schema declares."""
        start, end = trimmed(self.text, *field.pair.value)
        name = self.text[start:end]
        if not visible(name):
            self.found.add("TM202", (field.pair.start, field.pair.end), field.index, severity="error")
            return
        if len(name) > MAX_NAME_CHARS:
            self.found.add("TC021", (start, end), field.index, args={"limit": MAX_NAME_CHARS})
        if script := suspicious_script(name):
            self.found.add("TC016", (start, end), field.index, args={"raw": name, "script": script}, repair=True)
        tool = self.tools.get(name)
        if tool is not None and field.step is not None:
            self.declared[field.step] = declared_names(tool.properties)

    # --- keys -----------------------------------------------------------------------------------------------------

    def place(self, index: int, pair: Pair) -> _Field | None:
        """What one pair means, or None when it is dropped (with a finding)."""
        key = self.keys[index]
        if not key.normal:
            if pair.raw.strip():
                self.found.add("TM224", pair.key, index, args={"raw": pair.raw})
            else:
                self.found.add("TC061", (pair.start, pair.end), index, severity="warning")
            return None
        if key.base == "command" and (key.number is not None or key.normal == "command"):
            return _Field(index, pair, "command", "command")
        field = self.whole_block(index, pair, key) or self.step_field(index, pair, key)
        if field is not None:
            self.note_key(index, pair, key, field)
        return field

    def whole_block(self, index: int, pair: Pair, key: Key) -> _Field | None:
        """Fields of the whole block: metadata and shared parameters."""
        normal = key.normal
        if normal == "request_id":
            return _Field(index, pair, "request_id", normal)
        if normal == "comment" and self.declared_name(None, normal) is None:
            return _Field(index, pair, "comment", normal)
        if normal.startswith("common_") and len(normal) > len("common_") and self.declared_name(None, normal) is None:
            name = normal.removeprefix("common_")
            return _Field(index, pair, "common", self.declared_name(None, name) or name)
        return None

    def step_field(self, index: int, pair: Pair, key: Key) -> _Field | None:
        """A field of one step: which step, by ruling 20, and which role."""
        step: int | None = None
        name = key.normal
        modifier = key.base in ("on_error", "retry")
        if key.number is not None:
            number = key.number
            known = number in self.commands
            if known and (modifier or not self.belongs_to_name(number, key)):
                step, name = number, key.base
            elif modifier or (not known and self.base_declared(key)) or (not key.glued and self.numbered):
                self.found.add(
                    "TM230",
                    (pair.start, pair.end),
                    index,
                    args={"key": pair.raw, "n": number},
                    fix=fix("Remove it", delete(pair.start, pair.end), unsafe=True),
                )
                return None
        if step is not None:
            if not key.plain_number:
                self.found.add(
                    "TM234",
                    pair.key,
                    index,
                    args={"raw": pair.raw if key.bracketed else key.digits, "n": step},
                    fix=self.rename(pair, f"{name}_{step}"),
                    repair=True,
                )
            if not self.numbered:
                self.found.add(
                    "TM232",
                    pair.key,
                    index,
                    args={"key": pair.raw},
                    severity="hint",
                    fix=self.rename(pair, name, unsafe=parse_key(name).number is not None),
                    minor=True,
                )
        else:
            step = self.only_step(index, pair, name)
            if step is None:
                return None
        return self.role(index, pair, step, name)

    def belongs_to_name(self, number: int, key: Key) -> bool:
        """A declared name that ends with the number is that name, unless what stands before it is declared as well."""
        declared = self.declared.get(number) or (self.declared.get(1) if not self.numbered else None)
        if not declared:
            return False
        return squash(key.normal) in declared and squash(key.base) not in declared

    def base_declared(self, key: Key) -> bool:
        base, whole = squash(key.base), squash(key.normal)
        return any(base in names and whole not in names for names in self.declared.values())

    def declared_name(self, step: int | None, name: str) -> str | None:
        """The declared spelling of a name, in one step's tool or in any."""
        wanted = squash(name)
        if step is not None:
            return self.declared.get(step, {}).get(wanted)
        return next((names[wanted] for names in self.declared.values() if wanted in names), None)

    def only_step(self, index: int, pair: Pair, name: str) -> int | None:
        """The step of a parameter without number (ruling 23)."""
        if not self.commands:
            return None
        if len(self.commands) > 1:
            self.found.add(
                "TM231",
                pair.key,
                index,
                args={
                    "key": pair.raw,
                    "policy": f"the block has several: write common_{name} for all of them, or {name}_N for step N",
                },
                severity="error",
                fix=self.rename(pair, f"common_{name}", unsafe=True),
            )
            return None
        step = next(iter(self.commands))
        if self.numbered:
            self.found.add(
                "TM231",
                pair.key,
                index,
                args={"key": pair.raw, "policy": f"taken for step {step}"},
                fix=self.rename(pair, f"{name}_{step}"),
                repair=True,
            )
        return step

    def role(self, index: int, pair: Pair, step: int, name: str) -> _Field:
        if name == "on_error" or name == "retry":
            return _Field(index, pair, name, name, step)
        if (declared := self.declared_name(step, name)) is not None:
            return _Field(index, pair, "param", declared, step)
        for role in ("type_hint", "uri"):
            rest = name.removeprefix(role + "_")
            if rest != name and rest:
                return _Field(index, pair, role, self.declared_name(step, rest) or rest, step)
        return _Field(index, pair, "param", name, step)

    def note_key(self, index: int, pair: Pair, key: Key, field: _Field) -> None:
        if not pair.raw.isascii() and (script := suspicious_script(pair.raw)):
            self.found.add("TC016", pair.key, index, args={"raw": pair.raw, "script": script}, repair=True)
        # A declared name stays as it is declared, also between a prefix and a step.
        declared = is_canonical(pair.raw.replace(field.name, "x", 1))
        if not declared and not is_canonical(pair.raw) and key.normal != pair.raw and field.name != pair.raw:
            normal = key.base + f"_{key.number}" if field.step is not None and key.number == field.step else key.normal
            self.found.add(
                "TM222",
                pair.key,
                index,
                args={"raw": pair.raw, "normal": normal},
                fix=self.rename(pair, normal),
                minor=True,
            )

    def no_command(self) -> None:
        """The block names no tool: where a key is nearly ``command``, or names the tool in another protocol, it is the one that was meant."""
        near = next((pair for pair in self.lexed.pairs if best(visible(pair.raw), ("command",))), None)
        near = near or next(
            (pair for pair in self.lexed.pairs if squash(parse_key(visible(pair.raw)).base) in _NAMES_TOOL), None
        )
        at = near or self.lexed.pairs[0]
        name = "command" if near is None else _command_of(parse_key(visible(near.raw)))
        fix = self.rename(near, name, unsafe=True) if near is not None else None
        args: dict[str, str | int] = {"hint": hint(name if near is not None else None)}
        self.found.add("TM201", at.key, args=args, severity="error", fix=fix)

    def rename(self, pair: Pair, name: str, *, unsafe: bool = False) -> Fix:
        # A name that is read as another one, or as a field of the whole block, is none that an edit may write (P4).
        before = parse_key(visible(pair.raw)).normal.strip("_")
        unsafe = unsafe or parse_key(name).normal != name or _for_block(name) != _for_block(before)
        return fix(f"Rename it to {name}", Edit(pair.key[0], pair.key[1], name), unsafe=unsafe)

    def last_wins(self, fields: list[_Field]) -> list[_Field]:
        """Of several fields with the same meaning the last stays, with a warning (ruling 27)."""
        kept: dict[tuple[str, str, int | None], _Field] = {}
        counts: dict[tuple[str, str, int | None], int] = {}
        for field in fields:
            if field.role == "command":
                continue
            slot = (field.role, field.name, field.step)
            before = kept.pop(slot, None)
            if before is not None:
                counts[slot] = counts.get(slot, 1) + 1
                remove = fix("Remove the earlier one", delete(before.pair.start, before.pair.end), unsafe=True)
                if before.pair.raw != field.pair.raw:
                    args: dict[str, str | int] = {"a": before.pair.raw, "b": field.pair.raw}
                    self.found.add("TM223", field.pair.key, field.index, args=args, fix=remove)
                else:
                    args = {"name": field.pair.raw, "n": counts[slot], "policy": "the last one is used"}
                    self.found.add("TC060", field.pair.key, field.index, args=args, fix=remove)
            kept[slot] = field
        return sorted(kept.values(), key=lambda field: field.index)

    # --- calls ----------------------------------------------------------------------------------------------------

    def build(self, fields: list[_Field]) -> list[tuple[Call, set[int]]]:
        text = self.text
        built: dict[int, tuple[Call, set[int]]] = {}
        alone = len(self.commands) == 1
        for step in sorted(self.commands):
            command = self.commands[step]
            span = trimmed(text, *command.pair.value)
            call = Call(
                "tam", visible(text[span[0] : span[1]]).strip(), span, (command.pair.start, command.pair.end), step=step
            )
            if call.tool_id != text[span[0] : span[1]]:
                self.invisible_tool(command, span)
            built[step] = (call, {command.index})
        request: str | None = None
        shared: list[tuple[_Field, Param]] = []
        for field in fields:
            if field.role == "request_id":
                request = self.plain(field) or None
            elif field.role == "common":
                shared.append((field, self.param(field, "common")))
            elif field.step is not None:
                call, own = built[field.step]
                own.add(field.index)
                start = min(call.span[0], field.pair.start) if alone else call.span[0]
                call.span = (start, max(call.span[1], field.pair.end))
                self.apply(call, field)
        for step, (call, own) in built.items():
            self.settle(step, call, own, shared, request, fields)
        return list(built.values())

    def invisible_tool(self, command: _Field, span: Span) -> None:
        raw = self.text[span[0] : span[1]]
        char = next(char for char in raw if char not in visible(char))
        self.found.add(
            "TC013",
            span,
            command.index,
            args={"hex": f"{ord(char):04X}", "where": "the tool id"},
            fix=fix("Remove the invisible character", Edit(*span, visible(raw).strip())),
            repair=True,
        )

    def plain(self, field: _Field) -> str:
        start, end = trimmed(self.text, *field.pair.value)
        return self.text[start:end]

    def param(self, field: _Field, origin: Literal["pair", "common"]) -> Param:
        pair = field.pair
        low = self.lexed.pairs[field.index - 1].end if field.index else self.low
        value, removed = value_of(self.text, pair, low)
        if removed:
            width = len(_indentation(self.text, pair, low))
            self.found.add("TM225", value.span, field.index, args={"n": width}, minor=True)
        if "@{" in self.text[value.span[0] : value.span[0] + 4096]:
            self.variables(field, value)
        return Param(field.name, value, (pair.start, pair.end), pair.key, pair.raw, origin)

    def variables(self, field: _Field, value: Value) -> None:
        """TAM leaves ``@{…}`` to the platform; one that names no shared parameter of the block is worth a hint."""
        for match in _VARIABLE.finditer(self.text, *value.span):
            name = match.group(1)
            if not any(key.normal == name for key in self.keys):
                self.found.add("TM247", match.span(), field.index, args={"v": match.group()}, minor=True)

    def apply(self, call: Call, field: _Field) -> None:
        """Puts one field where it belongs in its call."""
        if field.role == "param":
            call.params.append(self.param(field, "pair"))
            return
        value = self.plain(field)
        span = trimmed(self.text, *field.pair.value)
        if field.role == "type_hint":
            near = next((hint for hint in TYPE_HINTS if hint == value.casefold()), None)
            call.type_hints[field.name] = near or value
            if value not in TYPE_HINTS:
                # Letter case has one reading (ruling 1); any other word is listed as it stands, and nothing is guessed.
                meant = near or best(value.casefold(), TYPE_HINTS)
                change = fix(f"Write {meant}", Edit(*span, meant), unsafe=near is None) if meant else None
                self.found.add("TM242", span, field.index, args={"v": value}, fix=change, repair=near is not None)
        elif field.role == "uri":
            call.uris[field.name] = value
            if not _URI.match(value):
                self.found.add("TM245", span, field.index, args={"v": value})
        elif field.role == "retry":
            call.retry = int(value) if _WHOLE.fullmatch(value) else 0
            if not _WHOLE.fullmatch(value):
                self.found.add("TM241", span, field.index, args={"v": value})
        elif field.role == "on_error":
            call.on_error = "continue" if value == "continue" else "stop"
            if value not in ("stop", "continue"):
                near = value.casefold() if value.casefold() in ("stop", "continue") else "stop"
                # Ruling 24 reads stop, whatever the word is near to: any other word changes the call, which a person decides.
                change = fix(f"Write {near}", Edit(*span, near), unsafe=near != "stop")
                self.found.add("TM240", span, field.index, args={"v": value}, fix=change)

    def settle(
        self,
        step: int,
        call: Call,
        own: set[int],
        shared: list[tuple[_Field, Param]],
        request: str | None,
        fields: list[_Field],
    ) -> None:
        """Adds what the whole block gives to a call, and checks the parts against each other."""
        names = {param.name for param in call.params}
        for field, param in shared:
            if step in self.declared and self.declared_name(step, param.name) is None:
                args: dict[str, str | int] = {"p": param.name, "n": step, "tool": call.tool_id[:MAX_NAME_CHARS]}
                # What another step's tool declares is no slip of the pen.
                shared_name = self.declared_name(None, param.name) is not None
                near = None if shared_name else best(param.name, self.declared[step].values())
                args["hint"] = hint(near and f"common_{near}")
                self.found.add("TM248", param.name_span, field.index, args=args, minor=True)
                continue
            own.add(field.index)
            name = self.declared_name(step, param.name) or param.name
            if name in names:
                args = {"p": param.name, "step": step, "n": step}
                self.found.add("TM246", param.name_span, field.index, args=args, minor=True)
            else:
                call.params.append(param if name == param.name else msgspec.structs.replace(param, name=name))
        call.request_id = request
        if not call.uris and not call.type_hints:
            return
        names = {param.name for param in call.params}
        for field in fields:
            if field.step != step or field.role not in ("uri", "type_hint"):
                continue
            if field.role == "type_hint" and field.name not in names and field.name not in call.uris:
                remove = fix("Remove it", delete(field.pair.start, field.pair.end), unsafe=True)
                self.found.add("TM243", field.pair.key, field.index, args={"p": field.name}, fix=remove)
            elif field.role == "uri" and field.name in names:
                remove = fix("Remove the URI", delete(field.pair.start, field.pair.end), unsafe=True)
                args = {"p": field.name, "policy": "the value is used"}
                self.found.add("TM244", field.pair.key, field.index, args=args, fix=remove)
                call.uris.pop(field.name, None)
