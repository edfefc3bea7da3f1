"""Whole documents for an empty file: a manifest, an agent profile. Must not know tools."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.json_slot import Slot
from tamis.server.analysis.snapshot import Snapshot


def skeletons(snapshot: Snapshot, slot: Slot) -> Iterator[Proposal]:
    """Whole documents, for an empty one."""
    span = slot.span
    if snapshot.kind != "manifest":
        text = '{\n  "tool_ids_inventory": []\n}'
        yield Proposal("agent profile", "block", span, text, '{\n  "tool_ids_inventory": [$0]\n}', detail="skeleton")
        return
    for label, handler, stops in (
        (
            "script tool",
            '"type": "external-script",\n    "scriptPath": "",\n    "language": "python"',
            '"type": "external-script",\n    "scriptPath": "$5",\n    "language": "${6|python,nodejs,bun|}"',
        ),
        (
            "service tool",
            '"type": "service-method",\n    "serviceName": "",\n    "methodName": ""',
            '"type": "service-method",\n    "serviceName": "$5",\n    "methodName": "$6"',
        ),
    ):
        yield Proposal(
            label,
            "block",
            span,
            _skeleton(("", "", "", "1.0.0"), handler, ""),
            _skeleton(("${1:custom:my-tool}", "$2", "$3", "${4:1.0.0}"), stops, "$0"),
            detail="manifest skeleton",
        )


def _skeleton(fields: tuple[str, str, str, str], handler: str, rest: str) -> str:
    tool_id, display, description, version = fields
    return (
        f'{{\n  "toolId": "{tool_id}",\n  "displayName": "{display}",\n  "description": "{description}",\n'
        f'  "version": "{version}",\n  "handler": {{\n    {handler}\n  }},\n'
        f'  "parameters": {{\n    "type": "object",\n    "properties": {{{rest}}},\n    "required": []\n  }}\n}}\n'
    )
