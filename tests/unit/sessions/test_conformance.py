"""All readers of session stores keep the same promises, told by the tree that comes of what they find."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.view.documents import Task as Document
from tests.unit.sessions.conformance import OTHER, THOUGHT, Store
from tests.unit.sessions.stores.claude_code import claude_code
from tests.unit.sessions.stores.codex import codex
from tests.unit.sessions.stores.copilot import copilot
from tests.unit.sessions.stores.gemini import gemini
from tests.unit.sessions.stores.opencode import opencode
from tests.unit.sessions.stores.qwen import qwen
from tests.unit.sessions.stores.roo import roo
from tests.unit.sessions.stores.roo_older import roo_older
from tests.unit.sessions.stores.teamwork import teamwork

EXAMPLES = int(os.environ.get("AGENTWATCH_EXAMPLES", "15"))

Build = Callable[[Path], Store]

every_store = pytest.mark.parametrize(
    "build", [claude_code, codex, copilot, gemini, opencode, qwen, roo, roo_older, teamwork]
)


@contextmanager
def built(build: Build) -> Iterator[Store]:
    with TemporaryDirectory() as directory:
        store = build(Path(directory).resolve())
        try:
            yield store
        finally:
            store.close()


def files_of(place: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything in a directory with the time of its last change, and what it holds.

    Memory that a program shares with its readers is theirs, too, as long as they are in its process.
    """
    return {
        str(path.relative_to(place)): (
            path.stat(follow_symlinks=False).st_mtime_ns,
            path.stat(follow_symlinks=False).st_ino,
            path.read_bytes() if path.is_file() and not path.name.endswith("-shm") else b"",
        )
        for path in (place, *place.rglob("*"))
    }


@every_store
def test_the_story_is_the_tree(build: Build) -> None:
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        tasks = watch.tasks
        found = {task: [one["state"] for one in tasks[task]["attempts"]] for task in store.tasks}
        assert found == store.tasks
        (main,) = {tasks[task]["parent_id"] for task in store.tasks if task.count(".") == 1}
        assert main is not None
        assert (tasks[main]["parent_id"], tasks[main]["state"]) == (None, "working")
        assert tasks["shop.index.words"]["parent_id"] == "shop.index"
        assert {tasks[task]["parent_basis"] for task in store.tasks} == {"session"}
        assert tasks["shop.index"]["summary"] == "All of it."
        (prose,) = (task for task in tasks.values() if task["parent_id"] == main and task["task_id"] not in store.tasks)
        assert (prose["state"], prose["contract"]) == ("completed", None)
        assert THOUGHT in map(watch.source.content, watch.digests)
        assert len(tasks) == len(store.tasks) + 4
        assert watch.source.problems == ()


@every_store
def test_what_a_human_began_is_counted_apart_from_what_sessions_asked_for(build: Build) -> None:
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        begun = sum(task["parent_id"] is None for task in watch.tasks.values())
        attempts = sum(len(task["attempts"]) for task in watch.tasks.values())
        found = watch.source.found()
        assert sum(one.sessions for one in found) == begun == 2
        assert sum(one.children for one in found) == attempts - begun


@every_store
@settings(max_examples=EXAMPLES)
@given(doings=st.lists(st.sampled_from(["write", "look", "come anew"]), max_size=300))
def test_however_a_store_grows_the_tree_is_that_of_one_look(build: Build, doings: list[str]) -> None:
    with built(build) as store:
        watch = store.watch()
        for doing in doings:
            if doing == "write":
                next(store.story, None)
            elif doing == "look":
                watch.look()
            else:
                watch = store.watch()
        store.finish()
        watch.look()
        assert watch.document == store.seen_at_once()
        assert watch.look() == 0


@every_store
@pytest.mark.slow
def test_every_step_of_a_store_gives_the_tree_of_one_look(build: Build) -> None:
    with built(build) as store:
        watch = store.watch()
        for _ in store.story:
            watch.look()
            assert watch.document == store.seen_at_once()


@every_store
def test_a_session_that_is_removed_takes_its_tasks_with_it(build: Build) -> None:
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        before = watch.tasks
        assert OTHER in before
        parent = before[OTHER]["parent_id"]
        store.forget()
        watch.look()
        assert before.keys() - watch.tasks.keys() == {OTHER, parent}
        assert all(watch.tasks[task] == before[task] for task in watch.tasks)
        assert watch.document == store.seen_at_once()


@every_store
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32), often=st.sampled_from([0.05, 0.3, 0.8]))
@pytest.mark.slow
def test_garbage_neither_hides_nor_changes_what_is_sound(build: Build, seed: int, often: float) -> None:
    random, expected = Random(seed), tasks_of_the_story(build)
    with built(build) as store:
        watch = store.watch()
        for _ in store.story:
            if random.random() < often:
                store.spoil(random)
            if random.random() < 0.2:
                watch.look()
        watch.look()
        told = [*map(str, watch.source.problems), *(found.skipped for found in watch.source.found())]
        assert not any("cannot be used" in sentence for sentence in told)
        sound = {task["task_id"] for task in expected}
        assert [_comparable(task) for task in watch.document["tasks"] if task["task_id"] in sound] == [
            _comparable(task) for task in expected
        ]


@cache
def tasks_of_the_story(build: Build) -> list[Document]:
    """What the tree makes of a store that nobody spoilt."""
    with built(build) as store:
        store.finish()
        tasks: list[Document] = store.seen_at_once()["tasks"]
        return tasks


def _comparable(task: Document) -> object:
    """A story told twice stands in two directories; and a step that garbage adds to a checklist is one of its steps."""
    nowhere = {"handoff_path": None, "return_path": None}
    attempts = [
        {**attempt, **nowhere, "run": {**attempt["run"], "place": ""} if attempt["run"] else None}
        for attempt in task["attempts"]
    ]
    return {
        **task,
        "attempts": attempts,
        "progress": None,
        "findings": [finding["rule"] for finding in task["findings"]],
    }


@every_store
def test_nothing_in_a_store_is_written_or_locked_and_idle_looks_tell_nothing(build: Build) -> None:
    with built(build) as store:
        store.finish()
        before = files_of(store.place)
        watch = store.watch()
        watch.look()
        for digest in watch.digests:
            assert watch.source.content(digest) is not None
        assert watch.look() == watch.look() == 0
        assert files_of(store.place) == before
        store.close()
        before = files_of(store.place)
        watch.look()
        assert files_of(store.place) == before
        if sys.platform == "linux":
            inodes = {str(path.stat().st_ino) for path in store.place.rglob("*")}
            locks = Path("/proc/locks").read_text(encoding="ascii").split()
            assert not {word.rpartition(":")[2] for word in locks if word.count(":") == 2} & inodes
        assert files_of(store.place) == before


@every_store
def test_every_text_that_was_handed_over_or_back_is_found_again(build: Build) -> None:
    with built(build) as store:
        watch = store.watch()
        for _ in store.story:
            watch.look()
        assert len(watch.digests) >= 10
        for digest in watch.digests:
            assert watch.source.content(digest) is not None
        assert watch.source.content("0" * 64) is None
