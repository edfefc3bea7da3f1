"""Three seams between a session's messages (`agent/session`) and a model's API, each a function of lists of `{role, content}`."""

import re
from collections.abc import Collection, Sequence
from typing import TypedDict


class Message(TypedDict):
    role: str
    content: str


def replaced(messages: Sequence[Message], pattern: str, by: str, roles: Collection[str]) -> list[Message]:
    """Rules on texts reach the messages of these roles alone: one for what the model says leaves what tools gave as it is."""
    return [
        {**message, "content": re.sub(pattern, by, message["content"])} if message["role"] in roles else message
        for message in messages
    ]


def inserted(messages: Sequence[Message], extra: Message, depth: int) -> list[Message]:
    """`extra` so many messages before the end, but never between an answer and the results of its calls: then in front of the answer."""
    at = max(0, len(messages) - depth)
    while 0 < at < len(messages) and messages[at]["role"] == "tool":
        at -= 1
    return [*messages[:at], extra, *messages[at:]]


def merged(messages: Sequence[Message], names: dict[str, str]) -> list[Message]:
    """Roles as the API names them (`{"tool": "user"}` where it has none for tools); neighbours of one role become one message."""
    made: list[Message] = []
    for message in messages:
        role = names.get(message["role"], message["role"])
        if made and made[-1]["role"] == role:
            made[-1]["content"] += "\n\n" + message["content"]
        else:
            made.append({"role": role, "content": message["content"]})
    return made
