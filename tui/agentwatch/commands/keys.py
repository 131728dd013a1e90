"""`agentwatch keys`: shows, makes, replaces and locks the key that signs decisions; says whose keys are trusted."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from getpass import getpass
from typing import Final

from agentwatch.decisions.envelope import OPERATOR, VARIABLE, PublicKey, parse_public
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError, LedgerError
from agentwatch.decisions.keys import PRIVATE, Keys
from agentwatch.decisions.ledger import Ledger
from agentwatch.decisions.others import OtherKey, Role
from agentwatch.decisions.passphrase import forget, store, stored
from agentwatch.decisions.record import written
from agentwatch.errors import ExitCode, UsageError
from agentwatch.state import state_directories
from agentwatch.text import clean, complain, quoted, say

_DIGITS: Final = 8
"""Of a fingerprint, that are enough to name a key."""

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
    operators = [one.public.text for one in keys.others(Role.OPERATOR) if one.distrusted_at is None]
    say(f"  {VARIABLE}={','.join([public.text, *(f'{OPERATOR}{one}' for one in operators)])}")
    return ExitCode.DONE


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


def trust(keys: Keys, key: str, name: str, role: Role) -> int:
    """Trust the key of an operator, or of a host. Raises KeyProblemError."""
    other = keys.trust_other(role, parse_public(key), name)
    if role is Role.HOST:
        say(f"trusted: what is signed with {other.public.keyid[:16]}… comes from the host {quoted(name)}")
        return ExitCode.DONE
    say(f"trusted: {quoted(name)} may decide here from another machine, with the key {other.public.keyid[:16]}…")
    try:
        own = keys.show()
    except KeyMissingError:
        if keys.trust().keys:
            raise
        own = keys.create().public
    if keys.is_encrypted() and not keys.in_keyring:
        complain("your key here has a passphrase, which nobody can type for a relay: it could record nothing")
    say(f"This host signs what it records. Over there: agentwatch keys trust {own.text} --name HOST --host")
    return ExitCode.DONE


def distrust(keys: Keys, which: str, role: Role) -> int:
    """Trust a key no more, that is named by its name, its text or digits of its fingerprint. Raises KeyProblemError."""
    last = _last_signed(keys) if role is Role.OPERATOR else ""
    other = keys.distrust_other(role, _named(keys, which, role), signed_until=last)
    if role is Role.HOST:
        say(f"not trusted any more: the host {quoted(other.name)}")
        return ExitCode.DONE
    say(f"not trusted any more: {quoted(other.name)} decides nothing here; what was recorded until now stays valid")
    if last > written(datetime.now(UTC)):
        complain(f"the clock was set back: the last decision is of {last}, so what was recorded until then is valid")
    return ExitCode.DONE


def authorized(keys: Keys) -> int:
    """Print which keys of others are trusted here. Raises KeyProblemError."""
    for role, none, some in (
        (Role.OPERATOR, "nobody may decide here from another machine", "operators who may decide here:"),
        (Role.HOST, "no host is trusted", "hosts that are trusted:"),
    ):
        found = keys.others(role)
        say(some if found else none)
        for one in found:
            until = f", until {one.distrusted_at}: not any more" if one.distrusted_at is not None else ""
            say(f"  {one.name}  {one.public.text}  since {one.trusted_at}{until}")
    return ExitCode.DONE


def _named(keys: Keys, which: str, role: Role) -> PublicKey:
    if which.startswith("ed25519:"):
        return parse_public(which)

    def fits(one: OtherKey) -> bool:
        return one.name == which or (len(which) >= _DIGITS and one.public.keyid.startswith(which))

    found = [one for one in keys.others(role) if fits(one)]
    found = [one for one in found if one.distrusted_at is None] or found
    if len(found) != 1:
        why = "several keys fit" if found else "no key of that name is trusted here"
        raise KeyProblemError(f"{quoted(which)}: {why}; `agentwatch keys authorized` lists them")
    return found[0].public


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
    return ExitCode.DONE


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
