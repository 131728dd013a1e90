"""Requests of programs, their runs and decisions, as sources would give them."""

from dataclasses import replace
from hashlib import sha256

from agentwatch.delegation.decision import Action, Option, Permit, Permitter, Query, Request, RequestKind, Stage
from agentwatch.delegation.events import Decided, Ran, Requested, Run
from tests.unit.delegation.events import ROOT
from tests.unit.delegation.events import decided as of_task


def digest(command: str) -> str:
    return sha256(command.encode()).hexdigest()


def request(number: int = 1, command: str = "npm test", **more: object) -> Request:
    """Return a permission for a call of Bash in session `s1`, asked 100 seconds after 1,000."""
    made = Request(
        request_id=f"{number:032x}",
        source="claude-code",
        session_id="s1",
        nonce=f"n{number}",
        kind=RequestKind.PERMISSION,
        tool="Bash",
        input=command,
        input_sha256=digest(command),
        shown=command,
        asked_at=1_100.0,
        actions=(Action.ALLOW, Action.DENY),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def question(number: int = 1, **more: object) -> Request:
    query = Query("Which store?", "Store", (Option("SQLite", "One file."), Option("Redis")))
    made = request(number, "", kind=RequestKind.QUESTION, tool="AskUserQuestion", queries=(query,))
    return replace(made, actions=(Action.ANSWER, Action.DENY), **more)  # type: ignore[arg-type]


def requested(one: Request, seq: int = 1) -> Requested:
    return Requested(seq, one.asked_at, one.request_id, one)


def session(*permits: Permit, **more: object) -> Run:
    known = {"source": "claude-code", "session_id": "s1", "started_at": 1_000.0, "updated_at": 1_050.0}
    return replace(ROOT, title="export the invoices", permits=permits, **(known | more))  # type: ignore[arg-type]


def ran(run: Run, seq: int = 2) -> Ran:
    return Ran(seq, run.updated_at, f"claude-code:{run.session_id}", run)


def permit(allowed: bool | None = True, by: Permitter = Permitter.HOOK, at: float = 1_120.0, **more: object) -> Permit:
    return Permit("toolu_1", "Bash", digest("npm test"), allowed, by, at)._replace(**more)


def decided(
    one: Request, action: Action = Action.ALLOW, stage: Stage = Stage.RECORDED, at: float = 1_110.0, **more: object
) -> Decided:
    stages = [*Stage].index(stage) + 1
    return of_task("s1", action, at, stages, seq=3, name=one.request_id, operator="dev@laptop", **more)
