"""What is wrong with settings that can be read: values that open nothing, and names of what is not there.

`tamis doctor`, `tamis check` and editors say the same of them. Must not know where a setting stands in its file, nor who shows it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from tamis.server.runtime.settings.config import NotInForce, Policy, PolicyRule, Settings
from tamis.server.runtime.settings.files import FILE_NAME, Unsafe, can_be_path, read_own, shown_name
from tamis.server.runtime.settings.reading import settings_of

MAX_PATHS = 100
_SURELY_ENOUGH = 1 << 20


Counts = Callable[[str, object], bool]
"""Whether a setting, by its dotted name, may be looked into with this value or item: what is not in force is neither opened nor looked for."""


def _everything(_setting: str, _item: object) -> bool:
    return True


class Fault(msgspec.Struct, frozen=True):
    """``setting`` is the path of the setting, ``item`` the index in its list or the key in its table that is wrong."""

    setting: tuple[str, ...]
    message: str
    item: int | None = None
    level: Literal["error", "warning"] = "error"
    remedy: str = ""
    in_force: bool = True
    """False: it is right, and nobody whose word counts for it said so."""

    @property
    def sentence(self) -> str:
        """The message with the setting's name before it."""
        return f"{'.'.join(self.setting)}: {self.message}"


def policy_faults(policy: Policy) -> list[Fault]:
    """What in the policy opens nothing, whatever the disk holds."""
    from tamis.sandbox.network.hosts import parse_cidr, parse_policy_rule, pin_faults

    faults: list[Fault] = []
    for texts, parse, name in (
        (policy.allow_hosts, parse_policy_rule, "allowHosts"),
        (policy.allow_cidrs, parse_cidr, "allowCidrs"),
    ):
        for index, text in enumerate(texts):
            try:
                parse(text)
            except ValueError as error:
                faults.append(Fault(("policy", name), f"'{text}' opens nothing: {error}", index))
    faults.extend(
        Fault(("policy", "rules"), f"rule {index + 1} {fault}", index)
        for index, rule in enumerate(policy.rules)
        if (fault := _rule_fault(rule))
    )
    faults.extend(Fault(("policy", "pin"), fault) for fault in pin_faults(policy.pin.items(), policy.allow_cidrs))
    faults.extend(_header_faults(policy))
    for name, index, root in _roots(policy):
        if not root.startswith("/"):
            faults.append(Fault(("policy", name), f"'{root}' is not an absolute path", index))
        elif not can_be_path(root):
            text = f"'{shown_name(root)}' opens nothing: no folder can have such a name"
            faults.append(Fault(("policy", name), text, index))
    return faults


def value_faults(settings: Settings) -> list[Fault]:
    """What is wrong with values whatever the disk holds: of the policy, limits that no run can be held to, indexes that are none."""
    return [*policy_faults(settings.policy), *_limit_faults(settings), *_index_faults(settings)]


def _limit_faults(settings: Settings) -> list[Fault]:
    """Limits of runs below the least that the sandbox can set."""
    own = settings.sandbox
    raised = {"openFiles": own.open_files, "fileBytes": own.file_bytes}
    refused = {"cpuSeconds": own.cpu_seconds, "memoryBytes": own.memory_bytes, "processes": own.processes}
    refused |= {"tmpBytes": own.tmp_bytes}
    faults = [
        Fault(("sandbox", name), "0 lets no script run; write 1 or more")
        for name, value in refused.items()
        if not value
    ]
    if all(value > _SURELY_ENOUGH for value in raised.values()):
        return faults
    from tamis.sandbox.job import MIN_FILE_BYTES, MIN_OPEN_FILES

    least = {"openFiles": MIN_OPEN_FILES, "fileBytes": MIN_FILE_BYTES}
    return faults + [
        Fault(
            ("sandbox", name),
            f"no run can be held to {value}; {least[name]} holds in its place, write {least[name]} or more",
            level="warning",
        )
        for name, value in raised.items()
        if value < least[name]
    ]


def _index_faults(settings: Settings) -> list[Fault]:
    if not settings.dependencies.indexes:
        return []
    from tamis.environments.indexes import parse_index
    from tamis.environments.model import DependencyFault

    faults: list[Fault] = []
    for index, text in enumerate(settings.dependencies.indexes):
        try:
            parse_index(text, "")
        except DependencyFault as fault:
            faults.append(Fault(("dependencies", "indexes"), f"{fault.message}; {fault.remedy}", index))
    return faults


def _header_faults(policy: Policy) -> list[Fault]:
    """Headers of ``policy.hosts`` that are never added."""
    if not policy.hosts:
        return []
    from tamis.sandbox.model import AddedHeader, Refusal
    from tamis.sandbox.network.egress_hosts import check_header

    faults: list[Fault] = []
    for host, header in policy.hosts.items():
        if not header.secret:
            faults.append(Fault(("policy", "hosts"), f"'{host}' names no secret, so that nothing is added"))
        try:
            check_header(AddedHeader(host, header.header, header.prefix))
        except Refusal as error:
            faults.append(Fault(("policy", "hosts"), error.message))
    return faults


def _rule_fault(rule: PolicyRule) -> str:
    """What keeps a rule from ever fitting, or from meaning what it says."""
    if not all((rule.tool, rule.face, rule.client, rule.agent, rule.session)):
        return "has an empty pattern, which fits only what is empty; leave it out, or write '*'"
    if rule.matches != "*" and not rule.parameter:
        return "says what a parameter 'matches', but names no 'parameter'"
    if rule.parameter.startswith("/") and re.search(r"~(?![01])", rule.parameter):
        return f"names '{rule.parameter}', which is no JSON Pointer: '~' is written '~0', '/' in a name '~1'"
    return ""


def root_faults(policy: Policy, counts: Counts = _everything) -> list[Fault]:
    """Roots of the policy that grant nothing because they are not there, or that hold every file of the machine."""
    faults: list[Fault] = []
    for name, index, root in _roots(policy)[:MAX_PATHS]:
        if not root.startswith("/") or "\0" in root or not counts(f"policy.{name}", root):
            continue  # an error of the configuration, or nothing to look for
        if not os.path.exists(root):
            text = f"{root} is not there, so nothing below it is granted"
            remedy = "make the folder, or take it out of tamis.toml"
        elif os.path.realpath(root) == "/":
            text = f"{root} opens the whole file system, but for what is closed to every tool"
            remedy = "name the folders that tools need"
        else:
            continue
        faults.append(Fault(("policy", name), text, index, "warning", remedy))
    return faults


def _roots(policy: Policy) -> list[tuple[str, int, str]]:
    return [
        (name, index, root)
        for name, roots in (("readRoots", policy.read_roots), ("writeRoots", policy.write_roots))
        for index, root in enumerate(roots)
    ]


def protocol_faults(settings: Settings, counts: Counts = _everything) -> list[Fault]:
    """Protocols that no one knows; looks at what is installed where a name is none of the built-in ones."""
    from tamis.server.runtime.settings.protocols import load_also, load_protocol

    default = settings.protocol.default
    problem = load_protocol(default) if counts("protocol.default", default) else ""
    faults = [Fault(("protocol", "default"), problem)] if problem else []
    for index, name in enumerate(settings.protocol.also):
        if not counts("protocol.also", name):
            continue
        faults.extend(
            Fault(("protocol", "also"), text.removeprefix("protocol.also: "), index) for text in load_also((name,))[1]
        )
    return faults


def engine_faults(settings: Settings, counts: Counts = _everything) -> list[Fault]:
    """An engine of workflows that cannot be asked, or that no installed package brings."""
    engine = settings.engine
    if engine.type == "builtin" or not (counts("engine.type", engine.type) and counts("engine.url", engine.url)):
        return []
    from tamis.server.runtime.settings.installed import missing_engine, url_fault

    if settings.engine.type == "http":
        problem = url_fault(settings.engine.url, settings)
        return [Fault(("engine", "url" if settings.engine.url else "type"), f"engine.url {problem}")] if problem else []
    problem = missing_engine(settings.engine.type)
    return [Fault(("engine", "type"), problem)] if problem else []


def _environment_faults(settings: Settings, raw: Mapping[str, Any]) -> list[Fault]:
    """A chosen environment that is none of those that the same file has."""
    from tamis.protocols.suggest import best, hint

    chosen, there = settings.environment, settings.environments
    if "environment" not in raw or not there or chosen in there:
        return []
    return [Fault(("environment",), f"there is no environment '{chosen}'{hint(best(chosen, tuple(there)))}")]


def _unsafe(root: Path) -> list[Fault]:
    """That the whole file is not in force, because others may have written it or it is none; then no tool can run."""
    path = str(root / FILE_NAME)
    try:
        read_own(path, 1, str(root))
    except Unsafe as unsafe:
        text = f"{FILE_NAME} {unsafe.reason} and is not in force; no tool is run until it is mended: {unsafe.remedy}"
        return [Fault((), text)]
    except OSError as error:
        if os.path.lexists(path):
            return [Fault((), f"{FILE_NAME} cannot be read: {error.strerror}; no tool is run until it is mended")]
    return []


def _in_force(asked: Iterable[NotInForce]) -> Counts:
    """What of the settings is in force, where this was asked for in vain."""
    refused: dict[str, list[Any]] = {}
    for setting in asked:
        refused.setdefault(setting.setting, []).append(setting.asked)

    def counts(setting: str, item: object) -> bool:
        return not any(
            item == value or (isinstance(value, tuple) and item in value) for value in refused.get(setting, ())
        )

    return counts


def disk_faults(root: Path, text: str, trusted: bool | None = None) -> tuple[Fault, ...]:
    """What a ``tamis.toml`` with this text names that is not on this machine: folders, the profile, protocols, roots of the policy.

    What would not be in force is told as that, and nobody looks whether it is there. ``trusted``: what a host says of the folder.
    Never raises.
    """
    from tamis.server.runtime.settings.loading import load_settings

    try:
        raw: Mapping[str, Any] = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return ()
    if unsafe := _unsafe(root):
        return tuple(unsafe)
    settings, loaded = settings_of(raw), load_settings(root, trusted=trusted, text=text)
    asked = loaded.not_in_force
    counts = _in_force(asked)
    faults = [
        *protocol_faults(settings, counts),
        *root_faults(settings.policy, counts),
        *engine_faults(settings, counts),
        *(Fault(tuple(one.setting.split(".")), one.sentence, in_force=False) for one in asked),
    ]
    faults += _environment_faults(settings, raw)
    for setting, names in (("tools", settings.tools), ("workflows", settings.workflows)):
        for index, name in enumerate(names[:MAX_PATHS]):
            if "\0" not in name and counts(setting, name) and not os.path.isdir(root / name):
                what = "is not a folder" if os.path.exists(root / name) else "does not exist"
                faults.append(Fault((setting,), f"the folder '{name}' {what}", index))
    if settings.profile and "\0" not in settings.profile and counts("profile", settings.profile):
        from tamis.server.runtime.settings.profile import load_agent_rules

        problem = load_agent_rules(root, settings.profile, loaded).problem
        if problem:
            faults.append(Fault(("profile",), problem))
    return tuple(faults)
