"""A daemon started for a test, asked on its standard input."""

from __future__ import annotations

import json
import subprocess
import tempfile
from typing import Any


def answers_of(
    command: list[str], requests: list[dict[str, Any]], env: dict[str, str] | None = None
) -> tuple[dict[Any, dict[str, Any]], str]:
    """A daemon's answers by id, and what it wrote on standard error.

    Its input stays open until all are there: at its end what still runs is cancelled after a moment, which is short on a loaded machine.
    """
    answers: dict[Any, dict[str, Any]] = {}
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=env, text=True
        ) as daemon:
            assert daemon.stdin is not None
            assert daemon.stdout is not None
            daemon.stdin.write("".join(json.dumps(one) + "\n" for one in requests))
            daemon.stdin.flush()
            for line in daemon.stdout:
                message = json.loads(line)
                if "id" in message and "method" not in message:
                    answers[message["id"]] = message
                if len(answers) == len(requests):
                    break
            daemon.stdin.close()
            assert daemon.wait() == 0
        said.seek(0)
        return answers, said.read()
