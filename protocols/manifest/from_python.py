"""A manifest drafted from a Python function, which is read and never imported (D88).

Names, defaults and annotations come from the syntax tree, descriptions from the docstring in any of the usual styles. What an
annotation does not say in JSON's types is left open and said. Must not know files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import msgspec

from tamis.protocols.manifest.imported import NAMESPACE, VERSION, Imported, ImportedTool, Note, to_be_said
from tamis.protocols.manifest.imports import MAX_TOOLS, distinct
from tamis.protocols.model import Json
from tamis.protocols.positions import LineIndex, Span

# The sentences of a Python docstring, in any of the usual styles.


class Docstring:
    """The sentences of a docstring: what the function does, its parameters, what it returns."""

    def __init__(self, text: str) -> None:
        self.text = ""
        self.parameters: dict[str, str] = {}
        self.returns = ""
        if not text:
            return
        from docstring_parser import ParseError, parse

        try:
            read = parse(text)
        except ParseError:
            self.text = " ".join(text.split())
            return
        parts = (read.short_description, read.long_description)
        self.text = " ".join(" ".join(part.split()) for part in parts if part)
        for item in read.params:
            if item.description:
                self.parameters[item.arg_name.lstrip("*")] = " ".join(item.description.split())
        if read.returns is not None and read.returns.description:
            self.returns = " ".join(read.returns.description.split())


MAX_SOURCE_CHARS = 2_000_000


class PythonFunction(msgspec.Struct, frozen=True):
    """A function that can be an entry point: at the top of its file, by its name, with the places of both."""

    name: str
    span: Span
    """From its first decorator to the end of its body, in code points."""
    name_span: Span
    line: int
    """Zero-based, of its ``def``."""


class Draft(msgspec.Struct, frozen=True):
    """A manifest and what was assumed in it."""

    manifest: dict[str, Json]
    notes: tuple[Note, ...] = ()


def functions(source: str) -> tuple[PythonFunction, ...]:
    """The public functions at the top of a file; none of a file that is not sound Python."""
    tree = _parse(source)
    if tree is None:
        return ()
    lines = LineIndex(source)

    def offset(line: int, column: int) -> int:
        # The syntax tree counts columns in UTF-8 bytes.
        return lines.offset(line - 1, column, "utf-8")

    python_functions: list[PythonFunction] = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        start = offset(node.lineno, node.col_offset)
        at = source.find(node.name, source.find("def", start) + 3)
        end = offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        python_functions.append(
            PythonFunction(node.name, (offset(first, 0), end), (at, at + len(node.name)), node.lineno - 1)
        )
    return tuple(python_functions)


def draft_manifest(source: str, name: str, script_path: str) -> Draft | None:
    """A manifest whose handler calls the function ``name`` of ``script_path``; None where there is no such function."""
    tree = _parse(source)
    if tree is None:
        return None
    node = next(
        (item for item in tree.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name == name),
        None,
    )
    if node is None:
        return None
    notes: list[Note] = []
    about = Docstring(ast.get_docstring(node) or "")
    kinds = _Kinds(tree)
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for argument, default in _arguments(node):
        schema = kinds.schema(argument.annotation)
        path = f"/parameters/properties/{argument.arg}"
        if argument.annotation is None and default is not None:
            schema = _schema_of_value(default)
        if not schema:
            notes.append(Note(path, f"the type of '{argument.arg}' is not known: any value is taken", "type-unknown"))
        if parameter := about.parameters.get(argument.arg):
            schema["description"] = parameter
        else:
            notes.append(Note(path, f"'{argument.arg}' has no description in the docstring", "description-missing"))
        if default is None:
            required.append(argument.arg)
        elif known := _literal(default):
            schema["default"] = known[0]
        properties[argument.arg] = schema
    if node.args.vararg is not None:
        notes.append(
            Note("/parameters", f"*{node.args.vararg.arg} cannot be given: arguments go by name", "parameters-dropped")
        )
    if node.args.posonlyargs:
        what = "arguments before '/' go by position only: an entry point is called by name"
        notes.append(Note("/parameters", what, "parameters-dropped"))
    description = about.text or to_be_said(_title(name))
    if not about.text:
        what = "there is no docstring: write what the tool does, models choose tools by it"
        notes.append(Note("/description", what, "description-missing"))
    bare = name.replace("_", "-")
    manifest: dict[str, Json] = {
        "toolId": f"{NAMESPACE}:{bare}",
        "displayName": _title(name),
        "description": description,
        "version": VERSION,
        "handler": {"type": "external-script", "scriptPath": script_path, "language": "python", "entryPoint": name},
        "parameters": {"type": "object", "properties": properties, "required": required},
    }
    if node.args.kwarg is not None:
        parameters = manifest["parameters"]
        assert isinstance(parameters, dict)
        parameters["additionalProperties"] = True
    output = kinds.schema(node.returns)
    if output and output != {"type": "null"}:
        if about.returns:
            output["description"] = about.returns
        manifest["output"] = output
    return Draft(manifest, tuple(notes))


def _parse(source: str) -> ast.Module | None:
    if len(source) > MAX_SOURCE_CHARS:
        return None
    try:
        return ast.parse(source)
    # Besides SyntaxError: null bytes are a ValueError, deep nesting a RecursionError or MemoryError.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    plain = [*node.args.posonlyargs, *node.args.args]
    missing = len(plain) - len(node.args.defaults)
    for i, argument in enumerate(plain):
        yield argument, node.args.defaults[i - missing] if i >= missing else None
    yield from zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)


# Annotations

_PLAIN: dict[str, Json] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "Decimal": "number",
    "bool": "boolean",
    "None": "null",
    "NoneType": "null",
    "dict": "object",
    "Dict": "object",
    "Mapping": "object",
    "MutableMapping": "object",
    "list": "array",
    "List": "array",
    "Sequence": "array",
    "Iterable": "array",
    "tuple": "array",
    "Tuple": "array",
    "set": "array",
    "Set": "array",
    "frozenset": "array",
    "Path": "string",
    "bytes": "string",
}
_FORMATS = {"datetime": "date-time", "date": "date", "time": "time", "UUID": "uuid"}
_LISTS = frozenset({"list", "List", "Sequence", "Iterable", "set", "Set", "frozenset"})
_MAPS = frozenset({"dict", "Dict", "Mapping", "MutableMapping"})
_MAX_DEPTH = 20


class _Kinds:
    """Annotations of one file as JSON Schema: built-in types, ``typing``, and the file's own enums and typed dicts."""

    def __init__(self, tree: ast.Module) -> None:
        self._classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}

    def schema(self, node: ast.expr | None, depth: int = 0) -> dict[str, Json]:
        """The schema of an annotation; empty where it says nothing in JSON's types."""
        if node is None or depth > _MAX_DEPTH:
            return {}
        if isinstance(node, ast.Constant):
            if node.value is None:
                return {"type": "null"}
            if isinstance(node.value, str):
                inner = _expression(node.value)
                return self.schema(inner, depth + 1)
            return {}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._union([node.left, node.right], depth)
        if isinstance(node, ast.Subscript):
            return self._generic(_name(node.value), _items(node.slice), depth)
        name = _name(node)
        if name in _FORMATS:
            return {"type": "string", "format": _FORMATS[name]}
        if name in _PLAIN:
            return {"type": _PLAIN[name]}
        class_def = self._classes.get(name)
        return self._class(class_def, depth) if class_def is not None else {}

    def _generic(self, name: str, items: list[ast.expr], depth: int) -> dict[str, Json]:
        if name == "Literal":
            values = [value for item in items for value in _literal(item)]
            return {"enum": values} if values else {}
        if name == "Optional":
            return self._union([*items, ast.Constant(None)], depth)
        if name == "Union":
            return self._union(items, depth)
        if name in ("Annotated", "Required", "NotRequired", "Final", "ClassVar") and items:
            schema = self.schema(items[0], depth + 1)
            texts = [item.value for item in items[1:] if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            return {**schema, "description": texts[0]} if texts else schema
        if name in _LISTS and items:
            inner = self.schema(items[0], depth + 1)
            return {"type": "array", "items": inner} if inner else {"type": "array"}
        if name in ("tuple", "Tuple"):
            if len(items) == 2 and isinstance(items[1], ast.Constant) and items[1].value is ...:
                return {"type": "array", "items": self.schema(items[0], depth + 1)}
            parts: list[Json] = [self.schema(item, depth + 1) for item in items]
            return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
        if name in _MAPS:
            inner = self.schema(items[1], depth + 1) if len(items) == 2 else {}
            return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
        return {}

    def _union(self, nodes: list[ast.expr], depth: int) -> dict[str, Json]:
        parts: list[Json] = []
        for node in nodes:
            schema = self.schema(node, depth + 1)
            if not schema:
                return {}
            inner = schema.get("anyOf")
            for part in inner if isinstance(inner, list) and len(schema) == 1 else [schema]:
                if part not in parts:
                    parts.append(part)
        kinds = [part["type"] for part in parts if isinstance(part, dict) and set(part) == {"type"}]
        if len(kinds) == len(parts):
            return {"type": kinds[0] if len(kinds) == 1 else kinds}
        return {"anyOf": parts}

    def _class(self, node: ast.ClassDef, depth: int) -> dict[str, Json]:
        bases = {_name(base) for base in node.bases}
        if bases & {"Enum", "StrEnum", "IntEnum"}:
            values = [value for item in node.body if isinstance(item, ast.Assign) for value in _literal(item.value)]
            return {"enum": values} if values else {}
        decorators = {_name(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list}
        if not (bases & {"TypedDict", "BaseModel", "Struct", "NamedTuple"} or decorators & {"dataclass", "define"}):
            return {}
        properties: dict[str, Json] = {}
        required: list[Json] = []
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                properties[item.target.id] = self.schema(item.annotation, depth + 1)
                optional = isinstance(item.annotation, ast.Subscript) and _name(item.annotation.value) == "NotRequired"
                if item.value is None and not optional:
                    required.append(item.target.id)
        return {"type": "object", "properties": properties, "required": required}


def _name(node: ast.expr) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _items(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _literal(node: ast.expr) -> list[Json]:
    """The JSON value of a literal, alone in a list; an empty list for anything else."""
    try:
        value: object = ast.literal_eval(node)
        again: Json = msgspec.json.decode(msgspec.json.encode(value))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, OverflowError):
        return []
    # Bytes and sets become text and lists, which a call would have to spell differently.
    return [] if isinstance(value, bytes | set | frozenset) else [again]


_VALUE_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def _schema_of_value(node: ast.expr) -> dict[str, Json]:
    for value in _literal(node):
        for python_type, kind in _VALUE_TYPES:
            if isinstance(value, python_type):
                return {"type": kind}
    return {}


def _title(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name).split()
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]]) if words else name


def import_functions(source: str, script_path: str) -> Imported:
    """Every public function at the top of a file as a tool whose entry point it is. Never raises, never runs the file."""
    tree = _parse(source)
    if tree is None:
        return Imported(why_not=_why_unsound(source))
    tools: list[ImportedTool] = []
    notes: list[Note] = []
    for function in {function.name: function for function in functions(source)}.values():
        draft = draft_manifest(source, function.name, script_path)
        if draft is not None:
            tools.append(ImportedTool(function.name.replace("_", "-"), draft.manifest, draft.notes))
    if len(tools) > MAX_TOOLS:
        what = f"only the first {MAX_TOOLS} of {len(tools)} functions were converted"
        notes.append(Note("", what, "tool-dropped"))
    why_not = "" if tools else "it has no public function at its top"
    return Imported(tuple(distinct(tools[:MAX_TOOLS])), tuple(notes), why_not)


def _why_unsound(source: str) -> str:
    if len(source) > MAX_SOURCE_CHARS:
        return f"it has more than {MAX_SOURCE_CHARS} characters"
    try:
        ast.parse(source)
    except SyntaxError as error:
        return f"it is no sound Python: {error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError):
        pass
    return "it is no sound Python, or nests too deeply"
