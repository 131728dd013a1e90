"""Rules that no document breaks alone: of files that cannot be read, and of documents that contradict each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest

from tests.goldens.documents import adapter
from tests.goldens.documents.store import A_MINUTE_AGO, write_session
from tests.unit.contracts.documents import FAILURE, PACKET, RETURN, SUBAGENT, put, text_of

Files = dict[str, str | bytes | None]


def _packet(task: str = "garden", **keys: object) -> str:
    plain = {key: value for key, value in PACKET.items() if key not in ("parent_task_id", "attempt", "session_id")}
    return text_of({**plain, "task_id": task, **keys})


def _returned(task: str, attempt: int = 1) -> str:
    return RETURN.replace("rows.\n", f"rows.\ntask_id: {task}\nattempt: {attempt}\n", 1)


_SUBAGENT: Final = text_of(put("metadata.session_id", "sess_1_a")(SUBAGENT))
_FENCED: Final = f"```json\n{_packet()}```\n\n"
_PROSE: Final = "I looked at the bed, and it is planned."
_PLANNED: Final = text_of(put("artifacts.1.path", "plans/north.md")(SUBAGENT))

TABLE: Final[list[tuple[str, Files, Files]]] = [
    ("SRC001", {"x.return.md": None}, {"x.return.md": RETURN}),
    ("SRC002", {"x.return.md": "-> y.md", "y.md": RETURN}, {"x.return.md": RETURN}),
    ("SRC003", {"x.return.md": "-> /etc/hostname"}, {"x.return.md": RETURN}),
    ("SRC004", {"x.return.md": RETURN + "\n" * 9_000_000}, {"x.return.md": RETURN + "\n" * 9_000}),
    ("SRC006", {"x.handoff.md": _FENCED.encode() + b"caf\xe9\n"}, {"x.handoff.md": _FENCED + "caf\u00e9\n"}),
    (
        "LNK001",
        {"a.handoff.json": _packet("a", parent_task_id="b"), "b.handoff.json": _packet("b", parent_task_id="a")},
        {"a.handoff.json": _packet("a"), "b.handoff.json": _packet("b", parent_task_id="a")},
    ),
    ("LNK002", {"a.handoff.json": _packet("a", parent_task_id="a")}, {"a.handoff.json": _packet("a")}),
    (
        "LNK003",
        {"b.handoff.json": _packet("b", parent_task_id="a")},
        {"a.handoff.json": _packet("a"), "b.handoff.json": _packet("b", parent_task_id="a")},
    ),
    (
        "LNK004",
        {"a.handoff.json": _packet("a"), "b.handoff.json": _packet("a")},
        {"a.handoff.json": _packet("a"), "b.handoff.json": _packet("a", attempt=2)},
    ),
    (
        "LNK005",
        {"a.handoff.json": _packet("a"), "a.return.md": _returned("a"), "b.return.md": _returned("a")},
        {"a.handoff.json": _packet("a"), "a.return.md": _returned("a"), "b.return.md": _returned("a", 2)},
    ),
    (
        "LNK006",
        {"a.handoff.json": _packet("a", session_id="sess_2_b"), "a.return.json": _SUBAGENT},
        {"a.handoff.json": _packet("a", session_id="sess_1_a"), "a.return.json": _SUBAGENT},
    ),
    ("LNK007", {"x.return.json": _PLANNED}, {"x.return.json": _PLANNED, "plans/north.md": "Nine rows.\n"}),
    (
        "LNK008",
        {"asked": _packet("a"), "returned": _returned("b")},
        {"asked": _packet("a"), "returned": _returned("a")},
    ),
    ("LNK010", {"asked": _packet("a"), "returned": _PROSE}, {"asked": _packet("a"), "returned": RETURN}),
    (
        "LNK011",
        {"a.handoff.json": _packet("a"), "a.return.md": FAILURE, "b.return.md": _returned("a", 2)},
        {
            "a.handoff.json": _packet("a"),
            "a.return.md": FAILURE,
            "b.handoff.json": _packet("a", attempt=2),
            "b.return.md": _returned("a", 2),
        },
    ),
]
BROKEN: Final = {rule for rule, _, _ in TABLE}


def _write(home: Path, workspace: Path, files: Files) -> None:
    """Write files, links (`-> target`), pipes (null), or one child of a session."""
    if "asked" in files:
        write_session(home, workspace, [("child", str(files["asked"]), str(files["returned"]))])
        return
    for name, held in files.items():
        path = workspace / name
        path.parent.mkdir(exist_ok=True)
        if held is None:
            os.mkfifo(path)
        elif isinstance(held, str) and held.startswith("-> "):
            path.symlink_to(held.removeprefix("-> "))
        else:
            path.write_bytes(held if isinstance(held, bytes) else held.encode())
            os.utime(path, (A_MINUTE_AGO.timestamp(),) * 2)


def _rules(home: Path, workspace: Path) -> set[str]:
    found: list[Any] = adapter.checked(home, workspace) + adapter.tasks(home, workspace)
    return {finding["rule"] for each in found for finding in each["findings"]}


@pytest.mark.parametrize(("rule", "broken", "whole"), TABLE, ids=[row[0] for row in TABLE])
def test_a_rule_is_broken_and_its_twin_keeps_it(rule: str, broken: Files, whole: Files, tmp_path: Path) -> None:
    found = []
    for name, files in (("broken", broken), ("whole", whole)):
        home, workspace = (Path(os.path.realpath(tmp_path)) / name / part for part in ("home", "work"))
        home.mkdir(parents=True)
        workspace.mkdir()
        _write(home, workspace, files)
        found.append(_rules(home, workspace))
    assert rule in found[0], found[0]
    assert rule not in found[1]
