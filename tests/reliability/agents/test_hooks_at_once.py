"""Several hooks at once, each with its own fault, and somebody who forges and replays: each prints what was decided for
its very request, or nothing.

`AGENTWATCH_HOOKS=1000` searches longer than CI has time for.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Request, input_text
from tests.reliability.agents.holding_hooks import SECONDS, Scene, decision
from tests.unit.agents.asking import Story, payload
from tests.unit.decisions.made import QUICK

ROUNDS = int(os.environ.get("AGENTWATCH_HOOKS", "2"))
COMMANDS = ["make seeds", "make seeds", "make clean"]
SOUND = ["sound", "sound", "sound", "twin", "child", "again"]
FAULTS = ["garbage", "closed", "full", "no space", "killed", "ended", "late"]


@dataclass
class Asking:
    """One call that is asked about, with the process of its hook: two of them for a `twin`."""

    how: str
    given: dict[str, Any]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    out: list[bytes] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return self.how in SOUND

    @property
    def key(self) -> tuple[str, str]:
        """What a request shows of it."""
        return self.given.get("agent_id") or self.given["session_id"], input_text(self.given["tool_input"])[1]


class Round:
    """The hooks of one round."""

    def __init__(self, scene: Scene, random: Random, number: int) -> None:
        self.scene, self.random, self.number = scene, random, number
        self.began = time.time()
        hows = [random.choice(SOUND), random.choice(SOUND), random.choice(FAULTS)]
        self.asking = [self.asked(how, place) for place, how in enumerate(random.sample(hows, 3))]

    def asked(self, how: str, place: int) -> Asking:
        call_id = f"toolu_{self.number}_{place}"
        # The ids of a program that counts them anew after each start.
        session = f"session-{place}" if how == "again" else f"session-{self.number}-{place}"
        story = Story(self.scene.root / "stories" / f"{session}.jsonl")
        if how == "again":
            story.path.write_bytes(b"")
            call_id = "toolu_again"
        given = payload(given={"command": self.random.choice(COMMANDS)}, session_id=session)
        if how in ("twin", "again") or self.random.random() < 0.5:
            given["transcript_path"] = str(story.session)
            story.called(call_id, given=given["tool_input"])
        if how in ("child", "late"):
            given |= {"agent_id": f"a{self.number}x{place}", "agent_type": "general-purpose"}
        return Asking(how, given)

    def start(self) -> None:
        for one in self.asking:
            for _ in range(2 if one.how == "twin" else 1):
                with given_to(one.how) as options:
                    if one.how == "late":
                        options["environment"] = {"XDG_CONFIG_HOME": str(self.scene.root / "hurried")}
                    data = self.random.randbytes(self.random.randrange(200)) if one.how == "garbage" else one.given
                    one.processes.append(self.scene.process(data, **options))

    def offered(self) -> dict[tuple[str, str], Request]:
        """What is open of this round, once all that must be offered is."""
        end = time.monotonic() + SECONDS
        expected = {one.key for one in self.asking if one.is_sound}
        while True:
            found = [one for one in self.scene.store.read() if one.asked_at >= self.began and one.is_open]
            keys = {(one.session_id, one.input_sha256): one for one in found}
            if expected <= keys.keys():
                assert len(keys) == len(found), "one call is offered twice"
                return keys
            assert time.monotonic() < end, "nothing was offered"
            time.sleep(0.005)

    def disturb(self, old: list[Path], stranger: DecisionService, open_ones: list[Request]) -> bool:
        """Somebody who may write into the state directory. Returns whether answers may get lost by it."""
        how = self.random.choice(["replay", "rename", "forge", "claim"])
        target = self.random.choice(open_ones)
        ledger, receipts = self.scene.state / "decisions", self.scene.state / "receipts"
        if how == "forge":
            with suppress(DecisionError):
                stranger.answer(target, Action.ALLOW, task_id="a", attempt=1, gone=lambda: None)
        elif how == "claim":
            receipts.mkdir(0o700, exist_ok=True)
            (receipts / f"{target.request_id}.claim.json").write_bytes(b"{}")
        elif old:
            number = len(list(ledger.glob("*.json"))) + 1
            genuine = self.random.choice(old)
            name = f"{number:06d}-{target.request_id}.json" if how == "rename" else f"{number:06d}{genuine.name[6:]}"
            with suppress(shutil.SameFileError):
                shutil.copy(genuine, ledger / name)
        return True

    def decide(self, open_ones: list[Request]) -> dict[str, tuple[Action, str]]:
        """The operator answers some, in an order of their own."""
        decided = {}
        for one in self.random.sample(open_ones, self.random.randint(1, len(open_ones))):
            action = self.random.choice((Action.ALLOW, Action.DENY))
            note = f"words for {one.request_id}" if action is Action.DENY else ""
            with suppress(DecisionError):
                self.scene.answer(one, action, note)
                decided[one.request_id] = action, note
        return decided

    def harm(self) -> None:
        for one in self.asking:
            if one.how in ("killed", "ended"):
                one.processes[0].send_signal(signal.SIGKILL if one.how == "killed" else signal.SIGTERM)
            elif one.how == "twin" and self.random.random() < 0.3:
                one.processes[0].kill()

    def end(self) -> None:
        for one in self.asking:
            one.out = [process.communicate(timeout=SECONDS)[0] or b"" for process in one.processes]


@contextmanager
def given_to(how: str) -> Iterator[dict[str, Any]]:
    """What the process is started with; what is opened for it is closed at the end."""
    if how == "no space":
        yield {"preexec_fn": partial(resource.setrlimit, resource.RLIMIT_FSIZE, (0, 0))}
    elif how == "full":
        with Path("/dev/full").open("wb") as full:
            yield {"stdout": full}
    elif how == "closed":
        reader, writer = os.pipe()
        os.close(reader)
        try:
            yield {"stdout": writer}
        finally:
            os.close(writer)
    else:
        yield {}


def test_each_of_several_hooks_prints_what_was_decided_for_its_own_request(scene: Scene, tmp_path: Path) -> None:
    random, old, answered, silent = Random(), list[Path](), 0, 0
    stranger = DecisionService(scene.workspace, configuration=tmp_path / "stranger", disk=QUICK)
    hurried = tmp_path / "hurried" / "agentwatch"
    for number in range(ROUNDS):
        one = Round(scene, random, number)
        if hurried.parent.exists():
            shutil.rmtree(hurried.parent)
        if (tmp_path / "XDG_CONFIG_HOME" / "agentwatch").exists():
            shutil.copytree(tmp_path / "XDG_CONFIG_HOME" / "agentwatch", hurried)
        hurried.mkdir(parents=True, exist_ok=True)
        (hurried / "config.toml").write_text("[hook]\nprompt = 0.4\n", "utf-8")
        one.start()
        offered = one.offered()
        is_lossy, is_early = False, random.random() < 0.5
        if random.random() < 0.4 and is_early:
            is_lossy = one.disturb(old, stranger, list(offered.values()))
        if random.random() < 0.3:
            one.harm()
        decided = one.decide(list(offered.values()))
        if random.random() < 0.4 and not is_early:
            is_lossy = one.disturb(old, stranger, list(offered.values()))
        one.harm()
        end = time.monotonic() + SECONDS
        # Of a twin the other one offers it anew where the first was killed.
        waited = [
            asked.processes[0]
            for asked in one.asking
            if asked.is_sound and asked.how != "twin" and not is_lossy and offered[asked.key].request_id in decided
        ]
        while any(process.poll() is None for process in waited):
            assert time.monotonic() < end, "it does not end"
            time.sleep(0.005)
        scene.screen.close()
        one.end()
        for asked in one.asking:
            printed = [decision(out) for out in asked.out if out]
            assert len(printed) <= 1, "two hooks of one call have answered"
            request = offered.get(asked.key)
            action, note = decided.get(request.request_id, (None, "")) if request is not None else (None, "")
            right = {Action.ALLOW: {"behavior": "allow"}, Action.DENY: {"behavior": "deny", "message": note}}
            assert printed in ([], [right.get(action)] if action is not None else []), "nobody decided that"
            if asked.is_sound and action is not None and not is_lossy and asked.how != "twin":
                assert printed, "an answer got lost though nobody got in its way"
            answered, silent = answered + len(printed), silent + (not printed)
        assert not any(left.is_open for left in scene.store.read())
        with suppress(DecisionError):
            scene.desk.ledger.set_aside(scene.desk.keys.trust())
        old = sorted((scene.state / "decisions").glob("*.json"))[-20:]
        scene.watch()
    print(json.dumps({"rounds": ROUNDS, "answered": answered, "silent": silent}))
