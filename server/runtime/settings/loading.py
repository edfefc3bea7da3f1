"""The settings in force: the operator's sources, weakest first, and on the other side the folder's file (ruling 58).

Defaults, the machine's file, the user's, ``--config``, the host's settings say what may happen; the folder's ``tamis.toml`` and an editor's
workspace settings say what the folder is, and may only narrow. What a trusted folder asks for counts over the user's file. A mistake in
what bounds tools keeps every tool from running. Must not know tools or faces.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from tamis.protocols.positions import LineIndex
from tamis.server.runtime.settings import files
from tamis.server.runtime.settings.classes import CLASSES, SettingClass, default_of
from tamis.server.runtime.settings.config import LayeredPolicy, LoadedSettings, NotInForce, RuleSet, Settings
from tamis.server.runtime.settings.files import FILE_NAME, MAX_FILE_BYTES, Unsafe, is_there, read_own, user_file
from tamis.server.runtime.settings.reading import path_of, read_settings, settings_with, span_of

_RULE = (
    "; a mistake in tools, profile, onConflict, [policy], [sandbox] or [dependencies], or an unknown name that may be meant as one of"
    " them, keeps every tool from running"
)
_SHOWN_SETTINGS = 2
_NOT_RUN = "; no tool is run until it is mended"
_PROGRAMS = "sandbox.interpreters."
_RULES = ("policy.rules", "policy.tools")


class StartedWith(msgspec.Struct, frozen=True):
    """What the command line said: ``--config FILE`` and ``--trust``."""

    config: str = ""
    trust: bool = False


class Source(msgspec.Struct, frozen=True):
    """What one source says."""

    name: str
    """How problems and findings call it."""
    values: dict[str, Any] = {}
    """By dotted name, without what is wrong."""
    problems: tuple[str, ...] = ()
    closed: str = ""
    """What is wrong with it so that nothing may run."""
    text: bytes = b""
    """What the file holds."""
    known: bool = True
    """Whether it could be read; what the operator wanted is not known of one that could not."""
    unsafe: bool = False
    """Whether nobody's trust puts it in force, whatever it holds."""


_started = StartedWith()


def start_with(words: StartedWith) -> None:
    """Takes what the command line of this process said; holds for everything that is loaded from now on."""
    global _started
    _started = words


def word_of_start() -> str:
    """Whose word makes every folder of this process trusted: ``--trust``, ``TAMIS_TRUST``, or nobody's (empty)."""
    if _started.trust:
        return "--trust"
    return "TAMIS_TRUST" if os.environ.get("TAMIS_TRUST") == "1" else ""


def trust_notice() -> str:
    """What a daemon tells when it starts, where the way it was started makes every folder trusted; else empty."""
    word = word_of_start()
    return f"{word}: every folder is trusted here; server/health tells what that puts in force" if word else ""


def told_of_trust(loaded: LoadedSettings) -> Iterator[str]:
    """What every command and daemon tells of what a folder asks for in vain, and of whose word puts what it asks for in force."""
    if loaded.not_in_force:
        changed = "; it has changed since you trusted it" if not loaded.trusted_by and was_trusted(loaded.root) else ""
        yield f"not in force: {_named(loaded.not_in_force, _SHOWN_SETTINGS)}{changed}; `tamis trust` shows all"
    if loaded.asks and loaded.trusted_by in ("--trust", "TAMIS_TRUST"):
        yield f"{loaded.trusted_by} puts in force: {_named(loaded.asks)}"


def _named(asked: Iterable[NotInForce], limit: int | None = None) -> str:
    """The settings by the file that asks for them; with ``limit`` so many of each, and how many more there are."""
    named: dict[str, list[str]] = {}
    for setting in asked:
        named.setdefault(setting.where, []).append(setting.setting)
    words: list[str] = []
    for where, settings in named.items():
        names = list(dict.fromkeys(settings))
        shown = names if limit is None or len(names) <= limit + 1 else names[:limit]
        more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
        words.append(f"{', '.join(shown)}{more} of {_near(where)}")
    return ", ".join(words)


def _near(path: str) -> str:
    """A path as it is shown: from the current folder, where it is in it."""
    try:
        return path.removeprefix(os.path.join(os.getcwd(), ""))
    except OSError:  # a folder that was removed
        return path


def load_settings(
    root: Path,
    overlay: Mapping[str, Any] | None = None,
    whose: str = "host settings",
    *,
    trusted: bool | None = None,
    editor: bool = False,
    text: str | None = None,
) -> LoadedSettings:
    """The settings in force in a root; never raises.

    ``overlay``: what a host or an editor sends, which problems call ``whose``. ``trusted``: what the host says of the folder; None leaves it
    to ``--trust``, ``TAMIS_TRUST`` and the user's record. ``editor``: the overlay is of the folder's side, unless the folder is trusted by
    another word than the record, which does not know it. ``text``: what the folder's file would hold, instead of what it holds; a file that
    is never in force stays so.
    """
    machine, users, *given = operators_files()
    below = [_from_file(machine), _from_file(users, users=True)]
    above = [_from_file(path) for path in given]
    folder = _folder_source(root)
    if text is not None and not folder.unsafe:
        folder = _parsed(str(root / FILE_NAME), FILE_NAME, text.encode("utf-8", "replace"))
    sources = [_source(whose, _said(overlay))] if overlay else []
    own = [folder, *sources] if editor else [folder]
    above += () if editor else sources
    word = "" if trusted is False else "host" if trusted else word_of_start()
    everything = [*below, *own, *above]
    stack, record = _composed(root, below, own, above, []), ""
    asks = tuple(stack.refused)
    if asks and word:
        stack = _composed(root, below, own, above, own)
    elif asks and trusted is None:
        recorded, record = _recorded(root, folder)
        if recorded:
            word = "record"
            stack = _composed(root, below, own, above, [folder])
    problems = [problem for source in everything for problem in source.problems]
    problems += [
        f"{source.name}: 'policy.final' acts in {files.MACHINE_FILE} alone"
        for source in (*below[1:], *above)
        if "policy.final" in source.values
    ]
    closed = next((source.closed for source in everything if source.closed), "")
    settings = stack.settings()
    if not all(source.known for source in everything):
        # What the operator wanted is not known: no tools, rather than the ones below the whole root.
        settings = Settings(tools=())
    return LoadedSettings(
        root,
        settings,
        (*problems, record) if record else tuple(problems),
        f"the configuration has a fault: {closed}" if closed else "",
        stack.sources,
        tuple(stack.refused),
        asks,
        word,
        folder.text,
        folder.problems,
        trusted,
        tuple((source.name, problem) for source in (*below, *above) for problem in source.problems),
    )


def _recorded(root: Path, folder: Source) -> tuple[bool, str]:
    """Whether the user trusted the folder as it is now, and what is wrong with the record."""
    from tamis.server.runtime.settings.trust import is_trusted

    return is_trusted(root, folder.text, folder.values)


def recorded_now(root: Path) -> bool:
    """Whether the user trusted the folder as it is; a file that is never in force is another one than any that was trusted."""
    folder = _folder_source(root)
    return not folder.closed and _recorded(root, folder)[0]


def operators_files() -> tuple[str, ...]:
    """The configuration files of the operator that are looked for, weakest first."""
    return (files.MACHINE_FILE, user_file(), *([_started.config] if _started.config else []))


def is_trusted(loaded: LoadedSettings) -> bool:
    """Whether somebody trusts a folder as it is now: the host, how this process was started, or the user's record. A host's no holds."""
    if loaded.trusted is False:
        return False
    return bool(loaded.trusted_by or word_of_start()) or recorded_now(loaded.root)


def was_trusted(root: Path) -> bool:
    """Whether the user trusted the folder, as it is or as it was."""
    from tamis.server.runtime.settings.trust import TrustFault, trusted_folders

    try:
        return os.path.realpath(root) in trusted_folders()
    except TrustFault:
        return False


def asked_by_itself(root: Path, text: bytes) -> tuple[NotInForce, ...]:
    """What a folder whose file holds this text asks for beyond what it may set, where nobody grants anything: a record of trust puts all
    of it in force, also what the operator's own settings grant today and not tomorrow."""
    if not text:
        return ()
    folder = _parsed(str(root / FILE_NAME), FILE_NAME, text)
    return tuple(_composed(root, (), (folder,), (), ()).refused)


def changed_files(root: Path) -> dict[str, str]:
    """The named files that changed since the folder was trusted, each with what happened to it. Raises ``TrustFault``."""
    from tamis.server.runtime.settings.trust import changed_since

    return changed_since(root, _folder_source(root).values)


def record_trust(root: Path, shown: bytes) -> bool:
    """Records that the user trusts the folder as it was shown; False where its file is another one now. Raises ``TrustFault``."""
    from tamis.server.runtime.settings.trust import trust

    folder = _folder_source(root)
    if folder.text != shown or folder.closed:
        return False
    trust(root, folder.text, folder.values)
    return True


# Sources


def _from_file(path: str, *, users: bool = False) -> Source:
    """A configuration file of the operator's; one that is not there says nothing."""
    try:
        if not is_there(path):
            return Source(path)
    except PermissionError:
        # A home folder that this user cannot enter is another user's: a changed user often keeps the variables.
        if users:
            return Source(path)
    except OSError:
        pass
    return _read(path, path, None)


def _folder_source(root: Path) -> Source:
    path = str(root / FILE_NAME)
    return _read(path, FILE_NAME, str(root)) if os.path.lexists(path) else Source(path)


def _read(path: str, name: str, root: str | None) -> Source:
    try:
        return _parsed(path, name, read_own(path, MAX_FILE_BYTES + 1, root))
    except Unsafe as unsafe:
        problem = f"{path} {unsafe.reason} and is not in force; no tool is run until it is mended: {unsafe.remedy}"
        return Source(path, problems=(problem,), closed=problem, unsafe=True)
    except OSError as error:
        return _unread(path, f"cannot be read: {error.strerror}", unsafe=True)


def _parsed(path: str, name: str, data: bytes) -> Source:
    import tomllib

    if len(data) > MAX_FILE_BYTES:
        return _unread(path, f"is larger than {MAX_FILE_BYTES} bytes", data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unread(path, f"is no TOML: {error}", data)
    try:
        return _source(name, tomllib.loads(text), path, data)
    except (RecursionError, ValueError) as error:  # numbers of thousands of digits are no TOMLDecodeError
        from tamis.protocols.tomltext import syntax_fault

        span, reason = syntax_fault(text, error)
        problem = f"{name}{_at(text, span)}: This is no TOML: {reason}{_NOT_RUN}"
        return _not_known(path, problem, data)


def _unread(path: str, cause: str, data: bytes = b"", *, unsafe: bool = False) -> Source:
    return _not_known(path, f"{path} {cause}{_NOT_RUN}", data, unsafe=unsafe)


def _not_known(path: str, problem: str, data: bytes, *, unsafe: bool = False) -> Source:
    return Source(path, problems=(problem,), closed=problem, text=data, known=False, unsafe=unsafe)


def _source(name: str, raw: Mapping[str, Any], path: str = "", text: bytes = b"") -> Source:
    read = read_settings(raw)
    told = _told(name, [problem for problem, _ in read.problems], text) if read.problems else []
    problems = [f"{words}{_NOT_RUN if binds else ''}" for words, (_, binds) in zip(told, read.problems, strict=True)]
    closed = next((f"{words}{_RULE}" for words, (_, binds) in zip(told, read.problems, strict=True) if binds), "")
    return Source(path or name, read.values, tuple(problems), closed, text)


def _told(name: str, problems: Iterable[str], data: bytes) -> list[str]:
    """What is wrong with the settings of a source, each as it is told everywhere: of a file's with its place."""
    if not data:
        return [f"{name}: {problem}" for problem in problems]
    from tamis.protocols.tomltext import paths_by_name, toml_places

    text = data.decode("utf-8-sig")
    places = toml_places(text)
    by_name = paths_by_name(places)
    spans = ((problem, span_of(problem, places.get(path_of(problem, by_name)))) for problem in problems)
    return [f"{name}{_at(text, span)}: {problem[:1].upper()}{problem[1:]}" for problem, span in spans]


def _at(text: str, span: tuple[int, int]) -> str:
    line, column = LineIndex(text).position(span[0])
    return f":{line + 1}:{column + 1}"


def _said(overlay: Mapping[str, Any]) -> dict[str, Any]:
    """What a host's settings say: an editor writes null for what is not set, and a TOML file cannot."""
    return {
        name: _said(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
        for name, value in overlay.items()
        if value is not None
    }


# What they come to


class _Stack:
    """The settings that sources come to, laid one over the other."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.refused: list[NotInForce] = []
        self._chain: list[RuleSet] = []
        self._held: list[RuleSet] = []

    def lay(self, source: Source, *, below_final: bool) -> None:
        """The operator's word: it replaces what weaker sources say, table by table; a final policy it can only narrow."""
        for dotted, setting in source.values.items():
            value = _program(setting, source, self._root) if dotted.startswith(_PROGRAMS) else setting
            if dotted == "policy.final":
                if source.name == files.MACHINE_FILE:
                    self._set(dotted, value, source.name)
            elif below_final and dotted.startswith("policy."):
                self._narrow(dotted, value, source, refused=True, final=True)
            elif dotted not in _RULES:
                self._set(dotted, value, source.name)
        rules = _rules_of(source)
        if not rules.rules and not rules.tools:
            return
        if below_final:
            self._hold(rules, refused=True, final=True)
        else:
            self._chain.insert(0, rules)
            for dotted in _RULES:
                if dotted in source.values:
                    self._note(dotted, source.name)

    def own(self, source: Source) -> None:
        """What a folder that nobody trusted says of itself."""
        for dotted, value in source.values.items():
            known = CLASSES[dotted]
            if known.kind != "folder":
                continue
            kept, rest = known.keep(value, self._root) if known.keep is not None else (value, None)
            if kept is not None and known.join is not None:
                kept, more = known.join(kept, self._now(dotted))
                rest = more if rest is None else rest
            if kept is not None:
                self._set(dotted, kept, source.name)
            if rest is not None:
                self.refused.append(NotInForce(dotted, rest, source.name))

    def narrow(self, source: Source, *, refused: bool) -> None:
        """What a folder wants to be stricter than everything else; ``refused``: what is not is told."""
        for dotted, value in source.values.items():
            known = CLASSES[dotted]
            if known.kind == "folder":
                continue
            kept, rest = known.keep(value, self._root) if known.keep is not None else (value, None)
            if refused and rest is not None:
                self.refused.append(NotInForce(dotted, rest, source.name))
            self._narrow(dotted, kept, source, refused=refused)
        rules = _rules_of(source)
        others = any(rule_set.where != rules.where for rule_set in self._chain)
        if ((rules.rules or rules.tools) and (others or not self._chain)) or (rules.confirmation != "never" and others):
            self._hold(rules, refused=refused)

    def _narrow(self, dotted: str, value: Any, source: Source, *, refused: bool, final: bool = False) -> None:
        if dotted in _RULES:
            return
        now = self._now(dotted)
        holds, rest = _joined(CLASSES[dotted], value, now)
        if holds != now:
            self._values[dotted] = holds
            self.sources[dotted] = source.name
        if refused and rest is not None:
            self.refused.append(NotInForce(dotted, rest, source.name, final))

    def _hold(self, rules: RuleSet, *, refused: bool, final: bool = False) -> None:
        if any(rule_set.where == rules.where for rule_set in self._held):
            return
        self._held.append(rules)
        allowing = tuple(rule for rule in rules.rules if rule.verdict == "allow")
        allowed = {name: verdict for name, verdict in rules.tools.items() if verdict == "allow"}
        for dotted, asked in zip(_RULES, (allowing, allowed), strict=True):
            if asked and refused:
                self.refused.append(NotInForce(dotted, asked, rules.where, final))
        for dotted, there, idle in zip(_RULES, (rules.rules, rules.tools), (allowing, allowed), strict=True):
            if len(there) > len(idle):
                self._note(dotted, rules.where)

    def _now(self, dotted: str) -> Any:
        if dotted in self._values:
            return self._values[dotted]
        return default_of(dotted)

    def _set(self, dotted: str, value: Any, name: str) -> None:
        before = self._values.get(dotted)
        if isinstance(value, dict) and before:
            self._values[dotted] = {**before, **cast("dict[str, Any]", value)}
            self._note(dotted, name)
        else:
            self._values[dotted] = value
            self.sources[dotted] = name

    def _note(self, dotted: str, name: str) -> None:
        before = self.sources.get(dotted)
        self.sources[dotted] = f"{before}, {name}" if before and name not in before.split(", ") else name

    def settings(self) -> Settings:
        """The settings in force."""
        self._values["policy.rules"] = tuple(
            rule for rule_set in (*self._chain, *self._held) for rule in rule_set.rules
        )
        self._values["policy.tools"] = {
            name: verdict for rule_set in reversed(self._chain) for name, verdict in rule_set.tools.items()
        }
        settings = settings_with(self._values)
        if (
            not self._held
            and len(self._chain) <= 1
            and all(rule_set.where.endswith(FILE_NAME) for rule_set in self._chain)
        ):
            return settings
        policy = LayeredPolicy(
            **msgspec.structs.asdict(settings.policy), chain=tuple(self._chain), held=tuple(self._held)
        )
        return msgspec.structs.replace(settings, policy=policy)


def _program(path: str, source: Source, root: str) -> str:
    """A program's path, which is relative to the folder of the file that names it; of what a host says, to the root."""
    if not path or path.startswith("~"):
        return path
    base = os.path.dirname(source.name) if os.path.isabs(source.name) else root
    return os.path.normpath(os.path.join(base, path))


def _joined(known: SettingClass, asked: Any, now: Any) -> tuple[Any, Any]:
    """What holds, and what of ``asked`` does not."""
    if known.join is not None:
        return known.join(asked, now)
    if asked == now:
        return now, None
    if isinstance(asked, dict):
        there = cast("dict[str, Any]", now)
        more = {name: value for name, value in cast("dict[str, Any]", asked).items() if there.get(name) != value}
        return there, more or None
    return now, asked


def _rules_of(source: Source) -> RuleSet:
    values = source.values
    confirmation = values.get("policy.requireConfirmation", "never")
    return RuleSet(source.name, values.get("policy.rules", ()), values.get("policy.tools", {}), confirmation)


def _composed(
    root: Path, below: Iterable[Source], own: Iterable[Source], above: Iterable[Source], trusted: Iterable[Source]
) -> _Stack:
    stack, counting = _Stack(root), [id(source) for source in trusted]
    final = False
    for source in below:
        stack.lay(source, below_final=final)
        final = final or (source.name == files.MACHINE_FILE and source.values.get("policy.final") is True)
    for source in own:
        if id(source) in counting:
            stack.lay(source, below_final=final)
        else:
            stack.own(source)
    for source in above:
        stack.lay(source, below_final=final)
    for source in own:
        stack.narrow(source, refused=id(source) not in counting)
    return stack
