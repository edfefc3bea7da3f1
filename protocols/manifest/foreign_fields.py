"""Fields that other projects' tool definitions share: types of other languages, rights, times, scripts; each as a manifest has it.

What has no counterpart is said, never dropped in silence. Rights stay requests: the operator's policy decides. Pure. Must not know
which format a definition had.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Protocol

from tamis.protocols.export.shape import map_parts
from tamis.protocols.manifest.security import host_pattern_fault, path_pattern_fault, variable_name_fault
from tamis.protocols.model import Json, escape_pointer
from tamis.protocols.schema.words import JSON_TYPES, is_list, is_object

# Secrets of definitions that are imported: under which names, and what their operator has to write for them. Pure.


# Words that hold such a word and name no secret: keywords, and how many tokens a model may write.
_NO_SECRET = re.compile(
    r"key[-_]?words?|(?:max|min|limit)[a-z_]*tokens|tokens[a-z_]*(?:max|min|per|limit|count)", re.IGNORECASE
)
_SECRET = re.compile(r"key|token|secret|passw|pwd|credential|auth|cookie|session|密钥|密码|令牌", re.IGNORECASE)


def secret_name(wanted: str, taken: Container[str]) -> str:
    """A name that a secret can have, made of any text, beside those that are taken."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", wanted)
    base = re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_").upper()[:100] or "API_KEY"
    if variable_name_fault(base):
        base = f"KEY_{base}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name


def is_secret_setting(name: str) -> bool:
    """Whether a setting of this name holds a secret, as far as names tell."""
    return _SECRET.search(_NO_SECRET.sub("", name)) is not None


def next_step(names: Iterable[str]) -> str:
    """What the operator has to write so that tools get these secrets."""
    known = list(dict.fromkeys(names))
    lines = ", ".join(f'{name} = {{ env = "{name}" }}' for name in known)
    granted = ", ".join(f'"{name}"' for name in known)
    return (
        f"keys come from your own configuration, never from a model: add {lines} to [secrets], and"
        f' "TOOL_ID" = [{granted}] to [policy.secrets] (docs/secrets.md)'
    )


MAX_DEPTH = 64
# Types as Python, TypeScript and prose call them: the JSON type, and what is lost by it.
_TYPES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("str", "char"), ("string", "")),
    **dict.fromkeys(("int", "long"), ("integer", "")),
    **dict.fromkeys(("float", "double", "decimal"), ("number", "")),
    "bool": ("boolean", ""),
    **dict.fromkeys(("dict", "map", "mapping", "json"), ("object", "")),
    "list": ("array", ""),
    "tuple": ("array", "how many items it has, and of which types, is open"),
    "set": ("array", "items may be there twice"),
    **dict.fromkeys(("none", "nonetype", "undefined"), ("null", "")),
    **dict.fromkeys(("any", "object | any", "unknown", "mixed"), ("", "any value is taken")),
}
RIGHTS = frozenset(
    (
        "fs_prefixes",
        "network_allow",
        "env_allow",
        "permissions",
        "timeout_ms",
        "timeoutMs",
        "timeoutSec",
        "timeout_seconds",
    )
)
"""Fields that ``rights_of`` reads."""
_SECONDS = ("timeoutSec", "timeout_seconds")
_WORD = re.compile(
    r"(?P<what>[a-z]+)(?:[:.](?P<how>read|write|rw|readwrite|connect|fetch|get))?[:=](?P<where>[^\s]+)", re.I
)
_FILES = frozenset(("fs", "file", "files", "filesystem", "path", "paths", "read", "write", "disk"))
_NETWORK = frozenset(("net", "network", "http", "https", "host", "hosts", "url"))
_READ_KEYS = ("read", "fs_read", "allow_read", "allowRead", "file_read")
_WRITE_KEYS = ("write", "fs_write", "allow_write", "allowWrite", "file_write")
_BOTH_KEYS = ("fs_prefixes", "fs", "files", "filesystem", "paths")
_HOST_KEYS = ("network_allow", "hosts", "allow_hosts", "allowHosts", "network", "net", "domains")


class Say(Protocol):
    """Takes a key of the original, or a pointer into it, a sentence about it, and the kind of the loss."""

    def __call__(self, key: str, message: str, code: str = "changed") -> None:
        """Takes one note."""
        ...


def json_types(schema: Json, say: Say, path: str, depth: int = 0) -> Json:
    """A schema whose types are JSON's; what a type of another language said beyond that is a loss."""
    if not is_object(schema) or depth > MAX_DEPTH:
        return schema
    node: dict[str, Json] = map_parts(
        schema,
        lambda part, names: json_types(
            part, say, "/".join((path, *(escape_pointer(str(n)) for n in names))), depth + 1
        ),
    )
    declared = node.get("type")
    if isinstance(declared, str) and declared not in JSON_TYPES:
        kind = json_type(declared, say, f"{path}/type")
        node.pop("type")
        if kind:
            node = {"type": kind, **node}
    elif is_list(declared) and any(isinstance(name, str) and name not in JSON_TYPES for name in declared):
        kinds = [str(name) if name in JSON_TYPES else json_type(str(name), say, f"{path}/type") for name in declared]
        node.pop("type")
        # One of them that takes anything takes the others too.
        every: list[Json] = [*dict.fromkeys(kinds)]
        if all(kinds):
            node = {"type": every, **node}
    return node


def json_type(name: str, say: Say, path: str) -> str:
    """The JSON type that a word means; empty where any value is meant, or the word is unknown."""
    known = _TYPES.get(name.strip().lower())
    if known is None:
        say(path, f"the type '{name[:60]}' is none of JSON's: any value is taken", "type-dropped")
        return ""
    kind, lost = known
    became = f"'{kind}'" if kind else "no type"
    say(path, f"the type '{name}' became {became}{lost and '; ' + lost}", "type-mapped")
    return kind


def rights_of(data: dict[str, Json], manifest: dict[str, Json], say: Say, base: str = "") -> None:
    """Writes what a definition asks for into ``securityContext`` and ``execution``; ``base`` is the definition's place in its file."""
    asked = _Asked(say)
    asked.paths(data.get("fs_prefixes"), f"{base}/fs_prefixes", read=True, write=True)
    asked.hosts(data.get("network_allow"), f"{base}/network_allow")
    asked.variables(data.get("env_allow"), f"{base}/env_allow")
    asked.permissions(data.get("permissions"), f"{base}/permissions")
    if context := asked.context():
        manifest["securityContext"] = context
    for key in ("timeout_ms", "timeoutMs", *_SECONDS):
        value = data.get(key)
        if value is None:
            continue
        scale = 1000 if key in _SECONDS else 1
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value * scale < 2**53:
            execution = manifest.get("execution")
            manifest["execution"] = {**(execution if is_object(execution) else {}), "timeoutMs": int(value * scale)}
        else:
            say(
                key,
                f"the time '{str(value)[:40]}' is no number of {'seconds' if scale > 1 else 'milliseconds'}",
                "field-dropped",
            )


class _Asked:
    """What a definition asks for, as it is found."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.read: dict[str, None] = {}
        self.write: dict[str, None] = {}
        self.allowed: dict[str, None] = {}
        self.secrets: dict[str, None] = {}

    def context(self) -> dict[str, Json]:
        files: dict[str, Json] = {
            name: list[Json](paths) for name, paths in (("allowRead", self.read), ("allowWrite", self.write)) if paths
        }
        context: dict[str, Json] = {}
        if files:
            context["fileAccess"] = files
        if self.allowed:
            context["networkAccess"] = {"allowHosts": list[Json](self.allowed)}
        if self.secrets:
            context["secrets"] = list[Json](self.secrets)
        return context

    def paths(self, listed: Json, where: str, *, read: bool, write: bool) -> None:
        for path, place in _texts(listed, where, self.say):
            bare = path.removesuffix("**").removesuffix("*").rstrip("/")
            bare = bare.removeprefix("./")
            pattern = f"{bare}/**" if bare else path
            fault = path_pattern_fault(pattern, write=write)
            if fault is not None and write and read and path_pattern_fault(pattern, write=False) is None:
                self.read[pattern] = None
                self.say(place, f"'{path[:80]}' is asked for to read only: {fault}", "permission-dropped")
                continue
            if fault is not None:
                self.say(place, f"'{path[:80]}' is not asked for: {fault}", "permission-dropped")
                continue
            if read:
                self.read[pattern] = None
            if write:
                self.write[pattern] = None
            if not path.startswith("/"):
                self.say(place, f"'{path[:80]}' is relative to the tool's own folder here", "path-relative")

    def hosts(self, listed: Json, where: str) -> None:
        for text, place in _texts(listed, where, self.say):
            host = re.sub(r"^[a-z]+://", "", text.strip(), flags=re.I).partition("/")[0]
            fault = host_pattern_fault(host)
            if fault is not None:
                self.say(place, f"the host '{text[:80]}' is not asked for: {fault}", "permission-dropped")
                continue
            self.allowed[host] = None
            if host != text:
                self.say(
                    place,
                    f"'{text[:80]}' became the host '{host}': what else it says is not held",
                    "permission-widened",
                )

    def variables(self, listed: Json, where: str) -> None:
        plain: list[str] = []
        for name, place in _texts(listed, where, self.say):
            if fault := variable_name_fault(name):
                self.say(place, f"'{name[:80]}' is left out: {fault}", "field-dropped")
            elif is_secret_setting(name):
                self.secrets[name] = None
            else:
                plain.append(name)
        if self.secrets:
            self.say(where, next_step(self.secrets), "credentials")
        if plain:
            self.say(
                where,
                f"{', '.join(plain[:8])} are not taken from the daemon: set them in 'env' of the manifest",
                "env-to-set",
            )

    def permissions(self, declared: Json, where: str) -> None:
        if is_object(declared):
            for key, value in declared.items():
                self._permission(key, value, f"{where}/{escape_pointer(key)}")
        elif declared is not None:
            for word, place in _texts(declared, where, self.say):
                self._word(word, place)

    def _permission(self, key: str, value: Json, place: str) -> None:
        if value in (False, None, [], {}):
            return
        if key in _HOST_KEYS and is_list(value):
            self.hosts(value, place)
        elif key in (*_READ_KEYS, *_WRITE_KEYS, *_BOTH_KEYS) and is_list(value):
            self.paths(value, place, read=key not in _WRITE_KEYS, write=key not in _READ_KEYS)
        elif key in (*_HOST_KEYS, *_BOTH_KEYS) and is_object(value):
            for inner, part in value.items():
                if key in _HOST_KEYS and inner in ("allow", "hosts", "domains"):
                    self.hosts(part, f"{place}/{escape_pointer(inner)}")
                else:
                    self._permission(inner, part, f"{place}/{escape_pointer(inner)}")
        else:
            self._unknown(key, place)

    def _word(self, word: str, place: str) -> None:
        match = _WORD.fullmatch(word.strip())
        what = match["what"].lower() if match else ""
        if match is not None and what in _NETWORK:
            self.hosts([match["where"]], place)
        elif match is not None and what in _FILES:
            how = (match["how"] or what).lower()
            self.paths([match["where"]], place, read=how != "write", write=how not in ("read", "get"))
        else:
            self._unknown(word, place)

    def _unknown(self, word: str, place: str) -> None:
        what = f"the permission '{word[:80]}' names nothing that could be asked for here: see securityContext"
        self.say(place, what, "permission-dropped")


def _texts(listed: Json, where: str, say: Say) -> Iterator[tuple[str, str]]:
    """The texts of a list, or of a single one, with their places."""
    for i, item in enumerate(listed if is_list(listed) else [] if listed is None else [listed]):
        place = f"{where}/{i}" if is_list(listed) else where
        if isinstance(item, str) and item.strip():
            yield item, place
        elif item is not None:
            say(place, f"{str(item)[:60]} is no text and was left out", "field-dropped")
