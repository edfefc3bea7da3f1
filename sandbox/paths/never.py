"""The one list of host places that no run is ever shown, whoever asks: settings, grants, manifests, the daemon itself.

Each mount of a host path is judged here (`runner` asks for all of them, the settings' own checks ask earlier for a better
message). A path inside a closed place is refused, and so is one that holds a closed place: hiding the part would leave
mount points below folders that others may change. Names are compared as they are written and with their links resolved.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import os
import posixpath
import pwd
import re
import stat
import time
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tamis.sandbox.model import PathRefused
from tamis.sandbox.paths.walk import Opened

if TYPE_CHECKING:
    from tamis.sandbox.job import Hidden

SYSTEM = ("/proc", "/sys", "/dev", "/run", "/boot", "/var/run", "/lost+found")
"""Closed with all that is in them."""
SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh"),
    *("/etc/ssl/private", "/etc/krb5.keytab", "/etc/security", "/etc/tamis", "/etc/wireguard", "/etc/openvpn"),
    *("/etc/NetworkManager", "/etc/wpa_supplicant", "/etc/kubernetes", "/etc/docker", "/etc/pki/tls/private"),
    *("/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/var/lib/kubelet", "/var/lib/sss"),
    *("/var/backups", "/var/spool/cron", "/var/lib/NetworkManager", "/var/lib/private"),
)
"""Closed with all that is in them, also to a reader who may open them."""
ITSELF = (
    *("/", "/home", "/root", "/etc", "/usr", "/usr/local", "/var", "/var/lib", "/var/log", "/bin", "/sbin", "/lib"),
    *("/lib64", "/opt", "/mnt", "/media", "/srv", "/tmp", "/var/tmp", "/snap"),
)
"""Closed as a whole; a folder in them may be shown."""
SECRET_NAMES = frozenset(
    (
        *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".pgpass", ".git-credentials", ".npmrc"),
        *(".pypirc", ".password-store", ".mozilla", ".thunderbird", ".bash_history", ".python_history", ".zsh_history"),
        *(
            ".terraform.d",
            ".vault-token",
            ".pki",
            ".oci",
            ".s3cfg",
            ".boto",
            ".databrickscfg",
            ".my.cnf",
            ".yarnrc.yml",
        ),
        *(".node_repl_history", ".psql_history", ".mysql_history", ".rnd", ".Xauthority", ".ICEauthority", ".minikube"),
        *(".electrum", ".bitcoin", ".ethereum", ".gitcookies", ".smbcredentials", ".authinfo", ".authinfo.gpg"),
    )
)
"""Closed wherever they stand, with all that is in them."""
SECRET_PATHS = (
    *(".config/gcloud", ".config/gh", ".config/hub", ".config/git/credentials", ".config/op"),
    *(".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/rclone"),
    *(".config/doctl", ".config/containers/auth.json", ".config/pypoetry/auth.toml", ".config/heroku", ".config/sops"),
    *(".local/share/keyrings", ".local/share/kwalletd"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".composer/auth.json"),
    *(
        ".gradle/gradle.properties",
        ".jupyter/jupyter_server_config.json",
        ".config/hcloud",
        ".config/fish/fish_history",
    ),
)
"""As `SECRET_NAMES`, of more than one part."""
TAMIS_PATHS = (".config/tamis", ".local/share/tamis", ".local/state/tamis", ".cache/tamis")
"""What Tamis keeps for an account, wherever it stands."""
_HOME_MARKS = (".ssh", ".gnupg", ".aws", ".kube", ".password-store")
_SOCKET_NAMES = (".X11-unix", ".ICE-unix", ".XIM-unix", ".font-unix", "docker.sock", "containerd.sock", "podman.sock")
_SOCKET_STARTS = ("ssh-", "dbus-", "tmux-", "krb5cc", "gpg-", "keyring-", "pulse-", ".org.chromium.", "vscode-ssh-auth")
_SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "XAUTHORITY", "ICEAUTHORITY", "GPG_AGENT_INFO")
_SOCKET_ADDRESSES = ("DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "CONTAINER_HOST", "KRB5CCNAME")
_NO_HOME = frozenset(("", "/", "/nonexistent", "/dev/null"))


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it, both normalised; only whole names count (S1)."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def own_folder(own: str, standard: str, fallback: str) -> str:
    """One of Tamis's own folders: the variable `own`, else `tamis` below the XDG variable `standard`, else below the home."""
    if own and os.environ.get(own):
        return os.path.abspath(os.environ[own])
    base = os.environ.get(standard, "")
    # the XDG specification: a relative path is not one
    return (base if os.path.isabs(base) else os.path.join(os.path.expanduser("~"), fallback)).rstrip("/") + "/tamis"


def kept_folders() -> tuple[str, ...]:
    """Tamis's own folders on this machine: state, cache, configuration; as named and with links resolved."""
    return _kept(tuple(os.environ.get(name, "") for name in _FOLDER_VARIABLES))


_FOLDER_VARIABLES = (
    "TAMIS_STATE_DIR",
    "TAMIS_CACHE_DIR",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "HOME",
)


@functools.lru_cache(maxsize=8)
def _kept(_variables: tuple[str, ...]) -> tuple[str, ...]:
    named = (
        own_folder("TAMIS_STATE_DIR", "XDG_STATE_HOME", ".local/state"),
        own_folder("TAMIS_CACHE_DIR", "XDG_CACHE_HOME", ".cache"),
        own_folder("", "XDG_CONFIG_HOME", ".config"),
    )
    return tuple(dict.fromkeys(path for item in named for path in (item, os.path.realpath(item))))


def shown_fault(path: str, *, own: bool = False) -> str:
    """Why a host path must not be mounted, as a sentence without its end, or an empty text: the path as it is written and
    what it leads to. `own`: one of Tamis's own folders, which the daemon itself shows."""
    plain = posixpath.normpath(path) if path.startswith("/") and not path.startswith("//") else ""
    if not plain or "\0" in plain:
        return f"{path!r} is not an absolute path"
    real = os.path.realpath(plain)
    return never_shown(plain, own=own) or (never_shown(real, own=own) if real != plain else "")


def require_shown(path: str, *, own: bool = False) -> None:
    """Raises `PathRefused` where `shown_fault` tells why."""
    reason = shown_fault(path, own=own)
    if reason:
        raise PathRefused(reason, "name another folder, or one below it")


def require_tool_folder(path: str, *, real: str = "", own: bool = False) -> None:
    """Raises `PathRefused` for a folder that cannot be a tool's own, since it is shown as a whole.

    `real` is where it stands, where the caller has it open. What is secret by its name at the top of a project is masked
    there (`masks`), and closes nothing.
    """
    for spelled in dict.fromkeys((path, real or os.path.realpath(path))):
        reason = never_by_name(spelled) or _holds_home(spelled) or ("" if own else _of_tamis(spelled))
        if reason:
            raise PathRefused(reason, "move the tool to a folder of its own")


def never_shown(path: str, *, own: bool = False) -> str:
    """Why a real, normalised host path is closed to every mount, as a sentence without its end, or an empty text."""
    reason = never_by_name(path) or _holds_home(path) or ("" if own else _of_tamis(path)) or _socket_fault(path)
    if reason:
        return reason
    # a home that no account names: a backup, another machine's disk
    if not os.path.isdir(path):
        return ""  # a file holds nothing
    marked = next((name for name in _HOME_MARKS if os.path.lexists(f"{path}/{name}")), None)
    if marked is not None:
        return f"{path} holds secrets ({marked}) and is never shown to a tool"
    nested, systems = _may_hold(path)
    for rest in nested:
        if os.path.lexists(f"{path}/{rest}"):
            return f"{path} holds secrets ({rest}) and is never shown to a tool"
    held = next((kept for kept in systems if os.path.lexists(kept)), None)
    return f"{path} holds secrets ({held}) and is never shown to a tool" if held is not None else ""


# What follows from names alone is kept: it is asked for the same few folders at every call. Nothing of it was looked up.
_by_words = functools.lru_cache(maxsize=256)


@_by_words
def never_by_name(path: str) -> str:
    """The part of `never_shown` that holds on every machine: nothing is looked up."""
    if path in ITSELF or any(inside(path, place) for place in SYSTEM):
        return f"{path} is never shown to a tool"
    if any(inside(path, place) for place in SYSTEM_SECRETS):
        return f"{path} belongs to the system's secrets and is never shown to a tool"
    secret = next((name for name in path.split("/") if name in SECRET_NAMES), None)
    if secret is None:
        secret = next((name for name in SECRET_PATHS if f"/{name}/" in f"{path}/"), None)
    return f"{path} holds secrets ({secret}) and is never shown to a tool" if secret is not None else ""


def _nested() -> tuple[tuple[str, str], ...]:
    """(end of a folder's path, what would be secret in it) of each folder on the way to a secret of more than one part."""
    pairs: list[tuple[str, str]] = []
    for path in (*SECRET_PATHS, *TAMIS_PATHS):
        parts = path.split("/")
        pairs += [("/" + "/".join(parts[:end]), "/".join(parts[end:])) for end in range(1, len(parts))]
    return tuple(pairs)


_NESTED = _nested()


@_by_words
def _may_hold(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What would be secret in a folder of this name, and the system's secrets that would lie in it."""
    nested = tuple(rest for folder, rest in _NESTED if path.endswith(folder))
    return nested, tuple(kept for kept in SYSTEM_SECRETS if inside(kept, path))


def _holds_home(path: str) -> str:
    reason, services = _homes_in(path, *_homes(os.path.expanduser("~")))
    for home in services:
        held = next((name for name in SECRET_NAMES if os.path.lexists(f"{home}/{name}")), "")
        if held:
            return f"{path} holds secrets ({home}/{held}) and is never shown to a tool"
    return reason


@_by_words
def _homes_in(path: str, peoples: tuple[str, ...], services: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Why a path is closed for a person's home, and if it is not, the homes of services in it."""
    home = next((home for home in peoples if inside(home, path)), None)
    if home is not None:
        return f"{path} {'is' if home == path else 'holds'} a home folder and is never shown to a tool", ()
    return "", tuple(home for home in services if inside(home, path))


@functools.lru_cache(maxsize=8)
def _homes(own: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The homes of people's accounts, and of services'. Asked once: a directory service may be slow, and lists no accounts
    of its own."""
    peoples, services = {own, os.path.realpath(own)}, set[str]()
    with contextlib.suppress(OSError):
        for account in pwd.getpwall():
            # a service has a folder of the system's for its home, which other things lie in too
            person = account.pw_uid in (0, os.getuid()) or 1000 <= account.pw_uid < 65_000
            places = {account.pw_dir.rstrip("/"), os.path.realpath(account.pw_dir)}
            (peoples if person else services).update(places)
    return tuple(sorted(peoples - _NO_HOME)), tuple(sorted(services - peoples - _NO_HOME))


def _of_tamis(path: str) -> str:
    reason, below = _kept_in(path, kept_folders())
    held = next((kept for kept in below if os.path.lexists(kept)), "")
    return f"{path} holds what Tamis keeps for itself ({held})" if held else reason


@_by_words
def _kept_in(path: str, kept: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Why a path is closed as one of Tamis's own places, and if it is not, those that would lie in it."""
    if any(inside(path, item) for item in kept) or any(f"/{name}/" in f"{path}/" for name in TAMIS_PATHS):
        return f"{path} belongs to what Tamis keeps for itself", ()
    return "", tuple(item for item in kept if inside(item, path))


def _socket_fault(path: str) -> str:
    return _leads_to_socket(path, _sockets())


@_by_words
def _leads_to_socket(path: str, sockets: tuple[str, ...]) -> str:
    parts = path.split("/")
    name = next((part for part in parts if part in _SOCKET_NAMES), "")
    if not name and len(parts) > 2 and parts[1] == "tmp" and parts[2].startswith(_SOCKET_STARTS):
        name = parts[2]
    named = name or next((socket for socket in sockets if inside(path, socket) or inside(socket, path)), "")
    return f"{path} leads to other programs of this machine ({named}) and is never shown to a tool" if named else ""


def _sockets() -> tuple[str, ...]:
    return _named_sockets(tuple(os.environ.get(name, "") for name in (*_SOCKET_VARIABLES, *_SOCKET_ADDRESSES)))


@functools.lru_cache(maxsize=8)
def _named_sockets(values: tuple[str, ...]) -> tuple[str, ...]:
    """The files that the environment names for talking to agents: `/a/b`, `unix:///a/b`, `unix:path=/a/b,guid=…`."""
    paths: list[str] = []
    for value in values:
        for address in value.split(";"):
            at = address.find("/")
            path = unquote(address[at:].split(",")[0]) if at >= 0 else ""
            path = posixpath.normpath(path.replace("//", "/")) if path else ""
            if path.startswith("/") and path not in ITSELF:
                paths.extend((path, os.path.realpath(path)))
    return tuple(dict.fromkeys(paths))


# What a tool does not see of its own folder where that is the root of a project: history, settings, keys and passwords. Only the top of the folder is
# looked at, and only names that are there are masked, so an ordinary tool's folder costs one look at its time of change. A link is left as it is:
# what it leads to inside is judged by its own name.


MARKS = frozenset((".git", ".hg", ".svn", "tamis.toml", ".vscode", ".idea"))
"""A folder that holds one of these is the root of a project."""
_NAMES = MARKS | SECRET_NAMES | {".env", ".envrc", ".direnv", ".secrets", ".htpasswd", ".yarnrc", ".aider.conf.yml"}
_PATTERNS = (".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "id_*.pub")
_SETTLED_NS = 1_000_000_000
_KEPT = 256
_known: dict[tuple[int, int, int, int], tuple[bool, tuple[Hidden, ...]]] = {}


def hidden_in(folder: Opened, *, is_project: bool) -> tuple[Hidden, ...]:
    """What is masked at the top of a tool's folder, sorted. `is_project`: the caller knows that it is a project's root."""
    info = os.fstat(folder.fd)
    key = (info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns)
    entry = _known.get(key)
    if entry is None:
        entry = _look(folder)
        # two changes within one tick of the file system's clock leave the same time
        if time.time_ns() - info.st_mtime_ns > _SETTLED_NS:
            if len(_known) >= _KEPT:
                _known.clear()
            _known[key] = entry
    marked, hidden = entry
    return hidden if is_project or marked else ()


def is_hidden_name(name: str) -> bool:
    """Whether a name is masked at the top of a project."""
    return name in _NAMES or _matches().match(name) is not None


def masked_fault(name: str, *, is_project: bool) -> str:
    """Why a folder of this name at the top of a tool's own folder is not the tool's to write, or an empty text.

    One of `MARKS` makes a project of the folder as soon as it is there, and is masked from then on.
    """
    if name in MARKS or (is_project and is_hidden_name(name)):
        return f"'{name}' is hidden from tools at the top of a project"
    return ""


@functools.cache
def _matches() -> re.Pattern[str]:
    # not at a start that looks at no folder of a project
    return re.compile("|".join([*map(fnmatch.translate, _PATTERNS), r"id_[^.]*\Z"]))


def _look(folder: Opened) -> tuple[bool, tuple[Hidden, ...]]:
    from tamis.sandbox.job import Hidden

    marked = False
    hidden: list[Hidden] = []
    descriptor = os.open(f"/proc/self/fd/{folder.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                marked = marked or entry.name in MARKS
                if is_hidden_name(entry.name):
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                        hidden.append(Hidden(entry.name, stat.S_ISDIR(mode)))
    finally:
        os.close(descriptor)
    return marked, tuple(sorted(hidden, key=lambda item: item.name))
