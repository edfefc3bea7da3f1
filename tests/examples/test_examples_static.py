"""The examples without Tamis: sound manifests, scripts that do what the manifests say, transcripts with the right markers.

The scripts are our own and trusted, so they run as plain subprocesses here, in a copy of their folder. What Tamis makes of
the same files is tested where parser, registry and sandbox are.
"""

from __future__ import annotations

import contextlib
import csv
import http.server
import io
import json
import re
import shutil
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.examples.support import ROOT, TOOLS, manifest, refusal, run, tool

SOUND = sorted([*TOOLS.rglob("*.tool.json"), *(ROOT / "broken" / "tools").rglob("*.tool.json")])
LANGUAGES = {"python": 9, "nodejs": 4, "bun": 2}


def name_of(path: Path) -> str:
    return path.name.removesuffix(".tool.json")


every_tool = pytest.mark.parametrize("path", SOUND, ids=name_of)
EXAMPLES = [
    pytest.param(path, example, id=f"{name_of(path)}-{index}")
    for path in SOUND
    for index, example in enumerate(manifest(path)["examples"])
]


def answer(path: Path, folder: Path, request: dict[str, Any]) -> Any:
    done = run(path, folder, json.dumps(request, ensure_ascii=False))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: Python alone takes true for 1."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


# The set.


def test_there_are_tools_in_all_three_languages() -> None:
    counted = dict.fromkeys(LANGUAGES, 0)
    for path in TOOLS.rglob("*.tool.json"):
        counted[manifest(path)["handler"]["language"]] += 1
    assert counted == LANGUAGES


def test_tool_ids_and_aliases_are_unique() -> None:
    names = [name for path in SOUND for name in (manifest(path)["toolId"], *manifest(path)["aliases"])]
    assert len(names) == len(set(names))


# One manifest.


@every_tool
def test_the_folder_the_manifest_and_the_tool_id_share_a_name(path: Path) -> None:
    assert path.parent.name == name_of(path)
    if path.is_relative_to(TOOLS):
        assert manifest(path)["toolId"].replace(":", "-") == name_of(path)


@every_tool
def test_the_script_lies_beside_the_manifest(path: Path) -> None:
    script = path.parent / manifest(path)["handler"]["scriptPath"]
    assert script.parent == path.parent
    assert script.is_file()


@every_tool
def test_a_manifest_tells_a_model_what_it_needs(path: Path) -> None:
    data = manifest(path)
    assert 100 <= len(data["description"]) <= 900
    assert re.fullmatch(r"\d+\.\d+\.\d+", data["version"])
    assert data["tags"]
    assert 2 <= len(data["examples"]) <= 4
    assert data["parameters"]["additionalProperties"] is False
    assert set(data["parameters"]["required"]) <= set(data["parameters"]["properties"])
    for name, schema in data["parameters"]["properties"].items():
        assert schema.get("description"), name


@every_tool
def test_schemas_are_json_schema_and_defaults_fit_them(path: Path) -> None:
    data = manifest(path)
    jsonschema.Draft202012Validator.check_schema(data["parameters"])
    jsonschema.Draft202012Validator.check_schema(data["output"])
    for schema in data["parameters"]["properties"].values():
        if "default" in schema:
            jsonschema.validate(schema["default"], schema)


@every_tool
def test_parameter_names_can_be_carried_by_every_protocol(path: Path) -> None:
    # A TAM key is lower-case words joined by `_`, a trailing number would be a step, and some words mean something else.
    reserved = re.compile(
        r"command|tool_name|tool_id|inputs|item|request_id|comment|on_error|retry|(?:common|uri|type_hint)_.*"
    )
    for name in manifest(path)["parameters"]["properties"]:
        assert re.fullmatch(r"[a-z]+(?:_[a-z]+)*", name), name
        assert not reserved.fullmatch(name), name


@every_tool
def test_python_scripts_are_python_3_9(path: Path) -> None:
    import ast

    handler = manifest(path)["handler"]
    if handler["language"] == "python":
        source = (path.parent / handler["scriptPath"]).read_text(encoding="utf-8")
        ast.parse(source, feature_version=(3, 9))
        assert "from __future__ import annotations" in source
    else:
        assert not list(path.parent.glob("*.py"))


@pytest.mark.parametrize(("path", "example"), EXAMPLES)
def test_example_input_satisfies_the_parameters(path: Path, example: dict[str, Any]) -> None:
    jsonschema.validate(example["input"], manifest(path)["parameters"])
    jsonschema.validate(example["expectedOutput"], manifest(path)["output"])


# The scripts.


@pytest.mark.parametrize(("path", "example"), EXAMPLES)
def test_example_prints_exactly_its_expected_output(path: Path, example: dict[str, Any], tmp_path: Path) -> None:
    assert same(answer(path, tmp_path, example["input"]), example["expectedOutput"])


@every_tool
def test_bad_input_is_one_line_on_stderr_and_exit_code_1(path: Path, tmp_path: Path, is_long: bool) -> None:
    """Each tool takes a fourth of its bad inputs without --long, the tools together every kind of them."""
    data = manifest(path)
    good = data["examples"][0]["input"]
    bad = ["", "{", "[]", "null", "{}", "\\ud800", '{"a": ' * 5]
    bad += [
        json.dumps({key: value for key, value in good.items() if key != name})
        for name in data["parameters"]["required"]
    ]
    bad += [json.dumps(good | {name: None}) for name in data["parameters"]["required"]]
    bad += [
        json.dumps(good | {name: {"no": ["such", "value"]}})
        for name in list(good)
        if name not in ("document", "values")
    ]
    chosen = [*dict.fromkeys(bad)]
    for text in chosen if is_long else chosen[SOUND.index(path) % 4 :: 4]:
        assert refusal(run(path, tmp_path, text)), text


def test_csv_summary_keeps_identifiers_and_finds_delimiters(tmp_path: Path) -> None:
    table = io.StringIO()
    csv.writer(table, delimiter="\t").writerows([["id", "n", "n", ""], ["01", "1e3", "-2", "x"], ["02", "NA", "5"]])
    result = answer(tool("csv-summary"), tmp_path, {"csv_text": table.getvalue()})
    assert (result["delimiter"], result["rows"], result["ragged_rows"]) == ("tab", 2, 1)
    assert [column["name"] for column in result["columns"]] == ["id", "n", "n (2)", "column 4"]
    assert [column["type"] for column in result["columns"]] == ["text", "number", "integer", "text"]


def test_diff_apply_finds_moved_hunks_and_keeps_line_ends(tmp_path: Path) -> None:
    text = "new first\r\na\r\nb\r\nc\r\n"
    diff = "@@ -1,2 +1,3 @@\n a\n+inserted\n b\n@@ -3 +4,0 @@\n-c\n"
    result = answer(tool("diff-apply"), tmp_path, {"text": text, "diff": diff})
    assert result["text"] == "new first\r\na\r\ninserted\r\nb\r\n"


def test_diff_apply_applies_all_hunks_or_none_and_names_the_line(tmp_path: Path) -> None:
    request = {"text": "a\nb\n", "diff": "@@ -1 +1 @@\n-a\n+A\n@@ -2 +2 @@\n-x\n+X\n"}
    assert (
        refusal(run(tool("diff-apply"), tmp_path, json.dumps(request))) == "hunk 2 does not fit: line 2 is 'b', not 'x'"
    )


def test_diff_apply_refuses_a_search_that_fits_twice(tmp_path: Path) -> None:
    diff = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE"
    message = refusal(run(tool("diff-apply"), tmp_path, json.dumps({"text": "a\na\n", "diff": diff})))
    assert message == "hunk 1 fits at lines 1 and 2; add lines around it"


def test_units_convert_suggests_and_never_guesses(tmp_path: Path) -> None:
    request = {"value": 1, "from_unit": "KG", "to_unit": "lb"}
    assert "did you mean 'kg'" in refusal(run(tool("units-convert"), tmp_path, json.dumps(request)))
    request["from_unit"] = "km"
    assert "km measures length and lb measures mass" in refusal(
        run(tool("units-convert"), tmp_path, json.dumps(request))
    )


@pytest.mark.parametrize("value", ["1e999999999", "1e-999999999", "1e99999999999999999999", "NaN", "9" * 5000, "true"])
def test_units_convert_refuses_numbers_that_would_be_endless(value: str, tmp_path: Path) -> None:
    text = f'{{"value": {value}, "from_unit": "m", "to_unit": "km"}}'
    refusal(run(tool("units-convert"), tmp_path, text))


def test_calendar_stays_inside_its_years(tmp_path: Path) -> None:
    request = {"operation": "add", "date": "9999-12-31", "days": 1}
    assert "years 1 to 9999" in refusal(run(tool("calendar-calculate"), tmp_path, json.dumps(request)))


def test_calendar_difference_counts_backwards_with_a_sign(tmp_path: Path) -> None:
    request = {"operation": "difference", "date": "2025-03-01", "until": "2024-02-29"}
    result = answer(tool("calendar-calculate"), tmp_path, request)
    assert result == {"days": -366, "workdays": -261, "years": -1, "months": 0, "remaining_days": -1}


def test_notes_search_answers_alike_with_a_cache_without_one_and_with_a_spoilt_one(tmp_path: Path) -> None:
    path = tool("notes-search")
    cache = tmp_path / "notes-search" / ".cache"
    request = {"query": "errors and logs"}
    first = answer(path, tmp_path, request)
    assert (cache / "index.json").is_file()
    (cache / "index.json").write_text('{"fingerprint": 1', encoding="utf-8")
    assert answer(path, tmp_path, request) == first
    shutil.rmtree(cache)
    cache.write_text("a file where the folder should be", encoding="utf-8")
    done = run(path, tmp_path, json.dumps(request))
    assert done.returncode == 0
    assert json.loads(done.stdout) == first
    assert "the index was not kept" in done.stderr


@pytest.mark.parametrize("name", ["template-render", "table-format"])
def test_text_that_no_one_encoded_by_hand_arrives_whole(name: str, tmp_path: Path) -> None:
    text = '茶 🍵 \u2028 <&> "quoted"'
    template = {"template": "{{x}}", "values": {"x": text}}
    rows = {"rows": [{text: 1}], "format": "tsv"}
    result = answer(tool(name), tmp_path, template if name == "template-render" else rows)
    assert result["text"] == text if name == "template-render" else result["columns"] == [text]


# web:fetch against a server of our own, which is at the same time the proxy that the sandbox would name.


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        forbidden = self.path.startswith("http://forbidden.example")
        page = b"<title>T\xc3\xa9a</title><style>x{}</style><h1>Hot\n tea</h1><p>a &lt; b <b>&amp;</b> c</p><script>no()</script>"
        self.send_response(403 if forbidden else 200)
        self.send_header("Content-Type", "image/png" if self.path.endswith(".png") else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        pass


@pytest.fixture
def proxy() -> Iterator[dict[str, str]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    with contextlib.closing(server.socket):
        yield {"http_proxy": address, "https_proxy": address}
        server.shutdown()


def test_web_fetch_goes_through_the_proxy_and_returns_readable_text(proxy: dict[str, str], tmp_path: Path) -> None:
    path = tool("web-fetch")
    done = run(path, tmp_path, json.dumps({"url": "http://example.com/tea"}), proxy)
    result = json.loads(done.stdout)
    jsonschema.validate(result, manifest(path)["output"])
    assert (result["title"], result["text"], result["truncated"]) == ("Téa", "Hot tea\na < b & c", False)


def test_web_fetch_says_how_a_refused_host_is_opened(proxy: dict[str, str], tmp_path: Path) -> None:
    request = json.dumps({"url": "http://forbidden.example/"})
    assert "[policy] allowHosts in tamis.toml" in refusal(run(tool("web-fetch"), tmp_path, request, proxy))


def test_web_fetch_without_a_network_says_how_it_is_opened(tmp_path: Path) -> None:
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    request = json.dumps({"url": "https://example.com/"})
    assert "[policy] allowHosts in tamis.toml" in refusal(run(tool("web-fetch"), tmp_path, request, nowhere))


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.com/", "https://a:b@example.com/", "http://x y/", "http://[::1/"]
)
def test_web_fetch_reads_web_pages_only(url: str, tmp_path: Path) -> None:
    refusal(run(tool("web-fetch"), tmp_path, json.dumps({"url": url})))


def test_web_fetch_refuses_what_is_no_text(proxy: dict[str, str], tmp_path: Path) -> None:
    request = json.dumps({"url": "http://example.com/tea.png"})
    assert "is image/png, not text" in refusal(run(tool("web-fetch"), tmp_path, request, proxy))


# The other files.


def test_the_configuration_names_the_tools_and_not_the_broken_ones() -> None:
    assert tomllib.loads((ROOT / "tamis.toml").read_text(encoding="utf-8"))["tools"] == ["tools"]
    assert tomllib.loads((ROOT / "broken" / "tamis.toml").read_text(encoding="utf-8"))["tools"] == ["tools"]


def test_each_transcript_has_three_calls_of_python_tools_between_prose() -> None:
    shapes = {
        "action.md": (r"<ACTION>.*</ACTION>", r"^    <(\w+:\w+)>$"),
        "tam.md": (r"<\|\[REQUEST_TOOL\]\|>.*<\|\[END_TOOL\]\|>", r"^command_[123]:»»»(.+)«««$"),
        "vcp.md": (r"<<<\[TOOL_REQUEST\]>>>.*<<<\[END_TOOL_REQUEST\]>>>", r"^tool_name:「始」(.+?)「末」,$"),
    }
    python = {
        manifest(path)["toolId"]
        for path in TOOLS.rglob("*.tool.json")
        if manifest(path)["handler"]["language"] == "python"
    }
    for name, (blocks, call) in shapes.items():
        text = (ROOT / "transcripts" / name).read_text(encoding="utf-8")
        found = re.search(blocks, text, re.DOTALL)
        assert found is not None, name
        assert text[: found.start()].strip(), name
        assert text[found.end() :].strip(), name
        tools = re.findall(call, found[0], re.MULTILINE)
        assert len(tools) == 3, name
        assert set(tools) <= python, name


def test_node_and_bun_transcript_calls_every_such_tool_that_needs_no_package() -> None:
    text = (ROOT / "transcripts" / "node-and-bun.md").read_text(encoding="utf-8")
    others = {
        manifest(path)["toolId"]
        for path in TOOLS.rglob("*.tool.json")
        if manifest(path)["handler"]["language"] != "python" and not (path.parent / "package.json").exists()
    }
    assert set(re.findall(r"^command_\d:»»»(.+)«««$", text, re.MULTILINE)) == others


def test_the_readmes_name_every_file() -> None:
    for folder in (ROOT, ROOT / "broken"):
        readme = (folder / "README.md").read_text(encoding="utf-8")
        files = [*folder.glob("transcripts/*.md"), *folder.glob("manifests/*.tool.json"), *folder.glob("tools/*")]
        for file in files:
            assert file.name.removesuffix(".tool.json") in readme, file


@pytest.mark.parametrize("path", sorted((ROOT / "broken" / "manifests").glob("*.tool.json")), ids=name_of)
def test_a_broken_manifest_is_broken_in_the_way_its_name_says(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if name_of(path) in ("trailing-comma", "unclosed"):
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
        return
    data = json.loads(text)

    def handler_fits() -> bool:
        where = (path.parent / data["handler"]["scriptPath"]).resolve()
        return where.is_file() and where.is_relative_to(path.parent)

    broken = {
        "foreign-shape": lambda: "toolId" not in data and "inputSchema" in data,
        "missing-field": lambda: "version" not in data and "language" not in data["handler"],
        "outside-path": lambda: not handler_fits(),
        "script-missing": lambda: not handler_fits(),
        "unknown-field": lambda: "descripton" in data,
        "unsafe-permissions": lambda: "../**" in data["securityContext"]["fileAccess"]["allowWrite"],
        "wrong-example": lambda: "playerId" in data["examples"][0]["input"],
        "wrong-schema": lambda: set(data["parameters"]["required"]) > set(data["parameters"]["properties"]) - {"times"},
        "wrong-type": lambda: isinstance(data["tags"], str),
        "wrong-value": lambda: data["handler"]["language"] not in LANGUAGES,
    }
    assert broken[name_of(path)]()
