"""Workflows of ComfyUI and n8n as tools that their own engines run (F9)."""

from __future__ import annotations

import email
import email.policy
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import Tamis
from tests.protocols.workflow_files import comfyui_graph, n8n_form, n8n_workflow

Answer = Callable[[str, str, dict[str, str], bytes], tuple[int, str, bytes]]


class Engine(http.server.ThreadingHTTPServer):
    """A small engine on loopback: what it is asked, and what it answers."""

    answer: Answer

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    def json(self, status: int, value: Any) -> tuple[int, str, bytes]:
        return status, "application/json", json.dumps(value).encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Engine

    def _answered(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        asked = (self.command, self.path, dict(self.headers), body)
        self.server.asked.append(asked)
        status, media, data = self.server.answer(*asked)
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answered  # noqa: N815

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def engine() -> Iterator[Engine]:
    server = Engine()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def imported(tamis: Tamis, engine: Engine, kind: str, data: Any) -> None:
    """The file as a tool of the folder, whose settings open the engine."""
    pin = 'allowHosts = ["engine.test:*"]\nallowCidrs = ["127.0.0.0/8"]\npin = { "engine.test" = "127.0.0.1" }\n'
    (tamis.folder / "tamis.toml").write_text(f"[policy]\n{pin}")
    (tamis.folder / "flow.json").write_text(json.dumps(data))
    url = f"http://engine.test:{engine.server_port}"
    done = tamis("import", kind, "flow.json", "--out", "tools", "--base-url", url)
    assert done.code == 0, done.err


def comfyui(outcome: dict[str, Any], after: int = 2) -> Answer:
    """Takes a graph, and has the outcome in its history when it is asked for the ``after``-th time."""
    waited = iter(range(after - 1))

    def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        if method == "POST" and path == "/prompt":
            return Engine.json(None, 200, {"prompt_id": "p 1", "number": 1, "node_errors": {}})  # type: ignore[arg-type]
        assert (method, path) == ("GET", "/history/p%201")
        return 200, "application/json", json.dumps({} if next(waited, None) is not None else {"p 1": outcome}).encode()

    return answer


PICTURE = {"filename": "a b.png", "subfolder": "", "type": "output"}


def test_a_graph_of_comfyui_runs_with_the_values_of_the_call(tamis: Tamis, engine: Engine) -> None:  # F9
    engine.answer = comfyui({"status": {"status_str": "success"}, "outputs": {"9": {"images": [PICTURE]}}})
    imported(tamis, engine, "comfyui", comfyui_graph())
    assert tamis("check", "tools").code == 0
    done = tamis("call", "flow", "--args", json.dumps({"Positive_text": "a 'dog'\n", "seed": 2**64 - 1}))
    assert done.code == 0, done.out
    found = done.json()
    assert found["outputs"] == {"9": {"images": [PICTURE]}}
    (file,) = found["files"]
    assert file.endswith(f":{engine.server_port}/view?filename=a+b.png&subfolder=&type=output")
    graph = json.loads(engine.asked[0][3])["prompt"]
    wanted = comfyui_graph()
    wanted["6"]["inputs"]["text"] = "a 'dog'\n"
    wanted["3"]["inputs"]["seed"] = 2**64 - 1
    assert {key: node["inputs"] for key, node in graph.items()} == {key: n["inputs"] for key, n in wanted.items()}
    assert len(engine.asked) == 3


def test_a_node_of_comfyui_that_fails_is_named(tamis: Tamis, engine: Engine) -> None:  # F9
    details = {"node_id": "3", "node_type": "KSampler", "exception_message": "out of memory"}
    engine.answer = comfyui({"status": {"status_str": "error", "messages": [["execution_error", details]]}}, 1)
    imported(tamis, engine, "comfyui", comfyui_graph())
    failed = tamis("call", "flow", "--args", "{}")
    assert failed.code == 1
    assert "the workflow failed at node 3 (KSampler): out of memory" in failed.out


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((400, "application/json", b'{"error": {"message": "no model"}}'), "no model"),
        ((200, "application/json", b"{"), "no JSON"),
        ((200, "application/json", b"[" * 100_000), "no JSON"),
        ((200, "application/json", b'{"prompt_id": {}}'), "gave no prompt_id"),
        ((200, "text/plain", b""), "gave no prompt_id"),
    ],
)
def test_what_an_engine_should_not_answer_is_told_without_a_trace(
    tamis: Tamis, engine: Engine, answer: tuple[int, str, bytes], words: str
) -> None:  # F9: replies are hostile
    engine.answer = lambda *asked: answer
    imported(tamis, engine, "comfyui", comfyui_graph())
    failed = tamis("call", "flow", "--args", "{}")
    assert failed.code == 1
    assert words in failed.out
    assert "Traceback" not in failed.out


def test_a_webhook_of_n8n_gets_its_fields_where_it_reads_them(tamis: Tamis, engine: Engine) -> None:  # F9
    engine.answer = lambda *asked: (200, "application/json", b'[{"ok": true}]')
    imported(tamis, engine, "n8n", n8n_workflow())
    values = {"subject": "Hé", "user": {"name": "Ann"}, "reply_to": ["a"], "lang": "d&e"}
    done = tamis("call", "Answer-mail", "--args", json.dumps(values))
    assert done.code == 0, done.out
    assert done.json() == [{"ok": True}]
    method, path, headers, body = engine.asked.pop()
    assert (method, path) == ("POST", "/webhook/answer-mail?lang=d%26e")
    assert json.loads(body) == {"subject": "Hé", "user": {"name": "Ann"}, "reply to": ["a"]}
    assert headers["Content-Type"] == "application/json"


def test_a_form_of_n8n_is_sent_as_its_page_sends_it(tamis: Tamis, engine: Engine) -> None:  # F9
    engine.answer = lambda *asked: (200, "application/json", b'{"formWaitingUrl": "x"}')
    imported(tamis, engine, "n8n", n8n_form())
    evil = 'A\r\n--x\r\nContent-Disposition: form-data; name="field-1"'
    done = tamis("call", "Colours", "--args", json.dumps({"Your_name": evil, "Colour": "red", "Days": ["Mo", "Tu"]}))
    assert done.code == 0, done.out
    method, path, headers, body = engine.asked.pop()
    assert (method, path) == ("POST", "/form/f0-1")
    head = f"content-type: {headers['Content-Type']}\r\n\r\n".encode()
    parts = email.message_from_bytes(head + body, policy=email.policy.HTTP).iter_parts()  # type: ignore[attr-defined]
    sent = {p.get_param("name", header="content-disposition"): p.get_payload(decode=True).decode() for p in parts}
    assert sent == {"field-0": evil, "field-2": "red", "field-3": '["Mo", "Tu"]'}
    assert "field-1" not in sent


def test_a_key_of_an_engine_comes_from_the_operator(tamis: Tamis, engine: Engine) -> None:  # F9, ruling 60
    engine.answer = lambda *asked: (200, "application/json", b"{}")
    data = n8n_workflow()
    data["nodes"][0]["parameters"]["authentication"] = "basicAuth"
    imported(tamis, engine, "n8n", data)
    assert "add N8N_AUTH = " in tamis("call", "Answer-mail", "--args", "{}").out
    assert engine.asked == []
    Path(tamis.folder / "key").write_text("me:word\n")
    settings = (tamis.folder / "tamis.toml").read_text()
    more = 'secrets = { "*" = ["N8N_AUTH"] }\n[secrets]\nN8N_AUTH = { file = "key" }\n'
    (tamis.folder / "tamis.toml").write_text(settings + more)
    assert tamis("call", "Answer-mail", "--args", "{}").code == 0
    assert engine.asked.pop()[2]["Authorization"] == "Basic bWU6d29yZA=="


def test_a_file_of_the_wrong_kind_says_what_it_should_be(tamis: Tamis) -> None:  # F9
    (tamis.folder / "flow.json").write_text(json.dumps(n8n_workflow()))
    done = tamis("import", "comfyui", "flow.json")
    assert (done.code, done.out) == (1, "")
    assert "API form" in done.err
    (tamis.folder / "deep.json").write_text(
        '{"1":{"class_type":"X","inputs":{"a":' + "[" * 100_000 + "]" * 100_000 + "}}}"
    )
    done = tamis("import", "comfyui", "deep.json")
    assert (done.code, done.out) == (1, "")
    assert "Traceback" not in done.err
