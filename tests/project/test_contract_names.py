"""The names of the wire contract (house, V06): each has one module, is public in the package, and loads no other module."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tamis.protocols import contract

FOLDER = Path(contract.__file__ or "").parent
HOMES: dict[str, set[str]] = {module: set(names.split()) for module, names in vars(contract)["_HOMES"].items()}


def test_every_name_of_every_module_is_a_name_of_the_package() -> None:
    declared: dict[str, set[str]] = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem != "__init__":
            names = declared[path.stem] = set[str]()
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    names.add(node.name)
                elif isinstance(node, ast.Assign):
                    names.update(ast.unparse(target) for target in node.targets)
    assert declared == HOMES
    assert sum(map(len, HOMES.values())) == len(set[str]().union(*HOMES.values()))
    for module, names in HOMES.items():
        for name in names:
            assert getattr(contract, name) is vars(sys.modules[f"{contract.__name__}.{module}"])[name]


def test_type_checkers_see_the_same_names() -> None:
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse((FOLDER / "__init__.py").read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(contract.__name__):
            found[(node.module or "").rpartition(".")[2]] = {alias.name for alias in node.names}
            assert all(alias.asname == alias.name for alias in node.names)
    assert found == HOMES


def test_a_name_loads_the_module_that_has_it_and_what_that_needs() -> None:
    code = (
        "import sys; from tamis.protocols.contract import WireCall; "
        "print(*sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('tamis.protocols.contract.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["base", "calls", "findings"]


def test_a_name_that_is_not_there_is_an_error_of_the_module() -> None:
    assert not hasattr(contract, "Nothing")
