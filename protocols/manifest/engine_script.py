"""The scripts of tools that were made of a workflow of another project: they have its own engine run it, over HTTP.

The text of the script is the product; nothing here runs it. What comes from the workflow stands in it as JSON in a string, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tamis.protocols.model import Json

_HEAD = '''"""Has {engine} run a workflow over HTTP. Made by `tamis import {kind}`; change it as you like.

Keys come from variables that the operator's settings fill ([secrets] and [policy.secrets] of Tamis).
"""

import base64
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

MAX_BYTES = 8 * 1024 * 1024
SERVER = {server}
'''
_SEND = '''

def secret(name):
    """The value of a secret; empty where the sandbox has none, or where the proxy adds it."""
    if name + "_FILE" in os.environ:
        with open(os.environ[name + "_FILE"], encoding="utf-8", newline="") as stream:
            return stream.read().strip()
    return os.environ.get(name, "")


def send(method, path, data=None, headers=None):
    """What the engine answers: status, kind of content, bytes."""
    request = urllib.request.Request(SERVER + path, data, headers or {}, method=method)
    try:
        try:
            answer = urllib.request.urlopen(request, timeout=None)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            content = answer.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                sys.exit(f"the engine's answer is larger than {MAX_BYTES} bytes")
            return answer.status, answer.headers.get_content_type(), content
    except urllib.error.URLError as error:
        sys.exit(f"the engine at {SERVER} was not reached: {error.reason}")
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"the engine at {SERVER} did not answer whole: {error or type(error).__name__}")


def refused(what, status, content):
    sys.exit(f"{what} was answered with {status}: {content[:2000].decode('utf-8', 'replace').strip()}")


def decoded(media, content):
    if not content:
        return None
    if media.endswith(("/json", "+json")):
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            sys.exit(f"the engine's answer is no JSON: {error}")
    if media.startswith("text/"):
        return content.decode("utf-8", "replace")
    return {"contentType": media, "base64": base64.b64encode(content).decode()}
'''
_COMFYUI = '''

GRAPH = json.loads({graph})
PLACES = json.loads({places})  # where each parameter goes: node and input
SECRETS = json.loads({secrets})
PAUSE_SECONDS = 0.5
FAILURES = ("execution_error", "execution_interrupted")


def run(**arguments):
    """Queues the workflow with these values, waits for its end and gives what its nodes put out."""
    for name, (node, key) in PLACES.items():
        if arguments.get(name) is not None:
            GRAPH[node]["inputs"][key] = arguments[name]
    for name, places in SECRETS.items():
        for node, key in places:
            GRAPH[node]["inputs"][key] = secret(name)
    body = json.dumps({{"prompt": GRAPH}}).encode()
    status, media, content = send("POST", "/prompt", body, {{"Content-Type": "application/json"}})
    if status != 200:
        refused("the workflow", status, content)
    prompt_id = object_of(decoded(media, content)).get("prompt_id")
    if not isinstance(prompt_id, str):
        sys.exit("the engine took the workflow and gave no prompt_id")
    path = "/history/" + urllib.parse.quote(prompt_id, safe="")
    while True:
        status, media, content = send("GET", path)
        if status != 200:
            refused("the question for its result", status, content)
        record = object_of(decoded(media, content)).get(prompt_id)
        if record is not None:
            return outcome(prompt_id, object_of(record))
        time.sleep(PAUSE_SECONDS)


def object_of(value):
    return value if isinstance(value, dict) else {{}}


def outcome(prompt_id, record):
    told = object_of(record.get("status"))
    for message in told.get("messages") or []:
        if isinstance(message, list) and len(message) == 2 and message[0] in FAILURES:
            details = object_of(message[1])
            where = f"node {{details.get('node_id')}} ({{details.get('node_type')}})"
            sys.exit(f"the workflow failed at {{where}}: {{details.get('exception_message') or message[0]}}")
    if told.get("status_str") == "error":
        sys.exit("the workflow failed, and the engine gave no reason")
    outputs = object_of(record.get("outputs"))
    return {{"promptId": prompt_id, "outputs": outputs, "files": list(files(outputs))}}


def files(outputs):
    """The addresses of what the nodes wrote."""
    for node in outputs.values():
        for items in object_of(node).values():
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict) and "filename" in item:
                    asked = {{key: item.get(key, "") for key in ("filename", "subfolder", "type")}}
                    yield f"{{SERVER}}/view?{{urllib.parse.urlencode(asked)}}"
'''
_N8N = '''

CALL = json.loads({call})


def run(**arguments):
    """Sends the values to the workflow's trigger and gives what it answers."""
    path, query, body, headers = CALL["path"], [], {{}}, {{}}
    for name, (place, key) in CALL["places"].items():
        value = arguments.get(name)
        if value is None:
            continue
        if place == "path":
            part = urllib.parse.quote(text_of(value), safe="")
            path = path.replace("{{" + key + "}}", part.replace(".", "%2E") if part in (".", "..") else part)
        elif place == "query":
            query.append((key, text_of(value)))
        else:
            body[key] = value
    if CALL["authorization"]:
        scheme, name = CALL["authorization"]
        value = secret(name)
        if scheme == "Basic":
            value = base64.b64encode(value.encode()).decode()
        headers["Authorization"] = f"{{scheme}} {{value}}".strip()
    data = None
    if CALL["form"]:
        data, headers["Content-Type"] = form(body)
    elif CALL["method"] in ("POST", "PUT", "PATCH"):
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    path += "?" + urllib.parse.urlencode(query) if query else ""
    status, media, content = send(CALL["method"], path, data, headers)
    if not 200 <= status < 300:
        refused("the workflow", status, content)
    return decoded(media, content)


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def form(fields):
    """A form as its page sends it."""
    mark = "tamis" + base64.b16encode(os.urandom(16)).decode()
    parts = [
        f'--{{mark}}\\r\\nContent-Disposition: form-data; name="{{key}}"\\r\\n\\r\\n{{text_of(value)}}\\r\\n'
        for key, value in fields.items()
    ]
    return "".join([*parts, f"--{{mark}}--\\r\\n"]).encode("utf-8", "replace"), f"multipart/form-data; boundary={{mark}}"
'''


def comfyui_script(
    server: str, graph: Json, places: Mapping[str, tuple[str, str]], secrets: Mapping[str, list[tuple[str, str]]]
) -> str:
    """A script that queues a graph; ``places`` and ``secrets`` say which node and input each value goes to."""
    head = _HEAD.format(engine="ComfyUI", kind="comfyui", server=_literal(server))
    parts = {"graph": _json(graph), "places": _json(dict(places)), "secrets": _json(dict(secrets))}
    return head + _SEND + _COMFYUI.format(**parts)


def n8n_script(server: str, call: Mapping[str, object]) -> str:
    """A script that sends a request to a trigger: ``path``, ``method``, ``form``, ``places`` and ``authorization``."""
    return _HEAD.format(engine="n8n", kind="n8n", server=_literal(server)) + _SEND + _N8N.format(call=_json(call))


def _literal(text: str) -> str:
    return ascii(text)


def _json(value: object) -> str:
    """JSON in a literal of Python: ASCII, so that nothing in it ends the string or the line."""
    return ascii(json.dumps(value))
