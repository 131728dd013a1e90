"""What an agent could do to decisions from inside its sandbox: a small script runs in there, and its effects are looked
at from outside.

The script is for `sh`, which every sandbox and nearly every container has. What it says is believed only as far as it
can be seen here: a container may have other files under the same names, and writes of its own that nobody else sees.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentwatch.commands.doors import Door
from agentwatch.commands.running import run
from agentwatch.text import clean

SECONDS: Final = 120.0
"""A container may have to be fetched first."""

_LONGEST: Final = 300

SCRIPT: Final = r"""
sum() { if [ -f "$1" ]; then cksum < "$1" 2>/dev/null || echo; else echo; fi; }
node() { if [ -S "$1" ] && [ -w "$1" ]; then ls -di "$1" 2>/dev/null | { read -r number _; echo "$number"; }; fi; }
mark=$1 key=$(sum "$2") public=$(sum "$3"); shift 3
while [ "$1" != -- ]; do ( : > "$1" ) 2>/dev/null; shift; done; shift
for door; do number=$(node "$door"); doors="$doors ${number:-0}"; done
printf '\n%s{"key": "%s", "public": "%s", "doors": "%s"}\n' "$mark" "$key" "$public" "$doors"
"""
"""Arguments: a mark for the line that is printed, the private key, the public key; files to make, which are not there
yet; `--`; sockets, of which it tells the inodes, 0 if it has no use for one."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What the script could do, as seen from outside. `writes_workspace` is no harm: the agent works there.

    `enters_processes`: the operator's other processes, and by them all files as they lie outside.
    """

    reads_key: bool
    reads_public_key: bool
    writes_keys: bool
    writes_settings: bool
    writes_ledger: bool
    writes_workspace: bool
    enters_processes: bool
    doors: tuple[Door, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """The script did not run in there, and why, in words."""

    why: str


def probe(
    command: Sequence[str],
    *,
    private: Path,
    public: Path,
    ledger: Path,
    workspace: Path,
    doors: Sequence[Door] = (),
    seconds: float = SECONDS,
) -> Reach | Failure:
    """Run the script behind `command`, in the workspace. All paths are absolute, and all of them are there."""
    mark = f"agentwatch-probe-{secrets.token_hex(8)} "
    first, last = ["sh", "-c", SCRIPT, "sh", mark, str(private), str(public)], ["--", *(door.path for door in doors)]
    places = (private.parent, private.parent.parent, ledger, workspace)
    with _traces(mark, places, ledger) as traces:
        inside = _ran([*command, *first, *traces, *last], workspace, mark, seconds)
        if isinstance(inside, Failure):
            return inside
        keys, settings, decisions, files, processes = (os.path.lexists(trace) for trace in traces.values())
    here = _ran([*first, *last], workspace, mark, seconds)
    if isinstance(here, Failure) or not here["key"]:
        return Failure("`sh` and `cksum` are needed out here as well")
    numbers = zip(doors, inside["doors"].split(), here["doors"].split(), strict=False)
    return Reach(
        reads_key=inside["key"] == here["key"],
        reads_public_key=inside["public"] == here["public"],
        writes_keys=keys,
        writes_settings=settings,
        writes_ledger=decisions,
        writes_workspace=files,
        enters_processes=processes,
        doors=tuple(door for door, number, there in numbers if number == there != "0"),
    )


@contextmanager
def _traces(mark: str, directories: Sequence[Path], ledger: Path) -> Iterator[dict[str, Path]]:
    """Files that the script tries to make, by the names that it has for them; whatever it made is removed.

    The last one lies in the ledger's directory as this process sees it: there for whoever may look into processes.
    """
    name = f".{mark.strip()}"
    traces = {str(directory / name): directory / name for directory in directories}
    traces[f"/proc/{os.getpid()}/root{ledger / name}-by-process"] = ledger / f"{name}-by-process"
    try:
        yield traces
    finally:
        for trace in traces.values():
            with suppress(OSError):
                trace.unlink()


def _ran(command: list[str], workspace: Path, mark: str, seconds: float) -> dict[str, str] | Failure:
    """What the script told."""
    try:
        ran = run(command, workspace, seconds)
    except OSError as error:
        return Failure(f"{clean(command[0], _LONGEST) or 'a command without a name'}: {error.strerror}")
    if ran is None:
        return Failure(f"it did not end within {seconds:g} s")
    told = _line(ran.out, mark)
    if told is None:
        return Failure(
            f"it ended with {ran.code}: {clean(ran.err.strip() or ran.out.strip() or 'it said nothing', _LONGEST)}"
        )
    return told


def _line(output: str, mark: str) -> dict[str, str] | None:
    """What the script printed, whatever the sandbox printed around it."""
    for line in output.splitlines():
        if line.startswith(mark):
            with suppress(ValueError):
                found = json.loads(line.removeprefix(mark))
                if isinstance(found, dict) and {"key", "public", "doors"} <= found.keys():
                    return {name: str(value) for name, value in found.items()}
    return None
