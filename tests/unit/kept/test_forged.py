"""What others put where answers are kept is not said, runs nothing and stops nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.concerned import is_unconcerned
from agentwatch.evidence.plumbing import ask_again
from agentwatch.kept import answers, keeping, looks, noted
from agentwatch.kept.answers import HEAD, MAGIC, SEAL_BYTES
from tests.homes import live_in

KEY, SAID = b"key", b"all is well\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where something is kept that is still true."""
    live_in(tmp_path, monkeypatch)
    (tmp_path / "looked-at").touch()
    os.utime(tmp_path / "looked-at", (1, 1))
    place = answers.place_of(KEY)
    keeping.remember(place, KEY, lambda: b"")
    write(place, Forged(tmp_path / "looked-at"))
    assert said(place) == SAID
    return place


class Forged:
    """The parts of a kept answer, each to be replaced."""

    def __init__(self, looked_at: Path) -> None:
        status = looked_at.stat()
        self.begins, self.ends, self.code = time.time() - 1, time.time() + 60, 0
        self.parts = [
            KEY,
            b"AGENTWATCH_NOT_SET",
            b"\0" + os.fsencode(looked_at),
            array("q", noted.sign_of(status)).tobytes(),
            answers.NOTHING,
            b"",
            SAID,
            b"",
        ]


VARIABLES, PATHS, SIGNS, OTHERS, MATTERS, OUT, ERRORS = range(1, 8)


def write(place: str, forged: Forged, secret: bytes = b"") -> None:
    """Put it there, sealed with the user's secret unless another is given."""
    head = HEAD.pack(MAGIC, forged.begins, forged.ends, forged.code, *map(len, forged.parts))
    rest = b"".join(forged.parts)
    Path(place).unlink(missing_ok=True)
    Path(place).touch(0o600)
    Path(place).write_bytes(answers.seal(secret or answers.secret_of(place), head, rest) + head + rest)


def said(place: str, ask: answers.Ask = ask_again) -> bytes | None:
    kept = answers.read(place, KEY, ask, is_unconcerned)
    return None if kept is None else kept[1]


def of(others: object) -> Callable[[Forged], None]:
    def forge(forged: Forged) -> None:
        forged.parts[OTHERS] = others if isinstance(others, bytes) else json.dumps(others).encode()

    return forge


def part(number: int, data: bytes) -> Callable[[Forged], None]:
    def forge(forged: Forged) -> None:
        forged.parts[number] = data

    return forge


def code(forged: Forged) -> None:
    forged.code = -5


def for_ever(forged: Forged) -> None:
    forged.begins, forged.ends = 0.0, 9e18


def about_nothing(forged: Forged) -> None:
    forged.parts[PATHS], forged.parts[SIGNS] = b"\0", b""


@pytest.mark.parametrize(
    "forge",
    [
        code,
        for_ever,
        about_nothing,
        part(OUT, b"\x1b]0;title\x07fine\n"),
        part(ERRORS, b"fine\r\n"),
        part(OUT, "fine\x9b2J\n".encode()),
        part(VARIABLES, b"=\0\0"),
        part(PATHS, b"abc"),
        part(SIGNS, b"abc"),
        part(SIGNS, b""),
        of(b"{nope"),
        of(b"[" * 200_000),
        of([[], [["x", 0]], []]),
        of([[], [[10**30, 0]], []]),
        of([[["relative", None]], [], []]),
        of({"a": 1}),
        of(7),
        of([[], [], [["/tmp", ["-c", "alias.x=!false", "x"], "0"]]]),
        of([[], [], [["/tmp", True, [["a"]], "0"]]]),
        of([[], [], [["/tmp\0", True, ["."], "0"]]]),
    ],
)
def test_of_what_is_sealed_nothing_absurd_is_said(place: str, tmp_path: Path, forge: Callable[[Forged], None]) -> None:
    forged = Forged(tmp_path / "looked-at")
    forge(forged)
    write(place, forged)
    assert said(place) is None


@pytest.mark.parametrize(
    "matters",
    [
        b"{nope",
        b"7",
        b"[]",
        b"[[], []]",
        b"[[[]], []]",
        b'[[[["/", [], 9], ["a", [], []]]], 7]',
        b"[[[[7, 8, 9], [0, 0, 0]]], []]",
    ],
)
def test_of_what_has_changed_nothing_absurd_says_that_it_does_not_matter(
    place: str, tmp_path: Path, matters: bytes
) -> None:
    forged = Forged(tmp_path / "looked-at")
    forged.parts[MATTERS] = matters
    write(place, forged)
    assert said(place) == SAID
    (tmp_path / "looked-at").write_text("another")
    assert said(place) is None


def test_what_was_sealed_with_another_secret_or_with_none_is_not_there(place: str, tmp_path: Path) -> None:
    write(place, Forged(tmp_path / "looked-at"), secret=b"another")
    assert said(place) is None
    write(place, Forged(tmp_path / "looked-at"))
    Path(answers.secret_place(place)).unlink()
    assert said(place) is None


@pytest.mark.parametrize("at", [SEAL_BYTES + 20, SEAL_BYTES + 28, SEAL_BYTES + 36, SEAL_BYTES + HEAD.size, -1])
def test_every_byte_is_sealed(place: str, at: int) -> None:
    data = bytearray(Path(place).read_bytes())
    data[at] ^= 1
    Path(place).write_bytes(data)
    assert said(place) is None


def test_git_is_asked_nothing_that_lies_in_the_file(place: str, tmp_path: Path) -> None:
    """Its paths are paths, whatever they look like."""
    asked: list[tuple[bool, list[str]]] = []

    def ask(_workspace: str, questions: list[tuple[bool, list[str]]]) -> list[str]:
        asked.extend(questions)
        return ["0"] * len(questions)

    forged = Forged(tmp_path / "looked-at")
    of([[], [], [[str(tmp_path), ["-c", f"alias.x=!touch {tmp_path}/ran", "x"], "0"]]])(forged)
    write(place, forged)
    assert said(place, ask) is None
    assert asked == []
    of([[], [], [[str(tmp_path), True, ["--help"], "0"]]])(forged)
    write(place, forged)
    assert said(place, ask) == SAID
    assert asked == [(True, ["--help"])]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_what_is_kept_and_cannot_be_written_is_no_traceback() -> None:
    run = (
        "import sys; sys.argv = ['agentwatch', 'tree']\n"
        "from agentwatch.kept import answers; answers.read = lambda *_: (0, b'all is well', b'')\n"
        "from agentwatch.__main__ import main; main()"
    )
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([sys.executable, "-c", run], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == os.EX_IOERR
    assert ran.stderr == "agentwatch: No space left on device; free space, then try again\n"


def test_a_pipe_in_place_of_a_file_of_the_system_holds_nobody_up(place: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (f"{tmp_path}/pipe", f"/proc/self/root{tmp_path}/pipe", f"/proc/..{tmp_path}/pipe"):
        assert noted.bytes_at(path) is None
        forged = Forged(tmp_path / "looked-at")
        of([[[path, ""]], [], []])(forged)
        write(place, forged)
        assert said(place) is None


def test_all_that_was_made_is_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(tmp_path, monkeypatch)
    before = os.umask(0o022)
    try:
        keeping.remember(answers.place_of(KEY), KEY, lambda: b"")
    finally:
        os.umask(before)
    made = [tmp_path / "state" / name for name in ("agentwatch", "agentwatch/answers", "agentwatch/answers.key")]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700, 0o700, 0o600]


def test_another_time_zone_of_the_system_is_another_answer(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = tmp_path / "localtime"
    zone.write_text("here")
    monkeypatch.setattr(keeping, "ZONE", str(zone))
    time.sleep(0.06)

    def look() -> bytes:
        looks.holds(time.time() + 60)
        return SAID

    keeping.remember(place, KEY, look)
    assert said(place) == SAID
    zone.write_text("there")
    assert said(place) is None
