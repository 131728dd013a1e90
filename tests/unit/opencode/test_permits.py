"""What the parts of calls say of permissions: allowed, refused and in which words, answered."""

from __future__ import annotations

from agentwatch.delegation.run import MOST_PERMITS
from tests.unit.opencode.program import Program
from tests.unit.opencode.reading import Reading


def test_the_latest_are_kept_and_what_was_taken_back_is_none(program: Program, watched: Reading) -> None:
    root = program.session()
    message = program.begin(root)
    calls = [
        program.call(root, message, f"tool{number}", status="completed", input={}) for number in range(3 * MOST_PERMITS)
    ]
    permits = watched.read()[root].permits
    assert [permit.tool for permit in permits] == [f"tool{number}" for number in range(len(calls))][-MOST_PERMITS:]
    program.remove_part(root, calls[-1])
    assert [permit.tool for permit in watched.read()[root].permits][-1] == f"tool{len(calls) - 2}"
