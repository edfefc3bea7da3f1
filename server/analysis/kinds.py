"""Kinds of documents, and the one table of what each is answered with: a kind and a verb lead to a function.

A verb asks the table instead of asking what a document is; a new kind is a row, a new verb a column. The functions are named here and
loaded when they are asked for, since most documents are of one kind. Must not know what an answer says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot

DocumentKind = Literal["manifest", "profile", "plugin", "workflow", "nodes", "settings", "text", "other"]
"""``plugin`` is a ``plugin-manifest.json`` of VCP: another project's file, which can be converted (ruling 32). ``workflow``: any other JSON file,
for its text tells whether it is one. ``nodes``: definitions of nodes. ``settings``: a ``tamis.toml``. ``other``: nothing of ours."""

Verb = Literal[
    "diagnose",
    "complete",
    "hover",
    "outline",
    "subject",
    "links",
    "folds",
    "selection",
    "tokens",
    "format",
    "format_ranges",
    "hints",
    "targets",
    "fixes",
    "refactor",
    "directives",
    "ignore",
    "facts",
    "diagnose_first",
    "mentions",
    "prove",
]

MAX_ANALYSED_CHARS = 32 * 1024 * 1024
"""Larger documents get one finding that says so, and nothing else."""


class Answers(msgspec.Struct, frozen=True):
    """The functions of one kind, as ``module:name`` below ``server/analysis``; empty: there is nothing to say."""

    diagnose: str = ""
    complete: str = ""
    hover: str = ""
    outline: str = ""
    subject: str = ""
    links: str = ""
    folds: str = ""
    selection: str = ""
    tokens: str = ""
    format: str = ""
    format_ranges: str = ""
    hints: str = ""
    targets: str = ""
    fixes: str = ""
    """What findings offer beside the fixes that they bring."""
    refactor: str = ""
    directives: str = ""
    """What silences findings."""
    ignore: str = ""
    """The actions that silence one."""
    facts: str = ""
    """What the index knows of such a file."""
    mentions: str = ""
    """The places of variables, names of blocks and secrets in what a person runs."""
    prove: str = ""
    """Why a text in which one of these was renamed would not say the same."""
    diagnose_first: str = ""
    """What is said of a large one before all that is to be said."""
    holds_calls: bool = False
    """Calls stand in it, with comments and fences beside them that names and expectations are read from."""
    uses_tools: bool = False
    """Its answers wait for the tools of its folder, and its findings are told also while it is not open."""
    names_workflows: bool = False
    """Its findings depend on which files of the workspace are workflows."""


KINDS: dict[DocumentKind, Answers] = {
    "manifest": Answers(
        diagnose="diagnostics:of_manifest",
        diagnose_first="diagnostics:first_of_manifest",
        complete="completion.manifests:propose_in_json",
        hover="hover.manifests:explain_in_file",
        outline="navigation.symbols:outline_of_manifest",
        subject="navigation.subject:in_manifest",
        links="navigation.links:of_manifest",
        folds="shown.folding:of_json",
        selection="shown.selection:in_json",
        tokens="shown.json_tokens:tokens_of_json",
        format="shown.formatting:format_json_document",
        format_ranges="shown.formatting:format_json_ranges",
        hints="shown.inlay:of_manifest",
        targets="running.runnables:of_manifest",
        fixes="actions.fixes:of_manifest",
        refactor="actions.manifests:in_manifest",
        directives="lints.directives:directives_in_json",
        ignore="lints.ignore:in_json",
        facts="facts:of_manifest",
        mentions="running.mentions:of_manifest",
        prove="navigation.inline:of_manifest",
        uses_tools=True,
    ),
    "profile": Answers(
        names_workflows=True,
        diagnose="diagnostics:of_profile",
        complete="completion.manifests:propose_in_json",
        hover="hover.manifests:explain_in_file",
        outline="navigation.symbols:outline_of_profile",
        subject="navigation.subject:in_profile",
        links="navigation.links:of_profile",
        folds="shown.folding:of_json",
        selection="shown.selection:in_json",
        tokens="shown.json_tokens:tokens_of_json",
        format="shown.formatting:format_json_document",
        format_ranges="shown.formatting:format_json_ranges",
        hints="shown.inlay:of_results",
        refactor="actions.manifests:in_profile",
        directives="lints.directives:directives_in_json",
        ignore="lints.ignore:in_json",
        facts="facts:of_profile",
        uses_tools=True,
    ),
    "plugin": Answers(
        diagnose="diagnostics:of_plugin",
        folds="shown.folding:of_json",
        selection="shown.selection:in_json",
        tokens="shown.json_tokens:tokens_of_json",
        format="shown.formatting:format_json_document",
        format_ranges="shown.formatting:format_json_ranges",
        hints="shown.inlay:of_results",
        refactor="actions.manifests:in_plugin",
        uses_tools=True,
    ),
    "workflow": Answers(
        names_workflows=True,
        diagnose="diagnostics:of_workflow",
        hover="hover.explain:in_graph",
        outline="navigation.symbols:outline_of_workflow",
        subject="navigation.subject:in_graph",
        links="navigation.links:of_graph",
        directives="lints.directives:directives_in_json",
        facts="facts:of_workflow",
    ),
    "nodes": Answers(
        diagnose="diagnostics:of_nodes",
        hover="hover.explain:in_graph",
        subject="navigation.subject:in_graph",
        links="navigation.links:of_graph",
        directives="lints.directives:directives_in_json",
        facts="facts:of_nodes",
    ),
    "settings": Answers(
        diagnose="diagnostics:of_settings",
        complete="configuration.completion:propose_in_settings",
        hover="configuration.shown:explain_settings",
        outline="configuration.shown:outline_of_settings",
        subject="navigation.subject:in_settings",
        folds="configuration.shown:folds_of_settings",
        facts="facts:of_settings",
        prove="navigation.inline:of_settings",
    ),
    "text": Answers(
        diagnose="diagnostics:of_text",
        complete="completion.texts:propose_in_text",
        hover="hover.explain:in_text",
        outline="navigation.symbols:outline_of_text",
        subject="navigation.subject:in_text",
        links="navigation.links:of_text",
        folds="shown.folding:of_text",
        selection="shown.selection:in_text",
        tokens="shown.block_tokens:tokens_of_text",
        format="shown.formatting:format_blocks",
        format_ranges="shown.formatting:format_block_ranges",
        hints="shown.inlay:of_text",
        targets="running.runnables:of_text",
        fixes="actions.fixes:of_text",
        refactor="actions.calls:in_text_file",
        directives="lints.directives:directives_in_text",
        ignore="lints.ignore:in_text",
        facts="facts:of_text",
        mentions="running.mentions:of_text",
        prove="navigation.inline:of_text",
        holds_calls=True,
        uses_tools=True,
    ),
    "other": Answers(),
}
"""What every kind is answered with."""

_JSON_LANGUAGES = frozenset({"json", "jsonc", "json5"})


def kind_of(path: str, language_id: str) -> DocumentKind:
    """What a document is, by its name first and its language second (editors, 1.3 row 2)."""
    name = path.rsplit("/", 1)[-1]
    if name.endswith((".tool.json", ".tool.jsonc")):
        return "manifest"
    if name == "agent_profile.json" or name.endswith(".agent_profile.json"):
        return "profile"
    if name == "plugin-manifest.json":
        return "plugin"
    if name == "tamis.toml":
        return "settings"
    if name.endswith(".node.json"):
        return "nodes"
    if name.endswith((".json", ".jsonc")):
        return "workflow"
    return "other" if language_id in _JSON_LANGUAGES or name.endswith((".toml", ".yaml", ".yml")) else "text"


def serves(kind: DocumentKind, verb: Verb) -> bool:
    """Whether documents of a kind are answered anything."""
    return bool(getattr(KINDS[kind], verb))


def holds_calls(kind: DocumentKind) -> bool:
    """Whether calls of a person stand in documents of a kind, as text."""
    return KINDS[kind].holds_calls


def uses_tools(kind: DocumentKind) -> bool:
    """Whether the answers about a kind wait for the tools of the folder."""
    return KINDS[kind].uses_tools


def answer(snapshot: Snapshot, verb: Verb) -> Callable[..., Any] | None:
    """The function that answers about a document; None where there is nothing to say: of its kind, or because it is too long."""
    return None if len(snapshot.text) > MAX_ANALYSED_CHARS else function_of(snapshot.kind, verb)


@cache
def function_of(kind: DocumentKind, verb: Verb) -> Callable[..., Any] | None:
    """The function of the table; loads its module at the first call."""
    module, _, name = str(getattr(KINDS[kind], verb)).partition(":")
    return getattr(import_module(f"tamis.server.analysis.{module}"), name) if module else None
