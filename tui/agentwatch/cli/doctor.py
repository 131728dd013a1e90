"""The command that checks whether agentwatch can work on this machine."""

import os
import secrets
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from agentwatch.agents.setup import check_setup
from agentwatch.arguments import workspace_at
from agentwatch.cli.command import CREDS, PATH, argument, command
from agentwatch.cli.verify import check_ledger
from agentwatch.composition import build_acknowledgements
from agentwatch.config import Settings, load, locate_setting
from agentwatch.console import print_checks
from agentwatch.decisions.errors import DecisionError, KeyMissingError, reason, remedy
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.service import DecisionService
from agentwatch.disk import Directory
from agentwatch.history.store import History
from agentwatch.shell import FLEET, require_extra
from agentwatch.state import leads_through, state_directory
from agentwatch.text import Check, bad, good, note
from agentwatch.view.rows import view_faults
from agentwatch.view.words import plural


@command(
    PATH,
    argument("--nats", "URL", "check this NATS server instead, with the key of an operator"),
    CREDS,
    exit_codes="exit codes: 0 all is well, 1 something is not, 2 wrong usage",
)
def doctor(options: Namespace) -> int:
    """Check that agentwatch can work here."""
    if options.nats:
        return print_checks(_check_server(options.nats, options.creds))
    workspace, settings = workspace_at(options.path), load()
    desk = DecisionService(workspace, read_only=settings.read_only)
    return print_checks(
        [
            *_check_state_directory(state_directory(workspace)),
            *_check_places(workspace, desk),
            *_check_key(desk),
            _check_writable("workspace", workspace, "agents in a sandbox get no decisions")
            if not settings.read_only
            else note("workspace", "read_only is set, so decisions are not delivered there"),
            *_check_history(workspace),
            *_check_ledger(desk),
            *_check_settings(settings),
            *check_setup(workspace, settings),
        ]
    )


def _check_state_directory(state: Path) -> Iterator[Check]:
    existing = next(one for one in (state, *state.parents) if os.path.exists(one))
    yield _check_writable("state directory", existing, "nothing can be decided")
    if existing == state and state.stat().st_mode & 0o077:
        yield bad("state directory", f"others can look into it: chmod 700 {state}")


def _check_writable(title: str, directory: Path, consequence: str) -> Check:
    """Check that a file can be written and removed in the directory. `consequence` says what fails otherwise."""
    name = f".agentwatch-doctor-{secrets.token_hex(8)}"
    try:
        with Directory.open(directory) as place:
            place.publish(name, b"")
            place.remove(name)
    except OSError as error:
        return bad(title, f"{directory} cannot be used: {reason(error)}; {remedy(error)}, else {consequence}")
    return good(title, f"{directory} can be written")


def _check_places(workspace: Path, desk: DecisionService) -> Iterator[Check]:
    """Check that agentwatch's own directories lie outside the workspace, because agents write into the workspace."""
    for variable, place in (("XDG_STATE_HOME", desk.state), ("XDG_CONFIG_HOME", desk.keys.directory)):
        if leads_through(place, workspace):
            why = "where agents write, so nothing that programs ask can be answered here"
            yield bad("place", f"{place} lies in the workspace, {why}: set {variable} to another place")


def _check_key(desk: DecisionService) -> Iterator[Check]:
    try:
        private = f"{desk.keys.show().keyid[:16]}…, which only your user may read"
        if desk.keys.why_encrypted():
            yield good("signing key", f"{private}, with a passphrase")
        else:
            why = "an agent that can read your files could decide in your name"
            yield note("signing key", f"{private}, without a passphrase; {why}: `agentwatch keys passphrase`")
    except DecisionError as error:
        yield (note if isinstance(error, KeyMissingError) else bad)("signing key", str(error))


def _check_history(workspace: Path) -> Iterator[Check]:
    history, shelf = History(state_directory(workspace)), build_acknowledgements(workspace)
    summary = f"{plural(len(history.recall().events), 'observation')}, sound"
    shelf.read_changes()
    wrong = [notice for notice in (history.notice, shelf.notice) if notice]
    yield from [bad("history", notice) for notice in wrong] or [good("history", summary)]


def _check_ledger(desk: DecisionService) -> Iterator[Check]:
    try:
        yield from check_ledger(desk)
    except DecisionError as error:
        yield bad("ledger", str(error))


def _check_settings(settings: Settings) -> Iterator[Check]:
    """Check the saved views and the operator's key bindings."""
    wrong = [f"{locate_setting(f'views.{name}')}: {why}" for name, why in view_faults(settings.views).items()]
    if settings.keys:
        from agentwatch.app.actions import apply_user_keys

        wrong += apply_user_keys(settings.keys)[1]
    yield from (bad("settings", fault) for fault in wrong)


def _check_server(server: str, creds: str | None) -> Iterator[Check]:
    """Check a NATS server and the store that a fleet needs in it. Each fault comes with its remedy."""
    with require_extra(*FLEET):
        from agentwatch.remote.nats import TroubleError, ask_server, hide_password, login_of, outdated_store_settings
    try:
        differs = ask_server(server, login_of(creds, Keys()), outdated_store_settings)
    except TroubleError as error:
        yield bad("connection", str(error))
        return
    yield good("connection", f"{hide_password(server)} answers")
    remedy_command = f"`agentwatch fleet init {hide_password(server)}`"
    if differs is None:
        yield bad("store", f"there is none, so nobody sees hosts that are off: {remedy_command} makes it")
    elif differs:
        yield bad("store", f"not as it has to be ({', '.join(differs)}): {remedy_command}")
    else:
        yield good("store", "as it has to be")
