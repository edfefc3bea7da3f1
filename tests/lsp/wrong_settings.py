"""Settings that are wrong, each with what is said of it."""

from __future__ import annotations

WRONG = """\
tools = ["tools"] # comment with = and [brackets]
strctJson = true
onConflict = "replce"

[policy]
allowHost = ["a.b"]
"readRoots" = "x"

[sandbox]
wallMs = "10"
interpreters = { nodejs = "/opt/node", pyton = '''/usr/bin/python3''' }

[sandbox.runtimes.python]
command = ["x"]

[lint]
LN9999 = "off"
parameter-undescrbed = "off"
not-flat = "warn"
"""
