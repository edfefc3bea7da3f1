"""Progress of an installation reaches the client that gave a token for it, before the response."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.environments.package_index import serving, wheel
from tests.rpc.inside import InsideClient
from tests.sample_tools import make_tool


def test_installing_is_told_to_the_clients_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    folder = make_tool(root, "t:needy", "import json, needle\nprint(json.dumps(needle.VERSION))\n")
    (folder / "requirements.txt").write_text("needle==1.0\n")
    (root / "tamis.toml").write_text('[policy]\nallowCidrs = ["127.0.0.0/8"]\npin = { "index.test" = "127.0.0.1" }\n')
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    seen: list[tuple[str, Any]] = []
    with serving() as index:
        index.add(wheel("needle", "1.0"))
        for name, value in {
            "PIP_CONFIG_FILE": os.devnull,
            "UV_NO_CONFIG": "1",
            "UV_DEFAULT_INDEX": index.url,
            "TAMIS_CACHE_DIR": str(tmp_path / "cache"),
            "TAMIS_STATE_DIR": str(tmp_path / "state"),
        }.items():
            monkeypatch.setenv(name, value)
        with InsideClient(root, on_notification=lambda method, params: seen.append((method, params))) as client:
            result = client.request("tool/execute", {"toolId": "t:needy", "workDoneToken": "w1"})
            assert result["output"] == "1.0", result
            told = [params for method, params in seen if method == "$/progress"]
            assert {params["token"] for params in told} == {"w1"}
            assert {params["value"]["callId"] for params in told} == {result["callId"]}
            messages = [params["value"]["message"] for params in told]
            assert messages[0] == "resolving" and "downloading 1 package" in messages and messages[-1] == "ready"
            seen.clear()
            assert client.request("tool/execute", {"toolId": "t:needy", "workDoneToken": 7})["output"] == "1.0"
            assert [method for method, _ in seen if method == "$/progress"] == []
