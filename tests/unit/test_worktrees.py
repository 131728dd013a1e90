"""The work trees of a repository: read without running git, and each a workspace of its own."""

import asyncio
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.composition import build_workspaces
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.worktrees import (
    NoRepositoryError,
    find_git_directories,
    find_other_worktrees,
    find_ready_worktrees,
    is_other_worktree,
    worktree_made_at,
)
from tests.homes import live_in
from tests.journeys.made import handoff, returned
from tests.unit.test_workspaces import NO_PROGRAMS, keys, watching


def git(place: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", "-C", str(place), *who, *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Return a repository with a commit from one and a half hours ago; its user has no agent programs."""
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"{time.time() - 5_400:.0f} +0000")
    live_in(tmp_path, monkeypatch)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    place = tmp_path / "shop"
    place.mkdir()
    git(place, "init", "-q")
    fill(place, "api")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "one")
    return place


def fill(place: Path, name: str, state: str = "ERROR"):
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.handoff.json").write_text(handoff(f"shop.{name}"))
    (place / f"{name}.return.md").write_text(returned(state, f"shop.{name}"))


def add(shop: Path, place: str, *more: str) -> Path:
    git(shop, "worktree", "add", "-q", *more, place)
    return Path(os.path.realpath(shop / place))


def rested(*worktrees: Path):
    """Date these work trees as if they had been made a minute ago."""
    for place in worktrees:
        own = git(place, "rev-parse", "--absolute-git-dir").strip()
        for file in [*place.glob("*.*"), Path(own, "commondir"), Path(own, "index")]:
            os.utime(file, (file.stat().st_mtime - 61,) * 2)


def listed_by_git(workspace: Path) -> list[str]:
    lines = git(workspace, "worktree", "list", "--porcelain").splitlines()
    places = [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]
    return sorted(place for place in places if place != str(workspace) and Path(place).exists())


# Which work trees there are


def test_the_work_trees_are_those_that_git_lists(shop):
    places = [add(shop, "../shop-fix"), add(shop, ".claude/worktrees/x"), add(shop, "../detached", "--detach")]
    git(shop, "worktree", "lock", "--reason", "an agent is at work", str(places[0]))
    git(shop, "worktree", "move", str(places[2]), str(shop.parent / "moved"))
    places[2] = shop.parent / "moved"
    for workspace in (shop, *places):
        assert sorted(find_other_worktrees(str(workspace))) == listed_by_git(workspace)
        assert len(find_other_worktrees(str(workspace))) == 3


@pytest.mark.parametrize(
    "make",
    [
        *(
            lambda mark, text=text: mark.write_text(text)
            for text in ("nonsense\n", "gitdir: \n", "gitdir: ../nowhere/.git/worktrees/x\n", "gitdir: \0\n")
        ),
        os.mkfifo,
        lambda mark: mark.symlink_to(mark.parents[1] / "shop" / ".git"),
    ],
)
def test_a_broken_git_file_leads_nowhere(shop, make):
    place = shop.parent / "broken"
    place.mkdir()
    make(place / ".git")
    with pytest.raises(NoRepositoryError, match="it is not followed"):
        find_git_directories(str(place))
    assert find_other_worktrees(str(place)) == {}
    assert worktree_made_at(str(place)) is None
    assert not is_other_worktree("/elsewhere", str(place))


def test_a_repository_that_names_another_one_leads_nowhere(shop):
    """A foreign repository must not bring one of the operator's other workspaces on the screen."""
    private = shop.parent / "private"
    private.mkdir()
    git(private, "init", "-q")
    git(private, "commit", "-q", "--allow-empty", "-m", "one")
    tree = add(private, "../private-tree")
    for target in (private, tree):
        own = shop / ".git" / "worktrees" / target.name
        own.mkdir(parents=True)
        (own / "gitdir").write_text(f"{target}/.git\n")
        (own / "commondir").write_text("../..\n")
        (own / "HEAD").write_text("ref: refs/heads/main\n")
    assert list(find_other_worktrees(str(shop))) == []
    # This work tree names our own git directory, but the other's repository does not know that directory.
    mine = shop.parent / "mine"
    (mine / "git").mkdir(parents=True)
    (mine / ".git").write_text("gitdir: git\n")
    (mine / "git" / "gitdir").write_text("../.git\n")
    (mine / "git" / "commondir").write_text(f"{private}/.git\n")
    assert list(find_other_worktrees(str(mine))) == []


def test_a_worktree_that_git_still_makes_is_not_used(shop):
    place = add(shop, "../shop-fix")
    for reason, used in (("initializing", []), ("mine", [place])):
        Path(git(place, "rev-parse", "--absolute-git-dir").strip(), "locked").write_text(f"{reason}\n")
        assert find_ready_worktrees(shop) == used


# Which files belong to which work tree


def test_the_files_of_a_worktree_below_are_not_the_workspaces(shop):
    inner = add(shop, ".claude/worktrees/x")
    fill(inner, "form")
    assert {one.path for one in FilesSource(shop).scan().events} == {"api.handoff.json", "api.return.md"}
    assert {one.path for one in FilesSource(inner).scan().events} == {
        "api.handoff.json", "api.return.md", "form.handoff.json", "form.return.md",
    }  # fmt: skip
    # For a directory above the repository, no other workspace shows their files.
    assert len(FilesSource(shop.parent).scan().events) == 6


# On the screen


async def test_worktrees_that_come_and_go_are_taken_in(shop):
    monitor = build_workspaces([shop], NO_PROGRAMS)
    async with watching(monitor) as until:
        await until(lambda: monitor.tree.tasks)
        for _ in range(2):
            inner = add(shop, ".claude/worktrees/x")
            rested(inner)
            fill(inner, "form")
            await until(lambda: ("x", "shop.form") in keys(monitor))
            assert ("shop", "shop.form") not in keys(monitor)
            git(shop, "worktree", "remove", "--force", str(inner))
            await until(lambda: len(monitor.tree.roots) == 1)
        assert monitor.health.mode == "live"


async def test_a_worktree_of_history_alone_is_not_shown(shop):
    fix, old, before = add(shop, "../shop-fix"), add(shop, "../shop-old"), time.time() - 40 * 86_400
    fill(old, "form")
    for file in old.glob("form.*"):
        os.utime(file, (before, before))
    rested(fix, old)
    fill(fix, "form")
    monitor = build_workspaces([shop], NO_PROGRAMS)
    async with watching(monitor) as until:
        await until(lambda: ("shop-fix", "shop.form") in keys(monitor))
        await asyncio.sleep(0.3)
        assert ("shop-old", "shop.form") not in keys(monitor)


# Without a screen


def test_commands_tell_of_the_worktrees_with_work_of_their_own(shop, capsys):
    def told(*words):
        return run([*words, str(shop)]), capsys.readouterr().out

    fix, old = add(shop, "../shop-fix"), add(shop, "../shop-old")
    rested(fix, old)
    (shop / "api.return.md").unlink()
    commands = (["tree"], ["pending"], ["tree", "--fail"])
    alone = [told(*words) for words in commands]
    assert [code for code, _ in alone] == [0, 0, 0]
    assert str(fix) not in "".join(text for _, text in alone), "what was checked out there is nobody's work there"

    fill(fix, "form")
    for (_, said), words in zip(alone, commands, strict=True):
        code, text = told(*words)
        assert text.startswith(f"{shop}\n{said}\n{fix}\n")
        assert code == ("--fail" in words)
        assert str(old) not in text
    report = json.loads(told("report", "--format", "json")[1])
    assert report["worktrees"] == [{"workspace": str(fix), "tasks": 2, "needs_operator": 1}]
    assert report["verdict"].endswith("Nothing needs a human; 1 task in other worktrees does.")
    assert run(["tree", str(shop), str(old)]) == 0
    assert str(fix) not in capsys.readouterr().out, "of several, those that are named"
