"""Lints of a manifest against the script that it names: language, entry point, hosts and paths, the pinned hash.

Only what the texts of both show for certain; nothing is run. Must not know where the script's text comes from.
"""

from __future__ import annotations

import posixpath
import re

from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.levels import Levels
from tamis.protocols.model import Diag, Edit, Fix, Severity
from tamis.protocols.suggest import best, hint
from tamis.server.analysis.answers import Related
from tamis.server.analysis.lints.local import object_at, text_of, texts_of
from tamis.server.analysis.lints.script_facts import At, Function, ScriptFacts, script_facts
from tamis.server.analysis.lints.tool import insert_field
from tamis.server.analysis.snapshot import ScriptFile

Found = list[tuple[Diag, tuple[Related, ...]]]

_SUFFIXES = {
    **dict.fromkeys((".py", ".pyw"), ("a Python script", ("python",))),
    **dict.fromkeys((".js", ".mjs", ".cjs"), ("a JavaScript script", ("nodejs", "bun"))),
    **dict.fromkeys((".ts", ".mts", ".cts", ".tsx", ".jsx"), ("a TypeScript script", ("bun", "nodejs"))),
    **dict.fromkeys((".sh", ".bash", ".zsh"), ("a shell script", ())),
    **dict.fromkeys((".rb",), ("a Ruby script", ())),
    **dict.fromkeys((".pl",), ("a Perl script", ())),
    **dict.fromkeys((".php",), ("a PHP script", ())),
    **dict.fromkeys((".lua",), ("a Lua script", ())),
}
_BUILT_IN = ("python", "nodejs", "bun")
_SHEBANG = re.compile(r"#!\s*(?:\S*/env(?:\s+-\S+)*\s+)?(?:\S*/)?([A-Za-z]+)[^\n]*")
_PROGRAMS = {
    **dict.fromkeys(("python", "pypy", "uv"), ("python",)),
    **dict.fromkeys(("node", "nodejs", "deno", "tsx"), ("nodejs", "bun")),
    "bun": ("bun", "nodejs"),
    **dict.fromkeys(("bash", "sh", "zsh", "perl", "ruby", "php", "lua"), ()),
}


def lint_handler(root: JsonNode, text: str, script: ScriptFile | None, folder: str, levels: Levels) -> Found:
    """The findings of ``handler`` and of what ``securityContext`` asks for; ``script`` is None where it could not be read."""
    handler = object_at(root, "handler")
    if handler is None or text_of(handler.get("type")) != "external-script":
        return []
    where, language = handler.get("scriptPath"), text_of(handler.get("language")) or ""
    path = text_of(where)
    if where is None or not path:
        return []
    diagnostics: Found = _suffix(handler, path, language)
    if script is None or script.path != posixpath.normpath(path):
        return diagnostics
    reader = _Reader(root, text, where, script, folder, language, levels)
    return diagnostics + reader.found


def _suffix(handler: JsonNode, path: str, language: str) -> Found:
    kind = _SUFFIXES.get(posixpath.splitext(path)[1].lower())
    node = handler.get("language")
    if kind is None or node is None or language not in _BUILT_IN or language in kind[1]:
        return []
    args: dict[str, str | int] = {"v": path, "kind": kind[0], "language": language}
    return [(Diag("LN750", node.span, args, fix=_fix(handler, kind[1])), ())]


def pin_fix(root: JsonNode, integrity: JsonNode, script: ScriptFile) -> Fix:
    """Writes the hash of a manifest's script, or of its files together, as they are now."""
    title = "Pin the files as they are now" if _pins_files(root) else "Pin the script as it is now"
    return Fix(title, (Edit(integrity.start, integrity.end, quoted(script.sha256)),), "unsafe")


def _pins_files(root: JsonNode) -> bool:
    execution = object_at(root, "execution")
    files = execution.get("files") if execution is not None else None
    return files is not None and bool(files.items)


def _fix(handler: JsonNode, wanted: tuple[str, ...]) -> Fix | None:
    node = handler.get("language")
    if not wanted or node is None:
        return None
    return Fix(f"Change to '{wanted[0]}'", (Edit(node.start, node.end, quoted(wanted[0])),), "unsafe")


class _Reader:
    """One manifest held against one script."""

    def __init__(
        self, root: JsonNode, text: str, where: JsonNode, script: ScriptFile, folder: str, language: str, levels: Levels
    ) -> None:
        self.root = root
        self.text = text
        self.where = where
        self.script = script
        self.path = posixpath.join(folder, script.path)
        self.language = language
        self.found: Found = []
        if not script.text.strip() and script.complete:
            self.add("LN752", where, {})
            return
        self._shebang()
        self._hash()
        facts = script_facts(script.text, script.path, language) if script.complete else None
        if facts is None or not facts.known:
            return
        if facts.fault:
            args: dict[str, str | int] = {"language": "Python", "reason": facts.fault, "line": facts.fault_line}
            self.add("LN760", where, args, At("the fault", facts.fault_line - 1))
            return
        self._entry_point(facts)
        self._network(facts)
        self._writes(facts)
        if levels.says("LN758"):
            self._reads(facts)

    def add(
        self,
        code: str,
        node: JsonNode,
        args: dict[str, str | int],
        at: At | None = None,
        fix: Fix | None = None,
        severity: Severity | None = None,
    ) -> None:
        """A finding in the manifest, with the place in the script that it is about."""
        related = (Related(f"{at.text} stands here", path=self.path, line=max(0, at.line)),) if at is not None else ()
        self.found.append((Diag(code, node.span, args, severity=severity, fix=fix), related))

    def _shebang(self) -> None:
        first = self.script.text[:200].split("\n", 1)[0]
        match = _SHEBANG.match(first)
        wanted = _PROGRAMS.get(match[1].lower()) if match is not None else None
        handler = object_at(self.root, "handler")
        node = handler.get("language") if handler is not None else None
        if match is None or wanted is None or handler is None or node is None:
            return
        if self.language in _BUILT_IN and self.language not in wanted:
            args: dict[str, str | int] = {"program": match[1], "language": self.language}
            self.add("LN751", node, args, At("the line", 0), _fix(handler, wanted))

    def _hash(self) -> None:
        execution = object_at(self.root, "execution")
        node = execution.get("integrity") if execution is not None else None
        pinned = text_of(node)
        if node is None or not pinned or not pinned.startswith("sha256-") or not self.script.sha256:
            return
        if pinned != self.script.sha256:
            what = "the script and the files of execution.files together" if _pins_files(self.root) else "the script"
            self.add("LN759", node, {"what": what}, fix=pin_fix(self.root, node, self.script))

    def _entry_point(self, facts: ScriptFacts) -> None:
        handler = object_at(self.root, "handler")
        node = handler.get("entryPoint") if handler is not None else None
        name = text_of(node)
        if node is None or not name or facts.open_names:
            return
        head = name.partition(".")[0]
        known = name if name in facts.functions else head
        if head not in facts.functions:
            near = best(name, [function for function in facts.functions if not function.startswith("_")])
            fix = None
            if near is not None:
                fix = Fix(f"Change to '{near}'", (Edit(node.start, node.end, quoted(near)),), "unsafe")
            self.add("LN753", node, {"v": name, "hint": hint(near)}, fix=fix)
            return
        function = facts.functions[known] if "." not in name else None
        if function is not None and self.language == "python":
            self._arguments(node, name, function)

    def _arguments(self, node: JsonNode, name: str, function: Function) -> None:
        """Python functions get keyword arguments: what they do not take, or miss, is a TypeError at every such call."""
        parameters = object_at(self.root, "parameters")
        properties = object_at(parameters, "properties") if parameters is not None else None
        label = f"{name}()"
        if function.positional_only:
            self.add(
                "LN754", node, {"function": label, "what": f"takes '{function.positional_only[0]}' only by position"}
            )
            return
        if parameters is None or properties is None:
            return
        declared = [member.key for member in properties.members if member.value is not None]
        foreign = [] if function.open else [item for item in declared if item not in function.names]
        if foreign:
            shown = ", ".join(f"'{item}'" for item in foreign[:4])
            near = best(foreign[0], [name for name in function.names if name not in declared])
            self.add("LN754", node, {"function": label, "what": f"takes no argument {shown}{hint(near)}"})
            return
        required = {item for item, _ in texts_of(parameters.get("required"))}
        for item in function.names:
            if item in function.optional or item in required:
                continue
            if item in declared:
                what = f"needs '{item}', which is not required in parameters"
            elif _is_open(parameters):
                continue
            else:
                what = f"needs '{item}', which parameters do not declare"
            self.add("LN754", node, {"function": label, "what": what})
            return

    def _network(self, facts: ScriptFacts) -> None:
        if not facts.network:
            return
        allowed = _allowed_hosts(self.root)
        if allowed is None:
            return
        outside = [host for host in facts.hosts if not any(_covers(pattern, host.text) for pattern in allowed)]
        if not allowed:
            used = ", ".join(access.text for access in facts.network[:3])
            fix = _hosts_fix(self.root, self.text, [host.text for host in facts.hosts[:8]]) if facts.hosts else None
            # A library that is loaded may still stand idle; a call or an address is no accident.
            sure: Severity = "warning" if facts.hosts or self.language != "python" else "information"
            self.add("LN755", self.where, {"what": used}, facts.network[0], fix, sure)
            return
        for host in outside[:8]:
            fix = _hosts_fix(self.root, self.text, [host.text])
            self.add("LN756", self.where, {"host": host.text}, host, fix)

    def _writes(self, facts: ScriptFacts) -> None:
        access = object_at(object_at(self.root, "securityContext"), "fileAccess")
        allowed = [item for item, _ in texts_of(access.get("allowWrite"))] if access is not None else []
        for write in facts.writes[:8]:
            if not _may_write(write.text, allowed):
                self.add("LN757", self.where, {"path": write.text}, write)

    def _reads(self, facts: ScriptFacts) -> None:
        parameters = object_at(self.root, "parameters")
        properties = object_at(parameters, "properties") if parameters is not None else None
        if properties is None:
            return
        declared = [member.key for member in properties.members]
        for read in facts.reads[:20]:
            if read.text not in declared:
                near = best(read.text, declared)
                self.add("LN758", self.where, {"p": read.text, "hint": hint(near)}, read)


def _is_open(parameters: JsonNode) -> bool:
    """Whether calls may give names that are not declared."""
    extra = parameters.get("additionalProperties")
    opened = extra is not None and (extra.kind == "object" or extra.value is True)
    return opened or parameters.member("patternProperties") is not None


def _allowed_hosts(root: JsonNode) -> list[str] | None:
    """What ``allowHosts`` holds; None where it is no list."""
    access = object_at(object_at(root, "securityContext"), "networkAccess")
    node = access.get("allowHosts") if access is not None else None
    if node is None:
        return []
    return [host for host, _ in texts_of(node)] if node.kind == "array" else None


def _covers(pattern: str, host: str) -> bool:
    """Whether a host pattern holds a host that a script names (with a port only where it is not the web's)."""
    wanted, _, port = (
        pattern.lower().rpartition(":") if re.search(r":(\d+|\*)$", pattern) else (pattern.lower(), "", "")
    )
    name, _, named_port = host.rpartition(":") if re.search(r":\d+$", host) else (host, "", "")
    name = name or host
    if port not in ("", "*") and port != (named_port or port):
        return False
    if named_port and not port:
        return False
    if wanted.startswith("*."):
        return name.endswith(wanted[1:])
    return name == wanted or wanted == "*"


def _may_write(path: str, allowed: list[str]) -> bool:
    if path.startswith(("/tmp/", "/dev/")) or path in ("/tmp", "-"):
        return True
    wanted = posixpath.normpath(path)
    for pattern in allowed:
        folder = posixpath.normpath(pattern.removesuffix("/**").removeprefix("./"))
        if wanted == folder or wanted.startswith(folder + "/"):
            return True
    return False


def _hosts_fix(root: JsonNode, text: str, hosts: list[str]) -> Fix | None:
    """The fix that asks for hosts, wherever ``allowHosts`` has to be made."""
    title = f"Ask for {', '.join(hosts)} in allowHosts"
    listed = ", ".join(quoted(host) for host in hosts)
    context = root.member("securityContext")
    if context is None:
        value = f'{{ "networkAccess": {{ "allowHosts": [{listed}] }} }}'
        return insert_field(root, text, "handler", "securityContext", value, title)
    node, wrap = context.value, '"networkAccess": {{ "allowHosts": [{}] }}'
    for name, below in (("networkAccess", '"allowHosts": [{}]'), ("allowHosts", "{}")):
        if node is None or node.kind != "object" or not node.closed:
            return None
        inner = node.get(name)
        if inner is None:
            break
        node, wrap = inner, below
    if not node.closed or node.kind != ("array" if wrap == "{}" else "object"):
        return None
    last = node.members[-1].span[1] if node.members else node.items[-1].end if node.items else 0
    at = last or node.start + 1
    return Fix(title, (Edit(at, at, (", " if last else "") + wrap.format(listed)),), "unsafe")
