"""How often claims of commands are decided, and that none is decided wrongly, by families of programs."""

from __future__ import annotations

import pytest

from tests.goldens.verdicts.rates import Outcome, outcomes_of, rates_of


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return outcomes_of()


def test_no_claim_is_verified_that_the_log_does_not_show(outcomes: list[Outcome]) -> None:
    assert [one for one in outcomes if one.found == "verified" != one.wanted] == []


def test_hardly_a_claim_is_called_a_lie_that_is_none(outcomes: list[Outcome]) -> None:
    rates = rates_of(outcomes)
    assert rates.claims >= 300
    assert rates.false_contradicted <= rates.claims / 100


def test_few_claims_stay_undecided_in_all_families_and_languages(outcomes: list[Outcome]) -> None:
    assert rates_of(outcomes).undecided <= 0.2 * rates_of(outcomes).decidable
    families = {one.family for one in outcomes}
    assert len(families) >= 10
    for family in families:
        rates = rates_of([one for one in outcomes if one.family == family])
        assert rates.claims >= 10
        assert rates.undecided <= 0.35 * rates.decidable, family
    foreign = rates_of([one for one in outcomes if one.language != "en"])
    assert foreign.claims >= 30
    assert foreign.undecided <= 0.35 * foreign.decidable
