"""Workflow files of other projects get one finding that names them, never a cascade or silence (F9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import message
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.workflow.reading import KINDS, foreign_kind, is_meant, read_workflow
from tamis.server.runtime.runtime import Runtime

COMFY_NODE = {"id": 3, "type": "KSampler", "pos": [1, 2], "inputs": [], "outputs": [], "widgets_values": [1]}
FILES: dict[str, Any] = {
    "comfyui-api": {
        "3": {"class_type": "KSampler", "inputs": {"seed": 1, "model": ["4", 0]}},
        "4": {"class_type": "X", "inputs": {}},
    },
    "comfyui": {
        "last_node_id": 3,
        "last_link_id": 1,
        "nodes": [COMFY_NODE],
        "links": [[1, 3, 0, 4, 0, "MODEL"]],
        "version": 0.4,
    },
    "n8n": {
        "name": "Mail",
        "nodes": [
            {"parameters": {}, "name": "Start", "type": "n8n-nodes-base.start", "typeVersion": 1, "position": [1, 2]}
        ],
        "connections": {"Start": {"main": [[{"node": "Mail", "type": "main", "index": 0}]]}},
    },
    "node-red": [
        {"id": "t", "type": "tab", "label": "Flow"},
        {"id": "a", "type": "inject", "z": "t", "wires": [["b"]]},
    ],
    "langflow": {"name": "Chat", "data": {"nodes": [{"id": "a", "data": {}}], "edges": [], "viewport": {}}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_foreign_workflow_gets_one_finding_that_names_it(kind: Any) -> None:  # F9
    text = json.dumps(FILES[kind], indent=1)
    reading = read_workflow(text, "w")
    assert reading.workflow is None
    (found,) = reading.diagnostics
    assert (found.code, found.data["shape"]) == ("WF924", kind)
    assert KINDS[kind] in message(found)
    assert is_meant(text, reading.tree.root)


@pytest.mark.parametrize("kind", KINDS)
def test_a_foreign_workflow_in_a_workflow_folder_is_told(
    kind: Any, tmp_path: Path
) -> None:  # F9: not passed over in silence
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "w.json").write_text(json.dumps(FILES[kind]))
    (tmp_path / "tamis.toml").write_text('workflows = ["flows"]\n')
    (error,) = Runtime(tmp_path).registry.errors
    assert KINDS[kind] in error.message


@pytest.mark.parametrize(
    "data",
    [
        {"nodes": [], "edges": []},
        {"interfaceInputs": [], "interfaceOutputs": [], "nodes": [{"id": "a", "type": "core:x"}], "edges": []},
        {"data": {"nodes": 1}},
        {"3": {"class_type": "X"}, "name": "mine"},
        [{"id": "a"}],
        [],
        {},
        {"nodes": [], "links": []},
    ],
)
def test_what_may_be_ours_is_no_foreign_workflow(data: Any) -> None:  # F9
    assert foreign_kind(parse_json(json.dumps(data)).root) is None


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["nodes", "links", "connections", "data", "edges", "wires", "type", "class_type", "3"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_any_json_has_a_reading(data: Any) -> None:
    reading = read_workflow(json.dumps(data), "w")
    assert reading.workflow is not None or reading.diagnostics
