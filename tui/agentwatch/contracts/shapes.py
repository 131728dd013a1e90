"""Documents and findings: small immutable values that the whole program passes around."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

Json = dict[str, Any]  # an object
Texts = tuple[str, ...]


class Contract(StrEnum):
    """The formats agentwatch implements; `tree --json` and `check` print the values."""

    HANDOFF_PACKET = "handoff-packet"
    RETURN_FORMAT = "return-format"
    SUBAGENT_RETURN = "subagent-return"
    RETURN_META = "return-meta"
    REPORT_CONTRACT = "report-contract"


class Outcome(StrEnum):
    """The outcome that a return reports, in the words of the task states."""

    WORKING = "working"
    COMPLETED = "completed"
    PARTIAL = "partial"
    BLOCKED = "blocked"
    FAILED = "failed"


class Severity(StrEnum):
    """An error breaks the contract; a warning is a deviation that is tolerated."""

    ERROR = "error"
    WARNING = "warning"


class TodoStatus(StrEnum):
    """The three canonical checkboxes: `[ ]`, `[-]`, `[x]`."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule with its place: a 1-based line (None: the whole file) and a path in the workspace, or ""."""

    rule: str
    severity: Severity
    message: str
    line: int | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Todo:
    """One line of a checklist. `phase` is a tag such as `DRAFT` in front of the text, or None."""

    text: str
    status: TodoStatus
    phase: str | None
    line: int


Todos = tuple[Todo, ...]


@dataclass(frozen=True, slots=True)
class Handoff:
    """The fields that the tree needs, foreign text; `recognised` is False if only its name makes the file a handoff."""

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
    recognised: bool = True


@dataclass(frozen=True, slots=True)
class TodoList:
    """A checklist in a file of its own (`x.todos.md`, `todos.md`); `recognised` as for a handoff."""

    contract: ClassVar = Contract.HANDOFF_PACKET
    items: Todos
    recognised: bool = True


@dataclass(frozen=True, slots=True)
class Return:
    """The fields of a return, in one shape for all contracts; every text is foreign and unsanitised."""

    contract: Contract
    reported_state: str | None  # the word in the document
    outcome: Outcome | None  # its meaning, None if unknown
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
    progress: tuple[int, int] | None = None  # (done, total) phases
    model: str | None = None
    mode: str | None = None
    files_created: Texts = ()
    files_modified: Texts = ()
    limitations: Texts = ()
    artifacts: Texts = ()
    stated_at: float | None = None  # in epoch seconds
    recognised: bool = True  # False: only the file's name says that it is a return
    fenced: bool = False  # it stands in a fence, as examples do: it counts as a return only beside a handoff


Fields = Handoff | Return | TodoList


@dataclass(frozen=True, slots=True)
class Document:
    """The fields and findings of a document; `complete` is False if it breaks off or lacks its contract's content."""

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
    """A document with its whole typed model, kept only while somebody looks at it."""

    model: Any = None
