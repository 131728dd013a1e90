"""Tasks for the tests of the details, put together by hand: a task, its texts, and the tree around it."""

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from agentwatch.app.widgets.details.tabs import View
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, Fields, Finding, Handoff, Return, Severity
from agentwatch.delegation.events import Seen
from agentwatch.delegation.task import Attempt, Basis, Retry, Shown, State, Task
from agentwatch.delegation.tree import Tree
from tests.unit.contracts import documents as valid

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
    """A task and what the pane is given with it."""

    task: Task
    texts: dict[str, str] = field(default_factory=dict)
    tree: Tree = field(default_factory=Tree)

    checks = True

    def content(self, version: Seen) -> str | None:
        return self.texts.get(version.digest)


class AtOnce(View):
    """Reads at once, without a thread."""

    def later(self, key: Hashable, make: Callable[[], object]) -> object:
        return make()


def version(path: str, text: str, document: Fields, findings: tuple[Finding, ...] = (), seq: int = 1) -> Seen:
    digest = hashlib.sha256(path.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()
    return Seen(seq, STARTED, path, digest, document, findings)


def read(path: str, text: str) -> Any:
    """What the contracts read in a text."""
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
    """A task of one attempt: a handoff, and a return under `contract` (none for None)."""
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
