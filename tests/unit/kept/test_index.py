"""What files hold and returns claim is known by the next process, and whatever was done to it is as if it were not."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentwatch.kept import answers, index
from agentwatch.kept.index import Index, packed, unpacked
from agentwatch.place import state_directories
from tests.homes import live_in


class Word(StrEnum):
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    word: Word | None = None


@dataclass(frozen=True, slots=True)
class One:
    name: str


class Pair(NamedTuple):
    left: Thing
    right: One


KINDS = (Word, Thing, One, Pair)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(tmp_path, monkeypatch)
    monkeypatch.setattr(index, "WORTH", 3)


def loaded(about: str = "here", wanted: int = 3) -> Index[str, object]:
    made = Index[str, object]("things", (about,), KINDS)
    made.load(wanted)
    return made


def keep(values: dict[str, object], about: str = "here") -> None:
    """Look for all of these, and keep those that were not known."""
    made = loaded(about)
    for key, value in values.items():
        if made.get(key) != value:
            made.put(key, value)
    made.save()


def known(about: str = "here") -> dict[str, object]:
    made = loaded(about)
    return {key: value for key in "abcdefghij" if (value := made.get(key)) is not None}


def files() -> list[Path]:
    return sorted((state_directories() / answers.NAME).iterdir())


ALL: dict[str, object] = {"a": Thing("a", Word.YES), "b": Pair(Thing("\udc80"), One("x")), "c": (1, None, "c")}


def test_what_was_kept_is_known() -> None:
    keep(ALL)
    assert known() == ALL


def test_of_a_few_values_nothing_is_kept_or_looked_for() -> None:
    few = loaded(wanted=2)
    for key, value in ALL.items():
        few.put(key, value)
    few.save()
    assert not (state_directories() / answers.NAME).exists()
    keep(ALL)
    assert loaded(wanted=2).get("a") is None


def test_what_comes_later_is_written_beside_the_rest() -> None:
    keep(ALL)
    (first,) = files()
    before = first.read_bytes()
    keep(ALL | {"a": One("new"), "d": One("d")})
    assert first.read_bytes() == before
    assert known() == ALL | {"a": One("new"), "d": One("d")}
    assert len(files()) == 2


def test_where_much_has_come_all_is_written_again_without_what_nobody_asked_for() -> None:
    keep(ALL)
    keep({key: One(key) for key in "adefg"})
    assert known() == {key: One(key) for key in "adefg"}


def test_nothing_is_written_where_nothing_is_new() -> None:
    keep(ALL)
    before = [path.stat().st_ino for path in files()]
    keep(ALL)
    assert [path.stat().st_ino for path in files()] == before


def test_another_thing_is_not_known() -> None:
    keep(ALL)
    assert known("there") == {}


def test_what_came_later_to_other_values_is_not_there() -> None:
    """Two write at once: of one the values, of the other what came to those before."""
    keep(ALL)
    keep(ALL | {"d": One("d")})
    later = files()[1].read_bytes()
    keep({key: One(key) for key in "abcdefg"})
    files()[1].write_bytes(later)
    assert known() == {key: One(key) for key in "abcdefg"}


def test_values_of_another_code_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(ALL)
    monkeypatch.setattr(index, "_code", lambda: "another")
    assert known() == {}


def test_a_process_whose_code_was_replaced_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_code_now", lambda: "newer")
    keep(ALL)
    assert files() == []


def test_where_the_code_is_not_known_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_CODE", ("nowhere",))
    assert index._code_now() == ""
    monkeypatch.setattr(index, "_code", lambda: "")
    keep(ALL)
    assert not (state_directories() / answers.NAME).exists()


@pytest.mark.parametrize("later", [86_401.0, -10.0])
def test_after_a_day_or_before_it_was_made_nothing_is_known(monkeypatch: pytest.MonkeyPatch, later: float) -> None:
    keep(ALL)
    at = time.time() + later
    monkeypatch.setattr(time, "time", lambda: at)
    assert known() == {}


def test_what_is_written_again_and_again_is_known_for_a_day_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for hours, is_known in ((0, False), (10, True), (20, True), (30, False)):
        monkeypatch.setattr(time, "time", lambda hours=hours: now + hours * 3_600)
        made = loaded()
        assert (made.get("a") is not None) == is_known, hours
        if not hours:
            made.put("a", ALL["a"])
        # So much is new that all is written again.
        for number in range(20):
            made.put(f"{hours} {number}", number)
        made.save()


def test_too_much_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LARGEST", 100)
    keep(ALL)
    assert files() == []


def test_a_full_disk_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index, "put", full)
    keep(ALL)
    assert files() == []


def test_every_byte_is_sealed() -> None:
    keep(ALL)
    keep(ALL | {"d": One("d")})
    for path in files():
        data = path.read_bytes()
        # The second file belongs to the first: without that, it says nothing.
        left = ALL if path == files()[1] else {}
        for at in range(0, len(data), 7):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            assert known() == left
            path.write_bytes(data[:at])
            assert known() == left
        path.write_bytes(data)
    assert known() == ALL | {"d": One("d")}


def _open_to_others(path: Path) -> None:
    path.chmod(0o666)


def _a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _without_secret(path: Path) -> None:
    Path(answers.secret_place(str(path))).unlink()


def _with_another_secret(path: Path) -> None:
    Path(answers.secret_place(str(path))).write_bytes(os.urandom(32))


@pytest.mark.parametrize("way", [_open_to_others, _a_link, _a_pipe, _without_secret, _with_another_secret, Path.unlink])
def test_what_is_not_ours_is_as_if_it_were_not_there(way: Callable[[Path], None]) -> None:
    keep(ALL)
    way(files()[0])
    assert known() == {}


def test_an_answer_is_no_index_and_an_index_no_answer() -> None:
    keep(ALL)
    (path,) = files()
    assert answers.read(str(path), b"", lambda *_: []) is None
    data = path.read_bytes()[answers.SEAL_BYTES :].replace(b"agentwatch index 1\n", b"agentwatch answer 3", 1)
    path.write_bytes(answers.seal(answers.secret_of(str(path)), data) + data)
    assert known() == {}


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch ran",)


class _Other(NamedTuple):
    value: int


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(_Runs(), 5),
        pickle.dumps({"a": _Other(1)}, 5),
        pickle.dumps({"a": eval}, 5),
        pickle.dumps({"a": Word.__class__}, 5),
        b"cos\nsystem\n(S'touch ran'\ntR.",
        b"ctests.unit.kept.test_index\nWord.__init_subclass__.__globals__\n.",
        b"",
        b"\x80\x05",
        b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"(" * 100_000,
        packed(One("x"), KINDS)[:-3],
    ],
)
def test_whatever_was_packed_runs_nothing(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError):  # noqa: PT011  whatever it says
        unpacked(data, KINDS)
    assert not (tmp_path / "ran").exists()


def test_a_sealed_file_of_something_else_is_as_if_it_were_not_there() -> None:
    keep(ALL)
    (path,) = files()
    made = loaded()
    for data in (pickle.dumps(_Runs(), 5), packed([1, 2], KINDS), b""):
        head = index._HEAD.pack(index._MAGIC, time.time(), made._key, index._FIRST)
        path.write_bytes(answers.seal(answers.secret_of(str(path)), head, data) + head + data)
        assert known() == {}
