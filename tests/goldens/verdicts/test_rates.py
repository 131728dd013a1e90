"""How often claims of commands are decided, and that none is decided wrongly, by families of programs."""

import re
from typing import Any

import pytest

from tests.goldens.verdicts.rates import TABLE, outcomes, rates_of

VERIFIED = [one for one in TABLE["claims"] if one["verdict"] == "verified" and "miss" not in one]
SPOILED = {
    "edited after": lambda log: [*log, ["wrote", "src/zz.py", "Edit", ""]],
    "installed after": lambda log: [*log, ["ran", "npm install left-pad", 0, ""]],
    "hidden": lambda log: [["ran", f"{one[1]} || true", *one[2:]] if one[0] == "ran" else one for one in log],
    "elsewhere": lambda log: [["ran", f"cd other && {one[1]}", *one[2:]] if one[0] == "ran" else one for one in log],
    "in the background": lambda log: [["moved", one[1]] if one[0] == "ran" else one for one in log],
}
NUMBER = re.compile(r"`[^`]*`|(?<![\w.,])(\d+)(?![\w.,]*\d)")


@pytest.fixture(scope="module")
def found():
    return outcomes()


def test_each_claim_has_the_verdict_of_the_table_or_its_miss(found):
    assert [one for one in found if not one.is_known] == []


def test_hardly_a_claim_is_decided_wrongly(found):
    rates = rates_of(found)
    assert rates.claims >= 700
    assert rates.false_verified == 0
    assert rates.false_contradicted <= 1


def test_few_claims_stay_undecided_in_all_families_and_languages(found):
    assert rates_of(found).undecided <= 0.18 * rates_of(found).decidable
    families = {one.claim["family"] for one in found}
    assert len(families) >= 10
    for family in families:
        rates = rates_of([one for one in found if one.claim["family"] == family])
        assert rates.claims >= 50
        assert rates.undecided <= 0.35 * rates.decidable, family
    foreign = rates_of([one for one in found if one.claim["language"] != "en"])
    assert foreign.claims >= 100
    assert foreign.undecided <= 0.2 * foreign.decidable


@pytest.mark.parametrize("how", SPOILED)
def test_no_claim_is_verified_by_a_log_that_no_longer_shows_it(how):
    found = outcomes(VERIFIED, SPOILED[how])
    assert [(one.claim["log"], one.claim["text"]) for one in found if one.found == "verified"] == []


def test_no_claim_is_verified_with_another_number():
    found = outcomes([{**one, "text": text} for one in VERIFIED for text in others(one)])
    assert len(found) > 250
    assert [(one.claim["log"], one.claim["text"]) for one in found if one.found == "verified"] == []


def others(claim: dict[str, Any]) -> list[str]:
    """The text of a claim with one of its numbers changed."""
    text, numbers = claim["text"], [match for match in NUMBER.finditer(claim["text"]) if match[1]]
    return [f"{text[: one.start()]}{int(one[1]) * 2 + 7}{text[one.end() :]}" for one in numbers]
