"""Reading the folders: one daemon thread that lists and reads what stands in them, and keeps what is known of it up to date.

It loads settings and tools, feeds the index with every file that may say something about tools, reads single files again when they
change, and looks for changes itself where the client cannot watch. Everything is bounded, and a bound that is met is said once.
What it finds out is posted to the session's lane. Must not know LSP.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.invisible import visible_line
from tamis.server.runtime.settings.files import FRESH_NS, Stamp, folder_time, stamp_of

if TYPE_CHECKING:
    from tamis.server.lsp.workspace.roots import Root
    from tamis.server.lsp.workspace.workspace import Workspace


# Which files of a folder the server looks at, by their names.


TEXTS = (".md", ".markdown", ".txt", ".tam", ".vcp", ".action")
JSONS = (".json", ".jsonc")
CONFIGURATION = ("tamis.toml", ".gitignore", ".ignore", ".tamisignore")
"""Files that decide how everything else is read: when one changes, the folder is loaded anew."""
_NO_WORKFLOWS = frozenset({"package.json", "package-lock.json", "tsconfig.json", "composer.json", "deno.json"})


def may_be_wanted(name: str) -> bool:
    """Whether a file of this name may say something about tools."""
    return (name.endswith((*TEXTS, *JSONS)) and name not in _NO_WORKFLOWS) or name in CONFIGURATION


def is_definition_or_ignore(name: str) -> bool:
    """Whether a file of this name may count in a folder of tools."""
    return name.endswith((".tool.json", ".tool.jsonc", ".node.json")) or name in CONFIGURATION[1:]


def is_workflow_or_ignore(name: str) -> bool:
    """Whether a file of this name may count in a folder of workflows."""
    return name.endswith(JSONS) or name in CONFIGURATION[1:]


def may_be_workflow(name: str) -> bool:
    """Whether a file of this name is a JSON file that may be a workflow."""
    return name.endswith(JSONS) and not name.endswith((".tool.json", ".tool.jsonc", "agent_profile.json"))


MAX_TOTAL_BYTES = 128 * 1024 * 1024
MAX_JSON_BYTES = 512 * 1024
"""Of a JSON file that is neither manifest nor profile, and might be a workflow."""
POLL_SECONDS = 2.0
GRACE_SECONDS = 0.02
HOLD_SECONDS = 0.5
POLL_SHARE = 20
"""Looking for changes takes at most one part in this many of the time."""


class Change(msgspec.Struct, frozen=True):
    """What changed on disk in one folder: whether its tools did, whether files came or went, and the files that were read again."""

    root: Root
    tools: bool
    listing: bool
    paths: frozenset[str]


def _seen_of(path: str) -> Stamp | None:
    """A file's stamp to be compared later. Where it changed just now it is none that the file keeps: the next change may leave no sign."""
    stamp = stamp_of(path)
    return (*stamp[:2], -1) if stamp is not None and _is_fresh(stamp[0], time.time_ns()) else stamp


def _is_fresh(changed: int, looked: int) -> bool:
    """Whether a change was so shortly before a look that the next one may have the same time; what is from the future is not."""
    return looked - FRESH_NS < changed < time.time_ns() + FRESH_NS


class _Listing:
    """What was seen of one folder."""

    def __init__(self) -> None:
        self.files: dict[str, Stamp | None] = {}
        self.folders: dict[str, int] = {}
        self.said: set[str] = set()


class Scanner:
    """The thread. ``loaded`` is called there when a folder's tools are known, ``changed`` after every further news of it, ``idle``
    when nothing is left to do; ``say`` takes a line for the client's log; ``busy`` tells that the client waits for something, ``hold`` that it
    waits for what needs no tools."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        loaded: Callable[[Root], None],
        changed: Callable[[Change], None],
        idle: Callable[[], None],
        say: Callable[[str], None],
        busy: Callable[[], bool],
        hold: Callable[[], bool] = lambda: False,
    ) -> None:
        self._workspace = workspace
        self._loaded = loaded
        self._changed = changed
        self._idle = idle
        self._say = say
        self._busy = busy
        self._hold = hold
        self._wake = threading.Condition()
        self._loads: dict[Root, None] = {}
        self._paths: dict[str, None] = {}
        self._jobs: deque[Callable[[], None]] = deque()
        self._listings: dict[Root, _Listing] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0
        self._started = False
        self._polling = False
        self._poll_seconds = 0.0

    # From the session's lane

    def load(self, roots: Iterable[Root]) -> None:
        """Reads folders, or reads them anew."""
        self._put(loads=roots)

    def look(self, paths: Iterable[str]) -> None:
        """Looks at files and folders again: they may have changed, come or gone."""
        self._put(paths=paths)

    def later(self, job: Callable[[], None]) -> None:
        """Runs something in the thread when nothing more urgent is left; it should take a moment only, and come again."""
        with self._wake:
            self._jobs.append(job)
            self._start()

    def poll(self, wanted: bool) -> None:
        """Whether to look for changes from time to time."""
        with self._wake:
            if wanted != self._polling:
                self._polling = wanted
                self._start()

    def _put(self, loads: Iterable[Root] = (), paths: Iterable[str] = ()) -> None:
        with self._wake:
            self._loads.update(dict.fromkeys(loads))
            self._paths.update(dict.fromkeys(paths))
            self._start()

    def _start(self) -> None:
        if not self._started:
            self._started = True
            threading.Thread(target=self._run, name="tamis-scan", daemon=True).start()
        self._wake.notify()

    # In the thread

    def _first_answers(self) -> None:
        """Lets what the client opens first be answered before folders are read: both would wait for each other otherwise."""
        until = time.monotonic() + HOLD_SECONDS
        time.sleep(GRACE_SECONDS)
        while self._hold() and time.monotonic() < until:
            time.sleep(0.005)

    def _run(self) -> None:
        self._first_answers()
        told = True
        while True:
            with self._wake:
                while not (self._loads or self._paths or self._jobs):
                    if not told:
                        break
                    if (
                        not self._wake.wait(max(POLL_SECONDS, self._poll_seconds) if self._polling else None)
                        and self._polling
                    ):
                        break
                loads, self._loads = list(self._loads), {}
                paths: list[str] = []
                if not loads:
                    paths, self._paths = list(self._paths), {}
                job = self._jobs.popleft() if not loads and not paths and self._jobs else None
            if loads:
                told = False
                for root in loads:
                    self._guarded(functools.partial(self._load, root), f"the folder {root.path}")
                    root.loaded.set()
                    if root not in self._loads:
                        root.indexed.set()
            elif paths:
                told = False
                self._guarded(functools.partial(self._look, paths), "changed files")
            elif job is not None:
                self._guarded(job, "the workspace's findings")
            elif not told:
                told = True
                self._idle()
            else:
                self._guarded(self._poll, "the folders")

    def _guarded(self, work: Callable[[], None], what: str) -> None:
        try:
            work()
        except Exception as error:  # one bad folder must not keep the others from being read
            sys.stderr.write(visible_line(f"tamis: {what} could not be read: {error!r}") + "\n")

    def _load(self, root: Root) -> None:
        began = time.time_ns()
        before = self._listings.get(root)
        configuration = {
            f"{root.path}/tamis.toml",
            *(path for path in (before.files if before else ()) if _decides(path)),
        }
        stamps = {path: stamp_of(path) for path in configuration}
        root.load()
        assert root.registry is not None
        self._loaded(root)
        if root not in self._workspace.roots:
            return
        listing = self._list(root)
        stamps.update(
            (path, None) for path in listing.files if _decides(path) and path not in stamps and _since(path, began)
        )
        if any(stamp_of(path) != stamp for path, stamp in stamps.items()):
            self.load([root])
            return
        gone = set(before.files) - set(listing.files) if before is not None else set[str]()
        if before is not None:
            listing.said = before.said
        workspace = self._workspace
        if root.settings is not None and workspace.index.read_also(workspace.also(), workspace.graphs()):
            workspace.renote_all()
        read = set(gone)
        if behind := root.overtaken(listing.files):
            self._take(root, listing, {path: _seen_of(path) for path in behind}, listing_changed=False)
        for path, stamp in listing.files.items():
            if root in self._loads:
                return  # a newer load of this folder makes this one moot, and compares with the listing before it
            if before is None or before.files.get(path) != stamp or not self._workspace.index.knows(path):
                read.add(path)
                self._feed(root, listing, path, stamp)
        for path in gone:
            self._drop(path)
        self._listings[root] = listing
        self._workspace.settle()
        self._workspace.index.settle()
        root.indexed.set()
        self._changed(Change(root, tools=False, listing=False, paths=frozenset(read)))

    def _list(self, root: Root) -> _Listing:
        """Everything in a folder, and in its tool folders elsewhere, that may matter."""
        from tamis.server.runtime.tools.loader import walk_files

        listing = _Listing()
        began = time.time_ns()
        tops: list[tuple[str, Callable[[str], bool]]] = [(root.path, may_be_wanted)]
        tops += [(top, is_definition_or_ignore) for top in root.tops if not root.contains(root.spelled(top))]
        # Also those in the folder: a workflow may have a name that no other text would be searched by.
        tops += [(root.spelled(top), is_workflow_or_ignore) for top in root.flows]
        for top, wanted in tops:
            if not os.path.isdir(top):
                continue
            folders: dict[str, int] = {}
            paths, problems = walk_files(Path(top), wanted, folders)
            for problem in problems:
                if problem.cut:
                    self._once(
                        root, listing, "walk", f"{problem.path}: {problem.message}; files there are not searched"
                    )
            for path in paths:
                if not root.excludes(path):
                    listing.files[path] = _seen_of(path)
            for folder, seen in folders.items():
                listing.folders[folder] = -2 if _is_fresh(seen, began) else seen
        return listing

    def _feed(self, root: Root, listing: _Listing, path: str, stamp: Stamp | None) -> None:
        """Gives one file's text to the index."""
        from tamis.server.runtime.tools.loader import MAX_BYTES, FoundFile, read_manifest_file

        name = os.path.basename(path)
        # The index has the folder's own settings, for the places of variables.
        if self._workspace.is_open(path) or (name in CONFIGURATION and path != f"{root.path.rstrip('/')}/tamis.toml"):
            return
        size = stamp[1] if stamp is not None else 0
        limit = MAX_JSON_BYTES if may_be_workflow(name) else MAX_BYTES
        if size > limit:
            if limit == MAX_BYTES:
                self._once(
                    root, listing, "size", f"{path} is larger than {MAX_BYTES} bytes; such files are not searched"
                )
            self._drop(path)
            return
        if self._total + size > MAX_TOTAL_BYTES:
            self._once(
                root,
                listing,
                "total",
                f"{root.path} holds more than {MAX_TOTAL_BYTES} bytes of texts; the rest is not searched",
            )
            self._drop(path)
            return
        self.give_way()
        manifest_file = read_manifest_file(path)
        if not isinstance(manifest_file, FoundFile):
            self._drop(path)
            return
        index = self._workspace.index
        index.update(path, manifest_file.text)
        if self._workspace.is_open(path):  # opened meanwhile: the editor's text counts
            self._workspace.renote(path)
        elif index.knows(path):
            self._total += size - self._bytes.get(path, 0)
            self._bytes[path] = size

    def give_way(self) -> None:
        """Lets the session's lane go first while it has something to do; in the thread, between two files."""
        if self._busy():
            time.sleep(0.005)

    def _drop(self, path: str) -> None:
        self._total -= self._bytes.pop(path, 0)
        if not self._workspace.is_open(path):
            self._workspace.index.remove(path)

    def _once(self, root: Root, listing: _Listing, what: str, message: str) -> None:
        if what not in listing.said:
            listing.said.add(what)
            self._say(message)

    def _look(self, paths: list[str]) -> None:
        for root in self._workspace.roots:
            tops = (*root.tops, *root.flows)
            mine = [path for path in paths if root.contains(path) or any(_below(top, path) for top in tops)]
            if mine and root in self._listings:
                self._look_in(root, self._listings[root], mine)

    def _look_in(self, root: Root, listing: _Listing, paths: list[str]) -> None:
        from tamis.server.runtime.tools.loader import walk_reaches

        rest = [path for path in paths if not _decides(path)]
        if root.folders_differ():
            # All is read anew, but for what a closed document left: its file is the same, and its text counts again.
            self._put([root], rest)
            return
        files: dict[str, Stamp | None] = {}
        relist = False
        for path in paths:
            stamp = _seen_of(path)
            name = os.path.basename(path)
            if _decides(path) and (path in listing.files or stamp is not None):
                self._put([root], rest)
                return
            known = path in listing.files
            wanted = may_be_wanted(name) or root.may_define(path)
            reached = known or walk_reaches(Path(root.path), path) or root.searches(path)
            reached = reached and not root.excludes(path)
            if stamp is not None and wanted and reached:
                files[path] = stamp
            elif known or self._workspace.index.knows(path):
                # Known from the editor alone: a document that is closed now, and has no file.
                files[path] = None
            else:
                # A folder that came or went takes its files along; a script only comes or goes.
                relist = (
                    relist
                    or os.path.isdir(path)
                    or any(_below(path, folder) or folder == path for folder in listing.folders)
                )
        if relist:
            self._relist(root, listing, files)
        else:
            self._take(root, listing, files, listing_changed=True)

    def _relist(self, root: Root, before: _Listing, told: Mapping[str, Stamp | None] | None = None) -> None:
        """Lists a folder anew and reads what differs, and what is ``told`` to differ."""
        if root.folders_differ():
            self._put([root], told or ())
            return
        listing = self._list(root)
        changed = {path: stamp for path, stamp in listing.files.items() if before.files.get(path) != stamp}
        gone = before.files.keys() - listing.files.keys()
        if any(_decides(path) for path in (*changed, *gone)):
            self._put([root], told or ())
            return
        listing.said |= before.said
        self._listings[root] = listing
        changed.update(dict.fromkeys(gone))
        changed = {path: listing.files.get(path, stamp) for path, stamp in (told or {}).items()} | changed
        self._take(root, listing, changed, listing_changed=True)

    def _take(self, root: Root, listing: _Listing, files: Mapping[str, Stamp | None], *, listing_changed: bool) -> None:
        """Reads changed files (None: gone) and tells of it."""
        from tamis.server.runtime.tools.loader import read_manifest_file

        tools = False
        for path, stamp in files.items():
            if stamp is None:
                listing.files.pop(path, None)
            else:
                listing.files[path] = stamp
            if root.may_define(path):
                manifest_file = read_manifest_file(path) if stamp is not None and root.searches(path) else None
                tools = root.take(path, manifest_file) or tools
            if stamp is None:
                self._drop(path)
            else:
                self._feed(root, listing, path, stamp)
        if listing_changed:
            tools = root.recheck() or tools
        if tools:
            assert root.registry is not None
        self._workspace.index.settle()
        self._changed(Change(root, tools=tools, listing=listing_changed, paths=frozenset(files)))

    def _poll(self) -> None:
        started = time.monotonic()
        for root in self._workspace.roots:
            listing = self._listings.get(root)
            if listing is None:
                continue
            if any(folder_time(folder) != mtime for folder, mtime in listing.folders.items()):
                self._relist(root, listing)
                continue
            changed = {path: now for path, stamp in listing.files.items() if (now := _seen_of(path)) != stamp}
            if any(_decides(path) for path in changed):
                self.load([root])
            elif changed:
                self._take(root, listing, changed, listing_changed=False)
        for root in self._listings.keys() - set(self._workspace.roots):
            self.forget(root)
        self._poll_seconds = POLL_SHARE * (time.monotonic() - started)

    def forget(self, root: Root) -> None:
        """A folder was closed; what other folders hold too stays."""
        listing = self._listings.pop(root, None)
        kept = {path for other in self._listings.values() for path in other.files}
        for path in listing.files if listing is not None else ():
            if path not in kept:
                self._drop(path)


def _decides(path: str) -> bool:
    return os.path.basename(path) in CONFIGURATION


def _since(path: str, began: int) -> bool:
    """Whether a file changed since a moment, or so shortly before that it cannot be told."""
    stamp = stamp_of(path)
    return stamp is not None and stamp[0] > began - FRESH_NS


def _below(top: str, path: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")
