"""Check that agentwatch can work here."""

from __future__ import annotations

import os
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.agents.setup import checks
from agentwatch.arguments import workspace_at
from agentwatch.cli.command import CREDS, PATH, argument
from agentwatch.composition import shelf_of
from agentwatch.config import Settings, load, where
from agentwatch.decisions.errors import DecisionError, KeyMissingError, reason, remedy
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.service import LocalService
from agentwatch.errors import UsageError
from agentwatch.evidence.git import open_git
from agentwatch.history.store import History
from agentwatch.shell import FLEET, find_program, needing
from agentwatch.sources.worktrees import NoRepositoryError
from agentwatch.state import leads_through, state_directory
from agentwatch.text import Check, bad, good, note, say_checks
from agentwatch.view.query import view_faults
from agentwatch.view.words import plural

# Whatever a check makes it removes again.

ARGUMENTS: Final = (
    PATH,
    argument("--nats", "URL", "check this NATS server instead"),
    CREDS,
)
EXIT_CODES: Final = "exit codes: 0 all is well, 1 something is not, 2 wrong usage"


class Setup(NamedTuple):
    """All that is checked."""

    workspace: Path
    settings: Settings
    desk: LocalService

    @property
    def state(self) -> Path:
        return state_directory(self.workspace)


def run(options: Namespace) -> int:
    """Print how agentwatch stands on this machine, or a fleet on a server. Returns 1 if something must be put right."""
    if options.nats is not None:
        with needing(*FLEET):
            from agentwatch.cli.doctor_nats import examine_server

            return examine_server(options.nats, options.creds, Keys())
    if options.creds:
        raise UsageError("--creds belongs to --nats")
    workspace, settings = workspace_at(options.path), load()
    setup = Setup(workspace, settings, LocalService(workspace, read_only=settings.read_only))
    return say_checks(one for about, check in _CHECKS for one in check(about, setup))


def _check_state(about: str, setup: Setup) -> Iterator[Check]:
    state = setup.state
    there = next(one for one in (state, *state.parents) if os.path.exists(one))
    try:
        _write_and_link(there)
    except OSError as error:
        yield bad(about, f"{there} cannot be used: {reason(error)}; {remedy(error)}, else nothing can be decided")
        return
    if there != state:
        yield good(about, f"{state}: not there yet; it can be made in {there}")
    elif state.stat().st_mode & 0o077:
        yield bad(about, f"others can look into it: chmod 700 {state}")
    else:
        yield good(about, f"{state}: writable")


def _write_and_link(directory: Path) -> None:
    """Write, link and remove as the ledger does. Raises OSError."""
    first, second = (directory / f".agentwatch-doctor-{secrets.token_hex(8)}" for _ in range(2))
    try:
        with first.open("x") as file:
            os.fsync(file)
        os.link(first, second)
    finally:
        for one in (first, second):
            with suppress(OSError):
                one.unlink()


def _check_outside(about: str, setup: Setup) -> Iterator[Check]:
    """That nothing of ours lies where agents write."""
    for variable, place in (("XDG_STATE_HOME", setup.state), ("XDG_CONFIG_HOME", setup.desk.keys.directory)):
        if leads_through(place, setup.workspace):
            why = "where agents write, so nothing that programs ask can be answered here"
            yield bad(about, f"{place} lies in the workspace, {why}: set {variable} to another place")


def _check_key(about: str, setup: Setup) -> Iterator[Check]:
    keys = setup.desk.keys
    try:
        public, locked = keys.show(), keys.is_encrypted()
        why_not = setup.desk.why_locked() if locked and keys.in_keyring else None
    except KeyMissingError as error:
        yield note(about, str(error))
    except DecisionError as error:
        yield bad(about, str(error))
    else:
        private = f"{public.keyid[:16]}…, which only your user may read"
        cure = "an agent that can read your files could decide in your name; set one with `agentwatch keys passphrase`"
        if why_not is not None:
            yield note(about, f"{private}; {why_not}: each decision asks for it")
        elif locked:
            yield good(about, f"{private}, with a passphrase{' in the keyring' if keys.in_keyring else ''}")
        else:
            yield note(about, f"{private}, without a passphrase; {cure}")


def _check_workspace(about: str, setup: Setup) -> Iterator[Check]:
    workspace = setup.workspace
    if setup.settings.read_only:
        yield note(about, f"{workspace}: read_only is set, so decisions are not delivered there")
        return
    probe = workspace / f".agentwatch-doctor-{secrets.token_hex(8)}"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        why = f"{workspace}: {reason(error)}; decisions wait in the ledger, and agents in a sandbox do not get them"
        yield bad(about, f"{why}: {remedy(error)}")
    else:
        yield good(about, f"{workspace} can be written, so decisions are delivered there")


def _check_terminal(about: str, _setup: Setup) -> Iterator[Check]:
    if sys.stdout is None or not sys.stdout.isatty():
        yield note(about, "the output is no terminal, so it was not checked; the screen needs one")
        return
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        yield bad(about, f"its encoding is {sys.stdout.encoding}: set LANG to one that ends in UTF-8")
    if os.environ.get("COLORTERM") not in ("truecolor", "24bit"):
        yield note(about, "it does not say that it has all colours (COLORTERM=truecolor): the themes are less exact")
    if os.environ.get("TERM") in (None, "", "dumb"):
        yield bad(about, "TERM says that it can do nothing: use another terminal, or set TERM")


def _check_git(about: str, setup: Setup) -> Iterator[Check]:
    if find_program("git") is None:
        yield note(about, "not found: claims about changed files cannot be checked against it")
        return
    try:
        repository = open_git(os.path.realpath(setup.workspace))
    except NoRepositoryError as error:
        yield note(about, f"{error}: claims are checked against the disk alone")
    else:
        yield good(about, f"the repository {repository.top} is asked, without its configuration")


def _check_history(about: str, setup: Setup) -> Iterator[Check]:
    history, shelf = History(setup.state), shelf_of(setup.workspace)
    sound = f"{plural(len(history.recall().events), 'observation')}, sound"
    shelf.read_changes()
    wrong = [notice for notice in (history.notice, shelf.notice) if notice]
    yield from [bad(about, notice) for notice in wrong] or [good(about, sound)]


def _check_ledger(about: str, setup: Setup) -> Iterator[Check]:
    try:
        chain = setup.desk.read()
    except DecisionError as error:
        yield bad(about, str(error))
        return
    yield from (bad(about, problem.message) for problem in chain.problems)
    if not chain.problems:
        decisions = plural(len(chain.entries), "decision")
        yield good(about, f"{decisions}, sound" if chain.entries else "nothing is decided yet")


def _check_settings(about: str, setup: Setup) -> Iterator[Check]:
    """The saved views, and the operator's own keys, which only the screen knows."""
    settings = setup.settings
    yield from (bad(about, f"{where(f'views.{name}')}: {why}") for name, why in view_faults(settings.views).items())
    if settings.keys:
        from agentwatch.app.actions import with_keys

        (_, faults), count = with_keys(settings.keys), len(settings.keys)
        yield from (bad(about, fault) for fault in faults)
        if not faults:
            yield good(about, f"{count} command{' has' if count == 1 else 's have'} keys of your own")


_CHECKS: Final[tuple[tuple[str, Callable[[str, Setup], Iterable[Check]]], ...]] = (
    ("state directory", _check_state),
    ("place", _check_outside),
    ("signing key", _check_key),
    ("workspace", _check_workspace),
    ("terminal", _check_terminal),
    ("git", _check_git),
    ("history", _check_history),
    ("ledger", _check_ledger),
    ("settings", _check_settings),
    ("agents", lambda _about, setup: checks(setup.workspace, setup.settings)),
)
