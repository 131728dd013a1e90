"""What a command said is said again where nothing has changed, and only there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentwatch.place import state_directories
from agentwatch.presence import note_first_watch
from tests.homes import live_in
from tests.reliability.kept.test_random_histories import Teller
from tests.unit.agents.documents import packet, returned
from tests.unit.claude_code.building import Store

TREE, HOUR = ["tree", "--json"], 3_600.0


class Shop:
    """A workspace under git with one task, and who says what commands say of it."""

    def __init__(self, root: Path) -> None:
        self.root, self.workspace = root, root / "shop"
        (self.workspace / "src").mkdir(parents=True)
        (self.workspace / "api.handoff.json").write_text(packet())
        (self.workspace / "api.return.md").write_text(returned("SUCCESS"))
        (self.workspace / "lib.py").write_text("x = 1\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "work")
        note_first_watch(state_directories() / "other", time.time())
        self.store = Store(root)
        self.store.workspace = self.store.cwd = self.workspace
        self.store.home = root / ".claude"
        self.session = self.store.session()
        self.session.asked("Do it.")
        self.session.said("Done.")
        self.store.save()
        self.teller = Teller(dict(os.environ))

    def git(self, *arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(self.workspace), *who, *arguments], check=True, capture_output=True)

    def ask(self, command: list[str], *, later: float = 0.0, keeps: bool = True) -> tuple[list[object], bool]:
        # What was written just now may change once more without anybody seeing it: such an answer is not kept.
        time.sleep(0.06)
        self.teller.ask([*command, str(self.workspace)], time.time() + later, keeps=keeps)
        return self.teller.answer()

    def settled(self, command: list[str]) -> list[object]:
        """What a command says, once it is said again."""
        said, again = self.ask(command)
        if not again:
            said, again = self.ask(command)
        assert again
        return said


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    live_in(tmp_path, monkeypatch)
    made = Shop(tmp_path)
    yield made
    made.teller.end()


@pytest.mark.parametrize("command", [TREE, ["tree"], ["pending", "--json"], ["check", "--format", "json"]])
def test_a_command_says_again_what_it_said(shop: Shop, command: list[str]) -> None:
    assert shop.settled(command) == shop.ask(command, keeps=False)[0]


def written(shop: Shop) -> None:
    (shop.workspace / "api.return.md").write_text(returned("PARTIAL"))


def written_as_if_before(shop: Shop) -> None:
    path = shop.workspace / "api.return.md"
    before = path.stat()
    path.write_text(path.read_text().replace("SUCCESS", "PARTIAL"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def claimed(shop: Shop) -> None:
    (shop.workspace / "src" / "api.py").write_text("x = 1\n")


def come(shop: Shop) -> None:
    (shop.workspace / "new").mkdir()


def linked(shop: Shop) -> None:
    (shop.workspace / "src").rmdir()
    (shop.workspace / "src").symlink_to("/")


def committed(shop: Shop) -> None:
    shop.git("commit", "-q", "--allow-empty", "-m", "more")


def untracked(shop: Shop) -> None:
    (shop.workspace / ".gitignore").write_text("*.md\n")


def unclaimed(shop: Shop) -> None:
    """Only git tells of it."""
    with (shop.workspace / "lib.py").open("r+") as file:
        file.write("y = 2\n")


def configured(shop: Shop) -> None:
    directory = shop.root / ".config" / "agentwatch"
    directory.mkdir(parents=True)
    (directory / "config.toml").write_text("max_retries = 0\n")


def said(shop: Shop) -> None:
    shop.session.asked("Go on.")
    shop.store.save()


def decided(shop: Shop) -> None:
    shop.teller.ask(["decide", "--abort", "--yes", "shop.api", str(shop.workspace)], time.time(), keeps=False)
    shop.teller.answer()


CHANGES = [
    written,
    written_as_if_before,
    claimed,
    come,
    linked,
    committed,
    untracked,
    unclaimed,
    configured,
    said,
    decided,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_has_changed_is_looked_at_again(shop: Shop, change: Callable[[Shop], None]) -> None:
    shop.settled(TREE)
    change(shop)
    told, again = shop.ask(TREE)
    assert not again
    assert told == shop.ask(TREE, keeps=False)[0]


def test_what_was_written_a_moment_ago_is_not_kept(shop: Shop) -> None:
    shop.settled(TREE)
    written(shop)
    shop.teller.ask([*TREE, str(shop.workspace)], time.time(), keeps=True)
    shop.teller.answer()
    assert not shop.ask(TREE)[1]


def test_words_that_depend_on_the_clock_are_said_anew_when_they_change(shop: Shop) -> None:
    shop.settled(TREE)
    # It was alive a moment ago, and then it was not.
    assert not shop.ask(TREE, later=HOUR)[1]
    assert shop.ask(TREE, later=HOUR + 1.0)[1]
    # Nobody knows what was kept for later.
    assert not shop.ask(TREE)[1]


def test_what_tells_seconds_is_not_kept(shop: Shop) -> None:
    shop.session.used("Bash", "toolu_1", command="make")
    shop.store.save()
    assert not any(shop.ask(TREE)[1] for _ in range(3))


@pytest.mark.parametrize(
    ("variable", "again"), [("XDG_CONFIG_HOME", False), ("COPILOT_HOME", False), ("TZ", False), ("SHLVL", True)]
)
def test_a_variable_counts_if_it_was_read(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, variable: str, again: bool
) -> None:
    shop.settled(TREE)
    monkeypatch.setenv(variable, "/elsewhere")
    shop.teller.end()
    shop.teller = Teller(dict(os.environ))
    assert shop.ask(TREE)[1] is again


def test_what_is_kept_is_for_the_user_alone(shop: Shop) -> None:
    for number in range(3):
        shop.ask(["tree", "--json", *["--fail"] * number])
    kept = list((state_directories() / "answers").iterdir())
    assert len(kept) > 1
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}


@pytest.mark.parametrize("way", ["cut", "flipped", "empty", "another version", "open to others", "a directory"])
def test_what_is_damaged_is_as_if_it_were_not_there(shop: Shop, way: str) -> None:
    shop.settled(TREE)
    every = [*(state_directories() / "answers").iterdir()]
    assert every
    for kept in every:
        data = kept.read_bytes()
        middle = len(data) // 2
        changed = {
            "cut": data[:-1],
            "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "empty": b"",
            "another version": re.sub(rb"agentwatch (answer|index) ", rb"agentwatch \1_", data, count=1),
        }
        kept.write_bytes(changed.get(way, data))
        if way == "open to others":
            kept.chmod(0o666)
        if way == "a directory":
            kept.unlink()
            kept.mkdir()
    told, again = shop.ask(TREE)
    assert not again
    assert json.loads(str(told[1]))["tasks"]
