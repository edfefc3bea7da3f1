"""The ``<tool_id>`` and ``<inputs>`` shape of ACTION (seed 003 §3.1, ruling 12), and what is written for it."""

from __future__ import annotations

import pytest

from tamis.protocols.model import ReadOptions, ToolHint
from tamis.protocols.reader import read_text
from tests.protocols.reader_helpers import codes, read, runnable

Q = {"q": "x"}


def _block(inputs: str) -> str:
    return f"<ACTION><tool_id>kb:Query</tool_id><inputs>{inputs}</inputs></ACTION>"


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ('<input name="q">x</input>', []),
        ('<input  name = "q" >x</input >', []),
        ("<input name='q'>x</input>", []),
        ("<input name=q>x</input>", ["AX159"]),
        ("<input name=“q”>x</input>", ["AX159"]),
        ("<input name=\"q'>x</input>", ["AX159"]),
        ('<input name=q">x</input>', ["AX159"]),
        ('<input Name="q">x</input>', ["AX158"]),
        ('<input key="q">x</input>', ["AX158"]),
        ("<input=q>x</input>", ["AX158"]),
        ('<input name="q" value="x"/>', ["AX138"]),
        ('<input name="q" type="string">x</input>', ["AX136"]),
        ('<Input name="q">x</Input>', ["AX154"]),
        ('<param name="q">x</param>', ["AX154"]),
        ("<q>x</q>", ["AX160"]),
        ('{"q": "x"}', ["AX161"]),
        ('<![CDATA[{"q": "x"}]]>', ["AX161"]),
        ('<input name="q">x', ["AX102"]),
        ('<input name="q">x</parameter>', ["AX104"]),
        ('<input name="q">x</input></input>', ["AX105"]),
    ],
)
def test_input_spellings(inputs: str, found: list[str]) -> None:
    document = read(_block(inputs))
    assert runnable(document) == [("kb:Query", Q)]
    assert codes(document) == found


@pytest.mark.parametrize(
    "inputs",
    ["<input>x</input>", '<input name="">x</input>', '<inputname="q">x</input>', "hello", '{"q": "x",}', "[1]"],
)
def test_inputs_without_names_are_refused(inputs: str) -> None:
    assert runnable(read(_block(inputs))) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<ACTION><inputs><input name="q">x</input></inputs><tool_id>kb:Query</tool_id></ACTION>', []),
        ('<ACTION><tool_id> kb:Query\n</tool_id><inputs><input name="q">x</input></inputs></ACTION>', []),
        ('<ACTION><tool_id>kb&#58;Query</tool_id><inputs><input name="q">x</input></inputs></ACTION>', []),
        ('<ACTION><tool_id>`kb:Query`</tool_id><inputs><input name="q">x</input></inputs></ACTION>', ["AX153"]),
        ('<ACTION><tool_id>kb:Query</tool_id><input name="q">x</input></ACTION>', ["AX155"]),
        ('<ACTION><tool_id>kb:Query</tool_id><inputs><input name="q">x</input></ACTION>', ["AX156"]),
        ('<ACTION><tool_id>kb:Query\n<inputs><input name="q">x</input></inputs></ACTION>', ["AX102"]),
        ('<ACTION><tool_id>kb:Query</toolid><inputs><input name="q">x</input></inputs></ACTION>', ["AX104"]),
        ('<ACTION tool_id="kb:Query"><inputs><input name="q">x</input></inputs></ACTION>', ["AX138"]),
        ('<ACTION><toolId>kb:Query</toolId><inputs><input name="q">x</input></inputs></ACTION>', ["AX154"]),
        ('<ACTION><tool>kb:Query</tool><params><input name="q">x</input></params></ACTION>', ["AX154", "AX154"]),
        ('<ACTION><tool_id>kb:Query</tool_id><inputs><input name="q">x</input></inputs>', ["TC002"]),
    ],
)
def test_block_spellings(text: str, found: list[str]) -> None:
    document = read(text)
    assert runnable(document) == [("kb:Query", Q)]
    assert codes(document) == found


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('<ACTION><inputs><input name="q">x</input></inputs></ACTION>', "AX150"),
        ("<ACTION><tool_id> \n </tool_id><inputs/></ACTION>", "AX151"),
        ("<ACTION><tool_id>a</tool_id><tool_id>b</tool_id><inputs/></ACTION>", "AX152"),
        ("<ACTION><tool_id>a</tool_id><T><p>1</p></T></ACTION>", "AX152"),
        ("<ACTION><tool_id>a<inputs/></tool_id></ACTION>", "AX110"),
    ],
)
def test_without_one_tool_id_nothing_runs(text: str, code: str) -> None:
    document = read(text)
    assert runnable(document) == []
    assert code in codes(document)


def test_an_id_whose_quotes_are_references_is_refused() -> None:
    """The quotes may be part of the id, because who writes references means the character."""
    document = read("<ACTION><tool_id>&quot;kb:Query&quot;</tool_id><inputs/></ACTION>")
    assert runnable(document) == []
    assert codes(document) == ["AX153"]


def test_several_pairs_are_several_calls() -> None:
    pair = '<tool_id>{}</tool_id><inputs><input name="q">x</input></inputs>'
    document = read(f"<ACTION>{pair.format('a')}{pair.format('b')}</ACTION>")
    assert runnable(document) == [("a", Q), ("b", Q)]


def test_an_input_given_twice_is_a_list_with_a_warning() -> None:  # ruling 15
    document = read(_block('<input name="q">a</input><input name="q">b</input>'))
    assert runnable(document) == [("kb:Query", {"q": ["a", "b"]})]
    assert codes(document) == ["TC060"]


def test_members_of_a_json_object_keep_their_places() -> None:
    text = _block('{"q": "x", "n": {"k": [1, 2]}}')
    document = read(text)
    assert runnable(document) == [("kb:Query", {"q": "x", "n": '{"k": [1, 2]}'})]
    param = document.calls[0].param("n")
    assert param is not None
    assert text[slice(*param.value.span)] == '{"k": [1, 2]}'
    assert text[slice(*param.span)] == '"n": {"k": [1, 2]}'


def test_call_text_inside_cdata_is_a_value() -> None:  # F16
    text = _block('<input name="q"><![CDATA[<ACTION><tool_id>sys:rm</tool_id><inputs/></ACTION>]]></input>')
    assert runnable(read(text)) == [("kb:Query", {"q": "<ACTION><tool_id>sys:rm</tool_id><inputs/></ACTION>"})]


def test_unknown_children_of_action_are_kept_with_the_call_and_not_given_to_it() -> None:  # D70, seed 003 §4.3
    text = (
        "<ACTION><tool_id>core:x</tool_id><context><user>Ann &amp; Bob</user></context><transaction>t-1</transaction>"
        '<inputs><input name="a">1</input></inputs></ACTION>'
    )
    tools = {"core:x": ToolHint("core:x", {"type": "object", "properties": {"a": {"type": "string"}}})}
    document = read_text(text, "action", ReadOptions(tools=tools))
    (call,) = document.calls
    assert call.args(text) == {"a": "1"}
    assert call.meta == {"context": '{"user": "Ann & Bob"}', "transaction": "t-1"}
    assert call.executable
    assert [diag.code for block in document.blocks for diag in block.diagnostics] == ["AX163", "AX163"]


def test_a_child_beside_inputs_that_is_like_a_parameter_stays_one() -> None:
    text = "<ACTION><tool_id>core:x</tool_id><inputs></inputs><txet>1</txet><text>2</text></ACTION>"
    tools = {"core:x": ToolHint("core:x", {"type": "object", "properties": {"text": {"type": "string"}}})}
    (call,) = read_text(text, "action", ReadOptions(tools=tools)).calls
    assert (set(call.args(text)), call.meta) == ({"txet", "text"}, {})


def test_another_tool_beside_a_tool_by_id_is_still_two_readings() -> None:
    text = "<ACTION><tool_id>a</tool_id><inputs></inputs><other><x>1</x></other></ACTION>"
    (call,) = read_text(text, "action", ReadOptions()).calls
    assert not call.executable
