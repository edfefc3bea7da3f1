"""Print what a model is told about the registered tools: how to call, the definitions, and worked examples."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tamis.protocols.prompt import MAX_FEW_SHOT
from tamis.server.cli.inputs import UsageError, read_text, root_of, tell_settings, tell_unregistered
from tamis.server.cli.outputs import print_json, warn, write_document

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.texts.prompts import PromptRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis prompt``."""
    parser.add_argument(
        "--protocol",
        metavar="P",
        help="action, tam, vcp, json or a plug-in's (default: the profile's, else the setting's)",
    )
    parser.add_argument(
        "--shape", choices=("tag", "inputs"), default="tag", help="of ACTION: the tool's id as a tag, or in <tool_id>"
    )
    parser.add_argument("--style", choices=("full", "compact"), default="full", help="compact: one line for each tool")
    parser.add_argument(
        "--few-shot", type=_count, default=0, metavar="N", help="show up to N examples of the manifests as calls"
    )
    parser.add_argument("--no-instructions", action="store_true", help="leave out the section on how to call")
    parser.add_argument("--template", metavar="FILE", help="print this file with the text in the place of {{tools}}")
    parser.add_argument("--tool", action="append", metavar="ID", help="only this tool (several: all of them)")
    parser.add_argument("--tag", action="append", default=[], help="only tools with this tag (several: all of them)")
    parser.add_argument(
        "--max-tokens", type=_tokens, metavar="N", help="at most N tokens: fewer examples, then the compact style"
    )
    parser.add_argument(
        "--grammar",
        choices=("gbnf", "jsonSchema"),
        help="print a grammar for constrained decoding instead of the prompt",
    )
    parser.add_argument("--json", action="store_true", help="print the prompt/generate result")
    # taken only to say what is meant
    parser.add_argument("names", nargs="*", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Prints the prompt; its tokens and what was left out are said on stderr."""
    try:
        if arguments.names:
            meant = " ".join(f"--tool {name}" for name in arguments.names)
            raise UsageError(f"tools are named by an option: {meant}")
        root = root_of(arguments.root)
        template = read_text(arguments.template) if arguments.template is not None else None
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.protocols.prompt.assemble import PromptTooLargeError, counted, fill
    from tamis.server.runtime.runtime import Runtime, ToolFilter
    from tamis.server.runtime.texts.prompts import PromptError, PromptRequest, Prompts

    runtime = Runtime(root)
    tell_settings(runtime.loaded)
    tell_unregistered(runtime)
    request = PromptRequest(
        protocol=arguments.protocol,
        shape=arguments.shape,
        tool_ids=None if arguments.tool is None else tuple(arguments.tool),
        filter=ToolFilter(tags=arguments.tag) if arguments.tag else None,
        style=arguments.style,
        few_shot=arguments.few_shot,
        instructions=not arguments.no_instructions,
        template=template,
        max_tokens=arguments.max_tokens,
    )
    if arguments.grammar is not None:
        return _grammar(runtime, request, arguments)
    try:
        prompt = Prompts().generate(runtime, request)
    except PromptError as error:
        warn(str(error))
        return 2
    except PromptTooLargeError as error:
        warn(str(error).replace("maxTokens", "--max-tokens").replace("toolIds or filter", "--tool or --tag"))
        return 1
    for note in prompt.notes:
        warn(note.replace("maxTokens", "--max-tokens"))
    if arguments.json:
        print_json(prompt)
        return 0
    # A template's text is printed byte for byte; anything else ends its last line.
    write_document(prompt.text if template is not None or not prompt.text else prompt.text + "\n")
    about = "" if prompt.tokens.exact else "about "
    tokens = counted(prompt.tokens.total, "token")
    if template is not None and fill(template, "")[1] == 0:
        warn(f"{about}{tokens} of the template alone")
    else:
        warn(f"{about}{tokens}, {counted(len(prompt.tokens.per_tool), 'tool')}, {prompt.protocol}")
    return 0


def _grammar(runtime: Runtime, request: PromptRequest, arguments: argparse.Namespace) -> int:
    from tamis.protocols.grammar.gbnf import GrammarError
    from tamis.server.runtime.texts.grammars import grammar
    from tamis.server.runtime.texts.prompts import PromptError

    try:
        text = grammar(runtime, request, arguments.grammar)
    except PromptError as error:
        warn(str(error))
        return 2
    except GrammarError as error:
        warn(str(error))
        return 1
    if arguments.json:
        print_json({"text": text})
    else:
        write_document(text)
    return 0


def _count(text: str) -> int:
    if not text.isdigit() or not text.isascii() or len(text) > 4 or int(text) > MAX_FEW_SHOT:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 to {MAX_FEW_SHOT}")
    return int(text)


def _tokens(text: str) -> int:
    if not text.isdigit() or not text.isascii() or len(text) > 9 or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above zero")
    return int(text)
