"""``tamis schema --action``: the XML Schema of registered tools on stdout, what it does not say on stderr (F12)."""

from __future__ import annotations

from lxml import etree

from tests.cli.in_process import Tamis
from tests.sample_tools import make_tool


def test_the_schema_of_registered_tools_judges_their_blocks(tamis: Tamis) -> None:
    make_tool(tamis.folder, "core:echo", required=["text"], aliases=["echo"])
    make_tool(tamis.folder, "off", agentCallable=False)
    done = tamis("schema", "--action")
    assert done.code == 0
    schema = etree.XMLSchema(etree.fromstring(done.out.encode()))
    assert schema.validate(etree.fromstring("<ACTION><echo><text>tea</text></echo></ACTION>"))
    assert not schema.validate(etree.fromstring("<ACTION><echo/></ACTION>"))
    assert not schema.validate(etree.fromstring("<ACTION><off/></ACTION>"))
    assert "core:echo /toolId: no tag 'core:echo'" in done.err
    assert "1 tools that agents may not call are left out" in done.err


def test_named_tools_alone_are_in_the_schema(tamis: Tamis) -> None:
    make_tool(tamis.folder, "one")
    make_tool(tamis.folder, "two")
    done = tamis("schema", "--action", "two")
    assert done.code == 0
    assert 'name="two"' in done.out
    assert 'name="one"' not in done.out


def test_tools_are_named_only_for_the_schema_of_calls(tamis: Tamis) -> None:
    assert tamis("schema", "--manifest", "one").code == 2
    assert tamis("schema", "--action", "--manifest").code == 2


def test_a_folder_without_tools_has_a_schema_too(tamis: Tamis) -> None:
    done = tamis("schema", "--action")
    assert done.code == 0
    schema = etree.XMLSchema(etree.fromstring(done.out.encode()))
    assert not schema.validate(etree.fromstring("<ACTION><echo/></ACTION>"))
