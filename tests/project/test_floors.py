"""The floors of the runtime (house, second form): a module imports its own floor and those before it in the list, never upward.

Unlike ``test_rooms.py`` this counts the imports inside functions too; those for type checkers alone do not count.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

RUNTIME = Path(__file__).resolve().parent.parent.parent / "server" / "runtime"
PACKAGE = "tamis.server.runtime"

FLOORS = ("store", "observe", "settings", "tools", "policy", "calls", "handlers", "execution", "agents", "texts")
"""The floors from the lowest, each a folder. What stands beside the folders (``runtime.py``) knows them all."""


def modules() -> dict[str, Path]:
    """Every module of the runtime by its path below the room, without its ending."""
    return {
        path.relative_to(RUNTIME).with_suffix("").as_posix(): path
        for path in sorted(RUNTIME.rglob("*.py"))
        if path.name != "__init__.py"
    }


def floor_of(module: str) -> int:
    """The number of a module's floor."""
    folder, _, rest = module.partition("/")
    return FLOORS.index(folder) if rest else len(FLOORS)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported(node: ast.AST) -> Iterator[str]:
    """The names that code imports when it runs, wherever it does."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            yield from (name for other in child.orelse for name in imported(other))
        else:
            yield from imported(child)


@functools.cache
def graph() -> dict[str, set[str]]:
    """For each module of the runtime the others that it imports."""
    known = modules()
    found: dict[str, set[str]] = {}
    for module, path in known.items():
        paths = {
            name.removeprefix(PACKAGE + ".").replace(".", "/")
            for name in imported(parsed(path))
            if name.startswith(PACKAGE + ".")
        }
        found[module] = {path if path in known else path.rpartition("/")[0] for path in paths} & set(known) - {module}
    return found


def reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    """All that a module leads to."""
    seen: set[str] = set()
    pending = list(edges[start])
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending.extend(edges[module])
    return seen


def test_the_folders_of_the_runtime_are_its_floors() -> None:
    assert {module.partition("/")[0] for module in modules() if "/" in module} == set(FLOORS)


def test_no_import_of_the_runtime_leads_upward() -> None:
    upward = [
        f"{module} -> {other}"
        for module, others in graph().items()
        for other in sorted(others)
        if floor_of(module) < floor_of(other)
    ]
    assert upward == [], "a floor imports only itself and those before it"


def test_no_module_of_the_runtime_is_in_a_circle() -> None:
    edges = graph()
    assert [module for module in edges if module in reachable(module, edges)] == []


def named(module: str) -> Iterator[ast.AST]:
    """Every part of a module's code."""
    yield from ast.walk(parsed(modules()[module]))


def test_no_floor_knows_the_object_that_makes_all_services() -> None:
    """House, second form: calls are given typed services; ``Parts`` is known where it is built, beside the floors."""
    knowing = [
        module
        for module in modules()
        if floor_of(module) < len(FLOORS)
        for node in named(module)
        if (isinstance(node, ast.ImportFrom) and node.module == f"{PACKAGE}.services")
        or (isinstance(node, ast.Name) and node.id == "Parts")
        or (isinstance(node, ast.Attribute) and node.attr == "parts" and "context" in ast.unparse(node.value))
    ]
    assert knowing == []


def test_the_context_of_a_call_is_small() -> None:
    (context,) = (
        node for node in named("calls/model") if isinstance(node, ast.ClassDef) and node.name == "CallContext"
    )
    fields = [
        node.target.id for node in context.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    assert len(fields) <= 14, "what calls share belongs to one of their services"


def test_what_runs_a_call_uses_the_services_of_its_invocation() -> None:
    """A handler is not given what only the steps of a call use (approvals, tasks, keys)."""
    reaching = [
        f"{module}:{node.lineno}"
        for module in modules()
        if floor_of(module) <= FLOORS.index("handlers")
        for node in named(module)
        if isinstance(node, ast.Attribute)
        and node.attr in ("execution", "records", "connection")
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "services"
    ]
    assert reaching == []
