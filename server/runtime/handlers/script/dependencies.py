"""What a tool's script depends on: from the settings to the environment that its run is shown, and a failure as an error.

Called between a call's approval and its run; nothing is installed for a call that is not going to run. Must not know how an
environment is built, nor faces.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.contract import ExecutionError
from tamis.protocols.manifest.reading import LANGUAGES, ExternalScript, Manifest
from tamis.protocols.observation import plain
from tamis.sandbox.model import Environment, PathRefused, Unavailable, lacks
from tamis.server.runtime.calls.model import CallContext, CallRequest, Stopped
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.handlers.script.interpreters import built_in, interpreters_of
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.store.folders import cache_folder
from tamis.server.runtime.tools.builtin import ScriptTarget
from tamis.server.runtime.tools.registry import Registry, Tool

if TYPE_CHECKING:
    import asyncio

    from tamis.environments.audit import Vulnerability
    from tamis.environments.model import DependencyFault, Finding, Options, Recipe
    from tamis.environments.reach import Unreached
    from tamis.environments.store import Entry, Lease, Pruned

FOLDER = "environments"


class Prepared:
    """The environment of one run, in use until it is closed; without one where the script declares nothing."""

    def __init__(self, environment: Environment | None = None, lease: Lease | None = None) -> None:
        self.environment = environment
        self._lease = lease

    def hold(self) -> Lease | None:
        """The environment held once more, for a sandbox that goes on showing it after this run."""
        return self._lease.again() if self._lease is not None else None

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lease is not None:
            self._lease.close()


def options_of(settings: Settings, manifest: Manifest | None = None) -> Options:
    """The settings as the sandbox's environments take them. Building needs the policy's and the tool's word."""
    from tamis.environments.model import Options

    policy = settings.policy
    return Options(
        store=str(cache_folder() / FOLDER),
        indexes=settings.dependencies.indexes,
        allow_build=policy.allow_build and manifest is not None and manifest.execution.allow_build,
        allow_cidrs=policy.allow_cidrs,
        pin=tuple(policy.pin.items()),
        wall_ms=settings.dependencies.wall_ms,
        cache_bytes=settings.dependencies.cache_bytes,
        interpreters=interpreters_of(settings),
        backend=settings.sandbox.backend,
    )


async def prepared(
    request: CallRequest, tool: Tool, target: ScriptTarget, context: CallContext, trail: Trail
) -> Prepared:
    """The environment of the script that a call is about to run; close it after the run.

    Raises ``Stopped`` with a ``DependencyError``, with ``SandboxUnavailable`` where nothing can be built, or as cancelled.
    """
    handler = target.handler
    if handler.language not in LANGUAGES:
        return Prepared()  # a runtime of the operator's own finds its packages itself
    from tamis.environments.declared import declares

    try:
        if not declares(target.folder, handler.script_path, built_in(handler.language)):
            return Prepared()
    except PathRefused:
        return Prepared()  # the run says the same of the script
    except OSError as error:
        raise _not_looked_at(error) from None
    from tamis.environments.model import Cancelled, DependencyFault, Progress
    from tamis.environments.prepare import prepare

    def show(progress: Progress) -> None:
        trail.step(3, progress.text)
        if context.observer.on_progress is not None:
            context.observer.on_progress(request.call_id, progress.text)

    since = time.monotonic()
    trail.note("dependencies.started", language=handler.language, folder=target.folder)
    try:
        lease = await prepare(
            target.folder,
            handler.script_path,
            built_in(handler.language),
            options_of(context.settings, tool.manifest),
            install=context.settings.dependencies.install == "auto",
            on_progress=show,
            cancelled=context.cancelled,
        )
    except Cancelled:
        raise Stopped("cancelled") from None
    except DependencyFault as fault:
        trail.note("dependencies.failed", "warning", cause=fault.cause, message=fault.message, deniedHosts=fault.denied)
        raise Stopped("error", dependency_error(fault)) from None
    except Unavailable as error:
        fix = f"; fix: {error.remedy}" if error.remedy else ""
        raise Stopped("error", failure("SandboxUnavailable", f"{error.reason}{fix}")) from None
    except OSError as error:
        if not lacks(error):
            raise
        raise _not_looked_at(error) from None
    if lease is None:
        return Prepared()
    trail.note("dependencies.ready", path=lease.path, tookMs=round((time.monotonic() - since) * 1000))
    return Prepared(Environment(lease.meta.kind, lease.path), lease)


def _not_looked_at(error: OSError) -> Stopped:
    return Stopped(
        "error", failure("ResourceError", f"what the script depends on could not be looked at: {error.strerror}")
    )


def dependency_error(fault: DependencyFault) -> ExecutionError:
    """A fault as a result's error: the sentence with its remedy; the installer's words and the refused hosts as details."""
    message = f"{fault.message}; fix: {fault.remedy}" if fault.remedy else fault.message
    return failure(
        "DependencyError", plain(message), text=plain(fault.text), denied_hosts=list(fault.denied), code=fault.cause
    )


# What `tamis deps` and `tamis doctor` ask


class ToolDependencies(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one tool declares. ``form`` is the deciding file, empty without one; ``problem`` says why it cannot be used."""

    tool_id: str
    version: str
    form: str = ""
    key: str = ""
    ready: bool = False
    hosts: tuple[str, ...] = ()
    """`host:port` of the indexes that an installation asks."""
    findings: tuple[Finding, ...] = ()
    problem: str = ""
    remedy: str = ""


def tools_with_scripts(registry: Registry) -> list[tuple[Tool, ExternalScript]]:
    """The tools whose scripts may declare something."""
    scripts: list[tuple[Tool, ExternalScript]] = []
    for tool in registry.tools:
        handler = tool.manifest.handler
        if isinstance(handler, ExternalScript) and handler.language in LANGUAGES:
            scripts.append((tool, handler))
    return scripts


def look_at(
    tool: Tool, handler: ExternalScript, settings: Settings, registry: Registry | None = None
) -> ToolDependencies:
    """What a tool declares, and whether it is installed; runs and installs nothing, never raises.

    With a ``registry`` also what the manifest's ``dependencies`` names in vain: they are tools, not packages.
    """
    from tamis.environments.model import DependencyFault
    from tamis.environments.prepare import recipe_for
    from tamis.environments.store import Store

    manifest = tool.manifest
    fields: dict[str, Any] = {"tool_id": tool.tool_id, "version": manifest.version}
    options = options_of(settings, manifest)
    absent = _absent_tools(tool, handler, registry)
    fields["findings"] = absent
    try:
        maker_and_recipe = recipe_for(tool.folder, handler.script_path, built_in(handler.language), options)
    except DependencyFault as fault:
        return ToolDependencies(**fields, problem=fault.message, remedy=fault.remedy)
    except PathRefused as error:
        return ToolDependencies(**fields, problem=error.message, remedy=error.remedy)
    except OSError as error:
        return ToolDependencies(**fields, problem=f"cannot be looked at: {error.strerror}")
    if maker_and_recipe is None:
        return ToolDependencies(**fields)
    recipe: Recipe = maker_and_recipe[1]
    ready = Store(options.store).has(recipe.key)
    fields["findings"] = (*absent, *recipe.findings)
    return ToolDependencies(**fields, form=recipe.form, key=recipe.key, ready=ready, hosts=recipe.hosts)


class Audited(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known against the packages of a tool. ``unknown``: those that no data speaks of; ``reason``: why nothing can be known of any."""

    tool_id: str
    packages: int
    vulnerabilities: list[Vulnerability]
    unknown: list[str]
    reason: str


def audit(
    chosen: Sequence[tuple[Tool, ExternalScript]], settings: Settings, paths: Sequence[str]
) -> tuple[int, list[Audited]]:
    """How many advisories the files have, and what they say of what is installed for tools that declare packages. Raises ``ValueError`` for files
    that cannot be read."""
    from tamis.environments.audit import read_advisories

    data = read_advisories(paths)
    installed = {entry.meta.key: entry.meta for entry in environments(settings)}
    rows: list[Audited] = []
    for tool, handler in chosen:
        looked = look_at(tool, handler, settings)
        if not looked.form and not looked.problem:
            continue
        meta = installed.get(looked.key)
        known = {} if meta is None else {package: data.of(meta.kind, *package) for package in meta.packages}
        absent = "not installed: `tamis deps install` resolves its versions" if meta is None else ""
        rows.append(
            Audited(
                tool_id=tool.tool_id,
                packages=len(known),
                vulnerabilities=[
                    vulnerability for vulnerabilities in known.values() for vulnerability in vulnerabilities or ()
                ],
                unknown=[
                    f"{name} {version}" for (name, version), vulnerabilities in known.items() if vulnerabilities is None
                ],
                reason=looked.problem or absent,
            )
        )
    return data.count, rows


def _absent_tools(tool: Tool, handler: ExternalScript, registry: Registry | None) -> tuple[Finding, ...]:
    from tamis.environments.model import Finding

    if registry is None:
        return ()
    file = "requirements.txt" if handler.language == "python" else "package.json"
    return tuple(
        Finding(
            os.path.basename(tool.path),
            0,
            f"'{plain(name)}' in dependencies is no registered tool; packages of a script go into {file} beside it",
        )
        for name in tool.manifest.dependencies
        if registry.get(name, None) is None
    )


def unreached_hosts(looked: Sequence[ToolDependencies], settings: Settings) -> tuple[Unreached, ...]:
    """The index hosts of what is not installed yet that would not be reached; looks their names up, within some seconds."""
    hosts = tuple(
        dict.fromkeys(host for dependencies in looked if not dependencies.ready for host in dependencies.hosts)
    )
    if not hosts:
        return ()
    import asyncio

    from tamis.environments.reach import unreached

    return asyncio.run(unreached(hosts, options_of(settings)))


class Unusable(msgspec.Struct, frozen=True):
    """A declaration that no installation will accept. ``path`` is the file that says it, ``line`` one-based, 0 for all of it."""

    path: str
    line: int
    reason: str


def unusable(tool: Tool, handler: ExternalScript, settings: Settings) -> Unusable | None:
    """What is wrong with the files beside a tool's script, if anything is; installs nothing, never raises.

    What only this machine lacks (an installer, an interpreter) is nothing of the files'.
    """
    from tamis.environments.model import DependencyFault
    from tamis.environments.prepare import recipe_for

    options = options_of(settings, tool.manifest)
    try:
        recipe_for(tool.folder, handler.script_path, built_in(handler.language), options)
    except DependencyFault as fault:
        if fault.cause not in ("declaration", "refused", "source"):
            return None
        match = re.match(r"([^\s:]+)(?::(\d+))?(?::\d+)?:? ", fault.message)
        path = os.path.join(tool.folder, os.path.dirname(handler.script_path), match.group(1) if match else "")
        if match is None or not os.path.lexists(path) or os.path.isdir(path):
            if fault.cause != "declaration":
                return None  # it is about the indexes of this machine
            path, match = tool.path, None
        reason = f"{fault.message}; fix: {fault.remedy}" if fault.remedy else fault.message
        return Unusable(os.path.normpath(path), int((match and match.group(2)) or 0), plain(reason))
    except (PathRefused, OSError):
        return None  # the script itself has a finding
    return None


class Installed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one tool's dependencies. ``error`` is unset where they are ready; ``form`` empty where it declares none."""

    tool_id: str
    version: str
    form: str = ""
    key: str = ""
    packages: int = 0
    bytes: int = 0
    build_ms: float = 0.0
    error: ExecutionError | UnsetType = UNSET


async def install(
    tool: Tool,
    handler: ExternalScript,
    settings: Settings,
    *,
    on_progress: Callable[[str], None] | None = None,
    cancelled: asyncio.Event | None = None,
) -> Installed:
    """Builds the environment of a tool now, whatever ``dependencies.install`` says. Raises only ``Cancelled``."""
    from tamis.environments.model import DependencyFault, Progress
    from tamis.environments.prepare import prepare

    fields: dict[str, Any] = {"tool_id": tool.tool_id, "version": tool.manifest.version}

    def show(progress: Progress) -> None:
        if on_progress is not None:
            on_progress(progress.text)

    try:
        lease = await prepare(
            tool.folder,
            handler.script_path,
            built_in(handler.language),
            options_of(settings, tool.manifest),
            again=True,
            on_progress=show,
            cancelled=cancelled,
        )
    except DependencyFault as fault:
        return Installed(**fields, error=dependency_error(fault))
    except PathRefused as error:
        return Installed(**fields, error=failure("SecurityError", error.message))
    except Unavailable as error:
        fix = f"; fix: {error.remedy}" if error.remedy else ""
        return Installed(**fields, error=failure("SandboxUnavailable", f"{error.reason}{fix}"))
    if lease is None:
        return Installed(**fields)
    with lease:
        meta = lease.meta
    return Installed(
        **fields,
        form=meta.form,
        key=meta.key,
        packages=len(meta.packages),
        bytes=meta.bytes,
        build_ms=meta.build_ms,
    )


def was_cancelled(error: Exception) -> bool:
    """Whether an installation ended because its caller cancelled it."""
    from tamis.environments.model import Cancelled

    return isinstance(error, Cancelled)


def environments(settings: Settings) -> list[Entry]:
    """The finished environments, the one that was used last first."""
    from tamis.environments.store import Store

    return Store(options_of(settings).store).entries()


def prune(settings: Settings, *, everything: bool = False) -> Pruned:
    """Removes what exceeds ``dependencies.cacheBytes``; with ``everything`` all that is not in use, download caches too."""
    from tamis.environments.store import GRACE_SECONDS, Store

    options = options_of(settings)
    store = Store(options.store)
    pruned = store.prune(0 if everything else options.cache_bytes, grace=0 if everything else GRACE_SECONDS)
    for name in store.cache_names() if everything else ():
        store.drop_cache(name)
    if not everything:
        store.bound_caches(options.cache_bytes, every_seconds=0)
    return pruned
