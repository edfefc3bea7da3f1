"""The first message of a TLS client, made by hand."""

from __future__ import annotations

import ssl

import pytest


def client_hello(name: str | None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    out = ssl.MemoryBIO()
    session = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return out.read()


def hello_with(extensions: bytes) -> bytes:
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


def sni(*names: bytes) -> bytes:
    entries = b"".join(b"\x00" + len(name).to_bytes(2, "big") + name for name in names)
    value = len(entries).to_bytes(2, "big") + entries
    return b"\x00\x00" + len(value).to_bytes(2, "big") + value
