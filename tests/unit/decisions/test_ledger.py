"""The ledger: once, in order, on disk, and in words where it cannot be."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.errors import (
    DecisionError,
    LedgerError,
    NotRecordedError,
    RecordError,
    UncertainError,
)
from agentwatch.decisions.ledger import Chain, Ledger, ProblemKind
from agentwatch.decisions.record import AlreadyDecidedError, Mitigation, Params
from agentwatch.delegation.decision import Action
from agentwatch.disk import Directory, Disk
from tests.unit.decisions.made import QUICK, RETURN, Operator, Quick


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def tasks(chain: Chain) -> list[str]:
    return [entry.record.task_id for entry in chain.entries]


def test_decisions_are_numbered_chained_and_private(operator: Operator) -> None:
    for task in ("a", "b", "c"):
        assert operator.decide(task).fresh
    chain = operator.chain()
    assert chain.problems == ()
    assert chain.broken is None
    assert [entry.record.seq for entry in chain.entries] == [1, 2, 3]
    assert [entry.record.prev_sha256 for entry in chain.entries] == [None, *(one.sha256 for one in chain.entries[:2])]
    assert [path.name for path in operator.files()] == [entry.name for entry in chain.entries]
    assert chain.entries[0].name == f"000001-{operator.subject('a').decision_id}.json"
    assert operator.ledger.directory.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in operator.files())


def test_a_second_opinion_is_told_what_holds(operator: Operator) -> None:
    first = operator.decide("a")
    for changes in (
        {"action": Action.ABORT},
        {"note": "otherwise"},
        {"params": Params(mitigation=Mitigation.REDUCED_SCOPE)},
    ):
        with pytest.raises(AlreadyDecidedError, match="already decided: ada said retry at 2030") as caught:
            operator.decide("a", **changes)  # type: ignore[arg-type]
        assert caught.value.existing == first.entry.record
    with pytest.raises(RecordError, match="escalate needs mode"):
        operator.decide("b", Action.ESCALATE)
    (operator.ledger.directory / "notes\x1b[31m.txt").write_text("x")
    (problem,) = operator.chain().problems
    assert problem.kind is ProblemKind.STRAY
    assert "\x1b" not in problem.message
    assert operator.decide("b").record.seq == 2


def test_the_return_is_hashed_while_nobody_else_can_decide(operator: Operator) -> None:
    seen: list[bool] = []

    def returned() -> str | None:
        other = threading.Thread(target=lambda: Operator(operator.root).decide("b"))
        other.start()
        other.join(0.05)
        seen.append(other.is_alive())
        waiting.append(other)
        return RETURN

    waiting: list[threading.Thread] = []
    operator.decide("a", returned=returned)
    waiting[0].join()
    assert seen == [True]
    assert tasks(operator.chain()) == ["a", "b"]


def test_what_is_no_file_is_told_and_breaks_the_chain_where_the_next_one_belongs(operator: Operator) -> None:
    operator.decide("a")
    (operator.ledger.directory / f"000002-{'0' * 32}.json").mkdir()
    (problem,) = operator.chain().problems
    assert problem.kind is ProblemKind.DAMAGED
    assert "cannot be read: not a regular file" in problem.message
    with pytest.raises(LedgerError, match="ledger is broken"):
        operator.decide("b")


def test_nothing_is_added_behind_a_break_until_it_is_set_aside(operator: Operator) -> None:
    for task in ("a", "b", "c", "d"):
        operator.decide(task)
    files = operator.files()
    files[1].write_bytes(files[1].read_bytes()[:-10])
    chain = operator.chain()
    assert tasks(chain) == ["a"]
    kinds = [problem.kind for problem in chain.problems]
    assert kinds == [ProblemKind.DAMAGED, ProblemKind.MISSING, ProblemKind.BEHIND, ProblemKind.BEHIND]
    with pytest.raises(LedgerError, match=r"ledger is broken.*agentwatch verify.*backup or set the broken part aside"):
        operator.decide("e")
    # What was decided before the break holds, and is still known.
    assert not operator.decide("a").fresh
    (operator.ledger.directory / "aside").mkdir(mode=0o700)
    (operator.ledger.directory / "aside" / f"{files[1].name}.1").write_text("of an earlier repair")
    assert operator.ledger.set_aside(operator.trust) == [path.name for path in files[1:]]
    assert operator.chain() == Chain(chain.entries)
    assert operator.decide("e").entry.record.seq == 2
    assert sorted(path.name for path in (operator.ledger.directory / "aside").iterdir()) == sorted(
        [f"{files[1].name}.1", f"{files[1].name}.2", f"{files[2].name}.1", f"{files[3].name}.1"]
    )


def test_a_key_that_nobody_trusts_writes_nothing(operator: Operator) -> None:
    stranger = SigningKey(Ed25519PrivateKey.generate())
    with pytest.raises(LedgerError, match="agentwatch keys"):
        operator.ledger.append(operator.draft(), stranger, operator.trust, lambda: RETURN)
    assert operator.files() == []


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_ledger_that_is_open_to_others_is_refused_with_what_to_do(operator: Operator, mode: int) -> None:
    operator.decide("a")
    operator.ledger.directory.chmod(mode)
    with pytest.raises(LedgerError, match=f"mode {mode:o}.*chmod 700"):
        operator.decide("b")
    assert tasks(operator.chain()) == ["a"]


def test_a_lock_that_is_never_given_back_is_told(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.decide("a")
    monkeypatch.setattr("agentwatch.disk.LOCK_SECONDS", 0.01)
    with Directory.open(operator.ledger.directory) as directory, directory.locked():
        with pytest.raises(NotRecordedError, match=r"not recorded: another process keeps .* locked"):
            operator.decide("b")
        # Reading waits for nobody.
        assert tasks(operator.chain()) == ["a"]
    assert operator.decide("b").fresh


def failing(**calls: int) -> Disk:
    """A disk on which some calls always fail, each with an error number."""
    disk = Quick()
    for name, number in calls.items():

        def fail(*_arguments: object, number: int = number, **_named: object) -> None:
            raise OSError(number, os.strerror(number))

        setattr(disk, name, fail)
    return disk


@pytest.mark.parametrize(
    ("calls", "error", "words"),
    [
        ({"write": errno.ENOSPC}, NotRecordedError, "No space left on device; free space, then decide again"),
        ({"write": errno.EDQUOT}, NotRecordedError, "free space, then decide again"),
        ({"mkdir": errno.EROFS}, NotRecordedError, "Read-only file system; make it writable for you, then decide"),
        ({"mkdir": errno.EACCES}, NotRecordedError, "Permission denied; make it writable for you, then decide again"),
        ({"fsync": errno.EIO}, NotRecordedError, "Input/output error; check the disk, then decide again"),
        ({"flock": errno.ENOLCK}, NotRecordedError, "check the disk, then decide again"),
        ({"link": errno.EIO}, NotRecordedError, "check the disk, then decide again"),
    ],
)
def test_what_fails_is_told_with_what_to_do(
    tmp_path: Path, calls: dict[str, int], error: type[DecisionError], words: str
) -> None:
    operator = Operator(tmp_path, failing(**calls))
    with pytest.raises(error, match=words) as caught:
        operator.decide("a")
    assert str(caught.value).startswith("not recorded: ")
    assert operator.chain() == Chain()
    assert Operator(tmp_path).decide("a").fresh


def at(call: str, number: int, then: Callable[[Disk], None]) -> Disk:
    """A disk on which a call is done and then reported as failed; `then` changes the disk behind it."""
    disk = Quick()
    original = getattr(QUICK, call)

    def do(*arguments: Any, **named: Any) -> None:
        original(*arguments, **named)
        then(disk)
        raise OSError(number, os.strerror(number))

    setattr(disk, call, do)
    return disk


def test_an_error_behind_the_fact_is_no_failure_but_a_doubt(tmp_path: Path) -> None:
    """As on a network file system whose answer was lost: the ledger is read again before anything is said."""
    operator = Operator(tmp_path, at("link", errno.EIO, lambda _: None))
    recorded = operator.decide("a")
    assert recorded.fresh
    assert "recorded, but the disk reported an error behind it (Input/output error)" in (recorded.doubt or "")
    assert tasks(operator.chain()) == ["a"]


def test_what_nobody_can_tell_is_said_to_be_so(tmp_path: Path) -> None:
    def blind(disk: Disk) -> None:
        disk.stat = failing(stat=errno.EIO).stat  # type: ignore[method-assign]

    operator = Operator(tmp_path, at("link", errno.EIO, blind))
    with pytest.raises(UncertainError, match=r"nobody can tell .* decide the same again: it counts once"):
        operator.decide("a")
    again = Operator(tmp_path).decide("a")
    assert not again.fresh
    assert len(operator.files()) == 1


def test_a_file_that_cannot_be_read_stops_writing_and_no_more(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    operator.decide("a")
    last = operator.files()[-1]

    class Unreadable(Quick):
        broken = True

        def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # type: ignore[override]
            if path == last.name and self.broken:
                raise OSError(errno.EIO, "Input/output error")
            return os.open(path, flags, mode, dir_fd=dir_fd)

    disk = Unreadable()
    blind = Operator(tmp_path, disk)
    (problem,) = blind.ledger.read(blind.trust).problems
    assert problem.kind is ProblemKind.UNREADABLE
    with pytest.raises(LedgerError, match="cannot be read"):
        blind.decide("b")
    disk.broken = False
    assert blind.ledger.read(blind.trust).problems == ()


def test_a_ledger_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    entry = operator.decide("a").entry
    assert operator.ledger.bytes_of(entry) == operator.files()[0].read_bytes()
    blind = Ledger(operator.state, operator.workspace_id, failing(listdir=errno.EACCES))
    for ask in (blind.read, blind.set_aside):
        with pytest.raises(LedgerError, match="Permission denied"):
            ask(operator.trust)
    operator.files()[0].unlink()
    with pytest.raises(LedgerError, match="cannot be read"):
        operator.ledger.bytes_of(entry)


def test_what_is_refused_is_written_down_unless_it_is_recorded(tmp_path: Path) -> None:
    host, written = Operator(tmp_path), list[str]()
    host.trust_kim()
    text = host.signed()
    assert host.ledger.refuse(text, host.trust, lambda: written.append("refused")) is None
    made = host.decide_from_afar()
    assert host.ledger.refuse(text, host.trust, lambda: written.append("again")) == made.entry
    assert written == ["refused"]
    assert host.chain().asked_for(host.signed("b")) is None

    def fail() -> None:
        raise OSError(28, "no space left")

    with pytest.raises(LedgerError, match="free space, then try again"):
        host.ledger.refuse(host.signed("b"), host.trust, fail)


def test_a_file_that_goes_while_it_is_opened_is_not_there(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    operator.decide("a")
    (first,) = operator.files()

    class Going(Quick):
        def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # type: ignore[override]
            if path == first.name:
                first.unlink()
            return os.open(path, flags, mode, dir_fd=dir_fd)

    assert Ledger(operator.state, operator.workspace_id, Going()).read(operator.trust) == Chain()
