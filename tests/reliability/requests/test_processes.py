"""Several processes hold the same request, and some are killed meanwhile: one of the survivors gets the answer.
`AGENTWATCH_HOLDERS=5000` searches longer than CI has time for."""

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

_ROUNDS = int(os.environ.get("AGENTWATCH_HOLDERS", "4"))
_UNTIL = 4.0
"""Seconds after which a holder without an answer gives up."""


class Holding:
    """A process that holds requests."""

    def __init__(self, place: Place):
        words = [sys.executable, "-m", __spec__.name, str(place.root)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(words, cwd=Path(__file__).parents[3], text=True, bufsize=1, **pipes)  # type: ignore[call-overload]

    def hold(self, given: dict[str, Any]):
        self.process.stdin.write(json.dumps(given) + "\n")
        assert self.line() == "offered"

    def line(self) -> str:
        return str(self.process.stdout.readline().strip())

    def end(self):
        self.process.kill()
        self.process.communicate()


def test_one_of_the_holders_of_a_request_gets_the_answer(tmp_path):
    random, place = Random(), Place(tmp_path)
    with ExitStack() as stack:
        stack.enter_context(place.watched())
        holding = new = [Holding(place) for _ in range(3)]
        stack.callback(lambda: [one.end() for one in holding])
        for number in range(_ROUNDS):
            # All processes have started before the time of the request begins.
            assert [one.line() for one in new] == ["ready"] * len(new)
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
            # A process that is killed at that moment may have claimed the answer.
            assert won or not lived or (killed and not early), "lost"
            assert all(
                one in ([asked.request_id] * 2 + [f"no {number}"], [asked.request_id, None, None]) for one in said
            )
            new = [Holding(place) for _ in killed]
            holding = lived + new
    assert place.store.problems == []
    assert not any(one.is_open for one in place.store.read())


def main(place: Place):
    """Hold each request that standard input names, and print its outcome."""
    print("ready", flush=True)
    for line in sys.stdin:
        asked, holder = request(place.workspace, **json.loads(line)), place.holder()
        with holder.store.offer(asked) as offer:
            print("offered", flush=True)
            record = holder.wait_for_answer(offer, lambda: True)
            # Like an adapter, print only an answer about the input that is held.
            print(json.dumps([asked.request_id, record and record.decision_id, record and record.note]), flush=True)


if __name__ == "__main__":
    main(Place(Path(sys.argv[1])))
