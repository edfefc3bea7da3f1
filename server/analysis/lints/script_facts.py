"""What a script's text tells without running it: its functions, the libraries it loads, hosts and paths it names.

Python is read as its own compiler reads it, JavaScript and TypeScript by their surface. What cannot be known for sure is left
out. Pure; must not know manifests or the disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import msgspec

from tamis.protocols.patterns import lazy

MAX_CHARS = 256 * 1024
"""Longer scripts are not read."""


class Function(msgspec.Struct, frozen=True):
    """A function's parameters: names, those that may be left out, and whether any other name is taken too."""

    names: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    open: bool = False
    positional_only: tuple[str, ...] = ()


class At(msgspec.Struct, frozen=True):
    """Something that a script names, and the zero-based line where it does."""

    text: str
    line: int


class ScriptFacts(msgspec.Struct, frozen=True):
    """What was found. ``functions`` maps names (``name`` or ``Class.method``) to what they take, None where that is not known.

    ``open_names``: the script may have more names than could be seen.
    """

    functions: dict[str, Function | None] = {}
    open_names: bool = False
    network: tuple[At, ...] = ()
    hosts: tuple[At, ...] = ()
    writes: tuple[At, ...] = ()
    reads: tuple[At, ...] = ()
    fault: str = ""
    fault_line: int = 0
    known: bool = True
    """False: the language is not one that is read."""


UNKNOWN = ScriptFacts(open_names=True, known=False)
_JAVASCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
_URL = lazy(r"\b(?:https?|wss?)://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+)(?::(\d{1,5}))?(?=[/?#\"'`\s]|$)")
# Names of formats, not places that anything is fetched from.
_NAMESPACES = ("w3.org", "json-schema.org", "xmlsoap.org", "openxmlformats.org", "purl.org", "xmlns.com", "schema.org")
_EXAMPLES = ("example.com", "example.org", "example.net", "localhost", "127.0.0.1", "0.0.0.0", "[::1]")


@lru_cache(maxsize=16)
def script_facts(text: str, path: str, language: str) -> ScriptFacts:
    """The facts of a script. Never raises."""
    if len(text) > MAX_CHARS:
        return UNKNOWN
    if language == "python" and not path.endswith(_JAVASCRIPT):
        return _python(text)
    if language in ("nodejs", "bun") and not path.endswith(".py"):
        return _javascript(text)
    return UNKNOWN


def hosts_in(text: str) -> Iterator[str]:
    """The hosts of the URLs in a text, with the port where one is written."""
    if "://" not in text:
        return
    for match in _URL.finditer(text):
        host = match[1].rstrip(".").lower()
        bare = host in _EXAMPLES or ("." not in host and not host.startswith("["))
        if not bare and not any(host == name or host.endswith("." + name) for name in _NAMESPACES):
            yield f"{host}:{match[2]}" if match[2] and match[2] not in ("80", "443") else host


# Python

_PYTHON_NETWORK = frozenset(
    (
        *("requests", "httpx", "aiohttp", "urllib3", "urllib.request", "http.client", "websockets", "websocket"),
        *("ftplib", "smtplib", "imaplib", "poplib", "telnetlib", "paramiko", "xmlrpc.client", "pycurl", "niquests"),
    )
)


_MOVING = ("chdir", "fchdir")


def _python(text: str) -> ScriptFacts:
    import _ast

    try:
        tree: Any = compile(text, "<script>", "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return ScriptFacts(open_names=True, fault=error.msg or "it is no Python", fault_line=error.lineno or 1)
    except (ValueError, RecursionError, MemoryError):
        return UNKNOWN
    return _PythonReader(tree).facts()


class _PythonReader:
    """One pass over a module's syntax tree, without the standard library's ``ast`` (its import costs what the pass does)."""

    def __init__(self, module: Any) -> None:
        self.functions: dict[str, Function | None] = {}
        self.open_names = False
        self.network: dict[str, At] = {}
        self.hosts: dict[str, At] = {}
        self.writes: dict[str, At] = {}
        self.reads: dict[str, At] = {}
        self.inputs: set[str] = set()
        self.moves = False
        """Whether the script goes to another folder: where a relative path leads is not known then."""
        self._top(module.body, "")
        self._walk(module)

    def facts(self) -> ScriptFacts:
        """What was found."""
        return ScriptFacts(
            self.functions,
            self.open_names,
            tuple(self.network.values()),
            tuple(self.hosts.values()),
            tuple(write for path, write in self.writes.items() if path.startswith("/") or not self.moves),
            tuple(self.reads.values()),
        )

    def _top(self, body: list[Any], prefix: str) -> None:
        """The names that a module or class body binds."""
        for node in body:
            kind = type(node).__name__
            if kind in ("FunctionDef", "AsyncFunctionDef"):
                if not prefix and node.name == "__getattr__":
                    self.open_names = True
                # What a decorator makes of a function takes what it likes.
                self.functions[prefix + node.name] = None if node.decorator_list else _signature(node.args)
            elif kind == "ClassDef":
                self.functions[prefix + node.name] = None
                if not prefix:
                    self._top(node.body, f"{node.name}.")
                    self.open_names = self.open_names or bool(node.bases or node.keywords or node.decorator_list)
            elif kind in ("Import", "ImportFrom"):
                for alias in node.names:
                    if alias.name == "*":
                        self.open_names = True
                    self.functions[prefix + (alias.asname or alias.name).partition(".")[0]] = None
            elif kind in ("Assign", "AnnAssign", "AugAssign"):
                for target in node.targets if kind == "Assign" else [node.target]:
                    for name in _names(target):
                        self.functions[prefix + name] = None
            else:
                for field in ("body", "orelse", "finalbody"):
                    inner: list[Any] = getattr(node, field, None) or []
                    self._top(inner, prefix)
                handlers: list[Any] = getattr(node, "handlers", None) or []
                for handler in handlers:
                    self._top(handler.body, prefix)

    def _walk(self, module: Any) -> None:
        stack: list[Any] = [module]
        calls: list[Any] = []
        while stack:
            node = stack.pop()
            kind = type(node).__name__
            if kind in ("Import", "ImportFrom"):
                self._import(node)
            elif kind == "Constant" and isinstance(node.value, str):
                for host in hosts_in(node.value):
                    self.hosts.setdefault(host, At(host, node.lineno - 1))
            elif kind in ("Call", "Subscript"):
                calls.append(node)
                if kind == "Call":
                    self._call(node)
            elif kind in ("Assign", "AnnAssign") and node.value is not None and _is_input(node.value):
                for target in node.targets if kind == "Assign" else [node.target]:
                    self.inputs.update(_names(target))
            elif kind == "Expr" and type(node.value).__name__ == "Constant":
                continue  # a docstring may name any host
            stack.extend(_parts(node))
        for node in calls:
            self._read(node)

    def _import(self, node: Any) -> None:
        """What an import statement names; a relative one stays inside the tool's folder."""
        if type(node).__name__ == "Import":
            for alias in node.names:
                self._imported(alias.name, node)
        elif node.level == 0 and node.module:
            self._imported(node.module, node)
            for alias in node.names:
                self._imported(f"{node.module}.{alias.name}", node)

    def _imported(self, name: str, node: Any) -> None:
        parts = name.split(".")
        for size in range(1, len(parts) + 1):
            module = ".".join(parts[:size])
            if module in _PYTHON_NETWORK:
                self.network.setdefault(module, At(module, node.lineno - 1))

    def _call(self, node: Any) -> None:
        function = node.func
        self.moves = self.moves or (getattr(function, "attr", None) or getattr(function, "id", "")) in _MOVING
        mode = _text(node.args[1]) if len(node.args) > 1 else None
        for keyword in node.keywords:
            mode = _text(keyword.value) if keyword.arg == "mode" else mode
        if type(function).__name__ == "Name" and function.id == "open" and node.args:
            path = _text(node.args[0])
            if path and mode and any(char in mode for char in "wax+"):
                self.writes.setdefault(path, At(path, node.lineno - 1))
        elif type(function).__name__ == "Attribute" and function.attr in ("write_text", "write_bytes", "mkdir"):
            receiver = function.value
            if (
                type(receiver).__name__ == "Call"
                and type(receiver.func).__name__ == "Name"
                and receiver.func.id == "Path"
            ):
                path = _text(receiver.args[0]) if len(receiver.args) == 1 else None
                if path:
                    self.writes.setdefault(path, At(path, node.lineno - 1))

    def _read(self, node: Any) -> None:
        """``data["x"]`` and ``data.get("x")`` of what was read from standard input."""
        if type(node).__name__ == "Subscript":
            owner, key = node.value, _text(node.slice)
            if type(node.ctx).__name__ != "Load":
                return
        else:
            function = node.func
            if type(function).__name__ != "Attribute" or function.attr != "get" or not node.args:
                return
            owner, key = function.value, _text(node.args[0])
        if key and type(owner).__name__ == "Name" and owner.id in self.inputs:
            self.reads.setdefault(key, At(key, node.lineno - 1))


def _signature(args: Any) -> Function:
    positional = [*args.posonlyargs, *args.args]
    names = [arg.arg for arg in (*positional, *args.kwonlyargs)]
    optional = {arg.arg for arg in positional[len(positional) - len(args.defaults) :]} if args.defaults else set[str]()
    optional |= {arg.arg for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default is not None}
    only = tuple(arg.arg for arg in args.posonlyargs)
    return Function(tuple(names), frozenset(optional), args.kwarg is not None, only)


def _names(target: Any) -> Iterator[str]:
    kind = type(target).__name__
    if kind == "Name":
        yield target.id
    elif kind in ("Tuple", "List"):
        for part in target.elts:
            yield from _names(part)
    elif kind == "Starred":
        yield from _names(target.value)


def _text(node: Any) -> str | None:
    value = getattr(node, "value", None) if type(node).__name__ == "Constant" else None
    return value if isinstance(value, str) else None


def _is_input(node: Any) -> bool:
    """``json.load(sys.stdin)`` and ``json.loads(sys.stdin.read())`` in their spellings."""
    if type(node).__name__ != "Call" or not node.args:
        return False
    function = node.func
    name = getattr(function, "attr", None) or getattr(function, "id", None)
    if name not in ("load", "loads"):
        return False
    argument = node.args[0]
    while type(argument).__name__ in ("Call", "Attribute"):
        if type(argument).__name__ == "Attribute":
            if argument.attr == "stdin":
                return True
            argument = argument.value
        else:
            argument = argument.func
    return False


# JavaScript and TypeScript

_TOKENS = lazy(
    r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\[\s\S])*(?:`|\Z)"
)
_JS_MODULES = frozenset(
    (
        *("http", "https", "http2", "net", "tls", "dgram", "undici", "axios", "got", "node-fetch", "ws", "superagent"),
        *("request", "ky", "socket.io-client", "needle", "cross-fetch", "isomorphic-fetch"),
    )
)
_JS_IMPORT = lazy(r"(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*[\"'](?:node:)?([\w@./-]+)[\"']")
_JS_FETCH = lazy(r"(?<![\w$.])(?:fetch|new\s+(?:WebSocket|XMLHttpRequest|EventSource))\s*\(")
_JS_EXPORTS = (
    lazy(r"\bexport\s+(?:default\s+)?(?:async\s+)?(?:function\s*\*?|class|const|let|var)\s+([\w$]+)"),
    lazy(r"(?:\bmodule\.)?\bexports\.([\w$]+)\s*="),
)
_JS_LISTS = lazy(r"(?:\bmodule\.exports\s*=|\bexport(?:\s+default)?)\s*\{([^{}]*)\}")
_JS_NAME = lazy(r"(?:^|,)\s*(?:async\s+)?(?:[\w$]+\s+as\s+)?([\w$]+)(?=\s*(?:[,:(]|$))")
_JS_OPEN = lazy(
    r"\bexport\s*\*|\bmodule\.exports\s*=\s*(?!\{[^{}]*\})|\bexport\s+default\s+(?!(?:async\s+)?function|class)"
    r"|Object\.(?:assign|defineProperty)\s*\(\s*(?:module\.)?exports|\bexports\s*\["
)


def _javascript(text: str) -> ScriptFacts:
    hosts: dict[str, At] = {}
    line, last = 0, 0

    def blanked(match: re.Match[str]) -> str:
        nonlocal line, last
        token = match.group()
        if token[:1] == "/":
            return " " + "\n" * token.count("\n")
        if "://" in token:
            line += text.count("\n", last, match.start())
            last = match.start()
            for host in hosts_in(token):
                hosts.setdefault(host, At(host, line))
        return token

    code = _TOKENS.sub(blanked, text)
    network: dict[str, At] = {}
    for match in _JS_IMPORT.finditer(code):
        if match[1] in _JS_MODULES:
            network.setdefault(match[1], At(match[1], code.count("\n", 0, match.start())))
    fetch = _JS_FETCH.search(code)
    if fetch is not None and not re.search(r"\bfunction\s+fetch\b|\b(?:const|let|var)\s+fetch\b", code):
        name = "fetch" if "fetch" in fetch.group() else fetch.group().split()[-1].rstrip("(")
        network.setdefault(name, At(name, code.count("\n", 0, fetch.start())))
    functions: dict[str, Function | None] = {}
    for pattern in _JS_EXPORTS:
        functions.update((match[1], None) for match in pattern.finditer(code))
    for match in _JS_LISTS.finditer(code):
        functions.update((name, None) for name in _JS_NAME.findall(match[1]))
        if "..." in match[1]:
            functions.setdefault("...", None)
    open_names = _JS_OPEN.search(code) is not None or "..." in functions
    return ScriptFacts(functions, open_names, tuple(network.values()), tuple(hosts.values()))


def _parts(node: Any) -> Iterator[Any]:
    """The parts of a syntax node, for a stack: those of a list from its end."""
    for field in node._fields:
        part: Any = getattr(node, field, None)
        if isinstance(part, list):
            yield from reversed([item for item in cast("list[Any]", part) if hasattr(item, "_fields")])
        elif hasattr(part, "_fields"):
            yield part
