"""All readers of session stores keep the promises of a reader, and tell the same story."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.sessions.store import OTHER, THOUGHT, Store
from tests.unit.sessions.stores.claude_code import claude_code
from tests.unit.sessions.stores.codex import codex
from tests.unit.sessions.stores.copilot import copilot
from tests.unit.sessions.stores.gemini import gemini
from tests.unit.sessions.stores.opencode import opencode
from tests.unit.sessions.stores.qwen import qwen
from tests.unit.sessions.stores.roo import roo

EXAMPLES = int(os.environ.get("AGENTWATCH_EXAMPLES", "15"))

Build = Callable[[Path], Store]
"""Makes a store in an empty directory."""

every_store = pytest.mark.parametrize("build", [claude_code, codex, copilot, gemini, opencode, qwen, roo])


@contextmanager
def built(build: Build) -> Iterator[Store]:
    """A store in a directory that is removed afterwards."""
    with TemporaryDirectory() as directory:
        store = build(Path(directory).resolve())
        try:
            yield store
        finally:
            store.close()


@every_store
def test_the_story_is_the_tree(build: Build) -> None:
    """Each task has its attempts, in their states, and hangs below the session that asked for it. Nothing is amiss."""
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        tasks = watch.tasks
        assert not (lacking := store.tasks.keys() - tasks.keys()), f"nothing is seen of {sorted(lacking)}"
        found = {task: [one["state"] for one in tasks[task]["attempts"]] for task in store.tasks}
        assert found == {task: list(states) for task, states in store.tasks.items()}, f"the tree has {found}"
        bases = {task: tasks[task]["parent_basis"] for task in store.tasks}
        assert set(bases.values()) == {"session"}, f"what is known of the parents: {bases}"
        assert watch.source.problems == (), f"not read: {[*map(str, watch.source.problems)]}"


@every_store
def test_the_story_is_that_of_all_programs(build: Build) -> None:
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        tasks = watch.tasks
        (main,) = {tasks[task]["parent_id"] for task in store.tasks if task.count(".") == 1}
        assert main is not None
        assert (tasks[main]["parent_id"], tasks[main]["state"]) == (None, "working")
        assert tasks["shop.index.words"]["parent_id"] == "shop.index"
        assert tasks["shop.index"]["summary"] == "All of it."
        (prose,) = (task for task in tasks.values() if task["parent_id"] == main and task["task_id"] not in store.tasks)
        assert (prose["state"], prose["contract"]) == ("completed", None)
        assert THOUGHT in map(watch.source.content, watch.digests)
        assert len(tasks) == len(store.tasks) + 4
        assert sum(one.sessions for one in watch.source.found()) == 2
        assert len(watch.digests) >= 10
        dust = tasks[OTHER]["parent_id"]
        store.forget()
        watch.look()
        assert tasks.keys() - watch.tasks.keys() == {OTHER, dust}


@every_store
def test_what_a_human_began_is_counted_apart_from_what_sessions_asked_for(build: Build) -> None:
    """`found` counts the sessions that a human began, and the children that sessions asked for."""
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        begun = sum(task["parent_id"] is None for task in watch.tasks.values())
        attempts = sum(len(task["attempts"]) for task in watch.tasks.values())
        found = watch.source.found()
        counted = sum(one.sessions for one in found), sum(one.children for one in found)
        assert counted == (begun, attempts - begun), f"{counted} are counted, {(begun, attempts - begun)} are seen"


@every_store
@settings(max_examples=EXAMPLES)
@given(doings=st.lists(st.sampled_from(["write", "look", "come anew"]), max_size=300))
def test_however_a_store_grows_the_tree_is_that_of_one_look(build: Build, doings: list[str]) -> None:
    """The runs depend on what the store holds, not on when somebody looked. Of a store that rests nothing is told."""
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
        assert watch.document == store.seen_at_once(), "who has looked while it grew sees another tree"
        assert watch.look() == 0, "a look tells something, though nothing has changed"


@every_store
@pytest.mark.slow
def test_every_step_of_a_store_gives_the_tree_of_one_look(build: Build) -> None:
    """The same behind each single write."""
    with built(build) as store:
        watch = store.watch()
        for step, _ in enumerate(store.story, start=1):
            watch.look()
            assert watch.document == store.seen_at_once(), f"behind write {step}, who has just come sees another tree"


@every_store
def test_a_session_that_is_removed_takes_its_tasks_with_it(build: Build) -> None:
    """A session that the store no longer has is gone from the tree, and nothing else is."""
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        before = watch.tasks
        store.forget()
        watch.look()
        assert watch.tasks.keys() < before.keys(), "what was removed is still there, or there is more than before"
        assert all(watch.tasks[task] == before[task] for task in watch.tasks), "what was not removed has changed"
        assert watch.document == store.seen_at_once(), "who has just come sees another tree"


@every_store
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32), often=st.sampled_from([0.05, 0.3, 0.8]))
@pytest.mark.slow
def test_garbage_neither_hides_nor_changes_what_is_sound(build: Build, seed: int, often: float) -> None:
    """Whatever else lies in the store: nothing is raised, and the sound sessions are as they were."""
    random, expected = Random(seed), _unspoilt(build)
    with built(build) as store:
        watch = store.watch()
        for _ in store.story:
            if random.random() < often:
                store.spoil(random)
            if random.random() < 0.2:
                watch.look()
        watch.look()
        told = [*map(str, watch.source.problems), *(found.skipped for found in watch.source.found())]
        assert not any("cannot be used" in sentence for sentence in told), f"it raised: {told}"
        sound = {task["task_id"] for task in expected}
        seen = [_comparable(task) for task in watch.document["tasks"] if task["task_id"] in sound]
        assert seen == [_comparable(task) for task in expected], "beside garbage, the tree is another one"


@cache
def _unspoilt(build: Build) -> list[dict[str, Any]]:
    """What the tree makes of a store that nobody spoilt."""
    with built(build) as store:
        store.finish()
        return store.seen_at_once()["tasks"]


def _comparable(task: dict[str, Any]) -> object:
    """A story told twice stands in two directories; and a step that garbage adds to a checklist is one of its steps."""
    nowhere = {"handoff_path": None, "return_path": None}
    attempts = [
        {**attempt, **nowhere, "run": {**attempt["run"], "place": ""} if attempt["run"] else None}
        for attempt in task["attempts"]
    ]
    findings = [finding["rule"] for finding in task["findings"]]
    return {**task, "attempts": attempts, "progress": None, "findings": findings}


@every_store
def test_nothing_in_a_store_is_written_or_locked_and_idle_looks_tell_nothing(build: Build) -> None:
    """Nothing in the store changes, and no lock is held there (on Linux, where that can be seen)."""
    with built(build) as store:
        store.finish()
        before = files_of(store.place)
        watch = store.watch()
        watch.look()
        for digest in watch.digests:
            watch.source.content(digest)
        assert watch.look() == watch.look() == 0, "a look tells something, though nothing has changed"
        assert files_of(store.place) == before, "something in the store was changed"
        store.close()
        before = files_of(store.place)
        watch.look()
        assert files_of(store.place) == before, "something in the store was changed"
        if sys.platform == "linux":
            inodes = {str(path.stat().st_ino) for path in store.place.rglob("*")}
            locks = Path("/proc/locks").read_text(encoding="ascii").split()
            held = {word.rpartition(":")[2] for word in locks if word.count(":") == 2} & inodes
            assert not held, "something in the store is locked"
        assert files_of(store.place) == before, "something in the store was changed"


@every_store
def test_every_text_that_was_handed_over_or_back_is_found_again(build: Build) -> None:
    """Each text that was handed over or back can be had by its digest, also after the next one was written."""
    with built(build) as store:
        watch = store.watch()
        for _ in store.story:
            watch.look()
        assert watch.digests, "nothing was handed over or back"
        lost = [digest for digest in watch.digests if watch.source.content(digest) is None]
        assert not lost, f"{len(lost)} of {len(watch.digests)} texts are not found again"
        assert watch.source.content("0" * 64) is None, "a text is found that nobody wrote"


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
