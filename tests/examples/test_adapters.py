"""`examples/adapters`: the tools of a folder in other people's libraries, in ten to twenty lines each."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = ROOT / "examples" / "adapters"
SESSIONS = Path(__file__).with_name("adapter_sessions.py")
PACKAGES = {
    "langchain": ["langchain-core"],
    "openai_agents": ["openai-agents"],
    "anthropic": ["anthropic"],
    "pydantic_ai": ["pydantic-ai-slim"],
    "smolagents": ["smolagents"],
    "litellm": ["litellm", "mcp"],  # which it imports and does not declare (1.106)
}


# it installs the library and what it needs, up to 200 MB
@pytest.mark.long
@pytest.mark.parametrize("library", PACKAGES)
def test_a_model_of_the_library_calls_a_tool_and_learns_of_a_wrong_call(library: str, tmp_path: Path) -> None:
    """The real library, a scripted model: a good call gives its observation, a wrong one the words to do better by."""
    venv.create(tmp_path / "v", with_pip=True)
    python = tmp_path / "v" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", ROOT, *PACKAGES[library]], check=True)
    done = subprocess.run(
        [python, SESSIONS, library, ROOT / "examples"],
        env=os.environ | {"PYTHONPATH": str(ADAPTERS), "OPENAI_API_KEY": "none"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    good, wrong = json.loads(done.stdout.splitlines()[-1])
    assert '"words": 2' in good
    assert "Unknown parameter 'txt', did you mean 'text'?" in wrong


def test_every_adapter_has_its_session() -> None:
    names = {node.name for node in ast.parse(SESSIONS.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}
    assert names == set(PACKAGES)
    assert len(list(ADAPTERS.glob("*.py"))) == len(PACKAGES)


@pytest.mark.parametrize("path", sorted(ADAPTERS.glob("*.py")), ids=lambda path: path.name)
def test_an_adapter_is_short_and_starts_with_what_to_install(path: Path) -> None:
    text = path.read_text("utf-8")
    code = [line for line in text.splitlines() if line.strip()]
    assert 10 <= len(code) <= 25
    docstring = ast.get_docstring(ast.parse(text)) or ""
    assert "pip install tamis " in docstring
