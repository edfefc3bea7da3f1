"""The page for operators says what there is (D86): methods, events of the audit log and settings that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from tamis.protocols.messages import NOTIFICATIONS
from tamis.server.rpc.methods import RpcServer

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "operators.md").read_text("utf-8")


def test_updates_watching_incidents_and_backup_are_told() -> None:  # D86
    headings = re.findall(r"^## (.*)$", PAGE, re.M)
    assert {"Updates", "Watching", "When a tool misbehaves", "What is kept", "Backup and restore"} <= {*headings}


def test_every_method_that_it_names_is_there() -> None:  # D86
    named = set(re.findall(r"`([a-z]+/[a-zA-Z]+)`", PAGE)) - NOTIFICATIONS.keys()
    assert {"server/health", "registry/reload", "approval/revoke", "tool/cancel"} <= named
    assert named <= {*RpcServer(None).session.methods}


def events_in_the_table() -> set[str]:
    table = PAGE.partition("| event | when | fields |")[2].partition("\n\n")[0]
    return {name for row in table.splitlines()[2:] for name in re.findall(r"`([a-z]+\.[a-zA-Z]+)`", row.split("|")[1])}


def test_every_event_and_setting_that_it_names_is_told() -> None:  # D86
    settings = (ROOT / "docs" / "settings.md").read_text("utf-8")
    files = {"tamis.toml", "tamis.db", "audit.jsonl", "results.xml"}
    known = files | {"execution.integrity", "execution.files", "sandbox.backend", *events_in_the_table()}
    for name in re.findall(r"`([a-z]+\.[a-zA-Z]+)`", PAGE):
        assert name in known or f"`{name}`" in settings, name


def test_every_event_of_the_audit_log_stands_in_its_table() -> None:  # D27, D86
    code = "".join(path.read_text("utf-8") for path in sorted((ROOT / "server" / "runtime").rglob("*.py")))
    # `note_ended` is given the event as its last argument or takes the one of a call.
    events = {*re.findall(r'[._]note\(\s*"([a-z]+\.[a-zA-Z]+)"', code), "call.ended", "task.ended"}
    assert len(events) > 30
    assert events == events_in_the_table()
