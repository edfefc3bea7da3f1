"""The faults of a workflow's graph as results and descriptions tell them. Must not know how workflows run."""

from __future__ import annotations

from msgspec import UNSET

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.contract import Problem
from tamis.protocols.model import Diag
from tamis.protocols.workflow.graph import GraphFinding, Types, check_graph
from tamis.protocols.workflow.model import Workflow


def problems_of(workflow: Workflow, types: Types) -> list[Problem]:
    """The faults of error level in a graph, as they stand in results; a file without nodes has nothing that could run."""
    problems = [problem_of(finding) for finding in check_graph(workflow, types) if _is_error(finding)]
    if workflow.nodes is None:
        text = "the file has no 'nodes': only its interface is known"
        return [Problem(code="WF913", slug=CATALOGUE["WF913"].slug, path="/nodes", message=text)]
    return problems


def _is_error(finding: GraphFinding) -> bool:
    return severity(Diag(finding.code, (0, 0), dict(finding.args))) == "error"


def problem_of(finding: GraphFinding) -> Problem:
    """A graph finding as it stands in results; ``path`` leads into the workflow's file."""
    about = finding.about
    paths = {
        "node": f"/nodes/{about.index}",
        "edge": f"/edges/{about.index}",
        "input": f"/interfaceInputs/{about.name}",
        "output": f"/interfaceOutputs/{about.name}",
        "outputMapping": f"/outputInterfaceMappings/{about.name}",
        "inputMapping": f"/interfaceInputMappings/{about.name}",
    }
    return Problem(
        code=finding.code,
        slug=CATALOGUE[finding.code].slug,
        path=paths[about.what],
        message=message(Diag(finding.code, (0, 0), dict(finding.args))),
        suggestion=UNSET if finding.suggestion is None else finding.suggestion,
    )
