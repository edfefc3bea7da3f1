"""What can be chosen, and what a host's answer means: never "allow" for anything but a clear one.

Pure. Must not know how the answer came.
"""

from __future__ import annotations

import json
from typing import Any, Literal, cast

from msgspec import UNSET

from tamis.protocols.contract import ApprovalElicitation, ApprovalOption, Permissions
from tamis.protocols.invisible import visible
from tamis.protocols.observation import cut_middle, plain
from tamis.protocols.schema.secrets import MASK
from tamis.server.runtime.calls.model import Question, Reply

MAX_COMMENT_CHARS = 2_000
ALLOW = ApprovalOption(option_id="allow", label="Allow once", kind="allow_once")
SESSION = ApprovalOption(option_id="session", label="Allow for this session", kind="allow_session")
ALWAYS = ApprovalOption(option_id="always", label="Always allow", kind="allow_always")
REJECT = ApprovalOption(option_id="reject", label="Deny", kind="reject_once")
NEVER = ApprovalOption(option_id="never", label="Always deny", kind="reject_always")
ALLOW_ALL = ApprovalOption(option_id="allow-all", label="Allow all of these", kind="allow_once")
REJECT_ALL = ApprovalOption(option_id="reject-all", label="Deny all of these", kind="reject_once")
OPTIONS = (ALLOW, SESSION, ALWAYS, REJECT, NEVER)
BATCH_OPTIONS = (*OPTIONS, ALLOW_ALL, REJECT_ALL)

CANCELLED = Reply(answer="cancelled")


def chosen(
    option_id: object,
    options: tuple[ApprovalOption, ...],
    edited_args: Any = None,
    comment: Any = "",
    content: Any = None,
) -> Reply:
    """The answer that an option stands for; an option that was not offered is no answer. ``content``: what was typed into a form."""
    option = next((option for option in options if option.option_id == option_id), None)
    if option is None:
        return CANCELLED
    verb, _, scope = option.kind.partition("_")
    allows = verb == "allow"
    return Reply(
        answer="allow" if allows else "deny",
        option_id=option.option_id,
        scope=cast("Any", scope),
        edited_args=edited_args if allows else None,
        comment=comment[:MAX_COMMENT_CHARS].strip() if isinstance(comment, str) else "",
        content=content if allows else None,
        whole_batch=option in (ALLOW_ALL, REJECT_ALL),
    )


def read_reply(raw: object, options: tuple[ApprovalOption, ...]) -> Reply:
    """The answer to ``tool/requestApproval``; whatever is not of its form is a question that was closed, and says so as its ``fault``."""
    content = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    if raw is None or content.get("outcome") == "cancelled":
        return CANCELLED
    reply = CANCELLED
    if content.get("outcome") == "selected":
        edited, comment = content.get("editedArgs"), content.get("comment")
        reply = chosen(content.get("optionId"), options, edited, comment, content.get("content"))
    if reply is not CANCELLED:
        return reply
    # what the host sent is not repeated: a model reads this
    offered = ", ".join(f"'{option.option_id}'" for option in options)
    fault = f"the host's answer was none of the options that were offered: outcome 'selected' with optionId {offered}"
    return Reply(answer="cancelled", fault=fault)


def with_secrets(edited: Any, shown: Any, real: Any) -> Any:
    """Edited arguments in which each mask that was left as it was shown is the value behind it again."""
    if isinstance(edited, str) and MASK in edited and edited == shown:
        return real
    if isinstance(edited, dict) and isinstance(shown, dict) and isinstance(real, dict):
        masks, values = cast("dict[str, Any]", shown), cast("dict[str, Any]", real)
        return {
            name: with_secrets(value, masks.get(name), values.get(name))
            for name, value in cast("dict[str, Any]", edited).items()
        }
    if isinstance(edited, list) and isinstance(shown, list) and isinstance(real, list):
        items, values_in = cast("list[Any]", shown), cast("list[Any]", real)
        return [
            with_secrets(value, items[at], values_in[at]) if at < min(len(items), len(values_in)) else value
            for at, value in enumerate(cast("list[Any]", edited))
        ]
    return cast("Any", edited)


# What a person is shown of a call: its arguments without secrets and without what cannot be seen, how much it may do. Pure.


Risk = Literal["low", "medium", "high"]
MAX_PREVIEW_CHARS = 2_000
MAX_SENTENCE_CHARS = 2_000
MAX_NAMES = 40


def json_text(value: object) -> str:
    """A value as JSON on one line; never raises."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    except (RecursionError, ValueError):
        return '"(nested too deeply to be shown)"'


def preview(args: dict[str, Any], limit: int = MAX_PREVIEW_CHARS) -> str:
    """The arguments as JSON of about ``limit`` characters at most. Each has a share, and is cut in its middle, which says how much is
    missing: a long one hides neither another nor its own end."""
    whole = json_text(args)
    if len(whole) <= limit:
        shown = visible(whole)
        if len(shown) <= limit:
            return shown
    names = list(args)[:MAX_NAMES]
    texts = {name: _bounded(json_text(args[name]), limit) for name in names}
    lengths = sorted(len(text) for text in texts.values())
    left, share = limit, limit
    for at, length in enumerate(lengths):
        share = max(16, left // (len(lengths) - at))
        if length > share:
            break
        left -= length
    members = [f"{visible(json_text(cut_middle(name, 100)))}:{cut_middle(text, share)}" for name, text in texts.items()]
    more = [f"… {len(args) - len(names)} more"] if len(args) > len(names) else []
    return f"{{{','.join([*members, *more])}}}"


def _bounded(text: str, limit: int) -> str:
    return visible(text if len(text) <= limit else cut_middle(text, limit))


def risk_of(permissions: Permissions, *, builds: bool, secrets: bool, unconfined: bool) -> Risk:
    """How much a call may do: ``high`` when it can change or send something, or its packages are built; ``medium`` when it is shown
    more than its own folder, is given secrets, or no sandbox holds it."""
    granted = permissions.granted
    if granted.write or granted.hosts or granted.capabilities or builds:
        return "high"
    return "medium" if granted.read or granted.secrets or secrets or unconfined else "low"


def rights_in_words(permissions: Permissions) -> str:
    """What was granted, as the end of a sentence; empty when it is nothing."""
    granted = permissions.granted
    phrases = [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("read", granted.read),
            ("write", granted.write),
            ("reach", granted.hosts),
            ("use", granted.capabilities),
            ("be given the secret", granted.secrets or []),
        )
        if names
    ]
    return "; ".join(phrases)


def sentence(tool_id: str, display_name: str, args_text: str, permissions: Permissions, limit: int) -> str:
    """A question on one line: the tool, its arguments, what it may do."""
    title = f"{tool_id} ({display_name})" if display_name and display_name != tool_id else tool_id
    rights = rights_in_words(permissions)
    may = f" It may {rights}." if rights else ""
    text = f"Run {title} with these arguments? {_cut(args_text, limit)}{_cut(may, limit)}"
    # A direction or control character in an argument must not change what the question seems to say.
    return visible(plain(text))


MAX_LINE_ARGS_CHARS = 300
MAX_LINE_RIGHTS_CHARS = 160


def line(question: Question) -> tuple[str, bool]:
    """An approval in a few words, and whether they show all of it: risk and rights first, so that no argument pushes them out of sight."""
    rights = rights_in_words(question.permissions)
    args = json_text(question.args)
    title = cut_middle(question.tool_id, 100)
    may = f": it may {cut_middle(rights, MAX_LINE_RIGHTS_CHARS)}" if rights else ""
    text = f"Run {title} ({question.risk} risk{may})? {preview(question.args, MAX_LINE_ARGS_CHARS)}"
    whole = len(args) <= MAX_LINE_ARGS_CHARS and len(rights) <= MAX_LINE_RIGHTS_CHARS and title == question.tool_id
    return visible(plain(text)), whole and len(visible(args)) <= MAX_LINE_ARGS_CHARS


def question_text(question: Question, limit: int = MAX_SENTENCE_CHARS) -> str:
    """A question on one line, be it an approval or one of an MCP server."""
    if question.elicitation is not None:
        return elicitation_text(question.tool_id, question.elicitation)
    return sentence(question.tool_id, question.display_name, question.preview, question.permissions, limit)


def elicitation_text(tool_id: str, asked: ApprovalElicitation) -> str:
    """The question of an MCP server on one line, which says first whose it is."""
    field = "" if asked.field is UNSET else f" It asks for: {asked.field}."
    if asked.url is not UNSET:
        field = f" It wants you to open an address of the host {asked.url.host}: {asked.url.url}"
    text = f"The MCP server '{asked.server}' asks (its words, not those of Tamis) while its tool {tool_id} runs: “{asked.message}”{field}"
    return visible(plain(text))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"
