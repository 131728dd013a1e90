"""Deciding at once, pages and copies of decisions in the workspace, and which attempt an old decision answers."""

import json
import shutil
import subprocess
import sys
from functools import reduce
from typing import Any

import pytest

from tests.goldens.ledger.conftest import OPERATOR, Scene, record_in
from tests.goldens.world import World


@pytest.fixture
def live(undecided):
    """Return the workspace at the system's time, as the commands that tests start as processes use the system clock."""
    undecided.world.use_system_clock()
    return undecided


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Return the workspace with a session of Claude Code, whose hooks do not wait."""
    world = World(tmp_path / "w", monkeypatch)
    world.use_key()
    world.copy_shop()
    (world.config / "config.toml").write_text("[hook]\nwait = 0\n")
    return Scene(world)


@pytest.mark.parametrize("agree", [True, False])
def test_one_of_several_operators_at_once_decides(live, agree):
    notes = ["the same"] * 4 if agree else [f"opinion {number}" for number in range(4)]
    words = [sys.executable, "-m", "agentwatch", "decide", "shop.api", "--retry", "--yes", "--note"]
    started = [subprocess.Popen([*words, note], cwd=live.shop, stderr=subprocess.DEVNULL) for note in notes]
    codes = sorted(one.wait() for one in started)
    assert codes == ([0] * 4 if agree else [0, 6, 6, 6])
    (file,) = live.files()
    assert record_in(file.read_bytes())["note"] in notes
    assert live.verify() == 0


# The page of a decision in the workspace

HEADINGS = {
    "Retry": ["--retry"],
    "Escalate": ["--escalate", "debug"],
    "Abort": ["--abort"],
    "Accept the return": ["--accept", "--note", "Good."],
}


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_page_has_the_bytes_that_it_always_had(undecided, heading):
    """Old pages are compared with the text that would be written today: a changed word would look like a forgery."""
    if heading == "Accept the return":
        returned = undecided.shop / "api.return.md"
        returned.write_text(returned.read_text().replace("state: ERROR", "state: PARTIAL"))
    assert undecided.decide("shop.api", *HEADINGS[heading]) == 0
    (page,) = undecided.mirror.glob("*.md")
    first, blank, second, *_ = page.read_text().splitlines()
    assert (first, blank) == (f"# {heading}: shop.api, attempt 1", "")
    assert second.startswith("- decision: ")


def test_a_state_path_that_is_no_directory_is_refused(undecided):
    place = undecided.world.home / ".local" / "state"
    place.parent.mkdir()
    place.write_text("a file")
    done = undecided.world.run("decide", "shop.api", "--retry", "--yes", cwd=undecided.shop)
    assert done.code == 2
    assert "not recorded" in done.err or "cannot" in done.err
    assert not (undecided.shop / ".agentwatch").exists()
    place.unlink()
    assert undecided.decide("shop.api", "--retry") == 0


def test_copies_that_an_agent_has_changed_are_restored(scene):
    copies = sorted(scene.mirror.iterdir())
    before = [path.read_bytes() for path in copies]
    copies[0].unlink()
    copies[1].write_text("do as I say")
    (scene.state / "receipts").joinpath("nonsense.json").write_text("{")
    assert scene.verify() == 1
    assert scene.wait("shop.api")[0] == scene.wait("shop.ship")[0] == 0
    assert scene.decide("shop.web", "--respond", "8080") == 0
    assert [path.read_bytes() for path in copies] == before


# An amended handoff and a second attempt are never answered with the old decision


OTHER = {"objective": "Build another API."}
FAILED = (("timed out", "failed otherwise"),)
CHANGES: dict[str, dict[str, Any]] = {
    "a rewritten return": {"api.return.md": FAILED},
    "a second attempt": {"api.2.handoff.json": {"attempt": 2}},
    "a second failure": {"api.2.handoff.json": {"attempt": 2}, "api.2.return.md": ()},
    "amended": {"api.handoff.json": {"attempt": 2} | OTHER},
    "amended and failed": {"api.handoff.json": {"attempt": 2} | OTHER, "api.return.md": FAILED},
    "amended in place": {"api.handoff.json": OTHER},
    "amended in place and failed": {"api.handoff.json": OTHER, "api.return.md": FAILED},
    "a handoff without number": {"api-b.handoff.json": OTHER},
    "a return without number": {"api-b.return.md": (*FAILED, ("state:", "task_id: shop.api\nstate:"))},
}
CHANGES["a failure without number"] = CHANGES["a handoff without number"] | CHANGES["a return without number"]


def write_change(scene: Scene, name: str):
    """Change the handoff to other keys, or the return to other words, as the change of this name says."""
    packet, text = json.loads((scene.shop / "api.handoff.json").read_text()), (scene.shop / "api.return.md").read_text()
    for file, new in CHANGES[name].items():
        other = (
            json.dumps(packet | new) if isinstance(new, dict) else reduce(lambda old, to: old.replace(*to), new, text)
        )
        (scene.shop / file).write_text(other)


def document(scene: Scene, command: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(scene.world.run(command, "--json", cwd=scene.shop).out)
    return found


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("before", ["new", "asked", "remembered"])
def test_an_old_decision_does_not_answer_wait(scene, change, before):
    if before == "remembered":
        scene.remember()
    if before != "new":
        assert scene.wait("shop.api")[1]["action"] == "retry"
    scene.world.wait(minutes=1)
    write_change(scene, change)
    scene.world.date_files()
    (task,) = [one for one in document(scene, "tree")["tasks"] if one["task_id"] == "shop.api"]
    asks = "shop.api" in [one["task_id"] for one in document(scene, "pending")["tasks"]]
    assert (task["state"], asks) in (("failed", True), ("submitted", False))
    for _ in range(2):
        code, said = scene.wait("shop.api")
        assert (code, said["pending"], said.get("action")) == (3, True, None)
    assert said["state"] == task["state"]
    if asks:
        assert scene.decide("shop.api", "--abort") == 0
        assert scene.wait("shop.api")[1]["action"] == "abort"


def test_wait_finds_a_task_that_the_history_does_not_know(scene):
    scene.remember()
    packet = json.loads((scene.shop / "api.handoff.json").read_text())
    (scene.shop / "deep").mkdir()
    (scene.shop / "deep" / "new.handoff.json").write_text(json.dumps(packet | {"task_id": "new"}))
    scene.world.date_files()
    assert scene.wait("new")[1]["state"] == "submitted"


def test_a_copy_of_the_handoff_is_no_new_one(scene):
    scene.world.wait(minutes=1)
    shutil.copy(scene.shop / "api.handoff.json", scene.shop / "copy.handoff.json")
    scene.world.date_files()
    assert scene.wait("shop.api")[1]["action"] == "retry"


@pytest.mark.parametrize("change", ["a handoff without number", "a failure without number"])
def test_in_a_sandbox_an_old_decision_does_not_answer_either(scene, change, monkeypatch):
    monkeypatch.setenv("AGENTWATCH_PUBLIC_KEY", OPERATOR.text)
    shutil.rmtree(scene.world.home / ".local")
    shutil.rmtree(scene.world.config / "keys")
    assert scene.wait("shop.api")[1]["action"] == "retry"
    scene.world.wait(minutes=1)
    write_change(scene, change)
    scene.world.date_files()
    assert scene.wait("shop.api")[0] == 3


def test_an_old_decision_does_not_answer_a_hook(session):
    payload = (session.world.root / "payloads" / "stop-failed.json").read_text()

    def stop(text: str) -> str:
        return session.world.run("hook", stdin=text.encode(), cwd=session.shop).out

    assert session.decide("shop.search", "--retry", "--note", "Look again.") == 0
    assert "Look again." not in stop(payload.replace("is gone", "is broken"))
    assert "Look again." in stop(payload)
    assert "Look again." not in stop(payload)
