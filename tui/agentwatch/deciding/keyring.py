"""`agentwatch keys`: shows, makes, replaces and locks the key that signs the operator's decisions."""

from __future__ import annotations

import sys
from getpass import getpass

from agentwatch.deciding import codes
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError
from agentwatch.decisions.keys import PRIVATE, Keys
from agentwatch.decisions.trust import VARIABLE
from agentwatch.errors import UsageError
from agentwatch.text import clean, complain, say


def show(keys: Keys) -> int:
    """Print what an orchestrator needs, and how the key is kept. Raises KeyProblemError."""
    try:
        public = keys.show()
    except KeyMissingError as error:
        raise KeyMissingError(f"{error}, or now with `agentwatch keys create`") from error
    try:
        kept = "a passphrase protects it" if keys.is_encrypted() else "no passphrase: whoever can read it can decide"
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
    return codes.DONE


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
        locked = False
    keys.rotate(_new_passphrase(may_be_empty=False) if locked else None)
    say("replaced: what the key before has signed stays valid, and nothing that it signs from now on")
    return show(keys)


def passphrase(keys: Keys) -> int:
    """Set, change or remove the passphrase. Raises KeyProblemError."""
    locked = keys.is_encrypted()
    if not sys.stdin.isatty():
        raise UsageError("a passphrase is asked on a terminal only")
    old = getpass("Passphrase of now: ") if locked else ""
    if locked:
        # Before a new one is asked for.
        keys.load(lambda: old)
    new = _new_passphrase(may_be_empty=locked)
    keys.protect(new or None, (lambda: old) if locked else None)
    if new:
        say("set: each decision asks for it once; without it nobody can decide, and nobody can get it back")
        if not locked:
            complain("somebody may have read the key before: then replace it, with `agentwatch keys rotate`")
    else:
        say("removed: whoever can read the key file can decide")
    return codes.DONE


def _new_passphrase(*, may_be_empty: bool) -> str:
    if not sys.stdin.isatty():
        raise UsageError("a passphrase is asked on a terminal only")
    new = getpass("New passphrase (empty: none): " if may_be_empty else "New passphrase: ")
    if not new and not may_be_empty:
        raise KeyProblemError("an empty passphrase protects nothing; nothing was changed")
    if getpass("The same again: ") != new:
        raise KeyProblemError("the two are not the same; nothing was changed")
    return new
