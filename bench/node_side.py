"""fast-xml-parser (the library that seed 000 names) in a Node process of its own, which times itself on the same texts."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Timed
from tests.node_runtime import NODE, node_project

PROJECT = Path(__file__).parent / "node"


class FastXmlParser:
    """A running Node process; ``reading(text)`` takes part in ``in_turn``."""

    def __init__(self, project: Path, process: subprocess.Popen[str]) -> None:
        self._folder = project
        self._process = process
        self._count = 0
        lock = json.loads((project / "package-lock.json").read_text())
        self.name = f"fast-xml-parser {lock['packages']['node_modules/fast-xml-parser']['version']}"

    def reading(self, text: str) -> Timed:
        """Reads ``text`` that many times; the seconds are Node's own."""
        self._count += 1
        path = self._folder / f"text-{self._count}.txt"
        path.write_text(text, encoding="utf-8")

        def run(times: int) -> float:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps({"file": str(path), "times": times}) + "\n")
            self._process.stdin.flush()
            return float(self._process.stdout.readline())

        return run


@contextmanager
def fast_xml_parser() -> Iterator[FastXmlParser]:
    """Installs the locked package into a temporary folder and starts it; needs the package registry."""
    with tempfile.TemporaryDirectory() as folder:
        project = node_project(PROJECT, Path(folder) / "node")
        with subprocess.Popen(
            [NODE, "time.mjs"], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                yield FastXmlParser(project, process)
            finally:
                assert process.stdin is not None
                process.stdin.close()
