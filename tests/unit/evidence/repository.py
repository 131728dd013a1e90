"""A real git repository for a test, with an identity and a home of its own, and returns to check in it."""

import json
import math
import os
import subprocess
import time
from pathlib import Path

from agentwatch.contracts.shapes import Contract, Handoff, Return
from agentwatch.delegation.events import Claim, Seen
from agentwatch.evidence.checker import Checker, CheckRequest, CheckResult
from agentwatch.evidence.claims import claims_of
from agentwatch.evidence.inspector import Target

HANDED_OFF = float(int(time.time()) + 100_000)
"""The time of the handoff, from which all other times count. It is later than any inode of a test."""

BEFORE = -1_000.0
AFTER = 1_000.0


class Repository:
    """A workspace under git. Times are seconds after the handoff."""

    def __init__(self, root: Path, home: Path, handed_off: float = HANDED_OFF):
        self.root, self.home, self.handed_off = root, home, handed_off
        root.mkdir(parents=True, exist_ok=True)
        home.mkdir(parents=True, exist_ok=True)

    def git(self, *arguments: str, at: float = BEFORE) -> str:
        stamp = f"@{int(self.handed_off + at)} +0000"
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        environment |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": "0"}
        for who in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{who}_NAME": "A", f"GIT_{who}_EMAIL": "a@example.org", f"GIT_{who}_DATE": stamp}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    def init(self, *arguments: str):
        self.git("init", "-q", *arguments)

    def commit(self, at: float = BEFORE):
        self.git("add", "-A", at=at)
        self.git("commit", "-q", "--allow-empty", "-m", "x", at=at)

    def write(self, path: str, text: str = "text\n", at: float = AFTER):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.touch(path, at)

    def touch(self, path: str, at: float):
        os.utime(self.root / path, (self.handed_off + at,) * 2, follow_symlinks=False)


def program(path: Path, text: str) -> Path:
    """Write an executable shell script, and return its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def packet(**more: object) -> str:
    """Return a handoff."""
    return json.dumps({"task_id": "a", "objective": "o", "evidence": [], "success_criteria": [], "risks": []} | more)


def request(
    text: str, handoff: str = "", at: float | None = HANDED_OFF, name: str = "a.return.md", former: tuple[str, ...] = ()
) -> CheckRequest:
    seen = Seen(0, math.inf, name, "", Return(Contract.RETURN_FORMAT, None, None))
    given = Seen(0, at or 0.0, "a.handoff.json", "", Handoff("a", "o")) if handoff else None
    return CheckRequest(Target("a", seen, given, at, former), claims_of(text, name, handoff))


def moved(
    asked: CheckRequest, at: float | None, returned_at: float = math.inf, handoff_at: float | None = None
) -> CheckRequest:
    """Return the request with other times; `handoff_at` is when the handoff was seen, by default its own time."""
    target = asked.target
    returned, handoff = target.returned._replace(at=returned_at), target.handoff
    handoff = handoff and handoff._replace(at=handoff_at or at or 0.0)
    return asked._replace(target=target._replace(returned=returned, handoff=handoff, handed_off_at=at))


def check(root: Path, text: str, handoff: str = "", at: float | None = HANDED_OFF) -> CheckResult:
    return Checker(root).check([request(text, handoff, at)])[0]


def only(result: CheckResult) -> Claim:
    (claim,) = result.claims
    return claim
