"""Patterns of ``securityContext``: which of them can ever be granted.

Only the spelling is judged; the grant is the sandbox's. Must not touch the file system or resolve names.
"""

from __future__ import annotations

import ipaddress
import re

CAPABILITIES = ("network", "write", "subprocess", "gpu", "build")
_DENIED_ROOTS = ("/proc", "/sys", "/dev", "/run")
_GLOB = re.compile(r"[*?\[\]{}]")
_RESOURCE = re.compile(r"fam://[^/\s]+(/|$)")
_RANGE = re.compile(r"\[?[0-9A-Fa-f.:]*[.:][0-9A-Fa-f.:]*\]?/[0-9.]+")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_OWN_VARIABLES = frozenset(
    (
        *(
            "PATH",
            "HOME",
            "TMPDIR",
            "TMP",
            "TEMP",
            "PWD",
            "OLDPWD",
            "SHELL",
            "USER",
            "LOGNAME",
            "LANG",
            "VIRTUAL_ENV",
            "NO_COLOR",
        ),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY", "TRACEPARENT", "TRACESTATE", "BAGGAGE"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSLKEYLOGFILE"),
        *("IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE"),
        *(
            "GCONV_PATH",
            "LOCPATH",
            "NLSPATH",
            "HOSTALIASES",
            "RES_OPTIONS",
            "LOCALDOMAIN",
            "RESOLV_HOST_CONF",
            "GETCONF_DIR",
        ),
        *("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH"),
    )
)
_OWN_BEGINNINGS = (
    *(
        "LD_",
        "DYLD_",
        "PYTHON",
        "NODE_",
        "BUN_",
        "NPM_CONFIG_",
        "UV_",
        "PIP_",
        "PERL5",
        "PERLLIB",
        "RUBYOPT",
        "RUBYLIB",
        "LUA_",
    ),
    *("OPENSSL_", "GIT_", "GLIBC_", "MALLOC_", "BASH_FUNC_", "TAMIS_"),
)
_WHOLE_TOOL_FOLDER = frozenset((".", "self", "*", "**"))


def path_pattern_fault(pattern: str, *, write: bool) -> str | None:
    """Why a path pattern can never be granted, or None.

    Read: ``self``, a relative path or glob, or an absolute path (which the operator's roots decide on). Write: a literal folder or
    ``folder/**``, never the tool's own folder.
    """
    resource = _RESOURCE.match(pattern)
    path = pattern[resource.end() :] if resource else pattern
    fault = _spelling_fault(path, bool(resource))
    if fault is not None:
        return fault
    if not write:
        return None
    literal = path[:-3] if path.endswith("/**") else path.rstrip("/")
    if _GLOB.search(literal):
        return "a folder to write to is a plain path, or one with /** behind it"
    parts = [part for part in literal.split("/") if part not in ("", ".")]
    if not resource and (path in _WHOLE_TOOL_FOLDER or not parts):
        if path.startswith("/"):
            return "the whole file system cannot be written to"
        return "the tool's own folder cannot be written to: a tool could rewrite its script"
    return None


def _spelling_fault(path: str, resource: bool) -> str | None:
    if not path.strip() and not resource:
        return "the path is empty"
    if "\0" in path or "\n" in path:
        return "the path has a control character"
    if "\\" in path:
        return "write / between folders"
    if re.match(r"[A-Za-z]:", path) or "://" in path:
        return "only fam:// names a resource; anything else is a path"
    if path.startswith("~"):
        return "~ is not expanded"
    parts = path.split("/")
    if ".." in parts:
        return "'..' leads out of the tool's folder"
    if path.startswith("/"):
        denied = next((root for root in _DENIED_ROOTS if path == root or path.startswith(root + "/")), None)
        if denied is not None:
            return f"{denied} is never granted"
    return None


def variable_name_fault(name: str) -> str | None:
    """Why a name can be neither a secret's nor a variable's of ``env``, or None.

    Whatever changes how a program is found, loaded or connected belongs to the sandbox, in any letter case.
    """
    if not _VARIABLE.fullmatch(name):
        return "it must be a letter or '_', then letters, digits and '_', 128 at most"
    upper = name.upper()
    if upper in _OWN_VARIABLES or (upper.startswith(_OWN_BEGINNINGS) and upper != "NODE_ENV"):
        return "the sandbox keeps this variable for itself, as it changes how programs are found, loaded or connected"
    return None


def host_pattern_fault(pattern: str) -> str | None:
    """Why a host pattern is refused, or None: ``name``, ``*.name``, an address, each with ``:port`` or ``:*`` if wished."""
    if not pattern.strip():
        return "the host is empty"
    if _RANGE.fullmatch(pattern):
        return (
            "a range of addresses is no host; name the host, and have the operator open the range in policy.allowCidrs"
        )
    if "://" in pattern or "/" in pattern:
        return "a host, not a URL: no scheme and no path"
    if pattern != pattern.strip() or any(char.isspace() for char in pattern):
        return "blanks are not allowed"
    if "@" in pattern or "%" in pattern:
        return "user names and escapes are not allowed"
    host, fault = _without_port(pattern)
    if fault is not None:
        return fault
    if host.startswith("["):
        return None if _is_address(host[1:-1], 6) else "not an IPv6 address"
    if host == "*":
        return "every host at once cannot be asked for"
    wild = host.startswith("*.")
    name = host[2:] if wild else host
    if "*" in name:
        return "* stands only for whole labels at the front, as in *.example.com"
    return _name_fault(name, wild)


def _without_port(pattern: str) -> tuple[str, str | None]:
    if pattern.startswith("["):
        host, bracket, rest = pattern.partition("]")
        if not bracket:
            return pattern, "']' is missing"
        host += "]"
        if rest and not rest.startswith(":"):
            return host, "only a port may follow ']'"
        port = rest[1:] if rest else None
    elif pattern.count(":") > 1:
        return pattern, "write IPv6 addresses in brackets"
    else:
        host, colon, after = pattern.partition(":")
        port = after if colon else None
    if port is None or port == "*":
        return host, None
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535):
        return host, "the port is a number from 1 to 65535, or *"
    return host, None


def _name_fault(name: str, wild: bool) -> str | None:
    name = name.removesuffix(".")
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return "not a name that can be written in IDNA"
    labels = name.lower().split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return "not a host name"
    last = labels[-1]
    if last.isdigit() or last.startswith("0x"):
        if wild or not _is_address(name, 4):
            return "not an IPv4 address in its usual form"
        return None
    if wild and len(labels) < 2:
        return "a wildcard needs at least two labels behind it, as in *.example.com"
    return None


def _is_address(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False
