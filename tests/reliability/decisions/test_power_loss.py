"""A power failure at any moment: what was said to be recorded is there, whole, and the ledger goes on."""

import itertools
from pathlib import Path

import pytest

from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.ledger import Ledger
from tests.reliability.decisions.disks import Forgetful, Tree
from tests.unit.decisions.made import RETURN, Operator

TASKS = ("first", "second", "third")


def remembered(root: Path, **mutation: bool) -> tuple[Operator, dict[Tree, frozenset[str]]]:
    """Every state that a power failure could leave while three decisions are made, and what had been said by then.

    Where one state can be left at several moments, the latest counts: most had been said.
    """
    (root / "state").mkdir(parents=True)
    disk = Forgetful(root / "state", **mutation)
    operator = Operator(root, disk)
    found: dict[Tree, frozenset[str]] = {}
    said: set[str] = set()

    def look():
        found.update(dict.fromkeys(disk.states(), frozenset(said)))

    disk.after = look
    for task in TASKS:
        recorded = operator.decide(task)
        assert recorded.fresh
        assert recorded.doubt is None
        said.add(task)
        look()
    return operator, found


def is_bad(operator: Operator, root: Path, tree: Tree, said: frozenset[str]) -> bool:
    """Whether something is lost, broken or doubled in the state that is found after the failure."""
    tree.make(root)
    ledger = Ledger(root / operator.state.relative_to(operator.root / "state"), operator.workspace_id)
    chain = ledger.read(operator.trust)
    there = [entry.record.task_id for entry in chain.entries]
    if chain.problems or not said <= set(there):
        return True
    try:
        for task in TASKS:
            ledger.append(operator.draft(task), operator.key, operator.trust, lambda: RETURN)
    except DecisionError:
        return True
    chain = ledger.read(operator.trust)
    return bool(chain.problems) or sorted(entry.record.task_id for entry in chain.entries) != sorted(TASKS)


def bad_states(root: Path, **mutation: bool) -> tuple[int, int]:
    """(bad states, all states)."""
    operator, found = remembered(root / "made", **mutation)
    numbers = itertools.count()
    bad = sum(is_bad(operator, root / f"{next(numbers)}", tree, said) for tree, said in found.items())
    return bad, len(found)


def test_a_power_failure_loses_breaks_and_doubles_nothing(tmp_path):
    bad, count = bad_states(tmp_path)
    assert bad == 0
    assert count >= 30


@pytest.mark.parametrize("left_out", ["syncs_files", "syncs_directories"])
def test_without_a_sync_it_would(tmp_path, left_out):
    bad, _ = bad_states(tmp_path, **{left_out: False})
    assert bad > 0
