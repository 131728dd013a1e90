"""The reader of Gemini CLI 0.61. Each session and each agent has its own file of JSON lines, the chat.

A line is a message `{id, timestamp, type, content, toolCalls?}`, or a change to the whole chat (`$set`). When the calls
of a message have ended, the message is written again with the same id. `$rewindTo` deletes messages, and is ignored."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from agentwatch.delegation.events import Run, RunState
from agentwatch.sources.sessions.entries import CommandEnd, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    Record,
    as_object,
    first_line,
    list_at,
    nested,
    objects,
    part_texts,
    read_small_file,
    string,
    sum_of,
    text,
    time_at,
)
from agentwatch.sources.sessions.processes import Program
from agentwatch.sources.sessions.runs import CUT_OFF, LEFT_BEHIND, OPEN, Account, AgentCall, AgentLink, Keep, RunStatus
from agentwatch.sources.sessions.store import AgentsReader, Session, contains

_COMMAND = re.compile(
    r"^Output: (?P<output>.*?)\n(?:Error: [^\n]*\n)?(?:Exit Code: (?P<code>-?\d{1,9})\n)?(?P<open>(?:Signal"
    r"|Background PIDs): [^\n]*\n)*Process Group PGID: \d+\s*(?:</untrusted_context>\s*)?\Z",
    re.DOTALL | re.MULTILINE,
)
_STOPPED = "Operation cancelled"  # only in the result of a call that a human stopped with Esc
_ROOT_BYTES = 64 * 1024


class Chat(Account):
    """The account (state) of one agent, or of the session's own agent, from its chat."""

    def __init__(self, keep: Keep, places: Sequence[str] = (), *, is_agent: bool = False):
        super().__init__(keep, places, is_agent=is_agent)
        self._messages: dict[str, tuple[int, int]] = {}  # by message id: its number of tokens, and of calls

    def add(self, fields: Record) -> None:
        name, at = text(fields, "id"), time_at(fields)
        if name is not None and at is not None:
            self._add_message(name, fields, at)
        elif nested(fields, "$set").get("messages") == [] and self.is_agent and self.state is RunState.WORKING:
            # The agent failed or was stopped during its answer. Only the parent's chat tells which of the two.
            self.end(RunState.FAILED, self.updated_at, CUT_OFF)
        elif not fields.keys() & {"$set", "$rewindTo", "projectHash"}:
            self.not_understood += 1

    def _add_message(self, name: str, fields: Fields, at: float) -> None:
        words, calls = _message_text(fields), list_at(fields, "toolCalls")
        counted, seen = self._messages.get(name, (0, 0))
        for entry in entries({**fields, "toolCalls": calls[seen:]}):
            if entry.call or name not in self._messages:
                self.add_entry(entry)
        tokens = sum_of(nested(fields, "tokens"), "total", without="cached")
        self.tokens += tokens - counted
        self._messages[name] = tokens, len(calls)
        self.model = text(fields, "model") or self.model
        if fields.get("type") == "user" and words.strip():
            if not self.is_agent:
                self.begin_round(at)
            self.resume(at)
            self.prompted_at = at
            self.prompt = self.prompt or self.keep(words, at)
        elif fields.get("type") == "gemini":
            self.resume(at)
            if not calls and words.strip() and not self.is_agent:
                # Gemini CLI writes the calls of a message only after they ran. So the turn may still go on.
                self.end(RunState.ENDED, at)
                self.answer = self.keep_lazily(words, at)
            for call in map(as_object, calls):
                self._add_call(call, at)

    def _add_call(self, call: Fields, at: float) -> None:
        given, status, output = nested(call, "args"), call.get("status"), _result_of(call)
        ended_at = time_at(call) or at
        self.updated_at = max(self.updated_at, ended_at)
        if status == "cancelled" and _STOPPED in output and not self.is_agent:
            self.end(RunState.CANCELED, ended_at, first_line(output))
        if self.is_agent and (said := _report_in(call)) is not None:
            self.end(RunState.ENDED, ended_at)
            self.answer = self.keep_lazily(said, ended_at) if said.strip() else None
        elif call.get("name") == "invoke_agent" and not self.is_agent:
            display = nested(call, "resultDisplay")
            # The status is "success" even if the agent failed or used up its turns. `terminateReason` tells this.
            reason = text(display, "terminateReason") or "GOAL"
            if status != "success" or display.get("state") == "error":
                reason = first_line(output)
            ending = "completed" if reason == "GOAL" else "failed"
            name = string(call, "id")
            prompt = self.keep(string(given, "prompt"), at)
            kind, child = text(given, "agent_name"), text(call, "agentId")
            self.calls[name] = AgentCall(name, at, prompt=prompt, agent_type=kind, child=child)
            self.record_end(name, "cancelled" if status == "cancelled" else ending, reason, None, ended_at)


def entries(fields: Fields) -> Iterator[Entry]:
    """Yield the entries of a line, in order."""
    at = time_at(fields) or 0.0
    words = _message_text(fields)
    match fields.get("type"):
        case "user" if words:
            yield Entry(at, EntryKind.PROMPT, words)
        case "gemini":
            for thought in objects(fields, "thoughts"):
                yield Entry(at, EntryKind.THOUGHT, string(thought, "description"))
            if words:
                yield Entry(at, EntryKind.WORDS, words)
            for call in objects(fields, "toolCalls"):
                name, ended_at, output = string(call, "id"), time_at(call) or at, _result_of(call)
                if (said := _report_in(call)) is not None:
                    yield Entry(ended_at, EntryKind.WORDS, said)
                    continue
                yield Entry(at, EntryKind.CALL, "", name, string(call, "name"), nested(call, "args"))
                refused = call.get("status") == "cancelled"
                ended = None if refused else _command_end(output)
                # The program calls a command with any exit code a success.
                failed = refused or call.get("status") == "error" or bool(ended and ended.exit_code)
                yield Entry(ended_at, EntryKind.RESULT, output, name, failed=failed, refused=refused, ended=ended)
        case "info" | "warning" | "error" if words:
            yield Entry(at, EntryKind.NOTE, words, failed=fields.get("type") == "error")


def _message_text(fields: Fields) -> str:
    return text(fields, "content") or "".join(part_texts(fields, "content"))


def _result_of(call: Fields) -> str:
    responses = (nested(as_object(one), "functionResponse", "response") for one in list_at(call, "result"))
    return "\n".join(text(one, "error") or string(one, "output") for one in responses)


def _command_end(told: str) -> CommandEnd | None:
    match = _COMMAND.search(told)
    if match is None:
        return None
    # An exit code of 0 is not written.
    return CommandEnd(int(match["code"]) if match["code"] else None if match["open"] else 0, match["output"])


def _report_in(call: Fields) -> str | None:
    """If a call hands back the agent's result, return the result (text or JSON). Return None for any other call."""
    if call.get("name") != "complete_task" or call.get("status") != "success":
        return None
    given = nested(call, "args")
    result = given.get("result", next(iter(given.values()), None))
    if isinstance(result, dict) and len(result) == 1:
        result = next(iter(result.values()))
    with suppress(RecursionError):
        return result if isinstance(result, str) else json.dumps(result, indent=2, ensure_ascii=False)
    return ""


def read_project_root(project: str) -> str:
    """Return the real path of a project's working directory. Raise OSError if its file is unreadable or has no path."""
    named = read_small_file(f"{project}/.project_root", _ROOT_BYTES).decode("utf-8", "replace").strip()
    if not named.startswith("/") or "\0" in named:
        raise OSError(f"{project} names no path")
    return os.path.realpath(named)


class GeminiReader(AgentsReader):
    """Reads Gemini CLI's store. `home` is the directory `.gemini` in `$GEMINI_CLI_HOME`, or in the user's home."""

    name = "gemini"
    entries = staticmethod(entries)
    fold = Chat
    files = r"chats/(?:session-[^/]+|(?P<session>[^/]+)/(?P<agent>[^/]+))\.jsonl"
    directories = r"chats(?:/[^/]+)?"
    projects_in = "tmp"
    all_belong = True

    def find_projects(self) -> list[str]:
        found = []
        for project in (one.path for one, _ in self.listing(self.root) if one.is_dir(follow_symlinks=False)):
            self.refused.discard(project)
            try:
                found += [project] if contains(self.workspace, read_project_root(project)) else []
            except OSError as error:
                self.refused |= set() if isinstance(error, FileNotFoundError) else {project}
        return found

    def record_id(self, fields: Fields) -> str | None:
        """Return an id for a line. A message that is written again with more calls gets another id."""
        return f"{text(fields, 'id')}/{len(list_at(fields, 'toolCalls'))}"

    def run_key(self, session: Session, agent: str, link: AgentLink) -> str:
        """Return the key of a run: the agent's id, because the call that started the agent is written too late."""
        return f"{session.id}/{agent}" if agent == link.claim else agent

    def status_of(self, account: Account, link: AgentLink) -> RunStatus | Account:
        """Return the status from the agent's chat if the chat shows an end. Otherwise use the reports to the parent."""
        if account.state is not RunState.ENDED and link.reports:
            return link.reports[-1]
        if account.state is RunState.WORKING and link.asker.prompted_at > account.prompted_at:
            return RunStatus(RunState.FAILED, LEFT_BEHIND, None, account.updated_at)
        return account

    def reconcile_runs(self, session: Session, runs: dict[str, Run], program: Program) -> None:
        """Set a session to working while its agents work, because its chat looks as if the session had ended."""
        own = runs.get(session.id)
        if own and own.state is RunState.ENDED and any(one.state in OPEN for one in runs.values()):
            runs[session.id] = replace(own, state=RunState.WORKING, reason="", said=None, ended_at=None)
        super().reconcile_runs(session, runs, program)
