"""The npm registries that a build may reach: the configured ones that the operator's list allows, and the installer's own settings.

Must not know installers.
"""

from __future__ import annotations

import os

from tamis.sandbox import host
from tamis.sandbox.environments.indexes import IndexUrl, allow_list, parse_index, require_configured, shown_url
from tamis.sandbox.environments.model import DependencyFault, Options
from tamis.sandbox.environments.npm_files import NPM_LOCKS, Locked
from tamis.sandbox.environments.npmrc import PUBLIC_REGISTRY, NpmSettings

_AUTHORITIES = "/opt/authorities.pem"
_NOWHERE = "http://refused.invalid"


def certificates_of(settings: NpmSettings) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The file of authorities as the installer sees it, and what must be shown for it."""
    layout = host.root_layout()
    if not settings.certificates or not os.path.isfile(settings.certificates):
        return layout.certificates or "", ()
    real = os.path.realpath(settings.certificates)
    if real.startswith("/usr/") or any(real.startswith(f"{place}/") for place in layout.shared):
        return real, ()
    return _AUTHORITIES, ((real, _AUTHORITIES),)


class Registries:
    """The registries that a build reaches: the default, and the ones of scopes."""

    def __init__(self, settings: NpmSettings, options: Options, names: tuple[str, ...]) -> None:
        self._allowed = allow_list(options.indexes)
        self.default = self._registry(*settings.registry)
        self._scopes: list[tuple[str, IndexUrl | None]] = []
        used = {name.partition("/")[0].lower() for name in names if name.startswith("@")}
        for scope, text, where in settings.scopes:
            try:
                self._scopes.append((scope, self._registry(text, where)))
            except DependencyFault:
                if scope in used:
                    raise
                # a package of this scope further down must not come from another registry under the same name
                self._scopes.append((scope, None))
        self._known = [self.default, *(url for _, url in self._scopes if url is not None)]
        self.rules = tuple(dict.fromkeys(url.rule for url in self._known))

    def _registry(self, text: str, where: str) -> IndexUrl:
        url = parse_index(text, where)
        if url.scheme == "file":
            raise DependencyFault(
                f"the npm registry {url.text} ({where}) is a folder",
                cause="refused",
                remedy="configure a registry that is reached by http or https",
            )
        require_configured(url, self._allowed, where)
        return url

    def npmrc(self, certificates: str) -> bytes:
        """The installer's whole configuration."""
        lines = [f"registry={self.default.text}/"]
        lines.extend(f"{scope}:registry={url.text if url else _NOWHERE}/" for scope, url in self._scopes)
        if certificates:
            lines.append(f"cafile={certificates}")
        return ("\n".join(lines) + "\n").encode()

    def check_addresses(self, locked: Locked, lock: str) -> tuple[str, ...]:
        """The hosts that a lock file adds. Raises `DependencyFault` for an address that neither a package manager is configured
        for nor the operator named."""
        rules: list[str] = []
        # npm reads this address as "the registry that is configured", and it is taken out of the lock file anyway
        public = [parse_index(PUBLIC_REGISTRY, "the default")] if lock in NPM_LOCKS else []
        for name, text in locked.addresses:
            url = parse_index(text.partition("?")[0].partition("#")[0], f"{lock}, '{name}'")
            if any(known.holds(url) for known in (*self._known, *public)):
                continue
            if not any(known.holds(url) for known in self._allowed):
                raise DependencyFault(
                    f"{lock} wants '{name}' from {shown_url(text)}, which is no configured registry",
                    cause="refused",
                    remedy="write the lock file again with the configured registry, or let the operator name this one in dependencies.indexes",
                    package=name,
                )
            rules.append(url.rule)
        return tuple(rules)
