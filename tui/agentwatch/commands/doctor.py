"""`agentwatch doctor`: whether agentwatch can work here, and what an agent in a sandbox could do to decisions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from agentwatch.checkup import Result, bad, good, note, tell
from agentwatch.commands.checks import all_checks
from agentwatch.commands.doors import doors
from agentwatch.commands.probe import Failure, Reach, probe
from agentwatch.config import Settings
from agentwatch.decisions.desk import Desk
from agentwatch.decisions.envelope import VARIABLE
from agentwatch.decisions.errors import KeyMissingError, reason
from agentwatch.decisions.keys import PRIVATE, PUBLIC
from agentwatch.disk import Directory
from agentwatch.text import say


def examine(workspace: Path, settings: Settings, more: Iterable[Result]) -> int:
    """Print how agentwatch stands on this machine, and `more`. Returns 1 if something must be put right."""
    return tell((*all_checks(workspace, settings, Desk(workspace, read_only=settings.read_only)), *more))


def examine_sandbox(workspace: Path, command: Sequence[str]) -> int:
    """Print what an agent that is started by `command` could do to decisions. Returns 0 if it cannot forge them."""
    desk = Desk(workspace)
    try:
        # The key file is what the agent is tried on, and the ledger is where it must not write.
        private, locked = desk.keys.directory / PRIVATE, desk.keys.is_encrypted()
        Directory.make(desk.ledger.directory).close()
    except KeyMissingError as error:
        return tell([bad("probe", f"{error}: make it now with `agentwatch keys create`, then run this again")])
    except OSError as error:
        return tell([bad("probe", f"{desk.ledger.directory}: {reason(error)}; `agentwatch doctor` says more")])
    reach = probe(
        command,
        private=private,
        public=desk.keys.directory / PUBLIC,
        ledger=desk.ledger.directory,
        workspace=workspace,
        doors=doors(os.environ),
    )
    if isinstance(reach, Failure):
        return tell([bad("probe", f"the probe did not run in there: {reach.why}")])
    say(json.dumps(asdict(reach)))
    return tell(consequences(reach, desk, locked=locked))


def consequences(reach: Reach, desk: Desk, *, locked: bool) -> Iterator[Result]:
    """What follows from what an agent can reach, in plain words. `locked`: a passphrase protects the key."""
    about, keys, ledger = "protection", desk.keys.directory, desk.ledger.directory
    holes = []
    if reach.reads_key and not locked:
        cure = "set a passphrase with `agentwatch keys passphrase`, then replace the key with `agentwatch keys rotate`"
        holes.append(f"can read the key, and so decide in your name: {cure}")
    if reach.writes_keys:
        holes.append(f"can write where the keys are, and put its own there: keep {keys} out of its reach")
    if reach.writes_settings:
        holes.append(
            f"can write the settings, which name programs that agentwatch runs: keep {keys.parent} out of its reach"
        )
    if reach.writes_ledger:
        holes.append(f"can write the ledger, and take decisions away: keep {ledger} out of its reach")
    elif reach.enters_processes:
        cure = "give the sandbox process ids of its own (bwrap: --unshare-pid)"
        holes.append(f"can enter your other processes, and read and write all that they can: {cure}")
    holes += [f"can reach {door.path}, and so {door.use}: keep that socket out of its reach" for door in reach.doors]
    for hole in holes:
        yield bad(about, f"an agent in there {hole}")
    if not holes:
        yield good(about, "an agent in there cannot forge decisions")
    if reach.reads_key and locked:
        more = ", and keep the keyring, which holds it, out of its reach" if desk.keys.in_keyring else ""
        yield note(
            about, f"it can read the key file, and only the passphrase keeps it from deciding: take a long one{more}"
        )
    if not reach.reads_public_key:
        yield note("verifying", f"it cannot read the public key; start it with {VARIABLE}={desk.keys.show().text}")
    if not reach.writes_workspace:
        yield note("workspace", "it cannot write here under this path, so it can leave no receipts")
