"""Workflow files of ComfyUI (API form) and n8n, each as one tool whose script has that project's own engine run it over HTTP (F9).

The parameters are what a caller of the workflow gives: literal inputs of ComfyUI's nodes, fields of an n8n trigger. Must not know files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from tamis.protocols.manifest.engine_script import comfyui_script, n8n_script
from tamis.protocols.manifest.foreign_fields import Say, next_step, secret_name
from tamis.protocols.manifest.imported import Imported, ImportedTool, Note, fit_name, start, text_of, to_be_said
from tamis.protocols.manifest.openapi_parts import host_of
from tamis.protocols.manifest.security import host_pattern_fault
from tamis.protocols.model import Json, escape_pointer
from tamis.protocols.schema.words import excerpt, is_list, is_object

MAX_NODES = 5_000
MAX_PARAMETERS = 100
MAX_NOTES = 200
MAX_DEPTH = 64
MAX_TEXT = 4_000
"""Of a literal that becomes the default of a parameter."""
MAX_SCRIPT = 8 * 1024 * 1024
COMFYUI_SERVER = "http://comfyui.internal:8188"
N8N_SERVER = "http://n8n.internal:5678"
_HERE = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0"))

_TEXTS = re.compile(
    r"(?:.*_)?(?:text|prompt|positive|negative|string|caption|instruction|question|url)(?:_?\d+|_[glab])?", re.I
)
_IMAGES = frozenset(("image", "mask", "video", "audio"))
_WHOLE = re.compile(
    r"(?:.*_)?(?:seed|steps?|width|height|size|count|length|frames?|index|amount|end_at_step|start_at_step)", re.I
)
_KEY = re.compile(r"(?:.*_)?(?:api_?key|token|secret|password|credentials?)", re.I)
_EXPRESSION = re.compile(
    r"""\$(?:json|\(\s*(?:'[^'\n]{1,200}'|"[^"\n]{1,200}")\s*\)\.(?:item|first\(\)|last\(\))\.json|node\[(?:'[^'\n]{1,200}'|"[^"\n]{1,200}")\]\.json)"""
    r"""(?:\.|\[\s*['"])(body|query|params)(?:['"]\s*\])?(?:\?)?(?:\.([A-Za-z_$][\w$]{0,99})|\[\s*(?:'([^'\n]{1,100})'|"([^"\n]{1,100})")\s*\])"""
)
"""``$json.body.x``, ``$json["body"]["x"]``, ``$('Webhook').item.json.query.x``, ``$node["Webhook"].json.body.x``."""
_WEBHOOK = "n8n-nodes-base.webhook"
_FORM = "n8n-nodes-base.formTrigger"
_WITH_BODY = ("POST", "PUT", "PATCH")
_WEBHOOK_METHODS = ("GET", "DELETE", "HEAD", *_WITH_BODY)
_SCHEMES = {"basicAuth": "Basic", "headerAuth": "Bearer", "jwtAuth": "Bearer"}
_FIELD_TYPES: dict[str, Json] = {
    "number": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "email": {"type": "string", "format": "email"},
}


class _Parameters:
    """The parameters of a tool under names of their own, each with the place that its value goes to."""

    def __init__(self) -> None:
        self.properties: dict[str, Json] = {}
        self.required: list[Json] = []
        self.places: dict[str, tuple[str, str]] = {}
        self._folded: set[str] = set()

    @property
    def is_full(self) -> bool:
        return len(self.properties) >= MAX_PARAMETERS

    def add(self, wanted: str, schema: dict[str, Json], place: tuple[str, str], *, required: bool = False) -> str:
        """Adds one; its name is the wanted one where that can be a parameter's and is not taken, whatever its case."""
        base = re.sub(r"[^\w]+", "_", wanted).strip("_")[:64] or "value"
        name, number = base, 2
        while name.casefold() in self._folded:
            name, number = f"{base}_{number}", number + 1
        self._folded.add(name.casefold())
        self.properties[name] = schema
        self.places[name] = place
        if required:
            self.required.append(name)
        return name

    def schema(self) -> dict[str, Json]:
        """The schema of all."""
        schema: dict[str, Json] = {"type": "object", "properties": self.properties, "additionalProperties": False}
        return {**schema, "required": self.required} if self.required else schema


class _Bounded:
    """Tells what is lost until there is too much of it."""

    def __init__(self, notes: list[Note], path: str = "") -> None:
        self._notes = notes
        self._path = path
        self._left = 0

    def __call__(self, key: str, message: str, code: str = "changed") -> None:
        if len(self._notes) < MAX_NOTES:
            below = key if not key or key.startswith("/") else f"/{escape_pointer(key)}"
            self._notes.append(Note(self._path + below, message, code))
        else:
            self._left += 1

    def close(self) -> None:
        """Says how many were not told one by one."""
        if self._left:
            self._notes.append(Note(self._path, f"{self._left} more of these places are not named here", "more"))


# ComfyUI


def import_comfyui(data: Json, name: str, base_url: str = "") -> Imported:
    """A workflow in API form as a tool. ``name`` is the tool's, ``base_url`` where ComfyUI is. Never raises."""
    wrapped = data.get("prompt") if is_object(data) else None
    graph, above = (wrapped, "/prompt") if is_object(wrapped) else (data, "")
    why_not = _no_graph(graph)
    if why_not or not is_object(graph):
        return Imported(why_not=why_not)
    server, why_not = _server(base_url or COMFYUI_SERVER)
    if why_not:
        return Imported(why_not=why_not)
    notes: list[Note] = []
    say = _Bounded(notes, above)
    nodes = {key: node for key, node in graph.items() if is_object(node)}
    parameters, secrets = _Parameters(), dict[str, list[tuple[str, str]]]()
    kept = _literals(nodes, parameters, secrets, say)
    bare = fit_name(name)
    classes = sorted({excerpt(text_of(node.get("class_type"))) for node in nodes.values()})
    what = f"Runs the ComfyUI workflow {bare} ({len(nodes)} nodes: {', '.join(classes[:8])}{', …' if len(classes) > 8 else ''})"
    manifest = _manifest(bare, what, parameters, server, list(secrets), say)
    manifest["output"] = {
        "type": "object",
        "properties": {
            "promptId": {"type": "string"},
            "outputs": {"type": "object", "description": "What each node put out, by the node's id."},
            "files": {"type": "array", "items": {"type": "string"}, "description": "Where the files can be fetched."},
        },
        "required": ["promptId", "outputs", "files"],
    }
    say("", "files stay with ComfyUI: the result has their addresses", "files-by-address")
    say.close()
    script = comfyui_script(server, kept, parameters.places, secrets)
    return _made(bare, manifest, notes, script)


def _no_graph(graph: Json) -> str:
    """Why a value is no workflow in API form that can be run."""
    if is_object(graph) and is_list(graph.get("nodes")) and is_list(graph.get("links")):
        return (
            "it is a workflow as ComfyUI's editor saves it: export it once more in API form (Workflow > Export (API))"
        )
    shown = "a ComfyUI workflow in API form is an object of nodes, each with class_type and inputs"
    if not is_object(graph) or not graph:
        return shown
    if len(graph) > MAX_NODES:
        return f"it has {len(graph):,} nodes: at most {MAX_NODES:,} are converted"
    for key, node in graph.items():
        if not is_object(node) or not text_of(node.get("class_type")) or not is_object(node.get("inputs", {})):
            return f"{shown}: {excerpt(key)} is none"
    if _is_deep(graph):
        return f"a value in it is nested deeper than {MAX_DEPTH} levels"
    circle = _circle(graph)
    return f"the nodes {circle} lead back to themselves, and ComfyUI runs no such workflow" if circle else ""


def _is_deep(value: Json) -> bool:
    waiting = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > MAX_DEPTH:
            return True
        inner = part.values() if is_object(part) else part if is_list(part) else ()
        waiting += [(each, depth + 1) for each in inner if is_object(each) or is_list(each)]
    return False


def _linked(value: Json) -> str | None:
    """The node that an input comes from; None for a literal."""
    if is_list(value) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int):
        return value[0]
    return None


def _circle(graph: dict[str, Json]) -> str:
    """Some nodes that no order can begin with, or nothing."""
    wants: dict[str, set[str]] = {}
    feeds: dict[str, list[str]] = {key: [] for key in graph}
    for key, node in graph.items():
        inputs = node.get("inputs") if is_object(node) else None
        sources = {_linked(value) for value in inputs.values()} if is_object(inputs) else set[str | None]()
        wants[key] = {source for source in sources if source is not None and source in graph}
        for source in wants[key]:
            feeds[source].append(key)
    ready = [key for key, sources in wants.items() if not sources]
    while ready:
        done = ready.pop()
        for key in feeds[done]:
            wants[key].discard(done)
            if not wants[key]:
                ready.append(key)
    left = [key for key, sources in wants.items() if sources]
    return ", ".join(excerpt(key) for key in left[:5]) + (", …" if len(left) > 5 else "")


def _literals(
    nodes: dict[str, dict[str, Json]], parameters: _Parameters, secrets: dict[str, list[tuple[str, str]]], say: Say
) -> dict[str, Json]:
    """Fills the parameters from the nodes' literals; the graph without its keys, which become secrets."""
    kept: dict[str, Json] = {}
    counted = Counter(key for node in nodes.values() for key in _inputs(node))
    for node_id, node in nodes.items():
        inputs = _inputs(node)
        kept[node_id] = {"class_type": node["class_type"], "inputs": inputs}
        title = _title(node)
        for key, value in inputs.items():
            place = f"/{escape_pointer(node_id)}/inputs/{escape_pointer(key)}"
            source = _linked(value)
            if source is not None:
                if source not in nodes:
                    say(place, f"it comes from the node {excerpt(source)}, which is not there", "link-unresolved")
                continue
            if isinstance(value, str) and value and _KEY.fullmatch(key):
                secret = secret_name(key, secrets)
                secrets[secret] = [(node_id, key)]
                inputs[key] = ""
                say(
                    place,
                    f"the key that stands here is not taken over: the secret {secret} takes its place",
                    "credentials",
                )
                continue
            schema = _literal(key, value)
            if schema is None or parameters.is_full:
                why = "" if schema is None else f" (more than {MAX_PARAMETERS} parameters)"
                say(place, f"stays {excerpt(value)}: no parameter{why}", "value-kept")
                continue
            about = f"Input '{key}' of the node '{title}'"
            wanted = f"{title}_{key}" if counted[key] > 1 else key
            name = parameters.add(wanted, {**schema, "description": f"{about}."}, (node_id, key))
            if name != key:
                say(place, f"'{key}' of '{title}' is the parameter '{name}'", "name-changed")
            if schema.get("type") == "number" and isinstance(value, int):
                say(place, f"{value} may be a whole number or not: the parameter takes any number", "type-assumed")
    return kept


def _inputs(node: dict[str, Json]) -> dict[str, Json]:
    inputs = node.get("inputs")
    return inputs if is_object(inputs) else {}


def _title(node: dict[str, Json]) -> str:
    meta = node.get("_meta")
    title = text_of(meta.get("title")) if is_object(meta) else ""
    return " ".join((title or text_of(node["class_type"])).split())[:60]


def _literal(key: str, value: Json) -> dict[str, Json] | None:
    """The schema of an input that a caller may want to change, with its value as default; None for one that stays."""
    if isinstance(value, bool):
        return {"type": "boolean", "default": value}
    if isinstance(value, int):
        return {"type": "integer" if _WHOLE.fullmatch(key) else "number", "default": value}
    if isinstance(value, float):
        return {"type": "number", "default": value}
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return None
    return {"type": "string", "default": value} if _TEXTS.fullmatch(key) or key in _IMAGES else None


# n8n


def import_n8n(data: Json, name: str, base_url: str = "") -> Imported:
    """A workflow that a webhook or a form starts, as a tool. ``base_url`` is where n8n is. Never raises."""
    nodes = data.get("nodes") if is_object(data) else None
    if not is_object(data) or not is_list(nodes) or not is_object(data.get("connections")):
        return Imported(why_not="an n8n workflow is an object with nodes and connections")
    if len(nodes) > MAX_NODES:
        return Imported(why_not=f"it has {len(nodes):,} nodes: at most {MAX_NODES:,} are read")
    server, why_not = _server(base_url or N8N_SERVER)
    if why_not:
        return Imported(why_not=why_not)
    notes: list[Note] = []
    say = _Bounded(notes)
    triggers = [
        (f"/nodes/{at}", node)
        for at, node in enumerate(nodes)
        if is_object(node) and node.get("type") in (_WEBHOOK, _FORM) and node.get("disabled") is not True
    ]
    if not triggers:
        begins = {text_of(node.get("type")) for node in nodes if is_object(node)}
        named = ", ".join(sorted(kind for kind in begins if "rigger" in kind)[:5])
        told = f": it begins with {named}" if named else ""
        return Imported(why_not=f"it has no webhook and no form that could be called over HTTP{told}")
    for place, node in triggers[1:]:
        say(place, f"'{text_of(node.get('name'))}' starts it too and is left out: one tool is made", "trigger-dropped")
    place, trigger = triggers[0]
    parameters = trigger.get("parameters")
    settings: dict[str, Json] = parameters if is_object(parameters) else {}
    title = text_of(data.get("name")).strip() or name
    call = _Trigger(trigger, settings, f"{place}/parameters", say)
    is_form = trigger.get("type") == _FORM
    why_not = call.form() if is_form else call.webhook(nodes)
    if why_not:
        return Imported(why_not=why_not)
    if data.get("active") is not True:
        say("active", "n8n answers at this address only while the workflow is active", "inactive")
    if not any(is_list(ways) and any(ways) for ways in _ways(data["connections"], text_of(trigger.get("name")))):
        say(place, "nothing follows this node", "link-unresolved")
    bare = fit_name(title)
    described = text_of(settings.get("formDescription")) if is_form else ""
    what = described.strip()[:2_000] or f"Runs the n8n workflow {bare}"
    secrets = [call.authorization[1]] if call.authorization else []
    manifest = _manifest(bare, what, call.parameters, server, secrets, say, described=bool(described.strip()))
    say.close()
    told = {
        "path": call.path,
        "method": call.method,
        "form": is_form,
        "places": call.parameters.places,
        "authorization": call.authorization,
    }
    return _made(bare, manifest, notes, n8n_script(server, told))


def _ways(connections: Json, name: str) -> Iterator[Json]:
    ways = connections.get(name) if is_object(connections) else None
    yield from (ways.values() if is_object(ways) else ())


class _Trigger:
    """What an n8n trigger asks of who calls it."""

    def __init__(self, node: dict[str, Json], settings: dict[str, Json], place: str, say: Say) -> None:
        self.parameters = _Parameters()
        self.method = "POST"
        self.path = ""
        self.authorization: tuple[str, str] | None = None
        self._node = node
        self._settings = settings
        self._place = place
        self._say = say

    def webhook(self, nodes: list[Json]) -> str:
        """A webhook: its parameters are what the nodes' expressions take of the request."""
        method = self._settings.get("httpMethod", "GET")
        if is_list(method):
            self._say(f"{self._place}/httpMethod", "of several methods the first is used", "method-dropped")
            method = method[0] if method else "GET"
        self.method = method if isinstance(method, str) and method in _WEBHOOK_METHODS else "GET"
        raw = text_of(self._settings.get("path")).strip("/")
        if not raw or raw.startswith("="):
            return "its webhook has no fixed path"
        dynamic: list[str] = []
        parts: list[str] = []
        for part in raw.split("/"):
            if part.startswith(":") and len(part) > 1:
                dynamic.append(part[1:])
                parts.append("{" + part[1:] + "}")
            else:
                parts.append(_quoted(part))
        # n8n puts the id of the webhook in front of a path with parts that change
        front = [_quoted(text_of(self._node.get("webhookId")))] if dynamic else []
        self.path = "/" + "/".join(["webhook", *front, *parts])
        for key in dict.fromkeys(dynamic):
            self.parameters.add(
                key,
                {"type": "string", "minLength": 1, "description": f"Part '{key}' of the path."},
                ("path", key),
                required=True,
            )
        self._taken(nodes, set(dynamic))
        self._authorized()
        if self._settings.get("responseMode", "onReceived") == "onReceived":
            where = f"{self._place}/responseMode"
            self._say(where, "n8n answers at once: the result is only that the workflow was started", "result-lost")
        return ""

    def _taken(self, nodes: list[Json], dynamic: set[str]) -> None:
        """The fields of the request that expressions name; their types are not said anywhere."""
        known: set[tuple[str, str]] = set()
        for where, text in _expressions(nodes):
            for match in _EXPRESSION.finditer(text):
                place, key = match[1], next(part for part in match.groups()[1:] if part)
                if place == "params" or (place, key) in known:
                    if place == "params" and key not in dynamic:
                        self._say(where, f"the path has no part '{key}'", "link-unresolved")
                    continue
                known.add((place, key))
                if place == "body" and self.method not in _WITH_BODY:
                    self._say(where, f"the body's '{key}' is left out: {self.method} sends none", "parameters-dropped")
                    continue
                if self.parameters.is_full:
                    self._say(
                        where, f"'{key}' is left out: more than {MAX_PARAMETERS} parameters", "parameters-dropped"
                    )
                    continue
                schema: dict[str, Json] = {"type": "string"} if place == "query" else {}
                about = f"'{key}' of the request's {place}, which the workflow reads."
                name = self.parameters.add(key, {**schema, "description": about}, (place, key))
                self._say(where, f"the parameter '{name}' is inferred from an expression: check its type", "inferred")

    def form(self) -> str:
        """A form: its fields in their order, under the names by which its page sends them."""
        options = self._settings.get("options")
        named = text_of(self._settings.get("path")) or (text_of(options.get("path")) if is_object(options) else "")
        path = named.strip("/") or text_of(self._node.get("webhookId"))
        if not path or path.startswith("="):
            return "its form has no fixed path"
        self.path = "/".join(["/form", *map(_quoted, path.split("/"))])
        form_fields = self._settings.get("formFields")
        fields = form_fields.get("values") if is_object(form_fields) else None
        for at, field in enumerate(fields if is_list(fields) else []):
            place = f"{self._place}/formFields/values/{at}"
            if not is_object(field) or field.get("fieldType") == "html":
                continue
            label = (text_of(field.get("fieldLabel")) or text_of(field.get("fieldName"))).strip()[:200]
            kind = text_of(field.get("fieldType")) or "text"
            if kind == "file" or self.parameters.is_full:
                why = "files are not sent" if kind == "file" else f"more than {MAX_PARAMETERS} fields"
                needed = ", and the form asks for it" if field.get("requiredField") is True else ""
                self._say(place, f"'{label}' is left out: {why}{needed}", "parameters-dropped")
                continue
            schema = {**_field(field, kind), "description": label or f"Field {at + 1} of the form."}
            required = field.get("requiredField") is True
            name = self.parameters.add(label or f"field_{at}", schema, ("form", f"field-{at}"), required=required)
            if name != label:
                self._say(place, f"'{label}' is the parameter '{name}'", "name-changed")
        self._authorized()
        return ""

    def _authorized(self) -> None:
        kind = text_of(self._settings.get("authentication")) or "none"
        if kind == "none":
            return
        scheme = _SCHEMES.get(kind)
        where = f"{self._place}/authentication"
        if scheme is None:
            self._say(where, f"the authentication {excerpt(kind)} is not known to the script", "credentials")
            return
        self.authorization = (scheme if kind != "headerAuth" else "", "N8N_AUTH")
        shown = {"Basic": "user:password", "Bearer": "a token"}[scheme]
        if kind == "headerAuth":
            shown = "the whole value; the header's name stands in n8n alone, and 'Authorization' is assumed"
        self._say(where, f"the secret {self.authorization[1]} is sent: {shown}", "credentials")


def _field(field: dict[str, Json], kind: str) -> dict[str, Json]:
    """The schema of a form's field."""
    listed = field.get("fieldOptions")
    values = listed.get("values") if is_object(listed) else None
    options: list[Json] = [
        item["option"]
        for item in (values if is_list(values) else [])
        if is_object(item) and isinstance(item.get("option"), str)
    ]
    several = kind == "checkbox" or field.get("multiselect") is True
    if kind in ("dropdown", "radio", "checkbox") and options:
        choice: dict[str, Json] = {"type": "string", "enum": list[Json](dict.fromkeys(map(str, options)))}
        return {"type": "array", "items": choice} if several else choice
    known = _FIELD_TYPES.get(kind, {"type": "string"})
    return dict(known) if is_object(known) else {}


def _expressions(nodes: list[Json]) -> Iterator[tuple[str, str]]:
    """The texts with expressions in the parameters of nodes, each with its place, in the order of the file."""
    waiting: list[tuple[str, Json, int]] = [
        (f"/nodes/{at}/parameters", node.get("parameters"), 0)
        for at, node in reversed(list(enumerate(nodes)))
        if is_object(node)
    ]
    while waiting:
        place, value, depth = waiting.pop()
        if isinstance(value, str):
            if value.startswith("=") or "$json" in value or "$(" in value:
                yield place, value
        elif depth < MAX_DEPTH and (is_object(value) or is_list(value)):
            parts = value.items() if is_object(value) else enumerate(value)
            waiting += reversed([(f"{place}/{escape_pointer(str(key))}", part, depth + 1) for key, part in parts])


def _quoted(part: str) -> str:
    return quote(part.encode("utf-8", "replace"), safe="")


# Both


def _server(url: str) -> tuple[str, str]:
    """The address without a slash at its end, or why none can be called there."""
    host = host_of(url)
    parts = urlsplit(url) if host else None
    plain = parts is not None and url.isprintable() and not (parts.username or parts.query or parts.fragment)
    if parts is None or not plain or parts.scheme not in ("http", "https") or host_pattern_fault(host):
        return "", f"{excerpt(url)} is no whole address: give --base-url http://HOST:PORT"
    return url.rstrip("/"), ""


def _manifest(
    bare: str,
    what: str,
    parameters: _Parameters,
    server: str,
    secrets: list[str],
    say: Say,
    *,
    described: bool = False,
) -> dict[str, Json]:
    host = host_of(server)
    manifest = start(bare, bare, what if described else to_be_said(what), say)
    if not described:
        say("", "there is no description: write one, models choose tools by it", "description-missing")
    manifest["handler"] = {
        "type": "external-script",
        "scriptPath": _script_name(bare),
        "language": "python",
        "entryPoint": "run",
    }
    manifest["parameters"] = parameters.schema()
    context: dict[str, Json] = {"networkAccess": {"allowHosts": [host]}}
    if secrets:
        context["secrets"] = list[Json](secrets)
        say("", next_step(secrets), "credentials")
    manifest["securityContext"] = context
    if urlsplit(server).hostname in _HERE:
        what = f"inside the sandbox {host} is the sandbox itself: name the engine otherwise (policy.pin) and give --base-url"
        say("", what, "server-unreachable")
    else:
        what = f"the engine is expected at {server}: open {host} in policy.allowHosts, or give --base-url (docs/network.md)"
        say("", what, "server-assumed")
    return manifest


def _script_name(bare: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", bare).strip("_").lower()
    return f"{plain or 'workflow'}_engine.py"


def _made(bare: str, manifest: dict[str, Json], notes: list[Note], script: str) -> Imported:
    if len(script) > MAX_SCRIPT:
        return Imported(why_not=f"it is too large: its script would have more than {MAX_SCRIPT:,} bytes")
    return Imported((ImportedTool(bare, manifest, tuple(notes)),), scripts={_script_name(bare): script})
