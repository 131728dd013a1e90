"""The ledger: each decision once, in order, on disk, delivered; and an error in words if this is impossible."""

import errno
import os
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.delivery import deliver_missing
from agentwatch.decisions.errors import LedgerError, NotRecordedError, RecordError, UncertainError
from agentwatch.decisions.ledger import Chain, Ledger, ProblemKind
from agentwatch.decisions.record import AlreadyDecidedError, Mitigation, Params
from agentwatch.delegation.decision import Action
from agentwatch.disk import Directory, Disk
from tests.unit.decisions.made import KIM, QUICK, RETURN, Operator, Quick

MIRROR = Path(".agentwatch") / "decisions"


@pytest.fixture
def operator(tmp_path):
    return Operator(tmp_path)


def tasks(chain: Chain) -> list[str]:
    return [entry.record.task_id for entry in chain.entries]


def test_decisions_are_numbered_and_private(operator):
    for task in ("a", "b", "c"):
        assert operator.decide(task).fresh
    chain, files = operator.chain(), operator.files()
    assert (chain.problems, chain.why_broken, tasks(chain)) == ((), None, ["a", "b", "c"])
    assert [path.name for path in files] == [entry.name for entry in chain.entries]
    assert files[0].name == f"000001-{operator.subject('a').decision_id}.json"
    assert operator.ledger.read_bytes(chain.entries[0]) == files[0].read_bytes()
    modes = [path.stat().st_mode & 0o777 for path in (operator.ledger.directory, *files)]
    assert modes == [0o700, 0o600, 0o600, 0o600]


@pytest.mark.parametrize(
    "changes",
    [{"action": Action.ABORT}, {"note": "otherwise"}, {"params": Params(mitigation=Mitigation.REDUCED_SCOPE)}],
)
def test_a_second_decision_gets_the_one_that_holds(operator, changes):
    first = operator.decide("a")
    with pytest.raises(AlreadyDecidedError, match="already decided: ada said retry at 2030") as caught:
        operator.decide("a", **changes)
    assert caught.value.existing == first.entry.record
    with pytest.raises(RecordError, match="escalate needs mode"):
        operator.decide("b", Action.ESCALATE)


def test_the_return_is_hashed_while_nobody_else_can_decide(operator):
    waiting: list[threading.Thread] = []

    def returned() -> str | None:
        waiting.append(other := threading.Thread(target=lambda: Operator(operator.root).decide("b")))
        other.start()
        other.join(0.05)
        assert other.is_alive()
        return RETURN

    operator.decide("a", returned=returned)
    waiting[0].join()
    assert tasks(operator.chain()) == ["a", "b"]


def test_an_invalid_ledger_file_is_reported_and_stops_writing(operator):
    (operator.state / "decisions").mkdir(0o700, parents=True)
    (operator.ledger.directory / "notes\x1b[31m.txt").write_text("x")
    (problem,) = operator.chain().problems
    assert (problem.kind, "\x1b" in problem.message) == (ProblemKind.STRAY, False)
    operator.decide("a")
    (operator.ledger.directory / f"000002-{'0' * 32}.json").mkdir()
    problem, _ = operator.chain().problems
    assert (problem.kind, "not a regular file" in problem.message) == (ProblemKind.UNREADABLE, True)
    with pytest.raises(LedgerError, match="ledger is broken"):
        operator.decide("b")


def test_nothing_is_added_behind_a_break_until_it_is_set_aside(operator):
    for task in ("a", "b", "c", "d"):
        operator.decide(task)
    files, aside = operator.files(), operator.ledger.directory / "aside"
    files[1].write_bytes(files[1].read_bytes()[:-10])
    chain = operator.chain()
    kinds = [problem.kind for problem in chain.problems]
    assert kinds == [ProblemKind.DAMAGED, ProblemKind.MISSING, ProblemKind.BEHIND, ProblemKind.BEHIND]
    with pytest.raises(LedgerError, match=r"ledger is broken.*agentwatch verify.*backup or set the broken part aside"):
        operator.decide("e")
    # A decision before the break is still valid, and is found again.
    assert (tasks(chain), operator.decide("a").fresh) == (["a"], False)
    aside.mkdir(mode=0o700)
    (aside / f"{files[1].name}.1").write_text("of an earlier repair")
    assert operator.ledger.set_aside(operator.trust) == [path.name for path in files[1:]]
    assert operator.chain() == Chain(chain.entries)
    assert operator.decide("e").entry.record.seq == 2
    endings = [(files[1], 1), (files[1], 2), (files[2], 1), (files[3], 1)]
    assert sorted(path.name for path in aside.iterdir()) == [f"{file.name}.{number}" for file, number in endings]


def test_a_key_that_nobody_trusts_writes_nothing(operator):
    with pytest.raises(LedgerError, match="agentwatch keys"):
        operator.ledger.append(operator.draft(), KIM, operator.trust, lambda: RETURN)
    assert operator.files() == []


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_ledger_that_is_open_to_others_is_refused(operator, mode):
    operator.decide("a")
    operator.ledger.directory.chmod(mode)
    with pytest.raises(LedgerError, match=f"mode {mode:o}.*chmod 700"):
        operator.decide("b")
    assert tasks(operator.chain()) == ["a"]


def test_a_lock_that_is_never_released_is_reported(operator, monkeypatch):
    operator.decide("a")
    monkeypatch.setattr(time, "monotonic", count(0, 60).__next__)
    with Directory.open(operator.ledger.directory) as directory, directory.locked():
        with pytest.raises(NotRecordedError, match=r"not recorded: .* another process holds the lock; end it"):
            operator.decide("b")
        # Reading needs no lock.
        assert tasks(operator.chain()) == ["a"]


def disk(**calls: Callable[..., Any]) -> Disk:
    """Return a disk that does these calls in another way."""
    made = Quick()
    for name, do in calls.items():
        setattr(made, name, do)
    return made


def error(number: int) -> Callable[..., Any]:
    def fail(*_arguments: object, **_named: object):
        raise OSError(number, os.strerror(number))

    return fail


def linked(*arguments: Any, **named: Any):
    """Make the link and then report a failure, as a network file system does whose answer was lost."""
    QUICK.link(*arguments, **named)
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        ("write", errno.ENOSPC, "No space left on device; free space"),
        ("write", errno.EDQUOT, "free space"),
        ("mkdir", errno.EROFS, "Read-only file system; make it writable for you"),
        ("mkdir", errno.EACCES, "Permission denied; make it writable for you"),
        ("fsync", errno.EIO, "Input/output error; check the disk"),
        ("flock", errno.ENOLCK, "check the disk"),
        ("link", errno.EIO, "check the disk"),
    ],
)
def test_an_error_of_the_disk_says_what_to_do(tmp_path, call, number, words):
    operator = Operator(tmp_path, disk(**{call: error(number)}))
    with pytest.raises(NotRecordedError, match=f"not recorded: .*{words}, then decide again"):
        operator.decide("a")
    assert operator.chain() == Chain()
    assert Operator(tmp_path).decide("a").fresh


def test_an_error_after_the_record_is_a_doubt_and_no_failure(tmp_path):
    """The ledger is read again before the outcome is reported."""
    operator = Operator(tmp_path, disk(link=linked))
    recorded = operator.decide("a")
    assert recorded.fresh
    assert "recorded, but the disk reported an error behind it (Input/output error)" in (recorded.doubt or "")
    assert tasks(operator.chain()) == ["a"]


def test_an_unknown_outcome_is_reported_as_unknown(tmp_path):
    def blinded(*arguments: Any, **named: Any):
        blind.stat = error(errno.EIO)  # type: ignore[method-assign]
        linked(*arguments, **named)

    blind = disk(link=blinded)
    with pytest.raises(UncertainError, match=r"nobody can tell .* decide the same again: it counts once"):
        Operator(tmp_path, blind).decide("a")
    operator = Operator(tmp_path)
    assert (operator.decide("a").fresh, len(operator.files())) == (False, 1)


def test_a_file_that_goes_while_it_is_opened_is_not_there(operator):
    operator.decide("a")
    (first,) = operator.files()

    def opened(path: Any, *flags: int, dir_fd: int | None = None) -> int:
        if path == first.name:
            first.unlink()
        return os.open(path, *flags, dir_fd=dir_fd)

    assert Ledger(operator.state, operator.workspace_id, disk(open=opened)).read(operator.trust) == Chain()


def test_an_unreadable_ledger_is_reported(operator):
    entry = operator.decide("a").entry
    blind = Ledger(operator.state, operator.workspace_id, disk(listdir=error(errno.EACCES)))
    for ask in (blind.read, blind.set_aside):
        with pytest.raises(LedgerError, match="Permission denied"):
            ask(operator.trust)
    operator.files()[0].unlink()
    with pytest.raises(LedgerError, match="No such file"):
        operator.ledger.read_bytes(entry)


def test_a_refusal_is_written_down_unless_it_is_recorded(operator):
    written = list[str]()
    operator.trust_kim()
    text, trust = operator.signed(), operator.trust
    assert operator.ledger.note_refusal(text, trust, lambda: written.append("refused")) is None
    made = operator.decide_from_afar()
    assert operator.ledger.note_refusal(text, trust, lambda: written.append("again")) == made.entry
    assert written == ["refused"]
    with pytest.raises(LedgerError, match="No space left on device; free space"):
        operator.ledger.note_refusal(operator.signed("b"), trust, error(errno.ENOSPC))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda one, copy: copy.with_suffix(".md").mkdir(parents=True), "the workspace: Is a directory"),
        (lambda one, copy: (one.workspace / ".agentwatch").symlink_to(one.root), ".agentwatch is a link"),
        (lambda one, copy: one.files()[0].unlink(), "cannot be used: No such file or directory"),
    ],
)
def test_an_undelivered_decision_waits_with_a_reason(operator, spoil, words):
    decision_id = operator.decide("a").record.decision_id
    chain = operator.chain()
    spoil(operator, operator.workspace / MIRROR / f"{decision_id}.json")
    mirror = deliver_missing(operator.workspace, operator.ledger, chain, operator.trust)
    assert (mirror.pending, words in (mirror.reason or "")) == ((decision_id,), True)
