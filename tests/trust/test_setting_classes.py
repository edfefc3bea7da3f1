"""Every setting has a class, and a folder that nobody trusted can only narrow (ruling 58)."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest

from tamis.server.runtime.settings.classes import CLASSES, class_of, leaves
from tamis.server.runtime.settings.config import LoadedSettings
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.settings.schema import settings_schema
from tests.trust.conftest import World


def test_every_setting_has_a_class_and_every_class_a_setting() -> None:
    assert CLASSES.keys() == leaves().keys()


def leaf_schemas(schema: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, part in schema["properties"].items():
        dotted = f"{prefix}{name}"
        if dotted in CLASSES:
            found[dotted] = part
        else:
            found |= leaf_schemas(part, f"{dotted}.")
    return found


def test_the_schema_has_the_same_settings_and_tells_their_classes() -> None:
    schemas = leaf_schemas(settings_schema())
    assert schemas.keys() == CLASSES.keys()
    assert {name: schema["x-tamis-class"] for name, schema in schemas.items()} == {
        name: known.kind for name, known in CLASSES.items()
    }


def test_an_entry_of_a_table_has_the_class_of_its_table() -> None:
    assert class_of("mcpServers.files.env.KEY") is CLASSES["mcpServers"]
    assert class_of("sandbox") is None
    assert class_of("nonsense") is None


MUST_BE_OPERATOR = [
    *(f"sandbox.interpreters.{name}" for name in ("python", "nodejs", "bun", "uv")),
    *("sandbox.runners.python", "sandbox.runners.nodejs", "sandbox.runtimes", "sandbox.backend", "handlers", "sources"),
    *(
        "engine.type",
        "engine.url",
        "mcpServers",
        "audit.path",
        "audit.enabled",
        "telemetry.traces",
        "telemetry.endpoint",
    ),
    *(
        f"policy.{name}"
        for name in ("readRoots", "writeRoots", "allowHosts", "allowCidrs", "pin", "capabilities", "allowBuild")
    ),
    *(
        "tasks.callbackUrl",
        "secrets",
        "policy.secrets",
        "policy.hosts",
        "dependencies.indexes",
        "dependencies.cacheBytes",
        "logLevel",
    ),
]


@pytest.mark.parametrize("name", MUST_BE_OPERATOR)
def test_what_starts_a_program_or_names_a_place_or_widens_is_the_operators(name: str) -> None:  # ruling 58
    assert CLASSES[name].kind == "operator"


def other_value(dotted: str) -> Any:
    """A value that is not the default."""
    field: Any = leaves()[dotted]
    of = field.type
    if get_origin(of) is Literal:
        return next(word for word in get_args(of) if word != field.default)
    if of is bool:
        return not field.default
    if of is int:
        return field.default + 1_000
    if of is str:
        return "/evil"
    if get_origin(of) is tuple:
        return ["/evil"] if get_args(of)[0] is str else [{"verdict": "allow"}]
    kind = get_args(of)[1]
    if dotted == "secrets":
        return {"EVIL": {"env": "HOME"}}
    if dotted == "sandbox.runtimes":
        return {"evil": {"command": ["/tmp/evil.sh"]}}
    if get_origin(kind) is tuple:
        return {"*": ["EVIL"]}
    if kind is int:
        return {"*": 100_000}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {"evil": {}}
    return {"evil": "allow" if get_origin(kind) is Literal else "/evil"}


def nested(dotted: str, value: Any) -> dict[str, Any]:
    for name in reversed(dotted.split(".")):
        value = {name: value}
    return value


def held_as_a_folder(world: World, dotted: str, value: Any) -> LoadedSettings:
    """What comes of a value that only an editor's workspace settings, of the folder's side, ask for."""
    return load_settings(world.root, nested(dotted, value), "editor settings", editor=True)


@pytest.mark.parametrize("name", [name for name, known in CLASSES.items() if known.kind == "operator"])
def test_an_operators_setting_in_a_folder_changes_nothing_and_is_told(world: World, name: str) -> None:
    loaded = held_as_a_folder(world, name, other_value(name))
    assert loaded.settings == load_settings(world.root).settings
    assert [one.setting for one in loaded.not_in_force] == [name]
    assert loaded.not_in_force[0].sentence.startswith(f"not in force: '{name}' = ")
    assert "`tamis trust` shows it" in loaded.not_in_force[0].sentence
    assert loaded.problems == ()


NARROWED = [
    # setting, the operator's, the folder's, what holds, whether something is not in force
    ("sandbox.wallMs", 5_000, 1_000, 1_000, False),
    ("sandbox.wallMs", 5_000, 60_000, 5_000, True),
    ("sandbox.wallMs", 5_000, 0, 0, False),
    ("policy.callsPerMinute", 10, 0, 10, True),
    ("policy.callsPerMinute", 10, 3, 3, False),
    ("policy.callsPerMinute", 10, 30, 10, True),
    ("policy.callsPerMinute", 0, 30, 30, False),
    ("policy.toolCallsPerMinute", {"*": 10}, {"mail:send": 1000}, {"*": 10, "mail:send": 10}, True),
    ("policy.toolCallsPerMinute", {"*": 10, "a:b": 50}, {"*": 20}, {"*": 10, "a:b": 20}, True),
    ("policy.toolCallsPerMinute", {"a:b": 5}, {"*": 2}, {"a:b": 2, "*": 2}, False),
    ("policy.toolCallsPerMinute", {"a:b": 5}, {"a:b": 0}, {"a:b": 5}, True),
    ("policy.agentCallsPerMinute", {"*": 10}, {"guest": 1000}, {"*": 10, "guest": 10}, True),
    ("policy.agentCallsPerMinute", {}, {"guest": 3}, {"guest": 3}, False),
    ("policy.sessionCallsPerMinute", 10, 30, 10, True),
    ("policy.sessionCallsPerMinute", 10, 3, 3, False),
    ("policy.requireConfirmation", "writes", "always", "always", False),
    ("policy.requireConfirmation", "writes", "never", "writes", True),
    ("policy.approvalTimeoutMs", 1_000, 900_000, 1_000, True),
    ("policy.allowHosts", ["a.com", "b.com"], ["a.com"], ("a.com",), False),
    ("policy.allowHosts", ["a.com", "b.com"], ["a.com", "evil.com"], ("a.com", "b.com"), True),
    ("policy.allowHosts", ["a.com"], [], (), False),
    ("policy.readRoots", ["/srv"], ["/srv/below"], ("/srv",), True),
    ("policy.capabilities", ["network", "gpu"], ["gpu"], ("gpu",), False),
    ("policy.allowBuild", True, False, False, False),
    ("policy.allowBuild", False, True, False, True),
    ("sandbox.warm", "auto", "off", "off", False),
    ("sandbox.warm", "off", "auto", "off", True),
    ("dependencies.install", "off", "auto", "off", True),
    ("dependencies.indexes", ["https://own.test/simple"], [], ("https://own.test/simple",), True),
    ("handlers", ["http", "sql"], ["http"], ("http",), False),
    ("sources", ["shelf"], ["shelf", "evil"], ("shelf",), True),
    ("protocol.also", ["hermes"], [], (), False),
    ("protocol.also", [], ["hermes"], (), True),
    ("protocol.reasoningCalls", "ignore", "run", "ignore", True),
    ("protocol.fencedCalls", "auto", "ignore", "ignore", False),
    ("protocol.fencedCalls", "auto", "run", "auto", True),
    ("protocol.allowMultipleBlocks", True, False, False, False),
    ("protocol.allowMultipleBlocks", False, True, False, True),
    ("protocol.stderrFails", True, False, True, True),
    ("onConflict", "keepFirst", "replace", "keepFirst", True),
    ("onConflict", "keepFirst", "error", "error", False),
    ("schemaExtension", ["/etc/own.json"], ["r.json"], ("/etc/own.json", "r.json"), False),
    ("schemaExtension", ["/etc/own.json"], ["/evil.json"], ("/etc/own.json",), True),
    ("strictJson", True, False, True, True),
    ("audit.enabled", True, False, True, True),
    ("policy.pin", {"a.test": "10.0.0.1"}, {}, {"a.test": "10.0.0.1"}, False),
    ("policy.pin", {"a.test": "10.0.0.1"}, {"a.test": "10.0.0.2"}, {"a.test": "10.0.0.1"}, True),
    ("profile", "/etc/tamis/profile.json", "mine.json", "/etc/tamis/profile.json", True),
    ("profile", "", "mine.json", "mine.json", False),
    ("protocol.default", "vcp", "tam", "tam", False),
    ("protocol.default", "vcp", "evilplugin", "vcp", True),
    ("engine.maxParallel", 4, 400, 4, True),
]


@pytest.mark.parametrize(("name", "operator", "folder", "holds", "told"), NARROWED)
def test_a_folder_narrows_what_the_user_set_and_never_widens_it(
    world: World, name: str, operator: Any, folder: Any, holds: Any, told: bool
) -> None:
    world.write(world.user, toml(name, operator))
    world.folder(toml(name, folder))
    loaded = load_settings(world.root)
    value: Any = loaded.settings
    for part in name.split("."):
        value = getattr(value, "".join(f"_{c.lower()}" if c.isupper() else c for c in part))
    assert value == holds
    assert bool(loaded.not_in_force) == told
    assert loaded.closed == ""


def toml(dotted: str, value: Any) -> str:
    table, _, name = dotted.rpartition(".")
    head = f"[{table}]\n" if table else ""
    return f"{head}{name} = {shown(value)}\n"


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {shown(item)}' for key, item in value.items()) + "}"
    return msgspec.json.encode(value).decode()
