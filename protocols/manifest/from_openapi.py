"""The operations of an OpenAPI 3.0 or 3.1 document as manifests with one script that calls them (D88).

Each operation becomes a tool whose handler is a function of the generated script, whose parameters are those of the operation
(``x-in`` says where each goes, ``body`` is the request's), and which asks for the server's host. Must not know files.
"""

from __future__ import annotations

import keyword
import re
from typing import Any
from urllib.parse import urlsplit

from tamis.protocols.manifest.foreign_fields import Say, next_step, secret_name
from tamis.protocols.manifest.imported import (
    BODY,
    Imported,
    ImportedTool,
    Note,
    fit_name,
    fit_version,
    spaced,
    start,
    teller,
)
from tamis.protocols.manifest.openapi_parts import SchemaReader, host_of, is_form, is_json, resolved, without_parameters
from tamis.protocols.manifest.openapi_script import script_text
from tamis.protocols.manifest.security import host_pattern_fault
from tamis.protocols.model import Json, escape_pointer
from tamis.protocols.schema.words import is_list, is_object

MAX_OPERATIONS = 500
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_SAFE_TO_REPEAT = frozenset(("get", "put", "delete", "options", "head"))
_STYLES = frozenset(("form", "simple", "deepObject", "spaceDelimited", "pipeDelimited"))
_HERE = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0"))
_PLACES = ("path", "query", "header", "cookie")


def import_openapi(data: Json, name: str, base_url: str = "") -> Imported:
    """The operations as tools. ``name`` is what the script is called, ``base_url`` goes over the document's servers. Never raises."""
    if not is_object(data):
        return Imported(why_not="it is no object")
    version = data.get("openapi")
    if not isinstance(version, str) or not re.match(r"3\.[01](\.|$)", version):
        spec_name = (
            f"OpenAPI {version}"
            if version
            else f"Swagger {data['swagger']}"
            if "swagger" in data
            else "no OpenAPI document"
        )
        return Imported(why_not=f"it is {spec_name}: versions 3.0 and 3.1 are read (converters from 2.0 exist)")
    paths = data.get("paths")
    if not is_object(paths) or not paths:
        return Imported(why_not="it has no paths")
    return _Document(data, name, base_url).read(paths)


class _Document:
    def __init__(self, data: dict[str, Json], name: str, base_url: str) -> None:
        self._data = data
        self._base_url = base_url.rstrip("/")
        bare = re.sub(r"[^A-Za-z0-9_]+", "_", fit_name(name)).strip("_").lower() or "api"
        self._script = f"{bare}_http.py"
        self._bare = bare
        info = data.get("info")
        self._info: dict[str, Json] = info if is_object(info) else {}
        self._notes: list[Note] = []
        self._tools: list[ImportedTool] = []
        self._operations: dict[str, dict[str, Any]] = {}
        self._schemes: dict[str, tuple[str, str, str]] = {}
        """Kind, place and secret of each scheme."""
        self._names: set[str] = set()
        version = self._info.get("version")
        say = teller(self._notes, "/info")
        self._version = fit_version(version.strip(), say) if isinstance(version, str) and version.strip() else ""

    def read(self, paths: dict[str, Json]) -> Imported:
        say = teller(self._notes)
        left = 0
        for path, path_item in paths.items():
            where = f"/paths/{escape_pointer(path)}"
            item = resolved(self._data, path_item)
            if item is None:
                say(where, "the reference leads nowhere: its operations are left out", "tool-dropped")
                continue
            for method in METHODS:
                operation = item.get(method)
                if not is_object(operation):
                    continue
                if len(self._tools) >= MAX_OPERATIONS:
                    left += 1
                    continue
                notes: list[Note] = []
                why = self._operation(path, method, item, operation, f"{where}/{method}", notes)
                if why:
                    self._notes += notes
                    say(f"{where}/{method}", f"left out: {why}", "tool-dropped")
        if left:
            say("/paths", f"only the first {MAX_OPERATIONS} operations were converted, {left} were not", "tool-dropped")
        for key in ("webhooks",):
            if self._data.get(key):
                say(key, f"'{key}' are calls that the service makes: they are left out", "field-dropped")
        if self._schemes:
            say(
                "/components/securitySchemes",
                next_step(secret for _, _, secret in self._schemes.values()),
                "credentials",
            )
        why_not = "" if self._tools else "none of its operations can be called"
        title = self._info.get("title")
        shown = title if isinstance(title, str) and title.strip() else self._script
        text = script_text(shown, self._schemes, self._operations)
        return Imported(tuple(self._tools), tuple(self._notes), why_not, {self._script: text} if self._tools else {})

    def _operation(
        self,
        path: str,
        method: str,
        item: dict[str, Json],
        operation: dict[str, Json],
        where: str,
        notes: list[Note],
    ) -> str:
        """One operation as a tool; why it can be none."""
        say = teller(notes, where)
        server = self._server(item, operation, say)
        if not server:
            return "no server is named with a whole address: give --base-url"
        named = operation.get("operationId")
        wanted = named if isinstance(named, str) and named.strip() else f"{method} {path}"
        bare = self._distinct(fit_name(re.sub(r"[{}]", "", wanted)))
        if bare != wanted:
            say("operationId", f"'{wanted}' became '{bare}'", "name-changed")
        request = SchemaReader(self._data, "request", say)
        properties, required, wire = self._parameters(item, operation, request, say, where)
        body, fields = self._body(operation, request, properties, required, say, where)
        if re.search(r"[{}]", without_parameters(path, wire)):
            return "a part of its path is no declared parameter"
        function = self._function(bare)
        self._operations[function] = {
            "method": method.upper(),
            "server": server,
            "path": path,
            "parameters": wire,
            "body": body,
            "fields": fields,
            "security": self._security(operation, say),
        }
        manifest = self._manifest(bare, method, operation, say)
        manifest["handler"] = {
            "type": "external-script",
            "scriptPath": self._script,
            "language": "python",
            "entryPoint": function,
        }
        manifest["parameters"] = _closed(properties, required, request)
        output = self._output(operation, say, where)
        if output is not None:
            manifest["output"] = output
        host = host_of(server)
        context: dict[str, Json] = {"networkAccess": {"allowHosts": [host]}}
        secrets = self._secrets(self._operations[function]["security"])
        if secrets:
            context["secrets"] = secrets
        manifest["securityContext"] = context
        if urlsplit(server).hostname in _HERE:
            what = f"inside the sandbox {host} is the sandbox itself: name the service otherwise (policy.pin), then change SERVER"
            say("/servers", what, "server-unreachable")
        execution: dict[str, Json] = {}
        if method in _SAFE_TO_REPEAT:
            execution["idempotent"] = True
        if method == "delete":
            execution["requireConfirmation"] = True
        if execution:
            manifest["execution"] = execution
        self._tools.append(ImportedTool(bare, manifest, tuple(notes)))
        return ""

    # Names and words

    def _distinct(self, bare: str) -> str:
        name, number = bare, 2
        while name.lower() in self._names:
            name, number = f"{bare}-{number}", number + 1
        self._names.add(name.lower())
        return name

    def _function(self, bare: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare)).strip("_").lower()
        if not base or base[0].isdigit() or keyword.iskeyword(base) or base in _TAKEN:
            base = f"do_{base}".rstrip("_")
        name, number = base, 2
        while name in self._operations:
            name, number = f"{base}_{number}", number + 1
        return name

    def _manifest(self, bare: str, method: str, operation: dict[str, Json], say: Say) -> dict[str, Json]:
        summary, about = (operation.get(key) for key in ("summary", "description"))
        parts = [text.strip() for text in (summary, about) if isinstance(text, str) and text.strip()]
        text = ". ".join(dict.fromkeys(part.rstrip(".") for part in parts))
        title = parts[0] if parts and isinstance(summary, str) and len(parts[0]) <= 80 else spaced(bare)
        manifest = start(bare, title, f"{text}." if text else None, say)
        if self._version:
            manifest["version"] = self._version
        tags = operation.get("tags")
        if is_list(tags) and (texts := [tag for tag in tags if isinstance(tag, str) and tag.strip()]):
            manifest["tags"] = list[Json](dict.fromkeys(texts))
        if operation.get("deprecated") is True:
            manifest["x-deprecated"] = True
        if operation.get("callbacks"):
            say("callbacks", "calls that the service makes are left out", "field-dropped")
        return manifest

    # What goes in

    def _server(self, item: dict[str, Json], operation: dict[str, Json], say: Say) -> str:
        if self._base_url:
            return self._base_url
        for holder in (operation, item, self._data):
            listed = holder.get("servers")
            servers = [item for item in listed if is_object(item)] if is_list(listed) else []
            if not servers:
                continue
            if len(servers) > 1:
                say("/servers", "the first of several servers is called: --base-url takes another", "assumed")
            url = str(servers[0].get("url", ""))
            variables = servers[0].get("variables")
            for name, variable in variables.items() if is_object(variables) else ():
                default = variable.get("default") if is_object(variable) else ""
                url = url.replace(f"{{{name}}}", str(default))
            if (
                re.match(r"https?://[^/{}\s]+", url)
                and not re.search(r"[{}\s]", url)
                and host_pattern_fault(host_of(url)) is None
            ):
                return url.rstrip("/")
        return ""

    def _parameters(
        self, item: dict[str, Json], operation: dict[str, Json], reader: SchemaReader, say: Say, where: str
    ) -> tuple[dict[str, Json], list[str], dict[str, Any]]:
        """The properties, those that are required, and how each goes over the wire."""
        declared: dict[tuple[str, str], tuple[dict[str, Json], str]] = {}
        for holder, base in ((item, where.rpartition("/")[0]), (operation, where)):
            listed = holder.get("parameters")
            for i, entry in enumerate(listed if is_list(listed) else []):
                place = f"{base}/parameters/{i}"
                parameter = resolved(self._data, entry)
                name, kind = (parameter.get("name"), parameter.get("in")) if parameter is not None else (None, None)
                if parameter is None or not isinstance(name, str) or not name or kind not in _PLACES:
                    say(
                        place,
                        "the parameter has no name or place, or its reference leads nowhere",
                        "parameters-dropped",
                    )
                elif kind == "header" and name.lower() in ("accept", "content-type", "authorization"):
                    say(place, f"the header '{name}' is made by the script itself", "parameters-dropped")
                else:
                    declared[str(kind), name] = (parameter, place)
        properties: dict[str, Json] = {}
        required: list[str] = []
        wire: dict[str, Any] = {}
        for (kind, name), (parameter, place) in declared.items():
            key = name if name not in properties and name != "body" else f"{kind}_{name}"
            style = str(parameter.get("style", "form" if kind in ("query", "cookie") else "simple"))
            if parameter.get("allowReserved") is True:
                say(
                    f"{place}/allowReserved",
                    "signs that have a meaning in an address are escaped all the same",
                    "changed",
                )
            if style not in _STYLES:
                say(f"{place}/style", f"the style '{style}' is not known: the value is sent plainly", "changed")
            explode = parameter.get("explode")
            properties[key] = self._property(parameter, kind, reader, say, place)
            if kind == "path" or parameter.get("required") is True:
                required.append(key)
            wire[key] = [name, kind, style, explode if isinstance(explode, bool) else style == "form"]
        return properties, required, wire

    def _property(self, parameter: dict[str, Json], kind: str, reader: SchemaReader, say: Say, place: str) -> Json:
        schema = parameter.get("schema")
        content = parameter.get("content")
        if schema is None and is_object(content):
            media = next((item for item in content.values() if is_object(item)), None)
            schema = media.get("schema") if media is not None else None
            say(f"{place}/content", "the value is sent as JSON text", "changed")
        converted = reader.schema({} if schema is None else schema, f"{place}/schema")
        property_: dict[str, Json] = dict(converted) if is_object(converted) else {}
        about = parameter.get("description")
        if isinstance(about, str) and about.strip():
            property_["description"] = about.strip()
        if "example" in parameter and "examples" not in property_:
            property_["examples"] = [parameter["example"]]
        if parameter.get("deprecated") is True:
            property_["deprecated"] = True
        property_["x-in"] = kind
        return property_

    def _body(
        self,
        operation: dict[str, Json],
        reader: SchemaReader,
        properties: dict[str, Json],
        required: list[str],
        say: Say,
        where: str,
    ) -> tuple[str, dict[str, Any]]:
        """The media type of the request's body, which becomes the parameter ``body``, and how the fields of a form are written;
        empty without one."""
        body = resolved(self._data, operation.get("requestBody"))
        if body is None:
            return "", {}
        place = f"{where}/requestBody"
        content = body.get("content")
        media_types = [*content] if is_object(content) else []
        chosen = next((type_ for type_ in media_types if is_json(type_)), None)
        chosen = chosen or next(
            (media_type for media_type in media_types if is_form(media_type) or media_type.startswith("text/")), None
        )
        if chosen is None or not is_object(content):
            shown = ", ".join(media_types) or "no type"
            asked = "; the service asks for one, so that the script has to be completed" if body.get("required") else ""
            text = f"a body of {shown} is left out: the script sends JSON, URL-encoded forms and text{asked}"
            say(place, text, "parameters-dropped")
            return "", {}
        if len(media_types) > 1:
            say(f"{place}/content", f"of {', '.join(media_types)} the body is sent as {chosen}", "assumed")
        media = content[chosen]
        schema = reader.schema(
            (media.get("schema") if is_object(media) else None) or {},
            f"{place}/content/{escape_pointer(chosen)}/schema",
        )
        body_schema: dict[str, Json] = dict(schema) if is_object(schema) else {}
        if not is_json(chosen) and "$ref" not in body_schema:
            body_schema.setdefault("type", "object" if is_form(chosen) else "string")
        about = body.get("description")
        if "description" not in body_schema or "$ref" in body_schema:
            body_schema["description"] = about if isinstance(about, str) and about.strip() else BODY
        body_schema["x-in"] = "body"
        properties["body"] = body_schema
        if body.get("required") is True:
            required.append("body")
        return chosen, self._fields(media, say, f"{place}/content/{escape_pointer(chosen)}") if is_form(chosen) else {}

    def _fields(self, media: Json, say: Say, place: str) -> dict[str, Any]:
        """How the fields of a form are written that are written otherwise than as a matter of course: style, and whether exploded."""
        encoding = media.get("encoding") if is_object(media) else None
        fields: dict[str, Any] = {}
        for name, how in encoding.items() if is_object(encoding) else ():
            if not is_object(how):
                continue
            style, explode = str(how.get("style", "form")), how.get("explode")
            if style not in _STYLES:
                say(
                    f"{place}/encoding/{escape_pointer(name)}",
                    f"the style '{style}' is not known: it is sent plainly",
                    "changed",
                )
            if is_json(str(how.get("contentType", ""))):
                style = "json"
            fields[name] = [style, explode if isinstance(explode, bool) else style == "form"]
        return fields

    # What comes out, and who may ask

    def _output(self, operation: dict[str, Json], say: Say, where: str) -> Json:
        responses = operation.get("responses")
        if not is_object(responses):
            return None
        code = next(
            (status for status in ("200", "201", "202", "203", "2XX", "2xx", "default") if status in responses), None
        )
        answer = resolved(self._data, responses[code]) if code is not None else None
        content = answer.get("content") if answer is not None else None
        if not is_object(content) or len(content) == 0:
            return None
        media = next((item for item in content if is_json(item)), None)
        media_object = content[media] if media is not None else None
        if media is None or not is_object(media_object) or "schema" not in media_object:
            return None
        reader = SchemaReader(self._data, "response", say)
        place = f"{where}/responses/{code}/content/{escape_pointer(media)}/schema"
        schema = reader.schema(media_object["schema"], place)
        if not is_object(schema):
            return schema
        return {**schema, "$defs": reader.defs} if reader.defs else schema

    def _security(self, operation: dict[str, Json], say: Say) -> list[list[str]]:
        wanted = operation.get("security", self._data.get("security"))
        alternatives: list[list[str]] = []
        for item in wanted if is_list(wanted) else []:
            names = [name for name in item if self._scheme(name, say)] if is_object(item) else []
            if is_object(item) and len(names) == len(item):
                alternatives.append(names)
        return alternatives

    def _secrets(self, alternatives: list[list[str]]) -> list[Json]:
        """The secrets of an operation: those of its first way to authorize, none where it can be called without."""
        if not alternatives or [] in alternatives:
            return []
        return list[Json](dict.fromkeys(self._schemes[name][2] for name in alternatives[0]))

    def _secret(self, scheme: str) -> str:
        known = self._schemes.get(scheme)
        return known[2] if known is not None else secret_name(f"{self._bare}_{scheme}", self._taken())

    def _taken(self) -> set[str]:
        return {secret for _, _, secret in self._schemes.values()}

    def _scheme(self, name: str, say: Say) -> bool:
        components = self._data.get("components")
        schemes = components.get("securitySchemes") if is_object(components) else None
        scheme = resolved(self._data, schemes.get(name)) if is_object(schemes) else None
        kind, place, wire = (scheme.get(key) for key in ("type", "in", "name")) if scheme is not None else (None,) * 3
        if kind == "apiKey" and place in ("header", "query", "cookie") and isinstance(wire, str):
            self._schemes[name] = (str(place), wire, self._secret(name))
        elif kind == "http" and scheme is not None and str(scheme.get("scheme", "")).lower() == "basic":
            self._schemes[name] = ("basic", "", self._secret(name))
        elif kind == "http" and scheme is not None and str(scheme.get("scheme", "")).lower() == "bearer":
            self._schemes[name] = ("bearer", "", self._secret(name))
        elif kind in ("oauth2", "openIdConnect"):
            self._schemes[name] = ("bearer", "", self._secret(name))
            flows = scheme.get("flows") if scheme is not None else None
            named = f" ({', '.join(flows)})" if is_object(flows) and flows else ""
            what = "OAuth 2" if kind == "oauth2" else "OpenID Connect"
            text = f"'{name}' is {what}{named}: the script fetches and renews no token, and asks for no scopes; let the secret {self._secret(name)} hold one"
            say("security", text, "credentials")
        else:
            say("security", f"the scheme '{name}' is not known to the script", "credentials")
            return False
        return True


_TAKEN = frozenset(
    (
        "call",
        "secret",
        "os",
        "text_of",
        "joined",
        "pairs",
        "authorize",
        "encoded",
        "decoded",
        "base64",
        "json",
        "sys",
        "urllib",
    )
)


def _closed(properties: dict[str, Json], required: list[str], reader: SchemaReader) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "object", "properties": properties, "required": list[Json](required)}
    schema["additionalProperties"] = False
    return {**schema, "$defs": reader.defs} if reader.defs else schema
