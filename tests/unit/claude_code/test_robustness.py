"""Whatever stands in a store, the reader goes on and says what it left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.run import RunState
from tests.unit.claude_code.building import Store, meta, report

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = re.findall(
    r"\w+",
    "type message content role id model stop_reason usage input name tool_use_id is_error toolUseResult status agentId "
    "isAsync isSidechain isMeta origin uuid parentUuid timestamp cwd sessionId version data parentToolUseID attachment "
    "prompt subagent_type todos taskId subject summary isApiErrorMessage apiErrorStatus output_tokens",
)
WORDS = re.findall(
    r"[\w-]+",
    "user assistant progress system attachment queue-operation summary tool_use tool_result text agent_progress "
    "queued_command Agent Task Skill TodoWrite TaskCreate TaskUpdate end_turn async_launched toolu_1 a1 turn_duration",
)
records = st.recursive(
    anything | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@given(st.lists(records, max_size=12))
def test_records_of_any_shape_are_read_without_a_crash(odd: list[object]) -> None:
    with TemporaryDirectory() as directory:
        store = Store(Path(directory))
        main, child = store.session(), store.agent("a1", meta("toolu_1"))
        main.asked("Go.")
        main.delegated("toolu_1", "one")
        child.asked("one")
        for log in (main, child):
            for value in odd:
                line = json.dumps(value).encode()
                log.raw(line)
                if isinstance(value, dict):
                    log.raw(json.dumps({"type": "user", "cwd": 7} | value).encode())
                    log.record("assistant", **{key: item for key, item in value.items() if key != "type"})
        child.asked("two")
        child.said(report("SUCCESS"))
        run = store.runs()["a1"]
        assert run.state is RunState.ENDED


def test_what_is_not_understood_is_counted(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    main.raw(b"{broken")
    main.raw(b"[1]")
    main.raw(b"[" * 100_000)
    main.said("Done.")
    store.save()
    reader = store.reader()
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert change.run.state is RunState.ENDED
    assert reader.trouble == "3 lines not understood and left out"
    assert [found.skipped for found in reader.found()] == ["3 lines not understood and left out"]
