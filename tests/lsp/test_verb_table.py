"""The one table of verbs: what it says is what is announced, decoded and served, and pygls stands behind one module."""

from __future__ import annotations

import ast
import typing
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tamis.server.analysis.shown.token_kinds import KINDS, MODIFIERS
from tamis.server.lsp.features.tool_methods import NAMES
from tamis.server.lsp.session import Session
from tamis.server.lsp.table import NOTIFICATIONS, REQUESTS
from tests.lsp.lsp_client import Client

LSP = Path(__file__).resolve().parents[2] / "server" / "lsp"
ABLE: dict[str, Any] = {
    "textDocument": {
        "diagnostic": {},
        "rename": {"prepareSupport": True},
        "rangeFormatting": {"rangesSupport": True},
        "semanticTokens": {"tokenTypes": list(KINDS), "tokenModifiers": list(MODIFIERS)},
        "inlayHint": {"resolveSupport": {"properties": ["tooltip"]}},
    },
    "workspace": {
        "diagnostics": {"refreshSupport": True},
        "textDocumentContent": {},
        "fileOperations": {"didCreate": True, "didRename": True, "didDelete": True, "willRename": True},
    },
    "general": {"positionEncodings": ["utf-8"]},
}
"""A client that can take whatever is announced to some clients only."""
OWN = {"initialize", "shutdown", *(name for name in REQUESTS if name.startswith("experimental/")), *NAMES}
"""Requests that LSP has no capability for."""


def provider_of(method: str) -> str:
    """The server capability of a request by LSP's own naming, as a dotted path."""
    special = {
        "textDocument/prepareRename": "renameProvider",
        "textDocument/prepareCallHierarchy": "callHierarchyProvider",
        "callHierarchy/incomingCalls": "callHierarchyProvider",
        "callHierarchy/outgoingCalls": "callHierarchyProvider",
        "textDocument/formatting": "documentFormattingProvider",
        "textDocument/rangeFormatting": "documentRangeFormattingProvider",
        "textDocument/rangesFormatting": "documentRangeFormattingProvider",
        "textDocument/onTypeFormatting": "documentOnTypeFormattingProvider",
        "completionItem/resolve": "completionProvider",
        "workspace/symbol": "workspaceSymbolProvider",
        "workspaceSymbol/resolve": "workspaceSymbolProvider",
        "workspace/diagnostic": "diagnosticProvider",
        "workspace/textDocumentContent": "workspace.textDocumentContent",
        "workspace/willRenameFiles": "workspace.fileOperations.willRename",
    }
    if method in special:
        return special[method]
    head, _, rest = method.partition("/")
    name = head if rest == "resolve" else rest.partition("/")[0]
    return f"{name}Provider"


def announced(client: dict[str, Any]) -> dict[str, Any]:
    session = Session(lambda *_, **__: None, lambda _: None)
    verb = REQUESTS["initialize"]
    return verb.handle(session, verb.params(capabilities=client), 1)["capabilities"]


def at(whole: dict[str, Any], path: str) -> Any:
    here: Any = whole
    for name in path.split("."):
        here = here.get(name) if isinstance(here, dict) else None
    return here


@pytest.mark.parametrize("method", sorted(REQUESTS.keys() - OWN))
def test_each_request_is_announced_to_a_client_that_can_do_everything(method: str) -> None:
    assert at(announced(ABLE), provider_of(method)) not in (None, False)


def test_nothing_is_announced_that_no_verb_serves() -> None:
    told = announced(ABLE)
    served = {provider_of(method).partition(".")[0] for method in REQUESTS.keys() - OWN}
    assert told.keys() - served == {"positionEncoding", "textDocumentSync", "experimental"}
    operations = {f"workspace/{name}Files" for name in told["workspace"]["fileOperations"]}
    assert operations <= REQUESTS.keys() | NOTIFICATIONS.keys()


def test_what_a_running_server_announces_is_what_the_table_says() -> None:
    with Client() as editor:
        told = editor.call("initialize", {"processId": None, "rootUri": None, "capabilities": ABLE})
    assert told["capabilities"] == announced(ABLE)


def test_announcing_to_one_client_leaves_nothing_for_the_next() -> None:
    plain = announced({})
    announced(ABLE)
    assert announced({}) == plain


@pytest.mark.parametrize("verb", [v for v in REQUESTS.values() if isinstance(v.params, str)], ids=lambda v: v.method)
def test_params_of_the_framework_lane_are_those_of_the_protocol(verb: Any) -> None:
    message = types.METHOD_TO_TYPES[verb.method][0]
    assert typing.get_type_hints(message, vars(types))["params"] is getattr(types, verb.params)


def test_only_verbs_that_are_answered_at_once_wait_for_tools() -> None:
    assert {name for name, verb in REQUESTS.items() if verb.waits} == {
        "textDocument/completion",
        "textDocument/diagnostic",
    }
    assert all(verb.schedule == "now" for verb in REQUESTS.values() if verb.waits)
    assert all(verb.schedule == "now" for verb in NOTIFICATIONS.values())


def runtime_imports(path: Path) -> set[str]:
    """The packages that a module imports when it runs, also inside its functions."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.Import):
                found.update(name.name.partition(".")[0] for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                found.add(str(child.module).partition(".")[0])
            visit(child)

    visit(ast.parse(path.read_text("utf-8")))
    return found


def test_pygls_and_its_types_are_known_to_one_module() -> None:
    knowing = {
        path.relative_to(LSP).as_posix()
        for path in LSP.rglob("*.py")
        if runtime_imports(path) & {"pygls", "lsprotocol", "attrs", "cattrs"}
    }
    assert knowing == {"framework.py"}


def test_no_private_member_of_pygls_is_used() -> None:
    """A release of pygls may change them without a word."""
    tree = ast.parse((LSP / "framework.py").read_text("utf-8"))
    private = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert private == []
    bases = [ast.unparse(base) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases]
    assert bases == ["TypeError"]
