"""``fam://NAME/path`` to a file on disk, inside the folder that the operator gave the name (seed 002 §3.3, T17, T18).

A path that leaves the folder, runs through a link or is not there is refused with its cause. The file is shown to the tool
read-only at its own path, and the parameter's value is that path. Must not know calls.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from tamis.protocols.suggest import best, hint

SCHEME = "fam://"


class ResourceError(Exception):
    """Why a URI leads to no resource."""


def resolve_resource(uri: str, resources: Mapping[str, str], root: Path) -> str:
    """The real absolute path of a resource; raises ``ResourceError``."""
    # The walk that the sandbox trusts: component by component, no links.
    from tamis.sandbox.model import Refusal
    from tamis.sandbox.paths.walk import open_absolute, open_beneath

    if not uri.lower().startswith(SCHEME):
        raise ResourceError(f"'{uri}' is no {SCHEME} URI; resources are named fam://NAME/path")
    name, _, path = uri[len(SCHEME) :].partition("/")
    folder = resources.get(name)
    if folder is None:
        known = f"; known are {', '.join(sorted(resources))}" if resources else "; [resources] in tamis.toml names none"
        raise ResourceError(f"no resource folder '{name}' is configured{hint(best(name, resources)) or known}")
    top = os.path.realpath(root / folder)
    try:
        with open_absolute(top) as opened, open_beneath(opened, unquote(path)):
            return f"{top}/{unquote(path)}"
    except Refusal as refused:
        raise ResourceError(f"'{uri}': {refused.message}") from refused
    except OSError as error:
        raise ResourceError(f"'{uri}': {error.strerror}") from error
