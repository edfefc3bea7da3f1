"""The VS Code extension: where its sources are, its manifest and the texts of the manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[2] / "editors" / "vscode"
MANIFEST: dict[str, Any] = json.loads((SOURCE / "package.json").read_text("utf-8"))
TEXTS: dict[str, str] = json.loads((SOURCE / "package.nls.json").read_text("utf-8"))
