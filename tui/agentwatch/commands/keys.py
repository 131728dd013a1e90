"""`agentwatch keys`: shows, makes, replaces and locks the key that signs the operator's decisions."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from getpass import getpass
from typing import Final

from agentwatch import exit_codes
from agentwatch.decisions.envelope import VARIABLE
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError, LedgerError
from agentwatch.decisions.keys import PRIVATE, Keys
from agentwatch.decisions.ledger import Ledger
from agentwatch.decisions.passphrase import forget, store, stored
from agentwatch.decisions.record import written
from agentwatch.errors import UsageError
from agentwatch.place import state_directories
from agentwatch.text import clean, complain, quoted, say

_NO_TERMINAL: Final = "a passphrase can be typed only on a terminal"


def show(keys: Keys) -> int:
    """Print what an orchestrator needs, and how the key is kept. Raises KeyProblemError."""
    try:
        public = keys.show()
    except KeyMissingError as error:
        raise KeyMissingError(f"{error}, or now with `agentwatch keys create`") from error
    try:
        kept = "a passphrase protects it" if keys.is_encrypted() else "no passphrase: anyone who can read it can decide"
        kept += ", and the system's keyring holds it" if keys.is_encrypted() and keys.in_keyring else ""
    except KeyMissingError as error:
        kept = str(error)
    say(f"public key   {public.text}")
    say(f"fingerprint  {public.keyid}")
    say(f"place        {clean(str(keys.directory / PRIVATE))}")
    say(f"             {clean(kept)}")
    for retired in keys.trust().keys:
        if retired.retired_at is not None:
            say(f"before       {retired.public.keyid[:16]}…, until {retired.retired_at}; what it signed stays valid")
    say("")
    say("Start your orchestrator with this, and agents in a sandbox can verify your decisions:")
    say(f"  {VARIABLE}={public.text}")
    return exit_codes.DONE


def create(keys: Keys) -> int:
    """Make the first key, unless there is one. Raises KeyProblemError."""
    try:
        keys.show()
    except KeyMissingError:
        if keys.trust().keys:
            raise
        keys.create()
    return show(keys)


def rotate(keys: Keys) -> int:
    """Replace the key; a passphrase stays one, and is asked. Raises KeyProblemError."""
    try:
        locked = keys.is_encrypted()
    except KeyMissingError:
        locked = keys.in_keyring
    new = _new_passphrase() if locked else None
    last = _last_signed(keys)
    keys.rotate(new, signed_until=last)
    say("replaced: what the old key has signed stays valid; what it signs from now on does not count")
    if last > written(datetime.now(UTC)):
        complain(f"the clock was set back: the last decision is of {last}, so the old key counts until then")
    if new is not None and keys.in_keyring:
        try:
            store(keys.directory / PRIVATE, new)
        except KeyProblemError as error:
            keys.choose_keyring(chosen=False)
            complain(f"{clean(str(error))}; each decision asks for the passphrase from now on")
    return show(keys)


def _last_signed(keys: Keys) -> str:
    """The time of the last decision of all workspaces, in the form of records; "" if there is none."""
    trust, last, states = keys.trust(), "", state_directories()
    for state in sorted(states.iterdir()) if os.path.isdir(states) else ():
        try:
            entries = Ledger(state, state.name).read(trust).entries
        except LedgerError as error:
            complain(f"{clean(str(error))}: what it holds counts only where it is not later than the clock of now")
        else:
            last = max([last, *(entry.record.created_at for entry in entries)])
    return last


def passphrase(keys: Keys, *, in_keyring: bool) -> int:
    """Set, change or remove the passphrase; `in_keyring` has the system's keyring hold it. Raises KeyProblemError."""
    locked, was_in_keyring, key = keys.is_encrypted(), keys.in_keyring, keys.directory / PRIVATE
    if not sys.stdin.isatty():
        raise UsageError(_NO_TERMINAL)
    old = _passphrase_of_now(keys) if locked else ""
    empty = ("the same" if in_keyring else "none") if locked else None
    new = _new_passphrase(empty) or (old if in_keyring else "")
    keyring = None
    if in_keyring:
        try:
            # Before the key needs it.
            keyring = store(key, new)
        except KeyProblemError as error:
            raise KeyProblemError(f"{error}; nothing was changed") from error
    if new != old:
        keys.protect(new or None, (lambda: old) if locked else None)
    keys.choose_keyring(chosen=in_keyring)
    if keyring is not None:
        say(f"set, and kept in the keyring {quoted(keyring)}: decisions ask it first, and you if it does not answer")
    elif new:
        say("set: each decision asks for it once; nobody can decide without it, and nobody can recover it")
    else:
        say("removed: anyone who can read the key file can decide")
    if new and not locked:
        complain("somebody may have read the key before: then replace it, with `agentwatch keys rotate`")
    if was_in_keyring and not in_keyring:
        try:
            forget(key)
        except KeyProblemError as error:
            complain(f"{clean(str(error))}; the old passphrase may still be in there")
    return exit_codes.DONE


def _passphrase_of_now(keys: Keys) -> str:
    """What opens the key, from the keyring that was chosen, else typed."""
    if keys.in_keyring:
        try:
            kept = stored(keys.directory / PRIVATE)
            keys.load(lambda: kept)
            return kept
        except KeyProblemError as error:
            complain(clean(str(error)))
    old = getpass("Present passphrase: ")
    # Before a new one is asked for.
    keys.load(lambda: old)
    return old


def _new_passphrase(empty: str | None = None) -> str:
    """Asked twice. `empty` says what nothing typed stands for, None: it is refused."""
    if not sys.stdin.isatty():
        raise UsageError(_NO_TERMINAL)
    new = getpass("New passphrase: " if empty is None else f"New passphrase (empty: {empty}): ")
    if not new and empty is None:
        raise KeyProblemError("an empty passphrase protects nothing; nothing was changed")
    if getpass("Repeat it: ") != new:
        raise KeyProblemError("the two differ; nothing was changed")
    return new
