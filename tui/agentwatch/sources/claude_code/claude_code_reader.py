"""The reader of Claude Code.

The program records that it waits for a human, but not which agent waits. If that is unclear, the session is chosen."""

from dataclasses import replace
from pathlib import Path

from agentwatch.delegation.events import Run, RunState
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.transcript import QUESTIONS, Transcript, describe_use, entries
from agentwatch.sources.sessions.fields import Fields, first_line, number, string
from agentwatch.sources.sessions.processes import Processes, Wait
from agentwatch.sources.sessions.runs import OPEN, SESSION, UNREAD, Account, AgentLink, RunStatus
from agentwatch.sources.sessions.store import AgentsReader, Session

_SLACK = 2.0  # the usual time from a call to the question about it, in seconds; hooks may delay the question
_WAITS = {
    "permission prompt": "a permission",
    "worker request": "a permission",
    "sandbox request": "a permission to use the network",
    "goal proposal": "an approval of its goal",
    "input needed": "an answer",
}


class ClaudeCodeReader(AgentsReader):
    """Reads Claude Code's store. `home` is `$CLAUDE_CONFIG_DIR`, or `~/.claude`."""

    name = NAME
    entries = staticmethod(entries)
    fold = Transcript
    # Older versions put agents' files beside sessions' files. Two kinds of agents do Claude Code's own work: skip them.
    files = (
        r"(?:(?P<session>[^/]+)/(?:subagents/(?:.+/)?)?)?"
        r"agent-(?!acompact-|aprompt_suggestion-)(?P<agent>.+)\.(?:jsonl|meta\.json)"
        r"|(?!agent-)(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl"
    )
    directories = r"[^/]+(?:/subagents(?:/[^/]+){0,4})?"

    def __init__(self, workspace: Path, home: Path):
        super().__init__(workspace, home)
        self.processes = Processes(home / "sessions", read_wait)

    def status_of(self, account: Account, link: AgentLink) -> RunStatus | Account:
        """Return the status from the agent's transcript. If that shows no end, use the reports to the parent."""
        reports = link.reports
        if account.state not in OPEN and account.reason != UNREAD:
            return account
        if account.state not in OPEN:
            # The answer is unreadable, and may report a failure. If no report has a copy, do not count it as an end.
            copies = [one for one in reports if one.said]
            return copies[-1]._replace(ended_at=account.ended_at) if copies else RunStatus(RunState.SUBMITTED, UNREAD)
        if not reports:
            return RunStatus(RunState.SUBMITTED if account.started_at is None else RunState.WORKING)
        last = account.last_text() if isinstance(account, Transcript) else None
        return reports[-1]._replace(said=last or reports[-1].said)

    def set_waiting(self, session: Session, runs: dict[str, Run], wait: Wait) -> None:
        """Set `waiting` in the run of the agent that waits for a human. If several agents may wait, use the session's
        run. A call from long before the wait is probably running. Choose it only if there is no later call."""
        folds: dict[str, Transcript] = session.folds
        key, what = session.id, wait.what
        working = {key: run for key, run in runs.items() if run.state is RunState.WORKING and not run.process_gone}
        agents = {key: run.session_id if run.parent_session is not None else SESSION for key, run in working.items()}
        uses = {
            key: folds[agent].open_uses for key, agent in agents.items() if agent in folds and folds[agent].open_uses
        }
        late = {one: [use for use in own if use.at >= wait.since - _SLACK] for one, own in uses.items()}
        chosen = {one: own for one, own in late.items() if own} or uses
        if len(chosen) == 1:
            ((key, (first, *others)),) = chosen.items()
            # Claude Code asks about the calls of a message in order, but it may already ask about the second call.
            what = f"{wait.what}{', it seems' if others else ''}: {describe_use(first)}"
            what = describe_use(first) if first.tool in QUESTIONS else what
        elif chosen:
            what = f"{wait.what}; which of its agents asks is not known"
        if key in runs:
            # If an agent needs an answer, its session is working, even if the session's own turn has ended.
            runs[key] = replace(
                runs[key], state=RunState.WORKING, reason="", said=None, ended_at=None, process_gone=False, waiting=what
            )


def read_wait(process: Fields) -> Wait | None:
    """Return the wait in the fields of `sessions/<pid>.json`, or None if the program does not wait for a human."""
    what = string(process, "waitingFor")
    # A human has opened a dialog at the terminal. No agent waits for this dialog.
    if process.get("status") != "waiting" or what == "dialog open":
        return None
    since = (number(process, "statusUpdatedAt") or 0.0) / 1000
    return Wait(_WAITS.get(what) or first_line(what, 100) or "an answer", since)
