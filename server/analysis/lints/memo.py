"""Findings that are kept with the container that they are about.

Built on what the tree says of unchanged parts (``protocols/jsontext/tree.py``). Must not know what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from tamis.protocols.jsontext.tree import JsonNode, memo_of

T = TypeVar("T")


def kept(node: JsonNode, key: Hashable, look: Callable[[], T]) -> T:
    """What ``look`` finds in a container, found once as long as the container's text stays as it is."""
    memo = memo_of(node)
    found = memo.get(key)
    if found is None:
        found = memo[key] = look()
    return cast("T", found)
