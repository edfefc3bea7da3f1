"""web:fetch: reads one web page and returns its text.

The sandbox has no network of its own. Where the operator opened a host, Tamis puts the address of its proxy into
HTTP_PROXY and HTTPS_PROXY, and urllib follows them; every other host is refused there, redirects included.
Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from typing import cast
from urllib.parse import quote, urlsplit, urlunsplit

MAX_BYTES = 2_000_000
TIMEOUT_SECONDS = 20
TEXT_TYPES = re.compile(r"text/.*|application/(?:json|xml|javascript|.*\+(?:json|xml))")
HIDDEN = {"script", "style", "noscript", "template", "svg", "title"}
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
SECTIONS = {"p", "div", "section", "article", "header", "footer", "main", "nav", "pre", "blockquote", "br", "hr"}
BLOCKS = HEADINGS | SECTIONS | {"ul", "ol", "li", "table", "tr", "dl", "dt", "dd"}
REMEDY = (
    "the network is closed unless securityContext.networkAccess.allowHosts of this tool's manifest and "
    "[policy] allowHosts in tamis.toml both name the host"
)


class InputError(Exception):
    """The request cannot be answered; the message says what to change."""


class PageText(HTMLParser):
    """Collects the title and the visible text of a page, one line for each block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.pieces: list[str] = []
        self.hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HIDDEN:
            self.hidden.append(tag)
        elif tag in BLOCKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.hidden:
            del self.hidden[self.hidden.index(tag) :]
        elif tag in BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if self.hidden == ["title"]:
            self.title += data
        elif not self.hidden:
            # A line end in HTML source is a blank; only blocks begin lines.
            self.pieces.append(re.sub(r"\s+", " ", data))

    def text(self) -> str:
        lines = (" ".join(line.split()) for line in "".join(self.pieces).split("\n"))
        return "\n".join(line for line in lines if line)


def read_request() -> dict[str, object]:
    try:
        request = json.loads(sys.stdin.buffer.read().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"standard input is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InputError("the input must be one JSON object")
    return cast("dict[str, object]", request)


def checked_url(request: dict[str, object]) -> str:
    url = request.get("url")
    if not isinstance(url, str) or not re.fullmatch(r"(?i)https?://[^\s\x00-\x1f]{1,2000}", url):
        raise InputError("'url' is required and must be an address that begins with http:// or https://")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host.encode("idna").decode("ascii") if not host.isascii() else host
    except ValueError as error:
        raise InputError(f"'url' is no valid address: {error}") from error
    if not host or parts.username is not None or parts.password is not None:
        raise InputError("'url' must name a host and hold no user name or password")
    netloc = f"[{host}]" if ":" in host else host
    netloc += f":{port}" if port is not None else ""
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._", errors="replace")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]", errors="replace")
    return urlunsplit((parts.scheme.lower(), netloc, path, query, ""))


def opener() -> urllib.request.OpenerDirector:
    """Only what a web page needs: urllib's default opener also reads file:, ftp: and data: addresses."""
    director = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        director.add_handler(handler())
    return director


def download(url: str) -> tuple[str, int, str, str, bytes]:
    """Final address, status, media type, character set and at most MAX_BYTES + 1 bytes of the body."""
    host = urlsplit(url).hostname
    headers = {"User-Agent": "tamis-example-web-fetch/1.0", "Accept": "text/html, text/*, application/json;q=0.9"}
    try:
        with opener().open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:
            kind = response.headers.get_content_type()
            charset = response.headers.get_content_charset() or "utf-8"
            return response.geturl(), response.status, kind, charset, response.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        text = f"the request to {host} was answered with {error.code} {error.reason}"
        raise InputError(text + advice(error.code)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        tunnel = re.match(r"Tunnel connection failed: (\d{3})", str(reason))
        if tunnel is not None:
            note = advice(int(tunnel[1]))
        elif urllib.request.getproxies() and not isinstance(reason, ConnectionRefusedError):
            note = ""  # there is a way out, so something on it failed
        else:
            note = f"; {REMEDY}"
        raise InputError(f"{host} cannot be reached ({reason}){note}") from error


def advice(status: int) -> str:
    """What to do about a failure that the proxy or the page's server answered with."""
    if status == 403:
        return f"; if the proxy refused it: {REMEDY}"
    if status in (502, 504):
        return "; check the host's name, or try again later"
    return ""


def fetch(request: dict[str, object]) -> dict[str, object]:
    url = checked_url(request)
    limit = request.get("max_characters", 20_000)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 100 <= limit <= 200_000:
        raise InputError("'max_characters' must be a whole number from 100 to 200000")
    form = request.get("format", "text")
    if form not in ("text", "source"):
        raise InputError("'format' must be text or source")
    dry_run = request.get("dry_run", False)
    if not isinstance(dry_run, bool):
        raise InputError("'dry_run' must be true or false")
    if dry_run:
        return {"url": url, "host": urlsplit(url).hostname, "fetched": False}

    final, status, kind, charset, body = download(url)
    if not TEXT_TYPES.fullmatch(kind):
        raise InputError(f"{final} is {kind}, not text")
    try:
        source = body[:MAX_BYTES].decode(charset, errors="replace")
    except LookupError:
        source = body[:MAX_BYTES].decode("utf-8", errors="replace")
    title, text = "", source
    if "html" in kind:
        page = PageText()
        page.feed(source)
        page.close()
        title = " ".join(page.title.split())
        text = page.text() if form == "text" else source
    return {
        "url": final,
        "host": urlsplit(final).hostname,
        "fetched": True,
        "status": status,
        "content_type": kind,
        "title": title,
        "text": text[:limit],
        "truncated": len(text) > limit or len(body) > MAX_BYTES,
    }


def main() -> int:
    try:
        result = fetch(read_request())
    except InputError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
