"""What uv's words mean: where a step stands, and which package failed of what. Pure text."""

from __future__ import annotations

import re

from tamis.environments.model import Cause, DependencyFault, Recipe, Step, Word, tail
from tamis.environments.reach import refused
from tamis.sandbox.model import RunOutcome

_MARK = re.compile(r"#tamis (resolving|downloading|installing)(?: (\d+))?")
_PREPARED = re.compile(r"\bPrepared (\d+) packages? in")

_VERSIONS = r"[=<>!~]=?=?[^\s`,]+(?:,[=<>!~]=?=?[^\s`,]+)*"
_SPEC = rf"[A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?(?:{_VERSIONS})?"
_PACKAGE = r"`?([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?(?:[=<>!~]=?=?[^\s`,]+)?)`?"
_BUILD = "set policy.allowBuild and the tool's execution.allowBuild, or choose a version that has a wheel"
_RULES: tuple[tuple[str, Cause, str, str], ...] = (
    (r"No space left on device|Disk quota exceeded", "disk", "no room is left on the disk", "make room"),
    (rf"Hash mismatch for {_PACKAGE}", "hash", "a file of {0} is not the one whose hash is given", "find out why it changed before a new hash is written"),
    (
        rf"(?:all requirements must (?:have a hash|be pinned)|no trusted hash was provided for)[^:]*:?\s*{_PACKAGE}",
        "hash",
        "some requirements have hashes, and {0} has none",
        "give each requirement, also those that others need, with '==' and --hash (`uv pip compile --generate-hashes`)",
    ),
    (rf"{_PACKAGE} has no wheels with a matching", "version", "{0} has no binary package for this Python and machine", _BUILD),
    (rf"{_PACKAGE} has no usable wheels|{_PACKAGE} has no wheels", "source", "{0} has no binary package, and building is not allowed", _BUILD),
    (rf"Building source distributions for {_PACKAGE} is disabled|Building source distributions is disabled", "source", "{0} would have to be built, and building is not allowed", _BUILD),
    (rf"Failed to build {_PACKAGE}|Failed to download and build {_PACKAGE}", "source", "{0} could not be built", "see the build's own words in the details"),
    (rf"{_PACKAGE} was not found in the (?:package registry|provided package locations|cache)", "missing", "there is no package {0}", "see to its name, and to the indexes that pip or uv is configured for"),
    (rf"there (?:is|are) no versions? of {_PACKAGE}", "version", "there is no {0}", "choose a version that there is"),
    (r"requires-python|current Python version \(([0-9.]+)\) does not satisfy|requested Python version", "version", "a package does not support this Python", "choose another version, or another Python in sandbox.interpreters.python"),
        (
        rf"{_PACKAGE} has an invalid package format|Failed to (?:install|download|unzip|extract): \S+ \({_PACKAGE}\)|Failed to (?:read|extract|unpack|parse) `?{_PACKAGE}",
        "installer",
        "the package {0} is damaged or not as packages are",
        "choose another version",
    ),
)  # fmt: skip
_NETWORK = re.compile(
    r"error sending request|tunnel|dns error|operation timed out|Connect(?:ion)? (?:refused|reset)|client error \(Connect\)"
    r"|Failed to fetch|Could not connect|error decoding response body|Request failed after|Network connectivity is disabled"
)
_FETCHED = re.compile(r"(?:Failed to fetch|for url)[^`(]*[`(]?((?:https?)://[^\s`)]+)")
_STATUS = re.compile(r"HTTP status (?:client|server) error \((\d{3}[^)]*)\)")


def progress(step: Step, text: str) -> tuple[Word, int] | None:
    """Where the installation stands, by the script's marks and uv's own lines."""
    if step.name != "install":
        return None
    marks = _MARK.findall(text)
    prepared = _PREPARED.search(text)
    if prepared is not None:
        return "installing", int(prepared.group(1))
    if not marks:
        return None
    word, count = marks[-1]
    return word, int(count) if count else -1


def explain(recipe: Recipe, step: Step, outcome: RunOutcome) -> DependencyFault:
    """A failed step as a fault that names the package and the cause."""
    phrase = outcome.stderr.decode("utf-8", "replace")
    flat = " ".join(re.sub(r"[│├╰─▶×]", " ", phrase).split())
    text = tail(outcome.stderr)
    denied = outcome.denied_hosts
    if denied and "was not found" in flat:
        # an index that is refused over plain HTTP looks to uv like one that does not have the package
        return _network(recipe, flat, outcome, text)
    fault = _version(flat, text)
    if fault is not None:
        return fault
    for pattern, cause, sentence, remedy in _RULES:
        match = re.search(pattern, flat)
        if match is not None and not (cause == "missing" and _NETWORK.search(flat)):
            package = next((part for part in match.groups() if part), "") if match.groups() else ""
            package = package.rstrip(".,:;")
            message = sentence.format(package or "a package")
            return DependencyFault(message, cause=cause, remedy=remedy, package=package, text=text, denied=denied)
    if "unsatisfiable" in flat or "conflict" in flat.lower():
        return DependencyFault(_conflict(flat), cause="conflict", remedy="loosen one of them", text=text, denied=denied)
    if denied or _NETWORK.search(flat):
        return _network(recipe, flat, outcome, text)
    last = next(
        (line.strip() for line in reversed(phrase.splitlines()) if line.strip()), f"exit code {outcome.exit_code}"
    )
    return DependencyFault(
        f"uv could not install what {recipe.form} declares: {last[:300]}", cause="installer", text=text, denied=denied
    )


_ONLY = re.compile(
    rf"only (?:the following versions of ({_SPEC}) are available: (.*?) (?:and|we can|,)|({_SPEC}) is available)"
)
_REQUIRED = re.compile(rf"(?<!conclude that )you require ((?:{_SPEC})(?: and (?!you |we )(?:{_SPEC}))*)")
_NEEDS = re.compile(rf"({_SPEC}) depends on ({_SPEC})")


def _version(flat: str, text: str) -> DependencyFault | None:
    """A version that is not among those that there are; uv names them where they are few."""
    only = _ONLY.search(flat)
    if only is None:
        return None
    there = only.group(2) or only.group(3)
    name = _name(only.group(1) or only.group(3))
    asked = next((item for item in _required(flat) if _name(item) == name), "")
    wants = next(((who, what) for who, what in _needs(flat) if _name(what) == name), None)
    by = ""
    if not asked and wants is not None:
        by, asked = f", which {wants[0]} needs", wants[1]
    listed = re.sub(rf"{re.escape(name)}(?=[=<>])", "", " ".join(there.split())).removeprefix("==").rstrip(".,")
    listed = ", ".join(item.removeprefix("==") for item in listed.split(" ")[:12])
    return DependencyFault(
        f"there is no {asked or f'such version of {name}'}{by}; there is {name} {listed}",
        cause="version",
        remedy="choose a version that there is",
        package=asked or name,
        text=text,
    )


def _name(spec: str) -> str:
    return re.split(r"[=<>!~\[]", spec)[0]


def _needs(flat: str) -> list[tuple[str, str]]:
    return list(dict.fromkeys((who, what.rstrip(".,:;")) for who, what in _NEEDS.findall(flat)))


def _required(flat: str) -> list[str]:
    """What the declaration itself asks for, as uv says it."""
    requirements = (item.rstrip(".,:;") for group in _REQUIRED.findall(flat) for item in group.split(" and "))
    return list(dict.fromkeys(requirement for requirement in requirements if requirement))


def _conflict(flat: str) -> str:
    """Who needs what, and what is asked for beside it; each once."""
    needs = _needs(flat)
    asked = [item for item in _required(flat) if item not in (who for who, _ in needs)]
    clauses = [f"{who} needs {what}" for who, what in needs[:3]]
    if asked:
        clauses.append(f"{' and '.join(asked[:3])} {'is' if len(asked) == 1 else 'are'} asked for")
    return "the requirements contradict each other" + (f": {', and '.join(clauses)}" if clauses else "")


def _network(recipe: Recipe, flat: str, outcome: RunOutcome, text: str) -> DependencyFault:
    fetched = _FETCHED.search(flat)
    where = fetched.group(1).split("?")[0] if fetched else "the package index"
    if outcome.denied_hosts:
        message, remedy = refused(recipe.hosts, outcome)
        return DependencyFault(
            message,
            cause="network",
            remedy=remedy,
            text=text,
            denied=outcome.denied_hosts,
        )
    status = _STATUS.search(flat)
    why = f"it answered {status.group(1)}" if status else "it does not answer, or not as an index does"
    return DependencyFault(
        f"{where} cannot be used: {why}; what is missing is not in the cache either",
        cause="network",
        remedy="see whether this machine is connected and whether pip's and uv's settings name the right index",
        text=text,
    )
