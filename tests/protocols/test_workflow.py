"""Workflows as tools: the worked example of seed 004 and its mapping rules (W05-W13, ruling 36)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tamis.protocols.manifest.workflow import workflow_tool

SUMMARIZE = json.loads("""
{
  "description": "对提供的长文本进行摘要。当需要理解大量文本的核心内容时使用。",
  "interfaceInputs": {
    "text_to_summarize": {
      "description": "需要进行摘要处理的原始长文本内容。",
      "dataFlowType": "STRING",
      "required": true
    },
    "summary_length": {
      "description": "期望的摘要长度。",
      "dataFlowType": "STRING",
      "required": false,
      "matchCategories": ["ComboOption"],
      "config": {
        "default": "中等",
        "suggestions": [{ "value": "简短" }, { "value": "中等" }, { "value": "详细" }]
      }
    }
  },
  "interfaceOutputs": {
    "summary_result": { "description": "生成的摘要文本。", "dataFlowType": "STRING" }
  }
}
""")
EXPECTED = json.loads("""
{
  "name": "workflow:summarize_text",
  "description": "对提供的长文本进行摘要。当需要理解大量文本的核心内容时使用。",
  "parameters": {
    "type": "object",
    "properties": {
      "text_to_summarize": {
        "type": "string",
        "description": "需要进行摘要处理的原始长文本内容。"
      },
      "summary_length": {
        "type": "string",
        "description": "期望的摘要长度。",
        "enum": ["简短", "中等", "详细"]
      }
    },
    "required": ["text_to_summarize"]
  }
}
""")


def one(declared: dict[str, Any]) -> dict[str, Any]:
    made: Any = workflow_tool("w", {"interfaceInputs": {"x": declared}})
    return made["parameters"]["properties"]["x"]


def test_the_worked_example_comes_out_exactly() -> None:  # W05-W13
    made = workflow_tool("summarize_text", SUMMARIZE)
    assert json.dumps(made, ensure_ascii=False) == json.dumps(EXPECTED, ensure_ascii=False)


@pytest.mark.parametrize(
    ("kind", "mapped"),
    [
        ("STRING", "string"),
        ("INTEGER", "integer"),
        ("FLOAT", "number"),
        ("BOOLEAN", "boolean"),
        ("OBJECT", "object"),
        ("ARRAY", "array"),
    ],
)
def test_each_type_maps_as_the_seed_says(kind: str, mapped: str) -> None:  # W10
    assert one({"dataFlowType": kind}) == {"type": mapped}


@pytest.mark.parametrize("kind", ["BINARY", "WILDCARD", "CONVERTIBLE_ANY"])
def test_a_type_without_a_counterpart_has_a_description_only(kind: str) -> None:  # W10, ruling 36
    assert one({"dataFlowType": kind, "description": "d"}) == {"description": "d"}


def test_other_names_of_the_description_are_read_when_it_is_missing() -> None:  # W09, ruling 36
    assert one({"customDescription": "c", "displayName": "n"}) == {"description": "c"}
    assert one({"displayName": "n"}) == {"description": "n"}


def test_suggestions_without_a_combo_box_are_no_enum() -> None:  # W11
    assert "enum" not in one({"config": {"suggestions": [{"value": 1}]}})
    assert "enum" not in one({"matchCategories": ["Other"], "config": {"suggestions": [{"value": 1}]}})


@pytest.mark.parametrize("broken", [{}, {"interfaceInputs": 3}, {"interfaceInputs": {"x": 3}}, {"description": 3}])
def test_a_broken_workflow_gives_a_definition_and_never_raises(broken: dict[str, Any]) -> None:
    assert workflow_tool("w", broken)["name"] == "workflow:w"
