"""Writes the published JSON Schemas into schemas/. usage: python tools/published_schemas.py [--check]"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tamis.protocols.manifest.json_schema import FILES, published
from tamis.server.analysis.completion.json_words import PROFILE_FILE, profile_schema
from tamis.server.runtime.settings.schema import FILE as SETTINGS_FILE
from tamis.server.runtime.settings.schema import settings_schema

FOLDER = Path(__file__).resolve().parent.parent / "schemas"


def texts() -> dict[str, str]:
    """The files by name."""
    schemas: dict[str, object] = {name: published(dialect) for dialect, name in FILES.items()}
    schemas[SETTINGS_FILE] = _without_own_keywords(settings_schema())
    schemas[PROFILE_FILE] = profile_schema()
    return {name: json.dumps(schema, ensure_ascii=False, indent=2) + "\n" for name, schema in schemas.items()}


def _without_own_keywords(schema: Any) -> Any:
    """A schema for any validator: in strict mode a keyword that it does not know is an error."""
    if isinstance(schema, dict):
        return {key: _without_own_keywords(part) for key, part in schema.items() if key != "x-tamis-class"}
    return [_without_own_keywords(part) for part in schema] if isinstance(schema, list) else schema


def main() -> int:
    """Writes the files; with --check says whether they are there and the same."""
    stale = [
        name
        for name, text in texts().items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text("utf-8") != text
    ]
    if "--check" in sys.argv:
        for name in stale:
            sys.stderr.write(f"schemas/{name} is stale: run python tools/published_schemas.py\n")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
