"""The front door: the environment that a script needs, ready and leased, built first where it has to be.

Must not know tools, settings files or faces.
"""

from __future__ import annotations

import asyncio
import errno
import time

from tamis.environments.build import build, failure_name
from tamis.environments.declared import Folder, may_declare
from tamis.environments.model import (
    Cancelled,
    Declared,
    DependencyFault,
    Maker,
    OnProgress,
    Options,
    Progress,
    Recipe,
)
from tamis.environments.store import Lease, Store
from tamis.sandbox.model import Language


def detect(tool_folder: str, script: str, language: Language) -> Declared | None:
    """What a script needs, or None.

    `tool_folder` is a real absolute path, `script` is relative to it; only the script's own folder is looked at. Raises
    `DependencyFault` for files that cannot be used, and `PathRefused` for a script's path that cannot be walked.
    """
    try:
        folder = Folder(tool_folder, script)
    except OSError as error:  # the run will say the same of the script
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise
    with folder:
        if not may_declare(folder, language):
            return None
        if language == "python":
            from tamis.environments import python

            return python.detect(folder)
        from tamis.environments import javascript

        return javascript.detect(folder)


def maker_of(declaration: Declared) -> Maker:
    """The module that knows how a kind of environment is made."""
    if declaration.kind == "python":
        from tamis.environments import python

        return python
    from tamis.environments import javascript

    return javascript


def recipe_for(folder: str, script: str, language: Language, options: Options) -> tuple[Maker, Recipe] | None:
    """How the environment of a script is made, or None when it declares nothing. Raises `DependencyFault`, `PathRefused`."""
    declaration = detect(folder, script, language)
    if declaration is None:
        return None
    maker = maker_of(declaration)
    return maker, maker.recipe(declaration, options)


async def prepare(
    folder: str,
    script: str,
    language: Language,
    options: Options,
    *,
    install: bool = True,
    again: bool = False,
    on_progress: OnProgress | None = None,
    cancelled: asyncio.Event | None = None,
) -> Lease | None:
    """The environment of a script, leased: close the lease after the run. None when the script declares nothing.

    Without `install` only an environment that is ready is given. `again`: a failure of the last minute is not believed.
    Raises `DependencyFault`, `PathRefused` (the script's own path), `Cancelled`. Call it on the loop's thread.
    """
    maker_and_recipe = recipe_for(folder, script, language, options)
    if maker_and_recipe is None:
        return None
    maker, recipe = maker_and_recipe
    store = Store(options.store)
    lease = store.ready(recipe.key)
    if lease is not None:
        return lease
    if not install:
        raise DependencyFault(
            f"what {recipe.form} declares is not installed, and dependencies.install is off",
            cause="off",
            remedy="`tamis deps install`, or set dependencies.install to auto",
            passing=True,
        )
    name = failure_name(recipe, options)
    if again:
        store.forget(name)
    known = store.remembered(name)
    if known is not None:
        raise known
    try:
        return await _build(maker, recipe, store, options, name, on_progress, cancelled)
    except DependencyFault as fault:
        store.remember(name, fault)
        raise
    except OSError as error:
        raise DependencyFault(
            f"the folder of environments cannot be used: {error.strerror or error}",
            cause="disk",
            remedy=f"see to {options.store}, or set TAMIS_CACHE_DIR to a folder of this user",
            passing=True,
        ) from error


async def _build(
    maker: Maker,
    recipe: Recipe,
    store: Store,
    options: Options,
    name: str,
    on_progress: OnProgress | None,
    cancelled: asyncio.Event | None,
) -> Lease:
    def waits() -> None:
        if on_progress is not None:
            on_progress(Progress("waiting"))

    started = time.monotonic()
    claim = await store.claim(recipe.key, seconds=options.wall_ms / 1000, cancelled=cancelled, on_wait=waits)
    if isinstance(claim, Lease):
        return claim
    try:
        known = store.remembered(name)  # whoever built before us may just have failed
        if known is not None:
            raise known
        left = max(1.0, options.wall_ms / 1000 - (time.monotonic() - started))
        lease = await build(
            maker, recipe, claim, store, options, seconds=left, on_progress=on_progress, cancelled=cancelled
        )
    except BaseException:
        await asyncio.shield(asyncio.to_thread(claim.abandon))
        raise
    # what was not used for longest makes room
    await asyncio.to_thread(_make_room, store, options.cache_bytes)
    if on_progress is not None:
        on_progress(Progress("ready"))
    return lease


def _make_room(store: Store, most_bytes: int) -> None:
    store.prune(most_bytes)
    store.bound_caches(most_bytes)


__all__ = ["Cancelled", "DependencyFault", "Lease", "maker_of", "prepare", "recipe_for"]
