"""How often claims of commands are decided, and that none is decided wrongly, by families of programs."""

from __future__ import annotations

import pytest

from tests.goldens.verdicts.rates import Outcome, outcomes, rates_of


@pytest.fixture(scope="module")
def found() -> list[Outcome]:
    return outcomes()


def test_each_claim_has_the_verdict_of_the_table_or_is_known_to_be_undecided(found: list[Outcome]) -> None:
    assert [one for one in found if not one.is_known] == []


def test_hardly_a_claim_is_decided_wrongly(found: list[Outcome]) -> None:
    rates = rates_of(found)
    assert rates.claims >= 700
    assert rates.false_verified == 0
    assert rates.false_contradicted <= 1


def test_few_claims_stay_undecided_in_all_families_and_languages(found: list[Outcome]) -> None:
    assert rates_of(found).undecided <= 0.15 * rates_of(found).decidable
    families = {one.claim["family"] for one in found}
    assert len(families) >= 10
    for family in families:
        rates = rates_of([one for one in found if one.claim["family"] == family])
        assert rates.claims >= 50
        assert rates.undecided <= 0.3 * rates.decidable, family
    foreign = rates_of([one for one in found if one.claim["language"] != "en"])
    assert foreign.claims >= 100
    assert foreign.undecided <= 0.2 * foreign.decidable
