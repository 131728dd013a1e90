"""Markdown that no document forbids makes no return invalid; a broken must stays an error below all of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.return_format import ReturnFormat
from agentwatch.contracts.shapes import Contract, Handoff, Outcome, Reading, Return, Severity, TodoList
from tests.unit.contracts.documents import FAILURE, PACKET, PARTIAL, RETURN, SUBAGENT, TODOS, open_document, text_of

NAME = "north.return.md"
BASES = [RETURN, FAILURE, PARTIAL]
MANY = RETURN.replace(
    "files_created:\n- plans/north.md\nfiles_modified:\n- (none)",
    "files_created:\n- plans/north.md\n- src/__init__.py\nfiles_modified:\n- Makefile\n- plans/a b.md",
)

BLOCKS = [
    "",
    "---",
    "***",
    "* * *",
    "<!-- a remark -->",
    "<!--\n## Status\nstate: ERROR\n- /etc/passwd\n-->",
    "### Details",
    "#### Status of the tests",
    "**Details:**",
    "__Details__",
    "> state: ERROR",
    "> - /etc/passwd",
    "```\nstate: ERROR\n- /etc/passwd\n## Status\nstate: ERROR\n```",
    "~~~yaml\nfiles_created:\n- /etc/passwd\n~~~",
    "  ```text\n  - ../x\n  ```",
    "All of this was checked twice.",
    "<note>\nas agreed\n</note>",
    "| file | tests |\n| --- | --- |",
    "checked.by: ada",
    "Next step: wait for the rain",
    "![a picture](https://host.test/a.png)",
]
NESTED = ["  - checked by hand", "    * 4 tests", "  and more of it", "\t- see the map", "  1. first"]
WRAPPERS: list[Callable[[str], str]] = [
    lambda text: f"---\ntask: north\n---\n{text}",
    lambda text: f"---\n\n{text}\n---\n",
    lambda text: f"# Return of the planner\n\n{text}",
    lambda text: f"## Overview\nHere it is.\n\n{text}",
    lambda text: f"Here is my return.\n\n{text}",
    lambda text: f"<result>\n{text}</result>\n",
    lambda text: f"<result>{text}</result>\n",
    lambda text: f"````markdown\n{text}````\n",
    lambda text: f"Here is my return:\n\n~~~~~\n{text}~~~~~\n\nThat is all.\n",
    lambda text: f"<!-- written by the planner -->\n{text}",
    lambda text: f"{text}\nThat is all.\n",
    lambda text: f"{text}\n-- \nAda, planner\n",
    lambda text: f"{text}\nSigned-off-by: Ada <ada@host.test>\n",
    lambda text: f"{text}\n## Notes\n- /etc/hosts was read\n",
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "  \n"),
    lambda text: "\ufeff" + text,
]
DRESSES: list[Callable[[str], str]] = [
    lambda text: text.replace("state:", "**state:**"),
    lambda text: text.replace("summary:", "- summary:"),
    lambda text: text.replace("- plans/north.md\nfiles", "- `plans/north.md`\nfiles"),
    lambda text: text.replace("- plans/north.md\nfiles", "* [x] **plans/north.md**\nfiles"),
    lambda text: text.replace("- plans/north.md\nfiles", "  - plans/north.md\nfiles"),
    lambda text: text.replace("- plans/north.md \u2014", "- [plans/north.md](plans/north.md) \u2014"),
    lambda text: text.replace("- plans/north.md \u2014", "- **`plans/north.md`** \u2014"),
    lambda text: text.replace(
        "files_created:\n- plans/north.md\nfiles", "files_created:\n```\n- plans/north.md\n```\nfiles"
    ),
    lambda text: text.replace("- (none)", "- None"),
    lambda text: text.replace("- (none)", "- N/A"),
    lambda text: text.replace("files_modified:\n- (none)", "files_modified:\n- No files were changed."),
    lambda text: text.replace("## Deliverables\n- (none)", "## Deliverables\n- No files; nothing was written"),
    lambda text: text.replace("state: SUCCESS", "state: `SUCCESS`"),
    lambda text: text.replace("## Status\n", "## Status\n```yaml\n").replace(
        "\n\n## Deliverables", "\n```\n\n## Deliverables"
    ),
    lambda text: text.replace("## Evidence\n- maps/north.md", "## Evidence\n\n## Evidence\n- maps/north.md"),
]
MUSTS: list[Callable[[str], str]] = [
    *(
        lambda text, header=header: text.replace(f"## {header}\n", "")
        for header in ("Status", "Deliverables", "Evidence")
    ),
    lambda text: text.replace("## Runtime Attestation", "## Attestation"),
    lambda text: text.replace("state: SUCCESS", "state: DONE"),
    lambda text: text.replace("state: SUCCESS\n", ""),
    lambda text: text.replace("state: SUCCESS", "state: SUCCESS\nstate: ERROR"),
    lambda text: text.replace("state: SUCCESS", "<!-- state: SUCCESS -->"),
    lambda text: text.replace("state: SUCCESS", "> state: SUCCESS"),
    lambda text: text.replace("state: SUCCESS", "state = SUCCESS"),
    lambda text: text.replace("state: SUCCESS", "state: ERROR"),
    lambda text: text.replace("summary: Planned the north bed with nine rows.", "summary:"),
    lambda text: text.replace("runtime_model_reported: acme/grower-2\n", ""),
    lambda text: text.replace("runtime_mode_reported: planner", "runtime_mode_reported:"),
    lambda text: text.replace("files_created:\n- plans/north.md\n", ""),
    lambda text: text.replace("files_created:\n- plans/north.md", "files_created: plans/north.md"),
    lambda text: text.replace("files_created:\n- plans/north.md", "files_created:\nplans/north.md"),
    lambda text: text.replace("files_created:\n- plans/north.md", "files_created:\n- plans/north.md, plans/b.md"),
    *(
        lambda text, path=path: text.replace("files_created:\n- plans/north.md", f"files_created:\n- {path}")
        for path in (
            *("file:a.py", "$HOME/a.py", "${HOME}/a.py", "~/a.py", "https://host.test/a.py", "/a.py", "C:\\a.py"),
            *("C:a.py", "../a.py", "a/../../b.py", "\\\\host\\a.py", "%TEMP%\\a.py", "`/a.py`", "[x] ~/a.py"),
        )
    ),
    lambda text: text.replace("- plans/north.md \u2014 the plan", "- plans/north.md"),
    lambda text: text.replace(
        "- plans/north.md \u2014 the plan\n- plans/seeds.csv - seeds to buy", "I wrote the plan."
    ),
    lambda text: text.replace("- maps/north.md\n- rows counted: 9", "I read the map."),
]


def read(text: str, name: str = NAME) -> Reading:
    reading = read_document(text, name)
    assert reading is not None, text
    return reading


def told(text: str, name: str = NAME) -> tuple[object, ...]:
    """What a return says: its state and all that is checked or shown of it."""
    document = read(text, name).document
    model = open_document(text, name)
    assert isinstance(document, Return)
    assert isinstance(model, ReturnFormat)
    evidence = [line for line in model.evidence or () if line in ("maps/north.md", "rows counted: 9")]
    return (document, evidence)


def errors(text: str, name: str = NAME) -> list[str]:
    return [finding.rule for finding in read(text, name).findings if finding.severity is Severity.ERROR]


def blocks_at(text: str) -> list[tuple[int, str]]:
    """Each line below the first header, and what may stand above it."""
    found = []
    for index, above in enumerate(text.split("\n")[:-1], 1):
        found += [(index, block) for block in BLOCKS]
        found += [(index, block) for block in NESTED if above.startswith("- ")]
    return found


def inserted(text: str, blocks: list[tuple[int, str]]) -> str:
    lines = text.split("\n")
    for index, block in sorted(blocks, reverse=True):
        lines[index:index] = block.split("\n")
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("base", [*BASES, MANY], ids=["success", "error", "partial", "many"])
def test_what_no_document_forbids_changes_nothing_wherever_it_stands(base: str) -> None:
    expected = told(base)
    places = blocks_at(base)
    assert len(places) > 400
    for place in places:
        text = inserted(base, [place])
        assert (errors(text), told(text)) == ([], expected), text


@pytest.mark.slow
@pytest.mark.parametrize("base", [*BASES, MANY], ids=["success", "error", "partial", "many"])
@pytest.mark.parametrize("around", range(len(WRAPPERS)))
@pytest.mark.parametrize("dress", [None, *range(len(DRESSES))])
def test_wrappers_and_dress_change_nothing(base: str, around: int, dress: int | None) -> None:
    text = WRAPPERS[around](DRESSES[dress](base) if dress is not None else base)

    assert (errors(text), told(text)) == ([], told(base)), text


@pytest.mark.parametrize("wrap", [*WRAPPERS[:3], *WRAPPERS[4:7], *WRAPPERS[9:]])
@pytest.mark.parametrize("embedded", [False, True])
def test_what_stands_around_a_return_changes_nothing_under_any_name(wrap: Callable[[str], str], embedded: bool) -> None:
    for base in [*BASES, MANY]:
        before, after = (read_document(text, "north.md", embedded=embedded) for text in (base, wrap(base)))
        assert before is not None
        assert after is not None
        assert (after.has_error, after.document) == (False, before.document)


@given(st.sampled_from([*BASES, MANY]), st.data())
def test_many_decorations_together_change_nothing(base: str, data: st.DataObject) -> None:
    dressed = base
    for dress in data.draw(st.lists(st.sampled_from(DRESSES[:7] + DRESSES[8:12]), max_size=2, unique=True)):
        dressed = dress(dressed)
    text = inserted(dressed, data.draw(st.lists(st.sampled_from(blocks_at(dressed)), max_size=4)))
    text = data.draw(st.sampled_from([*WRAPPERS, str]))(text)

    assert (errors(text), told(text)) == ([], told(base))


@pytest.mark.slow
@pytest.mark.parametrize("broken", range(len(MUSTS)))
def test_a_broken_must_is_an_error_below_every_decoration(broken: int) -> None:
    text = MUSTS[broken](RETURN)
    assert text != RETURN
    assert errors(text)
    for wrap in WRAPPERS:
        assert errors(wrap(text)), wrap(text)
    for place in blocks_at(text):
        assert errors(inserted(text, [place])), inserted(text, [place])


@given(st.sampled_from(MUSTS), st.data())
def test_a_broken_must_is_an_error_below_many_decorations(broken: Callable[[str], str], data: st.DataObject) -> None:
    text = broken(RETURN)
    text = inserted(text, data.draw(st.lists(st.sampled_from(blocks_at(text)), max_size=4)))
    assert errors(data.draw(st.sampled_from([*WRAPPERS, str]))(text))


@pytest.mark.parametrize(
    "text",
    [
        "## Status\nstate: ERROR\nsummary: No.\nretry_recommended: no\n\n<!--\n" + RETURN + "-->\n",
        FAILURE + "\n```\n" + RETURN + "```\n",
        FAILURE.replace("## Deliverables\n", "```\nstate: SUCCESS\n```\n## Deliverables\n"),
        FAILURE.replace("\nsummary", " <!-- state: SUCCESS -->\nsummary"),
        RETURN + "\n## Status\nstate: ERROR\n",
        RETURN.replace("SUCCESS", "SUCCESS\n  was not reached; ERROR"),
        RETURN.replace("state: SUCCESS", "- state: SUCCESS\n  was not reached"),
        RETURN.replace("SUCCESS", "\u017fUCCESS"),
        RETURN.replace("SUCCESS", "SUCCES\u017f"),
        RETURN.replace("## Evidence", "### Status\nstate: ERROR\n\n## Evidence"),
        "I could not do it.\n",
        "<!--\n" + RETURN,
    ],
)
def test_no_success_is_read_where_none_is_meant(text: str) -> None:
    reading = read(text)
    assert isinstance(reading.document, Return)
    assert reading.document.outcome is not Outcome.COMPLETED or reading.has_error


def test_a_label_or_a_gap_loses_no_path_of_a_list() -> None:
    text = RETURN.replace(
        "files_created:\n- plans/north.md\n",
        "files_created:\n**Plans**\n- plans/north.md\n\n### Seeds\n- `plans/seeds.csv`\n- and two notes\n",
    )

    reading = read(text)
    assert isinstance(reading.document, Return)
    assert reading.document.files_created == ("plans/north.md", "plans/seeds.csv")
    assert not reading.has_error


@pytest.mark.parametrize(
    "word", ["No-op.md", "none.py", "No files but plans/a.md", "nothing/a.md", "No files except x.md"]
)
def test_what_names_a_file_is_an_entry_of_its_list(word: str) -> None:
    reading = read(RETURN.replace("files_modified:\n- (none)", f"files_modified:\n- {word}"))
    assert isinstance(reading.document, Return)
    assert reading.document.files_modified == (word,)


def test_a_return_in_fenced_json_is_that_return() -> None:
    reading = read(f"```json\n{text_of(SUBAGENT)}```\n")
    assert (reading.contract, reading.has_error) == (Contract.SUBAGENT_RETURN, False)


@pytest.mark.parametrize(
    "text", ["", "I did it all.\n", "# Done\n\nAll tests pass.\n", "```json\n{}\n```\n", "## Status\nok\n"]
)
def test_a_file_called_a_return_that_holds_none_is_known_by_its_name_only(text: str) -> None:
    reading = read(text)
    assert isinstance(reading.document, Return)
    assert (reading.contract, reading.has_error) == (Contract.RETURN_FORMAT, True)
    assert not reading.document.recognised


@pytest.mark.parametrize(
    "wrap",
    [
        "Packet:\n\n{}",
        "Do this now.\n\n{}\nThank you.\n",
        "<!-- for the planner -->\n{}",
        "<task>\n{}</task>\n",
        "## Packet\n\n{}",
        "> note\n\n{}",
    ],
)
@pytest.mark.parametrize("packet", [PACKET, {"handoff_packet": PACKET}])
def test_a_packet_behind_other_words_is_read_in_a_file_called_a_handoff(wrap: str, packet: dict[str, object]) -> None:
    text = wrap.replace("{}", f"```json\n{text_of(packet)}```\n\n{TODOS}")
    reading = read(text, "north.handoff.md")
    plain = read(f"```json\n{text_of(PACKET)}```\n\n{TODOS}", "north.handoff.md")

    assert isinstance(reading.document, Handoff)
    assert isinstance(plain.document, Handoff)
    assert (reading.has_error, reading.document.task_id) == (False, plain.document.task_id)
    assert [todo.text for todo in reading.document.todos or ()] == [todo.text for todo in plain.document.todos or ()]


def test_a_packet_with_one_key_in_a_file_called_a_handoff_is_judged_as_one() -> None:
    reading = read('Packet:\n\n```json\n{"objective": "Sow."}\n```\n', "north.handoff.md")

    assert isinstance(reading.document, Handoff)
    assert "HOF001" in {finding.rule for finding in reading.findings}


@pytest.mark.parametrize(
    "wrap",
    [
        "```markdown\n{}```\n",
        "<todos>\n{}</todos>\n",
        "# Plan\n\nDo these in order:\n\n{}\nThat is all.\n",
        "{}\nNotes:\n- The tap is broken\n- So is the hose\n",
        "{}---\n",
        "<!-- in order -->\n{}",
        "> In order.\n\n{}",
    ],
)
@pytest.mark.parametrize("below", ["", "\n  and tell the others", "\n  - with a tape", "\n\n  > twice"])
def test_words_and_wrappers_around_todos_change_no_item(wrap: str, below: str) -> None:
    text = wrap.replace("{}", TODOS.replace("Draw the rows", f"Draw the rows{below}"))
    plain, alone = read(TODOS, "north.todos.md"), read(text, "north.todos.md")
    behind = read(f"```json\n{text_of(PACKET)}```\n\n{text}", "north.handoff.md")

    assert isinstance(plain.document, TodoList)
    assert isinstance(alone.document, TodoList)
    assert isinstance(behind.document, Handoff)
    expected = [(item.text, item.status) for item in plain.document.items]
    assert [(item.text, item.status) for item in alone.document.items] == expected
    assert [(item.text, item.status) for item in behind.document.todos or ()] == expected
    assert not alone.has_error
    assert not behind.has_error
