"""The form with which the operator decides about a task: its fields, missing input, the next handoff, and a preview.

This module opens no files itself. The dialog on the screen and the shell commands show the same preview. Questions and
options are untrusted text. Labels are agentwatch's own. A document is handed on only if it keeps its contract.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from agentwatch.contracts.handoff import SCHEMA
from agentwatch.contracts.reading import WRAPPER, find_contract, find_leading_contract, read_document, unwrap_packet
from agentwatch.contracts.rules import is_relative
from agentwatch.contracts.shapes import Contract, Document, Handoff, Outcome, Return, Severity
from agentwatch.decisions import policy
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.record import Answer, Mitigation, Params, Subject, why_unanswerable
from agentwatch.delegation.decision import SPECS, Action, ActionSpec, Request, RequestKind
from agentwatch.delegation.events import Seen
from agentwatch.delegation.standing import FITTER, is_line_fault, is_retry, retries_if_mitigated
from agentwatch.delegation.task import Shown, Task
from agentwatch.text import clean, clean_name, quote_text
from agentwatch.view.words import (
    LOOKS,
    ago,
    denial_words,
    false_claims,
    plural,
    program_of,
    question_at,
    retries_left,
    time_left_words,
    whole_input,
)

ABORTED = "E_ABORTED_BY_OPERATOR"

_REPORT = "final.return.md"
_MOST = 20  # failed tasks that a final report names
_OBJECT = re.compile(r"^[ \t\ufeff]*\{", re.MULTILINE)
_MOST_OBJECTS = 50  # maximal number of places in a text at which a packet (the handoff's JSON) may begin

# The most texts (questions, options, descriptions) of a request. A request with more texts is answered in its program.
_MOST_TEXTS = 400
_LONGEST_RULE = 1_000
# The most characters of a question, label or description. If one is longer, the program itself must be answered.
LONGEST = 2_000
DIGITS = 8  # the first digits of a request's id: they are shown, and commands accept them
_LONGEST_ID = 1_000
DIGITS_OF_FILE = 12  # hex digits of a file's sha256 that are shown; comparisons use all digits
_MOST_QUESTIONS = 12  # If a child asks more questions, one field takes all answers.
_MITIGATIONS = {"no": None, **{one.value.replace("_", " "): one for one in Mitigation}}
_TITLES = {"handoff": "the next handoff: agents' words, as amended", "report": "the final error report"}


@dataclass
class Field:
    """A field of a form. The operator chooses options, or writes words, or both. `chosen` has indices of `options`."""

    key: str
    label: str = ""
    options: Sequence[tuple[str, str]] = ()  # the words and the description of each option
    chosen: list[int] = field(default_factory=list)
    several: bool = False
    placeholder: str = ""  # shown while the text is empty; "" if the field takes no text
    text: str = ""
    question: str | None = None  # shown above the field

    @property
    def choice(self) -> int | None:
        """The index of the first chosen option, or None."""
        return self.chosen[0] if self.chosen else None

    @property
    def answers(self) -> list[str]:
        """The words of the chosen options, and the written answer."""
        written = [self.text.strip()] if self.text.strip() else []
        return [*(self.options[number][0] for number in sorted(self.chosen)), *written]


class MissingStep(NamedTuple):
    """A step that the operator still has to take, for example to choose a mode. `key` is the key of the field for this
    step. If the step is about the field's text, `.text` is added to the key."""

    reason: str
    key: str = ""


class Fact(NamedTuple):
    """A line of the preview: a label, and parts of text, each with its style. Untrusted text is quoted."""

    label: str
    parts: tuple[tuple[str, str], ...]


def fact(label: str, words: str, style: str = "") -> Fact:
    """Return a line of the preview whose text has one style."""
    return Fact(label, ((words, style),))


class DecisionForm:
    """The form for one action, for example a retry, about the latest attempt of a task.

    If `spec.note` is "", the form has no field for a note. The form offers the modes in which `tasks` ran, and the
    configured `modes` (names with descriptions).
    """

    first = "note"  # the key of the field that is focused first
    fields: list[Field]

    def __init__(self, task: Task, subject: Subject, action: Action, tasks: Iterable[Task], modes: Mapping[str, str]):
        self.task, self.subject, self.action, self.spec = task, subject, action, (spec := SPECS[action])
        self.title = _TITLES.get(spec.document, "")
        self.fields = []
        if "mitigation" in spec.takes:
            self._add_choice("mitigation", "different", *_MITIGATIONS)
            if task.retry.hint:
                self._add_choice("hint", "hint", "hand it on", "leave it out")
        if "mode" in spec.takes:
            offered = policy.offered_modes(task, tasks, modes)
            # Choose the first mode beforehand only if it is the fitter or a configured mode.
            is_advised = bool(offered) and offered[0] in {FITTER, *modes}
            placeholder = "any other mode" if offered else "none was seen yet: which one?"
            options = [(mode, modes.get(mode, "")) for mode in offered]
            self.fields.append(Field("mode", "mode", options, [0] if is_advised else [], placeholder=placeholder))
            self.first = "note" if is_advised else "mode"
        if "report" in spec.takes:
            self.first = "sure"
            below = task.open_below
            others = f" and the {plural(below, 'open task')} below it" if below else ""
            self._add_choice("sure", "abort", "no", f"yes, end it{others}")
        if "answers" in spec.takes:
            self.first, asked = "0", task.result.blockers if task.result else ()
            words = "your answer"
            if len(asked) > _MOST_QUESTIONS:
                asked, words = (), f"your answer to its {len(asked)} questions"
            self.fields = [Field(str(n), placeholder=words, question=one) for n, one in enumerate(asked or [None])]

    def _add_choice(self, key: str, label: str, *options: str) -> None:
        self.fields.append(Field(key, label, [(words, "") for words in options], [0]))

    def __getitem__(self, key: str) -> Field | None:
        return next((one for one in self.fields if one.key == key), None)

    def params(self) -> Params:
        """Return the parameters that the operator entered, without the document to hand on."""
        if mitigation := self["mitigation"]:
            return Params(mitigation=_MITIGATIONS[mitigation.answers[0]])
        if mode := self["mode"]:
            # A written mode wins over a chosen mode.
            return Params(mode=next(reversed(mode.answers), None))
        return Params(answers=tuple(Answer(one.question, one.text.strip()) for one in self.fields if one.text.strip()))

    def missing_step(self, task: Task, note: str) -> MissingStep | None:
        """Return the next step that the operator still has to take. Return None if the form is complete."""
        blank = [one for one in self.fields if not one.answers]
        key = (blank or self.fields)[0].key if self.fields else "note"
        if reason := policy.why_refused(task, self.action, self.params(), note):
            return MissingStep(reason, key)
        if key == "sure" and not self.fields[0].choice:
            return MissingStep("say yes, with an arrow key on “abort”", key)
        if "answers" in self.spec.takes and blank:
            # An agent that gets only some answers would go on without the rest, so all answers are required.
            return MissingStep(f"answer each of its {len(self.fields)} questions: {len(blank)} left", key)
        return None

    def propose(
        self, text_of: Callable[[Seen], str | None], note: str, failed: Sequence[Task], operator: str
    ) -> Proposal:
        """Return the document that the decision hands on: the final report or the next handoff. Reads files, so call it
        in a thread. Raise DecisionError if the last handoff cannot be amended."""
        if self.spec.document == "report":
            return final_report(self.task, failed, note=note, operator=operator)
        choice, mode = self["hint"], self.params().mode
        hint = None if choice and choice.choice else self.task.retry.hint
        return next_handoff(self.task, self.subject, text_of, note=note, hint=hint, mode=mode)


def decision_facts(
    seen: Task, task: Task, subject: Subject, action: Action, params: Params, *, now: float, writes: str
) -> Iterator[Fact]:
    """Yield the lines of a decision's preview. `seen` is the task as it was when the form opened. `task` is the
    task as it is now. `writes` says where the decision will be recorded."""
    look = LOOKS[seen.shown]
    standing = (f"attempt {subject.attempt}", ""), (f"{look.glyph} {look.word}", look.color)
    name = quote_text(clean_name(subject.task_id, _LONGEST_ID), _LONGEST_ID)
    yield Fact("task", ((name, "bold"), *standing, (f"→ {_describe_next(task, subject, action, params)}", "")))
    if question := question_at(task, now):
        yield fact("asks", quote_text(question, 400))
    returned, latest = (one.latest.returned for one in (seen, task))
    if not (digest := subject.return_sha256) or not returned:
        yield fact("return", "none yet")
    else:
        is_same = latest and latest.digest == digest
        words = ("unchanged", "") if is_same else ("not as you saw it", "text-error")
        at = (f" seen {ago((latest or returned).at, now)},", "")
        yield Fact("return", ((digest[:DIGITS_OF_FILE], "bold"), at, words))
    # Do not repeat a fault that the question names. The keys have the question's wording, so that they are found in it.
    false = {claim.path: f"{claim.path}: {claim.detail}" for claim in false_claims(task)}
    errors = (one for one in (returned.findings if returned else ()) if one.severity is Severity.ERROR)
    broken = {one.message.partition("; ")[0]: f"{one.rule}, {one.message}" for one in errors}
    for label, found in (("false", false), ("breaks", broken)):
        if found and next(iter(found)) not in question:
            more = f", and {len(found) - 1:,} more: see the details" if len(found) > 1 else ""
            yield fact(label, quote_text(next(iter(found.values())), 300) + more, "text-error")
    if not SPECS[action].ends:
        yield fact("retries", _describe_retries(task, action, params))
    yield fact("writes", writes)
    if not policy.why_impossible(task, action, params.mitigation):
        yield from (fact("beware", one, "text-warning") for one in policy.find_warnings(task, action))


def _describe_next(task: Task, subject: Subject, action: Action, params: Params) -> str:
    if goes_to_fitter(task, params.mode):
        return f"the {FITTER}, who restores the line"
    more = ""
    if task.open_below and task.below and SPECS[action].document == "report":
        ending = task.below.count(lambda one: one.shown if one.state.is_open else None)
        each = [f"{ending[one]:,} {one.word}" for one in reversed(Shown) if ending[one]]
        more = f", with {plural(task.open_below, 'open task')} below it: {', '.join(each)}"
    mode = f"the mode {quote_text(params.mode, 60)}" if params.mode else "another mode"
    return SPECS[action].next.format(after=subject.attempt + 1, mode=mode) + more


def _describe_retries(task: Task, action: Action, params: Params) -> str:
    if goes_to_fitter(task, params.mode):
        return f"{retries_left(task.retry)}, exactly one once the {FITTER} has restored the line"
    if action is not Action.ESCALATE and not is_retry(action, task.latest):
        return "an answer uses none" if action is Action.RESPOND else "this uses no retry: the child resumes its work"
    retry = retries_if_mitigated(task) if params.mitigation else task.retry
    earns = "; the mitigation earns one" if retry.max_retries > task.retry.max_retries else ""
    if "mitigation" in SPECS[action].takes and retries_if_mitigated(task).max_retries == task.retry.max_retries:
        earns = "; a mitigation earns no more"
    return f"{retries_left(retry)} now, {max(retry.remaining - 1, 0)} after this{earns}"


def child_texts(task: Task) -> list[tuple[str, str]]:
    """Return untrusted texts of the latest return, such as the hint and the error, each with a label."""
    parts: list[tuple[str, str | None]] = []
    if result := task.result:
        parts = [
            ("hint", result.retry_hint),
            ("blockers", "\n".join(result.blockers)),
            ("error code", result.error_code),
            ("error", result.error_message),
            ("summary", result.summary if result.summary != result.error_message else None),
            ("review", result.review_reason),
        ]
    return [(label, source) for label, source in parts if source]


# Requests of programs


def why_too_long(request: Request) -> str | None:
    """Return a sentence if a request is too long for a dialog. Return None if it is short enough."""
    texts = [text for one in request.queries for text in (one.question, *chain(*one.options))]
    if len(texts) > _MOST_TEXTS or max(map(len, texts), default=0) > LONGEST:
        return "what it asks is too long to be read here: answer it in its program"
    return None


class RequestForm:
    """The form in which the operator answers a program's request. An answer is preselected only for a question."""

    def __init__(self, request: Request):
        self.request = request
        note = "words" if request.words and Action.DENY in request.actions else ""
        word = "Allow?" if request.kind is RequestKind.PERMISSION else "Answer"
        self.spec = ActionSpec("■", word, "", note=note, placeholder="to the model, with a denial")
        self.rules = _readable_rules(request)
        names = {
            Action.ALLOW: "allow once",
            Action.DENY: "deny, with words" if request.words else "deny",
            Action.ANSWER: "answer it below",
        }
        self._choices: list[tuple[str, Action, str | None]] = [(names[one], one, None) for one in request.actions]
        if Action.ALLOW in request.actions:
            self._choices += [(f"allow by {name}", Action.ALLOW, rule) for name, rule in self.rules.items()]
        is_question = bool(request.queries) and self._choices[0][1] is Action.ANSWER
        self.questions = [
            Field(
                str(number),
                options=query.options,
                several=query.several,
                placeholder="or in your own words" if query.options else "your answer",
                question=query.question,
            )
            for number, query in enumerate(request.queries if is_question else ())
        ]
        options = [(words, "") for words, *_ in self._choices]
        self.fields = [Field("answer", "answer", options, [0] if is_question else []), *self.questions]
        self.first = "0" if is_question else "answer"

    @property
    def _choice(self) -> tuple[str, Action | None, str | None]:
        choice = self.fields[0].choice
        return ("", None, None) if choice is None else self._choices[choice]

    @property
    def action(self) -> Action | None:
        """The chosen action, or None if nothing is chosen yet."""
        return self._choice[1]

    def params(self) -> Params:
        """Return the parameters of the chosen answer."""
        if self.action is Action.ANSWER:
            given = (Answer(one.question, answer) for one in self.questions for answer in one.answers)
            return Params(answers=tuple(given))
        return Params(rule=self._choice[2])

    def missing_step(self, note: str, unread: str) -> MissingStep | None:
        """Return the next step that the operator still has to take, or None. `unread` is a sentence if the operator has
        not read the whole call yet."""
        if not self.action:
            return MissingStep("choose an answer, with an arrow key", "answer")
        if unread and self.action is Action.ALLOW:
            return MissingStep(unread)
        if not (reason := why_unanswerable(self.request, self.action, self.params(), note)):
            return None
        wrong = [one.key for one in self.questions if not one.answers]
        wrong += [f"{one.key}.text" for one in self.questions if len(one.answers) > 1 and not one.several]
        return MissingStep(reason, "note" if note else (*wrong, self.first)[0])


def _readable_rules(request: Request) -> dict[str, str]:
    rules = [rule for rule in request.rules if len(rule) < _LONGEST_RULE]
    return {f"rule {number}" if len(rules) > 1 else "the rule": rule for number, rule in enumerate(rules, 1)}


def request_facts(request: Request, now: float, asker: str = "") -> Iterator[Fact]:
    """Yield the lines of an answer's preview. `asker` names the task that asks, or is "" if it is unknown."""
    asker = asker or f"session {quote_text(request.session_id, 80)}"
    yield fact("from", f"{clean(program_of(request.source), 20)} · {asker}", "bold")
    yield fact("asks for", f"{request.kind}: {quote_text(request.tool, 200)}")
    yield fact("asked", ", ".join(filter(None, [ago(request.asked_at, now), time_left_words(request, now)])))
    yield fact("request", f"{request.request_id[:DIGITS]} …  an answer counts for exactly what stands below")
    for name, rule in _readable_rules(request).items():
        yield fact(name, f"for the rest of its session, without asking: {quote_text(rule, _LONGEST_RULE)}")
    beside = ", ".join(one.name for one in request.beside)
    warnings = [f"besides the call it is given {quote_text(beside, 60)}, see below"] if beside else []
    warnings += [*denial_words(request), *([clean(request.why_not, 400)] if request.why_not else [])]
    yield from (fact("beware", one, "text-warning") for one in warnings)


def request_texts(request: Request) -> list[tuple[str, str]]:
    """Return the untrusted texts of a request, each with a label. These are the call, the model's words, the rule that
    would allow the call, and the exact input."""
    parts = []
    if request.kind is RequestKind.PERMISSION:
        parts += [("the call", request.shown or request.input), ("besides", "\n".join(map(str, request.beside)))]
    covered = f"no rule allows it; this one would: {request.covered_by}" if request.covered_by else ""
    rest = whole_input(request) if request.kind is not RequestKind.QUESTION else ""
    parts += [("model says", request.said), ("own rules", covered), ("as JSON", rest)]
    return [(label, source) for label, source in parts if source]


# Documents


class AmendError(DecisionError):
    """The text of the last handoff is lost, or has no packet (the handoff's JSON) that can be amended."""


class Proposal(NamedTuple):
    """A document to hand on, and the name of its file. `before` is the last attempt's version of this document.
    `problems` is a function that returns the faults of an edited text as sentences."""

    text: str
    name: str
    before: str | None
    problems: Callable[[str], list[str]]


def next_handoff(
    task: Task,
    subject: Subject,
    text_of: Callable[[Seen], str | None],
    *,
    note: str = "",
    hint: str | None = None,
    mode: str | None = None,
) -> Proposal:
    """Return the last handoff, amended for the next attempt. If the mode calls a fitter, return the fitter's handoff.
    If no handoff was seen, return a blank one. Raise AmendError if the last handoff cannot be amended."""
    if goes_to_fitter(task, mode):
        text = fitter_packet(task, decision_id=subject.decision_id, note=note)
        return Proposal(text, _FITTERS, None, partial(handoff_problems, task, subject, _FITTERS, mode=mode))
    handoff = next((attempt.handoff for attempt in reversed(task.attempts) if attempt.packet), None)
    if not handoff:
        return blank_handoff(task, subject)
    last = text_of(handoff)
    if last is None:
        raise AmendError(f"the text of {handoff.path} is not kept any more; write a new handoff")
    attempt, decision_id = subject.attempt + 1, subject.decision_id
    text = amend_handoff(
        last, handoff.path, attempt=attempt, decision_id=decision_id, note=note, retry_hint=hint, mode=mode
    )
    before = _join_packet(*_find_packet(last, handoff.path))
    check = partial(handoff_problems, task, subject, handoff.path, mode=mode, embedded=handoff.stored)
    return Proposal(text, handoff.path, before, check)


def blank_handoff(task: Task, subject: Subject) -> Proposal:
    """Return an empty handoff that the operator may fill in. If it stays blank, the next attempt gets only the note."""
    name = "next.handoff.json"
    return Proposal("", name, None, lambda text: handoff_problems(task, subject, name, text) if text.strip() else [])


def handoff_problems(
    task: Task, subject: Subject, name: str, text: str, *, mode: str | None = None, embedded: bool = False
) -> list[str]:
    """Return the faults of an edited handoff as sentences. If the handoff is `embedded` in a session's prompt, other
    text may surround its packet (the JSON)."""
    reading = read_document(text, name, handed_over=embedded)
    packet = reading.document if reading else None
    if not reading or not isinstance(packet, Handoff) or not packet.recognised:
        return ["it is no handoff packet any more"]
    if not reading.complete:
        return _error_messages(reading)
    wanted = {"task_id": task.id_in_program, "attempt": subject.attempt + 1, "decision_id": subject.decision_id}
    if goes_to_fitter(task, mode):
        wanted |= {"task_id": fitter_id(task), "attempt": 1}
    wrong = [f"{key} must be {clean(str(value), 80)}" for key, value in wanted.items() if getattr(packet, key) != value]
    return _error_messages(reading) + wrong


def amend_handoff(
    text: str,
    name: str,
    *,
    attempt: int,
    decision_id: str,
    note: str = "",
    retry_hint: str | None = None,
    mode: str | None = None,
) -> str:
    """Return the last handoff's `text` with changed keys for the next attempt. `name` is the name of its file. Raise
    AmendError if the text has no valid packet (the handoff's JSON)."""
    head, packet, tail = _find_packet(text, name)
    packet |= {"attempt": attempt, "decision_id": decision_id} | ({} if mode is None else {"mode": mode})
    # The next attempt runs in a new session, and its return must not contradict the handoff.
    packet.pop("session_id", None)
    notes = [f"Operator: {note.strip()}"] if note.strip() else []
    notes += [f"Hint of attempt {attempt - 1}: {retry_hint.strip()}"] if retry_hint and retry_hint.strip() else []
    if notes:
        before = packet.get("notes")
        packet["notes"] = [*(before if isinstance(before, list) else []), *notes]
    return _join_packet(head, packet, tail)


def _find_packet(text: str, name: str) -> tuple[str, dict[str, Any], str]:
    """Return the text before the packet, the packet, and the text after it. Raise AmendError if there is no packet."""
    signature, decoder = find_leading_contract, json.JSONDecoder()
    for match in list(_OBJECT.finditer(text))[:_MOST_OBJECTS]:
        start = match.end() - 1
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if signature(value, name) is Contract.HANDOFF_PACKET:
            head, tail = text[:start], text[end:]
            if (packet := unwrap_packet(value)) is not value:
                head, tail = f'{head}{{"{WRAPPER}": ', f"}}{tail}"
            return head, packet, tail
        signature = find_contract
    raise AmendError("the last handoff cannot be amended: there is no sound packet in it; write a new one")


def _join_packet(head: str, packet: dict[str, Any], tail: str) -> str:
    # JSON can spell a lone surrogate (half a character), but no file can hold it. It becomes a `?`.
    return f"{head}{json.dumps(packet, indent=2, ensure_ascii=False).encode(errors='replace').decode()}{tail}"


# The fitter

_FITTERS = "fitter.handoff.json"


def goes_to_fitter(task: Task, mode: str | None) -> bool:
    """Tell whether an escalation to this mode calls the fitter, who repairs a fault of tools or environment."""
    return mode == FITTER and is_line_fault(task)


def fitter_id(task: Task) -> str:
    """Return the id of the new task in which the fitter repairs the fault that blocks this task."""
    return f"{task.task_id}.{FITTER}-{task.attempt}"


def fitter_packet(task: Task, *, decision_id: str, note: str = "") -> str:
    """Return the fitter's handoff as JSON. If the fitter succeeds, this task gets one more retry."""
    result = task.result
    code = f" ({clean(result.error_code, 60)})" if result and result.error_code else ""
    packet = {
        "handoff_schema": SCHEMA,
        "task_id": fitter_id(task),
        "objective": f"Restore the line that stops {task.task_id}{code}",
        "evidence": [
            {"path": version.path, "purpose": purpose, "required": True}
            for version, purpose in _attempt_files(task)
            if is_relative(version.path)
        ],
        "success_criteria": ["The cause is named.", "The station can be run again."],
        "risks": [{"risk": "The fault comes back.", "mitigation": "Show a run of what failed."}],
        "notes": [f"Operator: {note.strip()}"] if note.strip() else [],
        "parent_task_id": task.parent_id or task.task_id,
        "attempt": 1,
        "mode": FITTER,
        "decision_id": decision_id,
        "restores": task.task_id,
    }
    return json.dumps(packet, indent=2, ensure_ascii=False) + "\n"


# The final report


def final_report(task: Task, failed: Sequence[Task] = (), *, note: str = "", operator: str = "") -> Proposal:
    """Return the final error report of an aborted task. Add the failures of the `failed` tasks below it."""
    attempts = f"{task.attempt} attempt{'s' if task.attempt > 1 else ''}"
    failure = f": {words}" if (words := _failure_text(task)) else ""
    evidence = [f"{clean(version.path)} (sha256 {version.digest})" for version, _ in _attempt_files(task)]
    evidence += [f"failed below: {clean(one.task_id)}: {_failure_text(one) or one.own_state}" for one in failed[:_MOST]]
    evidence += [f"failed below: {len(failed) - _MOST} more"] if len(failed) > _MOST else []
    evidence += [clean(line) for line in note.splitlines() if line.strip()]
    listed = "\n".join(f"- {line}" for line in evidence or ["(none)"])
    text = f"""\
## Status
state: ERROR
summary: Aborted by the operator after {attempts}{failure}
error_code: {ABORTED}
retry_recommended: no
task_id: {clean(task.task_id)}
attempt: {task.attempt}

## Deliverables
- (none)

## Evidence
{listed}

## Runtime Attestation
runtime_model_reported: {clean(operator).strip() or "operator"}
runtime_mode_reported: operator
files_created:
- (none)
files_modified:
- (none)
"""
    return Proposal(text, _REPORT, None, _report_problems)


def is_final_report(returned: Return | None) -> bool:
    """Tell whether a return says that the operator aborted the task. This is no proof: anybody can write a return."""
    return returned is not None and returned.outcome is Outcome.FAILED and returned.error_code == ABORTED


def _report_problems(text: str) -> list[str]:
    reading = read_document(text, _REPORT)
    document = reading.document if reading else None
    is_report = isinstance(document, Return) and document.recognised and document.contract is Contract.RETURN_FORMAT
    if not reading or not isinstance(document, Return) or not is_report:
        return ["it is no return-format document: it needs the sections Status, Deliverables, Evidence and Attestation"]
    return _error_messages(reading) + ([] if document.reported_state == "ERROR" else ["state must be ERROR"])


def _failure_text(task: Task) -> str:
    result = task.result
    said = (result.error_code, *(result.errors or (result.error_message,))) if result else ()
    return ": ".join(clean(part, 300) for part in said if part)


def _attempt_files(task: Task) -> list[tuple[Seen, str]]:
    latest = task.latest
    both = ((latest.handoff, "What the station was given."), (latest.returned, "What it returned."))
    return [(version, purpose) for version, purpose in both if version and not version.stored]


def _error_messages(reading: Document) -> list[str]:
    return [
        f"line {finding.line}: {finding.message}" if finding.line else finding.message
        for finding in reading.findings
        if finding.severity is Severity.ERROR
    ]
