"""``handler.entryPoint`` calls one function of the script, in every language (D35)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.node_runtime import NODE, bun
from tests.runtime.run_tool import error_of, run_tool
from tests.sample_tools import SUFFIXES, make_tool

PYTHON = """
import asyncio, os, subprocess, sys
print("loading")
def greet(text, times=1):
    print("called")
    return {"said": [text] * times}
async def later(text):
    await asyncio.sleep(0)
    return text
class Group:
    prefix = "inner "
    @staticmethod
    def inner(text):
        return "inner " + text
    @classmethod
    def of_class(cls, text):
        return cls.prefix + text
    def of_instance(self, text):
        return self.prefix + text
group = Group()
def noisy(text):
    os.write(1, b"by descriptor")
    subprocess.run(["/bin/echo", "by a child"], check=True)
    sys.stdout.write("by the stream")
    return text
def nothing(text):
    pass
def fails(text):
    raise ValueError("no " + text)
def odd(text):
    return {"a": {text}}
def endless(text):
    return [float("nan")]
def half(text):
    return "\\ud800"
not_a_function = 1
"""
JAVASCRIPT = """
const cp = require("node:child_process");
console.log("loading");
class Group {
  static prefix = "inner ";
  static of_class({ text }) { return this.prefix + text; }
  of_instance({ text }) { return Group.prefix + text; }
}
exports.greet = ({ text, times = 1 }) => { console.log("called"); return { said: Array(times).fill(text) }; };
exports.later = async ({ text }) => text;
exports.Group = Object.assign(Group, { inner: ({ text }) => "inner " + text });
exports.group = new Group();
exports.noisy = ({ text }) => { process.stdout.write("by the stream"); console.table([1]); console.dir({ a: 1 }); return text; };
exports.nothing = () => {};
exports.fails = ({ text }) => { throw new Error("no " + text); };
exports.odd = ({ text }) => ({ a: new Set([text]) });
exports.endless = () => [NaN];
exports.big = () => ({ n: 10n });
exports.loop = () => { const a = {}; a.a = a; return a; };
exports.made = () => () => 1;
exports.kept = ({ text }) => { setInterval(() => {}, 1000); return text; };
exports.half = () => "\\ud800";
"""
TYPESCRIPT = """
console.log("loading");
type Text = { text: string };
class Group {
  static prefix: string = "inner ";
  static inner({ text }: Text) { return "inner " + text; }
  static of_class({ text }: Text) { return this.prefix + text; }
  of_instance({ text }: Text): string { return Group.prefix + text; }
}
export { Group };
export const group = new Group();
export function greet({ text, times = 1 }: Text & { times?: number }) { console.log("called"); return { said: Array(times).fill(text) }; }
export const later = async ({ text }: Text): Promise<string> => text;
export const noisy = ({ text }: Text) => { process.stdout.write("by the stream"); console.table([1]); console.dir({ a: 1 }); return text; };
export const nothing = () => {};
export const fails = ({ text }: Text) => { throw new Error("no " + text); };
export const odd = ({ text }: Text) => ({ a: new Set([text]) });
export const endless = () => [NaN];
export const half = () => "\\ud800";
export default { inner: ({ text }: Text) => "default " + text };
"""
SOURCES = {"python": PYTHON, "nodejs": JAVASCRIPT, "bun": TYPESCRIPT}


def call(root: Path, language: str, entry: str, source: str = "", name: str = "", **sandbox: Any) -> Any:
    path = name or f"tool.{SUFFIXES[language]}"
    handler = {"type": "external-script", "scriptPath": path, "language": language, "entryPoint": entry}
    folder = make_tool(root, "test:entry", "", language=language, handler=handler)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(source or SOURCES[language], "utf-8")
    interpreters = {"nodejs": NODE, "bun": bun()} if language != "python" else {}
    return run_tool(
        root, "test:entry", {"text": "你好"}, settings={"sandbox": {"interpreters": interpreters, **sandbox}}
    )


@pytest.mark.parametrize("language", SOURCES)
@pytest.mark.parametrize(
    ("entry", "output"),
    [
        ("greet", {"said": ["你好"]}),
        ("later", "你好"),
        ("Group.inner", "inner 你好"),
        ("Group.of_class", "inner 你好"),
        ("Group.of_instance", "inner 你好"),
        ("group.of_instance", "inner 你好"),
        ("nothing", None),
        ("half", "\ufffd"),
    ],
    ids=["function", "asynchronous", "nested", "class", "of-a-class", "of-an-object", "no-result", "half-a-pair"],
)
def test_the_named_function_is_called_with_the_arguments(
    tmp_path: Path, language: str, entry: str, output: object
) -> None:
    result = call(tmp_path, language, entry)
    assert (result.status, result.output) == ("success", output), result
    assert "stderr: loading" in result.logs


@pytest.mark.parametrize("language", SOURCES)
def test_what_the_function_prints_is_a_log(tmp_path: Path, language: str) -> None:
    result = call(tmp_path, language, "noisy")
    assert (result.status, result.output) == ("success", "你好"), result
    assert "by the stream" in "".join(result.logs)
    if language == "python":
        assert "by descriptor" in "".join(result.logs)
        assert "by a child" in "".join(result.logs)


@pytest.mark.parametrize("language", SOURCES)
def test_an_error_names_the_scripts_own_line(tmp_path: Path, language: str) -> None:
    error = error_of(call(tmp_path, language, "fails"))
    assert error["type"] == "ScriptError"
    lines = SOURCES[language].splitlines()
    at = next(number for number, line in enumerate(lines, 1) if '"no "' in line)
    assert "no 你好" in error["details"]["text"]
    wanted = f"line {at}, in fails" if language == "python" else f"tool.{SUFFIXES[language]}:{at}"
    assert wanted in error["details"]["text"], error["details"]["text"]
    assert language != "python" or "boot.py" not in error["details"]["text"]


@pytest.mark.parametrize(
    ("language", "entry", "cause"),
    [
        ("python", "odd", "type set is not JSON"),
        ("python", "endless", "is no JSON: Out of range float"),
        ("python", "Group", "of type Group, is no JSON"),
        ("nodejs", "odd", "'a' is Set"),
        ("nodejs", "endless", "'0' is NaN"),
        ("nodejs", "big", "'n' is bigint"),
        ("nodejs", "loop", "circular"),
        ("nodejs", "made", "it is a function"),
        ("bun", "odd", "'a' is Set"),
        ("bun", "endless", "'0' is NaN"),
    ],
)
def test_a_result_that_is_no_json_is_said(tmp_path: Path, language: str, entry: str, cause: str) -> None:
    source = PYTHON.replace("class Group:", "class Group:\n    def __init__(self, text=''): pass")
    error = error_of(call(tmp_path, language, entry, source if language == "python" else ""))
    assert error["type"] == "ScriptError"
    assert f"what {entry} returned" in error["details"]["text"]
    assert cause in error["details"]["text"], error["details"]["text"]


@pytest.mark.parametrize("language", SOURCES)
@pytest.mark.parametrize("entry", ["absent", "greet.more.still", "toString", "not_a_function"])
def test_a_name_that_is_no_function_is_said(tmp_path: Path, language: str, entry: str) -> None:
    error = error_of(call(tmp_path, language, entry))
    assert error["type"] == "ScriptError"
    assert f"entryPoint: {entry} is no" in error["details"]["text"]
    assert "greet" in error["details"]["text"].partition(";")[2]


def test_arguments_that_do_not_fit_are_named(tmp_path: Path) -> None:
    error = error_of(call(tmp_path, "python", "main", "def main(other): return other\n"))
    assert "unexpected keyword argument 'text'" in error["details"]["text"]


@pytest.mark.parametrize("language", ["nodejs", "bun"])
@pytest.mark.parametrize(
    ("name", "source", "entry"),
    [
        ("tool.mjs", "import fs from 'node:fs';\nexport const run = ({text}) => text + typeof fs.readFileSync", "run"),
        ("tool.mjs", "export default ({text}) => text + 'function'", "default"),
        ("tool.mjs", "export default { run: ({text}) => text + 'function' }", "run"),
        ("tool.cjs", "module.exports = { run: ({text}) => text + typeof require('fs').readFileSync }", "run"),
        ("tool.cjs", "module.exports = ({text}) => text + 'function'", "default"),
        ("tool.mjs", "const t = await Promise.resolve('function');\nexport const run = ({text}) => text + t", "run"),
    ],
    ids=["esm", "esm-default", "esm-default-object", "cjs", "cjs-function", "top-level-await"],
)
def test_both_module_systems_are_read(tmp_path: Path, language: str, name: str, source: str, entry: str) -> None:
    result = call(tmp_path, language, entry, source, name)
    assert (result.status, result.output) == ("success", "你好function"), result


def test_what_a_function_leaves_running_does_not_hold_the_answer_back(tmp_path: Path) -> None:
    result = call(tmp_path, "nodejs", "kept")
    assert (result.status, result.output) == ("success", "你好"), result


def test_a_script_in_a_package_imports_its_package(tmp_path: Path) -> None:
    folder = tmp_path / "test_entry"
    (folder / "pkg" / "inner").mkdir(parents=True)
    for place in ("pkg", "pkg/inner"):
        (folder / place / "__init__.py").write_text("")
    (folder / "pkg" / "words.py").write_text("word = 'word'\n")
    (folder / "pkg" / "inner" / "beside.py").write_text("word = 'beside'\n")
    source = "from ..words import word\nfrom . import beside\nimport beside as again\ndef main(text): return [word, beside.word, again.word]\n"
    result = call(tmp_path, "python", "main", source, "pkg/inner/tool.py")
    assert (result.status, result.output) == ("success", ["word", "beside", "beside"]), result


def test_a_sibling_called_like_the_boot_programs_module_is_itself(tmp_path: Path) -> None:
    folder = tmp_path / "test_entry"
    folder.mkdir()
    (folder / "__tool__x.py").write_text("here = 2\n")
    source = "import __tool__x as tool\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    b: 'int' = 1\ndef main(text): return [tool.here, A().b]\n"
    result = call(tmp_path, "python", "main", source, "other.py")
    assert (result.status, result.output) == ("success", [2, 1]), result


def test_typescript_runs_on_a_node_that_knows_it_and_is_refused_by_name_on_another(tmp_path: Path) -> None:
    result = call(tmp_path, "nodejs", "greet", TYPESCRIPT, "tool.ts")
    if result.status == "success":
        assert result.output == {"said": ["你好"]}
    else:
        error = error_of(result)
        assert error["type"] == "DependencyError"
        assert "is TypeScript, and Node.js" in error["message"]
