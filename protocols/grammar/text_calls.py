"""One tool's call in a text protocol (ACTION in both shapes, TAM, VCP) as GBNF, in the layout of the protocol's writer.

Constants are spelled by the writer itself, so that both agree on every escape. Must not know other tools.
"""

from __future__ import annotations

from typing import Final

from tamis.protocols.action.decode import escape
from tamis.protocols.base import CallProtocol, PlainCall, PromptTool, Shape, WriteOptions
from tamis.protocols.grammar.branches import Branch
from tamis.protocols.grammar.json_rules import MARKUP, SECTION, TAM, VCP, SchemaRules, scalar, string
from tamis.protocols.grammar.rules import CONTROLS, avoiding, either, klass, literal
from tamis.protocols.model import Json, ToolHint
from tamis.protocols.schema.words import is_list, is_object

"""How a call is laid out."""

_MAX_FORMS = 8
"""Alternatives of all parameters together (``anyOf`` at the root) up to which each has a form of its own."""
_MANY_CONSTANTS = 32
"""Constants of a parameter up to which each is written with all of them in view; with more that would be quadratic."""
_JSON = ("object", "array")
# What a text may be in XML beside plain characters: the references that the canonical writer uses.
_REFERENCE = (
    '"&" ("amp" | "lt" | "gt" | "quot" | "apos" | "#" ("9" | "10" | "13" | "32" | "127" | "133" | "160" | "5760" | "819" [2-9]'
    ' | "820" [0-2] | "8232" | "8233" | "8239" | "8287" | "12288")) ";"'
)


def call_of(
    form: type[_TextCall], protocol: CallProtocol, tool: PromptTool, schemas: SchemaRules, shape: Shape = "tag"
) -> str:
    """The body of the rule of a call; empty when the protocol cannot carry the tool."""
    forms = [branch for branch in schemas.branches(tool.parameters, "") if branch.constants is None]
    if len(forms) > _MAX_FORMS:
        schemas.remark("", "anyOf")
        forms = [Branch(tool.parameters)]
    bodies = [form(protocol, tool, schemas, shape, branch.schema).call() for branch in forms]
    return " | ".join(dict.fromkeys(body for body in bodies if body))


class _TextCall:
    """A call and its parameters; a protocol says what stands around them and how a value is written."""

    def __init__(
        self, protocol: CallProtocol, tool: PromptTool, schemas: SchemaRules, shape: Shape, schema: dict[str, Json]
    ) -> None:
        self._protocol = protocol
        self.tool = tool
        self.schemas = schemas
        self.rules = schemas.rules
        declared, asked = schema.get("properties"), schema.get("required")
        self.properties: dict[str, Json] = dict(declared) if is_object(declared) else {}
        self.required = [name for name in asked if isinstance(name, str)] if is_list(asked) else []
        for name in self.required:
            self.properties.setdefault(name, True)
        # Names are tried without their schemas: whether a value fits is not the question then.
        names: dict[str, Json] = {name: {} for name in self.properties}
        self._bare = WriteOptions(shape, {tool.name: ToolHint(tool.name, {"type": "object", "properties": names})})
        self._typed = WriteOptions(shape, {tool.name: ToolHint(tool.name, tool.parameters)})

    def call(self) -> str:
        """The body of the call's rule; empty when the tool cannot be carried."""
        if not self.written({}, self._bare):
            return ""
        parts: list[str] = []
        for name in list(self.properties):
            if self.written({name: "x"}, self._bare):
                continue
            if name in self.required:
                return ""
            del self.properties[name]
            self.schemas.rules.note(
                f"{self.tool.name} has no parameter {name!r} here: {self._protocol.id} cannot carry the name"
            )
        self.prepare()
        for name, schema in self.properties.items():
            branches = self.parameter(name, self.schemas.branches(schema, f"/{name}"))
            if branches:
                parts.append(either(branches) if name in self.required else f"({' | '.join(dict.fromkeys(branches))})?")
            elif name in self.required:
                return ""
        return self.framed(" ".join(parts))

    def written(self, args: dict[str, Json], options: WriteOptions) -> str:
        """The call as the protocol's writer writes it; empty when it refuses."""
        done = self._protocol.write_calls((PlainCall(self.tool.name, args),), options)
        return "" if done.refusals else done.text

    def constants(self, name: str, branch: Branch) -> list[str]:
        """A parameter with each of its constants, as it stands in a block."""
        literals: list[str] = []
        constants = branch.constants or ()
        for value in constants:
            options = self._typed
            if len(constants) > _MANY_CONSTANTS:
                only: dict[str, Json] = {"type": "object", "properties": {name: {"enum": [value]}}}
                options = WriteOptions(options.shape, {self.tool.name: ToolHint(self.tool.name, only)})
            text = self.written({name: value}, options)
            part = self.cut(name, text) if text else ""
            if part:
                literals.append(literal(part))
            else:
                self.schemas.remark(f"/{name}", "a constant that the protocol cannot carry; it is left out")
        return literals

    def prepare(self) -> None:
        """Whatever must be known of all parameters before one is written."""

    def cut(self, name: str, text: str) -> str:
        """The parameter out of a written call that holds it alone."""
        raise NotImplementedError

    def parameter(self, name: str, branches: list[Branch]) -> list[str]:
        """The forms of a parameter."""
        raise NotImplementedError

    def framed(self, inside: str) -> str:
        """The call around its parameters."""
        raise NotImplementedError


class _Tag(_TextCall):
    """The tool id as the tag, parameters as its children."""

    def start(self, name: str) -> str:
        return f"\n    <{name}>"

    def end(self, name: str) -> str:
        return f"</{name}>"

    def frame(self) -> tuple[str, str, str]:
        """What precedes, opens and closes the parameters."""
        return "", f"\n  <{self.tool.name}>", f"</{self.tool.name}>"

    def cut(self, name: str, text: str) -> str:
        _, opening, closing = self.frame()
        return text[text.index(opening) + len(opening) : text.rindex("\n  " + closing)]

    def parameter(self, name: str, branches: list[Branch]) -> list[str]:
        start, end = literal(self.start(name)), literal(self.end(name))
        values: list[str] = []
        whole: list[str] = []
        for branch in branches:
            if branch.constants is not None:
                whole += self.constants(name, branch)
                continue
            for kind in branch.types or ("string",):
                if kind == "string":
                    values += [self.text(), f'"<![CDATA[" {self.section()}']
                elif kind in _JSON:
                    schema = {**branch.schema, "type": kind}
                    values.append(self.schemas.rule(schema, MARKUP, f"/{name}"))
                    values.append(f'"<![CDATA[" {self.schemas.rule(schema, SECTION, f"/{name}")} "]]>"')
                else:
                    values.append(scalar(self.rules, kind, branch.schema))
        return [*whole, *([f"{start} {either(values)} {end}"] if values else [])]

    def text(self) -> str:
        """A text with references for markup."""
        if not self.rules.has("text"):
            self.rules.define("reference", _REFERENCE)
            self.rules.define("text", f"({klass('<&' + CONTROLS, negated=True)} | reference)*")
        return "text"

    def section(self) -> str:
        """The inside of a CDATA section with its end."""
        if not self.rules.has("section"):
            avoiding(self.rules, "section", ("]]>", "<![CDATA["), "]]>", without=CONTROLS)
        return "section"

    def framed(self, inside: str) -> str:
        before, opening, closing = self.frame()
        if not inside:
            return literal(before + opening + closing)
        full = f"{inside} {literal(chr(10) + '  ' + closing)}"
        return f"{literal(before + opening)} " + (full if self.required else either([literal(closing), full]))


class _Inputs(_Tag):
    """``<tool_id>`` and ``<inputs>``."""

    def start(self, name: str) -> str:
        return f'\n    <input name="{_escaped(name, quote=True)}">'

    def end(self, name: str) -> str:
        del name
        return "</input>"

    def frame(self) -> tuple[str, str, str]:
        return f"\n  <tool_id>{_escaped(self.tool.name)}</tool_id>", "\n  <inputs>", "</inputs>"


class _Tam(_TextCall):
    """A numbered or plain step in a block of its own."""

    def prepare(self) -> None:
        self.keys: dict[str, str] = {}
        numbered = False
        for name in self.properties:
            command, key = (line.partition(":")[0] for line in self.written({name: "x"}, self._bare).splitlines()[1:3])
            numbered = numbered or command != "command"
            self.keys[name] = key.removesuffix("_1") if command != "command" else key
        self.number = "_1" if numbered else ""

    def cut(self, name: str, text: str) -> str:
        lines = text[: text.rindex("<|[END_TOOL]|>")].split("\n", 2)
        key = self.keys[name]
        alone = "" if lines[1].startswith("command:") else "_1"
        head, value = f"{key}{alone}:»»»", lines[2]
        hint = f"type_hint_{key}{alone}:»»»json«««\n"
        if value.startswith(hint):
            return f"type_hint_{key}{self.number}:»»»json«««\n{key}{self.number}:»»»{value[len(hint + head) :]}"
        return f"{key}{self.number}:»»»{value[len(head) :]}"

    def parameter(self, name: str, branches: list[Branch]) -> list[str]:
        key = f"{self.keys[name]}{self.number}"
        start, end = literal(f"{key}:»»»"), literal("«««\n")
        # The writer gives the hint where the schema alone does not make the type plain.
        hinted = literal(f"type_hint_{key}:»»»json«««\n{key}:»»»")
        parameter: list[str] = []
        for branch in branches:
            if branch.constants is not None:
                parameter += self.constants(name, branch)
                continue
            for kind in branch.types or ("string",):
                if kind == "string":
                    # A text that the delimiters or trimming would change is a JSON string with its hint (seed 002 §3.4).
                    parameter.append(f"{start} {self.text()} {literal(chr(10))}")
                    parameter.append(f"{hinted} {string(self.rules, TAM)} {end}")
                elif kind in _JSON:
                    rule = self.schemas.rule({**branch.schema, "type": kind}, TAM, f"/{name}")
                    parameter.append(f"({start} | {hinted}) {rule} {end}")
                else:
                    parameter.append(f"({start} | {hinted}) {scalar(self.rules, kind, branch.schema)} {end}")
        return parameter

    def text(self) -> str:
        """A value with its delimiter."""
        if not self.rules.has("value"):
            avoiding(self.rules, "value", ("«««", "»»»"), "«««", without=CONTROLS, not_first="»")
        return "value"

    def framed(self, inside: str) -> str:
        head = literal(f"<|[REQUEST_TOOL]|>\ncommand{self.number}:»»»{self.tool.name}«««\n")
        return " ".join(filter(None, (head, inside, literal("<|[END_TOOL]|>"))))


class _Vcp(_TextCall):
    """A block of pairs."""

    def head(self) -> str:
        return f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」{self.tool.name}「末」"

    def cut(self, name: str, text: str) -> str:
        del name
        return text[len(self.head()) : text.rindex("\n<<<[END")]

    def parameter(self, name: str, branches: list[Branch]) -> list[str]:
        start, end = literal(f",\n{name}:「始」"), literal("「末」")
        parameter: list[str] = []
        for branch in branches:
            if branch.constants is not None:
                parameter += self.constants(name, branch)
                continue
            for kind in branch.types or ("string",):
                if kind == "string":
                    parameter.append(f"{start} {self.text('value', '「末」')}")
                    parameter.append(
                        f"{literal(f',{chr(10)}{name}:「始ESCAPE」')} {self.text('escaped', '「末ESCAPE」')}"
                    )
                elif kind in _JSON:
                    parameter.append(
                        f"{start} {self.schemas.rule({**branch.schema, 'type': kind}, VCP, f'/{name}')} {end}"
                    )
                else:
                    parameter.append(f"{start} {scalar(self.rules, kind, branch.schema)} {end}")
        return parameter

    def text(self, name: str, close: str) -> str:
        """A value with its mark."""
        if not self.rules.has(name):
            if name == "escaped":
                # A start mark in it would look like a slip (VC315).
                avoiding(self.rules, name, ("「末E", "「末e", "「始"), close, without=CONTROLS)
            else:
                # A bracket of a mark at an edge would look like a slip too (TC062): a value with one is written between ESCAPE marks.
                first, more = (klass(f"「{other}{CONTROLS}", negated=True) for other in ("」", ""))
                self.rules.define(name, f"({first} {more}*)? {literal(close)}")
        return name

    def framed(self, inside: str) -> str:
        return " ".join(filter(None, (literal(self.head()), inside, literal("\n<<<[END_TOOL_REQUEST]>>>"))))


def _escaped(text: str, *, quote: bool = False) -> str:
    return escape(text).replace('"', "&quot;") if quote else escape(text)


TagCall: Final = _Tag
InputsCall: Final = _Inputs
TamCall: Final = _Tam
VcpCall: Final = _Vcp
"""The forms of a call for ``call_of``."""
