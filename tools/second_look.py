"""Looks again at the tests of a run that failed: alone, twice, one after the other.

    tools/second_look.py CACHE COMMAND…    CACHE: pytest's cache folder; COMMAND: pytest, with the options of the run but for its tests

A third of the tests start processes and measure time, memory, descriptors or threads while three workers share two cores.
What another test does at that moment can fail one of them, or the session with an editor that a file's tests look at. A fault of
the program fails alone too. So the failed tests of a few files (`MOST_FILES`, `MOST`) are run again with nothing beside them. One that fails again fails the run. One that passes twice is named as
`unsteady`, in the last lines, where somebody who keeps the suite sees it. Where more tests failed, there is no second look.

Ends with 0 when all passed twice, else with 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import cast

MOST_FILES = 5
MOST = 60
SECONDS = 1500


def failed_tests(cache: Path) -> list[str]:
    """The ids of the tests that failed in the last run, as pytest's cache has them; none where it has no record."""
    record = cache / "v" / "cache" / "lastfailed"
    return list(cast("dict[str, bool]", json.loads(record.read_text()))) if record.is_file() else []


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def second_look(cache: Path, command: list[str]) -> bool:
    """Whether the failed tests of the last run were few and passed twice alone; says what was done."""
    tests = failed_tests(cache)
    files = {test.partition("::")[0] for test in tests}
    if not 0 < len(tests) <= MOST or len(files) > MOST_FILES:
        return False
    _say(f"\nA second look, alone: {len(tests)} failed. Each must pass twice.")
    for _ in range(2):
        try:
            ended = subprocess.run([*command, "-p", "no:cacheprovider", *tests], check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            _say(f"The second look took more than {SECONDS} s.")
            return False
        if ended.returncode != 0:
            return False
    for test in tests:
        _say(f"unsteady: {test} failed beside other tests, and passed twice alone")
    return True


if __name__ == "__main__":
    sys.exit(0 if second_look(Path(sys.argv[1]), sys.argv[2:]) else 1)
