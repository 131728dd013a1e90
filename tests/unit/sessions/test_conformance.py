"""All readers of session stores tell the same story, even if other files lie there, are damaged or cannot be read."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.sources.sessions.entries import RunTranscript
from tests.closing import closed
from tests.unit.sessions.store import OTHER, PROGRAMS, STORY, THOUGHT, Store, Watch

EXAMPLES = int(os.environ.get("AGENTWATCH_EXAMPLES", "4"))
ODD = (
    [],
    {},
    [{}],
    [[]],
    7,
    True,
    None,
    "",
    "\ud800",
    10**400,
    "9999999-01-01",
    "0001-01-01T00:00:00+23:59",
    "[" * 999,
)
"""Values that no program writes into a record."""

every_store = pytest.mark.parametrize("program", PROGRAMS)


@contextmanager
def built(program: str) -> Iterator[Store]:
    """Make a store in a directory that is removed afterwards."""
    with TemporaryDirectory() as directory:
        store = Store(program, Path(directory).resolve())
        try:
            yield store
        finally:
            store.close()


def transcripts(watch: Watch) -> dict[str, RunTranscript]:
    """Return the transcripts of the runs, by session."""
    runs = [ran.run for ran in watch.runs.values() if ran.run is not None]
    found = {run.session_id: watch.source.transcript(run) for run in runs}
    return {session: transcript for session, transcript in found.items() if transcript is not None}


@every_store
def test_the_story_is_the_tree(program):
    """Each task has its attempts, in their states, below the session that asked for it; the source has no problems."""
    with built(program) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        tasks, found = watch.tasks, watch.source.found()
        states = {task: [one["state"] for one in tasks[task]["attempts"]] for task in STORY}
        assert states == {task: list(states) for task, states in STORY.items()}
        assert {tasks[task]["parent_basis"] for task in STORY} == {"session"}
        assert watch.source.problems == ()
        (main,) = {tasks[task]["parent_id"] for task in STORY if task.count(".") == 1}
        assert (tasks[main]["parent_id"], tasks[main]["state"]) == (None, "working")
        assert tasks["shop.index.words"]["parent_id"] == "shop.index"
        assert tasks["shop.index"]["summary"] == "All of it."
        (prose,) = (task for task in tasks.values() if task["parent_id"] == main and task["task_id"] not in STORY)
        assert (prose["state"], prose["contract"]) == ("completed", None)
        assert THOUGHT in map(watch.source.content, watch.digests)
        assert watch.source.content("0" * 64) is None
        assert len(watch.digests) >= 10
        assert len(tasks) == len(STORY) + 4
        attempts = sum(len(task["attempts"]) for task in tasks.values())
        assert (sum(one.sessions for one in found), sum(one.children for one in found)) == (2, attempts - 2)
        store.forget()
        watch.look()
        assert tasks.keys() - watch.tasks.keys() == {OTHER, tasks[OTHER]["parent_id"]}
        assert all(watch.tasks[task] == tasks[task] for task in watch.tasks)
        assert watch.document == store.seen_at_once()


@every_store
@settings(max_examples=EXAMPLES)
@given(doings=st.lists(st.sampled_from(["write", "look", "come anew"]), max_size=300))
def test_however_a_store_grows_the_tree_is_that_of_one_look(program, doings):
    """The runs depend on the content of the store, not on the times of looks; an unchanged store gives no change."""
    with built(program) as store:
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
        assert None not in map(watch.source.content, watch.digests), "a text is not found again"


@every_store
@pytest.mark.slow
def test_every_step_of_a_store_gives_the_tree_of_one_look(program):
    """This holds after each single write."""
    with built(program) as store:
        watch = store.watch()
        for step, _ in enumerate(store.story, start=1):
            watch.look()
            assert watch.document == store.seen_at_once(), f"behind write {step}, who has just come sees another tree"


@every_store
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32), often=st.sampled_from([0.05, 0.3, 0.8]))
@pytest.mark.slow
def test_garbage_neither_hides_nor_changes_what_is_sound(program, seed, often):
    """Garbage of any kind in the store raises no error, and leaves the sound sessions unchanged."""
    random, expected = Random(seed), _unspoilt(program)
    with built(program) as store:
        watch = store.watch()
        for _ in store.story:
            if random.random() < often:
                store.spoil(random)
            if random.random() < 0.2:
                watch.look()
        watch.look()
        assert not _raised(watch)
        sound = {task["task_id"] for task in expected}
        seen = [_comparable(task) for task in watch.document["tasks"] if task["task_id"] in sound]
        assert seen == [_comparable(task) for task in expected], "beside garbage, the tree is another one"


def _raised(watch: Watch) -> list[str]:
    told = [*map(str, watch.source.problems), *(found.skipped for found in watch.source.found())]
    return [sentence for sentence in told if "cannot be used" in sentence]


@cache
def _unspoilt(program: str) -> list[dict[str, Any]]:
    """Return the tasks of a store without garbage."""
    with built(program) as store:
        store.finish()
        tasks: list[dict[str, Any]] = store.seen_at_once()["tasks"]
        return tasks


def _comparable(task: dict[str, Any]) -> object:
    """Return a task without paths, which differ between two stores, and without progress, which garbage may change."""
    nowhere = {"handoff_path": None, "return_path": None}
    attempts = [
        {**attempt, **nowhere, "run": {**attempt["run"], "place": ""} if attempt["run"] else None}
        for attempt in task["attempts"]
    ]
    findings = [finding["rule"] for finding in task["findings"]]
    return {**task, "attempts": attempts, "progress": None, "findings": findings}


@every_store
@pytest.mark.parametrize("seed", range(2))
def test_odd_values_break_neither_a_reader_nor_a_transcript(program, seed):
    random = Random(seed)
    with built(program) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        shown = transcripts(watch)
        for path in [path for path in store.place.rglob("*.json*") if path.is_file()]:
            text = path.read_text("utf-8")
            records = map(json.loads, text.splitlines() if path.suffix == ".jsonl" else [text])
            odd = [f"{json.dumps(_odd(record, random))}\n" for record in records for _ in range(4)]
            path.write_text(text + "".join(odd) if path.suffix == ".jsonl" else odd[0], "utf-8")
        for _ in range(20):
            store.spoil(random)
        watch.look()
        assert not _raised(watch)
        assert None not in map(watch.source.content, watch.digests)
        for transcript in shown.values():
            end = transcript.read_end()
            for step in end.steps if end is not None else ():
                transcript.read_step(step)
            list(transcript.entries())


def _odd(value: Any, random: Random) -> Any:
    """Return a record with an odd value for a part of it, or for all."""
    if not value or not isinstance(value, dict | list) or random.random() < 0.1:
        return random.choice(ODD)
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = random.choice(keys)
    changed = value.copy()
    changed[key] = _odd(value[key], random)
    return changed


@every_store
def test_looks_write_lock_and_repeat_nothing(program):
    """No file in the store changes, and no lock is held there (on Linux, where locks can be seen)."""
    with built(program) as store:
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


def files_of(place: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return everything in a directory with the time of its last change and its content.

    Shared memory of a database may change, as its readers write it, too, while they are in the program's process."""
    return {
        str(path.relative_to(place)): (
            path.stat(follow_symlinks=False).st_mtime_ns,
            path.stat(follow_symlinks=False).st_ino,
            path.read_bytes() if path.is_file() and not path.name.endswith("-shm") else b"",
        )
        for path in (place, *place.rglob("*"))
    }


@contextmanager
def finished(program: str) -> Iterator[tuple[Store, list[Path]]]:
    """Make the store of an ended program with the whole story, and the paths of its sessions, outermost first."""
    with built(program) as store:
        store.finish()
        store.end()
        found = [store.place, *sorted(store.place.rglob("*"))]
        # The shared memory of a log is made anew each time.
        yield store, [path for path in found if not path.name.endswith(("-shm", "-wal"))]


@every_store
def test_a_closed_place_is_reported_and_known_tasks_stay(program):
    with finished(program) as (store, places):
        whole, told = store.seen_at_once()["tasks"], 0
        before = store.watch()
        before.look()
        for path in places:
            watch = store.watch()
            with closed(path):
                watch.look()
                assert watch.document["tasks"] == whole or watch.source.problems, path
                told += bool(watch.source.problems)
                before.look()
                assert before.document["tasks"] == whole, path
            before.look()
            assert before.document["tasks"] == whole, path
            assert before.source.problems == (), path
        assert told >= 2


@every_store
def test_a_damaged_store_gives_a_whole_tree_or_a_problem(program):
    random = Random(1)
    with finished(program) as (store, places):
        whole = store.seen_at_once()["tasks"]
        for path in filter(Path.is_file, places):
            before = path.read_bytes()
            path.write_bytes(random.randbytes(len(before) // 2) + b"\n" + random.randbytes(len(before) // 2) + b"\n")
            watch = store.watch()
            watch.look()
            assert watch.document["tasks"] == whole or watch.source.problems, path
            path.write_bytes(before)


def test_half_a_document_changes_nothing_of_what_is_known():
    with finished("roo") as (store, places):
        watch = store.watch()
        watch.look()
        whole = watch.document["tasks"]
        for path in filter(Path.is_file, places):
            path.write_bytes(path.read_bytes()[:-2])
            watch.look()
            assert watch.document["tasks"] == whole, path
            assert watch.source.problems, path
