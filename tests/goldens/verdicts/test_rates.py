"""How often claims of commands are decided, by families of programs, and that no decision is wrong.

The table is data: logs as lists of deeds, as `claude.Session` does them, and claims with the verdict that the log
shows. `also` lists verdicts that are defensible, too, and `miss` is the verdict that is found although it is wrong."""

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.goldens.verdicts.claude import Session, returned, tasks_of
from tests.homes import live_in

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("rates_data.json").read_text(encoding="utf-8"))
C, U, V = "contradicted", "unverifiable", "verified"


class Outcome(NamedTuple):
    """A claim of the table, and the verdict that was found."""

    claim: dict[str, Any]
    found: str

    @property
    def wanted(self) -> str:
        """Return the table's verdict, or the found one if the claim lists it as defensible in `also`."""
        return self.found if self.found in self.claim.get("also", ()) else str(self.claim["verdict"])

    @property
    def is_known(self) -> bool:
        """Whether the verdict is the table's, or the one that is known to be wrong (`miss`)."""
        return self.found == self.claim.get("miss", self.wanted)


def outcomes(claims: Sequence[dict[str, Any]] = TABLE["claims"], change: Callable[[Any], Any] = list) -> list[Outcome]:
    """Check each claim as the only one of a task that did what its log says, after `change` was applied to the log."""
    if len(claims) > 100:
        # One look at a session of many agents takes longer than a look at each of several sessions.
        return [*outcomes(claims[:100], change), *outcomes(claims[100:], change)]
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        home, workspace = Path(made).resolve() / "home", Path(made).resolve() / "ws"
        home.mkdir()
        workspace.mkdir()
        live_in(home, patch)
        session = Session(home, workspace)
        for number, claim in enumerate(claims):
            text = claim["text"]
            said = returned([text]) if claim["kind"] == "e" else returned(summary=text)
            session.task(f"claim.{number}", change(TABLE["logs"][claim["log"]]), said)
        session.save()
        tasks = tasks_of(workspace)
    rows = [tasks[f"claim.{number}"]["claims"] for number in range(len(claims))]
    return [Outcome(claim, _joint(some)) for claim, some in zip(claims, rows, strict=True)]


def _joint(rows: Sequence[dict[str, str]]) -> str:
    """Return the verdict on a text as a whole."""
    verdicts = {row["verdict"] for row in rows}
    return C if C in verdicts else V if verdicts == {V} else U


VERIFIED = [one for one in TABLE["claims"] if one["verdict"] == "verified" and "miss" not in one]
SPOILED = {
    "edited after": lambda log: [*log, ["wrote", "src/zz.py", "Edit", ""]],
    "installed after": lambda log: [*log, ["ran", "npm install left-pad", 0, ""]],
    "hidden": lambda log: [["ran", f"{one[1]} || true", *one[2:]] if one[0] == "ran" else one for one in log],
    "elsewhere": lambda log: [["ran", f"cd other && {one[1]}", *one[2:]] if one[0] == "ran" else one for one in log],
    "in the background": lambda log: [["moved", one[1]] if one[0] == "ran" else one for one in log],
}
NUMBER = re.compile(r"`[^`]*`|(?<![\w.,])(\d+)(?![\w.,]*\d)")


def undecided(some: list[Outcome]) -> float:
    """Return the share of undecided claims among those that can be decided."""
    decidable = [one for one in some if one.claim["verdict"] != U]
    return sum(one.found == U != one.wanted for one in decidable) / len(decidable)


def test_few_claims_stay_undecided_and_hardly_one_is_wrong():
    found = outcomes()
    assert len(found) >= 700
    assert [one for one in found if not one.is_known] == [], "neither the verdict of the table nor its miss"
    wrong = [one.found for one in found if one.found != one.wanted]
    assert (wrong.count(V), wrong.count(C) <= 1) == (0, True)
    assert undecided(found) <= 0.18
    families = {one.claim["family"] for one in found}
    assert len(families) >= 10
    for family in families:
        some = [one for one in found if one.claim["family"] == family]
        assert len(some) >= 50
        assert undecided(some) <= 0.35, family
    foreign = [one for one in found if one.claim["language"] != "en"]
    assert len(foreign) >= 100
    assert undecided(foreign) <= 0.2


@pytest.mark.parametrize("how", SPOILED)
def test_no_claim_is_verified_by_a_log_that_no_longer_shows_it(how):
    found = outcomes(VERIFIED, SPOILED[how])
    assert [(one.claim["log"], one.claim["text"]) for one in found if one.found == V] == []


def test_no_claim_is_verified_with_another_number():
    found = outcomes([{**one, "text": text} for one in VERIFIED for text in others(one)])
    assert len(found) > 250
    assert [(one.claim["log"], one.claim["text"]) for one in found if one.found == V] == []


def others(claim: dict[str, Any]) -> list[str]:
    """Return copies of a claim's text, in each of which one number is changed."""
    text, numbers = claim["text"], [match for match in NUMBER.finditer(claim["text"]) if match[1]]
    return [f"{text[: one.start()]}{int(one[1]) * 2 + 7}{text[one.end() :]}" for one in numbers]
