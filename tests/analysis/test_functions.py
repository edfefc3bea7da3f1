"""Functions of scripts, found in their text: the spellings that people write, and what only looks like one (``handler.entryPoint``)."""

from __future__ import annotations

import pytest

from tamis.server.analysis.navigation.definition import find_function

# The place that is meant stands between bars.
PYTHON = {
    "def": "import x\n\ndef |run|(a):\n    pass\n",
    "async": "async  def |run|(a): ...\n",
    "decorated": "@tool\n@other(name='run')\ndef |run|(): ...\n",
    "outermost wins over a method": "class A:\n    def run(self): ...\n\ndef |run|(): ...\n",
    "of two the last counts": "def run(): ...\n\ndef |run|(): ...\n",
    "only indented": "if True:\n    def |run|(): ...\n",
    "assigned": "|run| = partial(main, 1)\n",
    "annotated": "|run|: Callable[[], int] = main\n",
    "a longer name is another": "def runner(): ...\ndef re_run(): ...\ndef |run|(): ...\n",
    "windows line ends": "x = 1\r\ndef |run|():\r\n    pass\r\n",
    "chinese before it": "# 你好 😋\ndef |run|(): ...\n",
}
SCRIPT = {
    "function": "function |run|(a) {}\n",
    "exported": "export async function |run|({ a }) {}\n",
    "default": "export default function |run|() {}\n",
    "generator": "export function* |run|() {}\n",
    "constant": "export const |run| = async ({ text }) => text;\n",
    "typed constant": "export const |run|: Handler = (a) => a;\n",
    "common js": "exports.|run| = (a) => a;\n",
    "module exports": "module.exports.|run| = function () {};\n",
    "exported object": "const main = 1;\nmodule.exports = { |run|() { return 1; } };\n",
    "object of names": "module.exports = {\n  a,\n  |run|: async (x) => x,\n};\n",
    "renamed export": "function main() {}\nexport { main as |run| };\n",
    "a comment is none": "// function run() {}\nfunction |run|() {}\n",
    "dollar names": "function run$() {}\nfunction |run|() {}\n",
}


def marked(text: str) -> tuple[str, tuple[int, int]]:
    before, name, after = text.split("|")
    return before + name + after, (len(before), len(before) + len(name))


@pytest.mark.parametrize("case", PYTHON)
def test_a_function_of_python(case: str) -> None:
    text, span = marked(PYTHON[case])
    assert find_function(text, "run", "/t/x.py") == span


@pytest.mark.parametrize("case", SCRIPT)
@pytest.mark.parametrize("suffix", ["js", "mts"])
def test_a_function_of_javascript_and_typescript(case: str, suffix: str) -> None:
    text, span = marked(SCRIPT[case])
    assert find_function(text, "run", f"/t/x.{suffix}") == span


def test_a_dotted_name_leads_through_its_class() -> None:
    text, span = marked("class B:\n    def run(self): ...\nclass A:\n    def |run|(self): ...\n")
    assert find_function(text, "A.run", "/t/x.py") == span
    text, span = marked("export class A {\n  async |run|({ text }) {\n  }\n}\n")
    assert find_function(text, "A.run", "/t/x.js") == span


@pytest.mark.parametrize("name", ["", "run", "a.b.c", "(", "ru+n"])
def test_what_is_not_there_is_not_found(name: str) -> None:
    for path in ("/t/x.py", "/t/x.ts"):
        assert find_function("call(run)\nprint('def run(): ...')\n", name, path) is None
