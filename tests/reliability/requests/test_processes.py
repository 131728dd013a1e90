"""Several processes hold the same request, and some are killed while they do: one of those that live gets the answer.

`AGENTWATCH_HOLDERS=5000` searches longer than CI has time for.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from agentwatch.delegation.decision import Action, RequestStage
from tests.unit.requests.asked import Place, request

_ROUNDS = int(os.environ.get("AGENTWATCH_HOLDERS", "12"))
_ROOT = Path(__file__).parents[3]
_UNTIL = 4.0
"""Seconds after which a holder that got nothing gives up."""


class Holding:
    """A process that holds."""

    def __init__(self, place: Place):
        self.is_ready = False
        places = map(str, (place.workspace, place.state, place.configuration))
        arguments = [sys.executable, "-m", "tests.reliability.requests.held", *places]
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT, text=True, bufsize=1
        )

    def hold(self, given: dict[str, Any]):
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(given) + "\n")
        assert self.line() == "offered"

    def ready(self):
        if not self.is_ready:
            assert self.line() == "ready"
            self.is_ready = True

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self):
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait()


def test_of_those_that_hold_a_request_one_gets_the_answer(tmp_path):
    random, place = Random(), Place(tmp_path)
    place.desk().keys.create()
    with ExitStack() as stack:
        stack.enter_context(place.watched())
        holding = [Holding(place) for _ in range(3)]
        stack.callback(lambda: [one.end() for one in holding])
        for number in range(_ROUNDS):
            for one in holding:
                one.ready()
            given = {"nonce": f"n{number}", "asked_at": time.time(), "until": time.time() + _UNTIL}
            asked = request(place.workspace, **given)
            for one in holding:
                one.hold(given)
            assert place.store.read()[-1].is_open
            killed = random.sample(holding, random.choice((0, 0, 0, 1, 2, 3)))
            early = random.random() < 0.5
            for one in killed if early else ():
                one.end()
            found = place.store.find(asked.request_id)
            assert found is not None
            assert (found.stage is RequestStage.OFFERED) == (not early or len(killed) < 3)
            place.answer(asked, Action.DENY, note=f"no {number}")
            for one in () if early else killed:
                one.end()
            lived = [one for one in holding if one not in killed]
            said = [json.loads(one.line()) for one in lived]
            won = [answer for _, answer, _ in said if answer is not None]
            assert len(won) <= 1, "given twice"
            # One that is killed at that moment may have claimed it.
            assert won or not lived or (killed and not early), "lost"
            assert all(
                one in ([asked.request_id] * 2 + [f"no {number}"], [asked.request_id, None, None]) for one in said
            )
            holding = lived + [Holding(place) for _ in killed]
    assert place.store.problems == []
    assert not any(one.is_open for one in place.store.read())
