"""What the conformance suite asks for and docs/mcp.md says that Tamis does not offer, by scenario and check; ``*`` is all checks of one. The reasons are sentences of that page."""

OWN_PROMPTS = "Prompts are the instructions for text protocols; a folder brings none of its own"
OWN_RESOURCES = "Resources are what Tamis has: tools, profiles, files behind `fam://`, results; a folder brings no addresses of its own"
QUESTIONS = "A person is asked for approvals, and for what a tool's MCP server asks; tools of a folder ask nothing"
SAMPLING = (
    "Nothing of the client's model is asked for (sampling), and its folders only before 2026-07-28, on stdio (roots)"
)
TASK_QUESTIONS = "A task asks before it begins, so it never waits for input"
TASK_FAILED = "A tool that failed is a completed task, so no task is `failed`"
TASK_ONLY = "A tool that can be a task is waited for where the client takes none"

NOT_OFFERED: dict[str, dict[str, str]] = {
    "completion-complete": {"*": OWN_PROMPTS},
    "prompts-get-simple": {"*": OWN_PROMPTS},
    "prompts-get-with-args": {"*": OWN_PROMPTS},
    "prompts-get-embedded-resource": {"*": OWN_PROMPTS},
    "prompts-get-with-image": {"*": OWN_PROMPTS},
    "resources-read-text": {"*": OWN_RESOURCES},
    "resources-read-binary": {"*": OWN_RESOURCES},
    "resources-templates-read": {"*": OWN_RESOURCES},
    "resources-subscribe": {"*": OWN_RESOURCES},
    "resources-unsubscribe": {"*": OWN_RESOURCES},
    "tools-call-sampling": {"*": SAMPLING},
    "tools-call-elicitation": {"*": QUESTIONS},
    "elicitation-sep1034-defaults": {"*": QUESTIONS},
    "elicitation-sep1330-enums": {"*": QUESTIONS},
    "input-required-result-basic-elicitation": {"*": QUESTIONS},
    "input-required-result-basic-sampling": {"*": SAMPLING},
    "input-required-result-basic-list-roots": {"*": SAMPLING},
    "input-required-result-multi-round": {"*": QUESTIONS},
    "input-required-result-multiple-input-requests": {"*": QUESTIONS},
    "input-required-result-non-tool-request": {"*": OWN_PROMPTS},
    "input-required-result-capability-check": {"*": SAMPLING},
    "input-required-result-request-state": {"sep-2322-request-state-complete": QUESTIONS},
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability": SAMPLING,
        "sep-2575-missing-capability-http-400": SAMPLING,
    },
    "tasks-lifecycle": {"sep-2663-tasks-get-status-failed": TASK_FAILED},
    "tasks-dispatch-and-envelope": {"tasks-result-type-complete-on-non-task-responses": TASK_QUESTIONS},
    "tasks-mrtr-input": {"*": TASK_QUESTIONS},
    "tasks-mrtr-composition": {"*": TASK_QUESTIONS},
    "tasks-required-task-error": {"sep-2663-server-returns-missing-capability-when-required": TASK_ONLY},
}

ASSERTIONS = "a client is known by a secret; signed assertions are not made"

NOT_OFFERED_TO_SERVERS: dict[str, dict[str, str]] = {
    "auth/client-credentials-jwt": {"*": ASSERTIONS},
    "auth/wif-jwt-bearer": {"*": ASSERTIONS},
    "auth/enterprise-managed-authorization": {"*": "only a person, or the client's secret, gets a token"},
    "auth/dpop": {"*": "tokens are bearer tokens"},
    "auth/dpop-nonce": {"*": "tokens are bearer tokens"},
}
"""The same of the client of MCP servers."""
