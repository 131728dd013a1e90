"""Sessions for reports, their accounts, and texts that try to be more than text."""

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from agentwatch.contracts.shapes import Contract, Fields, Finding, Handoff, Outcome, Return, Severity, Todo, TodoStatus
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Checked, Claim, Event, Seen, Tick, Unreadable, Verdict
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import replay_state_changes
from agentwatch.report.account import Account, make_account

START = 1_790_000_000.0
"""2026-09-21 14:13:20 UTC."""
PLACE = "PLACEHOLDER"

Value = TypeVar("Value")


class Session:
    """Writes the events of a session, one a minute."""

    def __init__(self):
        self.events: list[Event] = []

    @property
    def now(self) -> float:
        return START + 60 * len(self.events)

    def asked(self, task_id: str, **more: object):
        self._see(f"{task_id}.handoff.json", Handoff(task_id, PLACE, **more))  # type: ignore[arg-type]

    def told(self, task_id: str, outcome: Outcome, verdicts: Iterable[Verdict], **more: object):
        """Add a return with checked claims."""
        fields = {"task_id": task_id, "summary": PLACE, "review_reason": PLACE, **more}
        document = Return(Contract.RETURN_FORMAT, outcome.upper(), outcome, **fields)  # type: ignore[arg-type]
        self._see(f"{task_id}.return.md", document)
        seen = self.events[-1]
        claims = tuple(Claim(PLACE, PLACE, verdict, PLACE) for verdict in verdicts)
        self.events.append(Checked(len(self.events), self.now, seen.path, f"{seen.seq:064x}", claims))

    def _see(self, path: str, document: Fields):
        seq = len(self.events)
        self.events.append(Seen(seq, self.now, path, f"{seq:064x}", document, (FINDING,)))

    def account(self) -> Account:
        """Return the account of the session a minute after the last event."""
        tree = Tree()
        tree.apply(*self.events, Tick(len(self.events), self.now))
        return make_account(tree, list(replay_state_changes(self.events, Tree())), workspace=PLACE, now=self.now)


FINDING = Finding(PLACE, Severity.WARNING, PLACE, 2)


@cache
def large_account() -> Account:
    """Return an account with branches of many tasks, in which some fail, ask or lie."""
    session, outcomes = Session(), [*Outcome]
    for number in range(200):
        task_id = f"area-{number // 20}.part-{number % 20}"
        session.asked(task_id)
        session.told(task_id, outcomes[number % len(outcomes)], [[*Verdict][number % 3]])
    return session.account()


def told_everywhere() -> Account:
    """Return an account in which every foreign text that a report can show holds `PLACE`."""
    session = Session()
    session.asked(PLACE, mode=PLACE, session_id=PLACE, todos=(Todo(PLACE, TodoStatus.DONE, None, 1),))
    words = ("error_code", "error_message", "retry_hint", "next_steps", "model", "mode", "agent", "session_id")
    lists = ("blockers", "limitations", "artifacts", "files_created", "files_modified")
    more = {**dict.fromkeys(words, PLACE), **dict.fromkeys(lists, (PLACE, PLACE)), "confidence": 0.2}
    session.told(PLACE, Outcome.BLOCKED, Verdict, **more)
    session.asked(f"{PLACE}.child", parent_task_id=PLACE)
    session.told(f"{PLACE}.child", Outcome.COMPLETED, [Verdict.CONTRADICTED])
    session.events.append(Unreadable(99, session.now, PLACE, FINDING))
    decision = Decision(
        **dict.fromkeys(("decision_id", "task_id", "operator", "note"), PLACE),
        attempt=1,
        handoff_sha256=None,
        return_sha256=None,
        action=Action.ACCEPT,
        at=START + 70,
        receipts=(Receipt(Stage.READ, START + 71, PLACE, claimed=True),),
    )
    account = session.account()
    first, *rest = account.tasks
    *attempts, last = first.task.attempts
    task = replace(first.task, deleted_at=1.0, attempts=(*attempts, replace(last, decisions=(decision,))))
    return replace(account, tasks=(first._replace(task=task), *rest))


def retold(account: Account, text: str) -> Account:
    """Return the account with `text` for every `PLACE`."""
    return _mapped(account, lambda said: said.replace(PLACE, text))


def _mapped(value: Value, change: Callable[[str], str]) -> Value:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)  # type: ignore[return-value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(item, change) for item in value)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _mapped(getattr(value, field.name), change) for field in fields(value)})
    return value


PIECES = (
    "<script>document.title='owned'</script>", "<img src=x onerror=document.title='owned'>", "</td></table>", "-->",
    "<svg onload=alert(1)>", "</title>", "</style>", "</details>", "<!--", "<a href=javascript:alert(1)>", "&lt;b>",
    "[a](javascript:alert(1))", "![i](http://agentwatch-report.invalid/i.png)", "<http://e.invalid>", "[x]: http://e",
    "https://e.invalid/", "www.e.invalid", "mailto:a@e.invalid", "a@e.invalid", "@ann", "#12", "o/r#12", "GH-12",
    "3f9ac04e11d2", ":tada:", "$x$", "$$", "`", "``", "```", "~~~", "**", "__", "_", "*", "|", "||", "\\|", "\\",
    "# h", "> q", "- ", "1. ", "===", "---", "\n", "\r\n", "\n\n", "\t", "    ", '"', "'", '" onclick="', "&", "&#",
    "\x00", "\x07", "\x1b[31m", "\x1b]8;;http://e\x07", "\x85", "\u2028", "\u202e", "\u2066", "\ufeff", "\u200b",
    "\ud800", "\ue000", "e\u0301\u0301\u0301\u0301", "漢字", "[^1]", "[!NOTE]", "{{x}}", "%%{init}%%", "javascript:x",
)  # fmt: skip

TEXTS = (
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), min_size=1, max_size=8)
    .map("".join)
    .filter(lambda text: bool(text) and text.count("\n") < 20)
)


def is_visible(character: str) -> bool:
    """Return whether a character neither moves, hides nor reverses text."""
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
