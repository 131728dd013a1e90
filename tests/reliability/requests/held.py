"""Holds each request that is named on standard input, and says what became of it."""

import json
import sys
from pathlib import Path

from agentwatch.requests.holding import Holder
from tests.unit.requests.asked import request


def main(workspace: Path, state: Path, configuration: Path):
    holder = Holder(workspace, name="test", state=state, configuration=configuration)
    print("ready", flush=True)
    for line in sys.stdin:
        given = json.loads(line)
        asked = request(workspace, **given)
        with holder.store.offer(asked) as offer:
            print("offered", flush=True)
            record = holder.hold(offer, lambda: True)
            # As an adapter would: what it says is of the input that it holds, and of nothing else.
            print(json.dumps([asked.request_id, record and record.decision_id, record and record.note]), flush=True)


main(*map(Path, sys.argv[1:4]))
