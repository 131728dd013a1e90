"""Whatever is written, reading it ends, gives the same each time, and leaves a typed model."""

from __future__ import annotations

import copy
import itertools
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentwatch.contracts.reading import read_document
from tests.goldens.documents import adapter
from tests.goldens.documents.table import Case, write_children, write_files
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
    put,
    text_of,
)

NAMES = ["x.json", "x.md", "x.return.json", "x.handoff.json", "x.todos.md", "a/.return-meta.json", "handoffs/x.md"]
JSON_BASES = [PACKET, SUBAGENT, SUBAGENT_FAILED, META, REPORT]
TEXT_BASES = [RETURN, FAILURE, PARTIAL, TODOS, f"```json\n{text_of(PACKET)}```\n\n{TODOS}"]

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


LIMIT_OF_ONE_RULE: Final = 20


def check(*texts: tuple[str, str]) -> list[dict[str, Any] | None]:
    """Check texts under names, twice; what holds for every text. None where one is not recognised."""
    found: list[dict[str, Any] | None] = [None] * len(texts)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(os.path.realpath(directory))
        workspace = home / "work"
        write_files(workspace, [Case("", name, text) for text, name in texts])
        files = adapter.checked(home, workspace)
        assert adapter.checked(home, workspace) == files
    for file in files:
        parts = Path(file["path"]).relative_to(workspace).parts
        if not parts[0].isdigit():
            continue
        found[int(parts[0])] = file
        # That an artifact is not there is said last.
        findings = file["findings"] = [one for one in file["findings"] if one["rule"] != "LNK007"]
        text = texts[int(parts[0])][0].encode("utf-8", "replace").decode()
        lines = [one["line"] or 0 for one in findings if one["rule"] not in ("DOC010", "SRC006")]
        assert lines == sorted(lines)
        assert all(0 <= line <= len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")) for line in lines)
        for one in findings:
            assert one["message"].isprintable()
            assert len(one["message"]) < 600
    return found


def returned(texts: list[str]) -> None:
    """Have children return texts; each child is a task with findings at lines of its text."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(os.path.realpath(directory))
        workspace = home / "work"
        workspace.mkdir()
        write_children(home, workspace, [Case("", "", text.replace("task_id", "task"), "returned") for text in texts])
        tasks = adapter.tasks(home, workspace)
    ids = {attempt["session_id"] for task in tasks for attempt in task["attempts"]}
    assert {f"a{number:04}" for number in range(len(texts))} <= ids


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


any_text = st.text(st.characters()) | st.text('#`~{}[]":, \n\r-*statusevidn_:0', max_size=80)


@pytest.mark.parametrize("texts", [any_text, mutated_objects(), mutated_texts()], ids=range(3))
@given(data=st.data())
def test_any_text_is_read_without_an_error(texts: st.SearchStrategy[str], data: st.DataObject) -> None:
    check(*data.draw(st.lists(st.tuples(texts, st.sampled_from(NAMES)), min_size=1, max_size=6)))


@settings(max_examples=15)
@given(st.lists(any_text | mutated_objects() | mutated_texts(), min_size=1, max_size=12))
def test_any_text_that_is_returned_is_read(texts: list[str]) -> None:
    returned(texts)


JSON_LIKE = st.text(alphabet='{}[]",:0123456789.eE+-tfnrualse \n\\', max_size=40)


@given(st.lists(JSON_LIKE | st.builds(json.dumps, anything, indent=st.sampled_from([None, 2])), min_size=1, max_size=8))
def test_what_is_json_is_what_the_parser_says(texts: list[str]) -> None:
    for text, file in zip(texts, check(*((text, "x.return.json") for text in texts)), strict=True):
        try:
            json.loads(text)
        except ValueError:
            is_json = False
        else:
            is_json = True
        assert file is not None
        rules = {one["rule"] for one in file["findings"]}
        assert is_json or rules & {"DOC001", "DOC002", "DOC007", "DOC012"}
        assert not (is_json and rules & {"DOC001", "DOC002", "DOC007"})


@pytest.mark.parametrize("document", JSON_BASES)
def test_keys_written_in_escapes_are_those_keys(document: dict[str, Any]) -> None:
    text = escaped = json.dumps(document)
    for key in document:
        escaped = escaped.replace(f'"{key}":', '"' + "".join(f"\\u{ord(letter):04x}" for letter in key) + '":')
    plain, other = check((text, "odd.json"), (escaped, "odd.json"))

    assert plain is not None
    assert other is not None
    assert {**other, "path": plain["path"]} == plain


@pytest.mark.parametrize("document", [*JSON_BASES, RETURN, FAILURE, PARTIAL])
def test_a_document_cut_anywhere_is_unknown_or_broken(document: dict[str, Any] | str) -> None:
    whole = document if isinstance(document, str) else text_of(document).rstrip()
    end = whole.index("files_modified:") if isinstance(document, str) else len(whole)
    name = "odd.md" if isinstance(document, str) else "odd.json"
    found = check(*((whole[:length], name) for length in range(end)))
    # Once enough of it is written to be recognised, it stays so.
    recognised = list(itertools.dropwhile(lambda file: file is None, found))
    assert recognised
    for file in recognised:
        assert file is not None
        if isinstance(document, str):
            assert any(one["severity"] == "error" for one in file["findings"])
        else:
            assert [one["rule"] for one in file["findings"]] == ["DOC002"]


@pytest.mark.parametrize("document", [RETURN, FAILURE, PARTIAL])
def test_a_return_that_breaks_off_between_its_parts_is_still_being_written(document: str) -> None:
    for part in ("## Deliverables", "## Evidence", "## Runtime Attestation", "files_created:", "files_modified:"):
        cut = read_document(document[: document.index(part)], "x.return.md")
        assert cut is not None
        assert not cut.complete, part
    whole = read_document(document, "x.return.md")
    assert whole is not None
    assert whole.complete


def test_a_thousand_findings_are_counted_and_not_listed() -> None:
    artifacts: list[Any] = [{"type": "x", "path": 1} for _ in range(900)]
    [file] = check((text_of(put("artifacts", artifacts)(SUBAGENT)), "x.json"))

    assert file is not None
    rules = [one["rule"] for one in file["findings"]]
    assert {rules.count(rule) for rule in ("SUB016", "SUB019", "SUB021")} == {LIMIT_OF_ONE_RULE}
    assert rules[-1] == "DOC010"
    assert str(3 * (900 - LIMIT_OF_ONE_RULE)) in file["findings"][-1]["message"]


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
def test_a_megabyte_of_anything_is_read(text: str) -> None:
    check((text, "x.todos.md"), (text, "x.return.json"))
    returned([text])
