"""The age of the work in a workspace: work from before anybody watched, and work that came during a watch."""

import json
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentwatch.composition import scan_workspace
from agentwatch.config import Settings
from agentwatch.delegation.task import State, Task
from agentwatch.history.store import Recorder
from agentwatch.sources.files.source import FilesSource
from tests.unit.evidence.repository import Repository

HANDED_OFF = 1_700_000_000.0
"""A time long ago, so that the clock shows whether a task counts as still at work."""

NAME = "specs/1_shop/.return-meta.json"


@pytest.fixture
def plain(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Repository(tmp_path / "workspace", tmp_path / "home", HANDED_OFF)


def meta(status: str = "in_progress", **keys: object) -> str:
    path = {"delegation_path": ["orchestrator", "skill", "planner"]}
    return json.dumps({"status": status, "metadata": {"session_id": "s1", "agent_type": "planner"} | path} | keys)


def stamp(after: float) -> str:
    return datetime.fromtimestamp(HANDED_OFF + after, UTC).isoformat()


def cloned(repository: Repository, directory: Path) -> Path:
    repository.git("clone", "-q", str(repository.root), str(directory / "clone"))
    return directory / "clone"


def planner(root: Path) -> Task:
    tasks = scan_workspace(root, Settings(sessions=False)).tree.tasks
    return next(task for name, task in tasks.items() if name.endswith("planner"))


def checked_out(repository: Repository) -> Path:
    """Remove the file, and let git bring it back."""
    (repository.root / NAME).unlink()
    repository.git("checkout", "-q", "--", ".")
    return repository.root


def copied(repository: Repository, directory: Path) -> Path:
    return Path(shutil.copytree(repository.root, directory / "copy", copy_function=shutil.copyfile))


@pytest.mark.parametrize("way", [cloned, copied, lambda repository, _: checked_out(repository)])
def test_a_copy_is_no_sign_of_life(repository, tmp_path, way):
    repository.write(NAME, meta())
    repository.commit(at=50)
    root = way(repository, tmp_path)
    assert time.time() - (root / NAME).stat().st_mtime < 600
    task = planner(root)
    assert (task.state, task.stale, task.updated_at) == (State.WORKING, True, HANDED_OFF + 50)


def test_archived_work_is_as_old_as_its_content(repository, tmp_path):
    repository.write(NAME, meta())
    repository.commit(at=50)
    (repository.root / "specs" / "archive").mkdir()
    repository.git("mv", "specs/1_shop", "specs/archive/1_shop")
    repository.commit(at=5_000)
    for root in (repository.root, cloned(repository, tmp_path)):
        task = planner(root)
        assert (task.stale, task.updated_at) == (True, HANDED_OFF + 50)


@pytest.mark.parametrize("ignored", [False, True])
def test_a_file_that_git_does_not_track_has_its_own_age(repository, *, ignored):
    repository.write(NAME, meta("implemented"), at=20)
    repository.commit(at=30)
    repository.git("rm", "-q", "--cached", NAME)
    if ignored:
        repository.write(".gitignore", "specs\n")
    repository.git("commit", "-q", "-m", "x", at=40)
    repository.touch(NAME, 80)
    assert planner(repository.root).ended_at == HANDED_OFF + 80


@pytest.mark.parametrize(
    ("keys", "status", "at"),
    [
        ({"started_at": stamp(100)}, "in_progress", 100),
        ({"started_at": stamp(100), "completed_at": stamp(300)}, "implemented", 300),
        ({"started_at": stamp(100)}, "implemented", 50),
        ({"started_at": "9999-01-01T00:00:00Z"}, "in_progress", 50),
        ({"completed_at": stamp(-1_000_000_000)}, "implemented", 50),
        ({"completed_at": "soon"}, "implemented", 50),
    ],
)
def test_a_plausible_time_that_a_return_states_comes_before_git(repository, tmp_path, keys, status, at):
    repository.write(NAME, meta(status, **keys))
    repository.commit(at=50)
    assert planner(cloned(repository, tmp_path)).updated_at == HANDED_OFF + at


def watched(root: Path):
    """Watch the workspace to the end of one look."""
    source = FilesSource(root)
    recorder = Recorder(root, source.content)
    recorder.recall()
    recorder.queue_events(source.scan().events)
    recorder.poll()
    recorder.close()


def test_after_the_first_look_a_return_counts_from_when_seen(repository):
    repository.write("specs/0_before/.return-meta.json", meta("blocked").replace("planner", "writer"), at=0)
    repository.commit(at=1)
    watched(repository.root)
    before = time.time()
    repository.write(NAME, meta("blocked", completed_at=stamp(0)), at=0)
    repository.commit(at=50)
    task = planner(repository.root)
    assert (task.state, (task.ended_at or 0) >= before) == (State.BLOCKED, True), "nobody puts a failure into the past"


def test_a_dead_marker_that_a_checkout_brings_back_does_not_work(repository):
    watched(repository.root)
    repository.write(NAME, meta())
    repository.commit(at=50)
    task = planner(checked_out(repository))
    assert (task.stale, task.updated_at) == (True, HANDED_OFF + 50)
