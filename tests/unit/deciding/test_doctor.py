"""What follows from what an agent can reach, in plain words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentwatch.deciding.doctor import consequences
from agentwatch.deciding.probe import Reach
from agentwatch.deciding.results import Mark

CONFINED = Reach(reads_key=False, reads_public_key=True, writes_keys=False, writes_ledger=False, writes_workspace=True)


def told(reach: Reach, *, locked: bool = False) -> tuple[bool, str]:
    found = list(consequences(reach, locked=locked, public_key="ed25519:abc"))
    return any(one.mark is Mark.BAD for one in found), "\n".join(one.said for one in found)


def test_a_confined_agent_cannot_forge() -> None:
    assert told(CONFINED) == (False, "an agent in there cannot forge decisions")


@pytest.mark.parametrize(
    ("hole", "words"),
    [
        ("reads_key", "can read the key, and so decide in your name: set a passphrase"),
        ("writes_ledger", "can write the ledger: decisions are not protected from this agent"),
        ("writes_keys", "can write where the keys are"),
    ],
)
def test_each_hole_is_bad_and_named(hole: str, words: str) -> None:
    is_bad, said = told(replace(CONFINED, **{hole: True}))
    assert is_bad
    assert words in said
    assert "cannot forge" not in said


def test_a_passphrase_closes_the_hole_of_a_readable_key() -> None:
    is_bad, said = told(replace(CONFINED, reads_key=True), locked=True)
    assert not is_bad
    assert "only the passphrase keeps it from deciding" in said


def test_an_agent_that_cannot_read_the_public_key_has_to_be_given_it() -> None:
    assert "AGENTWATCH_PUBLIC_KEY=ed25519:abc" in told(replace(CONFINED, reads_public_key=False))[1]
