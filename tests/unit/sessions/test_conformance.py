"""All readers of session stores keep the promises of `checks`, and tell the same story."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.sessions import checks
from tests.unit.sessions.checks import built
from tests.unit.sessions.conformance import OTHER, THOUGHT, Store
from tests.unit.sessions.stores.claude_code import claude_code
from tests.unit.sessions.stores.codex import codex
from tests.unit.sessions.stores.copilot import copilot
from tests.unit.sessions.stores.gemini import gemini
from tests.unit.sessions.stores.opencode import opencode
from tests.unit.sessions.stores.qwen import qwen
from tests.unit.sessions.stores.roo import roo

EXAMPLES = int(os.environ.get("AGENTWATCH_EXAMPLES", "15"))

Build = Callable[[Path], Store]

every_store = pytest.mark.parametrize("build", [claude_code, codex, copilot, gemini, opencode, qwen, roo])


@every_store
def test_the_story_is_the_tree(build: Build) -> None:
    checks.the_story_is_the_tree(build)


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
    checks.what_a_human_began_is_counted_apart(build)


@every_store
@settings(max_examples=EXAMPLES)
@given(doings=st.lists(st.sampled_from(["write", "look", "come anew"]), max_size=300))
def test_however_a_store_grows_the_tree_is_that_of_one_look(build: Build, doings: list[str]) -> None:
    checks.however_it_grows_the_tree_is_that_of_one_look(build, doings)


@every_store
@pytest.mark.slow
def test_every_step_of_a_store_gives_the_tree_of_one_look(build: Build) -> None:
    checks.every_step_is_the_tree_of_one_look(build)


@every_store
def test_a_session_that_is_removed_takes_its_tasks_with_it(build: Build) -> None:
    checks.what_is_removed_takes_its_tasks_with_it(build)


@every_store
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32), often=st.sampled_from([0.05, 0.3, 0.8]))
@pytest.mark.slow
def test_garbage_neither_hides_nor_changes_what_is_sound(build: Build, seed: int, often: float) -> None:
    checks.garbage_neither_hides_nor_changes_what_is_sound(build, seed, often)


@every_store
def test_nothing_in_a_store_is_written_or_locked_and_idle_looks_tell_nothing(build: Build) -> None:
    checks.nothing_is_written_or_locked(build)


@every_store
def test_every_text_that_was_handed_over_or_back_is_found_again(build: Build) -> None:
    checks.every_text_is_found_again(build)
