"""Prints how many claims of the table are decided wrongly, or not at all, for each family of programs.

    python -m tests.goldens.verdicts.rates [all]

With `all`, each claim whose verdict is another than the table's is printed, too.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.goldens.verdicts.adapter import tasks_of
from tests.goldens.verdicts.claude import Session, returned
from tests.goldens.verdicts.rates_table import CLAIMS, LOGS, C, U, V


class Outcome(NamedTuple):
    """A row of the table with the verdict that was found, and its reasons."""

    family: str
    language: str
    log: str
    text: str
    wanted: str
    found: str
    details: tuple[str, ...]


def outcomes_of(claims: Sequence[tuple[str, ...]] = CLAIMS) -> list[Outcome]:
    """Check each claim as the only one of a task that did what its log says."""
    with tempfile.TemporaryDirectory() as made, _home_at(Path(made).resolve() / "home") as home:
        workspace = home.parent / "ws"
        workspace.mkdir()
        session = Session(home, workspace)
        for number, (_, _, log, kind, text, _) in enumerate(claims):
            said = returned([text]) if kind == "e" else returned(summary=text)
            session.task(f"claim.{number}", LOGS[log], said)
        session.save()
        tasks = tasks_of(workspace)
    return list(_outcomes(claims, tasks))


def _outcomes(
    claims: Sequence[tuple[str, ...]], tasks: dict[str, dict[str, list[dict[str, str]]]]
) -> Iterator[Outcome]:
    for number, (family, language, log, _, text, wanted) in enumerate(claims):
        rows = tasks[f"claim.{number}"]["claims"]
        verdicts = {row["verdict"] for row in rows}
        found = C if C in verdicts else V if verdicts == {V} else U
        yield Outcome(family, language, log, text, wanted, found, tuple(row["detail"] for row in rows))


@contextlib.contextmanager
def _home_at(home: Path) -> Iterator[Path]:
    """A home of its own, in which nothing else is found."""
    home.mkdir()
    before = dict(os.environ)
    os.environ.update(
        {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
    )
    os.environ.update({"XDG_DATA_HOME": str(home / "data"), "CLAUDE_CONFIG_DIR": str(home / ".claude")})
    try:
        yield home
    finally:
        os.environ.clear()
        os.environ.update(before)


class Rates(NamedTuple):
    """Of some claims: how many there are and can be decided, and how many were not, or wrongly."""

    claims: int
    decidable: int
    undecided: int
    false_verified: int
    false_contradicted: int


def rates_of(outcomes: Sequence[Outcome]) -> Rates:
    """Count them."""
    decidable = [one for one in outcomes if one.wanted != U]
    return Rates(
        len(outcomes),
        len(decidable),
        sum(one.found == U for one in decidable),
        sum(one.found == V != one.wanted for one in outcomes),
        sum(one.found == C != one.wanted for one in outcomes),
    )


def main(everything: bool) -> None:
    outcomes = outcomes_of()
    if everything:
        for one in outcomes:
            if one.found != one.wanted:
                print(f"{one.log}: {one.text}\n    {one.wanted}, found {one.found}: {'; '.join(one.details)}")
    print(f"{'':12}{'claims':>8}{'decidable':>11}{'undecided':>11}{'false V':>9}{'false C':>9}")
    groups = {
        family: [one for one in outcomes if one.family == family] for family in Counter(one.family for one in outcomes)
    }
    groups |= {"not English": [one for one in outcomes if one.language != "en"], "all": outcomes}
    for name, some in groups.items():
        rates = rates_of(some)
        share = f"{100 * rates.undecided / max(rates.decidable, 1):.0f} %"
        print(
            f"{name:12}{rates.claims:8}{rates.decidable:11}{share:>11}{rates.false_verified:9}{rates.false_contradicted:9}"
        )


if __name__ == "__main__":
    main(sys.argv[1:] == ["all"])
