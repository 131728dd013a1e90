"""The tail of a growing file: whole lines, in order, each once, whatever happens to the file between two looks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.sources.sessions.tail import Line, Tail, line_at, record

BUDGET = 1 << 20


def lines_of(tail: Tail, budget: int = BUDGET) -> list[bytes]:
    return [line.data for line in tail.read(budget).lines]


@given(
    lines=st.lists(
        st.binary(max_size=30).filter(lambda line: b"\n" not in line and line.strip() and line[-1:] != b"\r")
    ),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    budget=st.integers(1, 50),
)
def test_any_chunking_and_any_budget_give_the_same_lines(
    lines: list[bytes], cuts: list[int], budget: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tail") / "a.jsonl"
    whole = b"".join(line + b"\n" for line in lines)
    tail = Tail(path)
    seen: list[Line] = []
    for end in [*sorted(cuts), len(whole)]:
        with path.open("ab") as file:
            file.write(whole[file.tell() : end])
        looked = tail.read(budget)
        assert not looked.restarted
        seen += looked.lines
    while tail.behind:
        seen += tail.read(budget).lines
    assert [line.data for line in seen] == lines
    assert [line_at(path, line.offset) for line in seen] == lines


def test_a_line_without_its_end_waits_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"')
    tail = Tail(path)
    assert lines_of(tail) == [b'{"a": 1}']
    assert not tail.behind
    with path.open("ab") as file:
        file.write(b": 2}\n")
    assert lines_of(tail) == [b'{"b": 2}']


def test_a_budget_leaves_the_rest_for_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\nthree\n")
    tail = Tail(path)
    assert lines_of(tail, budget=3) == [b"one"]
    assert tail.behind
    assert lines_of(tail) == [b"two", b"three"]
    assert not tail.behind


@pytest.mark.parametrize(
    "after", [b"x\n", b"", b"another\nfile that is longer than before\n"], ids=["shorter", "empty", "longer"]
)
def test_a_file_that_was_cut_short_is_read_from_its_beginning(tmp_path: Path, after: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\nthr")
    tail = Tail(path)
    assert lines_of(tail) == [b"one", b"two"]
    path.write_bytes(after)
    looked = tail.read(BUDGET)
    assert looked.restarted
    assert [line.data for line in looked.lines] == after.splitlines()


def test_a_line_that_is_too_long_is_passed_over_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n" + b"x" * 100 + b"\ntwo\n")
    tail = Tail(path, line_limit=10)
    seen: list[bytes] = []
    seen += lines_of(tail, budget=30)
    seen += lines_of(tail)
    assert seen == [b"one", b"two"]
    assert tail.passed_over == 1
    assert lines_of(Tail(path, line_limit=10)) == [b"one", b"two"]


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"one\n")
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", ".", "gone"):
        with pytest.raises(OSError):  # noqa: PT011  any refusal of the system will do
            Tail(tmp_path / name).read(BUDGET)
        assert line_at(tmp_path / name, 0) is None


@pytest.mark.parametrize("line", [b"", b"[1]", b"{", b'{"a": ' + b"[" * 100_000, b"\x00" * 8, b"9" * 5000])
def test_a_line_that_is_no_json_object_is_no_record(line: bytes) -> None:
    assert record(line) is None
