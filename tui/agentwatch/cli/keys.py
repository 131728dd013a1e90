"""The command for the operator's signing key, and for the trusted keys of other operators and of hosts."""

import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from getpass import getpass

from agentwatch.cli.command import argument, command, flag
from agentwatch.config import load
from agentwatch.decisions.envelope import KEYS_ENV, OPERATOR, PublicKey, parse_public
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError
from agentwatch.decisions.keys import PRIVATE, Keys, Role
from agentwatch.decisions.service import operator_name
from agentwatch.errors import ExitCode, UsageError
from agentwatch.remote.address import Address, ssh_addresses
from agentwatch.remote.pipe import explain_end
from agentwatch.remote.pipe import relay_command as remote_command
from agentwatch.shell import command_line, resolve_command
from agentwatch.text import clean, print_error, print_text, quote_text

_SSH_SECONDS = 120.0  # somebody may have to type a password


@command(
    argument(
        "what",
        "WHAT",
        "show (default); create the first one; rotate: replace it; passphrase: set, change or remove it; send: have"
        " hosts trust it, over ssh; trust, distrust: the key of an operator who decides from another machine;"
        " authorized: list these operators",
        nargs="?",
        default="show",
        choices=("show", "create", "rotate", "passphrase", "send", "trust", "distrust", "authorized"),
    ),
    argument(
        "whose",
        "KEY|HOST",
        "with send: hosts, as ssh knows them; with trust: the key that `agentwatch keys` prints there; with"
        " distrust: the same key, or its name",
        nargs="*",
    ),
    argument("--name", "NAME", "with trust: your name for the owner of the key; with send: the hosts' name for you"),
    flag("--host", "with trust and distrust: the key belongs to a host that you watch from here"),
    exit_codes="exit codes: 0 done, 1 a host was not reached, 2 wrong usage, or the key or the disk refused",
)
def keys(options: Namespace) -> int:
    """Show the key that signs your decisions, or change it; say whose keys are trusted."""
    what, whose, keys, role = options.what, options.whose, Keys(), Role.HOST if options.host else Role.OPERATOR
    if bool(whose) != (what in ("send", "trust", "distrust")) or (len(whose) > 1 and what != "send"):
        with_others = "`keys send HOST ...`, `keys trust KEY --name NAME` and `keys distrust KEY`"
        raise UsageError(f"{with_others} need the key or host of somebody else, and no other use of `keys` takes one")
    match what:
        case "send":
            return send_key(keys, ssh_addresses(whose, load().hosts), options.name or operator_name())
        case "trust":
            _trust_key(keys, parse_public(whose[0]), options.name or "", role)
        case "distrust":
            other = keys.distrust_key(role, _find_other_key(keys, whose[0], role))
            print_text(f"not trusted any more: {quote_text(other.name)}; what was recorded until now stays valid")
        case "passphrase":
            change_passphrase(keys)
        case "authorized":
            _print_others(keys)
        case "rotate":
            rotate_key(keys)
        case "create":
            load_or_create_key(keys)
            print_key(keys)
        case _:
            print_key(keys)
    return ExitCode.DONE


def print_key(keys: Keys) -> None:
    """Print the public key, and the place and protection of the private key. May raise KeyProblemError."""
    public = public_key(keys)
    kept = keys.why_encrypted() or "no passphrase: anyone who can read it can decide"
    print_text(f"public key   {public.text}")
    print_text(f"fingerprint  {public.keyid}")
    print_text(f"place        {clean(str(keys.directory / PRIVATE))}")
    print_text(f"             {clean(kept)}")
    for retired in keys.trust().keys:
        if retired.retired_at:
            print_text(
                f"before       {retired.public.keyid[:16]}…, until {retired.retired_at}; what it signed stays valid"
            )
    print_text("\nStart your orchestrator with this, and agents in a sandbox can verify your decisions:")
    operators = [f"{OPERATOR}{one.public.text}" for one in keys.trusted_keys(Role.OPERATOR)]
    print_text(f"  {KEYS_ENV}={','.join([public.text, *operators])}")


def public_key(keys: Keys) -> PublicKey:
    """Return the operator's public key. If there is no key, raise an error that says how to create a key."""
    try:
        return keys.show()
    except KeyMissingError as error:
        raise KeyMissingError(f"{error}, or now with `agentwatch keys create`") from error


def load_or_create_key(keys: Keys) -> PublicKey:
    """Return the operator's public key. Create a key at the first use. Raise KeyProblemError if the key was lost."""
    try:
        return keys.show()
    except KeyMissingError:
        return keys.create().public


def rotate_key(keys: Keys) -> None:
    """Replace the signing key. Ask for a new passphrase if the old key has one. May raise KeyProblemError."""
    try:
        locked = keys.why_encrypted()
    except KeyMissingError:
        locked = None
    passphrase = _ask_new_passphrase() if locked else None
    keys.rotate(passphrase)
    print_text("replaced: what the old key has signed stays valid; what it signs from now on does not count")
    print_key(keys)


def _trust_key(keys: Keys, public: PublicKey, name: str, role: Role) -> None:
    fingerprint = f"{keys.trust_key(role, public, name).public.keyid[:16]}…"
    if role is Role.HOST:
        print_text(f"trusted: what is signed with {fingerprint} comes from the host {quote_text(name)}")
        return
    print_text(f"trusted: {quote_text(name)} may decide here from another machine, with the key {fingerprint}")
    own = load_or_create_key(keys)
    if keys.why_encrypted():
        print_error("your key here has a passphrase, which nobody can type for a relay: it could record nothing")
    print_text(f"This host signs what it records. Over there: agentwatch keys trust {own.text} --name HOST --host")


def _print_others(keys: Keys) -> None:
    for role, heading in (Role.OPERATOR, "operators who may decide here:"), (Role.HOST, "hosts that are trusted:"):
        found = keys.known_keys(role)
        print_text(f"{heading}{'' if found else ' none'}")
        for one in found:
            until = f", until {one.retired_at}: not any more" if one.retired_at else ""
            print_text(f"  {one.name}  {one.public.text}  since {one.trusted_at}{until}")


def _find_other_key(keys: Keys, which: str, role: Role) -> PublicKey:
    """Return somebody else's trusted key. `which` is the key's text or its owner's name. May raise KeyProblemError."""
    others = sorted(keys.known_keys(role), key=lambda one: bool(one.retired_at))
    found = next((one.public for one in others if which in (one.name, one.public.text)), None)
    if not found:
        raise KeyProblemError(
            f"{quote_text(which)}: no such key is trusted here; `agentwatch keys authorized` lists them"
        )
    return found


def change_passphrase(keys: Keys) -> None:
    """Set, change or remove the passphrase. May raise KeyProblemError."""
    is_locked, old = keys.why_encrypted(), ""
    _require_terminal()
    if is_locked:
        old = getpass("Present passphrase: ")
        # Check the old passphrase before asking for a new one.
        keys.load(lambda: old)
    passphrase = _ask_new_passphrase("none" if old else None)
    keys.protect(passphrase or None, lambda: old)
    if passphrase:
        print_text("set: each decision asks for it once; nobody can decide without it, and nobody can recover it")
    else:
        print_text("removed: anyone who can read the key file can decide")
    if passphrase and not old:
        print_error("somebody may have read the key before: then replace it, with `agentwatch keys rotate`")


def _ask_new_passphrase(empty: str | None = None) -> str:
    """Ask twice for a new passphrase. `empty` is the meaning of an empty passphrase, or None to forbid it."""
    _require_terminal()
    passphrase = getpass("New passphrase: " if empty is None else f"New passphrase (empty: {empty}): ")
    if not passphrase and empty is None:
        raise KeyProblemError("an empty passphrase protects nothing; nothing was changed")
    if getpass("Repeat it: ") != passphrase:
        raise KeyProblemError("the two differ; nothing was changed")
    return passphrase


def _require_terminal() -> None:
    if not sys.stdin.isatty():
        raise UsageError("a passphrase can be typed only on a terminal")


def send_key(keys: Keys, addresses: Sequence[Address], name: str, program: Sequence[str] = ("ssh",)) -> int:
    """Make hosts trust the operator's key. Call ssh for one host after another, because ssh may ask for a password.

    Return 1 if a host fails, else 0. May raise KeyProblemError or UsageError.
    """
    key, code = load_or_create_key(keys), ExitCode.DONE
    for address in addresses:
        words = remote_command(address, ["keys", "trust", key.text, "--name", name], program)
        try:
            line = resolve_command(words)
            done = subprocess.run(  # noqa: S603  a list, and no shell here
                line, capture_output=True, text=True, errors="replace", timeout=_SSH_SECONDS, check=False
            )
            why = done.returncode and explain_end(done.returncode, done.stderr.splitlines(), address.target)
        except subprocess.TimeoutExpired:
            why = "it does not answer"
        except OSError as error:
            raise UsageError(f"{program[0]} cannot be started here ({error.strerror}): install OpenSSH") from error
        if why:
            code = ExitCode.NOT
            print_error(f"{address.target}: {clean(why, 600)}")
        else:
            print_text(f"{address.target}: you may decide there, as {name}")
    print_text(f"your public key: {key.text}")
    if code is ExitCode.DONE:
        print_text(
            f"next, to watch and decide there: agentwatch {' '.join(f'ssh://{one.target}/PATH' for one in addresses)}"
        )
        relay = command_line(["agentwatch", "relay", "--nats", "nats://SERVER", "--trust", f"{name}={key.text}"])
        print_text(f"a sandbox that only dials out: {relay}")
    return code
