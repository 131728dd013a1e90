"""The story as OpenCode keeps it: rows of a database, each change in a transaction of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from agentwatch.sources.opencode.opencode_reader import OpenCodeReader
from tests.unit.opencode.program import Program, framed
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
)

_TABLES = ("session", "message", "part", "event")
_VALUES = (
    "",
    "x",
    "{",
    "null",
    "[]",
    7,
    -1,
    2**62,
    1.5,
    b"\xff\x00",
    '{"role": [], "type": {}, "time": 5}',
    "[" * 3_000,
)


def opencode(root: Path) -> Store:
    """All of the story."""
    workspace, place = root / "shop", root / "share" / "opencode"
    workspace.mkdir()
    place.mkdir(parents=True)
    program = Program(place / "opencode.db", workspace)
    second: list[str] = []

    def forget() -> None:
        for session in second:
            program.delete(session)

    def spoil(random: Random) -> None:
        if random.random() < 0.1:
            (place / random.choice(["opencode.db-old", "log", "storage"])).write_bytes(b"\xff")
            return
        table = random.choice(_TABLES)
        columns = program.connection.execute(f"PRAGMA table_info({table})").fetchall()
        known = [row[0] for row in program.connection.execute("SELECT id FROM session UNION SELECT id FROM message")]
        values = [_value(random, column[1], known) for column in columns]
        program.connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(values))})", values)

    return Store(
        workspace,
        place,
        lambda: OpenCodeReader(workspace, place / "opencode.db"),
        _written(program, second),
        spoil,
        forget,
        end=program.close,
    )


def _value(random: Random, column: str, known: list[str]) -> object:
    """Rows of garbage hang below what is there, but never take its name."""
    if column in ("session_id", "message_id") and known:
        return random.choice(known)
    return f"zzz_{random.randrange(1_000)}" if column in ("id", "aggregate_id") else random.choice(_VALUES)


def _written(program: Program, second: list[str]) -> Iterator[None]:
    main = program.session(title="Build the shop")
    yield
    program.ask(main, "Build the shop.")
    yield
    message = program.begin(main)
    yield

    first, call = program.delegate(main, message, packet(SEARCH))
    yield
    program.fail(first, program.begin(first), "APIError", "HTTP 400")
    yield
    program.hand_out(main, message, first, packet(SEARCH), call, status="error", error="Subagent failed")
    yield
    yield from _done(program, main, message, packet(SEARCH), report())

    index, call = program.delegate(main, message, packet(INDEX))
    yield
    answer = program.begin(index)
    yield
    yield from _done(program, index, answer, packet(WORDS), report())
    program.finish(index, answer, "tool-calls")
    yield
    program.answer(index, report("PARTIAL"))
    yield
    output = framed(index, report("PARTIAL"))
    program.hand_out(main, message, index, packet(INDEX), call, status="completed", output=output)
    yield
    call = program.hand_out(main, message, index, "Go on.", given={"task_id": index})
    yield
    program.ask(index, "Go on.")
    yield
    program.answer(index, report(summary="All of it."))
    yield
    output = framed(index, report(summary="All of it."))
    program.hand_out(main, message, index, "Go on.", call, status="completed", output=output)
    yield

    cart, call = program.delegate(main, message, packet(CART))
    yield
    answer = program.begin(cart)
    program.say(cart, answer, report())
    yield
    program.fail(cart, answer, "MessageAbortedError", "Aborted")
    yield
    program.hand_out(main, message, cart, packet(CART), call, status="error", error="Task cancelled")
    yield
    yield from _done(program, main, message, LOOK, THOUGHT)
    pay, _ = program.delegate(main, message, packet(PAY))
    yield
    program.say(pay, program.begin(pay), "Looking.")
    yield

    second.append(program.session(title="Dust the shelf"))
    yield
    program.ask(second[0], "Dust the shelf.")
    yield
    answer = program.begin(second[0])
    yield
    child, _ = program.delegate(second[0], answer, packet(OTHER))
    second.append(child)
    yield
    program.answer(child, report())
    yield


def _done(program: Program, parent: str, message: str, prompt: str, said: str) -> Iterator[None]:
    child, call = program.delegate(parent, message, prompt)
    yield
    program.answer(child, said)
    yield
    program.hand_out(parent, message, child, prompt, call, status="completed", output=framed(child, said))
    yield
