"""The story as Claude Code keeps it: a transcript for the session, one for each agent, and a description beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader
from tests.unit.claude_code import building
from tests.unit.claude_code.building import Log, indented, meta, notification
from tests.unit.sessions.store import (
    CART,
    INDEX,
    LOOK,
    OTHER,
    PAY,
    SEARCH,
    THOUGHT,
    WORDS,
    Store,
    packet,
    report,
    spoil_lines,
    torn,
)

_SECOND = "second"


def claude_code(root: Path) -> Store:
    """All of the story."""
    built = building.Store(root)
    built.workspace.mkdir()
    _session(built)
    _second(built)

    def forget() -> None:
        (built.project / f"{_SECOND}.jsonl").unlink()
        shutil.rmtree(built.project / _SECOND)

    return Store(
        built.workspace,
        built.home,
        lambda: ClaudeCodeReader(built.workspace, home=built.home),
        _written(built),
        lambda random: spoil_lines(built.project, "agent-{}.jsonl", random),
        forget,
    )


def _session(built: building.Store) -> None:
    main = built.session()
    main.asked("Build the shop.")

    first = _delegated(built, main, "a1", packet(SEARCH))
    first.said("API Error: 400", isApiErrorMessage=True)
    main.got("call_a1", "Subagent failed", error=True)
    _delegated(built, main, "a2", packet(SEARCH)).said(report())
    main.returned("call_a2", "a2", report())

    index = _delegated(built, main, "a3", packet(INDEX))
    index.answered([{"type": "thinking", "thinking": "Words first.", "signature": "x"}], None)
    words = _delegated(built, index, "a4", packet(WORDS), parentAgentId="a3", spawnDepth=2)
    words.used("Read", "read", file_path="a.py")
    words.got("read", "def a(): ...")
    words.said(report())
    index.got("call_a4", indented(report(), "a4"))
    index.said(report("PARTIAL"))
    main.returned("call_a3", "a3", report("PARTIAL"))
    index.asked("Go on.", isMeta=True, origin={"kind": "coordinator"})
    index.said(report(summary="All of it."))
    main.asked(notification("a3", "completed", "finished", "copy"))

    _delegated(built, main, "a5", packet(CART)).interrupted()
    main.got("call_a5", "[Request interrupted by user for tool use]", error=True)
    _delegated(built, main, "a6", LOOK).said(THOUGHT)
    main.returned("call_a6", "a6", THOUGHT)
    pay = _delegated(built, main, "a7", packet(PAY))
    pay.used("Bash", "bash", command="make")


def _second(built: building.Store) -> None:
    second = built.session(_SECOND)
    second.asked("Dust the shelf.")
    second.delegated("call_b1", packet(OTHER))
    child = Log(built, built.project / _SECOND / "subagents" / "agent-b1.jsonl", "b1", "2.1.329")
    built.logs.append(child)
    child.asked(packet(OTHER))
    child.said(report())


def _delegated(built: building.Store, by: Log, agent: str, prompt: str, **keys: object) -> Log:
    by.delegated(f"call_{agent}", prompt)
    child = built.agent(agent, meta(f"call_{agent}", **keys))
    child.asked(prompt)
    return child


def _written(built: building.Store) -> Iterator[None]:
    lines = sorted((json.loads(line)["timestamp"], log.path, line) for log in built.logs for line in log.lines)
    described = dict(built.metas)
    for _, path, line in lines:
        beside = path.with_suffix(".meta.json")
        if beside in described:
            yield from torn(beside, described.pop(beside))
        yield from torn(path, line)
