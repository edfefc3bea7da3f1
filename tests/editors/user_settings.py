"""The settings of the user whose editor is driven."""

from __future__ import annotations

from pathlib import Path


def write_settings(config: Path) -> None:
    """Writes Tamis' settings below a folder of configurations: tools may run for ten minutes, so that a slow machine ends none before a test does."""
    (config / "tamis").mkdir(parents=True)
    (config / "tamis" / "config.toml").write_text("[sandbox]\nwallMs = 600000\n")
