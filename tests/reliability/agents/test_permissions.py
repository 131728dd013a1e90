"""The hook that holds a request prints the decision about that very input or nothing, whatever happens to it."""

import io
import json
import os
import random
import resource
import shutil
import sys
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentwatch.cli import start
from agentwatch.delegation.decision import Action, RequestStage
from tests.unit.agents.claude import QUESTIONS, SECONDS, Scene, bound, child, decision, live_apart, payload

KILLS = max(5, int(os.environ.get("AGENTWATCH_KILLS", "200")) // 100)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TOOLS = st.sampled_from(["Bash", "AskUserQuestion", "ExitPlanMode", "Edit", "mcp__x__y"])
WHOLE = st.builds(payload, TOOLS, st.just({"questions": QUESTIONS, "command": "make"}) | VALUES)
ODD = st.builds(
    lambda whole, key, value: whole | {key: value},
    WHOLE,
    st.sampled_from([*payload(), "agent_id", "permission_suggestions"]),
    VALUES,
)
SPELLED = ODD.map(lambda one: json.dumps(one).encode("utf-8", "surrogatepass"))
DAMAGED = st.builds(
    lambda data, at, junk: data[: at % (len(data) + 1)] + junk + data[at % (len(data) + 1) + len(junk) :],
    SPELLED,
    st.integers(0, 5000),
    st.binary(max_size=4),
)


@pytest.fixture
def scene(tmp_path, monkeypatch):
    live_apart(tmp_path, monkeypatch)
    made = Scene(tmp_path)
    with made.screen:
        yield made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60) | SPELLED | DAMAGED)
def test_garbage_and_unanswered_requests_get_no_answer(scene, capfd, monkeypatch, data):
    bound(0.02)
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    code = start("hook", [str(scene.workspace)])
    printed = capfd.readouterr().out
    assert (code, printed) in ((0, ""), (1, ""), (0, "{}\n"))
    assert not any(one.is_open for one in scene.store.read())
    # Without this, each round would read thousands of ended requests again.
    shutil.rmtree(scene.store.directory, ignore_errors=True)


def test_a_killed_hook_prints_a_whole_answer_or_none(scene):
    chance, known = random.Random(9), set[str]()
    for _ in range(KILLS):
        held = scene.process(payload())
        (request,) = scene.opened(1, known)
        known.add(request.request_id)
        scene.answer(request, Action.ALLOW)
        time.sleep(chance.uniform(0, 0.25))
        held.kill()
        out, _ = held.communicate(timeout=SECONDS)
        assert decision(out) in (None, {"behavior": "allow"})
    equal = scene.process(payload())
    (request,) = scene.opened(1, known)
    scene.answer(request, Action.DENY, note="not again")
    out, _ = equal.communicate(timeout=SECONDS)
    assert decision(out) == {"behavior": "deny", "message": "not again"}
    stages = {one.stage for one in scene.store.read()}
    assert stages <= {RequestStage.DELIVERED, RequestStage.GONE}


@pytest.mark.parametrize("how", ["no space", "no home", "no directory", "settings", "no reader", "a file"])
def test_an_error_in_the_hook_prints_nothing(scene, tmp_path, how):
    bound(0.5)
    given, options = payload(**child()), dict[str, Any]()
    if how == "no space":
        options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    elif how == "no home":
        options["environment"] = {"HOME": "", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""}
    elif how == "no reader":
        reader, options["stdout"] = os.pipe()
        os.close(reader)
        given = payload()
    elif how == "no directory":
        options["environment"] = {"CLAUDE_PROJECT_DIR": str(tmp_path / "nowhere")}
    elif how == "settings":
        (tmp_path / "XDG_CONFIG_HOME" / "agentwatch" / "config.toml").write_text("[hook]\nprompt = 'long'\n", "utf-8")
    else:
        (scene.state / "requests").write_text("", "utf-8")
    held = scene.process(given, **options)
    out, err = held.communicate(timeout=SECONDS)
    assert (held.returncode, out or b"") == (0, b"")
    assert b"Traceback" not in err
