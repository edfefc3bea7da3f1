"""What bun and npm say when an installation fails, in words that name the package and the cause. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from tamis.environments.indexes import shown_url
from tamis.environments.model import Cause, DependencyFault, Recipe, Step
from tamis.environments.npm_files import NPM_LOCKS, package_of_hash
from tamis.environments.reach import refused
from tamis.sandbox.model import RunOutcome

_TEXT_CHARS = 1_500
# What is searched of an installer's words: packages may add to them what they like.
_LINE_CHARS, _HALF_CHARS = 400, 8_000
_NAME = r"(?P<package>(?:@[^/@\s]+/)?[^/@\s'\"`]+)"
_ASK = "see whether the registry that npm is configured for is reached, and open its address with policy.allowCidrs where it is not public"
_CREDENTIALS = "use a registry that needs no credentials: none reach the sandbox"

Row = tuple[re.Pattern[str], Cause, Callable[[re.Match[str]], str], str]


def _row(pattern: str, cause: Cause, say: Callable[[re.Match[str]], str], remedy: str = "") -> Row:
    return re.compile(pattern, re.MULTILINE), cause, say, remedy


def _told(match: re.Match[str], name: str) -> str:
    return match.groupdict().get(name) or ""


# First match wins.
_ROWS: tuple[Row, ...] = (
    _row(
        rf"code EINTEGRITY|Integrity check failed for tarball: {_NAME}",
        "hash",
        lambda match: f"{_of(match)}has another content than the registry or the lock file says: its hash does not fit",
        "see where the package comes from; write the lock file again only if it was meant to change",
    ),
    _row(
        r"unknown git error[\s\S]*?ls-remote (?P<what>\S+)",
        "refused",
        lambda match: (
            f"a package wants another from {shown_url(_told(match, 'what'))}, and only versions from a registry are installed"
        ),
        "choose a version of it that does not",
    ),
    _row(
        rf"No matching version found for {_NAME}@(?P<range>.+?)\.?$",
        "version",
        lambda match: f"no version of '{_told(match, 'package')}' fits {_told(match, 'range')}",
    ),
    _row(
        rf"No version matching \"(?P<range>[^\"]*)\" found for specifier \"{_NAME}\"",
        "version",
        lambda match: f"no version of '{_told(match, 'package')}' fits {_told(match, 'range')}",
    ),
    _row(
        r"code E40[13]\b(?:[\s\S]*?GET \S+?/(?P<package>(?:@[^/\s]+(?:/|%2f))?[^/\s]+)$)?",
        "refused",
        lambda match: f"the registry wants credentials{_for(match)}",
        _CREDENTIALS,
    ),
    _row(
        r"GET \S+?/(?P<package>(?:@[^/\s]+(?:/|%2f))?[^/\s]+) - 40[13]\b",
        "refused",
        lambda match: f"the registry wants credentials{_for(match)}",
        _CREDENTIALS,
    ),
    _row(
        rf"requested resource '{_NAME}@[^']*' could not be found",
        "missing",
        lambda match: f"the registry has no package '{_told(match, 'package')}'",
        "see to the name; a private package is not reached, as no credentials are given",
    ),
    _row(
        r"GET \S+?/(?P<package>(?:@[^/\s]+(?:/|%2f))?[^/\s]+) - 404",
        "missing",
        lambda match: f"the registry has no package '{_told(match, 'package').replace('%2f', '/')}'",
        "see to the name; a private package is not reached, as no credentials are given",
    ),
    _row(
        r"code E(?P<status>(?:5\d\d|429))\b|- (?P<answer>(?:5\d\d|429))$",
        "network",
        lambda match: f"the registry answered with an error ({_told(match, 'status') or _told(match, 'answer')})",
        _ASK,
    ),
    _row(
        r"code ERESOLVE[\s\S]*?Could not resolve dependency:\s*(?:npm error |npm ERR! )?(?P<what>.+)",
        "conflict",
        lambda match: f"the packages contradict each other: {_told(match, 'what').strip()}",
        "choose versions that fit together",
    ),
    _row(
        r"lockfile had changes, but lockfile is frozen|can only install packages when your package\.json and|code EUSAGE",
        "declaration",
        lambda _: "the lock file and package.json do not fit together",
        "write the lock file again: `npm install --package-lock-only`, or `bun install --lockfile-only`",
    ),
    _row(
        rf"code EBADPLATFORM[\s\S]*?Unsupported platform for {_NAME}@",
        "version",
        lambda match: f"'{_told(match, 'package')}' is not for this kind of machine",
    ),
    _row(
        r"ENOSPC|NoSpaceLeft|No space left",
        "disk",
        lambda _: "the disk is full",
    ),
    _row(
        rf"(?:ConnectionRefused|DNSResolveFailed|ConnectionClosed|Timeout|ConnectionReset|UnableToResolve\w*|ProxyError\w*|\w*TunnelFailed|ERR_PROXY_TUNNEL)\w* downloading (?:package manifest|tarball) {_NAME}"
        r"|code (?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|ERR_SOCKET_TIMEOUT|EPROTO|ERR_TLS\w+|UNABLE_TO\w+|SELF_SIGNED\w+|DEPTH_ZERO\w+|CERT_\w+)"
        r"|network (?:request|timeout)|socket hang up",
        "network",
        lambda match: f"the registry was not reached{_for(match)}",
        _ASK,
    ),
    _row(
        r"npm (?:error|ERR!) path .*?node_modules/(?P<package>(?:@[^/\s]+/)?[^/\s]+)\s[\s\S]*?npm (?:error|ERR!) command failed",
        "installer",
        lambda match: f"a script of '{_told(match, 'package')}' failed",
        "scripts of packages run without a network and with the tools of this machine",
    ),
)


def _bounded(text: str) -> str:
    """The lines that tell something, their beginnings, and of all of them the first and the last ones."""
    lines = (line[:_LINE_CHARS] for line in text.splitlines() if not line.startswith(("npm http", "npm notice")))
    phrase = "\n".join(line for line in lines if line.strip())
    return phrase if len(phrase) <= 2 * _HALF_CHARS else f"{phrase[:_HALF_CHARS]}\n…\n{phrase[-_HALF_CHARS:]}"


def _of(match: re.Match[str]) -> str:
    name = _told(match, "package")
    return f"'{name}' " if name else "a package "


def _for(match: re.Match[str]) -> str:
    name = _told(match, "package").replace("%2f", "/")
    return f" for '{name}'" if name else ""


def explain(recipe: Recipe, step: Step, outcome: RunOutcome) -> DependencyFault:
    """What a failed step means."""
    text = (outcome.stderr + b"\n" + outcome.stdout).decode("utf-8", "replace")
    phrase = _bounded(text)
    shown = phrase if len(phrase) <= _TEXT_CHARS else "…" + phrase[-_TEXT_CHARS:]
    if outcome.denied_hosts:
        message, remedy = refused(recipe.hosts, outcome)
        return DependencyFault(
            message,
            cause="network",
            remedy=remedy,
            text=shown,
            denied=outcome.denied_hosts,
        )
    for pattern, cause, say, remedy in _ROWS:
        match = pattern.search(phrase)
        if match is not None:
            package = _told(match, "package").replace("%2f", "/") or _corrupted(recipe, cause, phrase)
            message = say(match).replace("a package has", f"'{package}' has", 1) if package else say(match)
            return DependencyFault(
                message, cause=cause, remedy=remedy, package=package, text=shown, passing=cause == "network"
            )
    first = next((line for line in phrase.splitlines() if "error" in line.lower()), "")
    told = f": {shown_url(first)[:200]}" if first else ""
    return DependencyFault(f"{step.name} failed{told}", cause="installer", text=shown)


def _corrupted(recipe: Recipe, cause: Cause, text: str) -> str:
    """The package of npm's EINTEGRITY: in a warning before it, or by the hash that the lock file wants."""
    if cause != "hash":
        return ""
    match = re.search(r"tarball data for ((?:@[^/@\s]+/)?[^/@\s]+)@", text)
    wanted = re.search(r"wanted (sha[0-9]+-[A-Za-z0-9+/=]+)", text)
    if match is not None or wanted is None:
        return match.group(1) if match is not None else ""
    for name, content in recipe.files:
        if name in NPM_LOCKS:
            return package_of_hash(content, name, wanted.group(1))
    return ""
