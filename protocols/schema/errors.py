"""What jsonschema finds, as findings with our codes and words.

jsonschema is the authority on every keyword; this module only words its errors and chooses the branch of ``anyOf`` and
``oneOf`` that was most likely meant. It is imported when something failed, or when a schema needs it. Must not coerce.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from tamis.protocols.jsontext.tree import to_pointer
from tamis.protocols.model import Json
from tamis.protocols.schema.check import draft_of
from tamis.protocols.schema.regex import PatternError, compile_pattern
from tamis.protocols.schema.words import Finding, as_json, excerpt, is_list, is_object, label, type_of, types_in_words
from tamis.protocols.suggest import Names, best, hint, normalised

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

MAX_FINDINGS = 100


@lru_cache(maxsize=8)
def _validator_class(draft: str) -> Any:
    from jsonschema import validators

    standard: dict[str, Any] = {
        "2020-12": validators.Draft202012Validator,
        "2019-09": validators.Draft201909Validator,
        "draft-07": validators.Draft7Validator,
        "draft-06": validators.Draft6Validator,
        "draft-04": validators.Draft4Validator,
    }
    extend = cast("Any", validators).extend
    own: dict[str, Any] = {"pattern": _pattern, "patternProperties": _pattern_properties, "properties": _properties}
    for name in ("anyOf", "oneOf", "$ref", "$dynamicRef"):
        keyword = standard[draft].VALIDATORS.get(name)
        if keyword is not None:
            own[name] = _counted(keyword)
    return extend(standard[draft], own)


MAX_WORK = 20_000
"""Alternatives and references that one check may follow; schemas that refer to themselves in several ways need exponentially
many."""


class TooMuchWorkError(Exception):
    """A check was given up: its schema leads through too many alternatives."""


class _Work:
    left = MAX_WORK


def _counted(keyword: Any) -> Any:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
        _Work.left -= 1
        if _Work.left < 0:
            raise TooMuchWorkError
        yield from keyword(validator, value, instance, schema) or ()

    return counted


def _properties(validator: Any, properties: Any, instance: Any, _: Any) -> Iterable[ValidationError]:
    """As the standard one, with the place of a property that may not be there at all."""
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, dict):
        return
    for name, subschema in cast("dict[str, Any]", properties).items():
        if name not in instance:
            continue
        value = cast("dict[str, Any]", instance)[name]
        if subschema is False:
            yield ValidationError("not allowed", path=(name,), validator="false", instance=value, schema=False)
        else:
            yield from validator.descend(value, subschema, path=name, schema_path=name)


def fits(validator: Validator, instance: Json) -> bool:
    """jsonschema's verdict, within the bound on work; raises ``TooMuchWorkError``."""
    _Work.left = MAX_WORK * 10
    return bool(validator.is_valid(instance))


def make_validator(schema: Json) -> Validator:
    """jsonschema's validator for a schema: its own draft, no retrieval of anything, bounded patterns."""
    from jsonschema_specifications import REGISTRY

    return cast("Validator", _validator_class(draft_of(schema))(schema, registry=REGISTRY))


def part_of(validator: Validator, schema: Json) -> Validator:
    """The validator of one part of the schema, whose references lead into the whole."""
    return cast("Validator", cast("Any", validator).evolve(schema=schema))


def fault_of(error: BaseException) -> Finding | None:
    """The finding for a check that jsonschema could not finish, or None for an error that is none of its."""
    # Where the stack ends inside its compiled part, jsonschema's library panics: no subclass of Exception.
    if isinstance(error, (RecursionError, TooMuchWorkError)) or type(error).__name__ == "PanicException":
        what: dict[str, str | int] = {"p": "arguments", "what": "the schema leads through too many references"}
        return Finding("VA424", "", "error", what, f"at most {MAX_WORK} steps", "more")
    if isinstance(error, Exception):
        from referencing.exceptions import Unresolvable

        if isinstance(error, Unresolvable):
            # A reference between named parts that leads nowhere shows only when it is followed.
            return Finding("VA451", "", "error", {"ref": str(error)})
    return None


def _pattern(_: Any, pattern: Any, instance: Any, __: Any) -> Iterable[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not _found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _: Any) -> Iterable[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in cast("dict[str, Any]", patterns).items():
        for name, value in cast("dict[str, Any]", instance).items():
            if _found(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _found(pattern: str, text: str) -> bool:
    try:
        return compile_pattern(pattern).test(text)
    except PatternError:
        return True


def explain(validator: Validator, instance: Json, known: Sequence[Finding] = ()) -> list[Finding]:
    """The errors of typed arguments; places at or below those of ``known`` findings are left out."""
    taken = {finding.path for finding in known}
    listed: set[tuple[int, int]] = set()
    seen: set[tuple[str, str]] = {(finding.code, finding.path) for finding in known}
    findings: list[Finding] = []
    _Work.left = MAX_WORK
    try:
        for error in cast("Iterable[ValidationError]", validator.iter_errors(instance)):
            if error.validator in ("required", "dependentRequired"):
                # Each missing name is an error of its own, and the first is worded as all of them.
                all_of = (id(error.validator_value), id(cast("object", error.instance)))
                if all_of in listed:
                    continue
                listed.add(all_of)
            for finding in _worded(error):
                if (finding.code, finding.path) in seen or (taken and _is_covered(finding.path, taken)):
                    continue
                seen.add((finding.code, finding.path))
                findings.append(finding)
            if len(findings) >= MAX_FINDINGS:
                break
    except TooMuchWorkError:
        # What was found stands; without anything the caller says that the arguments do not fit.
        pass
    return findings


def _is_covered(path: str, taken: set[str]) -> bool:
    """Whether a place is one of those that are taken, or below one."""
    while path and path not in taken:
        path = path.rpartition("/")[0]
    return path in taken


def _finding(
    code: str,
    path: str,
    args: dict[str, str | int],
    expected: str | None = None,
    received: str | None = None,
    suggestion: str | None = None,
) -> Finding:
    return Finding(code, path, "error", {"p": label(path), **args}, expected, received, suggestion)


def _worded(error: ValidationError) -> list[Finding]:
    path = to_pointer(list(error.absolute_path))
    keyword = cast("str | None", error.validator)
    limit = cast("Json", error.validator_value)
    instance = cast("Json", error.instance)
    schema = cast("Json", error.schema)
    shown = excerpt(instance)
    if keyword == "type":
        names = [str(name) for name in limit] if is_list(limit) else [str(limit)]
        args: dict[str, str | int] = {"expected": types_in_words(names), "excerpt": shown}
        return [_finding("VA410", path, args, " or ".join(names), shown)]
    if keyword == "required" and is_list(limit) and is_object(instance):
        return [missing(path, name, schema) for name in limit if isinstance(name, str) and name not in instance]
    if keyword in ("dependentRequired", "dependencies") and is_object(limit) and is_object(instance):
        return [
            missing(path, str(name), schema)
            for key, names in limit.items()
            if key in instance and is_list(names)
            for name in names
            if name not in instance
        ]
    if keyword in ("additionalProperties", "unevaluatedProperties") and is_object(instance) and is_object(schema):
        names = _extras(instance, schema, error)
        declared = Names(declared_names(schema, schema))
        return [unknown(path, name, declared) for name in names]
    if keyword == "enum" and is_list(limit):
        return [_enum(path, instance, limit)]
    if keyword in ("anyOf", "oneOf"):
        return [_no_alternative(path, error, keyword)]
    return [_limit(path, keyword, limit, instance, shown)]


def _limit(path: str, keyword: str | None, limit: Json, instance: Json, shown: str) -> Finding:
    bound = excerpt(limit)
    if keyword == "const":
        wanted = limit if isinstance(limit, str) else None
        return _finding("VA431", path, {"expected": bound, "excerpt": shown}, bound, shown, wanted)
    if keyword == "pattern":
        tried = compile_pattern(str(limit)).longest
        wanted = f"{limit}"
        if tried and isinstance(instance, str) and len(instance) > tried:
            wanted += f" (tried on at most {tried} characters)"
        return _finding("VA432", path, {"expected": wanted, "excerpt": shown}, f"pattern {limit}", shown)
    if keyword in ("minimum", "exclusiveMinimum"):
        word = bound if keyword == "minimum" else f"more than {bound}"
        code_args: dict[str, str | int] = {"expected": word, "excerpt": shown}
        return _finding("VA433", path, code_args, f">= {bound}" if keyword == "minimum" else f"> {bound}", shown)
    if keyword in ("maximum", "exclusiveMaximum"):
        word = bound if keyword == "maximum" else f"less than {bound}"
        code_args = {"expected": word, "excerpt": shown}
        return _finding("VA434", path, code_args, f"<= {bound}" if keyword == "maximum" else f"< {bound}", shown)
    if keyword in ("minLength", "maxLength") and isinstance(instance, str):
        words = f"at {'least' if keyword == 'minLength' else 'most'} {bound} characters"
        return _finding("VA435", path, {"expected": words, "received": len(instance)}, words, str(len(instance)))
    if keyword in ("minItems", "maxItems", "minProperties", "maxProperties") and isinstance(instance, (list, dict)):
        what = "items" if isinstance(instance, list) else "members"
        words = f"at {'least' if keyword.startswith('min') else 'most'} {bound} {what}"
        return _finding("VA436", path, {"expected": words, "received": len(instance)}, words, str(len(instance)))
    if keyword in ("contains", "minContains", "maxContains", "items", "additionalItems", "unevaluatedItems"):
        words = "an item that fits" if keyword == "contains" else "no further items"
        count = len(instance) if isinstance(instance, list) else 1
        return _finding("VA436", path, {"expected": words, "received": count}, words, str(count))
    if keyword == "uniqueItems" and is_list(instance):
        twice = excerpt(_repeated(instance))
        return _finding("VA437", path, {"excerpt": twice}, "items that differ", f"{twice} more than once")
    if keyword == "multipleOf":
        return _finding("VA439", path, {"expected": bound, "excerpt": shown}, f"multiple of {bound}", shown)
    if keyword is None or keyword == "false":
        return _finding("VA440", path, {"list": "nothing: no value is allowed here"}, "no value", shown)
    return _finding("VA440", path, {"list": f"what '{keyword}' asks for"}, f"what '{keyword}' asks for", shown)


def missing(parent: str, name: str, schema: Json) -> Finding:
    """A required member that is not there; its path is its own."""
    properties = schema.get("properties") if is_object(schema) else None
    declared = properties.get(name) if is_object(properties) else None
    words = type_words(declared)
    path = f"{parent}{to_pointer([name])}"
    return Finding("VA404", path, "error", {"p": label(path), "type": words}, words, "nothing")


def unknown(parent: str, name: str, declared: Names, code: str = "VA403") -> Finding:
    """A member that the schema does not know, with what it may have meant."""
    names, suggestion = declared.all, declared.best(name)
    path = f"{parent}{to_pointer([name])}"
    severity = "error" if code == "VA403" else "warning"
    expected = "one of " + listing(names) if names else "no parameters"
    args: dict[str, str | int] = {"p": label(path), "hint": hint(suggestion)}
    return Finding(code, path, severity, args, expected, excerpt(name), suggestion)


def listing(names: Sequence[str]) -> str:
    """Names in a row, the first twenty of them."""
    return ", ".join(excerpt(name) for name in names[:20]) + (", …" if len(names) > 20 else "")


def type_words(schema: Json) -> str:
    """A schema's type as one or two words: ``string``, ``integer or null``, ``one of "a", "b"``."""
    if is_object(schema):
        named = schema.get("type")
        if isinstance(named, str):
            return named
        if is_list(named):
            return " or ".join(str(name) for name in named)
        enum = schema.get("enum")
        if is_list(enum):
            return "one of " + ", ".join(excerpt(value) for value in enum[:8])
        if "const" in schema:
            return as_json(schema["const"])
        for key in ("anyOf", "oneOf"):
            parts = schema.get(key)
            if is_list(parts):
                return " or ".join(dict.fromkeys(type_words(part) for part in parts[:8]))
        ref = schema.get("$ref")
        if isinstance(ref, str):
            return ref.rpartition("/")[2] or "any"
    return "any"


def _extras(instance: dict[str, Json], schema: dict[str, Json], error: ValidationError) -> list[str]:
    if error.validator == "unevaluatedProperties":
        return [name for name in instance if f"'{name}'" in error.message] or list(instance)
    declared = schema.get("properties")
    patterns = schema.get("patternProperties")
    names = [name for name in instance if not (is_object(declared) and name in declared)]
    if is_object(patterns):
        names = [name for name in names if not any(_found(pattern, name) for pattern in patterns)]
    return names


_APPLICATORS = ("allOf", "anyOf", "oneOf")


def declared_names(schema: Json, root: Json) -> dict[str, None]:
    """All property names that a schema declares for the object itself, through references and alternatives."""
    from tamis.protocols.schema.words import resolve

    names: dict[str, None] = {}
    stack: list[Json] = [schema]
    seen: set[int] = set()
    while stack and len(seen) < 2_000:
        node = stack.pop()
        if not is_object(node) or id(node) in seen:
            continue
        seen.add(id(node))
        properties = node.get("properties")
        if is_object(properties):
            names.update(dict.fromkeys(properties))
        for key in _APPLICATORS:
            parts = node.get(key)
            if is_list(parts):
                stack.extend(parts)
        stack.extend(node[key] for key in ("if", "then", "else") if key in node)
        for key in ("dependentSchemas", "dependencies"):
            parts = node.get(key)
            if is_object(parts):
                stack.extend(parts.values())
        ref = node.get("$ref")
        if isinstance(ref, str) and (ref == "#" or ref.startswith("#/")):
            try:
                stack.append(resolve(root, ref))
            except KeyError:
                continue
    return names


def _enum(path: str, instance: Json, values: list[Json]) -> Finding:
    texts = [value for value in values if isinstance(value, str)]
    suggestion = best(instance, texts) if isinstance(instance, str) else None
    if suggestion is None and isinstance(instance, str):
        suggestion = next(
            (text for text in texts if normalised(text) == normalised(instance) and text != instance), None
        )
    listed = ", ".join(excerpt(value) for value in values[:20]) + (", …" if len(values) > 20 else "")
    shown = instance if isinstance(instance, str) else excerpt(instance)
    args: dict[str, str | int] = {"v": shown, "list": listed, "hint": hint(suggestion)}
    return _finding("VA430", path, args, f"one of {listed}", excerpt(instance), suggestion)


def _repeated(items: list[Json]) -> Json:
    seen: set[str] = set()
    for item in items:
        key = as_json(item)
        if key in seen:
            return item
        seen.add(key)
    return items[0] if items else None


def _no_alternative(path: str, error: ValidationError, keyword: str) -> Finding:
    parts = cast("list[Json]", error.validator_value)
    instance = cast("Json", error.instance)
    names = [branch_name(part) for part in parts[:12]]
    context = list(cast("Iterable[ValidationError]", error.context or ()))
    if keyword == "oneOf" and not context:
        args: dict[str, str | int] = {"list": f"exactly one of {', '.join(names)}: several fit"}
        return _finding("VA440", path, args, " or ".join(names), excerpt(instance))
    listed = ", ".join(names)
    reason = _best_reason(context, instance)
    args = {"list": f"{listed}{reason}"}
    return _finding("VA440", path, args, " or ".join(names), excerpt(instance))


def branch_name(schema: Json) -> str:
    """What an alternative is called: its title, its discriminating constant, its reference or its type."""
    if is_object(schema):
        title = schema.get("title")
        if isinstance(title, str):
            return title
        properties = schema.get("properties")
        if is_object(properties):
            for name, part in properties.items():
                if is_object(part) and "const" in part:
                    return f"{name} = {as_json(part['const'])}"
    return type_words(schema)


def _best_reason(context: list[ValidationError], instance: Json) -> str:
    """Why the branch that was most likely meant does not fit; nothing where no branch stands out."""
    branches: dict[int, list[ValidationError]] = {}
    for error in context:
        if error.schema_path:
            branches.setdefault(cast("int", error.schema_path[0]), []).append(error)

    def rank(index: int) -> tuple[bool, int, int]:
        errors = branches[index]
        # A branch that fails on its own type or on a constant was not the one that was meant.
        other = any(
            (error.validator == "type" and not error.path)
            or (error.validator in ("const", "enum") and len(error.path) <= 1)
            for error in errors
        )
        return other, len(errors), -max(len(error.path) for error in errors)

    if not branches or type_of(instance) not in ("object", "array"):
        return ""
    chosen = min(branches, key=rank)
    if rank(chosen)[0]:
        return ""
    from tamis.protocols.catalogue import message
    from tamis.protocols.model import Diag

    worded = [finding for error in branches[chosen] for finding in _worded(error)][:3]
    reasons = "; ".join(message(Diag(finding.code, (0, 0), finding.args)) for finding in worded)
    parent = cast("Any", branches[chosen][0].parent)
    parts = cast("list[Json]", parent.validator_value)
    schema = parts[chosen] if chosen < len(parts) else None
    return f" (closest: {branch_name(schema)}: {reasons})" if reasons else ""
