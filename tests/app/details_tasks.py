"""Tasks for the tests of the details, put together by hand: a task, its texts, and the tree around it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from agentwatch.app.theming import variable_defaults
from agentwatch.app.widgets.details import DetailsPane
from agentwatch.app.widgets.details.tabs import View
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import (
    Contract,
    Fields,
    Finding,
    Handoff,
    Return,
    Severity,
)
from agentwatch.delegation.events import Seen
from agentwatch.delegation.task import Attempt, Basis, Retry, State, Task
from agentwatch.delegation.tree import Tree

NOW = 1_700_000_600.0
STARTED = NOW - 180

PACKET = """```json
{
  "handoff_schema": "composability.handoff_packet.v1",
  "task_id": "shop.checkout.api",
  "objective": "Build the checkout API against schema v3.",
  "evidence": [
    {"path": "docs/schema.md", "purpose": "The schema to build against", "required": true},
    {"path": "docs/history.md", "purpose": "Why version 2 was given up", "required": false}
  ],
  "success_criteria": ["POST /checkout answers 201", "All contract tests pass"],
  "risks": [{"risk": "The migration is slow", "mitigation": "Raise the tool time-out"}],
  "constraints": ["No new dependencies"],
  "deliverables": [{"path": "src/checkout.py", "description": "The endpoint", "must_create": true}],
  "dependencies": ["shop.checkout.schema"],
  "notes": ["Prices are in cents"]
}
```

- [x] DISCOVER: read the schema
- [-] DRAFT: write src/checkout.py
- [ ] VERIFY: run the contract tests
"""

RETURN_FORMAT = """## Status
state: ERROR
summary: The migration tool timed out before the schema was applied.
error_code: E_TOOL_FAILURE
retry_recommended: yes
retry_hint: Raise the tool time-out and pass the schema path.

## Deliverables
- src/checkout.py — the endpoint, without its tests

## Evidence
- docs/schema.md — read in full
- pytest: 12 passed, 3 failed

## Runtime Attestation
runtime_model_reported: openai/gpt-5.2
runtime_mode_reported: code
files_created:
- src/checkout.py
files_modified:
- src/app.py
limitations:
- The contract tests were not run
"""

SUBAGENT_RETURN = """{
  "status": "partial",
  "summary": "Phases 1 and 2 of 3 are done. Phase 3 was cut short.",
  "artifacts": [
    {"type": "implementation", "path": "src/a.py", "summary": "Phase 1"},
    {"type": "summary", "path": "docs/a-summary.md", "summary": "What was done"}
  ],
  "metadata": {
    "session_id": "sess_1735460684_abc123",
    "duration_seconds": 7200,
    "agent_type": "implementer",
    "delegation_depth": 2,
    "delegation_path": ["orchestrator", "implement", "implementer"],
    "phase_count": 3
  },
  "errors": [
    {"type": "timeout", "message": "Timed out after 7200s", "recoverable": true, "recommendation": "Resume at phase 3"}
  ],
  "next_steps": "Run /implement 246 to resume"
}
"""

RETURN_META = """{
  "status": "in_progress",
  "summary": "Working on phase 2.",
  "started_at": "2026-01-05T10:00:00Z",
  "artifacts": ["specs/001_a/plan.md"],
  "metadata": {"session_id": "sess_1735460684_abc123", "agent_type": "implementer"},
  "phases_completed": 1,
  "phases_total": 3,
  "next_steps": ["Finish phase 2", "Start phase 3"]
}
"""

REPORT = """{
  "report_metadata": {
    "agent_name": "investigator",
    "task_id": "shop.auth",
    "status": "blocked",
    "verbosity_level": "detailed",
    "confidence_level": 0.42,
    "token_usage": 4250,
    "execution_time_seconds": 45
  },
  "findings": {
    "context_map": [
      ["The session is kept in a **cookie**.", null],
      ["Tokens are signed here.", "repo://src/auth/jwt.ts:45-120"]
    ],
    "overview": "# Auth\\n\\nTwo flows exist:\\n\\n- `password`\\n- `oauth`",
    "numbers": {"endpoints": 4, "tested": [true, false, null]}
  },
  "recommendations": ["Write tests for `jwt.ts`."],
  "identified_gaps": ["No rate limits are documented."],
  "blockers": ["Which auth flow is in scope?"]
}
"""


@dataclass
class Case:
    """A task and what the pane is given with it."""

    task: Task
    texts: dict[str, str] = field(default_factory=dict)
    tree: Tree = field(default_factory=Tree)
    now: float = NOW

    checks = False

    def content(self, version: Seen) -> str | None:
        return self.texts.get(version.digest)

    def transcript(self, run: object) -> None:
        return None


def version(path: str, text: str, document: Fields, findings: tuple[Finding, ...] = (), seq: int = 1) -> Seen:
    digest = hashlib.sha256(path.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()
    return Seen(seq, STARTED, path, digest, document, findings)


TEXTS: dict[Contract, tuple[str, str]] = {
    Contract.RETURN_FORMAT: ("work/api.return.md", RETURN_FORMAT),
    Contract.SUBAGENT_RETURN: ("specs/246_x/return.json", SUBAGENT_RETURN),
    Contract.RETURN_META: ("specs/246_x/.return-meta.json", RETURN_META),
    Contract.REPORT_CONTRACT: ("reports/auth.json", REPORT),
}


def read(path: str, text: str) -> Any:
    """What the contracts read in a text."""
    reading = read_document(text, path)
    assert reading is not None
    return reading.document


PACKET_SUMMARY: Handoff = read("work/api.handoff.md", PACKET)
SUMMARIES: dict[Contract, Return] = {contract: read(*TEXTS[contract]) for contract in TEXTS}

STATES: dict[Contract, State] = {
    Contract.RETURN_FORMAT: State.FAILED,
    Contract.SUBAGENT_RETURN: State.PARTIAL,
    Contract.RETURN_META: State.WORKING,
    Contract.REPORT_CONTRACT: State.BLOCKED,
}


def case(
    contract: Contract | None = Contract.RETURN_FORMAT,
    *,
    findings: tuple[Finding, ...] = (),
    text: str | None = None,
    summary: Return | None = None,
    packet: Handoff | None = PACKET_SUMMARY,
    packet_text: str = PACKET,
    task_id: str = "shop.checkout.api",
) -> Case:
    """A task of one attempt: a handoff, and a return under `contract` (none for None)."""
    texts: dict[str, str] = {}
    attempt = Attempt(1, started_at=STARTED)
    task = Task(task_id, "api", parent_id="shop.checkout", parent_basis=Basis.DOTTED_PREFIX, attempts=[attempt])
    task.updated_at = STARTED
    if packet is not None:
        attempt.handoff = version("work/api.handoff.md", packet_text, packet)
        texts[attempt.handoff.digest] = packet_text
        task.todos = packet.todos
    if contract is None:
        task.state = attempt.state = State.SUBMITTED
        task.why = "handed off; no sign of life yet"
        return Case(task, texts)
    path, own_text = TEXTS[contract]
    returned = own_text if text is None else text
    result = summary or SUMMARIES[contract]
    attempt.returned = version(path, returned, result, findings, seq=2)._replace(at=NOW - 120)
    texts[attempt.returned.digest] = returned
    task.agent = result.agent or "code"
    task.state = attempt.state = STATES[contract]
    task.why = f"the return says {result.reported_state}"
    task.updated_at = NOW - 120
    task.ended_at = None if task.state.is_open else NOW - 120
    task.findings = [replace(finding, path=path) for finding in findings]
    task.retry = Retry(recommended=result.retry_recommended, hint=result.retry_hint)
    attempt.session_id = result.session_id
    return Case(task, texts)


BROKEN = (
    Finding("RET011", Severity.WARNING, "Write the header as ## Deliverables", 8),
    Finding("RET004", Severity.ERROR, "Say retry_recommended: yes or no when state is ERROR", 2),
    Finding("RET020", Severity.ERROR, "Add the section ## Evidence"),
)


class AtOnce(View):
    """Reads at once, without a thread."""

    def later(self, key: Hashable, make: Callable[[], object]) -> object:
        return make()


class DetailsApp(App[None]):
    """Nothing but the pane."""

    def __init__(self, first: Case) -> None:
        super().__init__()
        self.first = first
        self.details = DetailsPane()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def compose(self) -> ComposeResult:
        yield self.details

    def on_mount(self) -> None:
        self.details.focus()
        self.show(self.first)

    def show(self, one: Case) -> None:
        self.details.show(one.task, one.tree, one, one.now)


def shown_text(pane: DetailsPane) -> str:
    """The text of the tab in front, as it is laid out now."""
    return "\n".join(pane.page.lines)


async def shown(pilot: Pilot[None], tab_id: str | None = None) -> str:
    """The text of a tab, by default the visible one, when what a thread reads for it has come."""
    pane = pilot.app.query_one(DetailsPane)
    pane.activate(tab_id or pane.active)
    for _ in range(1_000):
        await pilot.pause()
        if shown_text(pane) and "reading…" not in shown_text(pane):
            return shown_text(pane)
        await pilot.pause(0.01)
    raise AssertionError(f"nothing came: {shown_text(pane)}")


def screen_text(app: App[None]) -> str:
    """What stands on the screen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())
