"""The commands of decisions: the operator's, and what agents use."""

from __future__ import annotations

import argparse
import math
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import (
    PATH,
    PLACE,
    PLACES,
    SESSIONS,
    Command,
    argument,
    flag,
    load,
    one_of,
    scanned,
    seconds,
    selection_of,
    target_of,
    targets_of,
)
from agentwatch.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from agentwatch.config import Settings
    from agentwatch.remote.address import Address

_DECIDE: Final = partial(Command, "decide")
_AGENTS: Final = partial(Command, "for agents")

_WAIT_SECONDS: Final = 90.0
"""Shells of agents end a command, or move it away, after two minutes."""

_LARGEST_HANDOFF: Final = 1024 * 1024
_HEX: Final = frozenset("0123456789abcdef")
_SDK: Final = ("mcp", "mcp_types")
_PROGRAMS: Final = ("claude-code", "opencode", "kilo", "codex", "generic")
_FOR_AGENTS: Final = partial(scanned, requests=False)
_TASK: Final = argument("task", "TASK", "the task id", offers="tasks")


@_DECIDE(
    "pending [PATH ...]", "print what needs you, and the command that answers it", PLACES,
    flag("--past", "print what is history instead: what was silent for long when you first watched the workspace"),
    flag("--acknowledged", "print what was put aside instead, with `ack` or on the screen"),
    flag("--json", "print JSON (schema_version 1)"), *SESSIONS,
    codes="exit codes: 0 printed, 1 printed, and something could not be read, 2 wrong usage",
)  # fmt: skip
def _pending(options: argparse.Namespace) -> int:
    """Print what needs you, with the commands that answer it, and the decisions on their way."""
    workspaces, addresses = targets_of(options.paths, load())
    from agentwatch.commands.pending import print_pending
    from agentwatch.commands.several import print_each
    from agentwatch.composition import connected, shown_worktrees
    from agentwatch.decisions.desk import Desk
    from agentwatch.workspaces import Places

    if options.past and options.acknowledged:
        raise UsageError("--past and --acknowledged are two lists; ask for one of them")

    def print_one(workspace: Path, say_document: Callable[[Mapping[str, Any]], None]) -> int:
        if workspace in far.places:
            monitor = far.scanned(workspace, load(), selection_of(options, addresses))
        else:
            monitor = scanned(workspace, load(), selection_of(options), desk=Desk(workspace, read_only=True))
        wishes = {"as_json": options.json, "past": options.past, "acknowledged": options.acknowledged}
        return print_pending(monitor, say_document=say_document, **wishes)

    def find() -> Places:
        # What was committed is in every worktree: its history would be told once for each.
        is_one = workspaces and not options.past
        return shown_worktrees(workspaces[0], load(), selection_of(options)) if is_one else Places(())

    with connected(addresses) as far:
        return print_each([*workspaces, *far.places], print_one, as_json=options.json, names=far.names, find=find)


@_DECIDE(
    "decide TASK", "retry, escalate, abort, respond or accept", _TASK, PLACE,
    *one_of(flag("--retry", "one more attempt, with an amended handoff"),
            argument("--escalate", "MODE", "hand it to another mode; `fitter` restores a line", offers="modes"),
            flag("--abort", "end it, with a final error report"),
            argument("--respond", "TEXT", "answer its blocker; again for the next one", action="append"),
            flag("--accept", "take its return as it is; needs --note"),
            flag("--withdraw", "take back what waits for a host and was not sent yet"), required=True),
    argument("--mitigation", "", "what is materially different in this retry",
             choices=("changed_inputs", "reduced_scope", "corrected_constraints")),
    argument("--note", "TEXT", "what you want to say to it; also into the handoff", default=""),
    argument("--handoff", "FILE", "your own handoff for the next attempt"),
    argument("--return-sha256", "HEX", "of the return that you looked at, or `none`; refused if it differs"),
    argument("--attempt", "N", "the one that you looked at; refused if it is another", type=int),
    flag("--yes", "do not ask"),
    codes="exit codes: 0 recorded, 1 you said no, or the retry policy does not allow it, 6 decided before, and"
    " differently, 7"
    " the return is not the one you looked at, 2 wrong usage, or the key or the disk refused",
)  # fmt: skip
def _decide(options: argparse.Namespace) -> int:
    """Decide about the latest attempt of a task, after one more question."""
    if options.return_sha256 not in (None, "none") and not _is_hex(options.return_sha256, 64):
        raise UsageError("--return-sha256 takes all 64 hex digits; `agentwatch tree --json` has them")
    settings = load()
    target = target_of(options.path, settings)
    if options.withdraw:
        return _withdraw(options.task, target, settings)
    from agentwatch.commands.decide import decide, passphrase
    from agentwatch.commands.decide_wish import Wish
    from agentwatch.composition import connected, desk_of
    from agentwatch.decisions.record import Mitigation
    from agentwatch.delegation.decision import OF_ATTEMPTS

    action = next(one for one in OF_ATTEMPTS if getattr(options, one) not in (None, False))
    mitigation = Mitigation(options.mitigation) if options.mitigation else None
    handoff = _handoff(options.handoff) if options.handoff is not None else None
    wish = Wish(
        action=action, mode=options.escalate, answers=tuple(options.respond or ()), mitigation=mitigation,
        note=options.note, handoff=handoff,
    )  # fmt: skip
    wishes: dict[str, Any] = {"seen": (options.attempt, options.return_sha256), "yes": options.yes}
    if isinstance(target, tuple):
        with connected([target]) as far:
            monitor = far.scanned(far.only(target), settings, passphrase=passphrase())
            return decide(lambda **_: monitor, options.task, wish, settings=settings, **wishes)
    desk = desk_of(target, settings, passphrase())
    return decide(partial(scanned, target, settings, desk=desk), options.task, wish, settings=settings, **wishes)


def _withdraw(task_id: str, target: Path | Address, settings: Settings) -> int:
    if not isinstance(target, tuple):
        raise UsageError("what is decided here is recorded at once: nothing waits that could be taken back")
    from agentwatch.commands.decide import withdraw
    from agentwatch.composition import connected

    with connected([target]) as far:
        return withdraw(far.desk(far.only(target), settings), task_id)


@_DECIDE(
    "answer REQUEST", "answer what a program asks: allow, deny, choose",
    argument("request", "REQUEST", "its id, or the first 8 digits of it", offers="requests"), PLACE,
    *one_of(flag("--allow", "allow it, once"),
            argument("--deny", "TEXT", "deny it, with words to the model where it takes any", nargs="?", const=""),
            argument("--option", "TEXT", "answer its question, with an option of it or your own words; again for the"
                     " next question; several choices a line each", action="append"), required=True),
    argument("--rule", "RULE", "with --allow: what else is allowed for the rest of its session, as the request has it"),
    flag("--yes", "do not ask"),
    codes="exit codes: 0 recorded, 1 you said no, or the request does not take this answer, 4 nobody waits for an"
    " answer any"
    " more, 6 answered before, and differently, 2 wrong usage, or the key or the disk refused",
)  # fmt: skip
def _answer(options: argparse.Namespace) -> int:
    """Answer a permission or a question of a program that waits for it, after one more question."""
    if options.rule is not None and not options.allow:
        raise UsageError("--rule belongs to --allow: it is what else is allowed")
    settings = load()
    target = target_of(options.path, settings)
    from agentwatch.commands.answer import Wish, answer
    from agentwatch.commands.decide import passphrase
    from agentwatch.composition import connected
    from agentwatch.delegation.decision import Action

    action = Action.ALLOW if options.allow else Action.ANSWER if options.option is not None else Action.DENY
    wish = Wish(action, options.deny or "", tuple(options.option or ()), options.rule)
    if isinstance(target, tuple):
        with connected([target]) as far:
            monitor = far.scanned(far.only(target), settings, passphrase=passphrase())
            return answer(monitor.workspace, options.request, wish, settings=settings, yes=options.yes, far=monitor)
    return answer(target, options.request, wish, settings=settings, yes=options.yes)


@_DECIDE(
    "ack [TASK]", "have a task ask no more until it changes; no decision",
    argument("task", "TASK", "the task id; what is below it is put aside, too", offers="tasks", nargs="?"), PATH,
    argument("--where", "QUERY", "all that match instead: 'is:needs-you since:1d'", default=""),
    flag("--undo", "take back what was put aside last, here or on the screen"),
    argument("--for", "TIME", "ask again after this time at the latest: 30m, 12h, 7d", type=seconds, default=None),
    flag("--yes", "do not ask"),
    codes="exit codes: 0 put aside, or taken back, 1 nothing was, 2 wrong usage, or nothing can be written",
)  # fmt: skip
def _ack(options: argparse.Namespace) -> int:
    """Acknowledge what a task asks: it asks no more until it changes. With --for, only snooze it. This approves
    nothing, and no agent is told."""
    task, wait = options.task, getattr(options, "for")
    if options.undo or options.where:
        if task is not None and not (options.path == "." and os.path.isdir(task)):
            raise UsageError("name a task, or say --where QUERY or --undo: one of the three")
        if task is not None:
            options.path, task = task, None
    if options.undo and (options.where or wait is not None):
        raise UsageError("--undo takes back what was put aside last; it goes with nothing else")
    workspace = workspace_at(options.path)
    from agentwatch.commands.ack import acknowledge, undo

    if options.undo:
        return undo(workspace, load())
    return acknowledge(workspace, task, options.where, settings=load(), load=scanned, seconds=wait, yes=options.yes)


@_AGENTS(
    "wait TASK", "wait for your decision, and print it as JSON", _TASK, PLACE,
    argument("--timeout", "S", f"how long to wait at most; 0 looks once (default: {_WAIT_SECONDS:g})",
             type=float, default=_WAIT_SECONDS),
    argument("--attempt", "N", "which attempt (default: the latest that is seen)", type=int),
    flag("--json", "the JSON on one line"),
    codes="exit codes: 0 decided, 3 pending: call again, 4 the decision has expired: the operator must decide again,"
    " 5 pending, and fake decisions were refused: call again, 8 nothing is asked of the operator: go on, 2 wrong usage",
)  # fmt: skip
def _wait(options: argparse.Namespace) -> int:
    """Wait for the operator's decision about a task, and print it as JSON."""
    if not 0 <= options.timeout < math.inf:
        raise UsageError(f"a time-out of {options.timeout} s cannot be waited; give 0 or more")
    if options.attempt is not None and options.attempt < 1:
        raise UsageError(f"there is no attempt {options.attempt}; they count from 1")
    settings = _settings_in_sight()
    target = target_of(options.path, settings)
    from agentwatch.commands.wait import wait, wait_for_host

    about: tuple[str, int | None] = options.task, options.attempt
    wishes: dict[str, Any] = {"timeout": options.timeout, "indent": None if options.json else 2}
    if isinstance(target, tuple):
        from agentwatch.composition import connected

        with connected([target]) as far:
            return wait_for_host(far.source(far.only(target)), target.written, *about, **wishes)
    return wait(target, settings, _FOR_AGENTS, *about, **wishes)


@_AGENTS(
    "claim DECISION", "claim it, so that only one carries it out",
    argument("decision", "DECISION", "its decision_id, 32 hex digits"), PATH,
    argument("--by", "NAME", "who you are, for the others (default: user and process)"),
    codes="exit codes: 0 it is yours to carry out, 6 somebody else has it, 3 there is no such decision (yet), 4 it has"
    " expired, 5 a fake was refused, 2 wrong usage, or nothing can be written",
)  # fmt: skip
def _claim(options: argparse.Namespace) -> int:
    """Claim a decision before you carry it out: exactly one of all who ask gets it."""
    if not _is_hex(options.decision, 32):
        raise UsageError("a decision id has 32 hex digits; `agentwatch wait` prints it as decision_id")
    from agentwatch.commands.wait import claim

    return claim(workspace_at(options.path), _settings_in_sight(), options.decision, options.by)


@_AGENTS(
    "init [PATH]", "show or --write what makes an agent hand off, return and wait this way", PATH,
    argument("--agent", "NAME", f"{', '.join(_PROGRAMS)} (default: those that are recognised here)",
             choices=_PROGRAMS, also={"claude": "claude-code"}),
    flag("--write", "write them, each file with a backup beside it"),
    flag("--remove", "take out what was written; shown only, without --write"),
    codes="exit codes: 0 done or shown, 1 something is left to be added by hand, 2 wrong usage",
)  # fmt: skip
def _init(options: argparse.Namespace) -> int:
    """Show the lines that make an agent program hand off, return and wait the agentwatch way; --write writes them."""
    workspace = workspace_at(options.path)
    from agentwatch.agents.setup.command import run
    from agentwatch.composition import read_sources

    settings = load()
    sources = partial(read_sources, workspace, settings)
    return run(workspace, options.agent, settings, write=options.write, remove=options.remove, sources=sources)


@_AGENTS(
    "mcp [PATH]", "serve handoffs, returns and decisions to agents, over MCP", PATH,
    codes="exit codes: 0 the client has gone, 2 wrong usage, or the SDK is not installed", stays=True,
)  # fmt: skip
def _mcp(options: argparse.Namespace) -> int:
    """Serve handoffs, returns and the operator's decisions to agents: an MCP server over standard input and output."""
    workspace = workspace_at(options.path)
    from agentwatch.composition import Repeated

    settings = load()
    from agentwatch.shell import needing

    with needing("mcp", "the MCP server needs the MCP SDK, version 2", _SDK):
        from agentwatch.agents.server.server import serve
    return serve(workspace, settings, Repeated())


@_AGENTS(
    "hook", "answer a hook of Claude Code",
    argument("path", "PATH", "the workspace (default: $CLAUDE_PROJECT_DIR, else the payload's cwd)", nargs="?"),
    flag("--plugin", "hold one request of OpenCode or Kilo, for their plugin"),
    codes="exit codes: 0 answered, 1 not understood; never 2, which would block the agent", wrong=1,
)  # fmt: skip
def _hook(options: argparse.Namespace) -> int:
    """Answer one call of a hook of Claude Code: its payload on standard input, the answer on standard output."""
    if options.plugin:
        from agentwatch.agents.hook.opencode import run as hold

        return hold()
    from agentwatch.agents.hook.command import run

    return run(options.path, _FOR_AGENTS)


def _settings_in_sight() -> Settings:

    from agentwatch.config import Settings

    try:
        return load()
    except ConfigError:
        # A sandbox may hide them, and nothing in them decides what an agent is told.
        return Settings()


def _handoff(path: str) -> tuple[str, str]:
    """The text of the operator's own file, and its name."""
    from pathlib import Path

    file = Path(path)
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_HANDOFF + 1)
        if len(data) > _LARGEST_HANDOFF:
            raise UsageError(f"{path}: larger than {_LARGEST_HANDOFF:,} bytes, which no agent reads")
        return data.decode(), file.name
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give --handoff a file that can be read") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 ({error.reason}); save it as UTF-8") from error


def _is_hex(word: str, digits: int) -> bool:
    return len(word) == digits and _HEX.issuperset(word)
