"""What is seen of a line at a glance is what parsing it would have shown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.run import StartedBy
from agentwatch.sources.claude_code.glance import Glance
from agentwatch.sources.claude_code.transcript import Transcript
from agentwatch.sources.sessions.reader import message
from agentwatch.sources.sessions.tail import Line
from tests.unit.claude_code.building import Log, Store, meta, notification, packet, register, report


def answered(log: Log, blocks: list[object], stop: str | None, tokens: tuple[int, int | None, int]) -> None:
    """The model answers, in a message that has one record or several."""
    read, cached, written = tokens
    usage: dict[str, object] = {"input_tokens": read}
    usage |= {} if cached is None else {"cache_creation_input_tokens": cached}
    usage |= {"cache_read_input_tokens": 7, "cache_creation": {"x": 1}, "output_tokens": written}
    message: dict[str, object] = {"model": "m", "id": f"msg_{read}", "type": "message", "role": "assistant"}
    message |= {"content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
    log.record("assistant", message=message)


def got(log: Log, use: str, words: str, beside: str | None) -> None:
    """A tool gives its result, and somebody says something beside it."""
    blocks: list[object] = [{"tool_use_id": use, "type": "tool_result", "content": words}]
    blocks += [] if beside is None else [{"type": "text", "text": beside}]
    log.record("user", message={"role": "user", "content": blocks})


def structured(log: Log, use: str, result: object) -> None:
    """A tool gives its result, whose structured form the program writes behind everything else."""
    log.got(use, "ok")
    record = json.loads(log.lines.pop()) | {"toolUseResult": result}
    log.raw(json.dumps(record, separators=(",", ":")).encode())


def permitted(log: Log, use: str, keys: dict[str, object], line: object, error: bool) -> None:
    """A tool gives its result, and the program says who allowed or refused it."""
    if line is not None:
        attachment = {"type": "hook_permission_decision", "decision": line, "toolUseID": use}
        log.record("attachment", attachment=attachment | {"hookEvent": "PermissionRequest"})
    log.got(use, "ok", error=error)
    record = json.loads(log.lines.pop()) | keys
    log.raw(json.dumps(record, separators=(",", ":")).encode())


def again(log: Log) -> None:
    """A record is written twice."""
    log.raw(log.lines[-1].removesuffix(b"\n"))


WORDS = st.sampled_from(
    [
        "plain",
        'quoted "type":"tool_use" words',
        '{"type":"text","text":"x"}',
        "[Request interrupted by user",
        "<task-notification>",
        '"stop_reason":null,"usage":{"input_tokens":7',
        "Ünïcode 𝄞\n\\",
    ]
)
TOOLS = st.sampled_from(["Bash", "TodoWrite", "AskUserQuestion", "Skill", 'odd "name"', "mcp__a__b"])
GIVEN = WORDS | st.just("text")
INPUTS = st.recursive(WORDS | st.integers(), lambda inner: st.dictionaries(GIVEN, inner), max_leaves=4)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": WORDS, "signature": WORDS}),
    st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
    st.fixed_dictionaries(
        {
            "type": st.just("tool_use"),
            "id": st.sampled_from(["u1", "u2", "u3"]),
            "name": TOOLS,
            "input": st.fixed_dictionaries({"todos": st.just([{"content": "One"}]), "given": INPUTS}),
        }
    ),
)
NUMBERS = st.integers(0, 3)
RESULTS = (
    "ok",
    {"status": "completed", "agentId": "a1"},
    {"uuid": "its own", "timestamp": "2099-01-01T00:00:00Z"},
    [{"message": {}, "uuid": "its own", "timestamp": "2099-01-01T00:00:00Z"}],
)
SOURCES = st.sampled_from(["hook", "user_temporary", "config", "of a new kind"])
DECISIONS = st.fixed_dictionaries({"decision": st.sampled_from(["accept", "reject", "?"]), "source": SOURCES})
FORGED = {"permissionDecision": {"decision": "accept", "source": "config"}}
PERMITTED = st.fixed_dictionaries(
    {},
    optional={
        "toolUseResult": st.sampled_from(
            ({"permissionDecision": {"decision": "accept", "source": "config"}}, "Error: no")
        ),
        "toolDenialKind": st.sampled_from(["user-rejected", "permission-rule"]),
        "permissionDecision": DECISIONS,
    },
)
STEPS = st.one_of(
    st.tuples(
        st.just(permitted),
        st.sampled_from(["u1", "u2"]),
        PERMITTED,
        st.sampled_from([None, "allow", "deny"]),
        st.booleans(),
    ),
    st.tuples(
        st.just(answered),
        st.lists(BLOCKS, max_size=2),
        st.sampled_from([None, "tool_use", "end_turn", "refusal"]),
        st.tuples(NUMBERS, st.none() | NUMBERS, NUMBERS),
    ),
    st.tuples(st.just(got), st.sampled_from(["u1", "u2", "c1"]), WORDS, st.none() | WORDS),
    st.tuples(st.just(structured), st.sampled_from(["u1", "c1"]), st.sampled_from(RESULTS)),
    st.tuples(st.just(Log.asked), WORDS),
    st.tuples(st.just(again)),
)


def is_parsed(log: Log, *, is_agent: bool = True, behind: bytes = b"") -> bool:
    """Whether the last line of an agent that works has to be parsed, if others are read with it."""
    transcript = Transcript(lambda text, at, _: message(text, at, key=""), is_agent=is_agent)
    glance = Glance(transcript.main, {"Agent"}, (), is_agent=is_agent)
    transcript.main.prompted("Go.", 0.0, 0, StartedBy.PARENT)
    glance.begun = True
    data = b"before\n" + log.lines[-1]
    end = len(data) - 1
    data += behind
    return next(glance.left(Line(107, data, 7, len(data) - 1)), None) == Line(107, data, 7, end)


def test_steps_and_results_in_the_middle_of_the_work_are_not_parsed(tmp_path: Path) -> None:
    log = Store(tmp_path).agent("a1")
    log.used("Bash", "u1", command="make")
    use = log.lines.pop()
    log.got("u1", "ok")
    assert not is_parsed(log)
    result, log.lines = log.lines[-1], [use]
    assert not is_parsed(log, behind=result)
    assert is_parsed(log, behind=result.replace(b"u1", b"u2")), "nothing has come of it yet"
    log.got("u1", "a question")
    assert not is_parsed(log)
    log.answered([{"type": "thinking", "thinking": "Hm.", "signature": "x"}], None)
    assert not is_parsed(log)
    log.said("Half of it.", stop="tool_use")
    assert is_parsed(log)
    log.answered([{"type": "text", "text": "Now I make it."}, {"type": "text", "text": "And more."}], "tool_use")
    assert is_parsed(log)
    log.used("Agent", "u2")
    assert is_parsed(log)
    log.answered([{"type": "thinking"}, {"type": "tool_use", "id": "u2", "name": "Bash", "input": {}}], "tool_use")
    assert is_parsed(log)
    answered(log, [{"type": "thinking", "thinking": "No.", "signature": "x"}], "refusal", (1, 1, 1))
    assert is_parsed(log)
    got(log, "u1", "ok", "[Request interrupted by user for tool use]")
    assert is_parsed(log)
    log.got("u1", "ok", uuid="its own", timestamp="2099-01-01T00:00:00Z")
    assert not is_parsed(log)
    structured(log, "u1", {"uuid": "its own", "timestamp": "2099-01-01T00:00:00Z"})
    assert is_parsed(log)
    structured(log, "u1", {"stdout": "ok"})
    assert not is_parsed(log)
    log.interrupted()
    assert is_parsed(log)


def test_words_that_lead_to_a_use_of_a_tool_are_not_parsed(tmp_path: Path) -> None:
    log = Store(tmp_path).agent("a1")
    tokens = (1, 1, 1)
    answered(log, [{"type": "tool_use", "id": "u1", "name": "Bash", "input": {}}], "tool_use", tokens)
    use = log.lines.pop()
    answered(log, [{"type": "text", "text": "Now I make it."}], "tool_use", tokens)
    assert is_parsed(log)
    assert not is_parsed(log, behind=use)
    assert is_parsed(log, behind=use.replace(b"msg_1", b"msg_2")), "of the next message"
    assert is_parsed(log, behind=log.lines[-1] + use), "not right behind it"


def test_what_agents_wrote_into_the_sessions_own_file_is_parsed(tmp_path: Path) -> None:
    log = Store(tmp_path).session()
    log.got("u1", "ok")
    assert not is_parsed(log, is_agent=False)
    log.record("user", message={"role": "user", "content": [{"type": "tool_result"}]}, isSidechain=True)
    assert is_parsed(log, is_agent=False)
    log.record("progress", data={}, isSidechain=True)
    assert is_parsed(log, is_agent=False)
    log.record("progress", data={})
    assert not is_parsed(log, is_agent=False)


@given(st.lists(STEPS, max_size=12), st.booleans(), st.booleans())
def test_parsed_or_not_the_runs_are_the_same(steps: list[tuple[Any, ...]], inline: bool, ends: bool) -> None:
    with TemporaryDirectory() as directory:
        store = Store(Path(directory))
        main = store.session()
        main.asked("Go.")
        main.delegated("c1", packet("t.a"))
        log = main if inline else store.agent("a1", meta("c1"))
        log.asked(packet("t.a"))
        for how, *given in steps:
            how(log, *given)
        if ends:
            main.asked(notification("a1", "completed", "finished", report("SUCCESS"), "c1"))
        # What nothing has come of yet, a human may be asked about.
        register(store.home, os.getpid(), status="waiting", waitingFor="permission prompt")
        at_a_glance = store.runs()
        for one in store.logs:
            # The same records, written in a way that is not known at a glance.
            one.lines = [json.dumps(json.loads(line)).encode() + b"\n" for line in one.lines]
        assert store.runs() == at_a_glance
