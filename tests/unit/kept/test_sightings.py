"""What `wait` and hooks are told of a task is what a look at the workspace tells, and is not looked for again."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.homes import live_in
from tests.reliability.kept.test_random_histories import Teller
from tests.unit.agents.documents import packet, returned


class Site:
    """A workspace with tasks in every state."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "shop"
        self.workspace.mkdir()
        for name in ("good", "bad", "open"):
            (self.workspace / f"{name}.handoff.json").write_text(packet(name))
        self.returns("good", "SUCCESS")
        self.returns("bad", "ERROR")
        (self.workspace / "broken.handoff.json").symlink_to("/etc")
        self.teller = Teller(dict(os.environ))

    def returns(self, name: str, state: str) -> None:
        (self.workspace / f"{name}.return.md").write_text(returned(state))

    def wait(self, task_id: str, *, keeps: bool = True, seconds: float = 0.0) -> tuple[list[object], bool]:
        time.sleep(0.06)
        self.teller.ask(["wait", task_id, str(self.workspace), f"--timeout={seconds}"], time.time(), keeps=keeps)
        return self.teller.answer()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    live_in(tmp_path, monkeypatch)
    made = Site(tmp_path)
    yield made
    made.teller.end()


@pytest.mark.parametrize("task_id", ["good", "bad", "open", "broken", "none"])
def test_a_wait_is_told_of_a_task_what_it_was_told_before(site: Site, task_id: str) -> None:
    for _ in range(2):
        site.wait(task_id)
    told, again = site.wait(task_id)
    assert again
    assert told == site.wait(task_id, keeps=False)[0]


def test_a_wait_is_not_told_at_once_that_nothing_came_where_the_one_before_has_waited_for_that(site: Site) -> None:
    for _ in range(2):
        site.wait("bad", seconds=0.1)
    assert not site.wait("bad", seconds=0.1)[1]


def test_a_decision_is_told_to_the_next_one_that_asks_and_is_not_kept(site: Site) -> None:
    for _ in range(2):
        site.wait("bad")
    site.teller.ask(["decide", "bad", "--abort", "--yes", str(site.workspace)], time.time(), keeps=False)
    assert site.teller.answer()[0][0] == 0
    for _ in range(3):
        told, again = site.wait("bad")
        assert not again
        assert told[0] == 0
        assert json.loads(str(told[1]))["action"] == "abort"


def test_a_task_that_has_returned_meanwhile_is_looked_at(site: Site) -> None:
    for _ in range(2):
        site.wait("open")
    site.returns("open", "SUCCESS")
    told, again = site.wait("open")
    assert not again
    assert json.loads(str(told[1]))["state"] == "completed"


def far(site: Site, name: str, text: str) -> None:
    """A file of others, far from every task that somebody waits for."""
    path = site.workspace / "far" / "other" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def amend(site: Site) -> None:
    far(site, "handoff.json", packet("other", objective="Do it otherwise."))


def arrive(site: Site) -> None:
    far(site, "deep/return.md", returned("ERROR", "It failed."))


def go(site: Site) -> None:
    shutil.rmtree(site.workspace / "far" / "other")


def move(site: Site) -> None:
    (site.workspace / "far").rename(site.workspace / "farther")


def speak(site: Site) -> None:
    far(site, "deep/return.md", returned("ERROR", "It failed.").replace("\nsummary:", "\ntask_id: bad\nsummary:", 1))


def copy(site: Site) -> None:
    far(site, "deep/a.return.md", returned("ERROR"))


def link(site: Site) -> None:
    (site.workspace / "far" / "other" / "x.return.md").symlink_to("/etc/passwd")


def part(site: Site) -> None:
    """Another workspace, by its mark."""
    (site.workspace / "far" / ".git").write_text("gitdir: nowhere")


def fall_beside(site: Site) -> None:
    (site.workspace / "notes.md").write_text("# Notes\n")


@pytest.mark.parametrize("change", [amend, arrive, go, move])
def test_what_others_do_far_from_a_task_changes_nothing_that_is_said_of_it(
    site: Site, change: Callable[[Site], None]
) -> None:
    (site.workspace / "broken.handoff.json").unlink()
    far(site, "handoff.json", packet("other"))
    for _ in range(2):
        site.wait("bad")
    change(site)
    told, again = site.wait("bad")
    assert again
    assert told == site.wait("bad", keeps=False)[0]


@pytest.mark.parametrize("change", [speak, copy, link, part, fall_beside])
def test_what_may_speak_of_a_task_wherever_it_comes_is_looked_at(site: Site, change: Callable[[Site], None]) -> None:
    (site.workspace / "broken.handoff.json").unlink()
    far(site, "handoff.json", packet("other"))
    for _ in range(2):
        site.wait("bad")
    change(site)
    told, again = site.wait("bad")
    assert not again
    assert told == site.wait("bad", keeps=False)[0]


def test_what_others_do_matters_where_something_could_not_be_read(site: Site) -> None:
    far(site, "handoff.json", packet("other"))
    for _ in range(2):
        site.wait("bad")
    amend(site)
    assert not site.wait("bad")[1]


def test_what_others_do_matters_where_it_may_tell_that_a_return_was_copied(site: Site) -> None:
    (site.workspace / "broken.handoff.json").unlink()
    place = site.workspace / "copied"
    place.mkdir()
    (place / "handoff.json").write_text(packet("copied"))
    told = {"session_id": "sess_1500000000_abc", "agent_type": "a", "delegation_depth": 1, "delegation_path": ["a"]}
    made = {"type": "report", "path": "copied/made.txt", "summary": "What was asked for."}
    (place / "made.txt").write_text("Made.")
    document = {"status": "completed", "summary": "Did it.", "artifacts": [made], "metadata": told}
    (place / "return.json").write_text(json.dumps(document))
    far(site, "handoff.json", packet("other"))
    for _ in range(2):
        site.wait("copied")
    assert site.wait("copied")[1]
    amend(site)
    assert not site.wait("copied")[1]
