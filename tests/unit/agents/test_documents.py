"""Documents that agents submit, the answers that agents get, and the examples that agents are given."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentwatch.agents.documents import (
    EXAMPLES,
    describe_contract,
    stem_of,
    submit_handoff,
    submit_return,
    validate_return,
)
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.links import slot_of
from tests.unit.agents.documents import packet, returned

TASK = "shop.api"
BROKEN = returned().replace("retry_recommended: yes\n", "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_breaks_no_rule(name):
    file = {"return-meta": ".return-meta.json", "return-format": "a.md"}.get(name, "a.json")
    reading = read_document(EXAMPLES[name], file)
    assert (reading.contract.value, reading.findings) == (name, ())


@example("\u8a2d" * 60)
@given(st.text(min_size=1))
def test_every_task_id_is_one_file_name_of_its_own(task_id):
    stem = stem_of(task_id)
    assert len(stem) < 200
    assert stem.isascii()
    assert not set(stem) & set("/\\\0 ")
    assert stem[0] not in ".-"
    assert slot_of(f"handoffs/{stem}.handoff.json") == slot_of(f"returns/{stem}.return.md") == ("", stem)


def test_a_child_reads_what_is_wrong_where_and_what_to_do(tmp_path):
    found = validate_return(BROKEN)
    assert not found.compliant
    assert (found.contract, found.state) == ("return-format", "invalid")
    assert any("retry_recommended" in one.message and one.line for one in found.findings if one.severity == "error")
    assert validate_return(f"Here it is:\n\n{returned('SUCCESS')}").compliant


@pytest.mark.parametrize("text", ["", "All done!", packet(TASK), "\x00", "{" * 5000])
def test_what_is_no_return_is_told_how_to_become_one(text):
    found = validate_return(text)
    assert not found.compliant
    assert "get_contract('return-format')" in found.do_now


def test_a_return_with_errors_is_taken_only_where_that_is_meant(tmp_path):
    submit_handoff(tmp_path, packet(TASK), read_only=False)
    refused = submit_return(tmp_path, TASK, BROKEN, accept_invalid=False, read_only=False)
    assert (refused.accepted, refused.state, refused.path) == (False, "invalid", None)
    assert refused.findings
    taken = submit_return(tmp_path, TASK, BROKEN, accept_invalid=True, read_only=False)
    assert (taken.accepted, taken.state) == (True, "invalid")
    assert "wait_for_decision" in taken.do_now


def test_a_task_has_one_return_in_whichever_form_it_came_last(tmp_path):
    submit_handoff(tmp_path, packet(TASK), read_only=False)
    for text in (returned("SUCCESS"), EXAMPLES["subagent-return"], returned("SUCCESS")):
        assert submit_return(tmp_path, TASK, text, accept_invalid=True, read_only=False).accepted
        assert len(list(tmp_path.glob("returns/*"))) == 1


def test_nothing_is_written_if_the_operator_forbids_it(tmp_path):
    told = submit_handoff(tmp_path, packet(TASK), read_only=True)
    assert not told.accepted
    assert "read_only" in told.do_now
    assert list(tmp_path.iterdir()) == []


def test_a_return_that_names_no_task_waits_for_the_handoff(tmp_path):
    text = EXAMPLES["subagent-return"]
    assert "handoff" in submit_return(tmp_path, TASK, text, accept_invalid=False, read_only=False).do_now
    submit_handoff(tmp_path, packet(TASK), read_only=False)
    assert submit_return(tmp_path, TASK, text, accept_invalid=False, read_only=False).accepted


def test_what_is_refused_or_over_says_how_to_go_on(tmp_path):
    told = describe_contract(Contract.RETURN_FORMAT)
    assert {"RET003", "DOC001"} <= {one.id for one in told.rules}
    assert "HOF004" not in {one.id for one in told.rules}
    told_of = {"All done!": "no handoff packet is recognised", packet(TASK, objective=""): "mend every error"}
    for text, words in told_of.items():
        assert words in submit_handoff(tmp_path, text, read_only=False).do_now
    other = returned("SUCCESS", more="task_id: shop.ui\n")
    told_of = {other: "is the return of “shop.ui”, not of “shop.api”", "All done!": "no return is recognised"}
    submit_handoff(tmp_path, packet(TASK), read_only=False)
    told_of[returned(code="E_ABORTED_BY_OPERATOR")] = "the operator has aborted it; hand this report up"
    for text, words in told_of.items():
        assert words in submit_return(tmp_path, TASK, text, accept_invalid=False, read_only=False).do_now


def test_a_link_in_the_place_of_a_directory_is_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "handoffs").symlink_to(tmp_path / "outside")
    handed = submit_handoff(tmp_path, packet(TASK), read_only=False)
    assert (handed.accepted, "link" in handed.do_now) == (False, True)
    assert list((tmp_path / "outside").iterdir()) == []
