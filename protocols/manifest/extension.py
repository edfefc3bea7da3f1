"""Further rules for manifests: JSON Schemas that each has to fit besides what Tamis itself asks (setting ``schemaExtension``, T4).

A rule only ever refuses, so a folder may bring its own. One that cannot be used refuses every manifest: what its author wanted is not known.
Must not know files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from tamis.protocols.catalogue import value_message
from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.manifest.fields import Findings
from tamis.protocols.model import Diag, Json
from tamis.protocols.schema.check import check_schema
from tamis.protocols.schema.valid import Check, compile_valid
from tamis.protocols.schema.words import Finding, is_object

MAX_FINDINGS = 20
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
            found = explain(validator, manifest)
            return found or ([] if fits(validator, manifest) else None)
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


def check_extensions(tree: JsonTree, root: JsonNode, extensions: Iterable[SchemaExtension], found: Findings) -> None:
    """Holds a manifest against each; findings stand at what does not fit, or at the object where something is missing."""
    if not extensions:
        return
    raw = root.to_python()
    for extension in extensions:
        start = (root.start, min(root.end, root.start + 1))
        problems = None if extension.fault else extension.findings(raw)
        if problems is None:
            found.add("MF549", start, {"name": extension.name, "reason": f"it {extension.fault or _SPENT}"})
        for problem in (problems or [])[:MAX_FINDINGS]:
            node, exact = tree.nearest(problem.path)
            span = start if node is None or node is root or not exact else node.span
            told = value_message(Diag(problem.code, span, problem.args), "arguments", whole=not problem.path)
            found.add("MF550", span, {"name": extension.name, "what": told.replace("Input parameter ", "")})
