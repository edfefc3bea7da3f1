"""Servers on this machine's loopback for tests of the network: plain and TLS, with a certificate that the test makes.

Names below `.test` are nobody's; the tests pin them to 127.0.0.1.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import shutil
import socket
import ssl
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

NAME = "api.test"
PINS = ((NAME, "127.0.0.1"), ("inside.test", "127.0.0.1"))
OPEN = ("127.0.0.0/8",)
BODY = b"hello"


def certificate(folder: Path) -> tuple[Path, Path]:
    """(the authority's certificate, a file with the key and the certificate of `api.test`)."""
    program = shutil.which("openssl", path="/usr/bin:/bin:/usr/local/bin")
    if program is None:
        pytest.skip("these tests make a certificate with openssl, which is not here (apt-get install openssl)")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30")
    authority, leaf = folder / "ca.pem", folder / "leaf.pem"
    for words in (
        (*key, "-keyout", folder / "ca.key", "-out", authority, "-subj", "/CN=Test authority"),
        (
            *(*key, "-CA", authority, "-CAkey", folder / "ca.key", "-keyout", folder / "leaf.key", "-out", leaf),
            *("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
        ),
    ):
        subprocess.run([program, "req", "-x509", *words], check=True, capture_output=True)
    leaf.write_bytes((folder / "leaf.key").read_bytes() + leaf.read_bytes())
    return authority, leaf


def wheel() -> tuple[str, bytes]:
    """(file name, content) of the smallest package that an installer takes."""
    info = "tamis_test_package-1.0.dist-info"
    files = {
        "tamis_test_package.py": b"VALUE = 7\n",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tamis-test-package\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b'=').decode()},{len(text)}"
        for name, text in files.items()
    ]
    files[f"{info}/RECORD"] = ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return "tamis_test_package-1.0-py3-none-any.whl", out.getvalue()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name, content = wheel()
        body, kind = BODY, "text/plain"
        if self.path.rstrip("/") == "/simple/tamis-test-package":
            body, kind = f'<a href="/files/{name}">{name}</a>'.encode(), "text/html"
        elif self.path == f"/files/{name}":
            body, kind = content, "application/octet-stream"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - named by the base class

    def log_message(self, *words: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    """With the class's 5, a connection of an attack's hundreds is half made: its client has left, and this end waits for ever."""

    def handle_error(self, *words: Any) -> None:
        pass  # a client that leaves is no news


@contextlib.contextmanager
def serving(certificate_file: Path | None = None) -> Iterator[int]:
    """The port of a server that says hello, and has a simple index with one package."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        if certificate_file is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate_file)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@contextlib.contextmanager
def counting() -> Iterator[tuple[int, list[bytes]]]:
    """(port, what each connection sent first) of a server that answers nothing: whoever reaches it got through."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        stopped = threading.Event()

        def accept() -> None:
            while not stopped.is_set():
                with contextlib.suppress(OSError):
                    end, _ = listener.accept()
                    end.settimeout(0.2)
                    with end, contextlib.suppress(OSError):
                        seen.append(b"")
                        seen[-1] = end.recv(65536)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1], seen
        finally:
            stopped.set()
            thread.join()
