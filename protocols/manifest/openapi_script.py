"""The script of tools that were made of an OpenAPI document: it calls the operations over HTTP with the standard library alone.

The text of the script is the product; nothing here runs it.
"""

from __future__ import annotations

import json
import pprint
from collections.abc import Mapping, Sequence
from typing import Any

_HEAD = '''"""Calls the operations of {title} over HTTP. Made by `tamis import openapi`; change it as you like.

Keys come from variables that the operator's settings fill ([secrets] and [policy.secrets] of Tamis), so that no model
ever sees them; where the proxy adds one, there is no variable, and nothing is sent from here:{schemes}
"""

import base64
import http.client
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_SECONDS = 25
MAX_BYTES = 8 * 1024 * 1024
SCHEMES = {scheme_table}
OPERATIONS = {operations}
'''
_BODY = '''

def call(name, arguments):
    """Sends the request of an operation; gives what it answers, JSON as values and other text as text."""
    operation = OPERATIONS[name]
    path, query, headers, cookies = operation["path"], [], {"Accept": "application/json, text/*;q=0.9, */*;q=0.5"}, []
    for key, (wire, place, style, explode) in operation["parameters"].items():
        value = arguments.get(key)
        if value is None:
            continue
        if place == "path":
            part = urllib.parse.quote(joined(value, ","), safe="")
            path = path.replace("{" + wire + "}", part.replace(".", "%2E") if part in (".", "..") else part)
        elif place == "query":
            query += pairs(wire, value, style, explode)
        elif place == "header":
            headers[wire] = joined(value, ",")
        else:
            cookies.append(f"{wire}={urllib.parse.quote(joined(value, ','))}")
    authorize(operation["security"], headers, query, cookies)
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    data = None
    if operation["body"] and arguments.get("body") is not None:
        data = encoded(arguments["body"], operation["body"], operation["fields"])
        headers["Content-Type"] = operation["body"]
    for wire, value in headers.items():
        if not value.isprintable():
            sys.exit(f"the header {wire} cannot be sent: its value has a line break or another control character")
        headers[wire] = value.encode().decode("latin-1")  # the library sends Latin-1; services read UTF-8
    url = operation["server"] + urllib.parse.quote(path, safe="/%:?#[]@!$&'()*+,;=")
    if query:
        url += "?" + urllib.parse.urlencode(query)
    request = urllib.request.Request(url, data, headers, method=operation["method"])
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return decoded(answer)
    except urllib.error.HTTPError as error:
        said = error.read(2000).decode("utf-8", "replace").strip()
        if said.startswith(("Not reached: ", "Refused by the sandbox: ")) and said.endswith(str(error.reason)):
            sys.exit(f"{operation['method']} {path} was not answered: {said}")
        reason = f"{error.code} {error.reason}".strip()
        sys.exit(f"{operation['method']} {path} was answered with {reason}{': ' if said else ''}{said}")
    except urllib.error.URLError as error:
        sys.exit(f"{operation['method']} {path} was not answered: {error.reason}")
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"{operation['method']} {path} was not answered whole: {error or type(error).__name__}")


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def joined(value, separator):
    if isinstance(value, dict):
        value = [part for item in value.items() for part in item]
    return separator.join(map(text_of, value)) if isinstance(value, list) else text_of(value)


def pairs(wire, value, style, explode):
    if isinstance(value, dict) and style == "deepObject":
        return [(f"{wire}[{key}]", text_of(part)) for key, part in value.items()]
    if isinstance(value, dict) and explode:
        return [(key, text_of(part)) for key, part in value.items()]
    if isinstance(value, list) and explode:
        return [(wire, text_of(part)) for part in value]
    return [(wire, joined(value, {"spaceDelimited": " ", "pipeDelimited": "|"}.get(style, ",")))]


def secret(name):
    """The value of a secret; None where the sandbox has none."""
    if name + "_FILE" in os.environ:
        with open(os.environ[name + "_FILE"], encoding="utf-8", newline="") as stream:
            return stream.read()
    return os.environ.get(name)


def authorize(alternatives, headers, query, cookies):
    for names in alternatives:
        values = {name: secret(SCHEMES[name][2]) for name in names}
        if names and None not in values.values():
            break
    else:
        return
    for name, value in values.items():
        kind, wire, _ = SCHEMES[name]
        if kind == "header":
            headers[wire] = value
        elif kind == "query":
            query.append((wire, value))
        elif kind == "cookie":
            cookies.append(f"{wire}={urllib.parse.quote(value)}")
        elif kind == "basic":
            headers["Authorization"] = "Basic " + base64.b64encode(value.encode()).decode()
        else:
            headers["Authorization"] = "Bearer " + value


def encoded(body, media, fields):
    if media.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded" and isinstance(body, dict):
        parts = []
        for key, value in body.items():
            style, explode = fields.get(key, ("form", True))
            if style == "json":
                parts.append((key, json.dumps(value, ensure_ascii=False)))
            elif value is not None:
                parts += pairs(key, value, style, explode)
        return urllib.parse.urlencode(parts).encode()
    if "json" in media:
        return json.dumps(body, ensure_ascii=False).encode()
    return text_of(body).encode()


def decoded(answer):
    data = answer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        sys.exit(f"the answer is larger than {MAX_BYTES} bytes")
    media = answer.headers.get_content_type()
    if not data:
        return None
    if media.endswith(("/json", "+json")):
        return json.loads(data)
    if media.startswith("text/") or media.endswith(("/xml", "+xml")):
        return data.decode(answer.headers.get_content_charset() or "utf-8", "replace")
    return {"contentType": media, "base64": base64.b64encode(data).decode()}
'''
_FUNCTION = """

def {name}(**arguments):
    return call({key!r}, arguments)
"""


def script_text(
    title: str, schemes: Mapping[str, tuple[str, str, str]], operations: Mapping[str, dict[str, Any]]
) -> str:
    """The script; ``operations`` are by the name of their function, ``schemes`` give kind, place and secret of each credential."""
    told = "".join(f"\n- {name}: {_about(kind, wire)}" for kind, wire, name in schemes.values()) or " none are needed."
    head = _HEAD.format(
        title=_harmless(title),
        schemes=_harmless(told),
        scheme_table=_literal({name: list(kind) for name, kind in schemes.items()}),
        operations=_literal(operations),
    )
    return head + _BODY + "".join(_FUNCTION.format(name=name, key=name) for name in operations)


def _literal(value: object) -> str:
    return pprint.pformat(value, width=110, sort_dicts=False)


def _about(kind: str, wire: str) -> str:
    return {
        "header": f"a key, sent in the header {wire}",
        "query": f"a key, sent as {wire} in the address",
        "cookie": f"a key, sent as the cookie {wire}",
        "basic": "user:password",
    }.get(kind, "a token")


def _harmless(text: str) -> str:
    """A text that ends no docstring."""
    lines: Sequence[str] = text.splitlines(keepends=True)
    return "".join(
        json.dumps(line, ensure_ascii=False)[1:-1].replace("\\n", "\n").replace('\\"', "'") for line in lines
    )
