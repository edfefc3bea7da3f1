"""A package index on this machine's loopback for tests: wheels and source distributions made by hand, and pages that misbehave."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


def wheel(
    name: str,
    version: str,
    files: Mapping[str, str | bytes] | None = None,
    *,
    requires: tuple[str, ...] = (),
    tag: str = "py3-none-any",
) -> tuple[str, bytes]:
    """(file name, content) of a wheel; by default with a module of its own name that knows its version."""
    module = name.replace("-", "_")
    given = dict(files) if files is not None else {f"{module}.py": f"VERSION = {version!r}\n"}
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {one}\n" for one in requires
    )
    given[f"{info}/METADATA"] = metadata
    given[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"
    record: list[str] = []
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in given.items():
            data = content.encode() if isinstance(content, str) else content
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
            archive.writestr(path, data)
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]))
    return f"{module}-{version}-{tag}.whl", buffer.getvalue()


def sdist(name: str, version: str, setup: str) -> tuple[str, bytes]:
    """(file name, content) of a source distribution whose `setup.py` is given."""
    buffer = io.BytesIO()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in (("setup.py", setup), ("PKG-INFO", metadata)):
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
    return f"{name}-{version}.tar.gz", buffer.getvalue()


class Index:
    """What the server has. `pages` (path to answer) go before what `add` brought."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.listed: dict[str, list[tuple[str, str]]] = {}
        self.pages: dict[str, Callable[[http.server.BaseHTTPRequestHandler], None]] = {}
        self.asked: list[str] = []
        self.url = ""
        self.place = ""
        self.port = 0

    def add(self, file: tuple[str, bytes], *, sha256: str | None = None) -> str:
        """Offer a file; gives the hash that its page tells (by default the right one)."""
        name, data = file
        digest = hashlib.sha256(data).hexdigest() if sha256 is None else sha256
        self.files[name] = data
        project = name.split("-")[0].replace("_", "-").lower()
        self.listed.setdefault(project, []).append((name, digest))
        return digest

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path = request.path
        self.asked.append(path)
        if path in self.pages:
            self.pages[path](request)
        elif path.startswith("/files/") and path[7:] in self.files:
            send(request, 200, self.files[path[7:]], "application/octet-stream")
        elif (project := path.removeprefix("/simple/").strip("/")) in self.listed:
            links = "".join(
                f'<a href="/files/{name}#sha256={digest}">{name}</a>\n' for name, digest in self.listed[project]
            )
            send(request, 200, f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html")
        else:
            send(request, 404, b"not here", "text/plain")


def send(request: http.server.BaseHTTPRequestHandler, status: int, body: bytes, kind: str, **headers: str) -> None:
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)


def hang(request: http.server.BaseHTTPRequestHandler) -> None:
    """Takes the request and says nothing."""
    time.sleep(3600)


@contextmanager
def serving(host: str = "index.test") -> Iterator[Index]:
    """An index at `index.url`, until the end of the block. Its name is to be pinned: clients use no proxy for loopback."""
    index = Index()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.answer(self)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    index.port = server.server_address[1]
    index.place = f"{host}:{index.port}"
    index.url = f"http://{index.place}/simple"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
