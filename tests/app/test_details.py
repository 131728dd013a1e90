"""The tabs of the details: a golden for each contract, and no harmful line for any document or hostile text."""

import copy
import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.app.widgets.details.blocks import MAX_LINES, lay_out
from agentwatch.app.widgets.details.pane import head_lines, tab_titles
from agentwatch.app.widgets.details.tabs import TABS, View
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, Fields, Finding, Handoff, Return, Severity, Todo, TodoStatus
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Message, RunState, Seen
from agentwatch.delegation.task import Attempt, Basis, Retry, Shown, State, Sums, Task, TaskKind
from agentwatch.delegation.tree import Tree
from tests.app.scenes import HOSTILE
from tests.goldens.conftest import Golden
from tests.unit.contracts import documents
from tests.unit.contracts import documents as valid
from tests.unit.delegation.asking import request
from tests.unit.delegation.events import ROOT, decided

NOW = 1_700_000_600.0
STARTED = NOW - 180
PACKET = f"```json\n{valid.text_of(valid.PACKET)}```\n\n{valid.TODOS}"
FINDINGS = valid.REPORT["findings"] | {
    "overview": "# Soil\n\nIt holds **two** layers:\n\n- `sand`\n- `clay`",
    "numbers": {"samples": 4, "dry": [True, False, None]},
}
REPORT = valid.REPORT | {"findings": FINDINGS, "blockers": ["Which bed is in scope?"]}
TEXTS: dict[Contract, tuple[str, str, State]] = {
    Contract.RETURN_FORMAT: ("work/api.return.md", valid.FAILURE, State.FAILED),
    Contract.SUBAGENT_RETURN: ("specs/246_x/return.json", valid.text_of(valid.SUBAGENT_FAILED), State.PARTIAL),
    Contract.RETURN_META: ("specs/246_x/.return-meta.json", valid.text_of(valid.META), State.WORKING),
    Contract.REPORT_CONTRACT: ("reports/auth.json", valid.text_of(REPORT), State.BLOCKED),
}
BROKEN = (
    Finding("RET011", Severity.WARNING, "Write the header as ## Deliverables", 8),
    Finding("RET004", Severity.ERROR, "Say retry_recommended: yes or no when state is ERROR", 2),
    Finding("RET020", Severity.ERROR, "Add the section ## Evidence"),
)


@dataclass
class Case:
    """A task, with the texts and the tree that the details pane gets with it."""

    task: Task
    texts: dict[str, str] = field(default_factory=dict)
    tree: Tree = field(default_factory=Tree)

    checks = True

    def content(self, version: Seen) -> str | None:
        return self.texts.get(version.digest)


class AtOnce(View):
    """A view that reads at once instead of in a thread."""

    def made_value(self, key: Hashable, make: Callable[[], object]) -> object:
        return make()


def version(path: str, text: str, document: Fields, findings: tuple[Finding, ...] = (), seq: int = 1) -> Seen:
    digest = hashlib.sha256(path.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()
    return Seen(seq, STARTED, path, digest, document, findings)


def read(path: str, text: str) -> Any:
    """Return the document that the contracts read in a text."""
    reading = read_document(text, path)
    assert reading is not None
    return reading.document


PACKET_SUMMARY: Handoff = read("work/api.handoff.md", PACKET)
SUMMARIES: dict[Contract, Return] = {contract: read(*TEXTS[contract][:2]) for contract in TEXTS}


def case(
    contract: Contract | None = Contract.RETURN_FORMAT,
    *,
    findings: tuple[Finding, ...] = (),
    text: str | None = None,
    summary: Return | None = None,
    packet: Handoff = PACKET_SUMMARY,
    packet_text: str = PACKET,
) -> Case:
    """Return a task of one attempt: a handoff, and a return under `contract` unless that is None."""
    attempt = Attempt(1, started_at=STARTED)
    attempt.handoff = version("work/api.handoff.md", packet_text, packet)
    task = Task("shop.checkout.api", "api", parent_id="shop.checkout", parent_basis=Basis.DOTTED_PREFIX)
    task.attempts, task.todos, task.updated_at = [attempt], packet.todos, STARTED
    one = Case(task, {attempt.handoff.digest: packet_text})
    if contract is None:
        task.why = "handed off; no sign of life yet"
        return one
    path, own_text, state = TEXTS[contract]
    result = summary or SUMMARIES[contract]
    attempt.returned = version(path, own_text if text is None else text, result, findings, 2)._replace(at=NOW - 120)
    one.texts[attempt.returned.digest] = own_text if text is None else text
    task.agent, task.why, task.updated_at = (
        result.agent or "code",
        f"the return says {result.reported_state}",
        NOW - 120,
    )
    task.state, attempt.state, task.shown = state, state, Shown(state)
    task.ended_at = None if state.is_open else NOW - 120
    task.findings = [replace(finding, path=path) for finding in findings]
    task.retry = Retry(recommended=result.retry_recommended, hint=result.retry_hint)
    attempt.session_id = result.session_id
    return one


UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Categories of characters that move, hide or reverse text."""


def tabs_of(one: Case, width: int) -> dict[str, list[str]]:
    """Return the lines of every tab, and check that none is wider than `width`."""
    view = AtOnce(one.task, one.tree, one, NOW)
    tabs = {}
    for tab_id, write in TABS.items():
        lines = lay_out(write(view), width)
        assert lines
        for content in (line.content for line in lines):
            assert content.cell_length <= width
            assert not set(map(unicodedata.category, content.plain)) & UNSAFE
            for span in content.spans:
                assert "click" not in str(span.style)
                assert 0 <= span.start <= span.end <= len(content.plain)
        tabs[tab_id] = [line.content.plain for line in lines]
    return tabs


def with_children() -> Case:
    one, shown = case(), {Shown.COMPLETED: 2, Shown.FAILED: 1}
    one.task.is_checked = True
    one.task.below = Sums(Counter({TaskKind(State(one), one): count for one, count in shown.items()}))
    return one


def gone() -> Case:
    summary = replace(SUMMARIES[Contract.RETURN_FORMAT], summary="A short summary.", blockers=("A blocker.",))
    one = case(summary=summary, packet=replace(PACKET_SUMMARY, parent_task_id="shop.checkout", mode="code"))
    one.texts.clear()
    return one


def broken() -> Case:
    one = case(findings=BROKEN)
    one.task.findings.append(Finding("HOF001", Severity.WARNING, "Give a task_id", 3, "api.handoff.md"))
    return one


def said():
    """Return a session with a prompt and an answer in prose; only the first line of the prompt is kept."""
    one, prompt, answer = case(None), Message(NOW, "0" * 64, "Water the **bed**."), Message(NOW, "1" * 64, "It is wet.")
    one.texts["1" * 64] = "It is wet.\n\n- twice"
    run = replace(
        ROOT, state=RunState.ENDED, ended_at=NOW, model="some/model", tokens=1_200, prompt=prompt, said=answer
    )
    one.task.attempts, one.task.todos = [Attempt(1, started_at=NOW - 90, run=run)], None
    return one


def again():
    """Return a task whose agent has read a second attempt; the text of the first return is gone."""
    one, decision = case(), decided("a", Action.RETRY, NOW - 400, 2, note="Use the map.").decision
    first = one.task.attempts[0]
    first.decisions = (decision,)
    second = replace(first, number=2, handoff=None, decisions=(), returned=first.returned._replace(digest="2" * 64))
    one.task.attempts, one.texts["2" * 64] = [first, second], one.texts.pop(first.returned.digest)
    return one


def asks():
    """Return a task whose program waits for two permissions: one can be given here, the other in its terminal only."""
    one, first = case(None), request(1, "npm test", asked_at=NOW - 60, until=NOW + 30)
    one.task.requests = first, request(2, "git push", asked_at=NOW - 30, actions=(), why_not="it is too long")
    one.task.own_state = one.task.state = State.BLOCKED
    return one


def ended():
    """Return a session that was closed before it gave an answer."""
    one, run = case(None), replace(ROOT, state=RunState.ENDED, ended_at=NOW, reason="its session was closed")
    one.task.own_state = one.task.state = State.UNKNOWN
    one.task.attempts, one.task.todos = [Attempt(1, started_at=NOW - 90, run=run)], None
    return one


def named():
    """Return a task that is known only because the tasks below it name it."""
    one = case(None)
    one.task.attempts, one.task.todos, one.task.inferred = [], None, True
    return one


CASES: dict[str, Callable[[], Case]] = {
    "said": said,
    "again": again,
    "asks": asks,
    "named": named,
    "ended": ended,
    "return-format": with_children,
    "subagent-return": lambda: case(Contract.SUBAGENT_RETURN),
    "return-meta": lambda: case(Contract.RETURN_META),
    "report": lambda: case(Contract.REPORT_CONTRACT),
    "not-returned": lambda: case(None),
    "gone": gone,
    "unreadable": lambda: case(text="{ this is nothing", packet_text='{"colour": "blu'),
    "broken": broken,
    "many-blockers": lambda: case(
        Contract.REPORT_CONTRACT,
        summary=replace(SUMMARIES[Contract.REPORT_CONTRACT], blockers=tuple(f"blocker {n}" for n in range(50))),
    ),
}


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("name", CASES)
def test_each_tab_agrees_with_its_golden(name, request):
    tabs = tabs_of(CASES[name](), 90)
    text = "".join(f"== {tab_id}\n" + "\n".join(map(str.rstrip, lines)) + "\n\n" for tab_id, lines in tabs.items())
    Golden(request.config.getoption("--update-goldens")).check(f"details/{name}.txt", text)


FAILED_TWICE = {"own_state": State.FAILED, "retry": Retry(max_retries=3, remaining=2)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (FAILED_TWICE, "attempt 1 of 3"),
        ({**FAILED_TWICE, "own_state": State.WORKING}, "attempt 1 "),
        ({"ask": "retry?", "question": "retry?"}, "NEEDS YOU retry?"),
        ({"question": "retry?"}, "history retry?"),
        ({"question": "retry?", "acknowledged": True}, "acknowledged retry?"),
        ({"question": "retry?", "snoozed_until": float("inf")}, "snoozed retry?"),
        ({"retry": Retry(hint="Raise the time-out.")}, "hint Raise the time-out."),
    ],
)
def test_the_head_of_the_details_shows_the_state(fields, words):
    one = case().task
    for name, value in fields.items():
        setattr(one, name, value)
    head = [line.plain for line in head_lines(one, NOW, 80, 40)]
    assert words in " ".join(" ".join(head).split())
    assert ("attempt 1 of" in " ".join(head)) == (" of " in words)
    low = [line.plain for line in head_lines(one, NOW, 80, 19)]
    assert low == [line for line in head if line.strip()]


def test_in_little_room_every_tab_and_the_age_are_in_sight():
    one = broken().task
    one.since = NOW - 60
    for room in (62, 57, 52):
        titles = tab_titles(one, "attestation", room)
        assert sum(title.cell_length + 1 for title in titles.values()) <= room + 1
        assert titles["attestation"].plain == "Attestation"
        assert titles["findings"].plain[-2:] == f" {len(one.findings)}"
    assert next(islice(head_lines(one, NOW, 40, 19), 1, None)).plain == "✗ failed   attempt 1   E_NO_MAP   1m ago"


# Any document

SECTIONS = ["## Status", "## Deliverables", "## Evidence", "## Runtime Attestation", "files_created:", "- (none)"]
texts = st.text(alphabet="ab宽 \n\t*`_[]()#>-|\x1b\u202e\u0301👍.", max_size=80)
widths = st.sampled_from([36, 60, 90])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def changed(draw: st.DrawFn, document: dict[str, Any]) -> str:
    """Return the document with some of its values, at any depth, replaced by others."""
    whole = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 4))):
        place: Any = whole
        while keys := list(place) if isinstance(place, dict) else list(range(len(place))):
            key = draw(st.sampled_from(keys))
            if not isinstance(place[key], (dict, list)) or draw(st.booleans()):
                place[key] = draw(values)
                break
            place = place[key]
    return json.dumps(whole | {"added": draw(values)})


lines = st.sampled_from(SECTIONS) | texts | texts.map("- {}".format) | texts.map("summary: {}".format)


@given(st.data(), st.sampled_from(list(TEXTS)), changed(documents.PACKET), widths)
def test_any_document_is_written(data, contract, packet, width):
    if contract is Contract.RETURN_FORMAT:
        text = "\n".join(data.draw(st.lists(lines, max_size=20)))
    else:
        text = data.draw(changed(json.loads(TEXTS[contract][1])))
    tabs_of(case(contract, text=text, packet_text=packet), width)


# Hostile text


def with_every_text(document: Any, payload: str) -> Any:
    """Return the document with `payload` in every field that holds text."""
    kinds = {field.name: str(field.type) for field in fields(document)}
    words = {name: payload for name, kind in kinds.items() if kind.startswith("str")}
    return replace(document, **words, **{name: (payload,) for name, kind in kinds.items() if kind == "tuple[str, ...]"})


def poisoned(contract: Contract, payload: str) -> Case:
    """Return a task with `payload` in every one of its texts."""
    summary, packet = (with_every_text(one, payload) for one in (SUMMARIES[contract], PACKET_SUMMARY))
    findings = (Finding(payload, Severity.ERROR, payload, 1),)
    packet = replace(packet, todos=(Todo(payload, TodoStatus.PENDING, payload, 1),))
    one = case(contract, summary=summary, packet=packet, findings=findings, text=payload, packet_text=payload)
    task = one.task
    task.task_id = task.title = task.parent_id = task.agent = task.ask = task.why = payload
    task.findings.append(replace(findings[0], path=payload))
    return one


@pytest.mark.parametrize(("name", "contract"), zip(HOSTILE, cycle(SUMMARIES), strict=False))
def test_a_poisoned_task_is_shown_safely(name, contract):
    one = poisoned(contract, HOSTILE[name])
    tabs_of(one, 80)
    head = "".join(line.plain for line in head_lines(one.task, NOW, 80, 40))
    assert not set(map(unicodedata.category, head)) & UNSAFE


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        '{"a": ' * 100_000,
        '{"status": "completed", "summary": "' + "a" * 2_000_000 + '", "artifacts": [], "metadata": {}}',
    ],
    ids=["one line", "deep objects", "long string"],
)
def test_huge_texts_are_cut_and_say_so(text):
    tabs = tabs_of(case(Contract.SUBAGENT_RETURN, text=text, packet_text=text), 80)
    assert all(len(lines) <= MAX_LINES + 1 for lines in tabs.values())
    assert "truncated" in "".join(tabs["raw"])
