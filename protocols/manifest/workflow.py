"""A workflow's interface as a tool definition (seed 004 §2.3, rulings 36).

Pure: a workflow file's JSON in, ``{name, description, parameters}`` out. Must not know engines or files.
"""

from __future__ import annotations

from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

PREFIX = "workflow:"
_TYPES = {
    "STRING": "string",
    "INTEGER": "integer",
    "FLOAT": "number",
    "BOOLEAN": "boolean",
    "OBJECT": "object",
    "ARRAY": "array",
}


def workflow_tool(workflow_id: str, workflow: dict[str, Json]) -> dict[str, Json]:
    """The tool definition of a workflow; ``workflow_id`` is its file's name without the extension (W02, W05 to W13). The interface is that of
    seed 004 (``interfaceInputs``), or the ``inputInterface`` of seed 000 §7.1 (A42).

    Inputs keep their order. A type without a JSON counterpart (``BINARY``, ``WILDCARD``, ``CONVERTIBLE_ANY``) has no ``type``, only its
    description. Defaults are not taken over: the seed's worked example has none.
    """
    description = workflow.get("description")
    return {
        "name": f"{PREFIX}{workflow_id}",
        "description": description if isinstance(description, str) else "",
        "parameters": slot_parameters(workflow.get("interfaceInputs", workflow.get("inputInterface"))),
    }


def slot_parameters(inputs: Json) -> dict[str, Json]:
    """The schema of the parameters that fill input slots: of a workflow's interface, or of a node (seed 004 §2.3, ruling 36)."""
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for name, slot in inputs.items() if is_object(inputs) else ():
        declared = slot if is_object(slot) else {}
        properties[name] = _property(declared)
        if declared.get("required") is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _property(declared: dict[str, Json]) -> dict[str, Json]:
    schema: dict[str, Json] = {}
    kind = declared.get("dataFlowType")
    if isinstance(kind, str) and kind in _TYPES:
        schema["type"] = _TYPES[kind]
    for field in ("description", "customDescription", "displayName"):
        text = declared.get(field)
        if isinstance(text, str) and text:
            schema["description"] = text
            break
    values = _choices(declared)
    if values:
        schema["enum"] = values
    if declared.get("x-secret") is True:
        schema["x-secret"] = True
    return schema


def _choices(declared: dict[str, Json]) -> list[Json]:
    """Suggestions are the only allowed values just where the input is a combo box (W11)."""
    categories = declared.get("matchCategories")
    config = declared.get("config")
    suggestions = config.get("suggestions") if is_object(config) else declared.get("suggestions")
    if not is_list(categories) or "ComboOption" not in categories or not is_list(suggestions):
        return []
    return [item["value"] if is_object(item) and "value" in item else item for item in suggestions]
