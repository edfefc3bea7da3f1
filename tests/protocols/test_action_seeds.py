"""The examples of seed 000 (sections 3.1 to 5.5) and seed 003 §3.1, each with the result that the seed states."""

from __future__ import annotations

from tests.protocols.reader_helpers import codes, read, response, runnable, tool, trailing

WEATHER = """Okay, I need to check the current weather to answer the player's question.
<ACTION>
    <ReadWorldStateTool>
        <path>environment.weather.current_conditions</path>
        <default_value>unknown</default_value>
    </ReadWorldStateTool>
</ACTION>"""

DIFF = """--- a/config/settings.json
+++ b/config/settings.json
@@ -1,5 +1,5 @@
 {
-  "feature_enabled": false,
+  "feature_enabled": true,
   "api_key": "old_key_value"
 }"""


def test_simple_call_of_seed_5_1_gives_tool_parameters_and_response() -> None:  # A03 A04 A05 A06 A36
    document = read(WEATHER)
    assert runnable(document) == [
        ("ReadWorldStateTool", {"path": "environment.weather.current_conditions", "default_value": "unknown"})
    ]
    assert response(document).strip() == "Okay, I need to check the current weather to answer the player's question."
    assert document.text[slice(*document.blocks[0].span)] == WEATHER[WEATHER.index("<ACTION>") :]
    assert codes(document) == []


def test_several_lines_of_a_value_are_exact() -> None:  # A07
    text = "<ACTION><Note><content>line1\n  line2\n\nline4</content></Note></ACTION>"
    assert runnable(read(text)) == [("Note", {"content": "line1\n  line2\n\nline4"})]


def test_items_are_a_list_also_a_single_one() -> None:  # A08
    two = read("<ACTION><T><names>\n<item>Alice</item>\n<item>Bob</item>\n</names></T></ACTION>")
    assert runnable(two) == [("T", {"names": ["Alice", "Bob"]})]
    one = "<ACTION><T><names><item>Alice</item></names></T></ACTION>"
    assert runnable(read(one, tools=tool("T", names={"type": "array"}))) == [("T", {"names": ["Alice"]})]


def test_nested_elements_are_an_object() -> None:  # A09
    text = "<ACTION><T><address>\n  <street>123 Main St</street>\n  <city>Anytown</city>\n</address></T></ACTION>"
    assert runnable(read(text)) == [("T", {"address": {"street": "123 Main St", "city": "Anytown"}})]


def test_wrong_parameter_name_of_seed_5_5_parses_and_its_comment_is_no_value() -> None:  # A10 A40 ruling 17
    text = "<ACTION>\n  <GetPlayerInfo>\n    <playerId>player123</playerId> <!-- 假设正确的参数名是 player_id -->\n  </GetPlayerInfo>\n</ACTION>"
    document = read(text)
    assert runnable(document) == [("GetPlayerInfo", {"playerId": "player123"})]
    assert [comment.text for comment in document.comments] == ["假设正确的参数名是 player_id"]
    assert codes(document) == []


def test_text_behind_the_block_is_returned_and_has_no_effect() -> None:  # A11
    document = read(WEATHER + "\nThat should do.")
    assert trailing(document) == "\nThat should do."
    assert len(document.calls) == 1


def test_tools_in_one_block_come_in_order() -> None:  # A12 ruling 14
    document = read("<ACTION><A><x>1</x></A>\n<B/>\n<A><x>1</x></A></ACTION>")
    assert runnable(document) == [("A", {"x": "1"}), ("B", {}), ("A", {"x": "1"})]  # ruling 8: repeats stay
    assert codes(document) == ["AX135"]


def test_prose_without_a_block_is_all_response() -> None:  # A13 A39
    text = "The weather is currently sunny and pleasant. It's a great day for an adventure!"
    document = read(text)
    assert (response(document), document.calls, document.diagnostics) == (text, [], [])


def test_second_block_is_reported_and_not_run() -> None:  # A14 ruling 14
    document = read("<ACTION><A/></ACTION>\n<ACTION><B/></ACTION>")
    assert runnable(document) == [("A", {})]
    assert codes(document) == ["TC007"]
    both = read("<ACTION><A/></ACTION>\n<ACTION><B/></ACTION>", allow_multiple_blocks=True)
    assert runnable(both) == [("A", {}), ("B", {})]


def test_workflow_paths_and_namespaced_ids_are_tool_names() -> None:  # A15 F28 ruling 13
    names = {
        "workflows/skills/npc_greet_player_skill.json": ["AX133"],
        "core:execute-python-script": [],
        "units:convert": [],
        "dry-run": [],
        "3d_print": ["AX133"],
    }
    for name, found in names.items():
        document = read(f"<ACTION><{name}><a>1</a></{name}></ACTION>")
        assert runnable(document) == [(name, {"a": "1"})], name
        assert codes(document) == found, name


def test_backticks_around_a_name_are_dropped_with_a_warning() -> None:  # A15 ruling 13
    document = read("<ACTION><`workflows/x.json`><a>1</a></`workflows/x.json`></ACTION>")
    assert runnable(document) == [("workflows/x.json", {"a": "1"})]
    assert "AX153" in codes(document)


def test_nested_repeated_tags_of_seed_5_2_are_a_list() -> None:  # A37
    text = """<ACTION>
    <read_file>
        <args>
            <file>
                <path>src/app.ts</path>
            </file>
            <file>
                <path>src/utils.ts</path>
            </file>
        </args>
    </read_file>
</ACTION>"""
    assert runnable(read(text)) == [
        ("read_file", {"args": {"file": [{"path": "src/app.ts"}, {"path": "src/utils.ts"}]}})
    ]


def test_diff_in_cdata_of_seed_5_3_is_exact() -> None:  # A18 A38 ruling 16
    text = f"""<ACTION>
    <ApplyProjectDiff>
        <target_file>config/settings.json</target_file>
        <diff_patch>
            <![CDATA[
{DIFF}
            ]]>
        </diff_patch>
    </ApplyProjectDiff>
</ACTION>"""
    assert runnable(read(text)) == [("ApplyProjectDiff", {"target_file": "config/settings.json", "diff_patch": DIFF})]


def test_diff_markers_in_cdata_of_seed_3_2_4_are_exact() -> None:  # A18
    body = '<<<<<<< SEARCH\n:start_line:10\n-------\nconsole.log("Old version");\n=======\nconsole.log("New version with <special & characters>");\n>>>>>>> REPLACE'
    text = f"<ACTION>\n    <ApplyDiffTool>\n        <diff_content>\n            <![CDATA[\n{body}\n            ]]>\n        </diff_content>\n    </ApplyDiffTool>\n</ACTION>"
    assert runnable(read(text)) == [("ApplyDiffTool", {"diff_content": body})]


def test_tool_id_and_inputs_of_seed_003() -> None:  # D57 ruling 12
    text = """<ACTION>
  <tool_id>core:execute-python-script</tool_id>
  <inputs>
    <input name="scriptPath"><![CDATA[user_scripts/data_analysis/analyzer.py]]></input>
    <input name="inputData"><![CDATA[{"data_url": "http://example.com/data.csv", "threshold": 0.75}]]></input>
    <input name="timeoutMs"><![CDATA[30000]]></input>
  </inputs>
</ACTION>"""
    document = read(text)
    assert runnable(document) == [
        (
            "core:execute-python-script",
            {
                "scriptPath": "user_scripts/data_analysis/analyzer.py",
                "inputData": '{"data_url": "http://example.com/data.csv", "threshold": 0.75}',
                "timeoutMs": "30000",
            },
        )
    ]
    assert document.calls[0].shape == "inputs"
    assert codes(document) == []


def test_ruling_15_repeated_elements_under_a_list_of_objects_are_its_items() -> None:  # seed 000 §5.2 with a schema
    item = {"type": "object", "properties": {"path": {"type": "string"}}}
    files = {"type": "object", "properties": {"file": {"type": "array", "items": item}}}
    nested = (
        "<ACTION><read_file><args><file><path>a</path></file><file><path>b</path></file></args></read_file></ACTION>"
    )
    assert runnable(read(nested, tools=tool("read_file", args=files))) == [
        ("read_file", {"args": {"file": [{"path": "a"}, {"path": "b"}]}})
    ]
    paths = [{"path": name} for name in "abc"]
    flat = "".join(f"<file><path>{name}</path></file>" for name in "abc")
    text = f"<ACTION><read_file>{flat}</read_file></ACTION>"
    assert runnable(read(text, tools=tool("read_file", file={"type": "array", "items": item}))) == [
        ("read_file", {"file": paths})
    ]
