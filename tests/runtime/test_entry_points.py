"""``handler.entryPoint`` calls one function of the script, in every language (D35)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.node_runtime import NODE, bun
from tests.runtime.test_execute import error_of, run_tool
from tests.toolbox import SUFFIXES, make_tool

PYTHON = """
print("loading")
def greet(text, times=1):
    print("called")
    return {"said": [text] * times}
async def later(text):
    return text
class Group:
    @staticmethod
    def inner(text):
        return "inner " + text
"""
JAVASCRIPT = """
console.log("loading");
exports.greet = ({ text, times = 1 }) => { console.log("called"); return { said: Array(times).fill(text) }; };
exports.later = async ({ text }) => text;
exports.Group = { inner: ({ text }) => "inner " + text };
"""
TYPESCRIPT = """
console.log("loading");
export function greet({ text, times = 1 }: { text: string; times?: number }) { return { said: Array(times).fill(text) }; }
export const later = async ({ text }: { text: string }) => text;
export const Group = { inner: ({ text }: { text: string }) => "inner " + text };
"""
SOURCES = {"python": PYTHON, "nodejs": JAVASCRIPT, "bun": TYPESCRIPT}


def call(folder: Path, language: str, entry: str) -> Any:
    handler = {
        "type": "external-script",
        "scriptPath": f"tool.{SUFFIXES[language]}",
        "language": language,
        "entryPoint": entry,
    }
    make_tool(folder, "test:entry", SOURCES[language], language=language, handler=handler)
    interpreters = {"nodejs": NODE, "bun": bun()} if language != "python" else {}
    return run_tool(folder, "test:entry", {"text": "你好"}, settings={"sandbox": {"interpreters": interpreters}})


@pytest.mark.parametrize("language", SOURCES)
@pytest.mark.parametrize(
    ("entry", "output"),
    [("greet", {"said": ["你好"]}), ("later", "你好"), ("Group.inner", "inner 你好")],
    ids=["function", "asynchronous", "nested"],
)
def test_the_named_function_is_called_with_the_arguments(
    tmp_path: Path, language: str, entry: str, output: object
) -> None:
    result = call(tmp_path, language, entry)
    assert (result.status, result.output) == ("success", output), result
    assert "stderr: loading" in result.logs


@pytest.mark.parametrize("language", SOURCES)
def test_a_name_that_is_no_function_is_said(tmp_path: Path, language: str) -> None:
    error = error_of(call(tmp_path, language, "nothing"))
    assert error["type"] == "ScriptError"
    assert "entryPoint: nothing is no" in error["details"]["text"]
