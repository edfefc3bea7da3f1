"""What a result holds as content of MCP: pure, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tamis.server.mcp.content import call_result
from tamis.server.mcp.revisions import Peer
from tamis.server.runtime.calls.runner import empty_result

IMAGE = {"type": "image", "data": "AAEC", "mimeType": "image/png"}


def shown(output: object, parts: list[dict[str, Any]]) -> dict[str, Any]:
    result = replace(empty_result("c", "t:t", "success", version="1.0.0"), output=output, parts=parts)
    return call_result(result, Peer(version="2025-11-25", modern=False), has_schema=False)


def test_parts_beside_structured_content_reach_the_client() -> None:
    """F10: an MCP server's image beside its structured content is passed on."""
    made = shown({"n": 3}, [IMAGE])
    assert [part["type"] for part in made["content"]] == ["text", "image"]
    assert made["structuredContent"] == {"n": 3}


def test_parts_that_are_the_output_come_once() -> None:
    """F10."""
    assert shown([IMAGE], [IMAGE])["content"] == [IMAGE]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///etc/passwd", "name": "x"},
    ],
)
def test_a_part_that_no_client_can_take_is_left_out(part: dict[str, Any]) -> None:
    assert [part["type"] for part in shown({"n": 3}, [part])["content"]] == ["text"]
