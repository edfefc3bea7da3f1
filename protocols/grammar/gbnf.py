"""The GBNF grammar of an answer: some prose, then calls of known tools in one protocol's canonical layout.

What the grammar lets a model write is read back without a repair: calls that are whole, with arguments that fit their schema as
far as a grammar can say it. Order and spelling are the schema's. ``prose`` holds nothing that a mark of ``marks.py`` begins with, no
backslash, backtick, ``~`` or brace, no invisible character, nor the word that begins an echo in any letters that look like it, and ends with a blank line: nothing in it can open a block, a
fence, a stretch of reasoning, an echo, another's turn or a JSON document, or quote the marker (rulings 44 to 49). Must not know the
registry.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.base import CallProtocol, PromptTool, Shape
from tamis.protocols.grammar.json_schema_rules import SchemaRules
from tamis.protocols.grammar.rules import CONTROLS, Rules
from tamis.protocols.grammar.texts import avoiding
from tamis.protocols.invisible import IGNORABLE
from tamis.protocols.marks import OBSERVATION_SIGNS, OBSERVATION_WORD, alike
from tamis.protocols.plugins import SHIPPED, extras_of

_NO_PROSE = "<＜《`~\\{◁[\u2028\u2029" + CONTROLS + IGNORABLE
_ECHOES = ("Observation", "ObservatiOn")
_ALIKE = {letter: alike(letter, but=OBSERVATION_SIGNS) for letter in OBSERVATION_WORD} | {"O": OBSERVATION_SIGNS}
"""How the letters of the word may be written that begins an echo: its first one is a capital, the others are of any case."""


class GrammarError(ValueError):
    """There is no grammar: the protocol has none, or can carry no tool."""


def gbnf(protocol: CallProtocol, tools: Sequence[PromptTool], shape: Shape = "tag", notes: Sequence[str] = ()) -> str:
    """The grammar as text; the same for the same tools. ``notes`` are remarks for its head.

    A tool that the protocol cannot carry is left out with a remark. Raises ``GrammarError`` when none is left, or for a protocol
    that is not built in.
    """
    extras = extras_of(protocol.id)
    answer = extras.grammar_answer(shape)
    if not answer:
        able = ", ".join(name for name in SHIPPED if extras_of(name).grammar_answer("tag"))
        raise GrammarError(f"there is no grammar for protocol '{protocol.id}'; there is one for {able}")
    rules = Rules()
    rules.note(f"An answer in protocol {protocol.id}: prose, then calls. A rule named t1-… belongs to the first tool.")
    for note in notes:
        rules.note(note)
    calls: list[str] = []
    for number, tool in enumerate(tools, 1):
        rules.note(f"t{number}: {tool.name}")
        schemas = SchemaRules(rules, f"t{number}", tool.parameters)
        body = extras.grammar_call(tool, schemas, shape)
        if body:
            calls.append(rules.define(rules.name(f"t{number}-call"), body))
        else:
            rules.note(f"t{number} is left out: {protocol.id} cannot carry its name or a required parameter")
    if not calls:
        raise GrammarError(
            f"there is no grammar: {'no tool fits' if not tools else f'{protocol.id} can carry none of the tools'}"
        )
    rules.define("call", " | ".join(calls))
    if extras.whole_text:
        return rules.text(f'{answer} "\\n"?')
    avoiding(rules, "prose", _ECHOES, "\n\n", without=_NO_PROSE, alike=_ALIKE)
    return rules.text(f'prose? {answer} "\\n"?')
