"""Documents and findings: small immutable values that the whole program passes around."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

Json = dict[str, Any]  # a JSON object
Texts = tuple[str, ...]


class Contract(StrEnum):
    """The formats of handoffs and returns that agentwatch reads. `tree --json` and `check` print the values."""

    HANDOFF_PACKET = "handoff-packet"
    RETURN_FORMAT = "return-format"
    SUBAGENT_RETURN = "subagent-return"
    RETURN_META = "return-meta"
    REPORT_CONTRACT = "report-contract"


class Outcome(StrEnum):
    """The outcome that a return reports. Each outcome is also a state of tasks."""

    WORKING = "working"
    COMPLETED = "completed"
    PARTIAL = "partial"
    BLOCKED = "blocked"
    FAILED = "failed"


class Severity(StrEnum):
    """The severity of a finding. An error breaks the contract. A warning is a deviation that is tolerated."""

    ERROR = "error"
    WARNING = "warning"


class TodoStatus(StrEnum):
    """The status of a todo, which its checkbox shows: `[ ]`, `[-]` or `[x]`."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule with its place. `line` counts from 1, or is None for the whole file. `path` may be ""."""

    rule: str
    severity: Severity
    message: str
    line: int | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Todo:
    """One line of a checklist. The phase is a tag before the text, such as `DRAFT`, or None."""

    text: str
    status: TodoStatus
    phase: str | None
    line: int


Todos = tuple[Todo, ...]


@dataclass(frozen=True, slots=True)
class Handoff:
    """The fields of a handoff that the tree needs. The texts are untrusted: an agent wrote them."""

    contract: ClassVar = Contract.HANDOFF_PACKET
    task_id: str | None
    objective: str | None
    parent_task_id: str | None = None
    attempt: int | None = None
    mode: str | None = None
    session_id: str | None = None
    decision_id: str | None = None
    restores: str | None = None
    todos: Todos | None = None
    recognised: bool = True  # False: only the name of the file says that it is a handoff


@dataclass(frozen=True, slots=True)
class TodoList:
    """A checklist in a file of its own, such as `x.todos.md` or `todos.md`."""

    contract: ClassVar = Contract.HANDOFF_PACKET
    items: Todos
    recognised: bool = True  # False: only the name of the file says that it is a checklist


@dataclass(frozen=True, slots=True)
class Return:
    """The fields of a return, the same for all contracts. The texts are untrusted: an agent wrote them."""

    contract: Contract
    reported_state: str | None  # the status word in the document
    outcome: Outcome | None  # the meaning of `reported_state`; None if unknown
    task_id: str | None = None
    attempt: int | None = None
    session_id: str | None = None
    agent: str | None = None
    delegation_path: Texts = ()
    summary: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    errors: Texts = ()
    retry_recommended: bool | None = None
    retry_hint: str | None = None
    blockers: Texts = ()
    review_reason: str | None = None
    next_steps: str | None = None
    confidence: float | None = None
    progress: tuple[int, int] | None = None  # (phases done, all phases)
    model: str | None = None
    mode: str | None = None
    files_created: Texts = ()
    files_modified: Texts = ()
    limitations: Texts = ()
    artifacts: Texts = ()
    stated_at: float | None = None  # the end time that the return states, in epoch seconds
    recognised: bool = True  # False: only the name of the file says that it is a return
    fenced: bool = False  # it is in a fence and may be an example; it is used only if a handoff lies beside it


Fields = Handoff | Return | TodoList


@dataclass(frozen=True, slots=True)
class Document:
    """The fields and findings of a handoff, return or checklist. `complete` is False if the text was cut off."""

    document: Fields
    findings: tuple[Finding, ...] = ()
    complete: bool = True

    @property
    def contract(self) -> Contract:
        return self.document.contract

    @property
    def has_error(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.findings)


@dataclass(frozen=True, slots=True)
class OpenDocument(Document):
    """A document with its pydantic model. The model is kept only while somebody looks at the document."""

    model: Any = None
