"""`agentwatch keys send`: has hosts that are reached over ssh trust the operator's key, and says what comes next."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from agentwatch.decisions.desk import operator_name
from agentwatch.decisions.errors import KeyMissingError
from agentwatch.decisions.keys import Keys
from agentwatch.errors import ExitCode, UsageError
from agentwatch.remote.ssh import command, reason
from agentwatch.shell import command_line, resolve_command
from agentwatch.text import clean, complain, say

if TYPE_CHECKING:
    from agentwatch.remote.address import Address

_SECONDS: Final = 120.0
"""Somebody may have to type a password."""


def send(keys: Keys, addresses: Sequence[Address], name: str | None, program: Sequence[str] = ("ssh",)) -> int:
    """Have these hosts trust the operator's key, which the first use makes; each says so. They are asked one after
    another: ssh may ask the operator something. Raises KeyProblemError and UsageError."""
    try:
        key = keys.show()
    except KeyMissingError:
        if keys.trust().keys:
            raise
        key = keys.create().public
    name = name or operator_name()
    failed = [one for one in addresses if not _is_trusted_at(one, ["keys", "trust", key.text, "--name", name], program)]
    say(f"your public key: {key.text}")
    if not failed:
        watched = " ".join(f"ssh://{one.target}/PATH" for one in addresses)
        say(f"next, to watch and decide there: agentwatch {watched}")
        relay = command_line(["agentwatch", "relay", "--nats", "nats://SERVER", "--trust", f"{name}={key.text}"])
        say(f"a sandbox that only dials out: {relay}")
    return ExitCode.NOT if failed else ExitCode.DONE


def _is_trusted_at(address: Address, words: list[str], program: Sequence[str]) -> bool:
    """Whether a host trusts the key from now on; it is said."""
    try:
        done = subprocess.run(  # noqa: S603  a list, and no shell here
            resolve_command(command(address, words, program)),
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        complain(f"{address.target}: it does not answer")
        return False
    except OSError as error:
        raise UsageError(f"{program[0]} cannot be started here ({error.strerror}): install OpenSSH") from error
    if done.returncode:
        complain(f"{address.target}: {clean(reason(done.returncode, done.stderr.splitlines(), address.target), 600)}")
        return False
    say(f"{address.target}: you may decide there, as {words[-1]}")
    return True
