"""A tool's parameter schema, compiled once: coercion, validity, findings.

``compile_plan`` looks at the schema once; ``Plan.check`` then reads raw arguments, coerces them and says all that is wrong with
them. The fast predicate and jsonschema agree (a property test shows it); jsonschema is imported only when something failed or
a schema is outside the predicate's keywords. Nothing is ever fetched. Must not know calls, files or sources.

Defaults of a schema are described to models and never filled in: an argument that is not given is not there (ruling 2, F3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tamis.protocols.model import Json, unescape_pointer
from tamis.protocols.schema.check import SchemaIssue, check_schema
from tamis.protocols.schema.coerce import Node, Reading, Run
from tamis.protocols.schema.coerce_text import format_name
from tamis.protocols.schema.errors import (
    TooMuchWorkError,
    declared_names,
    explain,
    fault_of,
    fits,
    make_validator,
    part_of,
    unknown,
)
from tamis.protocols.schema.regex import PatternError, compile_pattern
from tamis.protocols.schema.valid import Check, compile_parts, compile_valid
from tamis.protocols.schema.words import Finding, Outcome, excerpt, is_list, is_object, resolve, type_of
from tamis.protocols.suggest import Names

# Schema to coercion nodes: which types a place allows, and what lies below it. Works for every schema, also for one whose validity only jsonschema
# can judge.


_MAX_NODES = 50_000


def compile_nodes(schema: Json, valid_of: Callable[[Json], Check | None]) -> Node:
    """The coercion nodes of a schema; ``valid_of`` compiles the predicate of an alternative. Never raises on a checked schema."""
    return _Builder(schema, valid_of).node(schema)


class _Builder:
    def __init__(self, root: Json, valid_of: Callable[[Json], Check | None]) -> None:
        self.root = root
        self.valid_of = valid_of
        self.by_ref: dict[str, Node] = {}
        self.made = 0

    def node(self, schema: Json, node: Node | None = None) -> Node:
        node = node or Node()
        self.made += 1
        if not is_object(schema) or self.made > _MAX_NODES:
            node.plain = True
            return node
        ref = schema.get("$ref")
        if isinstance(ref, str):
            target = self.target(ref)
            if target is not None:
                node.all_of.append(target)
        self.values(schema, node)
        self.parts(schema, node)
        node.types = _meet([node.types, *(_types_of_choice(choice) for choice in node.choices)])
        for part in node.all_of:
            node.types = _meet([node.types, part.types])
            node.enum = node.enum if node.enum is not None else part.enum
            node.required |= part.required
        node.plain = (
            node.enum is None
            and node.format is None
            and (node.types is None or "string" in node.types)
            and not (node.types is not None and "null" in node.types)
            and not any(part.format or not part.plain for part in node.all_of)
        )
        return node

    def target(self, ref: str) -> Node | None:
        if not (ref == "#" or ref.startswith("#/")):
            return None
        node = self.by_ref.get(ref)
        if node is None:
            try:
                schema = resolve(self.root, ref)
            except KeyError:
                return None
            # Entered before it is built: a schema may refer to itself.
            node = self.by_ref[ref] = Node()
            if is_object(schema):
                node.types = _declared(schema)
            self.node(schema, node)
        return node

    def values(self, schema: dict[str, Json], node: Node) -> None:
        types = _declared(schema)
        enum = schema.get("enum")
        if "const" in schema:
            enum = [schema["const"]]
        if is_list(enum):
            node.enum = enum
            of_enum = tuple(dict.fromkeys(type_of(value) for value in enum))
            types = of_enum if types is None else types
        node.types = types
        named = schema.get("format")
        if isinstance(named, str) and format_name(named) is not None:
            node.format = named

    def parts(self, schema: dict[str, Json], node: Node) -> None:
        properties = schema.get("properties")
        if is_object(properties):
            node.properties = {name: self.node(part) for name, part in properties.items()}
        required = schema.get("required")
        if is_list(required):
            node.required = frozenset(name for name in required if isinstance(name, str))
        additional = schema.get("additionalProperties")
        if is_object(additional) and additional:
            node.additional = self.node(additional)
        items = schema.get("items")
        prefix = schema.get("prefixItems")
        if is_list(items):
            prefix, items = items, schema.get("additionalItems")
        if is_object(items):
            node.items = self.node(items)
        if is_list(prefix):
            node.prefix = [self.node(part) for part in prefix]
        all_of = schema.get("allOf")
        if is_list(all_of):
            node.all_of += [self.node(part) for part in all_of]
        for key in ("anyOf", "oneOf"):
            alternatives = schema.get(key)
            if is_list(alternatives):
                choice = [self.node(part) for part in alternatives]
                for part, child in zip(alternatives, choice, strict=True):
                    child.valid = self.valid_of(part)
                node.choices.append(choice)


def _declared(schema: dict[str, Json]) -> tuple[str, ...] | None:
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    if is_list(named):
        types = tuple(str(name) for name in named)
        # A whole number in a text is an integer before it is a number.
        return tuple(sorted(types, key=lambda name: name == "number")) if "integer" in types else types
    return None


def _types_of_choice(choice: list[Node]) -> tuple[str, ...] | None:
    types: dict[str, None] = {}
    for node in choice:
        if node.types is None:
            return None
        types.update(dict.fromkeys(node.types))
    return tuple(types)


def _meet(all_types: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """The types that all of them allow; an integer is a number too."""
    met: tuple[str, ...] | None = None
    for types in all_types:
        if types is None:
            continue
        if met is None:
            met = types
            continue
        wide = {*types, "integer"} if "number" in types else set(types)
        kept = tuple(name for name in met if name in wide or (name == "number" and "integer" in types))
        met = tuple("integer" if name == "number" and "number" not in wide else name for name in kept)
    return met


__all__ = ["Finding", "Outcome", "Plan", "Reading", "SchemaIssue", "compile_plan", "is_too_deep"]

MAX_VALUE_DEPTH = 100


_FLAT = frozenset((str, int, float, bool, type(None)))


class Plan:
    """One schema, ready to check arguments.

    ``issues`` are the schema's own faults; with an error among them nothing passes. ``names`` are the declared parameters.
    """

    __slots__ = (
        "_compile",
        "_known_patterns",
        "_open",
        "_root",
        "_strict_names",
        "_valid",
        "_validator",
        "issues",
        "names",
        "schema",
        "usable",
    )

    def __init__(
        self, schema: Json, *, issues: list[SchemaIssue] | None = None, names: dict[str, None] | None = None
    ) -> None:
        """``issues`` and ``names`` spare the looks at the whole schema where they are known."""
        self.schema = schema
        self.issues: list[SchemaIssue] = check_schema(schema) if issues is None else issues
        self.usable = not any(issue.severity == "error" for issue in self.issues)
        """Whether the schema itself is sound."""
        self.names: dict[str, None] = {}
        self._validator = None
        self._valid: Check | None = None
        self._strict_names = False
        self._open = False
        self._known_patterns: list[str] = []
        if not self.usable:
            return
        self.names = declared_names(schema, schema) if names is None else names
        self._valid = compile_valid(schema)
        self._compile = compile_parts(schema)
        self._root = compile_nodes(schema, self._valid_of)
        if is_object(schema):
            extra = schema.get("additionalProperties")
            self._open = extra is True or is_object(extra) or schema.get("unevaluatedProperties") is True
            patterns = schema.get("patternProperties")
            self._known_patterns = list(patterns) if is_object(patterns) else []
            # An unknown name is an error (ruling 3) unless the schema opens itself; a schema that declares nothing is open.
            declares = "properties" in schema or bool(self.names)
            self._strict_names = declares and not self._open and not self._refers_outside()

    def _refers_outside(self) -> bool:
        schema = self.schema
        return is_object(schema) and any(key in schema for key in ("$dynamicRef", "propertyNames"))

    def _valid_of(self, part: Json) -> Check:
        """The verdict on one alternative; jsonschema's, where its schema is outside the compiled keywords."""
        compiled = self._compile(part)
        if compiled is not None:
            return compiled

        def check(value: Json) -> bool:
            try:
                return fits(part_of(self.validator, part), value)
            except TooMuchWorkError:
                return False

        return check

    def is_valid(self, value: Json) -> bool:
        """Whether typed JSON fits the schema as JSON Schema means it: no coercion, no view on unknown names."""
        if not self.usable:
            return False
        try:
            return self._fits(value)
        except BaseException as error:
            if fault_of(error) is None:
                raise
            return False

    def _fits(self, value: Json) -> bool:
        if self._valid is not None:
            return self._valid(value)
        return fits(self.validator, value)

    @property
    def validator(self):
        """jsonschema's validator of this schema."""
        if self._validator is None:
            self._validator = make_validator(self.schema)
        return self._validator

    def check(self, args: Json, reading: Reading = "any", *, drops_nulls: bool | None = None) -> Outcome:
        """Reads raw arguments: the typed ones, or everything that is wrong with them.

        ``drops_nulls``: a null for an optional parameter that allows none counts as not given (VA442); by default unless
        ``typed``, as what a tool gave is held to its schema to the letter.
        Never raises. ``errors`` and ``warnings`` are in the order of the arguments, unknown and missing ones last.
        """
        if not self.usable:
            issues = [issue for issue in self.issues if issue.severity == "error"]
            return Outcome(False, None, [Finding(issue.code, "", "error", issue.args) for issue in issues])
        flat = type(args) is dict and _FLAT.issuperset(map(type, args.values()))
        if not flat and is_too_deep(args):
            what: dict[str, str | int] = {"p": "arguments", "what": f"more than {MAX_VALUE_DEPTH} levels of nesting"}
            limit = f"at most {MAX_VALUE_DEPTH} levels"
            return Outcome(False, None, [Finding("VA424", "", "error", what, limit, "more")])
        try:
            return self._check(
                args, Run(reading, drops_nulls=reading != "typed" if drops_nulls is None else drops_nulls)
            )
        except BaseException as error:
            finding = fault_of(error)
            if finding is None:
                raise
            return Outcome(False, None, [finding])

    def _check(self, args: Json, run: Run) -> Outcome:
        coerced = self._root.coerce(args, None, run)
        names: list[Finding] = []
        if type(coerced) is dict and not coerced.keys() <= self.names.keys() and (self.names or self._strict_names):
            others = [name for name in coerced if name not in self.names]
            known = Names(self.names if others else ())
            for name in others:
                self._unknown_name(name, known, names, run)
        if not run.errors and not names and self._fits(coerced):
            return Outcome(True, coerced, [], run.warnings)
        findings = explain(self.validator, coerced, [*run.errors, *names])
        meant = {finding.suggestion for finding in [*names, *findings] if finding.code == "VA403"}
        # The parameter that a misspelled one meant is not missing as well (seed 000 §5.5).
        findings = [finding for finding in findings if not (finding.code == "VA404" and finding.args["p"] in meant)]
        errors = _in_order([*run.errors, *names, *findings], coerced)
        if not errors:
            kind: dict[str, str | int] = {"p": "arguments", "list": "the schema", "excerpt": excerpt(coerced)}
            errors = [Finding("VA440", "", "error", kind, "arguments that fit the schema", type_of(coerced))]
        return Outcome(False, None, errors, run.warnings)

    def unknown_names(self, names: Iterable[str]) -> list[str]:
        """Those of the names of arguments that are errors because no parameter has them."""
        if not self.usable or not self._strict_names:
            return []
        return [n for n in names if n not in self.names and not any(_matches(p, n) for p in self._known_patterns)]

    def _unknown_name(self, name: str, known: Names, names: list[Finding], run: Run) -> None:
        if any(_matches(pattern, name) for pattern in self._known_patterns):
            return
        if self._strict_names:
            names.append(unknown("", name, known))
            return
        finding = unknown("", name, known, "VA441")
        if finding.suggestion is not None:
            run.warnings.append(finding)


def _matches(pattern: str, name: str) -> bool:
    try:
        return compile_pattern(pattern).test(name)
    except PatternError:
        return False


def _in_order(findings: list[Finding], args: Json) -> list[Finding]:
    """Findings in the order of the arguments; those of arguments that are not there come last."""
    order = {name: i for i, name in enumerate(args)} if is_object(args) else {}

    def place(finding: Finding) -> int:
        token = unescape_pointer(finding.path[1:].partition("/")[0])
        return order.get(token, len(order)) if finding.path else -1

    return sorted(findings, key=place)


def is_too_deep(value: Json) -> bool:
    """Whether a value is nested deeper than the limit; costs nothing for flat arguments."""
    level: list[Json] = [value]
    for _ in range(MAX_VALUE_DEPTH):
        below: list[Json] = []
        for part in level:
            if is_object(part):
                below.extend(item for item in part.values() if isinstance(item, (dict, list)))
            elif is_list(part):
                below.extend(item for item in part if isinstance(item, (dict, list)))
        if not below:
            return False
        level = below
    return True


def compile_plan(schema: Json) -> Plan:
    """Compiles a schema. Never raises: the schema's faults are in ``Plan.issues``."""
    return Plan(schema)
