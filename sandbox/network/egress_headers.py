"""Headers that the egress proxy adds to plain requests, so that what runs inside never sees their values.

Pure bytes and rules. Only a request that the proxy reads itself can get one: what goes through a TLS tunnel is not looked into.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from tamis.sandbox.model import AddedHeader, Refusal
from tamis.sandbox.network.hosts import Rule, parse_rule

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
# A line break would make a second header of the value's rest.
_VALUE = re.compile(r"[\x20-\x7e\x80-\U0010ffff\t]*")
_NOT_TO_ADD = frozenset(
    ("host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection")
)
TLS_PORT = 443


def check_header(header: AddedHeader) -> None:
    """Raises `Refusal` for what cannot be added; the value is not shown."""
    where = f"the header {header.name!r} for {header.host!r}"
    if not _NAME.fullmatch(header.name) or header.name.lower() in _NOT_TO_ADD:
        raise Refusal(f"{where} cannot be added: it is no header's name, or it frames the request")
    if not _VALUE.fullmatch(header.value):
        raise Refusal(f"{where} cannot be added: its value holds a line break or another control character")
    try:
        parse_rule(header.host)
        header.value.encode()
    except UnicodeEncodeError:
        raise Refusal(f"{where} cannot be added: its value has no bytes") from None
    except ValueError as error:
        raise Refusal(f"{where} cannot be added: {error}") from None


class Added(msgspec.Struct, frozen=True):
    """The headers of one run by the hosts that they are for."""

    rules: tuple[tuple[Rule, AddedHeader], ...] = ()

    @classmethod
    def parse(cls, headers: Sequence[AddedHeader]) -> Added:
        """Headers that were checked."""
        return cls(tuple((parse_rule(header.host), header) for header in headers))

    def of(self, host: str, port: int) -> list[AddedHeader]:
        """What is added to a plain request to a canonical host; a rule without a port is for each that was granted."""
        return [
            header
            for rule, header in self.rules
            if rule.matches_host(host) and (rule.port is None or rule.matches_port(port))
        ]


def upstream_port(port: int) -> int:
    """Where a host is spoken to by TLS, when the client asked for this port without."""
    return TLS_PORT if port == 80 else port


def with_headers(head: bytes, headers: Sequence[AddedHeader]) -> bytes:
    """A head as it was rewritten for the server, with these headers in the place of any of their names."""
    line, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    # some servers take `_` for `-`
    names = {header.name.lower().replace("_", "-").encode() for header in headers}
    kept = [field for field in fields if field.partition(b":")[0].lower().replace(b"_", b"-") not in names]
    added = [f"{header.name}: {header.value}".encode() for header in headers]
    return b"\r\n".join((line, *kept[:1], *added, *kept[1:], b"", b""))
