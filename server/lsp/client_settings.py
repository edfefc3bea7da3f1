"""Settings that belong to the editor and not to ``tamis.toml``: whether lenses are shown, whether and how runs are allowed.

They come with ``initializationOptions.settings`` and ``workspace/didChangeConfiguration``, nested or with dotted names. They can only
close what the files allow, never open it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

if TYPE_CHECKING:
    from tamis.server.analysis.hover.tools import PromptView
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session

NAMES = frozenset(
    {
        "path",
        "args",
        "trace",
        "markdown",
        "python",
        "interpreter",
        "importStrategy",
        "codeLens",
        "inlayHints",
        "execution",
        "prompt",
        "mcp",
        "showNotifications",
        "roots",
        "exclude",
        "trusted",
    }
)
"""The editor's own settings; every other name is one of ``tamis.toml``."""

Confirmation = Literal["never", "writes", "always"]
MAX_PATTERNS = 1_000
_SHOWN = {"off": 0, "onError": 1, "onWarning": 2, "always": 3}
_SHOWN_FROM = {"error": 1, "warning": 2, "info": 3}
_STRICTNESS: tuple[Confirmation, ...] = ("never", "writes", "always")


class ClientSettings(msgspec.Struct, frozen=True):
    """The editor's settings with their defaults; ``values`` is what was sent."""

    trusted: bool = True
    """Whether anything may run."""
    word: bool | None = None
    """What the editor said of the folder; None: nothing, so that the user's record counts."""
    values: Mapping[str, Any] = {}

    def get(self, path: str) -> Any:
        """A setting by its dotted name, or None."""
        return setting(self.values, path)

    def switch(self, path: str) -> bool:
        """A setting that is on unless it says ``false``."""
        return self.get(path) is not False

    @property
    def exclude(self) -> tuple[str, ...]:
        """``exclude``: patterns, as in an ignore file, of what is not searched for tools and calls."""
        return _texts(self.get("exclude"))

    @property
    def roots(self) -> tuple[str, ...]:
        """``roots``: the folders that are served instead of the workspace's."""
        return _texts(self.get("roots"))

    def shows(self, level: Literal["error", "warning", "info"]) -> bool:
        """Whether a message that nobody asked for is shown (``showNotifications``); else it is logged."""
        shown = self.get("showNotifications")
        return _SHOWN.get(shown if isinstance(shown, str) else "", 3) >= _SHOWN_FROM[level]

    @property
    def timeout_ms(self) -> int | None:
        """``execution.timeoutMs``: lowers how long a run may take."""
        timeout = self.get("execution.timeoutMs")
        return timeout if isinstance(timeout, int) and not isinstance(timeout, bool) and timeout > 0 else None

    def confirmation(self, policy: Confirmation) -> Confirmation:
        """The stricter of ``policy.requireConfirmation`` and the editor's ``execution.requireConfirmation``."""
        strictness = self.get("execution.requireConfirmation")
        own = _STRICTNESS.index(strictness) if strictness in _STRICTNESS else 0
        return _STRICTNESS[max(own, _STRICTNESS.index(policy))]


def setting(values: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted name, written nested (``{"codeLens": {"enable": …}}``) or in one (``{"codeLens.enable": …}``)."""
    if path in values:
        return values[path]
    here: Any = values
    for name in path.split("."):
        here = cast("dict[str, Any]", here).get(name) if isinstance(here, dict) else None
    return here


def _texts(value: Any) -> tuple[str, ...]:
    patterns = cast("list[Any]", value) if isinstance(value, list) else []
    return tuple(item for item in patterns[:MAX_PATTERNS] if isinstance(item, str) and item)


def own_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The part of sent settings that is the editor's own."""
    return {name: value for name, value in values.items() if name.split(".")[0] in NAMES}


def read_options(options: Mapping[str, Any]) -> ClientSettings:
    """From ``initializationOptions``; a folder is trusted when the client says so or nothing (interface)."""
    settings: Any = options.get("settings")
    values = own_settings(cast("dict[str, Any]", settings)) if isinstance(settings, dict) else {}
    trusted: Any = options.get("trusted")
    word = None if trusted is None else trusted is True
    return ClientSettings(word is not False, word, values)


def changed(before: ClientSettings, values: Mapping[str, Any]) -> ClientSettings:
    """From ``workspace/didChangeConfiguration``; ``trusted`` there tells that the user came to trust the folder, or no longer does."""
    trusted: Any = values.get("trusted")
    own = {**before.values, **own_settings(values)}
    word = trusted if isinstance(trusted, bool) else before.word
    return ClientSettings(word is not False, word, own)


def without_client_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Editor settings without those that only the editor's client reads; the rest has the names of ``tamis.toml``."""
    return {name: value for name, value in settings.items() if name.split(".")[0] not in NAMES}


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Settings laid over others, table by table."""
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            result[name] = merged(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            result[name] = value
    return result


def prompt_view(session: Session, snapshot: Snapshot) -> PromptView:
    """How prompts are shown to this client: its settings ``prompt.protocol`` and ``prompt.encoding``, else the folder's default."""
    from tamis.server.analysis.hover.tools import PROTOCOLS, PromptView

    wanted = session.workspace.client.get("prompt.protocol")
    config = snapshot.settings.config
    default = config.protocol.default if config is not None else "action"
    encoding = session.workspace.client.get("prompt.encoding")
    return PromptView(
        wanted if wanted in PROTOCOLS else default, "cl100k_base" if encoding == "cl100k_base" else "o200k_base"
    )
