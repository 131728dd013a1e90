"""A user with a home, a fixed clock and workspaces, who runs `agentwatch` in this process."""

import io
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
import time_machine

import agentwatch
from agentwatch.cli import run as run_command

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PEM = f"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI{'AcHB' * 10}AcH\n-----END PRIVATE KEY-----\n"
"""A throw-away key: its signatures are the same in each run."""

SHOP = Path(__file__).parent / "commands" / "shop"


class Result(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str


def run(*words: str, stdin: bytes = b"") -> Result:
    """Run `agentwatch` in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(given), "utf-8", write_through=True) for given in (stdin, b"", b"")]
    code: object
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["agentwatch", *words])
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        try:
            code = run_command(words)
        except SystemExit as ended:
            code = ended.code or 0
    assert isinstance(code, int)
    for stream in streams:
        stream.seek(0)
    return Result(code, *(stream.read() for stream in streams[1:]))


class World:
    """Directories below `root`: workspaces, and `home` with settings, keys and state."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch):
        self.root, self.home, self.now = Path(os.path.realpath(root)), Path(os.path.realpath(root)) / "home", NOON
        self._monkeypatch = monkeypatch
        tools, self.config = self.root / "bin", self.home / ".config" / "agentwatch"
        for directory in (self.home, tools):
            directory.mkdir(parents=True, exist_ok=True)
        for name in ("sh", "git", "cat", "cp", "mv", "rm", "mkdir", "chmod", "ln", "printf", "mkfifo", "sed"):
            (tools / name).symlink_to(shutil.which(name) or name)
        # `pending` prints command lines with this name; these tests never start it.
        (tools / "agentwatch").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m agentwatch "$@"\n')
        (tools / "agentwatch").chmod(0o755)
        values = {"HOME": self.home, "PATH": tools, "LOGNAME": "ada", "TZ": "UTC", "COLUMNS": "100", "LANG": "C.UTF-8"}
        values |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": "2029-12-31T00:00:00Z", "PYTHONUTF8": "1"}
        values |= {"GIT_COMMITTER_DATE": "2029-12-31T00:00:00Z", "TERM": "dumb"}
        for name in list(os.environ):
            monkeypatch.delenv(name)
        for name, value in values.items():
            monkeypatch.setenv(name, str(value))
        time.tzset()

    def copy_shop(self, sessions: bool = True) -> Path:
        """Copy a workspace with tasks that are done, failed, blocked, broken and false, and sessions of Claude Code."""
        shop = self.root / "shop"
        shutil.copytree(SHOP, shop)
        if sessions:
            place = self.home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(shop))
            shutil.copytree(SHOP.parent / "sessions", place)
            shutil.copytree(SHOP.parent / "payloads", self.root / "payloads")
            for path in (*place.rglob("*.jsonl"), *(self.root / "payloads").iterdir()):
                text = path.read_text().replace("@SHOP@", str(shop)).replace("@SESSIONS@", str(place))
                path.write_text(text)
        self.date_files()
        self.wait(minutes=5)
        return shop

    def use_key(self, pem: str = PEM):
        """Use a signing key that is the same in each run."""
        keys = self.config / "keys"
        keys.mkdir(mode=0o700, parents=True)
        (keys / "decisions.key").write_text(pem)
        (keys / "decisions.key").chmod(0o600)

    def run(self, *words: str, stdin: bytes = b"", cwd: Path | None = None) -> Result:
        """Run `agentwatch` as this user, at the time of this world."""
        umask = os.umask(0o022)
        try:
            with self._monkeypatch.context() as patch, time_machine.travel(self.now, tick=False):
                patch.chdir(cwd or self.root)
                patch.setenv("PWD", str(cwd or self.root))
                return run(*words, stdin=stdin)
        finally:
            os.umask(umask)

    def shell(self, line: str, cwd: Path | None = None) -> Result:
        """Run a shell command."""
        done = subprocess.run(
            ["/bin/sh", "-c", f"umask 022; {line}"], cwd=cwd or self.root, capture_output=True, check=False
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def date_files(self):
        """Date the files that were written since the last call, as the system clock is not this world's clock."""
        at = self.now.timestamp()
        if self.now < NOON:
            return
        for place, directories, files in os.walk(self.root):
            # Of the home, only sessions have times of this world.
            names = {".claude"} & {*directories} if place == str(self.home) else {*directories, *files} - {".git"}
            directories[:] = names & {*directories}
            for path in (Path(place, name) for name in names):
                status = path.lstat()
                is_old = status.st_mtime < NOON.timestamp() - 86_400 * 100
                if is_old and (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                    os.utime(path, (at, at))

    def wait(self, **span: float):
        """Let time pass."""
        self.now += timedelta(**span)

    def use_system_clock(self):
        """Use the system clock, for processes that a test starts, and date the files of workspaces five minutes ago."""
        self.now = datetime.now(UTC)
        before = self.now.timestamp() - 300
        for path in self.root.rglob("*"):
            if self.home not in path.parents and path.is_file():
                os.utime(path, (before, before))

    def files(self) -> dict[str, tuple[str, bytes]]:
        """Return each file and directory with its mode and its bytes, without caches and locks of databases."""
        found = {}
        for place, directories, files in os.walk(self.root):
            within = "" if place == str(self.root) else f"{os.path.relpath(place, self.root)}/"
            for name in (*directories, *files):
                path = Path(place, name)
                if f"{within}{name}" == "bin" or name.endswith((".sqlite-wal", ".sqlite-shm", "-journal")):
                    continue
                mode = path.lstat().st_mode
                data = path.read_bytes() if stat.S_ISREG(mode) and os.access(path, os.R_OK) else b""
                found[f"{within}{name}{'/' * path.is_dir()}"] = f"{mode & 0o7777:o}", data
            directories[:] = {*directories} - {".git"} - ({"bin"} if not within else set())
        return found


SCRUBBED = (
    (r"[^\s'\"`]*/agentwatch/__main__\.py(['\",\s+-]+)[^\s'\"`]+", r"MAIN\1PLACES"),
    (r"[\w.+-]+-[0-9a-f]{16}(?![0-9a-f-])", "WORKSPACE-ID"),
)


def scrub(text: str, root: Path) -> str:
    """Replace text that depends on the directory: paths, and ids that follow from them, which get numbers in order."""
    text = text.replace(str(root), "@").replace(re.sub(r"[^A-Za-z0-9]", "-", str(root)), "-@")
    text = text.replace(sys.executable, "PYTHON")
    for pattern, word in SCRUBBED:
        text = re.sub(pattern, word, text)
    text = text.replace(str(Path(agentwatch.__file__).parent), "PACKAGE")
    text = re.sub(r'"(payload|sig|prev_sha256)": ?"[\w+/=-]+"', r'"\1": "…"', text)
    ids: dict[str, str] = {}
    for one in re.findall(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", text):
        ids.setdefault(one, f"ID{len(ids) + 1}")
    for one, name in ids.items():
        text = text.replace(one, name)
        text = re.sub(rf"\b{one[:8]}\b", f"{name}[:8]", text)
    return text
