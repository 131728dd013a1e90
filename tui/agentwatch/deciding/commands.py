"""The arguments of the commands about decisions. What a command needs is imported when it runs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.arguments import add_workspace, parser, workspace_at
from agentwatch.config import Settings
from agentwatch.config import load as load_settings
from agentwatch.deciding import codes
from agentwatch.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from agentwatch.deciding.loading import Load

WAIT_SECONDS: Final = 90.0
"""Shells of agents end a command, or move it away, after two minutes."""

_LARGEST_HANDOFF: Final = 1024 * 1024
_DECISION_ID: Final = re.compile(r"[0-9a-f]{32}\Z")
_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z")


def _wait(arguments: Sequence[str], load: Load) -> int:
    words = parser("wait", "Wait for the operator's decision about a task, and print it as JSON.", codes.OF_WAIT)
    words.add_argument("task", metavar="TASK", help="the task id")
    add_workspace(words)
    seconds = f"how long to wait at most; 0 looks once (default: {WAIT_SECONDS:g})"
    words.add_argument("--timeout", type=float, default=WAIT_SECONDS, metavar="S", help=seconds)
    words.add_argument("--attempt", type=int, metavar="N", help="which attempt (default: the latest that is seen)")
    words.add_argument("--json", action="store_true", help="the JSON on one line")
    options = words.parse_intermixed_args(arguments)
    if not 0 <= options.timeout < math.inf:
        raise UsageError(f"a time-out of {options.timeout} s cannot be waited; give 0 or more")
    if options.attempt is not None and options.attempt < 1:
        raise UsageError(f"there is no attempt {options.attempt}; they count from 1")
    workspace = workspace_at(options.path)
    from agentwatch.deciding.waiting import wait  # noqa: PLC0415

    indent = None if options.json else 2
    return wait(
        workspace, _settings_in_sight(), load, options.task, options.attempt, timeout=options.timeout, indent=indent
    )


def _settings_in_sight() -> Settings:
    try:
        return load_settings()
    except ConfigError:
        # A sandbox may hide them, and nothing in them decides what an agent is told.
        return Settings()


def _claim(arguments: Sequence[str], _load: Load) -> int:
    said = "Claim a decision before you carry it out: exactly one of all who ask gets it."
    words = parser("claim", said, codes.OF_CLAIM)
    words.add_argument("decision", metavar="DECISION", help="its decision_id, 32 hex digits")
    add_workspace(words)
    words.add_argument("--by", metavar="NAME", help="who you are, for the others (default: user and process)")
    options = words.parse_intermixed_args(arguments)
    if _DECISION_ID.match(options.decision) is None:
        raise UsageError("a decision id has 32 hex digits; `agentwatch wait` prints it as decision_id")
    from agentwatch.deciding.waiting import claim  # noqa: PLC0415

    return claim(workspace_at(options.path), _settings_in_sight(), options.decision, options.by)


def _decide(arguments: Sequence[str], load: Load) -> int:
    words = parser("decide", "Decide about the latest attempt of a task, after one more question.", codes.OF_DECIDE)
    words.add_argument("task", metavar="TASK", help="the task id")
    add_workspace(words)
    ways = words.add_mutually_exclusive_group(required=True)
    ways.add_argument("--retry", action="store_true", help="one more attempt, with an amended handoff")
    ways.add_argument("--escalate", metavar="MODE", help="hand it to another mode; `fitter` restores a line")
    ways.add_argument("--abort", action="store_true", help="end it, with a final error report")
    ways.add_argument("--respond", action="append", metavar="TEXT", help="answer its blocker; again for the next one")
    ways.add_argument("--accept", action="store_true", help="take its return as it is; needs --note")
    kinds = "changed_inputs", "reduced_scope", "corrected_constraints"
    words.add_argument("--mitigation", choices=kinds, help="what is materially different in this retry")
    words.add_argument("--note", default="", metavar="TEXT", help="what you want to say to it; also into the handoff")
    words.add_argument("--handoff", metavar="FILE", help="your own handoff for the next attempt")
    looked = "of the return that you looked at, or `none`; refused if it differs"
    words.add_argument("--return-sha256", metavar="HEX", help=looked)
    words.add_argument("--attempt", type=int, metavar="N", help="the one that you looked at; refused if it is another")
    words.add_argument("--yes", action="store_true", help="do not ask")
    options = words.parse_intermixed_args(arguments)
    if options.return_sha256 not in (None, "none") and _SHA256.match(options.return_sha256) is None:
        raise UsageError("--return-sha256 takes all 64 hex digits; `agentwatch tree --json` has them")
    workspace = workspace_at(options.path)
    from agentwatch.deciding.decide import decide  # noqa: PLC0415
    from agentwatch.deciding.proposal import Wish  # noqa: PLC0415
    from agentwatch.decisions.record import Mitigation  # noqa: PLC0415
    from agentwatch.delegation.decision import Action  # noqa: PLC0415

    given = {
        Action.RETRY: options.retry,
        Action.ESCALATE: options.escalate is not None,
        Action.ABORT: options.abort,
        Action.RESPOND: options.respond is not None,
        Action.ACCEPT: options.accept,
    }
    wish = Wish(
        next(action for action, is_given in given.items() if is_given),
        options.escalate,
        tuple(options.respond or ()),
        Mitigation(options.mitigation) if options.mitigation else None,
        options.note,
        _handoff(options.handoff) if options.handoff is not None else None,
    )
    settings = load_settings()
    seen, yes = (options.attempt, options.return_sha256), options.yes
    return decide(workspace, options.task, wish, settings=settings, load=load, seen=seen, yes=yes)


def _pending(arguments: Sequence[str], load: Load) -> int:
    said = "Print what needs you, with the commands that answer it, and the decisions on their way."
    words = parser("pending", said, codes.OF_PENDING)
    add_workspace(words)
    words.add_argument("--json", action="store_true", help="print JSON (schema_version 1)")
    options = words.parse_intermixed_args(arguments)
    workspace = workspace_at(options.path)
    from agentwatch.deciding.pending import print_pending  # noqa: PLC0415
    from agentwatch.decisions.desk import Desk  # noqa: PLC0415

    desk = Desk(workspace, read_only=True)
    return print_pending(load(workspace, load_settings(), desk=desk), desk, as_json=options.json)


def _verify(arguments: Sequence[str], load: Load) -> int:
    said = "Verify a decision file; without one, the whole ledger and what lies in the workspace."
    words = parser("verify", said, codes.OF_CHECKS)
    words.add_argument("file", nargs="?", metavar="FILE", help="a decision file; a directory is taken for PATH")
    add_workspace(words)
    aside = "move what is wrong in the ledger to aside/, when you have looked at it and have no backup"
    words.add_argument("--set-aside", action="store_true", help=aside)
    options = words.parse_intermixed_args(arguments)
    file = options.file
    if file is not None and os.path.isdir(file):
        file, options.path = None, file
    workspace = workspace_at(options.path)
    from agentwatch.deciding.verifying import set_aside, verify_all, verify_file  # noqa: PLC0415
    from agentwatch.decisions.desk import Desk  # noqa: PLC0415

    desk = Desk(workspace, read_only=True)
    if options.set_aside:
        if file is not None:
            raise UsageError("--set-aside is about the whole ledger; give no FILE")
        return set_aside(desk)
    if file is None:
        return verify_all(workspace, desk)
    return verify_file(file, load(workspace, load_settings(), inspects=False).tree, desk)


def _keys(arguments: Sequence[str], _load: Load) -> int:
    words = parser("keys", "Show the key that signs your decisions, or change it.", codes.OF_KEYS)
    what = "show (default); create the first one; rotate: replace it; passphrase: set, change or remove it"
    ways = "show", "create", "rotate", "passphrase"
    words.add_argument("what", nargs="?", default="show", choices=ways, metavar="WHAT", help=what)
    kept = "have the system's keyring hold the passphrase; decisions ask it first, then you"
    words.add_argument("--keyring", action="store_true", help=f"with passphrase: {kept}")
    options = words.parse_intermixed_args(arguments)
    if options.keyring and options.what != "passphrase":
        raise UsageError("--keyring is about the passphrase: `agentwatch keys passphrase --keyring`")
    from agentwatch.deciding import keyring  # noqa: PLC0415
    from agentwatch.decisions.keys import Keys  # noqa: PLC0415

    if options.what == "passphrase":
        return keyring.passphrase(Keys(), in_keyring=options.keyring)
    return {"create": keyring.create, "rotate": keyring.rotate}.get(options.what, keyring.show)(Keys())


def _handoff(path: str) -> tuple[str, str]:
    """The text of the operator's own file, and its name."""
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


COMMANDS: Final[Mapping[str, Callable[[Sequence[str], Load], int]]] = {
    "claim": _claim,
    "decide": _decide,
    "keys": _keys,
    "pending": _pending,
    "verify": _verify,
    "wait": _wait,
}
