"""The command line's front door: picks the command and loads only what it needs.

Start-up time is part of the interface, so this module imports next to nothing; each command is a module of its own with
``add_arguments(parser)`` and ``run(arguments) -> exit code``.
"""

from __future__ import annotations

import gc
import os
import sys
import types

from tamis import __version__

COMMANDS = {
    "lsp": "the language server on stdio, for editors",
    "rpc": "the tool methods as JSON-RPC on stdio, for host applications",
    "mcp": "the registered tools as an MCP server on stdio or HTTP, for hosts that speak MCP",
    "check": "diagnostics for manifests and for calls in text",
    "parse": "the calls found in a text, as JSON",
    "stats": "counts over logs of messages: calls, tools, models, repairs, unknown names",
    "convert": "rewrite the calls of a text in another form",
    "format": "canonical manifests and call blocks",
    "run": "parse a text and run its calls in order",
    "call": "run one tool",
    "list": "the registered tools",
    "workflow": "workflows: list them, draw one, run one with the state of every node",
    "approvals": "the answers of persons that hold for later calls: list and revoke them",
    "deps": "what tools depend on: install it ahead, list, check and remove it",
    "prompt": "what a model is told about the tools, as text for its prompt",
    "test": "run the examples of manifests as tests",
    "new": "a manifest, a script and an example to begin with",
    "import": "manifests from the tool definitions of other projects",
    "export": "tools in the forms of other projects",
    "schema": "the generated descriptions: OpenRPC, JSON Schema, TypeScript, manifests",
    "trust": "what a folder asks for beyond what it may set by itself: show it, trust it, revoke it",
    "doctor": "versions, sandbox, runtimes, configuration, each problem with its remedy",
}
USAGE = 2
INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] in (["--version"], ["-V"]):
        sys.stdout.write(f"tamis {__version__}\n")
        return 0
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(_help())
        return 0 if words else USAGE
    name = words[0]
    if name not in COMMANDS:
        from tamis.protocols.suggest import best, hint
        from tamis.server.cli.outputs import warn

        if name.startswith("-"):
            warn(f"'{name}' stands before the command: options stand behind it, `tamis COMMAND {name} …`")
            return USAGE
        # Who drops letters keeps the order of the others: `lst` is `list`, not `lsp`.
        near = next((command for command in COMMANDS if name and _is_within(name, command)), None) or best(
            name, COMMANDS
        )
        warn(f"no command '{name}'{hint(near)} (`tamis --help` lists them)")
        return USAGE
    import importlib

    from tamis.server.cli.outputs import Parser

    _load_msgspec()
    module = importlib.import_module(f"tamis.server.cli.{name}_command")
    parser = Parser(prog=f"tamis {name}", description=module.__doc__, allow_abbrev=False)
    parser.add_argument(
        "--root", metavar="DIR", help="the folder of tamis.toml (default: nearest upwards, else the current one)"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="the operator's settings for this command, over the user's own"
    )
    parser.add_argument(
        "--trust", action="store_true", help="count what folders ask for as the operator's word; TAMIS_TRUST=1 does too"
    )
    module.add_arguments(parser)
    try:
        # options may stand anywhere, also between a verb and what it is about
        arguments = parser.parse_intermixed_args(words[1:])
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    if arguments.config is not None and not os.path.isfile(arguments.config):
        from tamis.server.cli.outputs import warn

        warn(f"--config: '{arguments.config}' is not a file")
        return USAGE
    from tamis.server.runtime.settings.loading import StartedWith, start_with

    start_with(StartedWith(os.path.abspath(arguments.config) if arguments.config else "", arguments.trust))
    gc.freeze()
    gc.enable()
    return int(module.run(arguments))


def _load_msgspec() -> None:
    """Imports msgspec without typing_extensions, where another package has brought that: msgspec takes three names from it that the
    standard library has since Python 3.11, and it costs a start more than a tenth of what is Tamis's own."""
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # pyright: ignore[reportArgumentType]
    try:
        __import__("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def _is_within(short: str, word: str) -> bool:
    letters = iter(word)
    return short[0] == word[0] and len(word) - len(short) <= 2 and all(letter in letters for letter in short)


def entry() -> None:
    """The console script."""
    gc.disable()  # until the command runs: what is loaded until then is no garbage, and is never looked through
    for stream in (sys.stdout, sys.stderr):
        # Works with LANG=C, and a lone surrogate in a text is shown, not fatal.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.excepthook = _show_crash
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output went away (`tamis list | head`): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
    except OSError as error:
        # A full disk behind a redirection, for one: say it, without a traceback.
        from tamis.server.cli.outputs import warn

        warn(f"cannot write the output: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 1
    except KeyboardInterrupt:
        code = INTERRUPTED
        _end_line()
    finally:
        _flush_notes()
    sys.exit(code)


def _flush_notes() -> None:
    """Notes whose reader went away are no failure: Python would make another exit code of it."""
    try:
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _end_line() -> None:
    """After Ctrl-C: a second one ends the process at once, and the shell's prompt does not stand behind what was being written."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        # What is left of standard output is half a document.
        from tamis.server.cli.outputs import end_line

        end_line()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _show_crash(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    from tamis.server.cli.outputs import show_crash

    show_crash(kind, error, trace)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    return f"usage: tamis COMMAND [OPTION…]\n\nTamis reads, checks and safely runs the tool calls that language models write.\n\n{lines}\n\n`tamis COMMAND --help` explains one; `tamis --version` prints the version.\n"


if __name__ == "__main__":
    entry()
