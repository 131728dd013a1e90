"""Show the key that signs your decisions, or change it; say whose keys are trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from getpass import getpass
from typing import Final

from agentwatch.cli.command import argument, flag
from agentwatch.config import load
from agentwatch.decisions.envelope import OPERATOR, VARIABLE, PublicKey, TrustedKey, parse_public
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError, LedgerError
from agentwatch.decisions.keys import PRIVATE, Keys, Role
from agentwatch.decisions.ledger import Ledger
from agentwatch.decisions.record import written
from agentwatch.decisions.service import operator_name
from agentwatch.errors import ExitCode, UsageError
from agentwatch.remote.address import Address, ssh_addresses
from agentwatch.remote.pipe import command, reason
from agentwatch.shell import command_line, resolve_command
from agentwatch.state import state_directories
from agentwatch.text import clean, complain, quoted, say

ARGUMENTS: Final = (
    argument(
        "what",
        "WHAT",
        "show (default); create the first one; rotate: replace it; passphrase: set, change or remove it; send: have"
        " hosts trust it, over ssh; trust, distrust: the key of an operator who decides from another machine;"
        " authorized: list those",
        nargs="?",
        default="show",
        choices=("show", "create", "rotate", "passphrase", "send", "trust", "distrust", "authorized"),
    ),
    argument(
        "whose",
        "KEY|HOST",
        "with send: hosts, as ssh knows them; with trust: what `agentwatch keys` prints there; with distrust: that, or"
        " its name",
        nargs="*",
        offers="hosts",
    ),
    argument("--name", "NAME", "with trust: what you call who has the key; with send: what the hosts call you"),
    flag("--host", "with trust and distrust: it is the key of a host that you watch from here"),
)
EXIT_CODES: Final = "exit codes: 0 done, 2 wrong usage, or the key or the disk refused"

_DIGITS: Final = 8
"""Of a fingerprint, that are enough to name a key."""
_SSH_SECONDS: Final = 120.0
"""Somebody may have to type a password."""


def run(options: Namespace) -> int:
    """Carry out one of the subcommands. Raises KeyProblemError and UsageError."""
    what, whose, keys = options.what, options.whose, Keys()
    is_other = what in ("trust", "distrust")
    if what == "send" and not whose:
        raise UsageError("`keys send HOST ...`: it takes the hosts that shall trust your key, as ssh knows them")
    given = (len(whose) == 1, options.name is not None)
    if what != "send" and (is_other, what == "trust") != given:
        raise UsageError("`keys trust KEY --name NAME`, `keys distrust KEY`: these two take a key, and no other")
    if options.host and not is_other:
        raise UsageError("--host belongs to trust and distrust")
    role = Role.HOST if options.host else Role.OPERATOR
    match what:
        case "send":
            return send(keys, ssh_addresses(whose, load().hosts), options.name)
        case "trust":
            _trust(keys, whose[0], options.name, role)
        case "distrust":
            _distrust(keys, whose[0], role)
        case "passphrase":
            change_passphrase(keys)
        case "authorized":
            _list_others(keys)
        case "rotate":
            rotate(keys)
        case _:
            if what == "create":
                _own_key(keys)
            show(keys)
    return ExitCode.DONE


def show(keys: Keys) -> None:
    """Print the key for an orchestrator, and how it is kept. Raises KeyProblemError."""
    try:
        public = keys.show()
    except KeyMissingError as error:
        raise KeyMissingError(f"{error}, or now with `agentwatch keys create`") from error
    try:
        kept = keys.why_encrypted() or "no passphrase: anyone who can read it can decide"
    except KeyMissingError as error:
        kept = str(error)
    say(f"public key   {public.text}")
    say(f"fingerprint  {public.keyid}")
    say(f"place        {clean(str(keys.directory / PRIVATE))}")
    say(f"             {clean(kept)}")
    for retired in keys.trust().keys:
        if retired.retired_at is not None:
            say(f"before       {retired.public.keyid[:16]}…, until {retired.retired_at}; what it signed stays valid")
    say("\nStart your orchestrator with this, and agents in a sandbox can verify your decisions:")
    operators = [f"{OPERATOR}{one.public.text}" for one in keys.others(Role.OPERATOR) if one.retired_at is None]
    say(f"  {VARIABLE}={','.join([public.text, *operators])}")


def _own_key(keys: Keys) -> PublicKey:
    """The operator's public key; the first use makes it. Raises KeyProblemError where it was lost."""
    try:
        return keys.show()
    except KeyMissingError:
        if keys.trust().keys:
            raise
        return keys.create().public


def rotate(keys: Keys) -> None:
    """Replace the key; a passphrase stays one, and is asked. Raises KeyProblemError."""
    try:
        locked = keys.why_encrypted() is not None
    except KeyMissingError:
        locked = False
    new = _new_passphrase() if locked else None
    last = _last_signed(keys)
    keys.rotate(new, signed_until=last)
    say("replaced: what the old key has signed stays valid; what it signs from now on does not count")
    _complain_of_clock(last, "the old key counts until then")
    show(keys)


def _trust(keys: Keys, key: str, name: str, role: Role) -> None:
    other = keys.trust_other(role, parse_public(key), name)
    fingerprint = f"{other.public.keyid[:16]}…"
    if role is Role.HOST:
        say(f"trusted: what is signed with {fingerprint} comes from the host {quoted(name)}")
        return
    say(f"trusted: {quoted(name)} may decide here from another machine, with the key {fingerprint}")
    own = _own_key(keys)
    if keys.why_encrypted() is not None:
        complain("your key here has a passphrase, which nobody can type for a relay: it could record nothing")
    say(f"This host signs what it records. Over there: agentwatch keys trust {own.text} --name HOST --host")


def _distrust(keys: Keys, which: str, role: Role) -> None:
    """Trust a key no more, that is named by its name, its text or digits of its fingerprint."""
    last = _last_signed(keys) if role is Role.OPERATOR else ""
    other = keys.distrust_other(role, _named(keys, which, role), signed_until=last)
    if role is Role.HOST:
        say(f"not trusted any more: the host {quoted(other.name)}")
        return
    say(f"not trusted any more: {quoted(other.name)} decides nothing here; what was recorded until now stays valid")
    _complain_of_clock(last, "what was recorded until then is valid")


def _complain_of_clock(last: str, meaning: str) -> None:
    if last > written(datetime.now(UTC)):
        complain(f"the clock was set back: the last decision is of {last}, so {meaning}")


def _list_others(keys: Keys) -> None:
    for role, none, some in (
        (Role.OPERATOR, "nobody may decide here from another machine", "operators who may decide here:"),
        (Role.HOST, "no host is trusted", "hosts that are trusted:"),
    ):
        found = keys.others(role)
        say(some if found else none)
        for one in found:
            until = f", until {one.retired_at}: not any more" if one.retired_at is not None else ""
            say(f"  {one.name}  {one.public.text}  since {one.trusted_at}{until}")


def _named(keys: Keys, which: str, role: Role) -> PublicKey:
    if which.startswith("ed25519:"):
        return parse_public(which)

    def fits(one: TrustedKey) -> bool:
        return one.name == which or (len(which) >= _DIGITS and one.public.keyid.startswith(which))

    found = [one for one in keys.others(role) if fits(one)]
    found = [one for one in found if one.retired_at is None] or found
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


def change_passphrase(keys: Keys) -> None:
    """Set, change or remove the passphrase. Raises KeyProblemError."""
    why_locked = keys.why_encrypted()
    _require_terminal()
    old = ""
    if why_locked is not None:
        complain(clean(why_locked))
        old = getpass("Present passphrase: ")
        # Before a new one is asked for.
        keys.load(lambda: old)
    new = _new_passphrase("none" if old else None)
    keys.protect(new or None, lambda: old)
    if new:
        say("set: each decision asks for it once; nobody can decide without it, and nobody can recover it")
    else:
        say("removed: anyone who can read the key file can decide")
    if new and not old:
        complain("somebody may have read the key before: then replace it, with `agentwatch keys rotate`")


def _new_passphrase(empty: str | None = None) -> str:
    """Asked twice. `empty` says what nothing typed stands for, None: it is refused."""
    _require_terminal()
    new = getpass("New passphrase: " if empty is None else f"New passphrase (empty: {empty}): ")
    if not new and empty is None:
        raise KeyProblemError("an empty passphrase protects nothing; nothing was changed")
    if getpass("Repeat it: ") != new:
        raise KeyProblemError("the two differ; nothing was changed")
    return new


def _require_terminal() -> None:
    if not sys.stdin.isatty():
        raise UsageError("a passphrase can be typed only on a terminal")


def send(keys: Keys, addresses: Sequence[Address], name: str | None, program: Sequence[str] = ("ssh",)) -> int:
    """Have hosts that are reached over ssh trust the operator's key, one after another: ssh may ask the operator.

    Raises KeyProblemError and UsageError.
    """
    key, name, failed = _own_key(keys), name or operator_name(), False
    for address in addresses:
        words = command(address, ["keys", "trust", key.text, "--name", name], program)
        try:
            line = resolve_command(words)
            done = subprocess.run(  # noqa: S603  a list, and no shell here
                line, capture_output=True, text=True, errors="replace", timeout=_SSH_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            failed = True
            complain(f"{address.target}: it does not answer")
            continue
        except OSError as error:
            raise UsageError(f"{program[0]} cannot be started here ({error.strerror}): install OpenSSH") from error
        if done.returncode:
            failed = True
            why = reason(done.returncode, done.stderr.splitlines(), address.target)
            complain(f"{address.target}: {clean(why, 600)}")
        else:
            say(f"{address.target}: you may decide there, as {name}")
    say(f"your public key: {key.text}")
    if failed:
        return ExitCode.NOT
    watched = " ".join(f"ssh://{one.target}/PATH" for one in addresses)
    say(f"next, to watch and decide there: agentwatch {watched}")
    relay = command_line(["agentwatch", "relay", "--nats", "nats://SERVER", "--trust", f"{name}={key.text}"])
    say(f"a sandbox that only dials out: {relay}")
    return ExitCode.DONE
