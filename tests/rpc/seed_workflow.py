"""The workflow of seed 004."""

from __future__ import annotations

SEED = """{
  // seed 004 §2.3.1
  "description": "对提供的长文本进行摘要。当需要理解大量文本的核心内容时使用。",
  "interfaceInputs": {
    "text_to_summarize": {"description": "需要进行摘要处理的原始长文本内容。", "dataFlowType": "STRING", "required": true},
    "summary_length": {
      "description": "期望的摘要长度。", "dataFlowType": "STRING", "required": false, "matchCategories": ["ComboOption"],
      "config": {"default": "中等", "suggestions": [{ "value": "简短" }, { "value": "中等" }, { "value": "详细" }]}
    }
  },
  "interfaceOutputs": {"summary_result": {"description": "生成的摘要文本。", "dataFlowType": "STRING"}}
}"""
