"""What can be chosen, and what a host's answer means: never "allow" for anything but a clear one.

Pure. Must not know how the answer came.
"""

from __future__ import annotations

from typing import Any, cast

from tamis.protocols.contract import ApprovalOption
from tamis.protocols.schema.secrets import MASK
from tamis.server.runtime.calls.model import Reply

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


def chosen(option_id: object, options: tuple[ApprovalOption, ...], edited_args: Any = None, comment: Any = "") -> Reply:
    """The answer that an option stands for; an option that was not offered is no answer."""
    option = next((one for one in options if one.option_id == option_id), None)
    if option is None:
        return CANCELLED
    verb, _, scope = option.kind.partition("_")
    allows = verb == "allow"
    return Reply(
        answer="allow" if allows else "deny",
        scope=cast("Any", scope),
        edited_args=edited_args if allows else None,
        comment=comment[:MAX_COMMENT_CHARS].strip() if isinstance(comment, str) else "",
        whole_batch=option in (ALLOW_ALL, REJECT_ALL),
    )


def read_reply(raw: object, options: tuple[ApprovalOption, ...]) -> Reply:
    """The answer to ``tool/requestApproval``; whatever is not of its form is a question that was closed."""
    content = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    if content.get("outcome") != "selected":
        return CANCELLED
    return chosen(content.get("optionId"), options, content.get("editedArgs"), content.get("comment"))


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
