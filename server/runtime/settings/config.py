"""All settings, with their types and defaults: one spelling everywhere (interface, Configuration).

What each may be set by is in ``classes.py``, what each means in ``words.py``. Must not know files, tools or faces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from tamis.protocols.model import REASONING_TAGS

# Values of settings as people are shown them: in one line, as TOML writes them, of tables only what is set.


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def plain(value: Any) -> Any:
    """A value as lists and tables; a table that the schema knows holds what differs from its defaults."""
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: plain(held)
            for field in msgspec.structs.fields(value)
            if not _is_default(field, held := getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        return {str(name): plain(held) for name, held in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(held) for held in cast("list[Any]", value)]
    return value


def toml_value(value: Any) -> str:
    """A value in one line of ASCII that holds nothing a terminal obeys."""
    return _written(plain(value))


def _written(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_key(name)} = {_written(held)}" for name, held in cast("dict[str, Any]", value).items())
        text = ", ".join(pairs)
        return f"{{ {text} }}" if text else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, cast('list[Any]', value)))}]"
    # TOML has no null, and JSON's DEL stands as it is
    return json.dumps(value, default=str).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _written(name)


def _is_default(field: msgspec.structs.FieldInfo, value: Any) -> bool:
    if field.default is not msgspec.NODEFAULT:
        return value == field.default
    return field.default_factory is not msgspec.NODEFAULT and value == cast("Any", field).default_factory()


MAX_SHOWN = 80
"""Characters of a value that a sentence shows."""

Verdict = Literal["allow", "ask", "deny"]
"""What a rule says of a call: it may run unasked, a person is asked, it never runs."""


class PolicyRule(msgspec.Struct, rename="camel", frozen=True):
    """A rule on calls: of which tools, by whom, with which value of a parameter (D81). The texts are patterns with ``*`` and ``?``."""

    verdict: Verdict = "ask"
    tool: str = "*"
    face: str = "*"
    client: str = "*"
    agent: str = "*"
    session: str = "*"
    parameter: str = ""
    matches: str = "*"
    reason: str = ""


class HostHeader(msgspec.Struct, frozen=True):
    """A header that the egress proxy puts on a host's requests: its name, the secret that is its value, what stands before it.

    ``scheme``: how the proxy speaks to the host. ``tools``: patterns of the ids that it is for; empty: those that
    ``policy.secrets`` lets have the secret.
    """

    header: str = "Authorization"
    secret: str = ""
    prefix: str = ""
    scheme: Literal["http", "https"] = "http"
    tools: tuple[str, ...] = ()


class Policy(msgspec.Struct, rename="camel", frozen=True):
    """What a manifest's ``securityContext`` may at most be granted. Everything is closed by default."""

    final: bool = False
    read_roots: tuple[str, ...] = ()
    write_roots: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    allow_cidrs: tuple[str, ...] = ()
    pin: dict[str, str] = {}
    capabilities: tuple[str, ...] = ()
    secrets: dict[str, tuple[str, ...]] = {}
    hosts: dict[str, HostHeader] = {}
    require_confirmation: Literal["never", "writes", "always"] = "never"
    approval_timeout_ms: int = 300_000
    tools: dict[str, Verdict] = {}
    rules: tuple[PolicyRule, ...] = ()
    calls_per_minute: int = 0
    tool_calls_per_minute: dict[str, int] = {}
    agent_calls_per_minute: dict[str, int] = {}
    session_calls_per_minute: int = 0
    allow_build: bool = False


class RuleSet(msgspec.Struct, frozen=True):
    """The rules of one source; ``where`` is its name in messages."""

    where: str
    rules: tuple[PolicyRule, ...] = ()
    tools: dict[str, Verdict] = {}
    confirmation: Literal["never", "writes", "always"] = "never"
    """When this source wants a person to be asked; its own rules go before it."""


class LayeredPolicy(Policy, frozen=True):
    """A policy that comes from several sources, or that a folder narrows. No setting: the loader makes it."""

    chain: tuple[RuleSet, ...] = ()
    """The operator's rules by source, the strongest first: ``rules`` and ``tools`` are what they come to."""
    held: tuple[RuleSet, ...] = ()
    """Rules that can only ask or forbid: a folder's, and those of whoever stands below a final policy."""


class Interpreters(msgspec.Struct, frozen=True):
    """Paths of interpreters that the operator chose; empty means look for one."""

    python: str = ""
    nodejs: str = ""
    bun: str = ""
    uv: str = ""


class Runners(msgspec.Struct, frozen=True):
    """What starts the scripts of a language (seed 003 §2.1.2): argv only, never a shell's text."""

    python: Literal["python", "uv"] = "python"
    nodejs: Literal["node", "bun"] = "node"


class CustomRuntime(msgspec.Struct, frozen=True):
    """A runtime of the operator's: the words that run a script, ``{script}`` for its path, and what they need to see."""

    command: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    show: tuple[str, ...] = ()


class SandboxSettings(msgspec.Struct, rename="camel", frozen=True):
    """Limits of one run and the choice of backend."""

    backend: Literal["auto", "bubblewrap", "nsjail"] = "auto"
    warm: Literal["auto", "waiting", "off"] = "auto"
    wall_ms: int = 30_000
    cpu_seconds: int = 60
    memory_bytes: int = 268_435_456
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 67_108_864
    tmp_bytes: int = 67_108_864
    stdin_bytes: int = 1_048_576
    stdout_bytes: int = 1_048_576
    stderr_bytes: int = 262_144
    interpreters: Interpreters = Interpreters()
    runners: Runners = Runners()
    runtimes: dict[str, CustomRuntime] = {}


class DependencySettings(msgspec.Struct, rename="camel", frozen=True):
    """Where tools' dependencies come from, and how much of them is kept."""

    install: Literal["auto", "off"] = "auto"
    indexes: tuple[str, ...] = ()
    cache_bytes: int = 4_294_967_296
    wall_ms: int = 120_000


class AuditSettings(msgspec.Struct, rename="camel", frozen=True):
    """Whether and where what happens to calls is written down; ``path`` empty is the user's state folder."""

    enabled: bool = True
    path: str = ""
    max_bytes: int = 8_388_608
    keep: int = 5


class IdempotencySettings(msgspec.Struct, rename="camel", frozen=True):
    """How many results by idempotency key are kept, and for how long."""

    keep: int = 10_000
    keep_seconds: int = 86_400


class TaskSettings(msgspec.Struct, rename="camel", frozen=True):
    """Calls of asynchronous tools: how long they may run, how many that ended are kept and for how long, who is told of their end."""

    wall_ms: int = 3_600_000
    keep: int = 1_000
    keep_seconds: int = 604_800
    callback_url: str = ""


class McpOAuth(msgspec.Struct, rename="camel", frozen=True):
    """How Tamis is known to the authorization server of an MCP server; without any of it, it registers itself when a person logs in."""

    client_id: str = ""
    client_secret: str = ""
    client_metadata_url: str = ""
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    redirect_port: int = 0
    grant: Literal["authorizationCode", "clientCredentials"] = "authorizationCode"


class McpServer(msgspec.Struct, rename="camel", frozen=True):
    """An MCP server that is run in the sandbox, or reached from it; what it asks to read, write and reach is bounded by the policy."""

    url: str = ""
    script: str = ""
    language: str = "python"
    folder: str = "."
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    start_ms: int = 15_000
    idle_ms: int = 300_000
    isolate: Literal["shared", "session"] = "shared"
    oauth: McpOAuth = McpOAuth()


class Secret(msgspec.Struct, frozen=True):
    """Where a secret comes from: exactly one of an environment variable of this process, a file, a program, the keyring.

    ``form``: whether a script finds it in a variable or in a file.
    """

    env: str = ""
    file: str = ""
    command: tuple[str, ...] = ()
    keyring: str = ""
    form: Literal["variable", "file"] = "variable"


class TelemetrySettings(msgspec.Struct, frozen=True):
    """Where the spans of calls are sent."""

    traces: Literal["off", "otlp"] = "off"
    endpoint: str = ""


class EngineSettings(msgspec.Struct, rename="camel", frozen=True):
    """What runs workflows, and how much of one at once."""

    type: str = "builtin"
    url: str = ""
    wall_ms: int = 300_000
    max_parallel: int = 4


class ProtocolSettings(msgspec.Struct, rename="camel", frozen=True):
    """How calls are read."""

    default: str = "action"
    also: tuple[str, ...] = ()
    reasoning_calls: Literal["ignore", "run"] = "ignore"
    reasoning_tags: tuple[str, ...] = REASONING_TAGS
    assume_open_reasoning: bool = False
    fenced_calls: Literal["auto", "run", "ignore"] = "auto"
    allow_multiple_blocks: bool = False
    stderr_fails: bool = False


class DiagnosticsSettings(msgspec.Struct, frozen=True):
    """Whose findings an editor gets: with ``workspace`` also those of files that are not open."""

    workspace: Literal["off", "on"] = "off"


class Settings(msgspec.Struct, rename="camel", frozen=True):
    """All settings of a root, with the defaults of the interface."""

    tools: tuple[str, ...] = (".",)
    workflows: tuple[str, ...] = ()
    builtin: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    profile: str = ""
    strict_json: bool = False
    schema_extension: tuple[str, ...] = ()
    on_conflict: Literal["error", "keepFirst", "replace"] = "keepFirst"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    policy: Policy = Policy()
    sandbox: SandboxSettings = SandboxSettings()
    dependencies: DependencySettings = DependencySettings()
    audit: AuditSettings = AuditSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    idempotency: IdempotencySettings = IdempotencySettings()
    tasks: TaskSettings = TaskSettings()
    engine: EngineSettings = EngineSettings()
    resources: dict[str, str] = {}
    mcp_servers: dict[str, McpServer] = {}
    secrets: dict[str, Secret] = {}
    protocol: ProtocolSettings = ProtocolSettings()
    lint: dict[str, Any] = {}
    diagnostics: DiagnosticsSettings = DiagnosticsSettings()
    environment: str = "default"
    environments: dict[str, dict[str, Any]] = {}


_PLACES = frozenset(
    ("tools", "workflows", "profile", "schemaExtension", "resources", "policy.readRoots", "policy.writeRoots")
)
"""Settings whose places would be looked for."""


class NotInForce(msgspec.Struct, frozen=True):
    """A value that a source asks for and may not set: nobody whose word counts for it said so."""

    setting: str
    """The dotted name."""
    asked: Any
    """What of the value is not in force."""
    where: str
    """The source: a file's path, or ``editor settings``."""
    final: bool = False
    """The machine's policy is final: trust would not change it."""

    @property
    def sentence(self) -> str:
        """What is to be told; holds nothing that a terminal obeys."""
        text = toml_value(self.asked)
        shown = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
        why = "the machine's policy is final" if self.final else "`tamis trust` shows it"
        unseen = "what it names was not looked for; " if self.setting in _PLACES else ""
        return f"not in force: '{self.setting}' = {shown}; {unseen}{why}"


class LoadedSettings(msgspec.Struct, frozen=True):
    """Settings with what was wrong in them; ``problems`` are sentences for ``tamis doctor`` and the log."""

    root: Path
    settings: Settings
    problems: tuple[str, ...] = ()
    closed: str = ""
    """Why nothing may run: a file, or a part of it that bounds what tools may do, cannot be read."""
    sources: Mapping[str, str] = {}
    """Who set each setting that is not a default, by dotted name."""
    not_in_force: tuple[NotInForce, ...] = ()
    """What a folder asks for beyond what it may set, and does not get."""
    asks: tuple[NotInForce, ...] = ()
    """What a folder asks for beyond what it may set by itself, whether or not it gets it."""
    trusted_by: str = ""
    """Whose word makes the folder's operator settings count: ``record``, ``--trust``, ``TAMIS_TRUST`` or ``host``; empty: nobody's."""
    folder_text: bytes = b""
    """What the folder's ``tamis.toml`` held when it was read."""
    folder_problems: tuple[str, ...] = ()
    """Those of ``problems`` that are about the folder's ``tamis.toml``."""
    trusted: bool | None = None
    """What the host says of the folder; None: nothing."""
    operators_problems: tuple[tuple[str, str], ...] = ()
    """Those of ``problems`` that are about the operator's own files, each behind the path of its file."""
