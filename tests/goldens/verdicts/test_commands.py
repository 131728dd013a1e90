"""Claims in returns about commands, checked against the log of the session: the verdicts of `tree --json`."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.goldens.verdicts.claude import Session, returned, tasks_of
from tests.homes import live_in

Claims = list[dict[str, str]]


CASES: dict[str, Any] = json.loads(Path(__file__).with_name("commands_data.json").read_text(encoding="utf-8"))
HOSTILE = (
    *("\n", " \n", "=", "1 passed, ", "<<'A'\n", "(", "`", "a=1 ", "Tests:  1 a, ", "no issues ", "1 passing\n"),
    *("git ", "< "),
)
"""Texts that, repeated, keep a careless pattern busy for a long time."""


def texts_of(case: Any, kind: str) -> list[str]:
    return [claim["text"] for claim in case["claims"] if claim["kind"] == kind]


@pytest.fixture(scope="module")
def tasks():
    """Return the tasks as printed, with `$WS` for the workspace."""
    # The path is short because details cut the commands that they quote.
    root = Path(tempfile.mkdtemp(prefix="w")).resolve()
    workspace, home = root / "ws", root / "home"
    workspace.mkdir()
    home.mkdir()
    session = Session(home, workspace)
    for name, case in CASES.items():
        evidence, criteria = texts_of(case, "evidence"), texts_of(case, "criterion")
        others = {key: case[key] for key in ("meanwhile", "by_parent") if key in case}
        session.task(task_id(name), case["did"], returned(evidence), criteria=criteria, **others)
        for number, text in enumerate(texts_of(case, "summary")):
            session.task(task_id(name, number), case["did"], returned(summary=text), **others)
    for number, piece in enumerate(HOSTILE):
        text = piece * (30_000 // len(piece))
        deeds = [["ran", text[:16_000], 0, text], ["ran", text, 0, text]]
        session.task(f"hostile.{number}", deeds, returned([text[:2_000]], text))
    session.save()
    with pytest.MonkeyPatch.context() as patch:
        live_in(home, patch)
        printed = json.dumps(tasks_of(workspace)).replace(str(workspace), "$WS").replace(str(root), "$UP")
    shutil.rmtree(root)
    claims: dict[str, dict[str, Any]] = json.loads(printed)
    return claims


@pytest.fixture
def found(tasks):
    """Return the claims of each task, by task id."""
    keys = {"kind": "kind", "text": "path", "verdict": "verdict", "detail": "detail"}
    return {
        task_id: [{key: claim[name] for key, name in keys.items()} for claim in task["claims"]]
        for task_id, task in tasks.items()
    }


def task_id(name: str, summary: int | None = None) -> str:
    of_case = f"case.{list(CASES).index(name)}"
    return of_case if summary is None else f"{of_case}.s{summary}"


def claims_of(name: str, found: dict[str, Claims]) -> dict[str, Claims]:
    """Return the claims of a case by the text that makes them."""
    case = CASES[name]
    texts = texts_of(case, "evidence") + texts_of(case, "criterion")
    by_text = {text: [one for one in found[task_id(name)] if one["text"] == text] for text in texts}
    summaries = enumerate(texts_of(case, "summary"))
    return by_text | {text: found[task_id(name, number)] for number, text in summaries}


def test_claims_of_commands(found, golden):
    golden.check("verdicts/commands.json", {name: claims_of(name, found) for name in CASES})


def test_no_doubtful_claim_is_verified(found):
    """Independently of the golden file, at least one claim of each doubtful text is not verified."""
    for name, case in CASES.items():
        made = claims_of(name, found)
        for text in (claim["text"] for claim in case["claims"] if claim["never_verified"]):
            assert {one["verdict"] for one in made[text]} != {"verified"}, text


def test_hostile_texts_are_read(tasks):
    assert tasks.keys() >= {f"hostile.{number}" for number in range(len(HOSTILE))}
