"""A process that says what commands say, as `agentwatch` does or without what is kept, at the time that it is told.

Reads a JSON object a line, `{"arguments", "now", "keeps"}`, and answers with an array: the exit code, what was written
to both streams, whether that was said before, and how many values of files and claims were known. `keeps` is true,
"index", which is only what files hold and returns claim, or false.
"""

from __future__ import annotations

import io
import json
import sys
import time
from typing import Any

_now = 0.0
time.time = lambda: _now
time.time_ns = lambda: int(_now * 1_000_000_000)


def _nothing(*_given: Any) -> None:
    """Nothing is kept."""


def main() -> None:
    from agentwatch.kept import answers, looks

    # Before anything else is loaded, as a command has it.
    looks.install()
    from agentwatch.__main__ import KEPT
    from agentwatch.cli import run
    from agentwatch.evidence.plumbing import ask_again
    from agentwatch.kept import index, keeping
    from agentwatch.kept.noted import Looks
    from agentwatch.polls import polled

    index.WORTH = 1  # type: ignore[misc]
    load, get, known = index.Index.load, index.Index.get, list[object]()

    def getting(where: index.Index[Any, Any], key: Any) -> Any:
        value = get(where, key)
        known.extend([] if value is None else [value])
        return value

    index.Index.get = getting  # type: ignore[method-assign]
    begin, read, keep, looked = looks.begin, answers.read, keeping.keep, list[object]()

    def beginning(noting: Looks | None) -> None:
        looked.append(noting)
        begin(noting)

    looks.begin = beginning
    asked, answered = sys.stdin, sys.stdout
    for line in asked:
        global _now
        wish = json.loads(line)
        _now, arguments = wish["now"], wish["arguments"]
        looked.clear()
        known.clear()
        sys.stdin = io.StringIO()
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        keeps = wish["keeps"] is True
        index.Index.load = load if wish["keeps"] else _nothing  # type: ignore[assignment,method-assign]
        answers.read, keeping.keep = (read, keep) if keeps else (_nothing, _nothing)
        if keeps and arguments[0] in (*KEPT, "wait"):
            answered_again = polled if arguments[0] == "wait" else answers.answered
            code = answered_again(arguments, lambda said=arguments: run(said), ask_again)
        else:
            code = run(arguments)
        streams, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), answered, sys.__stderr__
        said = [stream.buffer.getvalue().decode() for stream in streams]  # type: ignore[attr-defined]
        print(json.dumps([code, *said, keeps and not looked, len(known)]), file=answered, flush=True)


if __name__ == "__main__":
    main()
