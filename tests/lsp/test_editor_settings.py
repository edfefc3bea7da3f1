"""Problems with settings name who wrote them, and broken settings spread no false findings."""

from __future__ import annotations

import json
from pathlib import Path

from tamis.protocols.manifest.profile import read_profile
from tamis.server.runtime.settings.loading import load_settings


def test_problems_of_an_overlay_are_the_editors(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text("[polcy]\n")
    loaded = load_settings(tmp_path, {"lgoLevel": "info", "policy": {"readRoot": []}}, "editor settings")
    assert sorted(problem.partition(":")[0] for problem in loaded.problems) == [
        "editor settings",
        "editor settings",
        "tamis.toml",
    ]
    # A misspelled bound closes, whoever wrote it.
    assert (
        "editor settings: unknown setting 'policy.readRoot'"
        in load_settings(tmp_path / "elsewhere", {"policy": {"readRoot": []}}, "editor settings").closed
    )


def test_without_tools_a_namespace_of_ones_own_is_not_unknown() -> None:
    text = json.dumps({"toolCallConfig": {}, "tool_ids_inventory": ["mine:a", "wrokflow:b"]})
    assert [diag.code for diag in read_profile(text).diagnostics] == ["PF605"]
    assert [diag.code for diag in read_profile(text, ["core:a"]).diagnostics].count("PF605") == 2
