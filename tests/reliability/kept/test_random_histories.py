"""Whatever happens between two calls, what is kept says what a look at everything says: byte for byte.

`AGENTWATCH_ROUNDS=100 pytest tests/reliability/kept` goes through so many histories, each with other random numbers.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agentwatch.history.store import History
from agentwatch.place import state_directory
from agentwatch.presence import note_first_watch
from agentwatch.sources.files.source import FilesSource
from tests.unit.claude_code.building import Store, meta, packet, report

ROUNDS = int(os.environ.get("AGENTWATCH_ROUNDS", "1"))
STEPS = 60
_ROOT = Path(__file__).parents[3]
_COMMANDS = (
    ["tree", "--json"],
    ["tree"],
    ["tree", "--json", "--where", "state:failed"],
    ["pending", "--json"],
    ["pending"],
    ["check", "--format", "json"],
    ["wait", "--timeout", "0", "a"],
    ["wait", "--timeout", "0", "job"],
    ["wait", "--timeout", "0", "task-1"],
)
_PLACES = (
    "a.handoff.json",
    "a.return.md",
    "job/handoff.json",
    "job/return.md",
    "job/deep/b.return.md",
    "note.md",
    "far/c/handoff.json",
    "far/c/return.md",
    "far/d/return.md",
)
_CLAIMED = ("src/a.py", "docs/design.md", "src/new/b.py")
_STATES = ("SUCCESS", "PARTIAL", "BLOCKED")
"""All as long as the others."""


class Teller:
    """One process that says what commands say."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.kept.teller"],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, arguments: list[str], now: float, *, keeps: bool | str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"arguments": arguments, "now": now, "keeps": keeps}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> tuple[list[Any], bool]:
        """The exit code, what was written to both streams; and whether that was said before."""
        said, again, _ = self.told()
        return said, again

    def told(self) -> tuple[list[Any], bool, int]:
        """The same, and how many values of files and claims were known."""
        assert self._process.stdout is not None
        *said, again, known = json.loads(self._process.stdout.readline())
        return said, again, known

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Scene:
    """A workspace with its home, and the things that may happen to it."""

    def __init__(self, root: Path, environment: dict[str, str], seed: int) -> None:
        self.dice = random.Random(seed)
        self.root, self.workspace = root, root / "work"
        self.workspace.mkdir()
        self.home = root / "home"
        self.ahead = 0.0
        """How far the clock is ahead, in seconds."""
        self.tellers = [Teller(environment), Teller(environment)]
        self.store = Store(root)
        self.store.home = self.home / ".claude"
        self.session = self.store.session()
        self.session.asked("Do it all.")
        self.children = 0
        self.happened: list[str] = []
        self.again = self.known = 0
        self.last: tuple[list[Any], list[Any]] = ([], [])
        """What was said, and what a look said."""

    @property
    def answers(self) -> Path:
        return state_directory(self.workspace).parent / "answers"

    @property
    def now(self) -> float:
        return time.time() + self.ahead

    def check(self) -> None:
        """What is kept says what a look says, and says it again."""
        command = [*self.dice.choice(_COMMANDS), str(self.workspace)]
        for _ in range(self.dice.choice((1, 2, 2, 3))):
            first, second = self.dice.sample(self.tellers, 2)
            if self.ahead:
                # A clock that is ahead has no tick in which two changes look alike; that of the files has one.
                time.sleep(0.03)
            now = self.now
            first.ask(command, now, keeps=self.dice.choice((True, "index")))
            said, again, known = first.told()
            second.ask(command, now, keeps=False)
            looked, _ = second.answer()
            self.last = said, looked
            assert said == looked, (command, again, known, self.happened)
            self.again += again
            self.known += known

    def run(self, *arguments: str) -> None:
        """A command that changes something."""
        self.tellers[0].ask(list(arguments), self.now, keeps=False)
        self.tellers[0].answer()

    # What may happen

    def write(self) -> None:
        place, state = self.dice.choice(_PLACES), self.dice.choice(_STATES)
        self._put(place, self._text(place, state))

    def write_in_one_tick(self) -> None:
        """Twice right after each other, as long as before; perhaps with the time that it had."""
        place = self.dice.choice(_PLACES)
        self._put(place, self._text(place, self.dice.choice(_STATES)))
        with suppress(OSError):
            before = os.lstat(self.workspace / place)
            if self.dice.random() < 0.5:
                self.check()
            with (self.workspace / place).open("r+") as file:
                file.write(self._text(place, self.dice.choice(_STATES)))
            if self.dice.random() < 0.5:
                os.utime(self.workspace / place, ns=(before.st_atime_ns, before.st_mtime_ns))

    def work(self) -> None:
        """A claimed file comes, changes or goes."""
        place = self.dice.choice(_CLAIMED)
        if self.dice.random() < 0.3:
            self._remove(place)
        else:
            self._put(place, "x" * self.dice.randrange(3))

    def remove(self) -> None:
        self._remove(self.dice.choice((*_PLACES, "job", "src", "docs")))

    def rename(self) -> None:
        old, new = self.dice.sample((*_PLACES, "job", "moved", "src"), 2)
        with suppress(OSError):
            (self.workspace / old).rename(self.workspace / new)

    def link(self) -> None:
        place, target = self.dice.choice((*_PLACES, *_CLAIMED, "job")), self.dice.choice(("a.return.md", "job", "/etc"))
        self._remove(place)
        with suppress(OSError):
            (self.workspace / place).symlink_to(target)

    def make_directory(self) -> None:
        place = self.workspace / self.dice.choice((*_PLACES, *_CLAIMED, "src/new"))
        with suppress(OSError):
            place.mkdir(parents=True)

    def commit(self) -> None:
        if not (self.workspace / ".git").is_dir():
            self._git("init", "-q", "-b", "main")
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "work")

    def check_out(self) -> None:
        way = self.dice.choice((["checkout", "-q", "HEAD~1"], ["checkout", "-q", "main"], ["stash", "-q", "-u"]))
        self._git(*way, *(["--", "."] if way[1] == "other" else []))

    def tinker(self) -> None:
        """A file is changed of which nobody speaks, so that only git tells of it."""
        self._put(self.workspace / "lib.py", self.dice.choice("xyz"))

    def ignore(self) -> None:
        self._put(".gitignore", self.dice.choice(("src\n", "*.md\n", "")))

    def set(self) -> None:
        self._put(
            self.home / ".config" / "agentwatch" / "config.toml",
            self.dice.choice(("stale_after = 1\n", "max_retries = 0\n", 'enforcement = "lenient"\n', "")),
        )

    def decide(self) -> None:
        self.run("decide", "--abort", "--yes", "--", self.dice.choice(("a", "job", "task-1")), str(self.workspace))

    def acknowledge(self) -> None:
        self.run("ack", self.dice.choice(("a", "job")), str(self.workspace), "--yes")

    def remember(self) -> None:
        """A screen has shown it, and remembers what it saw."""
        state = state_directory(self.workspace)
        files, history = FilesSource(self.workspace), History.open(self.workspace, state)
        history.record(files.scan().observations, files.content)
        history.close()
        if self.dice.random() < 0.5:
            note_first_watch(state, time.time() - self.dice.choice((0.0, 3_600.0, 90_000.0)))

    def talk(self) -> None:
        """An agent's session goes on."""
        if self.dice.random() < 0.5:
            self.children += 1
            call, agent_id = f"toolu_{self.children}", f"a{self.children:016x}"
            self.session.delegated(call, packet(f"task-{self.children}"))
            agent = self.store.agent(agent_id, meta(call))
            agent.asked(packet(f"task-{self.children}"))
            if self.dice.random() < 0.9:
                agent.said(report(self.dice.choice(_STATES)))
                self.session.returned(call, agent_id, report("SUCCESS"))
        if self.dice.random() < 0.9:
            # One that works tells seconds.
            self.session.said("Going on.")
        self.store.save()

    def pass_time(self) -> None:
        self.ahead = self.dice.choice((0.0, 0.0, 61.0, 700.0, 3_700.0, 90_000.0, 40 * 86_400.0, -30.0))

    def damage(self) -> None:
        """Something happens to what is kept."""
        if not self.answers.is_dir() or self.dice.random() < 0.1:
            shutil.rmtree(self.answers, ignore_errors=True)
            return
        for path in [path for path in self.answers.iterdir() if not path.is_symlink()]:
            data = bytearray(path.read_bytes())
            way = self.dice.randrange(6)
            if way == 0:
                del data[self.dice.randrange(len(data) + 1) :]
            elif way == 1 and data:
                data[self.dice.randrange(len(data))] ^= 1 << self.dice.randrange(8)
            elif way == 2:
                data[:20] = b"agentwatch answer 9\n"
            elif way == 3:
                data = bytearray(min(self.answers.iterdir()).read_bytes())
            elif way == 4:
                path.chmod(0o666)
            path.write_bytes(data)
            if way == 5:
                path.rename(self.root / "elsewhere")
                path.symlink_to(self.root / "elsewhere")

    def all_at_once(self) -> None:
        """Two commands look while something happens."""
        command = [*self.dice.choice(_COMMANDS), str(self.workspace)]
        for teller in self.tellers:
            teller.ask(command, self.now, keeps=self.dice.choice((True, "index")))
        self.dice.choice((self.write, self.work, self.remove, self.rename, self.damage))()
        for teller in self.tellers:
            teller.answer()

    def _text(self, place: str, state: str) -> str:
        if place.endswith(".json"):
            task_id = {"a": "a", "f": "c"}.get(place[0], "job")
            return json.dumps({"task_id": task_id, "objective": f"Do it: {state}."})
        if place == "note.md":
            return f"# Note\n\n{state}\n"
        made = f"- {self.dice.choice(_CLAIMED)}"
        return (
            f"## Status\nstate: {state}\nsummary: Did it.\nretry_recommended: no\n\n## Deliverables\n{made} - it\n\n"
            "## Evidence\n- docs/design.md - read\n\n## Runtime Attestation\nruntime_model_reported: m\n"
            f"runtime_mode_reported: code\nfiles_created:\n{made}\nfiles_modified:\n- (none)\n"
        )

    def _put(self, place: Path | str, text: str) -> None:
        path = self.workspace / place
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.dice.random() < 0.5:
                path.write_text(text)
            else:
                beside = path.with_name(".beside")
                beside.write_text(text)
                beside.rename(path)

    def _remove(self, place: str) -> None:
        path = self.workspace / place
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _git(self, *arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(self.workspace), *who, *arguments], check=False, capture_output=True)


@contextmanager
def scene(root: Path, seed: int) -> Iterator[Scene]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "CLAUDE", "CODEX"))
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        patch.setenv("HOME", str(root / "home"))
        made = Scene(root, environment | {"HOME": str(root / "home")}, seed)
        try:
            yield made
        finally:
            for teller in made.tellers:
                teller.end()


def _happenings(made: Scene) -> list[Callable[[], None]]:
    often = [made.write, made.work, made.talk, made.pass_time, made.damage]
    return [
        *often,
        *often,
        made.write_in_one_tick,
        made.remove,
        made.rename,
        made.link,
        made.make_directory,
        made.commit,
        made.check_out,
        made.tinker,
        made.ignore,
        made.set,
        made.decide,
        made.acknowledge,
        made.remember,
        made.all_at_once,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(ROUNDS))
def test_what_is_kept_says_what_a_look_at_everything_says(tmp_path: Path, number: int) -> None:
    seed = random.randrange(2**32) + number
    with scene(tmp_path, seed) as made:
        for _ in range(STEPS):
            for _ in range(made.dice.choice((0, 1, 1, 2))):
                happening = made.dice.choice(_happenings(made))
                made.happened.append(happening.__name__)
                happening()
            made.check()
        # Else nothing was tried.
        assert made.again > 0
        assert made.known > 0
