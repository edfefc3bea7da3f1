"""Measures the house: how far the code is from the aims of its plan. `./test` prints it.

tools/house.py           each measure with its aim
tools/house.py -v        and what is over, by name
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("protocols", "sandbox", "environments", "server", "client")
COMPLEX = 15
SMALL, LARGE = 120, 450
"""Lines of a module that its one importer could take in, and of what one takes in on a few screens."""
PLUG_TABLES = frozenset({"tamis.server.lsp.table", "tamis.server.rpc.methods", "tamis.protocols.plugins"})
"""Modules that do nothing but put together what stands in a module each."""
_SECTION = re.compile(r"(?m)^-- (.+?) --\n")

Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Every module of the product by its dotted name, package files apart."""
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if path.name != "__init__.py"]
    return {"tamis." + path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): path for path in files}


def imports(known: dict[str, Path]) -> Graph:
    """Which module imports which, imports inside functions counted, those for types only not."""
    graph: Graph = {}
    for name, path in known.items():
        targets: set[str] = set()
        waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                waiting += node.orelse
                continue
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                targets |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            waiting += ast.iter_child_nodes(node)
        graph[name] = (targets & known.keys()) - {name}
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """The groups of modules that import one another around (Tarjan's strongly connected components of two and more)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        open_.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in open_:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            at = open_.index(name)
            group = open_[at:]
            del open_[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return sorted(found, key=len, reverse=True)


def lonely(known: dict[str, Path], graph: Graph) -> list[str]:
    """Small modules that could stand in the one that imports them: `module -> importer`.

    A module earns its file by a second importer, by ``SMALL`` lines, by being loaded later than its importer (inside a function),
    by serving another folder, as a row of a table of plugs, or where both together were more than ``LARGE`` lines.
    """
    lines = {name: path.read_text("utf-8").count("\n") for name, path in known.items()}
    importers: dict[str, list[str]] = {}
    for name, targets in graph.items():
        for target in targets:
            importers.setdefault(target, []).append(name)
    found: list[str] = []
    for name, by in sorted(importers.items()):
        if len(by) != 1 or lines[name] > SMALL or lines[name] + lines[by[0]] > LARGE:
            continue
        if by[0] in PLUG_TABLES or name.endswith("_command"):  # a command is loaded by its name
            continue
        if name.rpartition(".")[0] == by[0].rpartition(".")[0] and name in _at_top(known[by[0]]):
            found.append(f"{name} -> {by[0].rpartition('.')[2]}")
    return found


def _at_top(path: Path) -> set[str]:
    body = ast.parse(path.read_text("utf-8")).body
    froms = [node for node in body if isinstance(node, ast.ImportFrom) and node.module]
    return {name for node in froms for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))}


def complex_functions() -> list[str]:
    """Functions whose complexity, as ruff counts it (C901), is above the bound: `file name`, the file without its
    folder, so that a module may be moved."""
    ruff = ROOT / ".venv" / "bin" / "ruff"
    if not ruff.is_file():
        raise SystemExit("tools/house.py counts complexity with ruff: run `tools/setup dev` first")
    words = [str(ruff), "check", "--isolated", "--select", "C901", "--output-format", "json"]
    words += ["--config", f"lint.mccabe.max-complexity={COMPLEX}", *ROOMS]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    return sorted(f"{Path(item['filename']).name} {item['message'].split('`')[1]}" for item in found)


def upward_imports() -> list[str]:
    """What the test of the runtime's floors still lets pass: `module -> module`."""
    tree = ast.parse((ROOT / "tests" / "project" / "test_floors.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "UPWARD":
            return sorted(ast.literal_eval(node.value))
    return []


def repeated_marker_lines() -> tuple[int, int]:
    """Lines of marker files that repeat a document of another file, and all their lines."""
    seen: Counter[tuple[str, str]] = Counter()
    lines = 0
    for path in (ROOT / "tests" / "markers").rglob("*.txt"):
        text = path.read_text("utf-8")
        lines += text.count("\n")
        parts = _SECTION.split(text)
        seen.update(
            (name, body)
            for name, body in zip(parts[1::2], parts[2::2], strict=True)
            if name not in ("expect", "options")
        )
    return sum((times - 1) * body.count("\n") for (_, body), times in seen.items()), lines


def main(words: list[str]) -> None:
    """Prints the measures."""
    if words not in ([], ["-v"]):
        raise SystemExit(__doc__)
    known = modules()
    sizes = [path.read_text("utf-8").count("\n") for path in known.values()]
    graph = imports(known)
    groups, alone = circles(graph), lonely(known, graph)
    upward = upward_imports()
    complicated = complex_functions()
    repeated, lines = repeated_marker_lines()
    rows = [
        ("product modules", f"{len(known)}", "450"),
        ("lines of a module, mean", f"{sum(sizes) / len(sizes):.0f}", "220"),
        (
            "import circles, imports in functions counted",
            f"{len(groups)} ({sum(len(group) for group in groups)} modules)",
            "0",
        ),
        ("small modules that their one importer could hold", f"{len(alone)}", "0"),
        ("imports upward between the runtime's floors", f"{len(upward)}", "0"),
        (f"functions above complexity {COMPLEX}", f"{len(complicated)}", "0"),
        ("marker lines that repeat another file's document", f"{repeated} of {lines}", "0"),
    ]
    for what, now, aim in rows:
        sys.stdout.write(f"{what:<50} {now:>18}   aim {aim}\n")
    if words:
        for group in groups:
            sys.stdout.write(f"circle: {' '.join(name.removeprefix('tamis.') for name in group)}\n")
        sys.stdout.write("".join(f"lonely: {line}\n" for line in alone))
        sys.stdout.write("".join(f"upward: {line}\n" for line in upward))
        sys.stdout.write("".join(f"complex: {line}\n" for line in complicated))


if __name__ == "__main__":
    main(sys.argv[1:])
