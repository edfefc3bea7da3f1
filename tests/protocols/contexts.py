"""Blocks, and the contexts in which they are set aside or not."""

from __future__ import annotations

ACTION = "<ACTION><Danger><path>/etc/x</path></Danger></ACTION>"


LINES = "<ACTION>\n<Danger>\n<path>/etc/x</path>\n</Danger>\n</ACTION>"


TAM = "<|[REQUEST_TOOL]|>\ncommand:»»»Danger«««\npath:»»»/etc/x«««\n<|[END_TOOL]|>"


VCP = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Danger「末」,\npath:「始」/etc/x「末」\n<<<[END_TOOL_REQUEST]>>>"


BLOCKS = {"one line": ACTION, "lines": LINES, "tam": TAM, "vcp": VCP}


def prefixed(prefix: str, block: str) -> str:
    """A block with a prefix before each line."""
    return "\n".join(prefix + line for line in block.split("\n"))


SET_ASIDE = {
    "reasoning": "<think>\n{}\n</think>\nNo.",
    "reasoning, nested": "<think><think>a</think>{}</think>",
    "reasoning, unclosed": "Hm.\n<Reasoning effort='high'>\n{}\n",
    "reasoning, full-width": "＜ｔｈｉｎｋ＞\n{}\n",
    "reasoning, invisible character inside": "<th\u200bink>\n{}\n",
    "reasoning, closer only": "{}\nNo, that is wrong.\n</think>\nDone.",
    "reasoning, second closer": "<think>a</think>\n\n{}\n\n</think>Done.",
    "reasoning, other bracket": "[THINK]{}[/THINK]",
    "reasoning, triangle": "◁think▷{}◁/think▷",
    "harmony": "<|channel|>analysis<|message|>{}<|end|>",
    "harmony, next channel": "<|channel|>analysis<|message|>{}<|channel|>final<|message|>No.",
    "comment": "<!-- {} -->",
    "comment, unclosed": "Text.\n<!--\n{}\n",
    "comment, full-width": "＜!--\n{}\n",
    "quote": "You wrote:\n\n> {}\n\nNo.",
    "quote in a list": "- a\n- > {}\n",
    "fence": "```\nfor example\n{}\n```",
    "fence with text behind": "```\n{}\n```\nThat is how it is done.",
    "fence in a list": "- so:\n- ```xml\n  {}\n  ```\n\nlater",
    "tilde fence": "~~~\nx\n{}\n~~~",
    "fence, unclosed": "```\nx\n{}\n",
    "element": "See <code>{}</code>.",
    "element with attributes": "<PRE class='a > b'\n id=\"x\">\n{}\n</PRE>",
    "element, nested": "<pre><pre>a</pre>{}</pre>",
    "element, unclosed": "Text.\n  <template>\n{}\n",
    "code": "Write `{}` so.",
    "code, several ticks": "Write `` `a` {} `` so.",
    "quotation marks": 'He wrote "{}" to me.',
    "other quotation marks": "He wrote “{}” to me.",
    "French": "Il a dit « {} » hier.",
    "German": "Er schrieb „{}“ gestern.",
    "Chinese": "他说『{}』。",
    "echo": "<tool_response>\n{}\n</tool_response>\nDone.",
    "echo of ours": '<OBSERVATION tool_id="a:b">Output: "{}"</OBSERVATION>\nDone.',
    "observation": "Observation: it said {} and more.\n\nDone.",
    "observation with a blank line": 'Observation: Result: {{"a": "x\n\n{}"}}\n\nDone.',
    "turn": "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\nNo.",
    "turn of Llama": "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>",
    "turn of Mistral": "[INST] {} [/INST] no",
    "turn of Gemma": "<start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\nNo.",
    "turn of Zephyr": "<|user|>\n{}\n<|assistant|>\nNo.",
    "summary": "[[VCP调用结果信息汇总:\n{}\nVCP调用结果结束]]",
}


PREFIXES = [
    "// ",
    "//",
    "# ",
    "## ",
    " * ",
    "+",
    "-",
    "| ",
    "> ",
    ">",
    "; ",
    "% ",
    "-- ",
    "12:00:01 INFO ",
    "[INFO] ",
    "$ ",
    "… ",
    "||",
    "::",
]
