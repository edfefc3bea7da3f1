"""The page for operators says what there is (D86): methods, events of the audit log and settings that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from tamis.server.rpc.methods import RpcServer

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "operating.md").read_text("utf-8")


def test_updates_watching_incidents_and_backup_are_told() -> None:  # D86
    headings = re.findall(r"^## (.*)$", PAGE, re.M)
    assert {"Updates", "Watching", "When a tool misbehaves", "Backup and restore", "Retention"} <= {*headings}


def test_every_method_that_it_names_is_there() -> None:  # D86
    named = set(re.findall(r"`([a-z]+/[a-zA-Z]+)`", PAGE)) - {"registry/changed"}
    assert {"server/health", "registry/reload", "approval/revoke", "tool/cancel"} <= named
    assert named <= {*RpcServer(None).session.methods}


def test_every_event_and_setting_that_it_names_is_told_elsewhere() -> None:  # D86
    events = (ROOT / "docs" / "operators.md").read_text("utf-8")
    settings = (ROOT / "docs" / "settings.md").read_text("utf-8")
    for name in re.findall(r"`([a-z]+\.[a-zA-Z]+)`", PAGE):
        known = {"tamis.toml", "tamis.db", "audit.jsonl", "execution.integrity"}
        assert name in known or f"`{name}`" in events or name in settings, name


def test_every_event_of_the_audit_log_stands_on_the_page_for_operators() -> None:  # D27, D86
    page = (ROOT / "docs" / "operators.md").read_text("utf-8")
    code = "".join(path.read_text("utf-8") for path in sorted((ROOT / "server" / "runtime").rglob("*.py")))
    # `_note_ended` is given the event as its last argument or takes the one of a call.
    events = {*re.findall(r'[._]note\(\s*"([a-z]+\.[a-zA-Z]+)"', code), "call.ended", "task.ended"}
    assert len(events) > 30
    told = {*re.findall(r"`([a-z]+\.[a-zA-Z]+)`", page)}
    assert events <= told, sorted(events - told)
    rows = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert {*re.findall(r"`([a-z]+\.[a-zA-Z]+)`", rows)} - events <= {"idempotency.keepSeconds", "tasks.keepSeconds"}
