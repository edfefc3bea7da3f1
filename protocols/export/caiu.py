"""A manifest as a CAIU, the record of a knowledge base (D87, seed 003 §6.1), for hosts that choose tools by retrieval.

``content.value`` is what is searched: names, description, parameters and output in words. ``extensions`` holds what a program needs, the
schemas among it. Must not know a knowledge base.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from tamis.protocols.export.losses import Losses
from tamis.protocols.export.targets import Exported, shown_parameters, worked_calls
from tamis.protocols.manifest.reading import Manifest
from tamis.protocols.prompt.parameters import Parameter, parameters_of
from tamis.protocols.schema.words import is_object

ENTRY_TYPE = "tool"
_MAX_EXAMPLES = 5


def caiu_record(manifest: Manifest, *, enabled: bool = True, usage: Mapping[str, Any] | None = None) -> Exported:
    """The record of a tool; its id is the same for every version of a tool. ``usage`` are counters of calls. Never raises."""
    losses = Losses()
    raw = manifest.raw
    parameters = shown_parameters(manifest, losses)
    extensions: dict[str, Any] = {
        "toolId": manifest.tool_id,
        "version": manifest.version,
        "handler": raw.get("handler", {}),
        "parametersSchema": parameters,
    }
    if manifest.output is not None:
        extensions["outputSchema"] = manifest.output
    if manifest.examples:
        extensions["examples"] = worked_calls(manifest)
    for key in ("securityContext", "execution", "aliases", "dependencies", "protocolConfig"):
        if raw.get(key):
            extensions[key] = raw[key]
    if usage:
        extensions["usage"] = dict(usage)
    words = dict.fromkeys((manifest.display_name, *manifest.tags, *manifest.aliases))
    record: dict[str, Any] = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"tamis:tool/{manifest.tool_id}")),
        "version": 1,
        "entry_type": ENTRY_TYPE,
        "displayName": manifest.display_name,
        "content": {"mime_type": "text/markdown", "value": _text(manifest, parameters)},
        "activation_criteria": {"keywords": list(words), "use_semantic_search": True},
        "management_metadata": {"tags": list(manifest.tags), "source": "tamis_export", "is_enabled": enabled},
        "tags": list(manifest.tags),
        "extensions": extensions,
    }
    return Exported(record, losses.found)


def _text(manifest: Manifest, parameters: dict[str, Any]) -> str:
    lines = [f"# {manifest.display_name}", "", manifest.description.strip()]
    declared = parameters_of(parameters)
    if declared:
        lines += ["", "## Parameters", "", *_lines(declared, "")]
    output = manifest.output
    told = parameters_of(output) if is_object(output) else ()
    about = output.get("description") if is_object(output) else None
    if told or isinstance(about, str):
        lines += ["", "## Output", "", *([about] if isinstance(about, str) else []), *_lines(told, "")]
    examples = [example.description.strip() for example in manifest.examples if example.description.strip()][
        :_MAX_EXAMPLES
    ]
    if examples:
        lines += ["", "## Examples", "", *(f"- {text}" for text in examples)]
    return "\n".join(lines)


def _lines(parameters: Sequence[Parameter], indent: str) -> list[str]:
    lines: list[str] = []
    for parameter in parameters:
        words = " ".join((parameter.description, *parameter.facts)).split()
        lines.append(
            f"{indent}- {parameter.name} ({parameter.type}{'' if parameter.required else ', optional'}): {' '.join(words)}".rstrip(
                ": "
            )
        )
        lines += _lines(parameter.parts, indent + "  ")
    return lines
