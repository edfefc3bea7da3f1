"""The schemas and examples of a manifest: faults of the schemas, and of examples and defaults against them, at their places.

Must not know the other fields of a manifest.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.jsontext.quote import quoted
from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.manifest.fields import Findings, in_words, value_of
from tamis.protocols.model import Diag, Edit, Fix, Json
from tamis.protocols.positions import Span
from tamis.protocols.schema.plan import Plan, SchemaIssue, compile_plan
from tamis.protocols.schema.valid import compile_valid_at
from tamis.protocols.schema.words import Finding, is_list, is_object, label
from tamis.protocols.suggest import same_name

ReadExample = tuple[dict[str, Json], str, Json | msgspec.UnsetType]


def check_schema_field(tree: JsonTree, node: JsonNode | None, field: str, found: Findings) -> Plan | None:
    """Compiles ``parameters`` or ``output`` and reports its faults; None where it is missing or no schema at all."""
    if node is None:
        return None
    schema = node.to_python()
    if not is_object(schema) and not (field == "output" and isinstance(schema, bool)):
        found.wrong_type(node, field, "a JSON Schema object")
        return None
    plan = compile_plan(schema)
    for issue in plan.issues:
        _report(tree, issue, f"/{field}", found)
    if field == "parameters" and is_object(schema):
        named = schema.get("type", "object")
        if named != "object" and not (is_list(named) and "object" in named):
            at = tree.node_at("/parameters/type") or node
            found.add("MF535", at.span, {"received": str(named)})
    if plan.usable:
        for path, part in _with_defaults(schema, ""):
            check = compile_valid_at(schema, part)
            at = tree.node_at(f"/{field}{path}/default")
            if check is not None and at is not None and not check(part["default"]):
                sub = compile_plan(part)
                name = path.rpartition("/")[2] or field
                reasons = _reasons(sub.check(part["default"], "typed").errors, name) if sub.usable else ""
                found.add("MF532", at.span, {"p": name, "reason": reasons or "it does not fit"})
    return plan


def _report(tree: JsonTree, issue: SchemaIssue, base: str, found: Findings) -> None:
    path = f"{base}{issue.path}"
    span = (tree.key_span(path) if issue.on_key else None) or _span(tree, path)
    fix = None
    if issue.suggestion is not None:
        sure = "safe" if issue.on_key and same_name(issue.suggestion, str(issue.args.get("k", ""))) else "unsafe"
        text = quoted(issue.suggestion)
        fix = Fix(f"Replace by '{issue.suggestion}'", (Edit(*span, text),), sure)
    diag = Diag(issue.code, span, dict(issue.args), severity=issue.severity, fix=fix, data={"path": path})
    found.diags.append(diag)


def _span(tree: JsonTree, path: str) -> Span:
    """The place of a value, or of the nearest container above it: then its opening bracket."""
    node, exact = tree.nearest(path)
    if node is None:
        return 0, 0
    return node.span if exact and node.kind not in ("object", "array") else (node.start, node.start + 1)


def _with_defaults(schema: Json, path: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """Every subschema below ``properties``, ``items`` and definitions that has a default, with its pointer."""
    stack: list[tuple[str, Json]] = [(path, schema)]
    while stack:
        here, node = stack.pop()
        if not is_object(node):
            continue
        if "default" in node:
            yield here, node
        for key in ("properties", "$defs", "definitions"):
            named = node.get(key)
            if is_object(named):
                for name, part in named.items():
                    token = name.replace("~", "~0").replace("/", "~1")
                    stack.append((f"{here}/{key}/{token}", part))
        if is_object(node.get("items")):
            stack.append((f"{here}/items", node["items"]))


def check_examples(
    tree: JsonTree, node: JsonNode | None, plan: Plan | None, output: Plan | None, found: Findings
) -> list[ReadExample]:
    """The examples (input, description, expected output), each held against the schemas (D42)."""
    if node is None:
        return []
    if node.kind != "array":
        found.wrong_type(node, "examples", "a list of examples")
        return []
    examples: list[ReadExample] = []
    for i, item in enumerate(node.items):
        fields = found.object(item, f"examples[{i}]", ("description", "input", "expectedOutput"))
        if item.kind != "object":
            continue
        description = found.text(value_of(fields, "description"), f"examples[{i}].description") or ""
        given = value_of(fields, "input")
        if given is None:
            if "input" not in fields:
                found.missing(item, "input", f" of examples[{i}]")
            continue
        args = given.to_python()
        if not is_object(args):
            found.wrong_type(given, f"examples[{i}].input", f"an object of arguments, not {in_words(args)}")
            continue
        if plan is not None and plan.usable:
            _compare(tree, plan, args, f"/examples/{i}/input", "VA453", i, found)
        wanted = value_of(fields, "expectedOutput")
        expected = msgspec.UNSET if wanted is None else wanted.to_python()
        if output is not None and output.usable and expected is not msgspec.UNSET:
            _compare(tree, output, expected, f"/examples/{i}/expectedOutput", "MF517", i, found)
        examples.append((args, description, expected))
    return examples


def _compare(tree: JsonTree, plan: Plan, value: Json, base: str, code: str, index: int, found: Findings) -> None:
    # An output may hold more than its schema declares: names are only strict in what models write.
    if code == "MF517" and plan.is_valid(value):
        return
    for finding in plan.check(value, "typed").errors:
        if code == "MF517" and finding.code == "VA403" and plan.schema is not None:
            continue
        path = f"{base}{finding.path}"
        unknown = finding.code == "VA403"
        span = (tree.key_span(path) if unknown else None) or _span(tree, path)
        fix = None
        if unknown and finding.suggestion is not None:
            text = quoted(finding.suggestion)
            fix = Fix(f"Rename to '{finding.suggestion}'", (Edit(*span, text),), "unsafe")
        args: dict[str, str | int] = {"i": index, "reason": _reasons([finding], base.rpartition("/")[2])}
        found.add(code, span, args, fix=fix, data={"code": finding.code, "path": path})


def _reasons(findings: list[Finding], root: str) -> str:
    """What is wrong, in the catalogue's words; ``root`` is what the checked value itself is called."""
    return "; ".join(
        message(Diag(finding.code, (0, 0), {**finding.args, "p": label(finding.path) if finding.path else root}))
        for finding in findings[:3]
    )
