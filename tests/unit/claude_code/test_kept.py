"""What transcripts came to is known by the next process, which says the same as one that reads them whole."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.delegation.run import Run
from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader
from agentwatch.sources.sessions import folds, group, tail
from agentwatch.sources.sessions.reader import Found
from tests.homes import live_in
from tests.unit.claude_code.building import Store, meta, packet, report
from tests.unit.claude_code.test_growing import a_bit_of_everything, drain

Said = tuple[dict[str, Run], list[Found], str | None, list[str | None]]


@pytest.fixture(autouse=True)
def _all_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    live_in(tmp_path_factory.mktemp("home"), monkeypatch)
    monkeypatch.setattr(folds, "WORTH", 1)


def said_by(reader: ClaudeCodeReader) -> Said:
    """All that a reader tells."""
    runs: dict[str, Run] = {}
    drain(reader, runs)
    messages = [message for run in runs.values() for message in (run.prompt, run.said) if message is not None]
    texts = [reader.text(message.digest) for message in messages]
    return dict(sorted(runs.items())), list(reader.found()), reader.trouble, texts


def cold(store: Store) -> Said:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folds, "WORTH", 1 << 60)
        return said_by(store.reader())


def kept(store: Store) -> Said:
    reader = store.reader()
    said = said_by(reader)
    reader.keep()
    return said


changes = st.tuples(
    st.integers(0, 11), st.sampled_from(("append", "piece", "overwrite", "cut", "replace", "remove")), st.floats(0, 1)
)


@settings(max_examples=60)
@given(st.lists(st.lists(changes, max_size=4), min_size=1, max_size=6), st.booleans())
def test_whatever_becomes_of_the_files_it_is_as_if_they_were_read_whole(
    rounds: list[list[tuple[int, str, float]]], has_large: bool
) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "_HEAD", 700)
        if has_large:
            patch.setattr(group, "LARGE", 2_000)
        store = a_bit_of_everything(Path(directory))
        whole = sorted(store.files.items())
        for path, content in whole:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content[: len(content) // 2])
        kept(store)
        for round_ in rounds:
            for number, how, part in round_:
                path, content = whole[number % len(whole)]
                _change(path, content, how, part)
            assert kept(store) == cold(store)


def _change(path: Path, content: bytes, how: str, part: float) -> None:
    there = path.read_bytes() if path.exists() else b""
    at = int(part * len(there))
    if how == "append":
        end = content.find(b"\n", len(there)) + 1 or len(content)
        there += content[len(there) : end]
    elif how == "piece":
        there += content[len(there) : len(there) + int(part * 500)]
    elif how == "overwrite":
        there = there[:at] + there[at : at + 9].swapcase() + there[at + 9 :]
    elif how == "cut":
        there = there[:at]
    elif how == "replace":
        path.unlink(missing_ok=True)
    else:
        path.unlink(missing_ok=True)
        return
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(there)
        file.truncate()


def a_session(root: Path) -> Store:
    store = Store(root)
    session = store.session()
    session.asked("Go.")
    session.delegated("toolu_1", packet("t.a"))
    agent = store.agent("a1", meta("toolu_1"))
    agent.asked(packet("t.a"))
    agent.said(report("SUCCESS"))
    store.save()
    return store


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    real = tail.open_regular

    def noted(path: Path) -> int:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr(tail, "open_regular", noted)
    monkeypatch.setattr(tail, "is_young", lambda *_: False)
    return names


def test_a_file_that_is_as_it_was_is_not_opened(tmp_path: Path, opened: list[str]) -> None:
    store = a_session(tmp_path)
    first = kept(store)
    opened.clear()
    assert kept(store)[:3] == first[:3]
    # But where somebody asks for a text in it.
    assert set(opened) <= {path.name for path in store.files}


def test_a_line_more_is_read_and_nothing_of_the_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "_HEAD", 500)
    store = a_session(tmp_path)
    kept(store)
    own = next(path for path in store.files if not path.name.startswith("agent-"))
    size = own.stat().st_size
    line = own.read_bytes().splitlines(keepends=True)[0].replace(b"Go.", b"On.").replace(b"uuid-", b"uuid-x")
    with own.open("ab") as file:
        file.write(line)
    reader = store.reader()
    drain(reader, {})
    taken = {path: growing.tail.taken for one in reader._groups.values() for path, growing, _ in one.read_files()}
    assert taken.pop(str(own)) == len(line)
    assert own.stat().st_size == size + len(line)
    assert set(taken.values()) == {0}


def test_what_is_kept_is_of_one_workspace(tmp_path: Path) -> None:
    store = a_session(tmp_path)
    kept(store)
    elsewhere = ClaudeCodeReader(tmp_path / "elsewhere", store.home)
    assert said_by(elsewhere)[0] == {}


def test_damage_to_what_is_kept_changes_nothing(tmp_path: Path) -> None:
    store = a_session(tmp_path)
    before = kept(store)
    for path in Path(os.environ["XDG_STATE_HOME"]).rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-7] + b"garbage")
    assert kept(store) == before
