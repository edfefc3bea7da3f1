"""A script to begin with for a manifest: it takes every call that the parameters allow and answers.

What the output must be is not known, so the arguments are given back, or a sample of the declared output. Must not know where it
is written.
"""

from __future__ import annotations

import json
import keyword
import re
import unicodedata

import msgspec

from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

# A value to begin with for a schema: what is written where an argument is missing.


_LEAST: dict[str, Json] = {"boolean": False, "array": [], "object": {}, "null": None, "string": ""}


def sample_value(schema: Json) -> Json:
    """The constant, the default, an example, the first choice, or the least of the schema's type."""
    if not is_object(schema):
        return ""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        values = schema.get(key)
        if is_list(values) and values:
            return values[0]
    kind = schema.get("type")
    if is_list(kind):
        kind = next((item for item in kind if item != "null"), "null")
    if kind in ("integer", "number"):
        least = schema.get("minimum")
        return least if isinstance(least, int | float) and not isinstance(least, bool) else 0
    return _LEAST.get(str(kind), "")


def sample(schema: Json) -> str:
    """The same as it is written in a call: a text as it is, anything else as JSON."""
    value = sample_value(schema)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_JS_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_JS_WORDS = (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally "
    "for function if implements import in instanceof interface let new null package private protected public return static super "
    "switch this throw true try typeof var void while with yield __proto__"
)
_JS_RESERVED = frozenset(_JS_WORDS.split())


class _Parameter(msgspec.Struct, frozen=True):
    """One declared parameter; ``default`` is None where the schema has none."""

    name: str
    required: bool
    default: Json


def scaffold(language: str, path: str, parameters: Json, output: Json, entry: str) -> str | None:
    """A script for a runtime, or None where none is known or ``entry`` can be no function of it.

    ``path`` tells the module system of JavaScript; ``parameters`` and ``output`` are the schemas as they are written.
    """
    declared = _declared(parameters)
    answer = sample_value(output) if is_object(output) and output else None
    is_open = not (is_object(parameters) and parameters.get("additionalProperties") is False)
    if language == "python":
        return _python_function(entry, declared, is_open, answer) if entry else _python_program(declared, answer)
    if language in ("nodejs", "bun"):
        # Node reads a bare ``.js`` as CommonJS unless a package.json says otherwise.
        common = path.endswith(".cjs") or (language == "nodejs" and path.endswith(".js"))
        if entry:
            return _js_function(entry, declared, is_open, answer, common=common)
        return _js_program(declared, answer, common=common)
    return None


def _declared(parameters: Json) -> list[_Parameter]:
    if not is_object(parameters):
        return []
    properties, required = parameters.get("properties"), parameters.get("required")
    needed = {name for name in required if isinstance(name, str)} if is_list(required) else set[str]()
    named: dict[str, Json] = dict(properties) if is_object(properties) else {}
    named |= {name: {} for name in needed if name not in named}
    return [
        _Parameter(name, name in needed, schema.get("default") if is_object(schema) else None)
        for name, schema in named.items()
    ]


def _rest(declared: list[_Parameter]) -> str:
    """A name for the other arguments that no parameter has."""
    taken = {parameter.name for parameter in declared}
    return next(name for name in ("more", "others", *(f"more_{i}" for i in range(len(taken) + 1))) if name not in taken)


# Python


def _is_python_name(name: str) -> bool:
    # Python reads names in NFKC: another spelling would not be the argument's name.
    normal = unicodedata.normalize("NFKC", name) == name
    return name.isidentifier() and normal and not keyword.iskeyword(name) and name != "__debug__"


def _python(value: Json) -> str:
    """A value as Python writes it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if is_list(value):
        return "[" + ", ".join(map(_python, value)) + "]"
    if is_object(value):
        return "{" + ", ".join(f"{_python(key)}: {_python(item)}" for key, item in value.items()) + "}"
    return repr(value)


def _python_function(entry: str, declared: list[_Parameter], is_open: bool, answer: Json) -> str | None:
    *groups, name = entry.split(".")
    if not all(map(_is_python_name, (*groups, name))):
        return None
    rest = _rest(declared)
    taken: list[str] = []
    body: list[str] = []
    shown: list[str] = []
    for parameter in declared:
        key = _python(parameter.name)
        if not _is_python_name(parameter.name):
            shown.append(f"{key}: {_taken_from(rest, parameter)}")
            continue
        shown.append(f"{key}: {parameter.name}")
        changeable = isinstance(parameter.default, list | dict)
        taken.append(
            parameter.name
            if parameter.required
            else f"{parameter.name}={'None' if changeable else _python(parameter.default)}"
        )
        if changeable and not parameter.required:
            body += [f"if {parameter.name} is None:", f"    {parameter.name} = {_python(parameter.default)}"]
    arguments = (["*", *taken] if taken else []) + ([f"**{rest}"] if is_open or len(taken) < len(declared) else [])
    result = _python(answer) if answer is not None else "{" + ", ".join(shown) + "}"
    lines = [f"def {name}({', '.join(arguments)}):", *("    " + line for line in (*body, f"return {result}"))]
    for group in reversed(groups):
        indent = ["    " + line for line in lines]
        lines = [f"class {group}:", *(["    @staticmethod"] if lines[0].startswith("def ") else []), *indent]
    return "\n".join(lines) + "\n"


def _taken_from(source: str, parameter: _Parameter) -> str:
    key = _python(parameter.name)
    if parameter.required:
        return f"{source}[{key}]"
    return f"{source}.get({key})" if parameter.default is None else f"{source}.get({key}, {_python(parameter.default)})"


def _python_program(declared: list[_Parameter], answer: Json) -> str:
    shown = ", ".join(f"{_python(parameter.name)}: {_taken_from('arguments', parameter)}" for parameter in declared)
    result = _python(answer) if answer is not None else f"{{{shown}}}"
    return (
        "import json\nimport sys\n\narguments = json.load(sys.stdin)\n"
        f"json.dump({result}, sys.stdout, ensure_ascii=False)\n"
    )


# JavaScript


def _is_js_name(name: str) -> bool:
    return _JS_NAME.fullmatch(name) is not None and name not in _JS_RESERVED


def _js(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _js_function(entry: str, declared: list[_Parameter], is_open: bool, answer: Json, *, common: bool) -> str | None:
    *groups, name = entry.split(".")
    if not all(map(_is_js_name, (*groups, name))):
        return None
    rest = _rest(declared)
    plain = [parameter for parameter in declared if _is_js_name(parameter.name)]
    taken = [
        parameter.name if parameter.required else f"{parameter.name} = {_js(parameter.default)}" for parameter in plain
    ]
    if is_open or len(plain) < len(declared):
        taken.append(f"...{rest}")
    result = _js(answer) if answer is not None else _js_result(declared, rest)
    head = f"({{ {', '.join(taken)} }})" if taken else "()"
    lines = [f"{name}{head} {{", f"  return {result};", "}"]
    if not groups:
        lines[0] = ("" if common else "export ") + "function " + lines[0]
        return "\n".join([*lines, *(["", f"module.exports = {{ {name} }};"] if common else [])]) + "\n"
    for group in reversed(groups[1:]):
        lines = [f"{group}: {{", *("  " + line for line in lines), "}"]
    begin = "const " if common else "export const "
    lines = [f"{begin}{groups[0]} = {{", *("  " + line for line in lines), "};"]
    return "\n".join([*lines, *(["", f"module.exports = {{ {groups[0]} }};"] if common else [])]) + "\n"


def _js_result(declared: list[_Parameter], rest: str) -> str:
    shown: list[str] = []
    for parameter in declared:
        if parameter.name == "__proto__":
            continue  # reading and writing it speaks of the prototype
        value = f"{rest}[{_js(parameter.name)}]"
        if not parameter.required and parameter.default is not None:
            value += f" ?? {_js(parameter.default)}"
        shown.append(parameter.name if _is_js_name(parameter.name) else f"{_js(parameter.name)}: {value}")
    return f"{{ {', '.join(shown)} }}" if shown else "{}"


def _js_program(declared: list[_Parameter], answer: Json, *, common: bool) -> str:
    reading = 'const { readFileSync } = require("node:fs");' if common else 'import { readFileSync } from "node:fs";'
    result = _js(answer)
    if answer is None:
        defaults = [
            f"{_js(parameter.name)}: {_js(parameter.default)}"
            for parameter in declared
            if parameter.default is not None
        ]
        result = f"{{ {', '.join([*defaults, '...given'])} }}"
    return (
        f'{reading}\n\nconst given = JSON.parse(readFileSync(0, "utf8"));\n'
        f"process.stdout.write(JSON.stringify({result}));\n"
    )
