"""A marker file asked through the analyses, without a server."""

from __future__ import annotations

import posixpath
from pathlib import Path

from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.navigation.workflows import in_workflow_folder, workflow_files
from tamis.server.analysis.snapshot import FolderFacts, ScriptFile, Settings, Snapshot
from tamis.server.runtime.settings.faults import disk_faults
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.settings.protocols import load_also
from tamis.server.runtime.texts.checkables import script_beside
from tamis.server.runtime.tools.sources import composed, find
from tests.lsp.markers import (
    Case,
    Core,
    language,
    write_documents,
)


def core_of(case: Case, root: Path) -> Core:
    """What the analyses are asked with, made without the server."""
    write_documents(case, root)
    loaded = load_settings(root, case.options.get("settings"))
    registry = composed(find(root, loaded.settings), loaded.settings, (), ())
    settings = Settings(
        schema_diagnostics=case.options.get("schemaDiagnostics") != "off",
        strict_json=loaded.settings.strict_json,
        also=load_also(loaded.settings.protocol.also)[0],
        config=loaded.settings,
    )
    index = WorkspaceIndex(settings.also, [str(root / name) for name in loaded.settings.workflows])
    for name, text in case.documents.items():
        index.update(str(root / name), text)
    neighbours = {str(root / name): text for name, text in case.documents.items() if name.endswith(".tool.json")}

    def snapshot(name: str) -> Snapshot:
        path = str(root / name)
        folder = posixpath.dirname(name)
        beside = {posixpath.relpath(other, folder or ".") for other in case.documents}
        facts = FolderFacts(frozenset(other for other in beside if not other.startswith("..")))
        kind = kind_of(path, language(name))
        text = case.documents[name]
        read = script_beside(path, text) if kind == "manifest" else None
        script = ScriptFile(*read) if read is not None else None
        return Snapshot(
            path,
            kind,
            text,
            registry,
            folder=facts,
            settings=settings,
            neighbours=neighbours,
            index=index,
            script=script,
            workflows=workflow_files(index, loaded.settings.workflows, path)
            if kind in ("profile", "workflow")
            else None,
            settings_faults=disk_faults((root / name).parent, text) if kind == "settings" else (),
            is_graph=in_workflow_folder(path, loaded.settings.workflows),
            roots=(str(root),),
        )

    return Core(case, root, snapshot)
