"""`.agentwatch/errors.json`: once each, bounded, always JSON, and nothing that lies in its place leads anywhere."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.events import Checked, Claim, Verdict
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.disk import Disk
from agentwatch.history.store import MOST_ENTRIES, Entry, append_errors, entries_of
from tests.unit.history.recorded import META, Workspace, meta, packet, tree_of

FAILURE: Entry = {
    "at": "2023-11-14T22:13:20+00:00",
    "agent": "coder",
    "task_id": "checkout.api",
    "path": "api.return.md",
    "digest": "a" * 64,
    "rules": ["RET004"],
    "errors": [{"rule": "RET004", "line": 3, "message": "State is missing."}],
    "recommendation": "Fix coder subagent return format",
}


def entries(workspace: Path) -> list[dict[str, Any]]:
    document = json.loads((workspace / ".agentwatch" / "errors.json").read_text("ascii"))
    assert document["schema_version"] == 1
    found: list[dict[str, Any]] = document["errors"]
    return found


def names(workspace: Path) -> list[str]:
    return sorted(file.name for file in (workspace / ".agentwatch").iterdir())


def many(count: int) -> list[Entry]:
    return [{**FAILURE, "task_id": f"task.{number}"} for number in range(count)]


def test_an_entry_is_written_as_it_is(tmp_path: Path) -> None:
    assert append_errors(tmp_path, [FAILURE]) is None
    assert entries(tmp_path) == [FAILURE]
    assert names(tmp_path) == [".gitignore", "errors.json"]
    assert (tmp_path / ".agentwatch" / ".gitignore").read_text() == "*\n"


def test_each_entry_is_appended_once(tmp_path: Path) -> None:
    other = {**FAILURE, "digest": "b" * 64}
    assert append_errors(tmp_path, [FAILURE, FAILURE]) is None
    assert append_errors(tmp_path, [{**FAILURE, "at": ""}, other]) is None
    written = (tmp_path / ".agentwatch" / "errors.json").stat()
    assert append_errors(tmp_path, [other, FAILURE]) is None
    assert [entry["digest"][0] for entry in entries(tmp_path)] == ["a", "b"]
    assert (tmp_path / ".agentwatch" / "errors.json").stat().st_ino == written.st_ino


def test_the_last_thousand_are_kept(tmp_path: Path) -> None:
    assert append_errors(tmp_path, many(MOST_ENTRIES + 5)) is None
    assert append_errors(tmp_path, [FAILURE]) is None
    found = entries(tmp_path)
    assert len(found) == MOST_ENTRIES
    assert (found[0]["task_id"], found[-1]["task_id"]) == ("task.6", "checkout.api")


def test_foreign_texts_are_cut_and_a_time_of_another_world_breaks_nothing(tmp_path: Path) -> None:
    long = "x\x1b]52;c;aGk=\x07\u202e\ud800" + "\U0001f600" * 5_000
    seen = Workspace().seen(META, meta("implemented", agent=long), at=1e300)
    broken = tuple(Finding(f"RET{number}", Severity.ERROR, long) for number in range(100))
    tree = tree_of([seen._replace(findings=broken)])
    (entry,) = [entry for task in tree.tasks.values() for entry in entries_of(task)]
    assert (entry["at"][:4], len(json.dumps(entry)) < 80_000) == ("1970", True)
    assert append_errors(tmp_path, [{**entry, "task_id": str(number)} for number in range(30)]) is None
    assert append_errors(tmp_path, [FAILURE]) is None
    assert names(tmp_path) == [".gitignore", "errors.json"]
    assert (len(entries(tmp_path)), entries(tmp_path)[-1]) == (31, FAILURE)
    assert b"\x1b" not in (tmp_path / ".agentwatch" / "errors.json").read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"errors": [1]}',
        b'{"errors": [{"task_id": "a", "digest": "x", "more": NaN}]}',
        b'{"errors": [{"task_id": "a", "digest": "x", "more": 1e999}]}',
        b'{"errors": [{"task_id": "a", "digest": "x", "more": ' + b"9" * 5_000 + b"}]}",
        b'{"errors":' + b"[" * 100_000,
        b"\xff\xfe\x00",
        b'{"schema_version": 1, "errors": [{"task_id": "a", "dig',
    ],
)
def test_a_file_that_is_not_ours_is_set_aside_whole(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / ".agentwatch"
    place.mkdir()
    (place / "errors.json").write_bytes(content)
    assert "set aside" in (append_errors(tmp_path, [FAILURE]) or "")
    assert len(entries(tmp_path)) == 1
    (aside,) = place.glob("errors.broken-*.json")
    assert aside.read_bytes() == content


@pytest.mark.parametrize("kind", ["pipe", "socket", "directory", "full directory", "link", "dangling link", "device"])
def test_what_is_no_file_is_set_aside_and_never_followed(tmp_path: Path, kind: str) -> None:
    workspace, place = tmp_path / "w", tmp_path / "w" / ".agentwatch"
    place.mkdir(parents=True)
    outside = tmp_path / "outside.json"
    outside.write_text('{"schema_version": 1, "errors": []}')
    name = place / "errors.json"
    if kind == "pipe":
        os.mkfifo(name)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.open(place, os.O_RDONLY)
            server.bind(f"/proc/self/fd/{here}/errors.json")
            os.close(here)
    elif "directory" in kind:
        name.mkdir()
        if kind.startswith("full"):
            (name / "kept").write_text("x")
    elif kind == "device":
        name.symlink_to("/dev/zero")
    else:
        name.symlink_to(outside if kind == "link" else tmp_path / "nowhere.json")
    assert "set aside" in (append_errors(workspace, [FAILURE]) or "")
    assert len(entries(workspace)) == 1
    assert outside.read_text() == '{"schema_version": 1, "errors": []}'
    assert not (tmp_path / "nowhere.json").exists()
    assert [name[:14] for name in names(workspace)] == [".gitignore", "errors.broken-", "errors.json"]


@pytest.mark.parametrize("kind", ["link", "file", "pipe"])
def test_a_directory_that_is_none_is_refused_in_words(tmp_path: Path, kind: str) -> None:
    workspace, outside = tmp_path / "w", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    place = workspace / ".agentwatch"
    if kind == "link":
        place.symlink_to(outside)
    elif kind == "file":
        place.write_text("x")
    else:
        os.mkfifo(place)
    reason = append_errors(workspace, [FAILURE])
    assert reason is not None
    assert "remove it" in reason
    assert list(outside.iterdir()) == []


def test_an_error_of_the_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert append_errors(tmp_path, [FAILURE]) is None
    before = entries(tmp_path)

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Disk, "fsync", staticmethod(fail))
    reason = append_errors(tmp_path, many(1))
    assert "No space left" in (reason or "")
    assert entries(tmp_path) == before
    assert names(tmp_path) == [".gitignore", "errors.json"]


def checked(tree: Tree, task_id: str, *claims: Claim) -> Task:
    attempt = tree.tasks[task_id].latest
    assert attempt is not None
    assert attempt.returned is not None
    tree.apply(Checked(99, 99.0, attempt.returned.path, attempt.returned.digest, claims))
    return tree.tasks[task_id]


def failures(task: Task) -> list[tuple[str, list[str]]]:
    return [(entry["path"], entry["rules"]) for entry in entries_of(task)]


NOWHERE = Claim("artifact", "plan.md", Verdict.CONTRADICTED, "missing: no such file in the workspace", is_missing=True)


@pytest.mark.parametrize("status", ["completed", "implemented"])
def test_a_missing_artifact_of_a_completed_return_is_a_failure_too(status: str) -> None:
    tree = tree_of([Workspace().seen(META, meta(status))])
    task_id = "specs/7_api/coder"
    task = checked(tree, task_id, NOWHERE, NOWHERE)
    assert (task.state, task.contradicted) == (State.COMPLETED, True)
    (placed,) = [placed for placed in task.findings if placed.rule == "LNK007"]
    assert placed.path == META
    assert "the artifact plan.md is not on disk" in placed.message
    assert failures(task) == [(META, ["LNK007"])]
    assert (
        failures(checked(tree, task_id, NOWHERE._replace(verdict=Verdict.VERIFIED, detail="exists", is_missing=False)))
        == []
    )


def test_every_attempt_that_broke_its_contract_is_a_failure() -> None:
    workspace = Workspace()
    tree = tree_of(
        [
            workspace.seen("x.handoff.json", packet("x")),
            workspace.seen("x.return.md", "## Status\nstate: SUCCESS\nsummary: done\n"),
            workspace.seen(META, meta("implemented")),
        ]
    )
    (entry,) = [entry for task in tree.tasks.values() for entry in entries_of(task)]
    (attempt,) = tree.tasks["x"].attempts
    assert attempt.state is State.INVALID
    assert attempt.returned is not None
    assert (entry["task_id"], entry["agent"], entry["path"]) == ("x", None, "x.return.md")
    assert entry["digest"] == attempt.returned.digest
    assert entry["rules"]
    assert all(rule.startswith("RET") for rule in entry["rules"])
    assert entry["errors"][0].keys() == {"rule", "line", "message"}
    assert entry["recommendation"] == "Fix x subagent return format"
