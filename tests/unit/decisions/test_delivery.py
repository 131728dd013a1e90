"""The mirror in the workspace: the ledger's bytes, put right where they were edited, and never followed anywhere."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from agentwatch.decisions.delivery import Known, Mirror, deliver, mirror_missing
from agentwatch.decisions.record import Answer, Mitigation, Params
from agentwatch.delegation.decision import Action
from agentwatch.disk import Disk
from tests.unit.decisions.made import NOON, QUICK, Operator, Quick
from tests.unit.decisions.test_ledger import failing


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    operator = Operator(tmp_path)
    operator.decide("a")
    operator.decide("b", Action.RESPOND, params=Params(answers=(Answer("which?", "the red one"),)))
    return operator


def mirror(operator: Operator, disk: Disk = QUICK) -> Mirror:
    return mirror_missing(operator.workspace, operator.chain(), operator.ledger.bytes_of, operator.trust, disk=disk)


def place(operator: Operator) -> Path:
    return operator.workspace / ".agentwatch" / "decisions"


def names(operator: Operator) -> set[str]:
    return {path.name for path in place(operator).iterdir()}


def ids(operator: Operator) -> list[str]:
    return [entry.record.decision_id for entry in operator.chain().entries]


def test_every_decision_is_delivered_byte_for_byte_with_a_page_beside_it(operator: Operator) -> None:
    assert mirror(operator) == Mirror(delivered=tuple(ids(operator)))
    for entry in operator.chain().entries:
        copy = place(operator) / f"{entry.record.decision_id}.json"
        assert copy.read_bytes() == (operator.ledger.directory / entry.name).read_bytes()
    assert names(operator) == {f"{one}{suffix}" for one in ids(operator) for suffix in (".json", ".md")}
    assert (operator.workspace / ".agentwatch" / ".gitignore").read_text() == "*\n"


def test_git_sees_nothing_of_it(operator: Operator) -> None:
    subprocess.run(["git", "init", "-q", str(operator.workspace)], check=True)
    mirror(operator)
    seen = subprocess.run(
        ["git", "-C", str(operator.workspace), "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    assert seen.stdout == ""


def test_only_files_that_changed_are_read_again(operator: Operator) -> None:
    class Counting(Quick):
        reads = 0

        def read(self, descriptor: int, length: int) -> bytes:  # type: ignore[override]
            self.reads += 1
            return os.read(descriptor, length)

    disk, known = Counting(), Known()

    def again() -> Mirror:
        ledger = operator.ledger
        return mirror_missing(
            operator.workspace, operator.chain(), ledger.bytes_of, operator.trust, disk=disk, known=known
        )

    again()
    again()
    before = disk.reads
    assert again().delivered == tuple(ids(operator))
    assert disk.reads == before
    victim = place(operator) / f"{ids(operator)[0]}.json"
    data = victim.read_bytes()
    victim.write_bytes(data.replace(b"a", b"b"))
    assert [Path(one.path).name for one in again().foreign] == [victim.name]
    assert victim.read_bytes() == data
    # The same file, and another decision that belongs there.
    operator.decide("c", expires_at=NOON)
    again()
    operator.decide("c", Action.ABORT, created_at=NOON)
    again()
    again()
    renewed = operator.chain().entries[-1]
    assert (place(operator) / f"{renewed.record.decision_id}.json").read_bytes() == operator.ledger.bytes_of(renewed)


def test_where_nothing_was_decided_nothing_is_made(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    assert mirror(operator) == Mirror()
    assert list(operator.workspace.iterdir()) == []


def test_what_is_there_as_it_should_be_is_not_written_again(operator: Operator) -> None:
    mirror(operator)
    before = {path: path.stat().st_ino for path in place(operator).iterdir()}
    mirror(operator)
    assert {path: path.stat().st_ino for path in place(operator).iterdir()} == before


@pytest.mark.parametrize("suffix", [".json", ".md"])
@pytest.mark.parametrize("how", ["edited", "emptied", "link", "pipe", "directory", "full directory", "huge"])
def test_what_was_edited_is_told_and_put_right(operator: Operator, how: str, suffix: str) -> None:
    mirror(operator)
    victim = place(operator) / f"{ids(operator)[0]}{suffix}"
    good = victim.read_bytes()
    outside = operator.root / "outside"
    outside.write_bytes(good)
    if how == "edited":
        victim.write_bytes(good.replace(b"a", b"b"))
    elif how == "emptied":
        victim.write_bytes(b"")
    else:
        victim.unlink()
        if how == "link":
            victim.symlink_to(outside)
        elif how == "pipe":
            os.mkfifo(victim)
        elif how == "huge":
            with victim.open("wb") as file:
                file.truncate(10**10)
        else:
            victim.mkdir()
            if how.startswith("full"):
                (victim / "x").write_text("x")
    found = mirror(operator)
    assert found.delivered == tuple(ids(operator))
    assert [(Path(one.path).name, one.why) for one in found.foreign] == [
        (victim.name, "it differed from the ledger; corrected")
    ]
    assert victim.read_bytes() == good
    assert not victim.is_symlink()
    assert outside.read_bytes() == good


def test_what_is_missing_is_delivered_again_without_an_alarm(operator: Operator) -> None:
    mirror(operator)
    for path in place(operator).iterdir():
        path.unlink()
    assert mirror(operator).foreign == ()
    assert len(names(operator)) == 4


def test_files_of_others_are_told_and_left_alone(operator: Operator) -> None:
    mirror(operator)
    other = Operator(operator.root / "other")
    other.decide("a")
    kept = {
        f"{'0' * 32}.json": b"{}",
        f"{'1' * 32}.json": other.ledger.bytes_of(other.chain().entries[0]),
        "approved.json": b"{}",
        f"{'2' * 32}.md": b"# Approved",
    }
    for name, data in kept.items():
        (place(operator) / name).write_bytes(data)
    (place(operator) / f"{'3' * 32}.json").mkdir()
    told = {Path(one.path).name: one.why for one in mirror(operator).foreign}
    assert "not in the form" in told[f"{'0' * 32}.json"]
    assert "not one of yours" in told[f"{'1' * 32}.json"]
    assert told["approved.json"] == told[f"{'2' * 32}.md"] == "agentwatch did not put it there"
    assert "not a regular file" in told[f"{'3' * 32}.json"]
    assert len(told) == 5
    for name, data in kept.items():
        assert (place(operator) / name).read_bytes() == data


def test_a_decision_that_the_ledger_lost_is_told(operator: Operator) -> None:
    mirror(operator)
    operator.files()[1].unlink()
    (told,) = [one for one in mirror(operator).foreign if one.path.endswith(".json")]
    assert "you signed it, and it is not in the ledger" in told.why


def test_of_very_many_files_of_others_some_are_told(operator: Operator) -> None:
    mirror(operator)
    for number in range(1_100):
        (place(operator) / f"{number}.txt").touch()
    assert len(mirror(operator).foreign) == 1_000


@pytest.mark.parametrize("which", [".agentwatch", ".agentwatch/decisions"])
@pytest.mark.parametrize("kind", ["link", "file", "pipe"])
def test_nothing_is_written_through_what_stands_in_the_place_of_a_directory(
    operator: Operator, which: str, kind: str
) -> None:
    outside = operator.root / "outside"
    (outside / "decisions").mkdir(parents=True)
    victim = operator.workspace / which
    victim.parent.mkdir(exist_ok=True)
    if kind == "link":
        victim.symlink_to(outside)
    elif kind == "file":
        victim.write_text("x")
    else:
        os.mkfifo(victim)
    found = mirror(operator)
    assert found.delivered == ()
    assert found.pending == tuple(ids(operator))
    assert f"{which} is a link or no directory" in (found.reason or "")
    assert "remove it" in (found.reason or "")
    assert [path.name for path in outside.rglob("*")] == ["decisions"]
    entry = operator.chain().entries[0]
    assert "remove it" in (deliver(operator.workspace, entry, operator.ledger.bytes_of, QUICK) or "")
    victim.unlink()
    assert mirror(operator).delivered == tuple(ids(operator))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EROFS, "the workspace: Read-only file system; make it writable for you"),
        (errno.ENOSPC, "the workspace: No space left on device; free space"),
    ],
)
def test_a_workspace_that_cannot_be_written_keeps_decisions_waiting(
    operator: Operator, number: int, words: str
) -> None:
    for call in ("mkdir", "write"):
        found = mirror(operator, failing(**{call: number}))
        assert found.pending == tuple(ids(operator))
        assert words in (found.reason or "")
    assert deliver(operator.workspace, operator.chain().entries[0], operator.ledger.bytes_of, QUICK) is None
    assert mirror(operator).delivered == tuple(ids(operator))


def test_a_workspace_that_is_gone_keeps_decisions_waiting(operator: Operator) -> None:
    chain = operator.chain()
    operator.workspace.rmdir()
    assert deliver(operator.workspace, chain.entries[0], operator.ledger.bytes_of, QUICK) is not None
    found = mirror_missing(operator.workspace, chain, operator.ledger.bytes_of, operator.trust, disk=QUICK)
    assert found.pending
    assert found.reason


def test_a_ledger_that_cannot_be_read_keeps_the_rest_going(operator: Operator) -> None:
    chain = operator.chain()
    operator.files()[0].unlink()
    found = mirror_missing(operator.workspace, chain, operator.ledger.bytes_of, operator.trust, disk=QUICK)
    assert (found.pending, found.delivered) == (
        (chain.entries[0].record.decision_id,),
        (chain.entries[1].record.decision_id,),
    )
    assert "cannot be read" in (found.reason or "")
    assert "cannot be read" in (deliver(operator.workspace, chain.entries[0], operator.ledger.bytes_of, QUICK) or "")


def test_what_a_killed_writer_left_long_ago_is_removed(operator: Operator) -> None:
    mirror(operator)
    old, new = place(operator) / ".writing-0", place(operator) / ".writing-1"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (1_000, 1_000))
    assert mirror(operator).foreign == ()
    assert not old.exists()
    assert new.exists()


def test_the_page_shows_everything_and_nothing_that_moves_a_terminal(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    hostile = "x\x1b]52;c;aGk=\x07\u202e\n````\n# Faked\n"
    operator.decide(hostile, note=hostile, params=Params(handoff=hostile, mitigation=Mitigation.REDUCED_SCOPE))
    operator.decide("b", Action.ESCALATE, params=Params(mode=hostile), operator=hostile)
    operator.decide("c", Action.ABORT, params=Params(report="## Status\nstate: ERROR\n"))
    operator.decide("d", Action.RESPOND, params=Params(answers=(Answer(hostile, hostile), Answer(None, "yes"))))
    mirror(operator)
    pages = {
        entry.record.task_id: (place(operator) / f"{entry.record.decision_id}.md").read_text()
        for entry in operator.chain().entries
    }
    for text in pages.values():
        assert all(character.isprintable() or character == "\n" for character in text)
    first = pages[hostile].split("\n")
    assert first[0].startswith("# Retry: x␛]52")
    assert "- mitigation: reduced_scope" in first
    # The fence around it is longer than any inside.
    assert first.count("`````") == 4
    assert "- mode: x␛" in pages["b"]
    assert "## Final report\n\n```\n## Status\nstate: ERROR\n```\n" in pages["c"]
    assert "- yes\n" in pages["d"]
    assert "`agentwatch wait`" in pages["d"]
