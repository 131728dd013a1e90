"""Rollouts that Codex has compressed: read as if they were not, once, and bounded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.run import RunState
from agentwatch.sources.codex.compressed import CompressedTail
from agentwatch.sources.sessions.tail import Line
from tests.unit.codex.home import PACKET, RETURN, Home, Session, thread

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def family(home: Home) -> list[Session]:
    """A root with a child that ended."""
    root = home.root(1).call("spawn_agent", "c1", message=PACKET).spawned("c1", thread(2))
    return [root.complete("Done."), home.child(2, root).complete(RETURN)]


def compressed(home: Home, session: Session) -> Path:
    return home.place(session).with_suffix(".jsonl.zst")


def compress(home: Home, *sessions: Session) -> None:
    """As Codex does it: the compressed file first, then the plain one goes."""
    for session in sessions:
        path = home.place(session)
        path.parent.mkdir(parents=True, exist_ok=True)
        compressed(home, session).write_bytes(zstd.compress(b"".join(session.lines)))
        path.unlink(missing_ok=True)


def bomb(megabytes: int, before: bytes = b"") -> bytes:
    """A frame of some bytes and then one and the same again and again: 32 bytes for each megabyte."""
    raw, run = len(before) << 3, 128 * 1024 << 3 | 1 << 1
    blocks = raw.to_bytes(3, "little") + before + (run.to_bytes(3, "little") + b"x") * (8 * megabytes)
    return b"\x28\xb5\x2f\xfd\x00\x58" + blocks + b"\x01\x00\x00"


def lines(tail: CompressedTail, budget: int) -> Iterator[Line]:
    while True:
        yield from tail.read(budget).lines
        if not tail.behind:
            return


@given(
    texts=st.lists(st.binary(max_size=300).map(lambda data: data.replace(b"\n", b"")), max_size=40),
    budget=st.integers(1, 500),
)
def test_the_lines_and_their_offsets_are_those_of_the_plain_file(
    texts: list[bytes], budget: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("codex") / "rollout.jsonl.zst"
    whole = b"".join(text + b"\n" for text in texts)
    path.write_bytes(zstd.compress(whole))
    tail = CompressedTail(path)
    for line in lines(tail, budget):
        assert whole[line.offset :].startswith(line.data)
        texts = [text for text in texts if text.strip(b" \t\r\v\f")]
        assert texts.pop(0) == line.data
    assert not any(text.strip(b" \t\r\v\f") for text in texts)
    assert tail.position == tail.size


def test_a_bomb_is_read_no_further_than_allowed_and_told(home: Home) -> None:
    root = home.root().complete("Done.")
    compress(home, root)
    path = compressed(home, root)
    path.write_bytes(bomb(1_000_000, b"".join(root.lines)))
    home.read()
    assert home.run(root).state is RunState.ENDED
    assert home.reader.trouble == "1 session cannot be read: more than 512 MB when decompressed."
    assert home.read() == []


def test_what_is_whole_before_the_damage_is_shown_and_the_damage_told(home: Home) -> None:
    root = home.root()
    for number in range(3000):
        root.said(f"Part {number}, {number * 7919 % 1009}.")
    compress(home, root)
    path = compressed(home, root)
    path.write_bytes(path.read_bytes()[:-200])
    home.read()
    assert home.run(root).state is RunState.WORKING
    assert home.reader.trouble == "1 session cannot be read: cannot be decompressed."
    assert home.read() == []
    compress(home, root.complete("Done."))
    home.read()
    assert (home.run(root).state, home.reader.trouble) == (RunState.ENDED, None)


@given(place=st.integers(0, 2000), junk=st.binary(max_size=30), cut=st.booleans())
def test_damaged_files_neither_break_the_reader_nor_hide_the_others(
    place: int, junk: bytes, cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Home(tmp_path_factory.mktemp("codex"))
    sessions = family(home)
    other = home.root(5).complete("Done.")
    compress(home, other, *sessions)
    path = compressed(home, sessions[0])
    data = path.read_bytes()
    path.write_bytes(data[:place] + junk + (b"" if cut else data[place + len(junk) :]))
    home.read()
    assert home.run(other).state is RunState.ENDED
    assert home.run(sessions[1]).state is RunState.ENDED


def test_without_a_library_they_are_counted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentwatch.sources.codex.compressed", None)
    compress(home, home.root())
    home.read()
    (found,) = home.reader.found()
    assert found.skipped.startswith("1 session cannot be read: compressed (.jsonl.zst): ")
