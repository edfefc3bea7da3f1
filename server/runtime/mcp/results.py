"""What an MCP tool gave, as the output or the error of a call. Pure."""

from __future__ import annotations

from typing import Any, cast

import msgspec

MAX_WORDS = 4_000


class Given(msgspec.Struct, frozen=True):
    """The result of `tools/call`: `output`, or with `failed` the words of the failure."""

    output: Any = None
    failed: bool = False
    words: str = ""


def read_result(result: dict[str, Any]) -> Given:
    """Structured content is the output as it is; else one text is the text, and anything else the list of content parts.

    Parts keep the server's own form (`{type: "image", data, mimeType}` and so on), so that nothing is lost. A failure (`isError`)
    is told in the words of its text parts.
    """
    kind = result.get("resultType")
    if kind not in (None, "complete"):
        return Given(
            failed=True,
            words=f"the server answered with '{kind}', which is not offered here: it wants input, or a task",
        )
    content = result.get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else []
    texts = [text for part in parts if (text := _text_of(part)) is not None]
    if result.get("isError") is True:
        return Given(failed=True, words="\n".join(texts)[:MAX_WORDS] or "the tool failed and said nothing")
    if "structuredContent" in result and result["structuredContent"] is not None:
        return Given(output=result["structuredContent"])
    if len(parts) == 1 and len(texts) == 1:
        return Given(output=texts[0])
    return Given(output=parts)


def _text_of(part: object) -> str | None:
    if not isinstance(part, dict):
        return None
    content = cast("dict[str, Any]", part)
    text = content.get("text")
    return text if content.get("type") == "text" and isinstance(text, str) else None
