"""The reader of Codex. A rollout is a file with the records (JSON lines) of one thread: a session or an agent."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from agentwatch.delegation.decision import Permit, Permitter
from agentwatch.delegation.events import Run, RunState, StartedBy
from agentwatch.sources.sessions.entries import CommandEnd, EntriesIn, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    Record,
    Tail,
    as_object,
    directory_in,
    int_at,
    list_at,
    nested,
    object_in,
    part_texts,
    string,
    text,
    time_at,
)
from agentwatch.sources.sessions.processes import Program, is_on_local_disk, sees_all_processes
from agentwatch.sources.sessions.runs import NO_ACCOUNT, NO_CALL, Account, AgentCall, Keep, run_of
from agentwatch.sources.sessions.store import FilesReader, FoundFile, Session, contains

THREAD_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
ENCRYPTED = "encrypted by Codex"
_OWN_WORK = frozenset({"compact", "memory_consolidation", "guardian"})  # agents that Codex starts for its own work
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})")

MCP = "mcp__"  # the beginning of the names of MCP servers
TASK = "task of an agent"  # our name for the kind of a prompt from one agent to another
_PAYLOAD = "\nPayload:\n"
_REFUSED = re.compile(
    r"(?:exec_command|apply_patch|execution|command)[^\n]{0,20} failed[^\n]{0,80}Rejected\("
    r"|patch rejected by user|(?:Wall time: [\d.]+ seconds\nOutput:\n)?user rejected MCP tool call"
)  # the beginning of the output of a refused call: a command, a patch, or a tool of an MCP server
_ABORTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted by user")
_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})")
_HEAD = 600  # Codex writes a report before a command's output, of at most so many characters
_OUTPUT = "\nOutput:\n"
_FAILED = re.compile(r"\A(?:exec_command|execution|apply_patch|command)[\w ]* failed", re.IGNORECASE)


class Header(NamedTuple):
    """The first line of a rollout, in Codex 0.66 to 0.169. Texts are untrusted. Records with an ordinal below
    `inherited_below` are copies of the parent's records. If `own_work`, Codex started the agent for its own work."""

    thread: str
    parent: str | None
    directory: str
    began_at: float
    ordinal: int
    agent: str | None
    task_name: str | None
    version: tuple[int, ...]
    inherited_below: int | None
    own_work: bool
    one_shot: bool  # whether the session was started by `codex exec`


def read_header(record: Fields) -> Header | None:
    """Return the header in a record. Return None if the record is no header or has no thread id."""
    meta = as_object(record.get("payload"))
    thread, source = text(meta, "id"), nested(meta, "source")
    if record.get("type") != "session_meta" or thread is None:
        return None
    subagent = source.get("subagent")
    spawn = {key: value for key, value in nested(source, "subagent", "thread_spawn").items() if value is not None}
    merged = {**meta, **spawn}
    kind = subagent if isinstance(subagent, str) else text(as_object(subagent), "other")
    role, nickname = text(merged, "agent_role") or text(merged, "agent_type") or kind, text(merged, "agent_nickname")
    version = _VERSION.match(string(meta, "cli_version"))
    return Header(
        thread=thread,
        parent=text(merged, "parent_thread_id"),
        directory=string(meta, "cwd"),
        began_at=time_at(meta) or 0.0,
        ordinal=int_at(record, "ordinal") or 0,
        agent=f"{nickname} ({role})" if nickname and role else nickname or role,
        task_name=text(merged, "agent_path"),
        version=tuple(map(int, version.groups())) if version else (),
        inherited_below=int_at(meta, "subagent_history_start_ordinal"),
        own_work=kind in _OWN_WORK or "internal" in source,
        one_shot=meta.get("source") == "exec",
    )


class InheritedHistory:
    """Recognises copied records: an agent's rollout may begin with a copy of its parent's rollout. Newer versions of
    Codex write where the copy ends. In older versions, the copy ends before the first turn that is younger than the
    agent. Ids of turns and agents begin with a time."""

    _is_inside = False

    def __init__(self, header: Header):
        self._header = header

    def is_copied(self, fields: Fields) -> bool:
        """Tell whether a record is part of the copy."""
        below = self._header.inherited_below
        if below is not None and (ordinal := int_at(fields, "ordinal")) is not None:
            return ordinal < below
        if fields.get("type") == "session_meta":
            header = read_header(fields)
            self._is_inside = self._is_inside or (header is not None and header.thread != self._header.thread)
            return True
        payload = as_object(fields.get("payload")) if self._is_inside else {}
        if payload.get("type") in ("task_started", "turn_started"):
            turn = string(payload, "turn_id")
            self._is_inside = THREAD_ID.fullmatch(turn) is None or turn < self._header.thread
        return self._is_inside


class OwnEntries:
    """A function that takes the records of a rollout in order. It returns the entries of each record. For
    a copy of a parent's record, it returns no entries."""

    _history: InheritedHistory | None = None
    _cwd = ""

    def __call__(self, fields: Fields) -> Iterator[Entry]:
        if self._history is None and (header := read_header(fields)) is not None:
            self._history, self._cwd = InheritedHistory(header), header.directory
        if self._history is None or not self._history.is_copied(fields):
            self._cwd = directory_in(fields) or self._cwd
            yield from (entry._replace(cwd=self._cwd) for entry in entries(fields))


class Rollout(Account):
    """The account (state) of the agent that wrote one rollout."""

    question_tools = ("request_user_input",)

    _failure: str | None = None

    def __init__(self, path: str, header: Header, keep: Keep, places: Sequence[str] = ()):
        super().__init__(keep, places, is_agent=header.parent is not None)
        self.path = path
        self.header = header
        self.one_shot = header.one_shot
        self.started_at = self.updated_at = header.began_at
        self._history = InheritedHistory(header)

    def add(self, fields: Record) -> None:
        if self._history.is_copied(fields):
            return
        at = time_at(fields) or self.updated_at
        self.updated_at = max(self.updated_at, at)
        kind, payload = kind_and_fields(fields)
        for entry in entries(fields, at):
            if entry.kind is EntryKind.RESULT:
                self._add_result(entry)
            else:
                self.add_entry(entry)
                if entry.kind is EntryKind.CALL:
                    self._add_call(entry)
        match kind:
            case "task_started" | "turn_started":
                self._begin_turn(at)
            case "task_complete" | "turn_complete":
                self._complete_turn(payload, at)
            case "turn_aborted":
                reason = text(payload, "reason") or "aborted"
                self.end(RunState.FAILED if reason == "budget_limited" else RunState.CANCELED, at, reason)
                self.last = None
            case "error":
                self._failure = text(payload, "message") or "an error of Codex"
            case "user_message" | "UserMessage" | "task of an agent":
                if kind != TASK or text(payload, "recipient") == self.header.task_name:
                    self._add_prompt(read_prompt(kind, payload), at, is_agents=kind == TASK)
            case "token_count" | "token_usage_record":
                used = nested(payload, "info", "total_token_usage") or nested(payload, "thread_token_usage")
                self.tokens = int_at(used, "total_tokens") or self.tokens
            case "turn_context":
                self.model = text(payload, "model") or self.model
            case "CollabAgentToolCall" | "SubAgentActivity":
                self._link_thread(payload, at)

    def _begin_turn(self, at: float) -> None:
        self.forget_activity()
        self.begin_round(at)
        self.resume(at)
        self.last = self._failure = None

    def _complete_turn(self, payload: Fields, at: float) -> None:
        error = text(nested(payload, "error"), "message")
        self._failure = error or (self._failure if read_answer(payload) is None else None)
        if self._failure is not None:
            self.end(RunState.FAILED, at, self._failure)
        else:
            self.end(RunState.ENDED, at)
            self.answer = self.last
        self.last = None

    def _add_prompt(self, words: str | None, at: float, *, is_agents: bool) -> None:
        prompt = self.keep(words, at) if words is not None else None
        if self.prompt is None and not self.prompt_missing:
            self.prompt, self.prompt_missing = prompt, ENCRYPTED if prompt is None and is_agents else ""
        elif self.begun and self.begun.asker is StartedBy.PROGRAM:
            self.begun = replace(self.begun, prompt=prompt, asker=StartedBy.PARENT)

    def _add_call(self, entry: Entry) -> None:
        given = entry.given
        if entry.tool == "spawn_agent":
            words = text(given, "message") or "\n".join(part_texts(given, "items"))
            is_plain = is_readable(words)
            call = self.record_call(entry, words if is_plain else None, "agent_type", "task_name")
            call.prompt_missing = ENCRYPTED if not is_plain and text(given, "message") is not None else ""

    def _add_result(self, entry: Entry) -> None:
        """Record the output of a call. The rollout does not say who allowed the call."""
        output, answer = entry.text, object_in(entry.text)
        if (call := self.open.pop(entry.call, None)) is not None:
            is_over = "aborted by user" in output and entry.refused
            allowed = None if is_over else not entry.refused
            self.permits.append(
                Permit(call.call, call.tool, "", allowed, Permitter.UNKNOWN, entry.at, read_choices(output))
            )
        asked = self.calls.get(entry.call)
        if asked and asked.child is None:
            asked.child = text(answer, "agent_id")
            if asked.child is None and text(answer, "task_name") is None:
                # The output names no agent. So the call was refused, or a human stopped the turn.
                status = "canceled" if output.startswith("aborted by user") else "failed"
                self.record_end(asked.id, status, output, None, entry.at)

    def _link_thread(self, item: Fields, at: float) -> None:
        """Link a call that started an agent to the agent's thread."""
        threads = (item.get("agent_thread_id"), *list_at(item, "receiver_thread_ids"))
        thread = next((one for one in threads if isinstance(one, str)), None)
        if thread is not None and (item.get("tool") == "spawn_agent" or item.get("kind") == "started"):
            entry = Entry(at, EntryKind.CALL, "", text(item, "id") or thread, given=item)
            asked = self.calls.get(entry.call) or self.record_call(entry, None, "", "agent_path")
            asked.child = asked.child or thread


# Entries


def kind_and_fields(record: Fields) -> tuple[str, Fields]:
    """Return the kind of a record (one line of a rollout), and its fields."""
    payload = as_object(record.get("payload"))
    kind = text(payload, "type") or (text(record, "type") if payload else None) or ""
    if kind == "item_completed":
        payload = nested(payload, "item")
        kind = string(payload, "type")
    return TASK if kind == "agent_message" and record.get("type") == "response_item" else kind, payload


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """Yield the entries of a record, in order. If the record has no time, use `at` (epoch seconds)."""
    at = time_at(record) or at
    kind, payload = kind_and_fields(record)
    call = string(payload, "call_id")
    match kind:
        case "user_message" | "UserMessage" | "task of an agent" if words := read_prompt(kind, payload):
            yield Entry(at, EntryKind.PROMPT, words)
        case "agent_message" | "AgentMessage" | "task_complete" | "turn_complete":
            # The end of a turn usually repeats the answer. The transcript leaves repetitions out.
            if words := read_answer(payload):
                yield Entry(at, EntryKind.WORDS, words)
            if (error := text(nested(payload, "error"), "message")) is not None:
                yield Entry(at, EntryKind.NOTE, error, failed=True)
        case "error":
            yield Entry(at, EntryKind.NOTE, text(payload, "message") or "an error of Codex", failed=True)
        case "turn_aborted":
            yield Entry(at, EntryKind.NOTE, f"the turn was {text(payload, 'reason') or 'aborted'}", failed=True)
        case "reasoning" if words := "\n".join(part_texts(payload, "summary")):
            yield Entry(at, EntryKind.THOUGHT, words)
        case "function_call":
            name, server = string(payload, "name"), string(payload, "namespace")
            given = object_in(text(payload, "arguments"))
            if name == "spawn_agent" and "message" in given:
                given = {**given, "prompt": given["message"]}
            # Write the tool's name in the form that other programs use: `mcp__server__tool`.
            is_mcp = server.startswith(MCP) and not name.startswith(MCP)
            yield Entry(at, EntryKind.CALL, "", call, f"{server.rstrip('_')}__{name}" if is_mcp else name, given)
        case "custom_tool_call":
            yield Entry(at, EntryKind.CALL, "", call, string(payload, "name"), {"input": payload.get("input")})
        case "local_shell_call":
            yield Entry(at, EntryKind.CALL, "", call, "shell", nested(payload, "action"))
        case "web_search_call":
            yield Entry(at, EntryKind.CALL, "", call, "web_search", nested(payload, "action"))
            yield Entry(at, EntryKind.RESULT, "", call)
        case "function_call_output" | "custom_tool_call_output":
            yield _result_entry(text(payload, "output") or "\n".join(part_texts(payload, "output")), call, at)


def _result_entry(words: str, call: str, at: float) -> Entry:
    head, cut, output = words.partition(_OUTPUT) if _OUTPUT in words[:_HEAD] else (words, "", "")
    exits = _EXIT.findall(head[:_HEAD])
    code = int(exits[-1]) if exits else None
    refused = _REFUSED.match(words) is not None or _ABORTED.match(words) is not None
    failed = refused or bool(code) or _FAILED.match(words) is not None
    # Without an exit code, the command may still run.
    ended = None if refused else CommandEnd(code, output if cut else words)
    if cut:
        # Put the output first, and then the report of Codex.
        words = f"exit code {code or 0}\n{output}\n{head}" if failed else f"{output.rstrip()}\n\n{head}".strip()
    return Entry(at, EntryKind.RESULT, words, call, failed=failed, refused=refused, ended=ended)


def read_prompt(kind: str, payload: Fields) -> str | None:
    """Return the prompt from a human or another agent. Return None if there is no prompt, or if it is encrypted."""
    if kind != TASK:
        return _message_text(payload)
    parts = [as_object(part) for part in list_at(payload, "content")]
    opening = string(parts[0], "text") if parts else ""
    if _PAYLOAD not in opening or "NEW_TASK" not in opening:
        return None
    task = opening.partition(_PAYLOAD)[2]
    for part in parts[1:]:
        encrypted = text(part, "encrypted_content")
        if encrypted is not None and not is_readable(encrypted):
            return None
        task += encrypted or string(part, "text")
    return task or None


def read_answer(payload: Fields) -> str | None:
    """Return the agent's text in a record. Return None if the text is missing or blank."""
    words = text(payload, "last_agent_message") or _message_text(payload)
    return words if words is not None and words.strip() else None


def read_choices(output: str) -> str:
    """Return a human's answers to questions, from the output of the call that asked the questions."""
    answers = nested(object_in(output), "answers")
    chosen = [one for answer in answers.values() for one in list_at(as_object(answer), "answers")]
    return "\n".join(one for one in chosen if isinstance(one, str))


def is_readable(words: str) -> bool:
    """Tell whether a text is readable. An encrypted text has no space."""
    return any(character.isspace() for character in words)


def _message_text(payload: Fields) -> str | None:
    return text(payload, "message") or "".join(part_texts(payload, "content")) or None


NAME = "codex"

_DAMAGED = "damaged"
_STRANGE = "it does not say whose it is, and in which directory"
_SECONDS = 2.0  # seconds between two reads of `/proc/locks`, because a read takes the kernel some time
_FIRST_VERSION = (0, 169)  # the first version of Codex with locks
_SETTLED = 1.0  # a new session takes its lock late: without a lock, it counts as ended after so many silent seconds


class CodexReader(FilesReader):
    """Reads Codex's store. `home` is `$CODEX_HOME`, or `~/.codex`. Archived sessions are read too. Compressed files
    are not read. A `Session` holds the rollouts of a session that a human began, and the rollouts of all its agents."""

    name = NAME
    files = r"(?:.*/)?(?P<own>rollout-[^/]*\.jsonl)"
    directories = r"[^/]+(?:/[^/]+){0,2}"
    projects_in = "sessions"
    all_belong = True
    is_shared = True

    _looked_again = False  # whether the locks were listed again for the current read

    def __init__(self, workspace: Path, home: Path):
        super().__init__(workspace, home)
        self._locks = WriterLocks(home)
        # By file name, because archiving moves the file: its ctime, and its header or a text with the fault.
        self._known: dict[str, tuple[int, Header | str]] = {}
        self._headers: dict[str, Header] = {}  # by file name
        self._here: set[str] = set()  # the threads that began in the workspace
        self._parents: dict[str, str | None] = {}  # the parent of each thread

    def make_fold(self, agent: str, path: str) -> Rollout:
        return Rollout(path, self._headers[agent], self.keep_message, self.places)

    def entries_of(self, run: Run) -> EntriesIn:  # noqa: ARG002
        return OwnEntries()

    def program_of(self, session: Session) -> Program:
        """Return the state of a session's program. If the locks were listed again, make the working runs again."""
        if self._looked_again:
            runs = session.runs.values()
            session.is_changed |= any(run.state is RunState.WORKING and not run.process_gone for run in runs)
        return super().program_of(session)

    def find_files(self) -> Iterable[FoundFile]:
        """Return the rollouts that began in the workspace, and the rollouts of all their agents in any directory."""
        self._looked_again = self._locks.refresh()
        present = {found.session: found for found in super().find_files()}
        for name, found in present.items():
            stamp, header = self._known.get(name, (0, ""))
            if not isinstance(header, Header) and found.status.st_ctime_ns != stamp:
                header = _read_header_in(found)
                self._known[name] = found.status.st_ctime_ns, header
                if isinstance(header, Header) and any(contains(place, header.directory) for place in self.places):
                    self._here.add(header.thread)
        known = {name: self._known[name][1] for name in present}
        self._headers = {name: one for name, one in known.items() if isinstance(one, Header)}
        # Old versions of Codex wrote files without a usable header. Report this fault only for the youngest file.
        youngest = max(known, default="")
        strange = {name for name, one in known.items() if one == _DAMAGED or (one == _STRANGE and name == youngest)}
        self.refused |= {present[name].path for name in strange}
        self._parents = {header.thread: header.parent for header in self._headers.values()}
        return [
            present[name]._replace(project=self.root, session=line[-1], agent=name)
            for name, header in self._headers.items()
            if not header.own_work and not self._here.isdisjoint(line := self._ancestry(header.thread))
        ]

    def find_projects(self) -> list[str]:
        return [self.root, os.fspath(self.home / "archived_sessions")]

    def _ancestry(self, thread: str) -> list[str]:
        """Return a thread and its known ancestors, from the thread upwards. A cycle of parents is cut."""
        line = [thread]
        while (parent := self._parents.get(line[-1]) or "") in self._parents and parent not in line:
            line.append(parent)
        return line

    def runs_of(self, session: Session) -> dict[str, Run]:
        parts: dict[str, list[Rollout]] = {}
        folds: dict[str, Rollout] = session.folds
        for fold in sorted(folds.values(), key=lambda one: (one.header.ordinal, one.path)):
            parts.setdefault(fold.header.thread, []).append(fold)
        asked: dict[str, tuple[Rollout, AgentCall]] = {}
        runs: dict[str, Run] = {}
        for part in (part for rollouts in parts.values() for part in rollouts):
            for call in part.calls.values():
                if call.child is not None:
                    asked.setdefault(call.child, (part, call))
                elif call.id in part.ends:
                    runs[f"{part.header.thread}:{call.id}"] = _stub_run(part, call, call.id)
        # Some agents have no rollout yet, or never get a rollout.
        runs |= {child: _stub_run(part, call, child) for child, (part, call) in asked.items() if child not in parts}
        for thread, rollouts in parts.items():
            runs[thread] = self._make_run(rollouts, asked[thread][1] if thread in asked else NO_CALL)
        return dict(sorted(runs.items(), key=lambda one: one[1].started_at))

    def reconcile_runs(self, session: Session, runs: dict[str, Run], program: Program) -> None:
        """Do nothing: `_make_run` has already set `process_gone`, from the lock of each thread."""

    def _make_run(self, parts: list[Rollout], asked: AgentCall) -> Run:
        header = parts[0].header
        last = next((part for part in reversed(parts) if part.state is not RunState.SUBMITTED), parts[-1])
        prompt = next((part.prompt for part in parts if part.prompt), None) or asked.prompt
        rounds = tuple(one for part in parts for one in part.all_rounds())
        run = run_of(
            last,
            asked,
            last,
            source=NAME,
            session_id=header.thread,
            parent=header.parent,
            place=last.path,
            seen_at=max(part.updated_at for part in parts),
            title=_last_part(header.task_name),
            name=header.agent,
            prompt=prompt,
        )
        may_run = run.state is RunState.WORKING or (run.state is RunState.ENDED and run.parent_session is None)
        return replace(
            run,
            started_at=header.began_at,
            rounds=rounds if len(rounds) > 1 else (),
            process_gone=self._locks.is_gone(header, run.updated_at) if may_run else None,
        )


class WriterLocks:
    """Tells whether Codex (0.169 and later) still runs a thread. Codex locks `thread-writer-locks/<thread>.lock` by
    flock while it runs the thread, and removes the file at a normal end. A killed Codex leaves the file unlocked."""

    looked_at = 0.0
    _held: frozenset[int] | None = None  # the inodes of all locked files; None if the system does not list locks

    def __init__(self, home: Path):
        self._directory = home / "thread-writer-locks"

    def refresh(self) -> bool:
        """List the locked files if the last list is older than `_SECONDS`. Return True if a new list was made."""
        if 0 <= time.time() - self.looked_at < _SECONDS:
            return False
        self.looked_at = time.time()
        try:
            # Linux lists all locks without touching the files.
            lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            self._held = None
            return True
        words = (word for line in lines if "FLOCK" in line for word in line.split() if word.count(":") == 2)
        self._held = frozenset(int(inode) for word in words if (inode := word.rpartition(":")[2]).isdecimal())
        return True

    def is_gone(self, header: Header, updated_at: float) -> bool | None:
        """Tell whether the program of a thread has ended. None if unknown. `updated_at` is the last sign of life."""
        if header.version < _FIRST_VERSION or self._held is None:
            return None
        try:
            # Compare only the inode, because some file systems report another device for a lock.
            if (self._directory / f"{header.thread}.lock").stat(follow_symlinks=False).st_ino in self._held:
                return False
        except FileNotFoundError:
            pass
        except (OSError, ValueError):
            return None
        is_seen = sees_all_processes() and self._directory.is_dir() and is_on_local_disk(self._directory)
        return True if is_seen and self.looked_at - updated_at > _SETTLED else None


def _stub_run(parent: Rollout, asked: AgentCall, thread: str) -> Run:
    """Return the run of an agent without a rollout, or of a call that started no agent."""
    return run_of(
        NO_ACCOUNT,
        asked,
        parent.ends.get(asked.id, NO_ACCOUNT),
        source=NAME,
        session_id=thread,
        parent=parent.header.thread,
        place=parent.path,
        title=_last_part(asked.title),
    )


def _last_part(task_name: str | None) -> str | None:
    """Return the last part of a task's name. The parts before it name the agent's ancestors."""
    return (task_name or "").rpartition("/")[2] or None


def _read_header_in(found: FoundFile) -> Header | str:
    try:
        tail = Tail(Path(found.path))
        first = next(iter(tail.read(1).lines), None)
    except OSError:
        return _DAMAGED
    if first is None or first.record is None:
        return _DAMAGED if first or tail.behind else ""
    header = read_header(first.record)
    return header if header and (header.directory or header.parent) else _STRANGE
