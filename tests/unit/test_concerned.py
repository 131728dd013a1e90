"""A task of which only the documents are recognised that can speak of it is told of as by all of them."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest

from agentwatch.composition import scanned
from agentwatch.concerned import Concerned, is_unconcerned
from agentwatch.config import Settings
from agentwatch.delegation.task import Task
from agentwatch.history import outline, schema, store
from agentwatch.history.database import last_written
from agentwatch.history.store import History
from agentwatch.kept.noted import sign_at
from agentwatch.place import state_directory
from agentwatch.sightings import sighted
from agentwatch.sources.files.documents import Documents
from agentwatch.sources.files.source import FilesSource
from tests.homes import live_in
from tests.unit.agents.documents import packet, returned

_EXAMPLES = int(os.environ.get("AGENTWATCH_EXAMPLES", "20"))
_IDS = ("a", "b", "a.b", "job", "job/a", "job/deep", "job/deep/a", "architect", "job/architect", "é", "c d")
_PLACES = ("", "job/", "job/deep/", "job/handoffs/", "job/returns/", "other/", "other/returns/")
_FAR = tuple(f"far/{place}/" for place in "abcdef")
_NAMES = ("handoff.json", "return.md", "a.handoff.json", "a.return.md", "b.handoff.json", "b.md", "return-meta.json")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(tmp_path, monkeypatch)
    # Half a document is waited for, and counts as written later.
    monkeypatch.setattr(Documents, "_rest", lambda *_, **__: 0.0)


def told(task: Task | None) -> object:
    if task is None:
        return None
    latest = task.latest.returned if task.latest is not None else None
    # Its number in the order of all that were recognised says nothing by itself.
    return task.own_state, task.question is None, latest and latest._replace(seq=0)


def text_of(dice: random.Random) -> str:
    """A document that says of what task it is, or does not, in one of the ways in which that is written."""
    task_id: str | None = dice.choice((*_IDS, None, None, None))
    way = dice.randrange(6)
    if way < 2:
        given = {} if task_id is None else {"task_id": task_id}
        wished = {"objective": "Do it.", "evidence": [], "success_criteria": ["It works"], "risks": []}
        if dice.random() < 0.2:
            given["parent_task_id"] = dice.choice(_IDS)
        return json.dumps(given | wished, ensure_ascii=way == 0)
    if way == 2:
        path = [dice.choice(("orchestrator", "architect", "a")) for _ in range(dice.randrange(4))]
        status = dice.choice(("completed", "failed", "in_progress"))
        document = {"status": status, "summary": "Did it.", "artifacts": []}
        about = {"session_id": "s1", "agent_type": "a", "delegation_depth": len(path), "delegation_path": path}
        return json.dumps(document | {"metadata": about, "errors": []})
    said = returned(dice.choice(("SUCCESS", "ERROR", "PARTIAL")))
    if task_id is None:
        return said
    value = {3: task_id, 4: f"**`{task_id}`**", 5: f"{task_id[:1]}<!-- of ours -->{task_id[1:]}"}[way]
    return said.replace("\nsummary:", f"\ntask_id: {value}\nsummary:", 1)


@pytest.mark.parametrize("number", range(_EXAMPLES))
def test_a_task_is_told_of_as_if_all_documents_were_recognised(tmp_path: Path, number: int) -> None:
    seed = random.randrange(2**32) + number
    dice, workspace = random.Random(seed), tmp_path / "shop"
    texts = [text_of(dice) for _ in range(8)]
    for at in range(dice.randrange(1, 12)):
        path = workspace / (dice.choice(_PLACES) + dice.choice(_NAMES))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dice.choice(texts), "utf-8")
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + dice.randrange(9)))
    settings = Settings(sessions=dice.random() < 0.5)
    whole = scanned(workspace, settings, inspects=True).tree.tasks
    for task_id in {*_IDS, *whole, "nobody"}:
        found = sighted(workspace, settings, task_id, scanned, inspects=True).task
        assert told(found) == told(whole.get(task_id)), (seed, task_id)


def watch_once(workspace: Path, dice: random.Random) -> None:
    """A screen has looked, and remembers what it saw; perhaps also how the files were when it ended."""
    history, files = History.open(workspace), FilesSource(workspace)
    files.remember(history.files(), last_written(state_directory(workspace)))
    history.record(files.scan().observations, files.content)
    if dice.random() < 0.5:
        # Files that are too young are not known again.
        time.sleep(0.025)
        files.scan()
        history.keep_files(files.known())
    history.close()


def live(workspace: Path, dice: random.Random, texts: list[bytes]) -> None:
    """Something happens in a workspace that a screen watches now and then."""
    path = workspace / (dice.choice((*_PLACES, *_FAR)) + dice.choice(_NAMES))
    path.parent.mkdir(parents=True, exist_ok=True)
    there = [one for one in sorted(workspace.rglob("*")) if one.is_file()]
    match dice.randrange(8):
        case 0 | 1:
            watch_once(workspace, dice)
        case 2 if there:
            dice.choice(there).unlink()
        case 3 if there:
            dice.choice(there).rename(path)
        case 4 if there:
            path.write_bytes(dice.choice(there).read_bytes())
        case 5 if not path.exists():
            path.write_bytes(dice.choice(texts))
            watch_once(workspace, dice)
            path.unlink()
        case _:
            # Mostly no two are alike.
            path.write_bytes(dice.choice(texts) + b"\n" * dice.choice((0, dice.randrange(200))))
            if dice.random() < 0.5:
                os.utime(path, (1_700_000_000, 1_700_000_000 + dice.randrange(9)))


@pytest.mark.parametrize("number", range(_EXAMPLES))
def test_a_task_is_told_of_as_if_all_of_the_history_was_recalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    seed = random.randrange(2**32) + number
    dice, workspace, now = random.Random(seed), tmp_path / "shop", time.time()
    workspace.mkdir()
    # What was put there counts from the look on.
    monkeypatch.setattr(time, "time", lambda: now)
    texts = [text_of(dice).encode() for _ in range(8)]
    texts += [b"\xef\xbb\xbf" + texts[0], texts[1] + b"\xff"]
    if dice.random() < 0.3:
        # Another version has judged it: each is read again by its text.
        monkeypatch.setattr(outline, "is_current", lambda _: False)
        monkeypatch.setattr(store, "is_current", lambda _: False)
    for _ in range(dice.randrange(2, 24)):
        live(workspace, dice, texts)
    settings = Settings(sessions=False)
    whole = scanned(workspace, settings, inspects=True).tree.tasks
    for task_id in {*_IDS, *whole, "nobody"}:
        found = sighted(workspace, settings, task_id, scanned, inspects=True).task
        assert told(found) == told(whole.get(task_id)), (seed, task_id)


def signs_below(root: Path) -> dict[str, object]:
    return {str(path): sign_at(str(path), follows=False) for path in (root, *root.rglob("*"))}


@pytest.mark.parametrize("number", range(_EXAMPLES))
def test_of_a_task_that_no_change_concerns_the_same_is_told(tmp_path: Path, number: int) -> None:
    seed = random.randrange(2**32) + number
    dice, workspace = random.Random(seed), tmp_path / "shop"
    texts = [text_of(dice) for _ in range(12)]
    places = (*_PLACES, *_FAR, "a/b/", "job/deep/er/")

    def write() -> None:
        path = workspace / dice.choice(places) / dice.choice(_NAMES)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dice.choice(texts), "utf-8")

    for _ in range(dice.randrange(1, 12)):
        write()
    settings, where = Settings(sessions=False), [str(workspace), [".git"], 10_000]
    whole = scanned(workspace, settings, inspects=False, dates=True).tree.tasks
    matters = {}
    for task_id in {*_IDS, *whole, "nobody"}:
        if (task := whole.get(task_id)) is not None and task.inferred:
            continue
        concerned = Concerned(task_id)
        while concerned.has_missed():
            scanned(workspace, settings, concerned=concerned, inspects=False)
        matters[task_id] = json.dumps([[[where, concerned.told(), None]], []]).encode()
    before = signs_below(workspace)
    names = os.fsencode("\n".join(before))
    for _ in range(dice.randrange(1, 3)):
        path = dice.choice(sorted(workspace.rglob("*")) or [workspace])
        match dice.randrange(5):
            case 0 if path.is_file():
                path.unlink()
            case 1:
                path.rename(path.with_name(f"moved{path.suffix}"))
            case _:
                write()
    after = signs_below(workspace)
    changed = [path for path, sign in before.items() if after.get(path) != sign]
    now = scanned(workspace, settings, inspects=False, dates=True).tree.tasks
    for task_id, said in matters.items():
        if is_unconcerned(said, changed, names):
            assert told(now.get(task_id)) == told(whole.get(task_id)), (seed, task_id)


@pytest.mark.parametrize("number", range(_EXAMPLES))
def test_beside_a_screen_the_same_is_told_of_a_task_that_no_change_concerns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    seed = random.randrange(2**32) + number
    dice, workspace, now = random.Random(seed), tmp_path / "shop", time.time()
    workspace.mkdir()
    monkeypatch.setattr(time, "time", lambda: now)
    texts = [text_of(dice).encode() for _ in range(8)]
    texts += [b"\xef\xbb\xbf" + texts[0], texts[1] + b"\xff"]
    for _ in range(dice.randrange(2, 16)):
        live(workspace, dice, texts)
    if dice.random() < 0.8:
        watch_once(workspace, dice)
    settings, where = Settings(sessions=False), [str(workspace), [".git"], 10_000]
    history = state_directory(workspace) / schema.NAME
    whole = scanned(workspace, settings, inspects=False, dates=True).tree.tasks
    matters = {}
    for task_id in {*_IDS, *whole, "nobody"}:
        if (task := whole.get(task_id)) is not None and task.inferred:
            continue
        concerned = Concerned(task_id)
        while concerned.has_missed():
            scanned(workspace, settings, concerned=concerned, inspects=False)
        if not concerned.is_unsure:
            matters[task_id] = json.dumps([[[where, concerned.told(), [str(history), concerned.part]]], []]).encode()
    before = signs_below(workspace) | {str(history): sign_at(str(history), follows=False)}
    names = os.fsencode("\n".join(before))
    for _ in range(dice.randrange(1, 4)):
        live(workspace, dice, texts)
    after = signs_below(workspace) | {str(history): sign_at(str(history), follows=False)}
    changed = [path for path, sign in before.items() if after.get(path) != sign]
    later = scanned(workspace, settings, inspects=False, dates=True).tree.tasks
    for task_id, said in matters.items():
        if is_unconcerned(said, changed, names):
            assert told(later.get(task_id)) == told(whole.get(task_id)), (seed, task_id)


def test_what_only_a_screen_saw_concerns_its_task_and_no_other(tmp_path: Path) -> None:
    workspace, dice = tmp_path / "shop", random.Random(0)
    history, where = state_directory(workspace) / schema.NAME, [str(workspace), [".git"], 10_000]
    handoff = workspace / "one" / "handoff.json"
    handoff.parent.mkdir(parents=True)
    handoff.write_text(packet("one"))
    watch_once(workspace, dice)
    said = {}
    for task_id in ("one", "two"):
        concerned = Concerned(task_id)
        while concerned.has_missed():
            scanned(workspace, Settings(sessions=False), concerned=concerned, inspects=False)
        said[task_id] = json.dumps([[[where, concerned.told(), [str(history), concerned.part]]], []]).encode()
    names = os.fsencode("\n".join(signs_below(workspace)))
    (workspace / "far").mkdir()
    (workspace / "far" / "handoff.json").write_text(packet("two"))
    watch_once(workspace, dice)
    (workspace / "far" / "handoff.json").unlink()
    changed = [str(workspace), str(history), f"{history}-wal"]
    assert [is_unconcerned(said[task_id], changed, names) for task_id in ("one", "two")] == [True, False]


def test_what_cannot_speak_of_a_task_is_not_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Concerned.recognise
    recognised = set[str]()

    def recognising(self: Concerned, text: str, path: str) -> object:
        found = read(self, text, path)
        recognised.update([path] if found is not None else [])
        return found

    monkeypatch.setattr(Concerned, "recognise", recognising)
    for name in ("one", "two"):
        (tmp_path / "shop" / name).mkdir(parents=True)
        (tmp_path / "shop" / name / "handoff.json").write_text(packet(name))
        (tmp_path / "shop" / name / "return.md").write_text(returned("SUCCESS", f"Did {name}."))
    assert sighted(tmp_path / "shop", Settings(sessions=False), "two", scanned).task is not None
    assert recognised == {"two/handoff.json", "two/return.md"}


@pytest.mark.parametrize("written", ["\\u0061.b", "a\\.b", "a.<!-- of ours -->b"])
def test_an_id_is_found_however_it_is_written(written: str) -> None:
    concerned = Concerned("a.b")
    assert concerned.has_missed()
    concerned.recognise("What lies beside it matters.", "far/other.md")
    concerned.recognise(f'{{"task_id": "{written}", "objective": "Do it."}}', "far/handoff.json")
    assert concerned.has_missed()
