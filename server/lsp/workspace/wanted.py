"""Which files of a folder the server looks at, by their names. Must not know what is in them."""

from __future__ import annotations

TEXTS = (".md", ".markdown", ".txt", ".tam", ".vcp", ".action")
JSONS = (".json", ".jsonc")
CONFIGURATION = ("tamis.toml", ".gitignore", ".ignore", ".tamisignore")
"""Files that decide how everything else is read: when one changes, the folder is loaded anew."""
_NO_WORKFLOWS = frozenset({"package.json", "package-lock.json", "tsconfig.json", "composer.json", "deno.json"})


def may_be_wanted(name: str) -> bool:
    """Whether a file of this name may say something about tools."""
    return (name.endswith((*TEXTS, *JSONS)) and name not in _NO_WORKFLOWS) or name in CONFIGURATION


def is_definition_or_ignore(name: str) -> bool:
    """Whether a file of this name may count in a folder of tools."""
    return name.endswith((".tool.json", ".tool.jsonc", ".node.json")) or name in CONFIGURATION[1:]


def is_workflow_or_ignore(name: str) -> bool:
    """Whether a file of this name may count in a folder of workflows."""
    return name.endswith(JSONS) or name in CONFIGURATION[1:]


def may_be_workflow(name: str) -> bool:
    """Whether a file of this name is a JSON file that may be a workflow."""
    return name.endswith(JSONS) and not name.endswith((".tool.json", ".tool.jsonc", "agent_profile.json"))
