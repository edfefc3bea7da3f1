"""Texts that a session types, and what it types into them."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "all.md": """# 说明 😋

<ACTION><core:echo><text>你好 😋</text><mode>loud</mode></core:echo></ACTION>

```
<ACTION><tool_id>core:echo</tool_id><inputs><input name="text"><![CDATA[{"a": [1, "é"]}]]></input></inputs></ACTION>
```

<|[REQUEST_TOOL]|>
command_1: »»»core:echo«««
text_1: »»»多行
 值«««
command_2:»»»core:twin«««
<|[END_TOOL]|>

<<<[TOOL_REQUEST]>>>
tool_name:「始」core:echo「末」,
text:「始」{"k": "v"}「末」
<<<[END_TOOL_REQUEST]>>>
""",
    "second.md": "<think>\n<ACTION><core:twin/></ACTION></think>\r\nprose 😋 </ACTION>\r\n<ACTION><core:unknown><x>1</x></core:unknown></ACTION>\r\n",
    "calls.tam": "<|[REQUEST_TOOL]|>\ncommand: »»»core:echo«««\ntext: »»»x«««\n<|[END_TOOL]|>\n",
    "calls.vcp": "<<<[TOOL_REQUEST]>>>\ntool_name:「始」core:echo「末」\n<<<[END_TOOL_REQUEST]>>>\n",
    "names.tam": """<|[REQUEST_TOOL]|>
command_1: »»»workflow:sum«««
command_2: »»»workflow_sum«««
command_3: »»»flows/sum.json«««
command_4: »»»adder«««
command_5: »»»image:Blur«««
text_5: »»»a«««
command_6: »»»core_echo«««
<|[END_TOOL]|>
<tool_call>{"name": "core_echo", "arguments": {"text": "a"}}</tool_call>
""",
    "agent_profile.json": """{
  "tool_ids_inventory": ["core:echo", "core:missing", "workflow:sum", "image:Blur", "core_echo"],
  "toolCallConfig": {"maxIterations": 3}
}
""",
    "tamis.toml": """workflows = ["flows"]
[protocol]
fencedCalls = "run"
also = ["hermes"]
""",
    "flows/sum.json": """{
  "name": "Sum", "description": "Adds numbers up, for a test of this project.", "id": "adder",
  "interfaceInputs": {"values": {"dataFlowType": "ARRAY"}},
  "nodes": [{"id": "c", "type": "core:echo", "config": {"text": "x"}}]
}
""",
    "flows/twice.json": """{
  "description": "Adds numbers up twice, for a test of this project.",
  "nodes": [{"id": "a", "type": "workflow:sum"}, {"id": "b", "type": "image:Blur"}]
}
""",
    "image.node.json": """[
  {"fullType": "image:Blur", "description": "Blurs.", "toolId": "core:echo@^1", "inputs": {"text": {"dataFlowType": "STRING"}}},
  {"fullType": "image:Turn", "description": "Turns.", "toolId": "core:twin"}
]
""",
}


PIECES = [
    *("x", " ", "\n", "\r\n", "\r", "\t", "😋", "你好", "\u2028", "é", "0"),
    *("<ACTION>", "</ACTION>", "<core:echo>", "</text>", "<![CDATA[", "]]>", "<think>", "</", "<"),
    *("<|[REQUEST_TOOL]|>\n", "<|[END_TOOL]|>", "command_2: »»»core:echo«««\n", "text: »»»", "«««"),
    *("<<<[TOOL_REQUEST]>>>\n", "「始」", "「末」", "tool_name:", "<<<[END_TOOL_REQUEST]>>>"),
    *(
        '"',
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"toolId": "core:echo"',
        '"type": "string"',
        "// note\n",
        "/*",
        "null",
        "\\u00e9",
    ),
    *(
        "workflow:sum",
        "workflow_sum",
        "core_echo",
        "image:Blur",
        '"fullType": "image:Turn"',
        '"id": "adder"',
        '"nodes": [',
    ),
    *("```\n", "`", "<!-- ", "-->", "core:echo", "@1.0", "\x00"),
]
