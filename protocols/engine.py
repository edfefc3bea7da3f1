"""What every protocol does alike with a whole text or with results (V01); the protocols import it when they are first asked.

Must not know how any protocol is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.model import Call, ReadOptions
from tamis.protocols.observation import Style, observation
from tamis.protocols.reader import read_text


def parse_tool_requests(protocol: str, text: str, options: ReadOptions | None = None) -> list[Call]:
    """The calls of a text in one registered protocol; see ``CallProtocol``."""
    return read_text(text, protocol, options).calls


def format_tool_results(style: Style, results: Sequence[ExecutionResult]) -> str:
    """The observations of several results, one below the other; see ``CallProtocol``."""
    return "\n".join(observation(result, style) for result in results)
