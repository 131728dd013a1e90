"""Prints how many claims of the table are decided wrongly, or not at all, for each family of programs.

    python -m tests.goldens.verdicts.rates [all]

With `all`, each claim whose verdict is another than the table's is printed, too. The table is data: logs as lists of
deeds, as `claude.Session` does them, and claims with the verdict that the log shows. `also` lists verdicts that can be
defended as well, and `miss` is the verdict that is found where it is another: a known shortcoming.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.goldens.verdicts.adapter import tasks_of
from tests.goldens.verdicts.claude import Session, returned
from tests.homes import live_in

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("rates_data.json").read_text(encoding="utf-8"))
C, U, V = "contradicted", "unverifiable", "verified"


class Outcome(NamedTuple):
    """A claim of the table with the verdict that was found, and its reasons."""

    claim: dict[str, Any]
    found: str
    details: tuple[str, ...]

    @property
    def wanted(self) -> str:
        """The verdict of the table, or the one that can be defended as well."""
        return self.found if self.found in self.claim.get("also", ()) else str(self.claim["verdict"])

    @property
    def is_known(self) -> bool:
        """It is as the table says, or as it is known to be wrong."""
        return self.found == self.claim.get("miss", self.wanted)


def outcomes(claims: Sequence[dict[str, Any]] = TABLE["claims"], change: Callable[[Any], Any] = list) -> list[Outcome]:
    """Check each claim as the only one of a task that did what its log says, or what `change` makes of that."""
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
    return [
        Outcome(claim, _joint(some), tuple(row["detail"] for row in some))
        for claim, some in zip(claims, rows, strict=True)
    ]


def _joint(rows: Sequence[dict[str, str]]) -> str:
    """The verdict on a text as a whole."""
    verdicts = {row["verdict"] for row in rows}
    return C if C in verdicts else V if verdicts == {V} else U


class Rates(NamedTuple):
    """Of some claims: how many there are and can be decided, and how many were not, or wrongly."""

    claims: int
    decidable: int
    undecided: int
    false_verified: int
    false_contradicted: int


def rates_of(some: Sequence[Outcome]) -> Rates:
    """Count them."""
    decidable = [one for one in some if one.claim["verdict"] != U]
    undecided = sum(one.found == U != one.wanted for one in decidable)
    wrong = [one.found for one in some if one.found != one.wanted]
    return Rates(len(some), len(decidable), undecided, wrong.count(V), wrong.count(C))


def main(everything: bool):
    found = outcomes()
    for one in found if everything else ():
        if one.found != one.wanted:
            print(f"{one.claim['log']}: {one.claim['text']}\n    {one.wanted}, found {one.found}: {one.details}")
    print(f"{'':12}{'claims':>8}{'decidable':>11}{'undecided':>11}{'false V':>9}{'false C':>9}")
    families = dict.fromkeys(one.claim["family"] for one in found)
    groups = {family: [one for one in found if one.claim["family"] == family] for family in families}
    groups |= {"not English": [one for one in found if one.claim["language"] != "en"], "all": found}
    for name, some in groups.items():
        rates = rates_of(some)
        share = f"{100 * rates.undecided / max(rates.decidable, 1):.0f} %"
        print(f"{name:12}{rates.claims:8}{rates.decidable:11}{share:>11}{rates[3]:9}{rates[4]:9}")


if __name__ == "__main__":
    main(sys.argv[1:] == ["all"])
