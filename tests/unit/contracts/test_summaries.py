"""What a document says of its task reaches the tree: the fields of handoffs and returns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentwatch.contracts.handoff import HandoffPacket
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.report import Report
from agentwatch.contracts.return_format import ReturnFormat
from agentwatch.contracts.return_meta import ReturnMeta
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Return
from agentwatch.contracts.subagent_return import SubagentReturn
from tests.unit.contracts.documents import (
    FAILURE,
    META,
    PACKET,
    PARTIAL,
    REPORT,
    RETURN,
    SUBAGENT,
    SUBAGENT_FAILED,
    drop,
    open_document,
    put,
    text_of,
)


def returned(document: Any, name: str | None = None) -> Return:
    is_markdown = isinstance(document, str) and not document.startswith("{")
    text = document if isinstance(document, str) else text_of(document)
    reading = read_document(text, name or ("x.md" if is_markdown else "x.json"))
    assert reading is not None
    assert isinstance(reading.document, Return)
    return reading.document


def meta(document: Any) -> Return:
    return returned(document, ".return-meta.json")


@pytest.mark.parametrize(
    ("document", "name", "key"),
    [
        (SUBAGENT, "x.return.json", "attempt"),
        (SUBAGENT, "x.return.json", "metadata.attempt"),
        (META, ".return-meta.json", "attempt"),
        (META, ".return-meta.json", "metadata.attempt"),
        (REPORT, "x.report.json", "attempt"),
        (REPORT, "x.report.json", "report_metadata.attempt"),
    ],
)
def test_a_return_in_json_names_the_attempt_that_it_answers(document: Any, name: str, key: str) -> None:
    assert returned(put(key, 2)(document), name).attempt == 2
    assert returned(put(key, "second")(document), name).attempt is None


def test_a_packet_gives_its_identity() -> None:
    reading = read_document(text_of({**PACKET, "decision_id": "d1", "restores": "garden.pond"}), "x.json")

    assert reading is not None
    assert reading.document == Handoff(
        task_id="garden.beds.north",
        objective="Plan the north bed for spring.",
        parent_task_id="garden.beds",
        attempt=1,
        mode="planner",
        session_id="sess_1700000000_aa11",
        decision_id="d1",
        restores="garden.pond",
    )


def test_a_return_in_markdown_gives_its_claims() -> None:
    document = returned(RETURN.replace("rows.\n", "rows.\ntask_id: garden.beds.north\nattempt: 2\n", 1))

    assert document == Return(
        contract=Contract.RETURN_FORMAT,
        reported_state="SUCCESS",
        outcome=Outcome.COMPLETED,
        task_id="garden.beds.north",
        attempt=2,
        agent="planner",
        summary="Planned the north bed with nine rows.",
        model="acme/grower-2",
        mode="planner",
        files_created=("plans/north.md",),
        artifacts=("plans/north.md", "plans/seeds.csv"),
    )


def test_an_error_in_markdown_gives_code_and_hint() -> None:
    document = returned(FAILURE)

    assert document.outcome is Outcome.FAILED
    assert (document.error_code, document.retry_recommended, document.retry_hint) == (
        "E_NO_MAP",
        True,
        "Pass the map as text.",
    )


def test_a_partial_return_gives_its_limitations() -> None:
    assert returned(PARTIAL).limitations == ("Rows five to nine are open.",)


@pytest.mark.parametrize("written", ["success", "- state: SUCCESS", "**state**: SUCCESS", "**state: SUCCESS**"])
def test_a_tolerated_spelling_still_means_what_it_means(written: str) -> None:
    line = written if "state" in written else f"state: {written}"

    assert returned(RETURN.replace("state: SUCCESS", line)).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("written", "path", "description"),
    [
        ("- a/b.md \u2014 the plan", "a/b.md", "the plan"),
        ("- a/b.md \u2013 the plan", "a/b.md", "the plan"),
        ("- a/b.md - the plan", "a/b.md", "the plan"),
        ("- a/b.md: the plan", "a/b.md", "the plan"),
        ("- a/b.md (the plan)", "a/b.md", "(the plan)"),
        ("- a/b.md the plan", "a/b.md", "the plan"),
        ("- `a/b.md` \u2014 the plan", "a/b.md", "the plan"),
        ("- **a/b.md**: the plan", "a/b.md", "the plan"),
        ("- Makefile \u2014 the plan", "Makefile", "the plan"),
        ("* my notes/b.md \u2014 the plan", "my notes/b.md", "the plan"),
    ],
)
def test_a_deliverable_may_be_written_in_several_ways(written: str, path: str, description: str) -> None:
    text = RETURN.replace("- plans/north.md \u2014 the plan\n", written + "\n")
    reading = read_document(text, "x.md")
    model = open_document(text, "x.md")

    assert reading is not None
    assert reading.findings == ()
    assert isinstance(model, ReturnFormat)
    assert model.deliverables is not None
    assert (model.deliverables[0].path, model.deliverables[0].description) == (path, description)


def test_lists_may_be_indented_below_a_key_in_a_bullet() -> None:
    text = RETURN.replace("files_created:\n- plans", "- **files_created**:\n  - plans")

    assert returned(text).files_created == ("plans/north.md",)


def test_other_keys_and_their_lists_are_left_aside() -> None:
    reading = read_document(RETURN.replace("files_created:", "tools:\n- grep\ncost: 3\nfiles_created:"), "x.md")

    assert reading is not None
    assert reading.findings == ()


def test_evidence_may_quote_output_below_its_bullet() -> None:
    reading = read_document(
        RETURN.replace("- rows counted: 9", "- rows counted:\n  nine of them\n```\n## Status\n9\n```\n- (none)"), "x.md"
    )

    assert reading is not None
    assert reading.findings == ()


def test_paths_written_on_the_line_of_their_key_are_read_all_the_same() -> None:
    text = RETURN.replace("files_created:\n- plans/north.md", "files_created: [plans/a.md, `plans/b.md`]")

    assert returned(text).files_created == ("plans/a.md", "plans/b.md")


@pytest.mark.parametrize(
    "entry", ["[the plan](plans/a.md)", '"plans/a.md"', "[`a`](<plans/a.md>) - new", "\u201cplans/a.md\u201d"]
)
def test_a_link_and_a_quoted_path_claim_the_file_they_name(entry: str) -> None:
    text = RETURN.replace("files_created:\n- plans/north.md", f"files_created:\n- {entry}")

    assert returned(text).files_created == ("plans/a.md",)


def test_a_sentence_below_a_list_key_is_no_claim() -> None:
    text = RETURN.replace("files_created:\n- plans/north.md", "files_created:\nI wrote plans/north.md.")

    assert returned(text).files_created == ()


def test_a_state_that_is_not_allowed_stays_visible() -> None:
    document = returned(RETURN.replace("SUCCESS", "DONE"))

    assert (document.reported_state, document.outcome) == ("DONE", None)


def test_what_stands_without_its_header_is_read_all_the_same() -> None:
    document = returned(RETURN.replace("## Status\n", ""))

    assert document.outcome is Outcome.COMPLETED
    assert returned(RETURN.replace("## Runtime Attestation\n", "")).files_created == ("plans/north.md",)


def test_a_subagent_return_gives_everything() -> None:
    document = returned(SUBAGENT_FAILED)

    assert document == Return(
        contract=Contract.SUBAGENT_RETURN,
        reported_state="failed",
        outcome=Outcome.FAILED,
        session_id="sess_1700000000_aa11",
        agent="planner",
        delegation_path=("orchestrator", "plan", "planner"),
        summary="Planned the north bed. Nine rows are filled.",
        error_code="timeout",
        error_message="The soil probe did not answer.",
        errors=("The soil probe did not answer.",),
        retry_recommended=True,
        retry_hint="Charge the probe.",
        next_steps="Buy the seeds.",
    )


def test_a_blocked_subagent_names_its_errors_as_blockers() -> None:
    assert returned(put("status", "blocked")(SUBAGENT_FAILED)).blockers == ("The soil probe did not answer.",)


def test_one_error_that_cannot_be_recovered_speaks_against_a_retry() -> None:
    errors = [*SUBAGENT_FAILED["errors"], {**SUBAGENT_FAILED["errors"][0], "recoverable": False}]

    assert returned(put("errors", errors)(SUBAGENT_FAILED)).retry_recommended is False


def test_a_report_gives_confidence_and_recommendations() -> None:
    document = returned(put("report_metadata.confidence_level", 1)(REPORT))

    assert (document.task_id, document.agent, document.confidence) == ("garden.soil", "soil-reader", 1.0)
    assert document.next_steps == "Add compost."


def test_a_blocked_report_gives_its_blockers() -> None:
    document = returned(put("blockers", ["No spade."])(put("report_metadata.status", "blocked")(REPORT)))

    assert (document.outcome, document.blockers) == (Outcome.BLOCKED, ("No spade.",))


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("in_progress", Outcome.WORKING),
        ("researched", Outcome.COMPLETED),
        ("planned", Outcome.COMPLETED),
        ("implemented", Outcome.COMPLETED),
        ("done", Outcome.COMPLETED),
        ("completed", Outcome.COMPLETED),
        ("complete", Outcome.COMPLETED),
        ("success", Outcome.COMPLETED),
        ("tasks_created", Outcome.COMPLETED),
        ("report_written", Outcome.COMPLETED),
        ("assembled", Outcome.COMPLETED),
        ("translated", Outcome.COMPLETED),
        ("partial", Outcome.PARTIAL),
        ("partially_implemented", Outcome.PARTIAL),
        ("blocked", Outcome.BLOCKED),
        ("failed", Outcome.FAILED),
        ("error", Outcome.FAILED),
        *((word, None) for word in ("errored", "aborted", "cancelled", "canceled", "interrupted", "timed_out")),
        *((word, None) for word in ("crashed", "stopped", "skipped", "rejected", "abandoned", "paused", "deferred")),
        *((word, None) for word in ("build_failed", "not_implemented", "unresolved", "mostly_implemented", "ready?")),
    ],
)
def test_a_status_of_the_dialect_means_a_state(status: str, outcome: Outcome | None) -> None:
    reading = read_document(text_of(put("status", status)(META)), ".return-meta.json")

    assert reading is not None
    assert isinstance(reading.document, Return)
    assert reading.document.outcome is outcome
    assert reading.document.reported_state == status
    assert reading.has_error is (outcome is None)


def test_the_dialect_gives_everything() -> None:
    assert meta(META) == Return(
        contract=Contract.RETURN_META,
        reported_state="researched",
        outcome=Outcome.COMPLETED,
        session_id="sess_1700000000_bb22",
        agent="researcher",
        delegation_path=("orchestrator", "research", "researcher"),
        summary="Read the almanac.",
        error_code="gap",
        error_message="No data for May.",
        errors=("No data for May.",),
        retry_recommended=True,
        retry_hint="Ask.",
        blockers=("The library is closed.",),
        review_reason="Two almanacs disagree.",
        next_steps="Plan the beds.",
        progress=(1, 2),
        artifacts=("reports/almanac.md",),
    )


def test_the_dialect_is_read_at_top_level_where_it_has_no_metadata() -> None:
    document = meta({**drop("metadata")(META), **META["metadata"]})

    assert document.session_id == "sess_1700000000_bb22"
    assert document.delegation_path == ("orchestrator", "research", "researcher")


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        (put("artifacts", ["a.md", {"path": "b.md"}, 3]), "artifacts", ("a.md", "b.md")),
        (put("artifacts", "a.md"), "artifacts", ("a.md",)),
        (put("errors", ["No ink.", 3]), "error_message", "No ink."),
        (put("artifacts", {"plan": "a.md", "files": ["b.md", "c.md"]}), "artifacts", ("a.md", "b.md", "c.md")),
        (lambda document: {**drop("artifacts")(document), "artifact_path": "a.md"}, "artifacts", ("a.md",)),
        (put("next_steps", ["One.", "Two."]), "next_steps", "One.\nTwo."),
        (put("phases_completed", ["a", "b"]), "progress", (2, 2)),
        (put("phases_completed", 9), "progress", (2, 2)),
        (put("phases_total", 0), "progress", None),
        (put("blockers", [{"type": "x", "description": "No ink."}, "No pen."]), "blockers", ("No ink.", "No pen.")),
        (put("blockers", [{"what": "No ink."}]), "blockers", ("No ink.",)),
        (put("blockers", [{"target": "Page 2", "why_it_failed": "No ink."}]), "blockers", ("No ink.",)),
        (put("blockers", [{"issue": "No ink.", "status": "Resolved"}, "No pen."]), "blockers", ("No pen.",)),
        (
            lambda document: {**drop("artifacts")(document), "artifact": {"type": "plan", "path": "beds.md"}},
            "artifacts",
            ("beds.md",),
        ),
        (put("blockers", "No ink."), "blockers", ("No ink.",)),
        (
            lambda document: {**drop("blockers")(document), "blocking_issues": [{"issue": "Ink."}]},
            "blockers",
            ("Ink.",),
        ),
        (
            lambda document: {**drop("blockers")(document), "blocker": {"type": "x", "description": "No ink."}},
            "blockers",
            ("No ink.",),
        ),
        (lambda document: {**drop("blockers")(document), "blocker": "No ink."}, "blockers", ("No ink.",)),
        (put("requires_user_review", False), "review_reason", None),
        (drop("metadata.agent_type"), "agent", "researcher"),
        (put("files_created", ["a.md"]), "files_created", ("a.md",)),
    ],
)
def test_the_dialect_is_read_however_it_is_written(change: Any, field: str, value: object) -> None:
    assert getattr(meta(change(META)), field) == value


def test_phases_may_stand_in_the_metadata() -> None:
    document = {**META, "metadata": {**META["metadata"], "phases_completed": 3, "phases_total": 4}}
    del document["phases_completed"], document["phases_total"]

    assert meta(document).progress == (3, 4)


def test_long_texts_are_cut_in_the_summary_and_whole_in_the_model() -> None:
    text = text_of(put("next_steps", "x" * 5_000)(SUBAGENT))
    model = open_document(text, "x.json")

    assert len(returned(text).next_steps or "") == 2_000
    assert isinstance(model, SubagentReturn)
    assert len(model.next_steps or "") == 5_000


@pytest.mark.parametrize(
    ("document", "model"),
    [
        (PACKET, HandoffPacket),
        (RETURN, ReturnFormat),
        (SUBAGENT, SubagentReturn),
        ({**SUBAGENT, "started_at": "2030-01-01"}, ReturnMeta),
        (REPORT, Report),
    ],
)
def test_each_contract_opens_as_its_model(document: Any, model: type) -> None:
    text = document if isinstance(document, str) else text_of(document)

    assert type(open_document(text, "x.json" if text.startswith("{") else "x.md")) is model


def test_the_full_model_holds_what_the_details_show() -> None:
    report = open_document(text_of(REPORT), "x.json")
    packet = open_document(text_of(PACKET), "x.json")
    markdown = open_document(PARTIAL, "x.md")

    assert isinstance(report, Report)
    assert report.context_map is not None
    assert [(row.description, row.path, row.first, row.last) for row in report.context_map] == [
        ("The soil is sandy.", None, None, None),
        ("Where the samples are read.", "src/soil.py", 10, 20),
    ]
    assert isinstance(packet, HandoffPacket)
    assert packet.risks is not None
    assert packet.risks[0].mitigation == "Sow after the tenth of May."
    assert isinstance(markdown, ReturnFormat)
    assert markdown.deliverables is not None
    assert (markdown.deliverables[0].path, markdown.deliverables[0].description) == (
        "plans/north.md",
        "the plan so far",
    )
    assert markdown.attestation is not None
    assert markdown.attestation.files_modified == []


def test_what_breaks_a_rule_is_pruned_and_the_rest_stays() -> None:
    broken = put("artifacts.0.path", 3)(put("metadata.session_id", 4)(SUBAGENT))
    model = open_document(text_of(broken), "x.json")

    assert isinstance(model, SubagentReturn)
    assert model.artifacts is not None
    assert [artifact.path for artifact in model.artifacts] == [None, "reports/soil.md"]
    assert model.metadata is not None
    assert (model.metadata.session_id, model.metadata.agent_type) == (None, "planner")


@pytest.mark.parametrize(("more", "how"), [({}, "missing"), ({"artifacts": []}, "empty")])
def test_a_finished_stage_without_artifacts_is_told_whether_the_list_is_missing_or_empty(
    more: dict[str, object], how: str
) -> None:
    metadata = {
        "session_id": "sess_1_a",
        "agent_type": "planner",
        "delegation_depth": 1,
        "delegation_path": ["planner"],
    }
    text = json.dumps({"status": "planned", "summary": "A plan.", "metadata": metadata, **more})
    reading = read_document(text, ".return-meta.json")
    assert reading is not None
    told = [finding.message for finding in reading.findings if finding.rule == "MET012"]
    assert [one.startswith(f"`artifacts` is {how} though") for one in told] == [True]


@pytest.mark.parametrize("name", ["blocker", "blockers"])
def test_what_blocks_is_read_in_another_contract_where_the_dialect_has_it(name: str) -> None:
    described: object = {"type": "x", "description": "No ink."}
    named = {name: described if name == "blocker" else [described]}
    metadata = {"agent_name": "a", "task_id": "t", "status": "blocked", "verbosity_level": "low"}
    for text in (
        json.dumps(
            {"status": "blocked", "summary": "It waits.", "artifacts": [], "metadata": {}, "errors": [], **named}
        ),
        json.dumps({"report_metadata": metadata, "findings": {}, **named}),
    ):
        reading = read_document(text, "a.json")
        assert reading is not None
        assert isinstance(reading.document, Return)
        assert reading.document.outcome is Outcome.BLOCKED
        assert reading.document.blockers == ("No ink.",), reading.document.contract
