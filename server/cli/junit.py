"""The verdicts of ``tamis test`` as JUnit XML, which build servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from tamis.server.cli.example_runs import Verdict

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(verdicts: Sequence[Verdict]) -> str:
    """One ``testsuite`` for each tool, one ``testcase`` for each example; ``time`` in seconds."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="tamis test" {_counts(verdicts)}>',
    ]
    for (tool_id, version), group in groupby(verdicts, key=lambda one: (one.case.tool_id, one.case.version)):
        own = list(group)
        name = f"{tool_id}@{version}" if version else tool_id
        lines.append(f"  <testsuite name={_attribute(name)} file={_attribute(own[0].case.path)} {_counts(own)}>")
        for one in own:
            head = (
                f"    <testcase classname={_attribute(tool_id)} name={_attribute(one.case.name)} time={_seconds([one])}"
            )
            lines.append(head + ("/>" if one.outcome == "passed" else f">{_why(one)}</testcase>"))
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _counts(verdicts: Sequence[Verdict]) -> str:
    outcomes = [one.outcome for one in verdicts]
    failed, skipped = outcomes.count("failed"), outcomes.count("skipped")
    return f'tests="{len(outcomes)}" failures="{failed}" errors="0" skipped="{skipped}" time={_seconds(verdicts)}'


def _seconds(verdicts: Sequence[Verdict]) -> str:
    return f'"{sum(one.duration_ms for one in verdicts) / 1000:.3f}"'


def _why(one: Verdict) -> str:
    if one.outcome == "skipped":
        return f"<skipped message={_attribute(one.reason)}/>"
    return f"<failure message={_attribute(one.reason)}>{_text(chr(10).join(one.details))}</failure>"


def _text(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NO_XML.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
