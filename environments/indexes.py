"""Where packages may come from: index URLs in one spelling, the operator's allow-list, the hosts that a build may reach.

Shared by every kind of environment. Pure text; `configured_indexes.py` and `configured_indexes.py` read the package managers' own files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec

from tamis.environments.model import DependencyFault
from tamis.sandbox.network.hosts import canonical_host
from tamis.sandbox.paths.never import shown_fault

_BAD_PATH = re.compile(r"\\|%2e|%2f|%5c|%00|[\x00-\x20\x7f]|(?:^|/)\.\.?(?:/|$)", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


class IndexUrl(msgspec.Struct, frozen=True):
    """An index address in one spelling: no trailing slash, no default port, no user. `path` begins with a slash or is empty;
    for `file` it is the folder."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def text(self) -> str:
        """As it is given to an installer."""
        if self.scheme == "file":
            return f"file://{self.path}"
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}{self.path}"

    @property
    def rule(self) -> str:
        """The host and port as the egress proxy's rule; empty for a folder."""
        return f"{self.host}:{self.port}" if self.host else ""

    def holds(self, other: IndexUrl) -> bool:
        """Whether `other` is this address or one below it."""
        same = (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)
        return same and (other.path == self.path or other.path.startswith(self.path + "/"))


def shown_url(text: str) -> str:
    """A URL for messages, without what may be secret in it."""
    return re.sub(r"//[^/@]*@", "//***@", text.split("?", 1)[0].split("#", 1)[0])[:300]


def parse_index(text: str, where: str) -> IndexUrl:
    """An index address as a person writes it: http, https, file, or an absolute path. ``where`` names its place in messages; empty: no place.

    Raises `DependencyFault` for any other, and for one with a user or password: the proxy cannot add them inside TLS, and in
    the sandbox they would be everyone's.
    """
    text = text.strip()
    if text.startswith("/"):
        text = f"file://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port
        host = (
            canonical_host(f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or "")
            if parts.netloc
            else ""
        )
    except ValueError as error:
        raise _bad(text, where, str(error)) from None
    scheme = parts.scheme.lower()
    if "@" in parts.netloc:
        raise DependencyFault(
            f"the package index {shown_url(text)}{_at(where)} has credentials in its address, and these must not reach the sandbox",
            cause="refused",
            remedy="use an index that needs none (a mirror on this machine or in this network), and name it in dependencies.indexes",
        )
    if parts.query or parts.fragment:
        raise _bad(text, where, "it has a query or a fragment")
    path = parts.path.rstrip("/")
    if _BAD_PATH.search(path):
        raise _bad(text, where, "its path has another spelling")
    if scheme == "file" and parts.netloc in ("", "localhost"):
        return IndexUrl("file", path=path or "/")
    if scheme not in _PORTS or not host:
        raise _bad(text, where, "it begins with neither https://, http:// nor file://")
    return IndexUrl(scheme, host, port or _PORTS[scheme], re.sub("/{2,}", "/", path))


def _at(where: str) -> str:
    return f" ({where})" if where else ""


def _bad(text: str, where: str, why: str) -> DependencyFault:
    return DependencyFault(
        f"{shown_url(text)!r}{_at(where)} is no address of a package index: {why}",
        cause="refused",
        remedy="write it as https://host/path",
    )


def allow_list(indexes: Iterable[str]) -> tuple[IndexUrl, ...]:
    """`dependencies.indexes`, read. Raises `DependencyFault` for an entry that cannot be."""
    return tuple(parse_index(text, "dependencies.indexes") for text in indexes)


def require_named(url: IndexUrl, allowed: tuple[IndexUrl, ...], where: str) -> None:
    """Raises `DependencyFault` unless the operator's list names the address or one above it."""
    if not any(entry.holds(url) for entry in allowed):
        raise DependencyFault(
            f"{where} wants packages from {url.text}, which dependencies.indexes does not name",
            cause="refused",
            remedy="leave it out, or let the operator name it in dependencies.indexes",
        )


def require_configured(url: IndexUrl, allowed: tuple[IndexUrl, ...], where: str) -> None:
    """Raises `DependencyFault` where there is a list and it does not name an address that a package manager is configured for."""
    if allowed and not any(entry.holds(url) for entry in allowed):
        raise DependencyFault(
            f"the package index {url.text} ({where}) is not in dependencies.indexes",
            cause="refused",
            remedy="name it there, or configure the package manager for an index that is named there",
        )


def local_folder(url: IndexUrl) -> str:
    """The real path of a folder that may be shown; empty when it is not there. Raises `DependencyFault` for one that holds
    too much."""
    path = os.path.realpath(url.path)
    if not os.path.isdir(path):
        return ""
    reason = shown_fault(path)
    if reason:
        raise DependencyFault(
            f"the package folder {url.path} cannot be shown: {reason}",
            cause="refused",
            remedy="use a folder of packages only",
        )
    return path
