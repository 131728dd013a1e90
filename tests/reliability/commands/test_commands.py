"""Decisions from the shell, as agents and operators use them: real processes, at the same time, on bad disks."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.decisions.envelope import SigningKey, seal
from agentwatch.delegation.decision import Action
from tests.reliability.commands.stage import TASK, Stage, finished, returned
from tests.unit.decisions.made import record

HIDDEN = "/dev/null/nowhere"
"""A place where nothing can be made, not even by root."""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_an_agent_that_waits_gets_the_decision_that_is_made_elsewhere(stage: Stage) -> None:
    first, second = (stage.start("wait", TASK, stage.workspace, "--timeout=60") for _ in range(2))
    decided = stage.decide("--retry", "--note", "Use the map.")
    assert decided.code == 0, decided.err
    assert re.search(r"^recorded: decision [0-9a-f]{32}$", decided.out, re.MULTILINE)
    for waiter in (finished(first), finished(second)):
        assert waiter.code == 0
        assert waiter.err == ""
        told = waiter.json
        assert (told["pending"], told["task_id"], told["attempt"], told["action"]) == (False, TASK, 1, "retry")
        assert told["return_sha256"] == stage.digest()
        handoff = json.loads(Path(told["handoff_path"]).read_text("utf-8"))
        assert handoff == json.loads(told["params"]["handoff"])
        assert (handoff["attempt"], handoff["decision_id"]) == (2, told["decision_id"])
    way = stage.run("pending", "--json", stage.workspace).json["decisions"]
    assert [one["stage"] for one in way[0]["receipts"]] == ["recorded", "delivered", "read"]


def test_a_decision_is_about_its_attempt_and_not_the_next_one(stage: Stage) -> None:
    assert stage.decide("--retry").code == 0
    told = stage.wait()
    assert told.code == 0
    shutil.copy(told.json["handoff_path"], stage.workspace / "api.handoff.json")
    stage.give_back(returned("It timed out again.").replace("task_id", "attempt: 2\ntask_id"))
    assert stage.wait().code == 3
    assert stage.wait(0, "--attempt", "1").code == 0
    refused = stage.decide("--retry")
    assert refused.code == 1
    assert "no retry left (1 allowed): a material mitigation earns one more" in refused.err
    assert stage.decide("--retry", "--mitigation", "reduced_scope").code == 0
    assert stage.wait().json["attempt"] == 2


def test_a_time_out_is_pending_and_no_refusal(stage: Stage) -> None:
    found = stage.wait(0.2)
    assert found.code == 3
    assert found.json["pending"] is True
    assert found.err == f"pending: the operator has not decided about “{TASK}” yet; call again\n"


def test_a_task_that_nobody_sees_is_told(stage: Stage) -> None:
    found = stage.run("wait", "shop.apo", stage.workspace, "--timeout=0")
    assert found.code == 3
    assert "no task “shop.apo” is seen" in found.err


def test_pressing_twice_is_one_decision_and_another_opinion_is_told_whose_holds(stage: Stage) -> None:
    assert stage.decide("--retry", "--note", "Use the map.").code == 0
    again = stage.decide("--retry", "--note", "Use the map.")
    assert again.code == 0
    assert "recorded before: " in again.out
    assert stage.decide("--retry").code == 0, "nothing is said otherwise"
    assert stage.decide("--retry", "--note", "Use another map.").code == 6
    other = stage.decide("--abort")
    assert other.code == 6
    assert re.search(r"already decided: \S+ said retry at \d{4}-\d\d-\d\dT", other.err)
    assert len(stage.recorded()) == 1
    assert stage.wait().json["action"] == "retry"


def test_of_two_operators_at_once_one_decides_and_the_other_is_told(stage: Stage) -> None:
    stage.run("keys", "create")
    words = ["--yes", "--", TASK, str(stage.workspace)]
    both = [stage.start("decide", way, *words) for way in ("--retry", "--abort")]
    found = [finished(one) for one in both]
    assert sorted(one.code for one in found) == [0, 6]
    assert any("already decided: " in one.err for one in found)
    assert len(stage.recorded()) == 1
    winner = ("retry", "abort")[[one.code for one in found].index(0)]
    assert stage.wait().json["action"] == winner


def test_a_return_that_is_not_the_one_looked_at_is_not_decided(stage: Stage) -> None:
    seen = stage.digest()
    stage.give_back(returned("It is all quite different."))
    found = stage.decide("--retry", "--return-sha256", seen)
    assert found.code == 7
    assert "the return has changed since you looked at it" in found.err
    assert stage.recorded() == []
    assert not stage.mirror.exists()
    for words in (("--attempt", "2"), ("--return-sha256", "none")):
        assert stage.decide("--retry", *words).code != 0
    assert stage.decide("--retry", "--attempt", "1", "--return-sha256", stage.digest()).code == 0


def test_what_the_policy_forbids_is_refused_with_the_reason(stage: Stage) -> None:
    found = stage.decide("--accept", "--note", "Good enough.")
    assert found.code == 1
    assert found.err == "agentwatch: not recorded: accept is not possible here: there is no result to accept\n"
    assert stage.recorded() == []


def test_a_completed_task_with_a_false_claim_can_be_decided(stage: Stage) -> None:
    lie = returned("Done.", "SUCCESS").replace("files_created:\n- (none)", "files_created:\n- made.py")
    stage.give_back(lie)
    task = stage.run("pending", "--json", stage.workspace).json["tasks"][0]
    assert "made.py" in task["ask"]
    assert stage.decide("--retry", "--note", "Make it.").code == 0


def test_without_a_terminal_nothing_is_asked_and_nothing_recorded(stage: Stage) -> None:
    found = stage.run("decide", "--retry", TASK, stage.workspace)
    assert found.code == 2
    assert "say --yes" in found.err
    assert stage.recorded() == []


def test_exactly_one_of_many_claims_a_decision(stage: Stage) -> None:
    decision = stage.decide_in_time(timedelta(days=1))
    askers = [stage.start("claim", decision, stage.workspace, "--by", f"agent {number}") for number in range(4)]
    found = [finished(asker) for asker in askers]
    assert sorted(one.code for one in found) == [0, 6, 6, 6]
    winner = next(one.json["by"] for one in found if one.code == 0)
    assert {one.json["by"] for one in found} == {winner}
    assert all(f"{winner} claimed it at" in one.err for one in found if one.code == 6)


def test_what_nobody_decided_cannot_be_claimed(stage: Stage) -> None:
    assert stage.run("claim", "0" * 32, stage.workspace).code == 3
    assert stage.run("claim", "this one", stage.workspace).code == 2


def test_an_expired_decision_counts_nowhere_until_it_is_made_anew(stage: Stage) -> None:
    decision = stage.decide_in_time(timedelta(0))
    found = stage.wait()
    assert found.code == 4
    assert found.json["expired"]["decision_id"] == decision
    assert "the operator must decide again" in found.err
    assert stage.run("claim", decision, stage.workspace).code == 4
    verified = stage.run("verify", stage.mirror / f"{decision}.json", stage.workspace)
    assert verified.code == 1
    assert "✗ expiry: it held until" in verified.out
    assert stage.decide("--retry").code == 0
    assert stage.wait().json["decision_id"] == decision
    old = stage.run("verify", stage.mirror / f"{decision}.json", stage.workspace)
    assert old.code == 0, old.out


def test_in_a_sandbox_the_mirror_and_the_public_key_are_enough(stage: Stage) -> None:
    decision = stage.decide_in_time(timedelta(days=1))
    shown = stage.run("keys").out
    key = re.search(r"AGENTWATCH_PUBLIC_KEY=(\S+)", shown)
    assert key is not None
    inside = {"XDG_STATE_HOME": HIDDEN, "XDG_CONFIG_HOME": HIDDEN, "AGENTWATCH_PUBLIC_KEY": key[1]}
    found = stage.wait(environment=inside)
    assert found.code == 0
    assert (found.json["decision_id"], found.json["place"]) == (decision, "mirror")
    assert [path.name for path in (stage.workspace / ".agentwatch/receipts").iterdir()] == [
        f"{decision}.read.wait.json"
    ]
    receipts = stage.run("pending", "--json", stage.workspace).json["decisions"][0]["receipts"]
    assert receipts[-1]["claimed"] is True
    # A container has a state directory of its own, which the operator never sees.
    stage.run("wait", TASK, stage.workspace, environment=inside | {"XDG_STATE_HOME": str(stage.root / "container")})
    assert not (stage.root / "container").exists()
    # Without the key nothing is believed.
    del inside["AGENTWATCH_PUBLIC_KEY"]
    assert stage.wait(environment=inside).code == 5


def forged(stage: Stage, tmp_path: Path) -> None:
    """Signed by somebody else."""
    made = stage.subject()
    attacker = SigningKey(Ed25519PrivateKey.generate())
    values = {name: getattr(made, name) for name in ("workspace_id", "task_id", "attempt", "handoff_sha256")}
    signed = record(**values, return_sha256=made.return_sha256, action=Action.ACCEPT)
    (stage.mirror / f"{made.decision_id}.json").write_bytes(seal(signed.to_bytes(), attacker))


def edited(stage: Stage, tmp_path: Path) -> None:
    """A decision about another attempt, made to speak of this one."""
    name = next(stage.mirror.glob("*.json"))
    envelope = json.loads(name.read_bytes())
    payload = base64.b64decode(envelope["payload"]).replace(b'"task_id":"other"', b'"task_id":"shop.api"')
    envelope["payload"] = base64.b64encode(payload).decode()
    name = stage.mirror / f"{stage.subject().decision_id}.json"
    name.write_text(json.dumps(envelope, separators=(",", ":")) + "\n", "utf-8")


def replayed(stage: Stage, tmp_path: Path) -> None:
    """The operator's own, about the same task in another workspace."""
    other = Stage(tmp_path / "other")
    other.environment |= {name: stage.environment[name] for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    assert other.decide("--retry").code == 0
    for path in other.mirror.iterdir():
        shutil.copy(path, stage.mirror)


def taken_back(stage: Stage, tmp_path: Path) -> None:
    """The operator's own, which the operator has set aside."""
    decision = stage.decide_in_time(timedelta(days=1))
    (stage.state / "decisions" / f"000002-{decision}.json").unlink()


def noise(stage: Stage, tmp_path: Path) -> None:
    """No decision at all."""
    (stage.mirror / f"{stage.subject().decision_id}.json").write_bytes(b'{"action": "accept"}\x1b[2J')


@pytest.mark.parametrize("attack", [forged, edited, replayed, taken_back, noise])
def test_a_file_in_the_workspace_decides_nothing(
    stage: Stage, tmp_path: Path, attack: Callable[[Stage, Path], None]
) -> None:
    _decide_something_else(stage)
    attack(stage, tmp_path)
    waited = stage.wait()
    assert waited.code == 5
    assert waited.json["refused"]
    assert "action" not in waited.json
    assert "pending: the operator has not decided" in waited.err
    assert "\x1b" not in waited.out + waited.err
    assert stage.run("claim", stage.subject().decision_id, stage.workspace).code in (3, 5)
    verified = stage.run("verify", stage.workspace)
    assert verified.code == 1
    assert "✗ mirror: .agentwatch/decisions/" in verified.out
    # And the operator decides as if nothing were there.
    decided = stage.decide("--abort")
    assert decided.code == 0, decided.err
    assert stage.wait().json["action"] == "abort"


def test_verify_finds_nothing_wrong_where_nothing_is(stage: Stage) -> None:
    assert stage.run("verify", stage.workspace).code == 0
    decision = stage.decide_in_time(timedelta(days=1))
    for words in ([stage.workspace], [stage.mirror / f"{decision}.json", stage.workspace]):
        found = stage.run("verify", *words)
        assert found.code == 0, found.out
        assert "✗" not in found.out


def test_verify_writes_nothing_and_tells_an_edited_page(stage: Stage) -> None:
    decision = stage.decide_in_time(timedelta(days=1))
    page = stage.mirror / f"{decision}.md"
    page.write_text("# Accept the return\n", "utf-8")
    found = stage.run("verify", stage.workspace)
    assert found.code == 1
    assert "it differs from the ledger" in found.out
    assert page.read_text("utf-8") == "# Accept the return\n"


def test_a_broken_ledger_is_told_and_can_be_set_aside(stage: Stage) -> None:
    decision = stage.decide_in_time(timedelta(days=1))
    file = stage.state / "decisions" / f"000001-{decision}.json"
    file.write_bytes(file.read_bytes()[:-9])
    assert stage.decide("--retry").code == 2
    found = stage.run("verify", stage.workspace)
    assert found.code == 1
    assert f"✗ ledger: “{file.name}”" in found.out
    moved = stage.run("verify", "--set-aside", stage.workspace)
    assert moved.code == 0
    assert moved.out == f"{file.name}: set aside; what was decided there must be decided again\n"
    assert stage.decide("--abort").code == 0
    assert stage.wait().json["action"] == "abort"


def test_verify_tells_a_return_that_was_rewritten_after_the_decision(stage: Stage) -> None:
    decision = stage.decide_in_time(timedelta(days=1))
    stage.give_back(returned("Something else."))
    found = stage.run("verify", stage.mirror / f"{decision}.json", stage.workspace)
    assert found.code == 1
    assert "✗ return: it has changed since the decision" in found.out
    assert stage.wait().code == 3


def test_a_workspace_that_cannot_be_written_gets_its_decision_later(stage: Stage) -> None:
    (stage.workspace / ".agentwatch").write_text("in the way", "utf-8")
    decided = stage.decide("--retry")
    assert decided.code == 0
    assert "recorded: decision" in decided.out
    assert "not delivered" in decided.err
    found = stage.wait()
    assert found.code == 0
    assert (found.json["place"], found.json["handoff_path"]) == ("ledger", None)
    (stage.workspace / ".agentwatch").unlink()
    again = stage.decide("--retry")
    assert "recorded before" in again.out
    assert stage.mirror.exists()


def test_a_state_directory_that_cannot_be_written_records_nothing_and_says_so(stage: Stage) -> None:
    found = stage.decide("--retry", environment={"XDG_STATE_HOME": "/proc"})
    assert found.code == 2
    assert found.err.startswith("agentwatch: not recorded: ")
    assert "recorded: decision" not in found.out
    assert not stage.mirror.exists()


def test_the_command_lines_of_pending_do_what_they_say(stage: Stage) -> None:
    hostile = "shop/$(touch owned); \x1b]0;x\x07'"
    text = returned("Which port?", "BLOCKED")
    stage.give_back(text.replace(TASK, "a b"))
    (stage.workspace / "api.handoff.json").unlink()
    evil = json.dumps({"status": "failed", "summary": "It failed.", "artifacts": [], "metadata": {
        "session_id": "sess_1", "delegation_depth": 1, "delegation_path": ["x", hostile], "agent_type": hostile},
        "errors": [{"type": "execution", "message": "no", "recoverable": True}]})  # fmt: skip
    (stage.workspace / ".return-meta.json").write_text(evil, "utf-8")
    shown = stage.run("pending", stage.workspace)
    assert shown.code == 0
    assert "\x1b" not in shown.out
    tasks = stage.run("pending", "--json", stage.workspace).json["tasks"]
    assert len(tasks) == 2
    for task in tasks:
        line = task["commands"]["abort"].replace(" decide ", " decide --yes ", 1)
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=stage.root,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **stage.environment},
        )
        assert done.returncode == 0, done.stderr
    assert not list(stage.root.rglob("owned"))
    assert stage.run("pending", "--json", stage.workspace).json["tasks"] == []


def _decide_something_else(stage: Stage) -> None:
    desk = stage.desk
    subject = record(workspace_id=desk.workspace_id, task_id="other", return_sha256=None).subject
    desk.decide(subject, Action.RETRY, returned=lambda: None)


def test_the_settings_say_how_often_is_retried_and_how_long_a_decision_holds(stage: Stage) -> None:
    stage.configuration.mkdir(mode=0o700, parents=True, exist_ok=True)
    (stage.configuration / "config.toml").write_text("[retry]\nmax_retries = 3\nexpires_after = 3600\n", "utf-8")
    decided = stage.decide("--retry")
    assert decided.code == 0
    assert "3 left, 2 after it" in decided.out
    record = stage.wait().json
    created, expires = (datetime.fromisoformat(record[name]) for name in ("created_at", "expires_at"))
    assert expires - created == timedelta(hours=1)
