"""The snippets of code in the pages about editors."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs" / "editors"


def snippets(name: str, language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text("utf-8"), re.S)
    assert found, f"no {language} snippet in {name}"
    return found
