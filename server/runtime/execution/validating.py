"""What is wrong with arguments, a call or a manifest, without running anything (``tool/validate``). Must not know faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.contract import Problem, ValidateResult
from tamis.protocols.manifest.reading import read_manifest
from tamis.protocols.model import Diag
from tamis.protocols.observation import unknown_tool
from tamis.protocols.positions import LineIndex
from tamis.protocols.wire import to_range
from tamis.server.runtime.calls.checking import check_arguments, check_wire_call, formats_held, said_range
from tamis.server.runtime.handlers.script.judge import received
from tamis.server.runtime.observe.masking import problems_without, secret_texts
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.inline import InlineTool, find_inline
from tamis.server.runtime.tools.registry import COMMAND, Registry

if TYPE_CHECKING:
    from tamis.protocols.manifest.embedded import SchemaExtension


def validate_args(
    registry: Registry,
    tool_id: str,
    args: Mapping[str, Any],
    tools: Sequence[InlineTool] = (),
    *,
    call: Mapping[str, Any] | None = None,
    prefix: str = "",
    lint: Mapping[str, Any] | None = None,
) -> ValidateResult:
    """``tool/validate`` of one tool's arguments, or of a wire ``call``; an unknown tool is a problem, not an error."""
    tool = find_inline(tool_id, tools)
    if tool is None:
        spoken = call or {}
        meant = registry.resolve_call(tool_id, str(spoken.get("protocol", "")), spoken.get("args"))
        tool = meant.tool
        if meant.takes_command and call is not None:
            # What named the method is no argument (ruling 30).
            call = {**call, "args": {name: value for name, value in call["args"].items() if name != COMMAND}}
    if tool is None:
        names = [*(inline.tool_id for inline in tools), *registry.names()]
        text, suggestion = unknown_tool(tool_id, names)
        problem = Problem(
            code="VA401",
            slug=CATALOGUE["VA401"].slug,
            path=prefix,
            message=text,
            suggestion=UNSET if suggestion is None else suggestion,
            range=UNSET if call is None else said_range(call.get("toolIdRange")),
        )
        return ValidateResult(valid=False, errors=[problem], warnings=[])
    check = check_arguments(args, tool, prefix) if call is None else check_wire_call(call, tool, prefix)
    check = formats_held(check, lint or {})
    arguments = args if call is None else call.get("args")
    secrets: tuple[str, ...] = ()
    if tool.may_have_secrets and isinstance(arguments, dict):
        known = cast("dict[str, Any]", arguments)
        secrets = secret_texts(known, received(known, tool))
    return ValidateResult(
        valid=check.valid,
        errors=problems_without(check.errors, secrets),
        warnings=problems_without(check.warnings, secrets),
        coerced=check.coerced if check.valid else UNSET,
    )


def validate_manifest(
    settings: Settings, manifest: Mapping[str, Any] | str, extensions: Sequence[SchemaExtension] = ()
) -> ValidateResult:
    """``tool/validate`` of a manifest, given as JSON or as its text (then problems carry ranges)."""
    source = manifest if isinstance(manifest, str) else None
    text = source if source is not None else msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode()
    reading = read_manifest(
        text,
        strict=settings.strict_json,
        runtimes=settings.sandbox.runtimes,
        handlers=settings.handlers,
        extensions=extensions,
    )
    lines = LineIndex(text)
    errors: list[Problem] = []
    warnings: list[Problem] = []
    for diag in reading.diagnostics:
        level = severity(diag)
        if level in ("error", "warning"):
            suggestion = diag.data.get("suggestion")
            problem = Problem(
                code=diag.code,
                slug=CATALOGUE[diag.code].slug,
                path=_pointer(diag, reading.tree),
                message=message(diag),
                suggestion=suggestion if isinstance(suggestion, str) else UNSET,
                range=UNSET if source is None else to_range(diag.span, lines, None),
            )
            (errors if level == "error" else warnings).append(problem)
    valid = not errors
    return ValidateResult(
        valid=valid,
        errors=errors,
        warnings=warnings,
        coerced=reading.manifest.raw if valid and reading.manifest is not None else UNSET,
    )


def _pointer(diag: Diag, tree: Any) -> str:
    pointer = diag.data.get("pointer")
    if isinstance(pointer, str):
        return pointer
    return str(tree.pointer_at(diag.span[0]).pointer)
