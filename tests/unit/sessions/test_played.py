"""A session of each program, played record by record: its task does what the last record says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import DoingKind
from agentwatch.delegation.tree import Tree
from agentwatch.sources.sessions.reader import SessionReader
from tests.unit.claude_code import building as claude
from tests.unit.codex.home import Home
from tests.unit.copilot import building as copilot
from tests.unit.gemini import building as gemini
from tests.unit.opencode.program import Program
from tests.unit.opencode.reading import reading
from tests.unit.qwen import building as qwen
from tests.unit.roo.storage import Storage, ask, request, say


class Now(NamedTuple):
    """What the last record says: None where it says nothing of the kind."""

    kind: DoingKind
    what: str
    about: str
    over: bool = False
    repeats: int = 1


def tool(what: str, about: str, *, over: bool = False, repeats: int = 1) -> Now:
    return Now(DoingKind.TOOL, what, about, over, repeats)


def words(about: str) -> Now:
    return Now(DoingKind.WORDS, "", about)


def todo(about: str, *, ticked: bool) -> Now:
    return Now(DoingKind.TODO, "", about, ticked)


Steps = Iterator[Now | None]
Played = tuple[SessionReader, str, Steps]
"""A reader, the id of the task, and a session that goes on by a record with each step."""


def play_claude(root: Path) -> Played:
    store = claude.Store(root)
    log = store.agent("a1", claude.meta("u0"))
    store.session().delegated("u0", "Go.")

    def steps() -> Steps:
        def after(now: Now | None) -> Now | None:
            store.save()
            return now

        log.asked("Build the form.")
        yield after(None)
        log.said("First I read.", stop="tool_use")
        yield after(words("First I read."))
        for number in (1, 2):
            log.used("Read", f"u{number}", file_path=str(store.workspace / "src/form.tsx"))
            yield after(tool("Read", "src/form.tsx", repeats=number))
            log.got(f"u{number}", "export …")
            yield after(tool("Read", "src/form.tsx", over=True, repeats=number))
        log.answered([{"type": "thinking", "thinking": "Hm."}], None)
        yield after(tool("Read", "src/form.tsx", over=True, repeats=2))
        todos = [{"content": "Read", "status": "completed"}, {"content": "Write", "status": "in_progress"}]
        log.used("TodoWrite", "u3", todos=todos)
        yield after(todo("Write", ticked=False))
        log.got("u3", "ok")
        yield after(todo("Write", ticked=False))
        log.used("TodoWrite", "u4", todos=[{"content": one["content"], "status": "completed"} for one in todos])
        yield after(todo("Write", ticked=True))
        log.used("mcp__shop__find", "u5", limit=3, term="seeds")
        yield after(tool("mcp__shop__find", "seeds"))

    return store.reader(), "a1", steps()


def play_codex(root: Path) -> Played:
    home = Home(root)
    session = home.session(1)

    def steps() -> Steps:
        def after(now: Now | None) -> Now | None:
            home.write(session)
            return now

        session.meta(home.workspace).begin().asked("Build the shop.")
        yield after(None)
        session.said("First I look.")
        yield after(words("First I look."))
        for number in (1, 2, 3):
            session.call("exec_command", f"c{number}", cmd="npm test\nexit", workdir=str(home.workspace))
            yield after(tool("exec_command", "npm test", repeats=number))
            session.output(f"c{number}", "Process exited with code 1\n" + "x" * 5000)
            yield after(tool("exec_command", "npm test", over=True, repeats=number))
        patch = f"*** Begin Patch\n*** Update File: {home.workspace}/src/form.tsx\n@@\n-a\n+b\n*** End Patch"
        session.item("custom_tool_call", name="apply_patch", input=patch, call_id="c4", status="completed")
        yield after(tool("apply_patch", "src/form.tsx"))
        session.item("custom_tool_call_output", call_id="c4", output="Success.")
        yield after(tool("apply_patch", "src/form.tsx", over=True))
        session.item("local_shell_call", call_id="c5", action={"type": "exec", "command": ["bash", "-lc", "ls src"]})
        yield after(tool("shell", "ls src"))
        session.item("web_search_call", status="completed", action={"type": "search", "query": "seeds"})
        yield after(tool("shell", "ls src"))
        session.output("c5", "form.tsx")
        yield after(tool("web_search", "seeds", over=True))
        plan = [{"step": "Look", "status": "completed"}, {"step": "Build", "status": "in_progress"}]
        session.call("update_plan", "c6", plan=plan)
        yield after(todo("Build", ticked=False))
        session.call("update_plan", "c7", plan=[{"step": one["step"], "status": "completed"} for one in plan])
        yield after(todo("Build", ticked=True))
        session.item("function_call", name="find", namespace="mcp__shop", arguments='{"term": "seeds"}', call_id="c8")
        yield after(tool("mcp__shop__find", "seeds"))
        session.call("spawn_agent", "c9", message="gAAAA" * 100, agent_type="explorer")
        yield after(tool("spawn_agent", "explorer"))
        session.begin()
        yield after(None)

    return home.reader, session.id, steps()


def play_qwen(root: Path) -> Played:
    store = qwen.Store(root)
    log = store.session()

    def steps() -> Steps:
        def after(now: Now | None) -> Now | None:
            store.save()
            return now

        log.asked("Build the form.")
        yield after(None)
        for number in (1, 2):
            log.called("run_shell_command", f"c{number}", command="npm test", description="Tests")
            yield after(tool("run_shell_command", "npm test", repeats=number))
            log.got(f"c{number}", "ok")
            yield after(tool("run_shell_command", "npm test", over=True, repeats=number))
        log.answered({"text": "Hm.", "thought": True}, {"functionCall": {"id": "c3", "name": "read_file", "args": {}}})
        yield after(tool("read_file", ""))
        log.called("edit", "c4", file_path=str(store.workspace / "src/form.tsx"))
        yield after(tool("edit", "src/form.tsx"))
        log.got("c4", "ok")
        yield after(tool("read_file", ""))
        log.got("c3", "ok")
        yield after(tool("edit", "src/form.tsx", over=True))
        log.called("todo_write", "c5", todos=[{"content": "Read", "status": "in_progress"}])
        yield after(todo("Read", ticked=False))
        log.called("todo_write", "c6", todos=[{"content": "Read", "status": "completed"}])
        yield after(todo("Read", ticked=True))
        log.answered(
            {"text": "Now the rest."}, {"functionCall": {"id": "c7", "name": "glob", "args": {"pattern": "*"}}}
        )
        yield after(tool("glob", "*"))

    return store.reader(), qwen.SESSION, steps()


def play_copilot(root: Path) -> Played:
    store = copilot.Store(root)
    log = store.session()

    def steps() -> Steps:
        def after(now: Now | None) -> Now | None:
            store.save()
            return now

        yield after(None)
        log.answered("First I read.")
        yield after(words("First I read."))
        for number in (1, 2):
            log.called("bash", f"c{number}", command="npm test", description="Tests")
            yield after(tool("bash", "npm test", repeats=number))
            log.got(f"c{number}")
            yield after(tool("bash", "npm test", over=True, repeats=number))
        log.called("view", "c3", path=str(store.workspace / "src/form.tsx"))
        log.called("grep", "c4", pattern="TODO")
        log.got("c4")
        yield after(tool("view", "src/form.tsx"))
        log.asked("And the docs.")
        yield after(None)

    return store.reader(), copilot.SESSION, steps()


def play_gemini(root: Path) -> Played:
    store = gemini.Store(root)
    log = store.agent("child", "Build the form.")

    def steps() -> Steps:
        def after(now: Now | None) -> Now | None:
            store.save()
            return now

        yield after(None)
        log.answered("First I read.")
        yield after(words("First I read."))
        for number in (1, 2):
            # It is written once it is over.
            log.called("run_shell_command", f"c{number}", command="npm test")
            yield after(tool("run_shell_command", "npm test", over=True, repeats=number))
        log.called("read_file", "c3", file_path=str(store.workspace / "src/form.tsx"))
        yield after(tool("read_file", "src/form.tsx", over=True))
        log.called("write_todos", "c4", todos=[{"description": "Read", "status": "in_progress"}])
        yield after(todo("Read", ticked=False))
        log.called("write_todos", "c5", todos=[{"description": "Read", "status": "completed"}])
        yield after(todo("Read", ticked=True))

    return store.reader(), "child", steps()


def play_opencode(root: Path) -> Played:
    workspace, database = root / "work", root / "opencode.db"
    workspace.mkdir()
    program = Program(database, workspace)
    session = program.session()

    def steps() -> Steps:
        program.ask(session, "Build the form.")
        yield None
        message = program.begin(session)
        yield None
        program.say(session, message, "First I read.")
        yield words("First I read.")
        given = {"filePath": str(workspace / "src/form.tsx")}
        for number in (1, 2):
            made = program.call(session, message, "read", status="pending", input={})
            yield tool("read", "")
            program.call(session, message, "read", made, input=given, metadata={"preview": ""})
            yield tool("read", "src/form.tsx", repeats=number)
            program.call(session, message, "read", made, status="completed", input=given, output="export …")
            yield tool("read", "src/form.tsx", over=True, repeats=number)
        first = program.call(session, message, "webfetch", input={"url": "https://example.org", "format": "text"})
        second = program.call(session, message, "grep", input={"pattern": "TODO", "path": "src"}, metadata={"n": 1})
        yield tool("grep", "TODO")
        program.call(session, message, "grep", second, status="completed", input={"pattern": "TODO", "path": "src"})
        yield tool("webfetch", "https://example.org")
        program.call(session, message, "webfetch", first, status="error", input={"url": "https://example.org"})
        yield tool("grep", "TODO", over=True)
        todos = [{"content": "Read", "status": "completed"}, {"content": "Write", "status": "in_progress"}]
        program.call(session, message, "todowrite", status="completed", input={"todos": todos})
        yield todo("Write", ticked=False)
        todos = [{"content": "Read", "status": "completed"}, {"content": "Write", "status": "completed"}]
        last = program.call(session, message, "todowrite", status="completed", input={"todos": todos})
        yield todo("Write", ticked=True)
        program.remove_part(session, last)
        yield todo("Write", ticked=False)
        program.ask(session, "And the docs.")
        yield None
        program.close()

    return reading(workspace, database).reader, session, steps()


def play_roo(root: Path) -> Played:
    storage = Storage(root)
    storage.item("t1", status="active")
    written: list[dict[str, object]] = []

    def steps() -> Steps:
        def after(message: dict[str, object], now: Now | None) -> Now | None:
            written.append(message | {"ts": int(str(message["ts"])) + len(written)})
            storage.messages("t1", *written)
            return now

        yield after(say("text", "Build the form."), None)
        yield after(request(), None)
        yield after(say("text", "First I read."), words("First I read."))
        for number in (1, 2):
            given = {"tool": "readFile", "path": "src/form.tsx"}
            yield after(say("tool", json.dumps(given)), tool("readFile", "src/form.tsx", repeats=number))
            yield after(request(), tool("readFile", "src/form.tsx", over=True, repeats=number))
        yield after(
            say("command", "npm test") | {"say": None, "ask": "command", "isAnswered": True},
            tool("execute_command", "npm test"),
        )
        yield after(say("command_output", "ok"), tool("execute_command", "npm test", over=True))
        given = {"serverName": "shop", "toolName": "find", "arguments": '{"term": "seeds"}'}
        yield after(ask("use_mcp_server", json.dumps(given), isAnswered=True), tool("mcp__shop__find", "seeds"))
        yield after(say("mcp_server_response", "none"), tool("mcp__shop__find", "seeds", over=True))
        todos = [{"content": "Read", "status": "in_progress"}]
        listed = {"tool": "updateTodoList", "todos": todos}
        yield after(ask("tool", json.dumps(listed), isAnswered=True), todo("Read", ticked=False))
        listed = {"tool": "updateTodoList", "todos": [{"content": "Read", "status": "completed"}]}
        yield after(ask("tool", json.dumps(listed), isAnswered=True), todo("Read", ticked=True))

    return storage.reader, "t1", steps()


PROGRAMS = [play_claude, play_codex, play_copilot, play_gemini, play_qwen, play_opencode, play_roo]


@pytest.mark.parametrize("play", PROGRAMS, ids=lambda play: play.__name__.removeprefix("play_"))
def test_at_each_moment_the_task_does_what_the_last_record_says(play: Callable[[Path], Played], tmp_path: Path) -> None:
    reader, task_id, steps = play(tmp_path)
    tree = Tree()
    told = 0
    for number, expected in enumerate(steps):
        changes = reader.read(10.0)
        for change in changes:
            tree.apply(Ran(number, 0.0, change.key, change.run))
        now = tree.tasks[task_id].doing
        assert (None if now is None else Now(*now[1:])) == expected, number
        told += bool(changes)
    reader.close()
    assert told == number + 1, "each record is told"
