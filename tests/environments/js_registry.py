"""A small npm registry on this machine's loopback: packuments and tarballs that a test makes, hostile ones too."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = "registry.test"
"""What builds call it: the sandbox reaches names only, and the test pins this one to the loopback."""


def tarball(files: dict[str, str], *, links: dict[str, str] | None = None, raw: dict[str, str] | None = None) -> bytes:
    """A package's archive: `files` below `package/`, `links` to anywhere, `raw` entries under their very names."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in {**{f"package/{name}": text for name, text in files.items()}, **(raw or {})}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content.encode())
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(content.encode()))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.type = tarfile.SYMTYPE
            entry.linkname = target
            archive.addfile(entry)
    return gzip.compress(packed.getvalue(), mtime=0)


def integrity(data: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


class Registry:
    """Packages by name and version; `asked` are the paths that were fetched."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://{NAME}:{port}"
        self.packuments: dict[str, dict[str, Any]] = {}
        self.tarballs: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.status: dict[str, int] = {}

    def add(
        self,
        name: str,
        version: str = "1.0.0",
        archive: bytes | None = None,
        *,
        sri: str = "",
        dist: str = "",
        **fields: Any,
    ) -> str:
        """Publish a version; gives its integrity."""
        manifest = {"name": name, "version": version, "main": "index.js", **fields}
        files = {"package.json": json.dumps(manifest), "index.js": f"module.exports = '{name}@{version}';\n"}
        data = archive if archive is not None else tarball(files)
        path = f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
        self.tarballs[path] = data
        told = sri or integrity(data)
        packument = self.packuments.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}})
        packument["dist-tags"]["latest"] = version
        packument["versions"][version] = {
            **manifest,
            "dist": {
                "tarball": dist or f"{self.url}{path}",
                "integrity": told,
                "shasum": hashlib.sha1(data, usedforsecurity=False).hexdigest(),
            },
        }
        return told


@contextmanager
def serving() -> Generator[Registry]:
    """A registry for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.split("?")[0].replace("%2f", "/").replace("%2F", "/").replace("%40", "@")
            registry.asked.append(path)
            registry.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, body, kind = registry.status.get(path, 200), b"{}", "application/json"
            if status == 200 and path in registry.tarballs:
                body, kind = registry.tarballs[path], "application/octet-stream"
            elif status == 200 and path[1:] in registry.packuments:
                body = json.dumps(registry.packuments[path[1:]]).encode()
            elif status == 200:
                status, body = 404, b'{"error": "Not found"}'
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the server's own name

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry = Registry(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
