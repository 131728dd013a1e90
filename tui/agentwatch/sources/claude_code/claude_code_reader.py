"""The reader of Claude Code: where its files are, and how runs are made of them.

The program records that it waits, but not which agent asks. If nobody knows, the session counts as asking."""

from dataclasses import replace
from pathlib import Path

from agentwatch.delegation.events import Run, RunState
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.transcript import QUESTIONS, Transcript, describe_use, entries
from agentwatch.sources.sessions.fields import Fields, first_line, number, string
from agentwatch.sources.sessions.processes import Processes, Wait
from agentwatch.sources.sessions.runs import OPEN, SESSION, UNREAD, Account, AgentLink, RunStatus
from agentwatch.sources.sessions.store import AgentsReader, Session

_SLACK = 2.0  # seconds from a call to the question about it; more if hooks or a classifier judge the call first
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
    # Older versions put agents' files among those of sessions. The two excluded kinds work for the program itself.
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
        """Return the status by the agent's own transcript, or else by reports to its parents."""
        reports = link.reports
        if account.state not in OPEN and account.reason != UNREAD:
            return account
        if account.state not in OPEN:
            # An unreadable answer may tell of a failure, so the agent does not count as ended.
            copies = [one for one in reports if one.said]
            return copies[-1]._replace(ended_at=account.ended_at) if copies else RunStatus(RunState.SUBMITTED, UNREAD)
        if not reports:
            return RunStatus(RunState.SUBMITTED if account.started_at is None else RunState.WORKING)
        last = account.last_text() if isinstance(account, Transcript) else None
        return reports[-1]._replace(said=last or reports[-1].said)

    def set_waiting(self, session: Session, runs: dict[str, Run], wait: Wait) -> None:
        """Note which agent waits for a human, or the session if nobody can tell. A call made long before the wait began
        counts as running, unless there is no other call."""
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
            # Calls of one message are asked about in order, but the first of them may be running already.
            what = f"{wait.what}{', it seems' if others else ''}: {describe_use(first)}"
            what = describe_use(first) if first.tool in QUESTIONS else what
        elif chosen:
            what = f"{wait.what}; which of its agents asks is not known"
        if key in runs:
            # A session waits for an answer to its agents' question even after its own turn.
            runs[key] = replace(
                runs[key], state=RunState.WORKING, reason="", said=None, ended_at=None, process_gone=False, waiting=what
            )


def read_wait(process: Fields) -> Wait | None:
    """Return the wait in `sessions/<pid>.json`, or None if the program waits for nothing."""
    what = string(process, "waitingFor")
    # Somebody at the terminal has opened a dialog, for which no agent waits.
    if process.get("status") != "waiting" or what == "dialog open":
        return None
    since = (number(process, "statusUpdatedAt") or 0.0) / 1000
    return Wait(_WAITS.get(what) or first_line(what, 100) or "an answer", since)
