"""Settings that hold for every test."""

import gc
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings

from tests.closing import bound_by_permissions

# The tests may be started with ignored signals, as below `nohup` or in a background job, and a child process inherits
# ignored signals. A handler, even an empty one, is not inherited: a child then has the default action.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda _number, _frame: None)

_QUICK = ("unit", "journeys/test_tree.py")
_SLOW = ("unit/agents", "unit/commands", "unit/files", "unit/remote")


def pytest_addoption(parser: pytest.Parser):
    """Add the option with which `pytest tests/goldens` writes the golden files instead of comparing with them."""
    parser.addoption("--update-goldens", action="store_true", help="write golden files instead of comparing")


def pytest_configure():
    """Let `AGENTWATCH_EXAMPLES=5000 pytest tests/unit` search longer than CI has time for."""
    settings.register_profile(
        "agentwatch",
        max_examples=int(os.environ.get("AGENTWATCH_EXAMPLES", "20")),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("agentwatch")


def pytest_collection_modifyitems(items: list[pytest.Item]):
    """Mark all tests as slow but those of `_QUICK` that are not in `_SLOW`, so that `-m "not slow"` takes a minute."""
    for item in items:
        path = item.path.relative_to(Path(__file__).parent).as_posix()
        if path.startswith(_SLOW) or not path.startswith(_QUICK):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Exclude the tests themselves from garbage collection: checking them took a third of an app's time."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Let `-n auto` start three workers more than there are processors, as many tests wait for time to pass."""
    return (os.cpu_count() or 1) + 3


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail each test that is skipped in CI on Linux, where `.ci/install` has run."""
    report = yield
    if report.skipped and os.environ.get("CI") and sys.platform == "linux" and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"skipped in CI: {report.longrepr}"
    return report


class _Watched(sqlite3.Connection):
    """A connection that remembers where it was opened until it is closed."""

    opened: ClassVar[dict[int, str]] = {}

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        frames = traceback.extract_stack(limit=8)[:-1]
        self.opened[id(self)] = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(frames))

    def close(self):
        super().close()
        self.opened.pop(id(self), None)


@pytest.fixture(autouse=True)
def every_database_that_is_opened_is_closed(monkeypatch):
    """Fail a test that leaves a database open: from Python 3.13 on this is a ResourceWarning at an unknown time."""
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=_Watched))
    _Watched.opened.clear()
    yield
    left = list(_Watched.opened.values())
    _Watched.opened.clear()
    assert not left, "databases that nobody closes, by where they were opened"


@pytest.fixture
def without_root_rights():
    """Bind root by the permissions of an ordinary user."""
    with bound_by_permissions():
        yield
