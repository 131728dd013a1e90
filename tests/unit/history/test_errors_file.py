"""`.agentwatch/errors.json`: each error once, bounded, always JSON, and no link in its place is followed."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.events import Checked, Claim, Verdict
from agentwatch.delegation.task import State
from agentwatch.history.store import MOST_ENTRIES, append_errors, fault_entries
from tests.unit.delegation.events import tree_of
from tests.unit.history.recorded import META, Workspace, meta, packet

FAILURE = {
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
    return document["errors"]


def names(workspace: Path) -> list[str]:
    return sorted(file.name for file in (workspace / ".agentwatch").iterdir())


def test_each_entry_is_appended_once(tmp_path):
    other = {**FAILURE, "digest": "b" * 64}
    assert append_errors(tmp_path, [FAILURE, FAILURE]) is None
    assert entries(tmp_path) == [FAILURE]
    assert names(tmp_path) == [".gitignore", "errors.json"]
    assert (tmp_path / ".agentwatch" / ".gitignore").read_text() == "*\n"
    assert append_errors(tmp_path, [{**FAILURE, "at": ""}, other]) is None
    written = (tmp_path / ".agentwatch" / "errors.json").stat()
    assert append_errors(tmp_path, [other, FAILURE]) is None
    assert [entry["digest"][0] for entry in entries(tmp_path)] == ["a", "b"]
    assert (tmp_path / ".agentwatch" / "errors.json").stat().st_ino == written.st_ino


def test_the_last_thousand_are_kept(tmp_path):
    many = [{**FAILURE, "task_id": f"task.{number}"} for number in range(MOST_ENTRIES + 5)]
    assert append_errors(tmp_path, many) is None
    assert append_errors(tmp_path, [FAILURE]) is None
    found = entries(tmp_path)
    assert len(found) == MOST_ENTRIES
    assert (found[0]["task_id"], found[-1]["task_id"]) == ("task.6", "checkout.api")


def test_foreign_texts_are_cut_and_no_time_breaks_anything(tmp_path):
    long = "x\x1b]52;c;aGk=\x07\u202e\ud800" + "\U0001f600" * 5_000
    seen = Workspace().seen(META, meta("implemented", agent=long), at=1e300)
    broken = tuple(Finding(f"RET{number}", Severity.ERROR, long) for number in range(100))
    tree = tree_of([seen._replace(findings=broken)])
    (entry,) = [entry for task in tree.tasks.values() for entry in fault_entries(task)]
    assert (entry["at"][:4], len(json.dumps(entry)) < 80_000) == ("1970", True)
    assert append_errors(tmp_path, [{**entry, "task_id": str(number)} for number in range(30)]) is None
    assert append_errors(tmp_path, [FAILURE]) is None
    assert names(tmp_path) == [".gitignore", "errors.json"]
    assert (len(entries(tmp_path)), entries(tmp_path)[-1]) == (31, FAILURE)
    assert b"\x1b" not in (tmp_path / ".agentwatch" / "errors.json").read_bytes()


def written(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


@pytest.mark.parametrize(
    "make",
    [
        *map(written, (b"", b"[]", b'{"errors": [1]}', b'{"errors":' + b"[" * 100_000, b"\xff\xfe\x00")),
        written(b'{"errors": [{"task_id": "a", "digest": "x", "more": 1e999}]}'),
        written(b'{"errors": [{"task_id": "a", "digest": "x", "more": ' + b"9" * 5_000 + b"}]}"),
        os.mkfifo,
        lambda path: (path / "kept").mkdir(parents=True),
        lambda path: path.symlink_to(path.parents[1] / "outside.json"),
        lambda path: path.symlink_to("/dev/zero"),
    ],
)
def test_anything_else_is_set_aside_whole_and_never_followed(tmp_path, make):
    place, outside = tmp_path / ".agentwatch", tmp_path / "outside.json"
    place.mkdir()
    outside.write_text('{"schema_version": 1, "errors": []}')
    make(place / "errors.json")
    before = (place / "errors.json").lstat()
    assert "set aside" in (append_errors(tmp_path, [FAILURE]) or "")
    assert len(entries(tmp_path)) == 1
    assert outside.read_text() == '{"schema_version": 1, "errors": []}'
    (aside,) = place.glob("errors.broken-*.json")
    assert (aside.lstat().st_ino, aside.lstat().st_size) == (before.st_ino, before.st_size)


NOWHERE = Claim("artifact", "plan.md", Verdict.CONTRADICTED, "missing: no such file in the workspace", is_missing=True)


@pytest.mark.parametrize("status", ["completed", "implemented"])
def test_a_missing_artifact_is_a_failure_too(status):
    seen = Workspace().seen(META, meta(status))
    tree = tree_of([seen, Checked(98, 98.0, META, seen.digest, (NOWHERE, NOWHERE))])
    task = tree.tasks["specs/7_api/coder"]
    assert (task.state, task.contradicted) == (State.COMPLETED, True)
    assert [(entry["path"], entry["rules"]) for entry in fault_entries(task)] == [(META, ["LNK007"])]
    found = NOWHERE._replace(verdict=Verdict.VERIFIED, detail="exists", is_missing=False)
    tree.apply(Checked(99, 99.0, META, seen.digest, (found,)))
    assert fault_entries(tree.tasks["specs/7_api/coder"]) == []


def test_every_attempt_that_broke_its_contract_is_a_failure():
    workspace = Workspace()
    tree = tree_of(
        [
            workspace.seen("x.handoff.json", packet("x")),
            workspace.seen("x.return.md", "## Status\nstate: SUCCESS\nsummary: done\n"),
            workspace.seen(META, meta("implemented")),
        ]
    )
    (entry,) = [entry for task in tree.tasks.values() for entry in fault_entries(task)]
    (attempt,) = tree.tasks["x"].attempts
    assert attempt.state is State.INVALID
    assert attempt.returned is not None
    told = [entry[name] for name in ("task_id", "agent", "path", "digest", "recommendation")]
    assert told == ["x", None, "x.return.md", attempt.returned.digest, "Fix x subagent return format"]
    assert entry["rules"]
    assert all(rule.startswith("RET") for rule in entry["rules"])
    assert entry["errors"][0].keys() == {"rule", "line", "message"}
