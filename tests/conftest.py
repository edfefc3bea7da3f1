"""Shared switches and places of the test suite."""

from __future__ import annotations

import gc
import os
import re
import signal
import tempfile
import zlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
CORPORA = ROOT.parent / "shared" / "corpora"

settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", deadline=None, max_examples=5000, suppress_health_check=list(HealthCheck))
settings.register_profile("fast", settings.get_profile("ci"), max_examples=10)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", default=False, help="run the long forms of the seeded tests")
    parser.addoption(
        "--fast", action="store_true", default=False, help="the pure tests only, and the core half of the markers"
    )
    parser.addoption("--untrusted", action="store_true", default=False, help="as a user who trusted nothing")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores Ctrl-C, and so would the commands that tests end by it: children take this over.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--long"):
        settings.load_profile("long")
    if (ROOT / "pyproject.toml").is_file():  # not in the copy that an ordinary user runs
        config.pluginmanager.import_plugin("tests.spent")
    if config.getoption("--fast"):
        settings.load_profile("fast")
        config.pluginmanager.import_plugin("tests.fast")
    # A tool run must see the same machine in every test, whoever starts the suite.
    os.environ.pop("TAMIS_ROOT", None)
    # Nor write into the state of whoever starts it.
    state = tempfile.TemporaryDirectory(prefix="tamis-state-")
    os.environ["TAMIS_STATE_DIR"] = state.name
    # Nor read its settings. Most tests are an operator in a folder of their own, whose file is the operator's word; the tests of trust
    # (tests/trust) and whoever asks for the fixture `untrusted` take it away.
    os.environ["XDG_CONFIG_HOME"] = os.path.join(state.name, "config")
    os.environ.pop("TAMIS_TRUST", None)
    if not config.getoption("--untrusted"):
        os.environ["TAMIS_TRUST"] = "1"
    config.add_cleanup(state.cleanup)


FIRST = ("tests/sandbox/test_as_user.py", "tests/editors/test_vscode.py")
"""Files that take minutes: begun first, so that no worker is left alone with one at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves to ``--long`` what is marked `long`, and of what is marked `share(n)` all but one in n, the same one each time.

    ``--long`` and naming a file run everything.
    """
    items.sort(key=lambda item: next((i for i, name in enumerate(FIRST) if item.nodeid.startswith(name)), len(FIRST)))
    if any("::" in arg or arg.endswith(".py") for arg in config.args):
        return
    left = [item for item in items if _is_left_to_long(item)]
    counts = Counter(item.nodeid.partition("::")[0] for item in left)
    if config.getoption("--long"):
        several = (item for item in items if "is_long" in getattr(item, "fixturenames", ()))
        counts.update(f"{item.nodeid.partition('::')[0]}, with more cases" for item in several)
    config.left_to_long = counts  # type: ignore[attr-defined]  # `spent.py` prints it
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["left"] = dict(counts)
    if left and not config.getoption("--long"):
        chosen = set(left)
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in chosen]


OF_ONE_USER = re.compile(
    r"(?:^|/)sandbox/(?:test_unsandboxed\.py::"
    r"|test_faults\.py::test_processes_of_the_user_run_out"
    r"|test_lifecycle\.py::test_killing_the_daemon_leaves_processes_without_die_with_parent)"
)
"""What only an ordinary user can show. Of the other tests of the sandbox, which root runs whole, that user runs a share (`TAMIS_TEST_SHARE`)."""


def _is_left_to_long(item: pytest.Item) -> bool:
    share = item.get_closest_marker("share")
    both = int(os.environ.get("TAMIS_TEST_SHARE") or 1)
    if both > 1 and not OF_ONE_USER.search(item.nodeid) and zlib.crc32(item.nodeid.encode()) % both:
        return True
    if share is not None and zlib.crc32(item.nodeid.encode()) % share.args[0]:
        return True
    return item.get_closest_marker("long") is not None


def pytest_collection_finish(session: pytest.Session) -> None:
    """The tests themselves live as long as the session: no collection of garbage needs to look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--long"))


@pytest.fixture
def untrusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who trusted nothing yet, as everybody is who clones a stranger's folder."""
    monkeypatch.delenv("TAMIS_TRUST", raising=False)


@pytest.fixture(scope="session")
def corpora() -> Path:
    if not CORPORA.is_dir():
        pytest.skip(f"the corpora are not there: {CORPORA.relative_to(ROOT.parent)} beside the project")
    return CORPORA
