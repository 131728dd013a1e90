"""Check that agentwatch can work here."""

from __future__ import annotations

import locale
import os
import re
import secrets
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentwatch.agents.setup.starts import checks
from agentwatch.arguments import workspace_at
from agentwatch.cli.command import CREDS, PATH, argument
from agentwatch.composition import shelf_of
from agentwatch.config import Settings, load, where
from agentwatch.decisions.envelope import VARIABLE, given
from agentwatch.decisions.errors import DecisionError, KeyMissingError, reason, remedy
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.service import LocalService
from agentwatch.errors import UsageError
from agentwatch.evidence.plumbing import find_repository
from agentwatch.history.store import History
from agentwatch.shell import FLEET, find_program, needing
from agentwatch.sources.files.walk import pruning, walk
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
    argument("--monitor", "URL", "with --nats: where its monitoring answers; else port 8222 of the same machine"),
)
EXIT_CODES: Final = "exit codes: 0 all is well, 1 something is not, 2 wrong usage"
_OPEN_TO_OTHERS: Final = 0o077
_SKEW_SECONDS: Final = 2.0
"""File systems that keep whole or even seconds only are not wrong by more than that."""

_NETWORK: Final = frozenset({"9p", "afs", "ceph", "cifs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "smbfs"})
_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")
_WATCHES: Final = Path("/proc/sys/fs/inotify/max_user_watches")
_MOST_OF_THE_LIMIT: Final = 0.5
"""Editors and build tools watch the same directories with the same allowance."""

_SMALLEST: Final = (80, 24)


def run(options: Namespace) -> int:
    """Print how agentwatch stands on this machine, or a fleet on a server. Returns 1 if something must be put right."""
    if options.nats is not None:
        with needing(*FLEET):
            from agentwatch.cli.doctor_nats import examine_server

            return examine_server(options.nats, options.creds, options.monitor, Keys())
    if options.creds or options.monitor:
        raise UsageError("--creds and --monitor belong to --nats")
    workspace, settings = workspace_at(options.path), load()
    desk, shelf = LocalService(workspace, read_only=settings.read_only), shelf_of(workspace)
    shelf.read_changes()
    history = History(state_directory(workspace))
    events = plural(len(history.recall().events), "observation")
    return say_checks(
        [
            *_state(state_directory(workspace)),
            *_outside(workspace, desk),
            *_keys(desk),
            *_given_keys(),
            *_workspace(workspace, settings),
            _watches(workspace, settings),
            *_terminal(),
            _git(workspace),
            bad("history", history.notice) if history.notice else good("history", f"{events}, sound"),
            *_ledger(desk),
            bad("put aside", shelf.notice)
            if shelf.notice
            else good("put aside", "what you have put aside can be read"),
            *(bad("settings", f"{where(f'views.{name}')}: {why}") for name, why in view_faults(settings.views).items()),
            *checks(workspace),
            *_key_map(settings),
        ]
    )


def _state(state: Path) -> Iterator[Check]:
    about = "state directory"
    there = next(one for one in (state, *state.parents) if os.path.exists(one))
    try:
        _try_links(there)
    except OSError as error:
        yield bad(about, f"{there} cannot be used: {reason(error)}; {remedy(error)}, else nothing can be decided")
        return
    made = "writable" if there == state else f"not there yet; it can be made in {there}"
    if there == state and state.stat().st_mode & _OPEN_TO_OTHERS:
        yield bad(about, f"others can look into it: chmod 700 {state}")
    else:
        yield good(about, f"{state}: {made}")
    kind = _kind(there)
    if kind in _NETWORK or kind.startswith("fuse"):
        yield note(about, f"it lies on {kind}: locks between machines may not hold; use one machine, or a local disk")


def _outside(workspace: Path, desk: LocalService) -> Iterator[Check]:
    """That nothing of ours lies where agents write."""
    state, keys = state_directory(workspace), desk.keys.directory
    for about, variable, place in (
        ("state directory", "XDG_STATE_HOME", state),
        ("signing key", "XDG_CONFIG_HOME", keys),
    ):
        if leads_through(place, workspace):
            why = "so nothing that programs ask can be answered here"
            cure = f"set {variable} to another place"
            yield bad(about, f"{place} lies in the workspace, where agents write, {why}: {cure}")


def _try_links(directory: Path) -> None:
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


def _kind(directory: Path) -> str:
    """The type of the file system, "" where the system does not say."""
    place, longest, kind = os.fsencode(os.path.realpath(directory)) + b"/", b"", b""
    with suppress(OSError):
        for line in _MOUNTS.read_bytes().splitlines():
            mount, _, source = line.partition(b" - ")
            fields = mount.split(b" ")
            point = _ESCAPED.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), fields[4]) if len(fields) > 4 else b"?"
            # The later of two mounts on one place hides the other.
            if place.startswith(point.rstrip(b"/") + b"/") and len(point) >= len(longest):
                longest, kind = point, source.split(b" ")[0]
    return kind.decode("ascii", "replace")


def _keys(desk: LocalService) -> Iterator[Check]:
    about = "signing key"
    try:
        public, locked = desk.keys.show(), desk.keys.is_encrypted()
        in_keyring = locked and desk.keys.in_keyring
        why_not = desk.why_locked() if in_keyring else None
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
            yield good(about, f"{private}, with a passphrase{' in the keyring' if in_keyring else ''}")
        else:
            yield note(about, f"{private}, without a passphrase; {cure}")


def _given_keys() -> Iterator[Check]:
    """The public keys of the environment, which hooks and `wait` read decisions with."""
    if text := os.environ.get(VARIABLE):
        try:
            given(text)
        except DecisionError as error:
            yield bad("public key", f"{VARIABLE}: {error}; until then hooks and `wait` read no decision")
        else:
            yield good("public key", f"{VARIABLE} holds one")


def _workspace(workspace: Path, settings: Settings) -> Iterator[Check]:
    about = "workspace"
    if settings.read_only:
        yield note(about, f"{workspace}: read_only is set, so decisions are not delivered there")
        return
    probe = workspace / f".agentwatch-doctor-{secrets.token_hex(8)}"
    try:
        probe.touch(exist_ok=False)
        skew = probe.stat().st_mtime - time.time()
    except OSError as error:
        why = f"{workspace}: {reason(error)}; decisions wait in the ledger, and agents in a sandbox do not get them"
        yield bad(about, f"{why}: {remedy(error)}")
        return
    finally:
        with suppress(OSError):
            probe.unlink()
    yield good(about, f"{workspace} can be written, so decisions are delivered there")
    if abs(skew) > _SKEW_SECONDS:
        wrong = "so elapsed and stale times are wrong: set the clocks"
        yield note("clock", f"the workspace's disk is {skew:+.0f} s off, {wrong}")
    else:
        yield good("clock", "a file written now is from now")


def _watches(workspace: Path, settings: Settings) -> Check:
    about = "file events"
    count = sum(1 for _ in walk(os.path.realpath(workspace), pruning(settings.pruned)))
    directories = "1 directory" if count == 1 else f"{count:,} directories"
    try:
        limit = int(_WATCHES.read_text("ascii"))
    except (OSError, ValueError):
        return good(about, f"{directories}; this system names no limit")
    if count > limit * _MOST_OF_THE_LIMIT:
        cure = "raise fs.inotify.max_user_watches, or prune directories; until then agentwatch looks at intervals"
        return note(about, f"{directories}, and the system allows {limit:,} watches to all programs: {cure}")
    return good(about, f"{directories}, of {limit:,} that the system allows")


def _terminal() -> Iterator[Check]:
    about = "terminal"
    if sys.stdout is None or not sys.stdout.isatty():
        yield note(about, "the output is no terminal, so it was not checked; the screen needs one")
        return
    columns, lines = shutil.get_terminal_size()
    if columns < _SMALLEST[0] or lines < _SMALLEST[1]:
        yield note(about, f"{columns} × {lines}; from {_SMALLEST[0]} × {_SMALLEST[1]} on everything fits")
    else:
        yield good(about, f"{columns} × {lines}")
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        yield bad(about, f"its encoding is {locale.getpreferredencoding(False)}: set LANG to one that ends in UTF-8")
    if os.environ.get("COLORTERM") not in ("truecolor", "24bit"):
        yield note(about, "it does not say that it has all colours (COLORTERM=truecolor): the themes are less exact")
    if os.environ.get("TERM") in (None, "", "dumb"):
        yield bad(about, "TERM says that it can do nothing: use another terminal, or set TERM")


def _git(workspace: Path) -> Check:
    if find_program("git") is None:
        return note("git", "not found: claims about changed files cannot be checked against it")
    try:
        repository = find_repository(os.path.realpath(workspace))
    except NoRepositoryError as error:
        return note("git", f"{error}: claims are checked against the disk alone")
    return good("git", f"the repository {repository.top} is asked, without its configuration")


def _ledger(desk: LocalService) -> Iterator[Check]:
    try:
        chain = desk.read()
    except DecisionError as error:
        yield bad("ledger", str(error))
        return
    for problem in chain.problems:
        yield bad("ledger", problem.message)
    if not chain.problems:
        decisions = plural(len(chain.entries), "decision")
        yield good("ledger", f"{decisions}, sound" if chain.entries else "nothing is decided yet")


def _key_map(settings: Settings) -> Iterator[Check]:
    """The operator's own keys, which only the screen knows."""
    if not settings.keys:
        return
    from agentwatch.app.actions.keymap import keymap

    faults = keymap(settings.keys).faults
    yield from (bad("settings", str(fault)) for fault in faults)
    if not faults:
        count = len(settings.keys)
        yield good("settings", f"{count} command{' has' if count == 1 else 's have'} keys of your own")
