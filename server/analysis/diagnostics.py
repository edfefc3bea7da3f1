"""The findings of a document: what reading it found, and what the tools around it say.

The text of a finding and its severity are the catalogue's; this module only decides which findings there are. Every list is
capped, and the cap is said.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.levels import Levels
from tamis.protocols.manifest.profile import HOST_PREFIXES
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Block, Call, Diag, Edit, Fix
from tamis.protocols.plugins import extras_of
from tamis.protocols.positions import Span
from tamis.protocols.suggest import best, hint
from tamis.protocols.workflow.graph import called_types, check_graph, findings_at
from tamis.protocols.workflow.model import WHOLE, Slot, Slots, Workflow, slots_of
from tamis.protocols.workflow.reading import read_workflow
from tamis.server.analysis.answers import Finding, Related, Tag
from tamis.server.analysis.kinds import MAX_ANALYSED_CHARS, function_of
from tamis.server.analysis.lints.directives import levels_of, silenced, with_levels
from tamis.server.analysis.lints.lint import lint_manifest, lint_text
from tamis.server.analysis.manifests import Findings, manifest_findings, plugin_findings, profile_findings
from tamis.server.analysis.running.expectations import expectation_findings
from tamis.server.analysis.running.variables import (
    Filled,
    Variables,
    example_references,
    filled,
    reference_findings,
    variables_in,
)
from tamis.server.analysis.snapshot import RegistryView, Snapshot

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot


# Blocks that are no calls of anybody: templates with a placeholder for the tool, and elements of HTML that only look like a block; and which blocks
# of a text stand in one turn. Pure; must not know what is said of them.


_PLACEHOLDER = re.compile(r"\{\{.*\}\}|\{%.*%\}|\$\{.*\}|\{\w+\}|<[\w .:-]+>|%\w+%|\.\.\.|…", re.S)
_ELEMENT = re.compile(r"<\s*/?\s*(?:\{\{|\{%|\$\{)")
_STOCK = re.compile(r"(?:your[_-]?)?tool[_-]?(?:name|id)(?:[_-]?here)?|your[_-]?tool(?:[_-]?here)?", re.I)
_HTML = frozenset(
    (
        "a",
        "b",
        "br",
        "button",
        "code",
        "div",
        "em",
        "form",
        "h1",
        "h2",
        "h3",
        "i",
        "img",
        "input",
        "label",
        "li",
        "ol",
        "option",
        "p",
        "pre",
        "select",
        "span",
        "strong",
        "svg",
        "table",
        "td",
        "textarea",
        "th",
        "tr",
        "u",
        "ul",
    )
)
_PART = re.compile(r"^(?:#{1,6}[ \t]|(?:-{3,}|\*{3,}|_{3,})[ \t]*$)", re.M)


def is_template(snapshot: Snapshot, block: Block) -> bool:
    """Whether a block has a placeholder where its tool would stand: it shows how a call is written, and calls nothing."""
    if any(_stands_for_a_tool(call.tool_id) and snapshot.tool(call.tool_id) is None for call in block.calls):
        return True
    return extras_of(block.protocol).elements and _ELEMENT.search(snapshot.text, *block.span) is not None


def _stands_for_a_tool(tool_id: str) -> bool:
    return _PLACEHOLDER.fullmatch(tool_id) is not None or _STOCK.fullmatch(tool_id) is not None


def is_markup(snapshot: Snapshot, block: Block) -> bool:
    """Whether a block is an element ``<action>`` of a page: not written as a block's marker is, and with nothing in it but text or HTML."""
    if not extras_of(block.protocol).elements or snapshot.text[block.open[0] : block.open[1]].lstrip("<").startswith(
        "ACTION"
    ):
        return False
    return all(call.tool_id.lower() in _HTML and snapshot.tool(call.tool_id) is None for call in block.calls)


def later_in_turn(snapshot: Snapshot) -> list[Block]:
    """The ACTION blocks that stand behind another one in the same turn: a heading or a rule between them parts turns (ruling 14).

    Markdown is a page of calls, not a model's turn: there are none in it (editors, defect 7).
    """
    blocks: list[Block] = []
    if snapshot.path.endswith((".md", ".markdown")):
        return blocks
    before: Block | None = None
    for block in snapshot.document.blocks:
        if block.aside or not extras_of(block.protocol).elements or is_markup(snapshot, block):
            continue
        if before is not None and _PART.search(snapshot.text, before.span[1], block.span[0]) is None:
            blocks.append(block)
        before = block
    return blocks


MAX_FINDINGS = 200
MAX_SETTINGS_CHARS = 1024 * 1024
QUICK_CHARS = 200_000
"""Up to here all findings of a manifest are there within some hundredths of a second."""
_TAGS: dict[str, tuple[Tag, ...]] = {
    "TC007": ("unnecessary",),
    "TC011": ("unnecessary",),
    "AX125": ("unnecessary",),
    "AX136": ("unnecessary",),
    "MF510": ("unnecessary",),
    "TM226": ("unnecessary",),
    **dict.fromkeys(("LN704", "LN706", "LN708", "LN714", "LN736", "LN764", "LN790"), ("unnecessary",)),
    **dict.fromkeys(("LN771", "LN772"), ("deprecated",)),
}
_ORDER = {"error": 0, "warning": 1, "information": 2, "hint": 3}


def diagnose(snapshot: Snapshot, limit: int = MAX_FINDINGS) -> list[Finding]:
    """All findings of a document by place, at most so many: the gravest stay, and a last one says how many were left out."""
    judge = function_of(snapshot.kind, "diagnose")
    return judge(snapshot, limit) if judge is not None else []


def diagnose_first(snapshot: Snapshot) -> list[Finding] | None:
    """What reading a large manifest found, without the advice that takes as long again: part of what ``diagnose`` gives. None where that
    comes at once."""
    judge = function_of(snapshot.kind, "diagnose_first")
    return (
        judge(snapshot) if judge is not None and len(snapshot.text) > QUICK_CHARS and not _is_long(snapshot) else None
    )


def first_of_manifest(snapshot: Snapshot) -> list[Finding]:
    """The findings of a manifest's reading alone."""
    levels = levels_of(snapshot)
    diagnostics = _once(snapshot, manifest_findings(snapshot))
    findings = with_levels([to_finding(diag, related) for diag, related in diagnostics], levels)
    # Which comments silence nothing is only known when there is nothing more to silence.
    return _capped(silenced(snapshot, findings, levels)[0])


def of_manifest(snapshot: Snapshot, limit: int = MAX_FINDINGS) -> list[Finding]:
    """The findings of a manifest."""
    if _is_long(snapshot):
        return _long(MAX_ANALYSED_CHARS)
    levels = levels_of(snapshot)
    diagnostics = _once(snapshot, [*manifest_findings(snapshot), *lint_manifest(snapshot, levels, limit)])
    if snapshot.tree.says("{{"):
        diagnostics = _with_variables(snapshot, diagnostics)
    return _judged(snapshot, diagnostics, limit, levels)


_UNUSABLE = frozenset(("MF502", "MF503", "MF505", "MF506", "MF511", "MF531", "MF533", "MF534"))
"""Errors that say that a value is none that can be used."""


def _once(snapshot: Snapshot, diagnostics: Findings) -> Findings:
    """The findings without those that look into a value which cannot be used at all: that is one fault, and the error says it. What is no
    JSON is another one. Nor is a path that no policy grants told what policy would grant it."""
    closed = {diag.span for diag, _ in diagnostics if diag.code == "MF512"}
    if closed:
        diagnostics = [one for one in diagnostics if one[0].code != "LN762" or one[0].span not in closed]
    found = snapshot.manifest.diagnostics
    unusable = {diag.span for diag in found if diag.code in _UNUSABLE} if found else None
    if not unusable:
        return diagnostics
    read = {(diag.code, diag.span) for diag in snapshot.manifest.tree.diagnostics}
    return [
        one
        for one in diagnostics
        if one[0].code in _UNUSABLE or one[0].span not in unusable or (one[0].code, one[0].span) in read
    ]


def of_profile(snapshot: Snapshot, limit: int = MAX_FINDINGS) -> list[Finding]:
    """The findings of an agent's profile."""
    return _long(MAX_ANALYSED_CHARS) if _is_long(snapshot) else _judged(snapshot, profile_findings(snapshot), limit)


def of_plugin(snapshot: Snapshot, limit: int = MAX_FINDINGS) -> list[Finding]:
    """The findings of another project's manifest."""
    return _long(MAX_ANALYSED_CHARS) if _is_long(snapshot) else _judged(snapshot, plugin_findings(snapshot), limit)


def of_text(snapshot: Snapshot, limit: int = MAX_FINDINGS) -> list[Finding]:
    """The findings of a text with calls."""
    if _is_long(snapshot):
        return _long(MAX_ANALYSED_CHARS)
    levels = levels_of(snapshot)
    diags = [*text_findings(snapshot), *lint_text(snapshot, _requests(snapshot), levels)]
    return _judged(snapshot, [(diag, _led(diag)) for diag in diags], limit, levels)


def of_settings(snapshot: Snapshot, limit: int = MAX_FINDINGS) -> list[Finding]:
    """The findings of a ``tamis.toml``."""
    from tamis.server.analysis.configuration.findings import settings_findings

    if len(snapshot.text) > MAX_SETTINGS_CHARS:
        return _long(MAX_SETTINGS_CHARS)
    known: list[Diag] | None = snapshot.__dict__.get("_settings_findings")
    if known is None:
        known = snapshot.__dict__["_settings_findings"] = settings_findings(snapshot.text, snapshot.settings_faults)
    findings = [to_finding(diag) for diag in known[:limit]]
    return sorted(findings, key=lambda finding: (finding.span, finding.code))


def of_workflow(snapshot: Snapshot, limit: int = MAX_FINDINGS) -> list[Finding]:
    """The findings of a workflow; none of any other JSON file."""
    from tamis.protocols.workflow.reading import is_meant
    from tamis.server.analysis.navigation.workflows import is_workflow_file, may_be_graph, workflow_findings

    if not is_workflow_file(snapshot.path, snapshot.text):
        # In the folders of the settings `nodes` alone make a workflow, as they do for the registry.
        if not snapshot.is_graph or not may_be_graph(snapshot.path, snapshot.text):
            return []
        if not is_meant(snapshot.text, snapshot.tree.root):
            return []

    diags = [*workflow_findings(snapshot), *graph_findings(snapshot)]
    return _judged(snapshot, [(diag, ()) for diag in diags], limit) if diags else []


def of_nodes(snapshot: Snapshot, limit: int = MAX_FINDINGS) -> list[Finding]:
    """The findings of a file of node definitions."""
    from tamis.protocols.manifest.node import read_nodes

    if _is_long(snapshot):
        return _long(MAX_ANALYSED_CHARS)
    reading = read_nodes(snapshot.text, strict=snapshot.settings.strict_json)
    return _judged(snapshot, [(diag, ()) for diag in reading.diagnostics], limit)


def _is_long(snapshot: Snapshot) -> bool:
    return len(snapshot.text) > MAX_ANALYSED_CHARS


def _long(limit: int) -> list[Finding]:
    return [to_finding(Diag("TC024", (0, 0), {"limit": limit}))]


def _judged(
    snapshot: Snapshot, diags: list[tuple[Diag, tuple[Related, ...]]], limit: int, levels: Levels | None = None
) -> list[Finding]:
    """Diagnostics as findings, at the levels of the settings, without those that are silenced."""
    if levels is None:
        levels = levels_of(snapshot)
    findings = with_levels([to_finding(diag, related) for diag, related in diags], levels) if diags else []
    findings, diagnostics = silenced(snapshot, findings, levels)
    if diagnostics:
        findings = findings + with_levels([to_finding(diag) for diag in diagnostics], levels)
    return _capped(findings, limit) if findings else findings


def _capped(findings: list[Finding], limit: int = MAX_FINDINGS) -> list[Finding]:
    if len(findings) > limit:
        left_out = len(findings) - limit
        findings = sorted(findings, key=lambda finding: (_ORDER[finding.severity], finding.span))[:limit]
        findings.append(to_finding(Diag("TC025", (0, 0), {"limit": limit, "n": left_out})))
    findings.sort(key=lambda finding: (finding.span, finding.code))
    return findings


def to_finding(diag: Diag, related: tuple[Related, ...] = ()) -> Finding:
    """A catalogue finding with its sentence and severity."""
    return Finding(
        diag.span,
        diag.code,
        CATALOGUE[diag.code].slug,
        severity(diag),
        message(diag),
        _TAGS.get(diag.code, ()),
        related,
        diag.fix,
    )


def text_findings(snapshot: Snapshot) -> list[Diag]:
    """What reading a text found, and, where tools are known, what they say about its calls."""
    document = snapshot.document
    registry = snapshot.registry
    templates = [block for block in document.blocks if not block.aside and is_template(snapshot, block)]
    markup = [block for block in document.blocks if is_markup(snapshot, block)]
    nobodys = {id(diag) for block in markup for diag in block.diagnostics}
    # A name that a manifest declares is right as it is, whatever XML thinks of it.
    diagnostics = [
        diag
        for diag in document.diagnostics
        if id(diag) not in nobodys
        and (diag.code != "AX133" or snapshot.tool(snapshot.text[diag.span[0] : diag.span[1]]) is None)
    ]
    if not snapshot.settings.allow_multiple_blocks:
        for block in later_in_turn(snapshot):
            fix = Fix("Remove this block", (Edit(*block.span, ""),), "unsafe")
            diagnostics.append(Diag("TC007", block.open, fix=fix))
    diagnostics += _of_tools(snapshot, registry, [block for block in document.blocks if block not in markup])
    if "{{" in snapshot.text or "tamis-name:" in snapshot.text:
        diagnostics += reference_findings(snapshot, variables_in(snapshot))
    diagnostics += expectation_findings(snapshot)
    return [_lowered(diag) if any(_holds(block, diag) for block in templates) else diag for diag in diagnostics]


def _holds(block: Block, diag: Diag) -> bool:
    return block.span[0] <= diag.span[0] and diag.span[1] <= block.span[1]


def _lowered(diag: Diag) -> Diag:
    """A finding of a template: what it shows is not wrong, for nobody calls it."""
    if severity(diag) not in ("error", "warning"):
        return diag
    return msgspec.structs.replace(diag, severity="information")


def _of_tools(snapshot: Snapshot, registry: RegistryView | None, blocks: list[Block]) -> list[Diag]:
    """What the tools say of the calls of blocks."""
    diagnostics: list[Diag] = []
    if registry is None:
        return diagnostics
    variables = variables_in(snapshot) if "{{" in snapshot.text else None
    numbers = {id(block): number for number, block in enumerate(snapshot.document.blocks)} if variables else {}
    for block in blocks:
        if is_set_aside(block):
            continue
        checked = [_check(snapshot, call, variables, numbers.get(id(block), 0)) for call in block.calls]
        diagnostics.extend(
            checked[0] if len(checked) == 1 else _said_once([diag for diagnostics in checked for diag in diagnostics])
        )
    return diagnostics


def _said_once(diagnostics: list[Diag]) -> list[Diag]:
    """The findings of several calls without what is said of a text that they share: a ``common_`` field, the name of a batch."""
    kept: dict[tuple[str, Span, str], Diag] = {}
    for diag in diagnostics:
        # Each call has unknown names of its own to propose; the field is unknown once.
        key = (diag.code, diag.span, "" if diag.code == "VA403" else message(diag))
        before = kept.get(key)
        if before is None:
            kept[key] = diag
        elif before.fix is not None and before.fix != diag.fix:
            # What mends it for one call does not for the other.
            kept[key] = msgspec.structs.replace(before, fix=None)
    return list(kept.values())


def _requests(snapshot: Snapshot) -> list[Block]:
    return [block for block in snapshot.document.blocks if block.state != "mention" and not is_set_aside(block)]


def is_set_aside(block: Block) -> bool:
    """Whether a block stands where nothing is meant to run (rulings 5, 7, 44 to 49)."""
    return block.aside


def _check(snapshot: Snapshot, call: Call, variables: Variables | None = None, block: int = 0) -> list[Diag]:
    from tamis.protocols.check import check_call

    if not call.tool_id or snapshot.registry is None:
        return []
    meant_by = snapshot.registry.resolve_call(
        call.tool_id, call.protocol, call.args(snapshot.text) if extras_of(call.protocol).by_command else None
    )
    tool = meant_by.tool
    broken = None if tool is not None else _broken(snapshot.registry, call)
    if broken is not None:
        return [broken]
    # Without a single registered tool every call would be unknown: that is a missing folder, not a wrong call.
    if tool is None and not (call.complete and snapshot.registry.tools):
        return []
    if tool is None:
        suggestion = next(iter(meant_by.candidates), None) or best(call.tool_id, snapshot.registry.names())
        fix = None
        # A pinned version that is not there: the newest one is (ruling 35).
        meant = suggestion or _newest(snapshot.registry, call.tool_id)
        if meant is not None:
            fix = Fix(f"Change to '{meant}'", _renamed(snapshot.text, call, meant), "unsafe")
        return [Diag("VA401", call.tool_span, {"id": call.tool_id, "hint": hint(suggestion)}, fix=fix)]
    if meant_by.takes_command:
        # What named the method is no argument (ruling 30).
        call = msgspec.structs.replace(call, params=[param for param in call.params if param.name != "command"])
    # What a person runs has its variables put in; of what only a run knows nothing is said.
    put = filled(call, snapshot.text, variables, block) if variables is not None else Filled(call)
    checked = check_call(put.call, snapshot.text, tool.plan).problems
    if checked:
        from tamis.server.analysis.embedded_schema import refined

        names = {reference.parameter for reference in (*put.unknown, *put.open)}
        # Of a value that is not known yet nothing is said.
        values = sorted(param.value.span for param in call.params if param.name in names)
        found = refined(put.call, snapshot.text, checked)
        problems = [diagnostic for diagnostic in found if not _lies_in(diagnostic.span, values)]
    else:
        problems = []
    if not call.complete:
        # What a cut-off call lacks, or has begun, may simply not have been typed yet.
        return [diag for diag in problems if diag.code == "VA403"]
    return problems


def _with_variables(
    snapshot: Snapshot, diagnostics: list[tuple[Diag, tuple[Related, ...]]]
) -> list[tuple[Diag, tuple[Related, ...]]]:
    """The findings of a manifest whose examples hold variables: a text that holds one is judged when it is run."""
    own = example_references(snapshot, variables_in(snapshot))
    if not own:
        return diagnostics
    spans = sorted(span for span, _ in own)
    kept = [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic[0].code != "VA453" or not _lies_in(diagnostic[0].span, spans)
    ]
    return [*kept, *((diag, ()) for _, diag in own if diag is not None)]


def _broken(registry: RegistryView, call: Call) -> Diag | None:
    """That a call's tool is there and its manifest cannot be used, with the place of what is wrong."""
    error = next((error for error in registry.errors if error.tool_id == call.tool_id), None)
    if error is None:
        return None
    args: dict[str, str | int] = {"id": call.tool_id, "reason": error.message}
    return Diag("VA406", call.tool_span, args, data={"manifest": error.path, "line": error.line})


def _led(diag: Diag) -> tuple[Related, ...]:
    """The manifest that a finding of a call is about."""
    path, line = diag.data.get("manifest"), diag.data.get("line")
    if not isinstance(path, str) or not isinstance(line, int):
        return ()
    return (Related("The manifest with the error", path=path, line=max(0, line - 1)),)


def _lies_in(span: Span, spans: list[Span]) -> bool:
    """Whether one of some stretches, which are sorted and disjoint, holds a span."""
    at = bisect_right(spans, span[0], key=_start) - 1
    return at >= 0 and span[1] <= spans[at][1]


def _start(span: Span) -> int:
    return span[0]


def _renamed(text: str, call: Call, name: str) -> tuple[Edit, ...]:
    """The tool id of a call replaced, also in the tag that closes it."""
    from tamis.server.analysis.facts import closing_of

    edit = Edit(*call.tool_span, name)
    close = closing_of(text, call) if extras_of(call.protocol).elements and call.shape == "tag" else None
    if close is None or text[slice(*close)] != text[slice(*call.tool_span)]:
        return (edit,)
    return (edit, Edit(*close, name))


def _newest(registry: RegistryView, pinned: str) -> str | None:
    """A pinned id with the newest version instead; None where nothing is pinned or the tool is unknown."""
    name, _, version = pinned.rpartition("@")
    tool = registry.get(name) if name and version else None
    return f"{name}@{tool.manifest.version}" if tool is not None and tool.manifest.version else None


# Findings of a workflow file: what reading it found, and what its graph lacks, given the tools and workflows of the workspace.


class _Types:
    """The types of nodes that a workspace has: its tools, and its workflow files."""

    def __init__(self, snapshot: Snapshot, own: Workflow) -> None:
        self._snapshot = snapshot
        self._registry = snapshot.registry
        self._files = snapshot.workflows or {}
        self._read: dict[str, Workflow | None] = {PREFIX + own.workflow_id: own}

    def slots(self, node_type: str) -> Slots | None:
        workflow = self._workflow(node_type)
        if workflow is not None:
            return _interface(workflow)
        tool = self._registry.get(node_type) if self._registry is not None else None
        return None if tool is None else slots_of(tool.manifest.parameters, tool.manifest.output)

    def names(self) -> Iterable[str]:
        return [*(self._registry.names() if self._registry is not None else ()), *self._files]

    def judges(self, node_type: str) -> bool:
        config = self._snapshot.settings.config
        if self._registry is None or (config is not None and config.engine.type != "builtin"):
            return False
        if node_type in self._files or PREFIX + node_type in self._files:
            return False  # it is there, and cannot be read now
        if node_type.startswith(PREFIX):
            # Without the workspace's list of workflows only a registry that has any can tell.
            return self._snapshot.workflows is not None or any(
                name.startswith(PREFIX) for name in self._registry.names()
            )
        return True

    def comes_later(self, node_type: str) -> bool:
        return node_type.partition(":")[0] in HOST_PREFIXES

    def called(self, node_type: str) -> str:
        workflow = self._workflow(node_type)
        return "" if workflow is None else workflow.workflow_id

    def calls_of(self, workflow_id: str) -> Iterable[str]:
        workflow = self._workflow(PREFIX + workflow_id)
        for name in called_types(workflow) if workflow is not None else ():
            if below := self.called(name):
                yield below

    def _workflow(self, name: str) -> Workflow | None:
        """A workflow by a name of its own, as it stands in the workspace or in the registry."""
        tool = self._registry.get(name) if self._registry is not None else None
        full = name if name.startswith(PREFIX) else PREFIX + name
        if tool is not None:
            if not tool.tool_id.startswith(PREFIX):
                return None
            full = tool.tool_id
        if full not in self._read:
            held: object = getattr(tool, "workflow", None)
            self._read[full] = held if isinstance(held, Workflow) else self._from_file(full)
        return self._read[full]

    def _from_file(self, tool_id: str) -> Workflow | None:
        path, index = self._files.get(tool_id), self._snapshot.index
        if path is None or index is None:
            return None
        return read_workflow(index.text(path), tool_id.removeprefix(PREFIX)).draft


def _interface(workflow: Workflow) -> Slots:
    outputs = {name: slot if not slot.is_stream else Slot(name) for name, slot in workflow.outputs.items()}
    outputs.setdefault(WHOLE, Slot(WHOLE))
    return Slots(dict(workflow.inputs), outputs)


def graph_findings(snapshot: Snapshot) -> list[Diag]:
    """Findings of a workflow file, without those of its description; nothing of a graph whose file is being typed."""
    reading = snapshot.workflow
    diagnostics = list(reading.diagnostics)
    if reading.draft is None or not reading.tree.ok:
        return diagnostics
    graph = check_graph(reading.draft, _Types(snapshot, reading.draft))
    return [*diagnostics, *(_softened(diag) for diag in findings_at(graph, reading.tree))]


def _softened(diag: Diag) -> Diag:
    """A type that nobody here has, and that looks like none that is: a host may bring it while it runs."""
    if diag.code == "WF905" and diag.fix is None:
        return msgspec.structs.replace(diag, severity="warning")
    return diag
