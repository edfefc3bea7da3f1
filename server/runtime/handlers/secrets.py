"""From the secrets that a call was granted to what its sandbox gets: variables, files, headers of the proxy.

From here on their values are hidden in all that is told of the call. Must not decide which secrets are granted.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.contract import Denied, ExecutionResult
from tamis.protocols.manifest.reading import McpTool
from tamis.sandbox import model as sandbox
from tamis.server.runtime.calls.model import CallContext, Stopped
from tamis.server.runtime.calls.runner import secret_failure
from tamis.server.runtime.observe.masking import spelled
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.policy.permissions import Grant
from tamis.server.runtime.policy.secret_values import SecretUnusable, Value
from tamis.server.runtime.policy.secrets import SecretFault, headers_of, may_have
from tamis.server.runtime.tools.tool import Tool

MAX_VARIABLE_BYTES = 65_536
"""A longer value stands in a file, as a variable could not hold it."""


class Given(msgspec.Struct, frozen=True):
    """What a run is given, as its request wants it."""

    secrets: tuple[sandbox.SecretValue, ...] = ()
    headers: tuple[sandbox.AddedHeader, ...] = ()


NOTHING = Given()


async def given_secrets(rights: Grant, context: CallContext, trail: Trail, result: ExecutionResult) -> Given:
    """Reads what was granted. Raises ``Stopped`` where a value cannot be had: the script is then not started."""
    if not rights.secrets and not rights.headers:
        return NOTHING
    secrets: list[sandbox.SecretValue] = []
    for name in rights.secrets:
        value = await _value(name, context, trail, result)
        large = len(value.text.encode()) > MAX_VARIABLE_BYTES
        as_file = large or context.settings.secrets[name].form == "file"
        secrets.append(sandbox.SecretValue(name, value.text, as_file))
    headers: list[sandbox.AddedHeader] = []
    for host, header in rights.headers.items():
        value = await _value(header.secret, context, trail, result)
        text = f"{header.prefix}{value.text}"
        headers.append(sandbox.AddedHeader(host, header.header, text, header.scheme == "https"))
    return Given(tuple(secrets), tuple(headers))


def spellings_at_hand(tool: Tool, context: CallContext) -> tuple[str, ...]:
    """How the secrets are spelled that the policy lets a tool have, of those whose values can be had without waiting.

    For what is told of a call before its values are read: its arguments may hold one.
    """
    settings = context.settings
    handler = tool.manifest.handler
    server_name = handler.server if isinstance(handler, McpTool) else ""
    server = settings.mcp_servers.get(server_name)
    secrets = tool.manifest.security_context.secrets if server is None else server.secrets
    token = context.services.handlers.mcp.token_at_hand(server_name) if server is not None and server.url else ""
    if not secrets and not settings.policy.hosts:
        return spelled((token,)) if token else ()
    holder = tool if server is None else context.services.handlers.mcp.stand_in(server_name) or tool
    tool_id, version, security = holder.tool_id, holder.manifest.version, holder.manifest.security_context
    names = [secret for secret in secrets if may_have(secret, tool_id, version, settings.policy)]
    names += [
        host_header.secret
        for host_header in headers_of(tool_id, version, security.network.allow_hosts, settings.policy).values()
    ]
    spellings = set(spelled((token,)) if token else ())
    for name in dict.fromkeys(names):
        secret = settings.secrets.get(name)
        value = None if secret is None else context.services.handlers.secrets.at_hand(name, secret, context.root)
        spellings.update(() if value is None else value.spellings)
    return tuple(sorted(spellings, key=len, reverse=True))


async def _value(name: str, context: CallContext, trail: Trail, result: ExecutionResult) -> Value:
    secret = context.settings.secrets.get(name)
    try:
        if secret is None:
            reason = f"policy.hosts names the secret '{name}', which no [secrets] defines"
            raise SecretUnusable(
                SecretFault(
                    name, "secretMissing", reason, f"secrets.{name}", "define it, or take it out of policy.hosts"
                )
            )
        value = await context.services.handlers.secrets.value(name, secret, context.root)
    except SecretUnusable as unusable:
        fault = unusable.fault
        denied = Denied(kind="secret", value=name, reason=fault.sentence)
        result.permissions = msgspec.structs.replace(result.permissions, denied=[*result.permissions.denied, denied])
        trail.note("rights.denied", "warning", kind="secret", value=name, reason=fault.sentence)
        text = f"the tool needs the secret '{name}': {fault.sentence}"
        raise Stopped("blocked", secret_failure(text, fault)) from None
    trail.keep_granted(value.spellings)
    return value
