"""The texts that reading is measured with: ordinary messages of models in each protocol, and ways in which they go wrong."""

from __future__ import annotations

LINE = "some value with words in it, line after line\n"
PROSE = "I will write the file now.\n" * 8
FILLER = "prose line without anything\n" * 100


def message(size: int, *, cdata: bool) -> tuple[str, str]:
    """A message with one ACTION block of about ``size`` characters, and the block alone."""
    body = LINE * (size // len(LINE))
    value = f"<![CDATA[\n{body}]]>" if cdata else body
    block = f"<ACTION>\n  <write_file>\n    <path>src/app.ts</path>\n    <content>{value}</content>\n    <mode>replace</mode>\n  </write_file>\n</ACTION>"
    return f"{PROSE}{block}\nDone.", block


def inputs_message(size: int) -> tuple[str, str]:
    """The same in ACTION's other shape."""
    body = LINE * (size // len(LINE))
    block = f'<ACTION>\n  <tool_id>core:write-file</tool_id>\n  <inputs>\n    <input name="path">src/app.ts</input>\n    <input name="content">{body}</input>\n    <input name="mode">replace</input>\n  </inputs>\n</ACTION>'
    return f"{PROSE}{block}\nDone.", block


def tam_message(size: int) -> tuple[str, str]:
    """The same in TAM."""
    body = LINE * (size // len(LINE))
    block = f"<|[REQUEST_TOOL]|>\ncommand:»»»Files.write_file«««\npath:»»»src/app.ts«««\ncontent:»»»{body}«««\nmode:»»»replace«««\n<|[END_TOOL]|>"
    return f"{PROSE}{block}\nDone.", block


def vcp_message(size: int) -> tuple[str, str]:
    """The same in VCP."""
    body = LINE * (size // len(LINE))
    block = f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」Files_write_file「末」,\npath:「始」src/app.ts「末」,\ncontent:「始」{body}「末」,\nmode:「始」replace「末」\n<<<[END_TOOL_REQUEST]>>>"
    return f"{PROSE}{block}\nDone.", block


def log(block: str, count: int) -> str:
    """A transcript with ``count`` blocks and prose between them."""
    return "".join(FILLER + block.replace("src", f"s{n}") for n in range(count))


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new, 1)


MIDDLE = "with words in it, line"

ACTION_FAULTS = {
    "missing `</ACTION>`": ("</ACTION>", ""),
    "missing tool closer": ("  </write_file>\n", ""),
    "missing parameter closer": ("</path>", ""),
    "wrong parameter closer": ("</path>", "</file>"),
    "closer without slash": ("</path>", "<path>"),
    "doubled closer": ("</path>", "</path></path>"),
    "closer in other case": ("</path>", "</Path>"),
    "marker in lower case": ("<ACTION>", "<action>"),
    "raw `<` in the value": (MIDDLE, "with a < b in it, line"),
    "raw `&` in the value": (MIDDLE, "with a && b in it, line"),
    "markup in the value": (MIDDLE, "with <b>words</b> in it, line"),
    "own closer in the value": (MIDDLE, "with </content> in it, line"),
    "unterminated CDATA": ("<content>", "<content><![CDATA["),
    "text between parameters": ("</path>", "</path> and then"),
    "attribute on a parameter": ("<path>", '<path lang="ts">'),
    "repeated parameter": ("<mode>", "<path>b</path><mode>"),
    "control character": (MIDDLE, "with \x1b in it, line"),
    "`<` without `>`": ("<mode>", "<mode"),
}
TAM_FAULTS = {
    "`>>>` for `»»»`": ("path:»»»", "path:>>>"),
    "missing tail": ("src/app.ts«««", "src/app.ts"),
    "missing head": ("path:»»»", "path:"),
    "full-width colon": ("path:", "path："),
    "decorated key": ("path:", "- **path**:"),
    "unknown hint": ("mode:", "type_hint_path:»»»txt«««\nmode:"),
    "missing end marker": ("<|[END_TOOL]|>", ""),
}
VCP_FAULTS = {
    "missing 「末」": ("src/app.ts「末」", "src/app.ts"),
    "missing 「始」": ("path:「始」", "path:"),
    "`{始}` for `「始」`": ("path:「始」", "path:{始}"),
    "bare value": ("path:「始」src/app.ts「末」", "path: src/app.ts"),
    "two brackets": ("<<<[TOOL_REQUEST]>>>", "<<[TOOL_REQUEST]>>"),
    "full-width colon": ("path:", "path："),
    "text between pairs": ("path:", "and then\npath:"),
}


def faulty(text: str, fault: tuple[str, str]) -> str:
    """``text`` with one fault."""
    return _replaced(text, *fault)
