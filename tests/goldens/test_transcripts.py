"""Transcripts of sessions at the command line, also of a user whose files version 0.1 wrote.

Each line that begins with `$` is run again, and all its effects are compared. `$ agentwatch …` runs in this process,
with `< FILE` from a file, and `LAST-ID` is the last id that was printed; `$ cd`, `$ export` and `$ wait hours=2` change
this world, and a shell runs all others. Below a line, each with its mark, are standard output (two blanks), standard
error (`!`), the exit code unless it is 0 (`=`), and the files that were made (`+`), changed (`~`) or removed (`-`),
with modes. To add a case, write its line and run `pytest tests/goldens --update-goldens`."""

import fcntl
import json
import os
import re
import shlex
import shutil
import tarfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.goldens.world import Result, World, scrub

HERE = Path(__file__).parent


class Session:
    """Runs all lines of a transcript in one world."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch):
        self.world, self.monkeypatch = world, monkeypatch
        self.here, self.before = world.root / "shop", world.files()
        self.ids = ["0" * 32]
        """All ids that were printed, the last printed at the end."""
        self.seen: dict[str, None] = {}
        """The same ids, the first printed at the beginning."""

    def answer(self, line: str) -> str:
        """Run a line, and return the text to write below it."""
        name, _, rest = line.replace("LAST-ID", self.ids[-1]).partition(" ")
        result = Result(0, "", "")
        if name == "agentwatch":
            words, file = shlex.split(rest), ""
            if "<" in words[-2:-1]:
                words, file = words[:-2], words[-1]
            result = self.world.run(*words, stdin=(self.here / file).read_bytes() if file else b"", cwd=self.here)
        elif name == "cd":
            self.here = (self.world.root / rest).resolve()
        elif name == "export":
            variable, _, value = rest.partition("=")
            self.monkeypatch.setenv(variable, value.replace("@", str(self.world.root)))
        elif name == "wait":
            unit, _, count = rest.partition("=")
            self.world.wait(**{unit: float(count)})
        else:
            result = self.world.shell(f"{name} {rest}", self.here)
        self.world.date_files()
        for one in re.findall(r"\b[0-9a-f]{32}\b", result.out + result.err):
            self.seen.setdefault(one)
            self.ids = [*(other for other in self.ids if other != one), one]
        told = [f"  {one}".rstrip() for one in result.out.splitlines()] + [
            f"! {one}" for one in result.err.splitlines()
        ]
        if result.code:
            told.append(f"= {result.code}")
        after = self.world.files()
        if name == "agentwatch":
            for path in sorted({*self.before, *after}, key=self._order):
                if self.before.get(path) != after.get(path):
                    mark = "+" if path not in self.before else "-" if path not in after else "~"
                    told.append(f"{mark} {(after.get(path) or self.before[path])[0]} {path}")
        self.before = after
        return "".join(f"{one}\n" for one in told)

    def _order(self, path: str) -> tuple[str, str]:
        # The ids depend on the directory, so files are ordered by when their ids were first printed.
        known = {one: f"{number:04d}" for number, one in enumerate(self.seen)}
        return re.sub(r"[0-9a-f]{32}", lambda found: known.get(found[0], "new"), path), path


def play(session: Session, file: Path) -> str:
    """Run the transcript in a file, and return it with its new output."""
    lines, parts = list[str](), list[str]()
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("$ "):
            lines.append(line)
            parts.append(f"$\n{session.answer(line[2:])}")
        elif line.startswith("#"):
            parts.append(f"\n{line}\n" if parts else f"{line}\n")
    text, typed = scrub("".join(parts), session.world.root), iter(lines)
    return tidy(re.sub(r"^\$$", lambda _: next(typed), text, flags=re.MULTILINE))


def tidy(text: str) -> str:
    """Remove differences between Python versions in the text of `--help`, and lines that are about to go."""
    text = re.sub(r"^  (  agentwatch doctor|teamwork) .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\(choose from .*\)", lambda one: one[0].replace("'", ""), text)
    text = re.sub(
        r"^[! ] usage: .*(?:\n[! ] {9,}\S.*)+", lambda one: re.sub(r"\n. +", " ", one[0]), text, flags=re.MULTILINE
    )
    return re.sub(r"^(  +)-(\w) ([A-Z]+), (--\w+) \3", r"\1-\2, \4 \3", text, flags=re.MULTILINE)


@pytest.mark.parametrize("group", sorted(path.stem for path in (HERE / "commands").glob("*.txt")))
def test_commands_answer_as_in_the_transcript(tmp_path, golden, monkeypatch, group):
    world = World(tmp_path / "w", monkeypatch)
    world.use_key()
    world.copy_shop()
    golden.check(f"commands/{group}.txt", play(Session(world, monkeypatch), HERE / "commands" / f"{group}.txt"))


ROOT = Path("/var/tmp/agentwatch-state-of-0.1")
"""The home of a user of version 0.1, whose files are in `state.tar.gz`: their ids follow from this real path."""
is_there = pytest.mark.skipif(os.path.realpath(ROOT) != str(ROOT), reason="/var/tmp is a link here")


@pytest.fixture
def old(monkeypatch):
    """Return this user, a minute after version 0.1 was used. A lock lets one test at a time use the path."""
    with Path(f"{ROOT}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(ROOT, ignore_errors=True)
        ROOT.mkdir(mode=0o700)
        with tarfile.open(HERE / "state" / "state.tar.gz") as archive:
            for one in archive.getmembers():
                one.uid, one.gid, one.uname, one.gname = os.getuid(), os.getgid(), "", ""
                archive.extract(one, ROOT, filter="tar")
        made = World(ROOT, monkeypatch)
        made.now = datetime.fromisoformat((ROOT / "now").read_text()) + timedelta(minutes=1)
        yield made
        shutil.rmtree(ROOT)


@is_there
def test_nothing_of_an_old_state_is_lost(old, golden, monkeypatch):
    """This is about ledger, keys, receipts, trust, settings, history, tasks put aside, statements, a worktree, and
    files that `init` installed."""
    golden.check("state/state.txt", play(Session(old, monkeypatch), HERE / "state" / "state.txt"))


@is_there
def test_old_hooks_and_servers_are_known_as_ours(old):
    shop = old.root / "shop"
    out = old.run("doctor", cwd=shop).out
    assert "`agentwatch init` mends it" in out
    old.run("init", "--agent", "opencode", "--write", cwd=shop)
    assert old.run("init", "--agent", "claude-code", "--write", cwd=shop).code == 0
    hooks = json.loads((shop / ".claude" / "settings.json").read_text())["hooks"]
    commands = [one["command"] for groups in hooks.values() for group in groups for one in group["hooks"]]
    # New entries replace the old ones.
    assert sum("agentwatch" in one for one in commands) == 3
    assert not any("/opt/" in one for one in commands)
    # Twice, as the first removal only takes back the last writing.
    for agent in ("claude-code", "opencode", "codex") * 2:
        old.run("init", "--agent", agent, "--remove", "--write", cwd=shop)
    assert json.loads((shop / ".claude" / "settings.json").read_text())["hooks"] == {
        "PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "make format"}]}]
    }
    for name in ("CLAUDE.md", "AGENTS.md", ".mcp.json", "opencode.json"):
        assert not (shop / name).exists() or "agentwatch" not in (shop / name).read_text()
