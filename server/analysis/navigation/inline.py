"""Renaming what a person puts into calls: variables, environments, names of blocks. Proven as every rename is: what was edited is read again.

No text of a model is changed: it is none of the places that are given. Must not know LSP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.model import Document, Edit
from tamis.protocols.positions import LineIndex
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.tomltext import read_toml
from tamis.server.analysis.kinds import function_of
from tamis.server.analysis.navigation.definition import text_of
from tamis.server.analysis.navigation.proof import apply
from tamis.server.analysis.navigation.references import (
    Site,
    inline_files,
    kind_here,
    mentions_of,
    read_as_run,
    sites_of,
)
from tamis.server.analysis.navigation.reverse import Before
from tamis.server.analysis.navigation.spelled import RenameEdit, RenameRefusedError, in_files
from tamis.server.analysis.navigation.subject import Subject
from tamis.server.analysis.running.expectations import expectations_in, expected_value
from tamis.server.analysis.running.mentions import (
    ENVIRONMENT,
    ENVIRONMENTS,
    EXAMPLE_PARTS,
    Path,
    chosen_in,
    keys_of,
    mentions_here,
    mentions_in,
    names_of,
    rewritten,
    settings_path,
)
from tamis.server.analysis.running.variables import MAX_NAME_CHARS, SHARED, is_name, named_blocks
from tamis.server.analysis.snapshot import Snapshot

KINDS = ("variable", "environment", "result", "secret")
_PART = re.compile(r"[\w-]+")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WHAT = {"variable": "a variable", "environment": "an environment", "result": "the name of a block"}


def check_inline(snapshot: Snapshot, subject: Subject) -> None:
    """Raises ``RenameRefusedError`` where there is nothing that a rename could change."""
    if subject.kind == "secret":
        raise RenameRefusedError("A secret is named in your own configuration; rename it there")
    if not subject.name:
        where = "a field of a block's result" if subject.kind == "result" else "inside of a list"
        raise RenameRefusedError(f"This is {where}, which has no name of its own here")
    if subject.kind == "environment" and subject.name == SHARED:
        raise RenameRefusedError(f"'{SHARED}' holds in every environment by its name")
    if not any(site.declares for site in sites_of(snapshot, subject)):
        name = ".".join(subject.names)
        if subject.kind == "result":
            raise RenameRefusedError(f"No block is named '{name}'")
        raise RenameRefusedError(f"'{name}' is not {_WHAT[subject.kind]} of tamis.toml")
    if subject.kind != "result":
        _check_elsewhere(snapshot, subject)


def _check_elsewhere(snapshot: Snapshot, subject: Subject) -> None:
    """What the editor's or the user's own settings say of a name does not follow a rename here."""
    config = snapshot.settings.config
    text = text_of(snapshot, settings_path(snapshot))
    here = _environments(read_toml(text).value)
    there: Mapping[str, Any] = config.environments if config is not None else {}
    own = "in the settings of the editor or of your own, which a rename does not reach; change it there first"
    if subject.kind == "variable":
        for environment, values in there.items():
            if _held(values, subject.names) and not _held(here.get(environment), subject.names):
                raise RenameRefusedError(f"'{'.'.join(subject.names)}' of 'environments.{environment}' is set {own}")
        return
    if subject.name in there and subject.name not in here:
        raise RenameRefusedError(f"The environment '{subject.name}' has variables {own}")
    chosen = chosen_in(read_toml(text))
    if config is not None and config.environment == subject.name and (chosen is None or chosen[0] != subject.name):
        raise RenameRefusedError(f"The environment '{subject.name}' is chosen {own}")


def _environments(value: Mapping[str, Any]) -> Mapping[str, Any]:
    environments = value.get(ENVIRONMENTS)
    return environments if is_object(environments) else {}


def _held(value: Any, path: Path) -> bool:
    for name in path:
        if not is_object(value) or name not in value:
            return False
        value = value[name]
    return True


def rename_inline(
    snapshot: Snapshot, subject: Subject, new: str, known: Mapping[str, Mapping[int, Before]]
) -> list[RenameEdit]:
    """The edits of a rename, by file and place, proven; raises ``RenameRefusedError``."""
    _check_new(snapshot, subject, new)
    edits = [_edit(snapshot, subject, site, new, known) for site in sites_of(snapshot, subject)]
    for path, mine in in_files(edits).items():
        text = text_of(snapshot, path)
        prove = function_of(kind_here(snapshot, path), "prove")
        after = apply(text, [one.edit for one in mine])
        reason = prove(snapshot, path, text, after, subject, new) if prove is not None else "it has no variables"
        if reason:
            raise RenameRefusedError(f"'{subject.name}' cannot become '{new}': {reason} ({path})")
    return edits


def _edit(
    snapshot: Snapshot, subject: Subject, site: Site, new: str, known: Mapping[str, Mapping[int, Before]]
) -> RenameEdit:
    start, end = site.span
    if site.path == settings_path(snapshot):
        text = text_of(snapshot, site.path)
        quote = text[start - 1 : start]
        if quote in ("'", '"') and quote and not text.startswith(quote * 3, start - 3):
            start, end, written = start - 1, end + 1, f"{quote}{new}{quote}"
        else:
            written = new if _BARE.fullmatch(new) or quote in ("'", '"') else f'"{new}"'
    else:
        written = new
        if site.raw != subject.name:
            raise RenameRefusedError(
                f"'{subject.name}' is written with escapes in {_place(snapshot, site.path, start)}"
            )
    before = known.get(site.path, {}).get(start)
    return RenameEdit(site.path, Edit(start, end, before.raw if before is not None else written))


def _place(snapshot: Snapshot, path: str, offset: int) -> str:
    return f"{path}:{LineIndex(text_of(snapshot, path)).position(offset)[0] + 1}"


# New names


def _check_new(snapshot: Snapshot, subject: Subject, new: str) -> None:
    head = subject.kind == "result" or (subject.kind == "variable" and len(subject.names) == 1)
    if len(new) > MAX_NAME_CHARS or not (is_name(new) if head else _PART.fullmatch(new)):
        begins = "begins with a letter or '_' and " if head else ""
        raise RenameRefusedError(
            f"'{new}' cannot be {_WHAT[subject.kind]}: it {begins}holds letters, digits, '_' and '-', at most {MAX_NAME_CHARS}"
        )
    if subject.kind == "result":
        _check_result(snapshot, subject, new)
    elif subject.kind == "environment":
        _check_environment(snapshot, new)
    else:
        _check_variable(snapshot, subject, (*subject.names[:-1], new))


def _check_result(snapshot: Snapshot, subject: Subject, new: str) -> None:
    text, document = snapshot.text, snapshot.document
    for name in names_of(text, document):
        if name.name == new:
            raise RenameRefusedError(f"'{new}' is taken: a block is named so in line {_line(text, name.span[0])}")
    first = next((name for name in names_of(text, document) if name.name == subject.name), None)
    if subject.declares and first is not None and first.span != subject.span:
        return
    for mention in mentions_here(snapshot):
        if not mention.secret and mention.path[0] == new:
            raise RenameRefusedError(
                f"'{new}' is taken: line {_line(text, mention.span[0])} uses it, and would get the block's result"
            )


def _line(text: str, offset: int) -> int:
    return LineIndex(text).position(offset)[0] + 1


def _check_environment(snapshot: Snapshot, new: str) -> None:
    config = snapshot.settings.config
    tree = read_toml(text_of(snapshot, settings_path(snapshot)))
    taken = {key.path[0] for key in keys_of(tree)} | set(config.environments if config is not None else ())
    if new == SHARED or new in taken:
        raise RenameRefusedError(f"'{new}' is taken: there is an environment of that name")
    chosen = chosen_in(tree)
    if new == (chosen[0] if chosen is not None else "") or (config is not None and config.environment == new):
        raise RenameRefusedError(f"'{new}' is chosen as the environment already, and would come into force")


def _check_variable(snapshot: Snapshot, subject: Subject, path: Path) -> None:
    new, head = ".".join(path), path[0]
    config = snapshot.settings.config
    here = _environments(read_toml(text_of(snapshot, settings_path(snapshot))).value)
    for environments in (here, config.environments if config is not None else {}):
        for environment, values in environments.items():
            if _held(values, path):
                raise RenameRefusedError(f"'{new}' is taken: 'environments.{environment}' has it")
    for file, text, mention in mentions_of(snapshot, head):
        if mention.path[: len(path)] == path:
            where = f"{file}:{_line(text, mention.span[0])}"
            raise RenameRefusedError(
                f"'{new}' is taken: {where} says {{{{{new}}}}}, and would get this variable's value"
            )
    if len(path) > 1:
        return
    for file, text, document in inline_files(snapshot, subject.names[0]):
        hides = document is not None and any(name.name == head for name in named_blocks(document))
        uses = (
            mention.path[0] == subject.names[0] and not mention.secret
            for mention in mentions_in(kind_here(snapshot, file), text, document)
        )
        if hides and any(uses):
            raise RenameRefusedError(f"'{new}' is taken: in {file} a block is named so")


# Proof


def of_text(snapshot: Snapshot, path: str, before: str, after: str, subject: Subject, new: str) -> str:
    """Why an edited text does not say the same with the new name; empty when it does."""

    def change(text: str) -> str:
        return rewritten(text, subject.names, new)

    one, two = read_as_run(snapshot, path, before), read_as_run(snapshot, path, after)
    if subject.kind == "result" and subject.declares and [n.name for n in named_blocks(one)].count(subject.name) > 1:
        first = next(name for name in named_blocks(one) if name.name == subject.name)
        if first.span != subject.span:
            change = _same
    old, fresh = list(_said(one, change)), list(_said(two, _same))
    if old != fresh:
        return "a call would be read otherwise"
    names = [name.name for name in named_blocks(one)]
    now = [name.name for name in named_blocks(two)]
    changed = [(was, then) for was, then in zip(names, now, strict=False) if was != then]
    wanted = [(subject.name, new)] if subject.kind == "result" else []
    return "" if len(names) == len(now) and changed == wanted else "a block would be named otherwise"


def _same(text: str) -> str:
    return text


def _said(document: Document, change: Callable[[str], str]) -> Iterator[object]:
    """All that a text says, with the references in what is run changed; what is set aside stays as it is."""
    for number, block in enumerate(document.blocks):
        write = _same if block.aside else change
        yield block.protocol, block.state, block.aside, len(block.diagnostics)
        for call in block.calls:
            yield call.tool_id, call.executable, _changed(call.args(document.text), write)
        for expectation in expectations_in(document, number) if block.calls and not block.aside else ():
            body = expected_value(expectation)
            yield expectation.form, expectation.match, _changed(body, write if expectation.form == "json" else _same)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if is_object(value):
        return {key: _changed(item, change) for key, item in value.items()}
    if is_list(value):
        return [_changed(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def of_manifest(_snapshot: Snapshot, _path: str, before: str, after: str, subject: Subject, new: str) -> str:
    """The same of a manifest."""

    def change(text: str) -> str:
        return rewritten(text, subject.names, new)

    old, fresh = parse_json(before), parse_json(after)
    if len(old.diagnostics) != len(fresh.diagnostics) or old.root is None or fresh.root is None:
        return "the file would no longer be read as before"
    expected: Any = old.root.to_python()
    if is_object(expected) and is_list(expected.get("examples")):
        examples = [
            {key: _changed(part, change) if key in EXAMPLE_PARTS else part for key, part in example.items()}
            if is_object(example)
            else example
            for example in cast("list[Any]", expected["examples"])
        ]
        expected = {**expected, "examples": examples}
    return "" if fresh.root.to_python() == expected else "the file would be read otherwise"


def of_settings(_snapshot: Snapshot, _path: str, before: str, after: str, subject: Subject, new: str) -> str:
    """The same of a ``tamis.toml``."""
    old, fresh = read_toml(before), read_toml(after)
    if len(old.errors) != len(fresh.errors):
        return "the file would no longer be read as before"
    expected = dict(old.value)
    environments = dict(_environments(old.value))
    if subject.kind == "environment":
        if expected.get(ENVIRONMENT) == subject.name:
            expected[ENVIRONMENT] = new
        environments = _renamed(environments, (subject.name,), new)
    else:
        environments = {name: _renamed(values, subject.names, new) for name, values in environments.items()}
    if ENVIRONMENTS in expected:
        expected[ENVIRONMENTS] = environments
    return "" if fresh.value == expected else "the file would be read otherwise"


def _renamed(value: Any, path: Path, new: str) -> Any:
    if not is_object(value) or path[0] not in value:
        return value
    if len(path) == 1:
        return {new if key == path[0] else key: item for key, item in value.items()}
    return {key: _renamed(item, path[1:], new) if key == path[0] else item for key, item in value.items()}
