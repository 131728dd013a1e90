"""Whatever is written, reading it ends, gives the same each time, and leaves a typed model."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.findings import LIMIT, LIMIT_OF_ONE_RULE
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Reading, Severity
from agentwatch.contracts.signatures import contract_of, may_follow
from agentwatch.contracts.validation import Contracted
from tests.unit.contracts.documents import (
    FAILURE,
    META,
    PACKET,
    PARTIAL,
    REPORT,
    RETURN,
    SUBAGENT,
    SUBAGENT_FAILED,
    TODOS,
    open_document,
    put,
    text_of,
)

NAMES = ["x.json", "x.md", "x.return.json", "x.handoff.json", "x.todos.md", "a/.return-meta.json", "handoffs/x.md", ""]
JSON_BASES = [PACKET, SUBAGENT, SUBAGENT_FAILED, META, REPORT]
TEXT_BASES = [RETURN, FAILURE, PARTIAL, TODOS, f"```json\n{text_of(PACKET)}```\n\n{TODOS}"]
TEXTS = [*TEXT_BASES, *map(text_of, JSON_BASES)]

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["completed", "researched", "", "..", "/a", "\x1b[0m", "\ud800", "{x}", 10**30]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def check(text: str, name: str, *, embedded: bool = False) -> Reading | None:
    """Read twice and open; what holds for every text."""
    reading = read_document(text, name, embedded=embedded)
    assert read_document(text, name, embedded=embedded) == reading
    model = open_document(text, name, embedded=embedded)
    assert (model is None) is (reading is None)
    if reading is None:
        return None
    assert isinstance(model, Contracted)
    assert len(reading.findings) <= LIMIT
    lines = [finding.line or 0 for finding in reading.findings if finding.rule != "DOC010"]
    assert lines == sorted(lines)
    total = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    assert all(0 <= line <= total for line in lines)
    for finding in reading.findings:
        assert finding.message.isprintable()
        assert len(finding.message) < 600
    hash(reading.document)
    repr(reading).encode()
    return reading


def places(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [at] if at else []
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in entries:
        found += places(child, (*at, key))
    return found


@st.composite
def mutated_objects(draw: st.DrawFn) -> str:
    document = copy.deepcopy(draw(st.sampled_from(JSON_BASES)))
    for _ in range(draw(st.integers(1, 3))):
        found = places(document)
        if not found:
            break
        *way, last = draw(st.sampled_from(found))
        node = document
        for step in way:
            node = node[step]
        if draw(st.booleans()):
            del node[last]
        else:
            node[last] = draw(anything)
    return json.dumps(document, indent=draw(st.sampled_from([None, 2])))


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    lines = draw(st.sampled_from(TEXT_BASES)).split("\n")
    odd = st.sampled_from(
        [
            "## Status",
            "state: ERROR",
            "- state: x",
            "```",
            "~~~",
            "- [ ] x",
            "files_created:",
            "- ../a",
            "{",
            "---",
            "a",
            "**summary**: a. B. c",
            "\u2028",
            "limitations: x",
            "### Evidence",
            "\x1b]0;x\x07",
            "state = x, summary: y",
        ]
    )
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines)))
        action = draw(st.sampled_from(["drop", "insert", "swap"]))
        if action == "insert":
            lines.insert(at, draw(odd | st.text(max_size=12)))
        elif lines and action == "drop":
            del lines[min(at, len(lines) - 1)]
        elif lines:
            lines[min(at, len(lines) - 1)] = draw(odd)
    return draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines)


@given(
    st.text(st.characters()) | st.text('#`~{}[]":, \n\r-*statusevidn_:0', max_size=80),
    st.sampled_from(NAMES),
    st.booleans(),
)
def test_any_text_is_read_without_an_error(text: str, name: str, embedded: bool) -> None:
    check(text, name, embedded=embedded)


@given(mutated_objects(), st.sampled_from(NAMES), st.booleans())
def test_any_change_of_an_object_is_read_without_an_error(text: str, name: str, embedded: bool) -> None:
    check(text, name, embedded=embedded)


@given(mutated_texts(), st.sampled_from(NAMES), st.booleans())
def test_any_change_of_a_text_is_read_without_an_error(text: str, name: str, embedded: bool) -> None:
    check(text, name, embedded=embedded)


@given(st.sampled_from(JSON_BASES), st.sampled_from(NAMES), st.booleans(), st.data())
def test_what_is_turned_away_unparsed_has_no_signature(
    document: dict[str, Any], name: str, embedded: bool, data: st.DataObject
) -> None:
    kept = data.draw(st.sets(st.sampled_from(sorted(document))))
    top = {key: value for key, value in document.items() if key in kept}
    top = data.draw(st.sampled_from([top, {**top, "status": "revised"}, {"handoff_packet": top}]))

    assert may_follow(json.dumps(top), name) or contract_of(top, name, embedded=embedded) is None


@pytest.mark.parametrize("document", JSON_BASES)
def test_keys_written_in_escapes_are_those_keys(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    reading = read_document(text, "odd.json")
    for key in document:
        text = text.replace(f'"{key}":', '"' + "".join(f"\\u{ord(letter):04x}" for letter in key) + '":')

    assert reading is not None
    assert read_document(text, "odd.json") == reading


@given(st.sampled_from(TEXTS), st.data())
def test_any_flipped_characters_are_read_without_an_error(text: str, data: st.DataObject) -> None:
    characters = list(text)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(characters) - 1))
        characters[at] = data.draw(st.sampled_from(list('{}[]",:#-`\n x0\0\ufffd\x1b')))
    check("".join(characters), data.draw(st.sampled_from(NAMES)))


@pytest.mark.parametrize("document", JSON_BASES)
def test_an_object_cut_anywhere_is_unknown_or_incomplete(document: dict[str, Any]) -> None:
    text = text_of(document).rstrip()
    recognised = False
    for length in range(len(text)):
        reading = read_document(text[:length], "odd.json")
        # Once enough of it is written to be recognised, it stays so.
        assert reading is not None or not recognised
        if reading is not None:
            recognised = True
            assert (reading.complete, [finding.rule for finding in reading.findings]) == (False, ["DOC002"])
    assert recognised


@pytest.mark.parametrize("text", [RETURN, FAILURE, PARTIAL])
def test_a_return_cut_anywhere_before_its_last_key_is_unknown_or_incomplete(text: str) -> None:
    recognised = False
    for length in range(text.index("files_modified:")):
        reading = read_document(text[:length], "odd.md")
        assert reading is not None or not recognised
        if reading is not None:
            recognised = True
            assert (reading.complete, reading.has_error) == (False, True)
    assert recognised


@pytest.mark.parametrize("length", range(0, 1_000, 7))
def test_bytes_cut_anywhere_inside_a_character_are_read(length: int) -> None:
    data = RETURN.replace("rows", "\u8349\U0001f331").encode()[:length]

    check(data.decode("utf-8", "replace"), "x.md")


def test_a_thousand_findings_are_counted_and_not_listed() -> None:
    artifacts: list[Any] = [{"type": "x", "path": 1} for _ in range(900)]
    reading = check(text_of(put("artifacts", artifacts)(SUBAGENT)), "x.json")

    assert reading is not None
    by_rule = {
        rule: sum(finding.rule == rule for finding in reading.findings) for rule in ("SUB016", "SUB019", "SUB021")
    }
    assert by_rule == dict.fromkeys(by_rule, LIMIT_OF_ONE_RULE)
    assert reading.findings[-1].rule == "DOC010"
    assert str(3 * (900 - LIMIT_OF_ONE_RULE)) in reading.findings[-1].message


def test_errors_are_kept_before_warnings_when_there_are_too_many() -> None:
    lines = [f"- [ ] a {number}\n* [X] b\n  - [~]\n- nonsense\n" for number in range(60)]
    reading = check("".join(lines), "x.todos.md")

    assert reading is not None
    assert len(reading.findings) == LIMIT
    kept = [finding for finding in reading.findings if finding.severity is Severity.ERROR]
    assert len(kept) == 3 * LIMIT_OF_ONE_RULE


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        '{"status": "completed", "artifacts": [' + "1," * 300_000 + '1], "summary": "A. B."}',
        '{"report_metadata": {' + ",".join(f'"k{number}": {number}' for number in range(80_000)) + "}}",
        '{"task_id": "a", "objective": "b", "evidence": ' + "[" * 100_000,
        '{"task_id": "a", "objective": "' + "x. Y" * 250_000 + '", "risks": []}',
        "## Status\nstate: SUCCESS\n" + "summary: a, state: b " * 40_000,
        "## Status\nstate: SUCCESS\n\n## Deliverables\n" + "- a.md\n" * 100_000,
        "## Status\nstate: ERROR\n\n## Evidence\n" + "-" * 1_000_000,
        "## Status\nstate: SUCCESS\n\n## Runtime Attestation\nfiles_created:\n" + "- ../a, `b`\n" * 80_000,
        "## Status\nsummary: " + " " * 1_000_000 + "x",
        "#" * 1_000_000,
        "# " + " #" * 500_000,
        "\n" * 1_000_000,
        "```\n" * 200_000,
        "`" * 1_000_000,
        "- [ ] a\n" * 120_000,
        "**" * 500_000 + "\n## Status\nstate: SUCCESS",
        "## Status\n" + "state: SUCCESS\n" * 60_000,
        "{" * 500_000,
        "<a>" * 300_000 + "# Status",
        "_" * 1_000_000,
    ],
    ids=range(20),
)
@pytest.mark.parametrize("name", ["x.todos.md", "x.return.json"])
@pytest.mark.parametrize("embedded", [False, True])
def test_a_megabyte_of_anything_is_read(text: str, name: str, embedded: bool) -> None:
    reading = read_document(text, name, embedded=embedded)

    assert reading is None or len(reading.findings) <= LIMIT


def test_reading_is_the_same_after_a_thousand_other_texts() -> None:
    order = list(range(len(TEXTS)))
    first = [read_document(text, "x.json" if text.startswith("{") else "x.md") for text in TEXTS]
    random.Random(7).shuffle(order)
    for index in order:
        text = TEXTS[index]
        assert read_document(text, "x.json" if text.startswith("{") else "x.md") == first[index]
