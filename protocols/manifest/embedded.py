"""The schemas of a manifest: their faults, and those of defaults against them, at their places.

What is known of a schema is kept from version to version (``FieldMemory``), so that a keystroke costs what it changed. Must
not know the other fields of a manifest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import msgspec

from tamis.protocols.catalogue import message, value_message
from tamis.protocols.jsontext.green import Scalar
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.manifest.fields import MAX_FINDINGS, Findings
from tamis.protocols.model import Diag, Edit, Fix, Json
from tamis.protocols.positions import Span
from tamis.protocols.schema.check import KEYWORDS, SchemaIssue, check_schema
from tamis.protocols.schema.facts import Checked, Facts, check_shared
from tamis.protocols.schema.held import Held, hold
from tamis.protocols.schema.valid import Check, compile_valid
from tamis.protocols.schema.words import JSON_TYPES, Finding, is_list, is_object, label
from tamis.protocols.suggest import same_name


class FieldMemory(msgspec.Struct, frozen=True, eq=False):
    """What is known of the schema of one field: the last one as it was checked, and the verdicts of the last sound one."""

    checked: Checked | None = None
    held: Held | None = None


class FieldSchema(msgspec.Struct, frozen=True, eq=False):
    """The schema of one field; ``held`` is None where it is missing or not sound."""

    held: Held | None
    memory: FieldMemory


def check_schema_field(
    tree: JsonTree,
    node: JsonNode | None,
    field: str,
    findings: Findings,
    before: FieldMemory | None = None,
    leaves: dict[object, Facts] | None = None,
) -> FieldSchema:
    """Checks ``parameters`` or ``output`` and reports its faults, starting from what is known of its last version."""
    memory = before or FieldMemory()
    if node is None:
        return FieldSchema(None, memory)
    schema = node.to_python()
    if not is_object(schema) and not (field == "output" and isinstance(schema, bool)):
        findings.wrong_type(node, field, "a JSON Schema object")
        return FieldSchema(None, memory)
    checked = check_shared(schema, memory.checked, {} if leaves is None else leaves)
    for issue in checked.issues:
        _report(tree, issue, field, findings)
    if field == "parameters" and is_object(schema):
        named = schema.get("type", "object")
        if schema and all(
            is_object(part) and name not in KEYWORDS and name[:1] != "$" for name, part in schema.items()
        ):
            # The parameters stand where the keywords belong: JSON Schema would take any arguments at all.
            received = "parameters by name: put them in 'properties'"
            findings.add("MF535", (node.start, node.start + 1), {"received": received}, severity="warning")
        elif (
            (named in JSON_TYPES or is_list(named)) and named != "object" and not (is_list(named) and "object" in named)
        ):
            at = tree.node_at("/parameters/type") or node
            findings.add("MF535", at.span, {"received": str(named)})
    held = hold(checked, memory.held) if checked.usable else None
    for path, errors in checked.defaults if checked.usable else ():
        if len(findings.diags) >= MAX_FINDINGS:
            break
        at = tree.node_at(f"/{field}{path}/default")
        if at is not None:
            name = path.rpartition("/")[2] or field
            findings.add("MF532", at.span, {"p": name, "reason": reasons(errors, name) or "it does not fit"})
    return FieldSchema(held, FieldMemory(checked, held or memory.held))


def _report(tree: JsonTree, issue: SchemaIssue, field: str, findings: Findings) -> None:
    path = f"/{field}{issue.path}"
    span = (tree.key_span(path) if issue.on_key else None) or value_span(tree, path)
    fix = None
    if issue.suggestion is not None:
        sure = "safe" if issue.on_key and same_name(issue.suggestion, str(issue.args.get("k", ""))) else "unsafe"
        text = quoted(issue.suggestion)
        fix = Fix(f"Replace by '{issue.suggestion}'", (Edit(*span, text),), sure)
    args = dict(issue.args)
    if field != "parameters" and issue.code == "VA450":
        args["subject"] = field
    diag = Diag(issue.code, span, args, severity=issue.severity, fix=fix, data={"path": path})
    findings.diags.append(diag)


def value_span(tree: JsonTree, path: str) -> Span:
    """The place of a value, or of the nearest container above it: then its opening bracket."""
    green, start, exact = tree.nearest_place(path)
    if green is None:
        return 0, 0
    return start, start + (green.length if exact and isinstance(green, Scalar) else 1)


def reasons(findings: tuple[Finding, ...] | list[Finding], root: str) -> str:
    """What is wrong, in the catalogue's words; ``root`` is what the checked value itself is called."""
    return "; ".join(
        message(Diag(finding.code, (0, 0), {**finding.args, "p": label(finding.path) if finding.path else root}))
        for finding in findings[:3]
    )


# Further rules for manifests: JSON Schemas that each has to fit besides what Tamis itself asks (setting ``schemaExtension``, T4). A rule only ever
# refuses, so a folder may bring its own. One that cannot be used refuses every manifest: what its author wanted is not known.


_MAX_RULE_FINDINGS = 20
_SPENT = "it takes too many steps, or leads nowhere"


class SchemaExtension:
    """One such schema under the name of its file; equal to every other of the same name and content."""

    __slots__ = ("_fits", "_told", "fault", "name", "schema")

    def __init__(self, name: str, text: str, fault: str = "") -> None:
        """``fault``: why there is no text."""
        self.name = name
        self.fault = fault
        """Why it cannot be used; empty when it can."""
        self.schema: Json = None
        self._fits: Check | None = None
        self._told = (name, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), fault)
        if not fault:
            self._read(text)

    def __repr__(self) -> str:
        return f"SchemaExtension{self._told!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaExtension) and other._told == self._told

    def __hash__(self) -> int:
        return hash(self._told)

    def findings(self, manifest: Json) -> list[Finding] | None:
        """What of a manifest does not fit; None where that could not be found out."""
        if self._fits is not None and self._fits(manifest):
            return []
        # the authority, loaded only where something may be wrong
        from tamis.protocols.schema.errors import explain, fault_of, fits, make_validator

        try:
            validator = make_validator(self.schema)
            findings = explain(validator, manifest)
            return findings or ([] if fits(validator, manifest) else None)
        except BaseException as error:
            if fault_of(error) is None:
                raise
            return None

    def _read(self, text: str) -> None:
        try:
            self.schema = json.loads(text)
        except (ValueError, RecursionError):
            self.fault = "is no JSON"
            return
        if not is_object(self.schema) or any(issue.severity == "error" for issue in check_schema(self.schema)):
            self.fault = "is no JSON Schema"
            return
        self._fits = compile_valid(self.schema)


def check_extensions(tree: JsonTree, root: JsonNode, extensions: Iterable[SchemaExtension], findings: Findings) -> None:
    """Holds a manifest against each; findings stand at what does not fit, or at the object where something is missing."""
    if not extensions:
        return
    raw = root.to_python()
    for extension in extensions:
        start = (root.start, min(root.end, root.start + 1))
        problems = None if extension.fault else extension.findings(raw)
        if problems is None:
            findings.add("MF549", start, {"name": extension.name, "reason": f"it {extension.fault or _SPENT}"})
        for problem in (problems or [])[:_MAX_RULE_FINDINGS]:
            node, exact = tree.nearest(problem.path)
            span = start if node is None or node is root or not exact else node.span
            told = value_message(Diag(problem.code, span, problem.args), "arguments", whole=not problem.path)
            findings.add("MF550", span, {"name": extension.name, "what": told.replace("Input parameter ", "")})
