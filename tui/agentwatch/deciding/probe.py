"""What an agent could do to decisions from inside its sandbox: a small script runs in there, and its effects are looked
at from outside.

The script is for `sh`, which every sandbox and nearly every container has. What it says is believed only as far as it
can be seen here: a container may have other files under the same names, and writes of its own that nobody else sees.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentwatch.text import clean

SECONDS: Final = 120.0
"""A container may have to be fetched first."""

_LONGEST: Final = 300

SCRIPT: Final = r"""
sum() { if [ -f "$1" ]; then cksum < "$1" 2>/dev/null || echo; else echo; fi; }
put() { if ( : > "$1" ) 2>/dev/null; then echo true; else echo false; fi; }
printf '\n%s{"key": "%s", "public": "%s", "keys": %s, "ledger": %s, "workspace": %s}\n' \
  "$1" "$(sum "$2")" "$(sum "$3")" "$(put "$4")" "$(put "$5")" "$(put "$6")"
"""
"""Arguments: a mark for the line that is printed, the private key, the public key, and a file that is not there yet in
each of the key directory, the ledger and the workspace."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What the script could do, as seen from outside. `writes_workspace` is no harm: the agent works there."""

    reads_key: bool
    reads_public_key: bool
    writes_keys: bool
    writes_ledger: bool
    writes_workspace: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """The script did not run in there, and why, in words."""

    why: str


def probe(
    command: Sequence[str], *, private: Path, public: Path, ledger: Path, workspace: Path, seconds: float = SECONDS
) -> Reach | Failure:
    """Run the script behind `command`, in the workspace. All paths are absolute, and all of them are there."""
    mark = f"agentwatch-probe-{secrets.token_hex(8)} "
    with _traces(mark, private.parent, ledger, workspace) as traces:
        arguments = ["sh", "-c", SCRIPT, "sh", mark, *map(str, (private, public, *traces))]
        ran = _run([*command, *arguments], workspace, seconds)
        if isinstance(ran, Failure):
            return ran
        inside = _line(ran.stdout, mark)
        if inside is None:
            said = clean(ran.stderr.strip() or ran.stdout.strip() or "it said nothing", _LONGEST)
            return Failure(f"it ended with {ran.returncode}: {said}")
        left = [os.path.lexists(trace) for trace in traces]
    outside = _run(["sh", "-c", SCRIPT, "sh", mark, str(private), str(public), *["/"] * 3], workspace, seconds)
    here = None if isinstance(outside, Failure) else _line(outside.stdout, mark)
    if here is None or not here["key"]:
        return Failure("`sh` and `cksum` are needed out here as well")
    return Reach(inside["key"] == here["key"], inside["public"] == here["public"], *left)


@contextmanager
def _traces(mark: str, *directories: Path) -> Iterator[list[Path]]:
    """Names for files that the script tries to make; whatever it made is removed."""
    traces = [directory / f".{mark.strip()}" for directory in directories]
    try:
        yield traces
    finally:
        for trace in traces:
            with suppress(OSError):
                trace.unlink()


def _run(command: list[str], workspace: Path, seconds: float) -> subprocess.CompletedProcess[str] | Failure:
    try:
        process = subprocess.Popen(  # noqa: S603  the operator's own command line
            command,
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return Failure(f"{clean(command[0], _LONGEST)}: {error.strerror}")
    with process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # With all that it has started: a sandbox is rarely one process.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return Failure(f"it did not end within {seconds:g} s")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _line(output: str, mark: str) -> dict[str, Any] | None:
    """What the script printed, whatever the sandbox printed around it."""
    for line in output.splitlines():
        if line.startswith(mark):
            with suppress(ValueError):
                found = json.loads(line.removeprefix(mark))
                return found if isinstance(found, dict) and {"key", "public"} <= found.keys() else None
    return None
