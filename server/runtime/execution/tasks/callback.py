"""Telling a URL that a task has ended (D92): one POST of the task, through the operator's policy for hosts.

Off unless ``tasks.callbackUrl`` names one. The host must be open in ``policy.allowHosts``, the address that its name leads to must be public or in
``policy.allowCidrs``, and redirects are not followed: nothing is dialled that was not judged. Must not know how a task runs.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

import msgspec

from tamis import __version__
from tamis.protocols.contract import Task
from tamis.sandbox.network.egress_hosts import Addresses, Refused
from tamis.sandbox.network.hosts import Rules, canonical_host, parse_policy_rule
from tamis.server.runtime.settings.config import Policy

PAUSES_S = (1.0, 5.0)
"""What is waited before each further attempt."""
ATTEMPT_S = 10.0
_MAX_LINE = 4_096
_MAX_LINES = 16
_AS_IS = "/%:@!$&'()*+,;=-._~"


class Target(msgspec.Struct, frozen=True):
    """Where to: a canonical host, and the path with the query as they are sent."""

    secure: bool
    host: str
    port: int
    path: str


def read_url(url: str, policy: Policy) -> Target:
    """The target of a URL that the policy opens. Raises ``ValueError`` with the reason for any other."""
    if any(letter <= " " or letter == "\x7f" for letter in url):
        raise ValueError("the URL holds a blank or a control character")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError("the URL must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL must not hold a user or a password")
    hostname = parts.hostname or ""
    host = canonical_host(f"[{hostname}]" if ":" in hostname else hostname)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    decision = Rules(tuple(parse_policy_rule(text) for text in policy.allow_hosts)).decide(host, port)
    if not decision.allowed:
        raise ValueError(decision.reason)
    query = f"?{quote(parts.query, safe=f'?{_AS_IS}')}" if parts.query else ""
    return Target(parts.scheme == "https", host, port, f"{quote(parts.path or '/', safe=_AS_IS)}{query}")


async def call_back(url: str, task: Task, policy: Policy, pauses: Sequence[float] = PAUSES_S) -> str:
    """Posts a task to the URL, a few times while that fails for reasons that may pass. Why it was not taken; empty when it was."""
    try:
        target = read_url(url, policy)
        addresses = Addresses(policy.allow_cidrs, tuple(policy.pin.items()))
    except ValueError as error:
        return f"tasks.callbackUrl: {error}"
    try:
        body = msgspec.json.encode(task)
        context = await asyncio.to_thread(ssl.create_default_context) if target.secure else None
        for pause in (*pauses, None):
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    status = await _post(target, addresses, context, task.task_id, body)
            except Refused as refused:
                if refused.status == 403:
                    return f"tasks.callbackUrl: {refused.reason}"
                problem = refused.reason
            except TimeoutError:
                problem = f"{target.host}:{target.port} did not take it: no answer within {ATTEMPT_S:g} s"
            except (OSError, ValueError) as error:
                problem = f"{target.host}:{target.port} did not take it: {str(error) or type(error).__name__}"
            else:
                if 200 <= status < 300:
                    return ""
                problem = f"{target.host}:{target.port} answered {status}"
                if status < 500 and status not in (408, 425, 429):
                    return problem
            if pause is None:
                return problem
            await asyncio.sleep(pause)
    finally:
        addresses.close()
    return ""


async def _post(target: Target, addresses: Addresses, context: ssl.SSLContext | None, task_id: str, body: bytes) -> int:
    """One attempt at the first address that answers; the status."""
    ip_addresses = await addresses.vetted(target.host, target.port)
    name = target.host.strip("[]")
    usual = 443 if target.secure else 80
    shown = target.host if target.port == usual else f"{target.host}:{target.port}"
    head = (
        f"POST {target.path} HTTP/1.1\r\nHost: {shown}\r\nUser-Agent: tamis/{__version__}\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: {task_id}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    last: Exception = OSError("no address")
    for address in ip_addresses:
        try:
            reader, writer = await asyncio.open_connection(
                address,
                target.port,
                ssl=context,
                server_hostname=name if context is not None else None,
                limit=_MAX_LINE,
            )
        except OSError as error:
            last = error
            continue
        try:
            writer.write(head.encode("ascii") + body)
            await writer.drain()
            return await _status(reader)
        finally:
            # what was not sent yet, and what it goes on to answer, is nobody's any more; closing would wait for its reading
            writer.transport.abort()
    raise last


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of the answer, behind those that only say that one will come. Raises ``ValueError``."""
    for _ in range(_MAX_LINES):
        line = await reader.readline()
        if not line:
            raise ValueError("it closed the connection before it answered")
        words = line.split(b" ", 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].strip().isdigit():
            raise ValueError("the answer is not HTTP")
        status = int(words[1][:3])
        if not 100 <= status < 200:
            return status
        while (await reader.readline()).strip():
            pass
    raise ValueError("the answer has no end")
