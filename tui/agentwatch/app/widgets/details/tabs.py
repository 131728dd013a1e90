"""The tabs of the details. For each tab, a function makes the blocks from a `View` of a task."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from textual.content import Content

from agentwatch.app.decision_words import decision_warning, receipt_line
from agentwatch.app.widgets.details.blocks import (
    FAINT,
    GAP,
    Block,
    Table,
    Text,
    bullet_list,
    caution,
    compare_texts,
    document_blocks,
    faint,
    fields,
    format_alike,
    heading,
    look_words,
    markdown,
    paragraph,
    remark,
    safe_line,
    source_lines,
    summary_line,
)
from agentwatch.contracts.fields import Model
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, Handoff
from agentwatch.delegation.events import Claim, Message, RunState, Seen
from agentwatch.delegation.standing import request_words
from agentwatch.delegation.task import Attempt, Basis, Shown, Task
from agentwatch.delegation.tree import Tree
from agentwatch.monitor import Monitor
from agentwatch.text import clean_lines, clean_name
from agentwatch.view.words import (
    BASES,
    LOOKS,
    SEVERITIES,
    TODOS,
    VERDICTS,
    Agreement,
    Compared,
    answer_line,
    claims_of,
    clock,
    decision_of,
    look_of_attempt,
    name_of,
    plural,
    prompt_line,
    reason_at,
    runtime_of,
    short_span,
    span_of,
    stage_words,
    where_to_answer,
    workspace_address,
)

ITEMS = 20  # the most blockers, limitations or requests in the overview
_FULL_ID = 30  # characters: the head may cut a longer id
_AGREEMENTS = {
    Agreement.MATCHES: ("✓ confirmed", "$state-completed"),
    Agreement.DIFFERS: ("! differs from ", "$text-warning"),
    Agreement.UNKNOWN: ("? unverifiable", FAINT),
}  # words and style for each result of comparing the reported model or mode with the known value
_FALLBACK_FIELDS = (
    "reported_state task_id parent_task_id mode objective summary error_code error_message retry_hint next_steps agent "
    "session_id blockers artifacts"
)  # the fields that are shown if a document cannot be read in whole
_VERDICT_WIDTH = 16  # cells of the column with the verdicts
_UNCHANGED = "Only how it is laid out has changed.", "No line of it has changed."
_INDENT = 3


Made = TypeVar("Made")


class NotMadeError(Exception):
    """A thread must make a value before a tab can use it. The arguments: the value's key, and the function to call."""


@dataclass
class View:
    """A task at the time `now` (epoch seconds), for its tabs.

    `made_values` are the values that threads have made. The Attempts tab leaves out the last `steps_back` attempts,
    and compares the two attempts before these.
    """

    task: Task
    tree: Tree
    monitor: Monitor
    now: float
    steps_back: int = 0
    made_values: dict[Hashable, Any] = field(default_factory=dict)

    def latest_versions(self, part: str) -> list[tuple[Attempt, Seen]]:
        """Return at most one pair: the latest attempt with a file for `part` ("handoff" or "returned"), and the version
        of the file. For "returned", look only at the task's last attempt."""
        attempts = self.task.attempts if part == "handoff" else [self.task.latest]
        return [(one, version) for one in attempts if (version := getattr(one, part))][-1:]

    def made_value(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the value that a thread has made with `make`. Raises NotMadeError if no thread has made it yet."""
        if key not in self.made_values:
            raise NotMadeError(key, make)
        made: Made = self.made_values[key]
        return made

    def text_of(self, version: Seen | Message) -> str | None:
        """Return the text of a file's version or of a message, or None if the text is gone."""
        content = self.monitor.content
        return self.made_value(version.digest, lambda: content(version))

    def model_of(self, version: Seen) -> Model | None:
        """Return the pydantic model of a file's version, or None if the text is gone or follows no contract."""
        source = self.text_of(version)
        handed_over = version.stored and isinstance(version.document, Handoff)

        def read() -> Model | None:
            found = read_document(source or "", version.path, embedded=version.stored, handed_over=handed_over)
            return found.model if found and found.document.recognised else None

        return self.made_value((version.path, version.digest), read)


def overview_tab(view: View) -> Iterator[Block]:
    """Yield the Overview tab: objective, result, reason for the state, and origin of the task."""
    task, latest, packet, decision = view.task, view.task.latest, view.task.packet, decision_of(view.task)
    if not task.workspace:
        words = None if packet else prompt_line(latest)
        none = faint("the handoff states no objective" if packet else "no handoff was seen")
        objective = markdown(packet.objective) if packet and packet.objective else None
        yield from fields(("asked", objective or (summary_line(words) if words else none)))
        yield from _return_fields(task)
        yield GAP
    why = reason_at(task, view.tree.tasks, view.now) if task.why else ""
    yield from fields(
        ("why", safe_line(why, 1_000) if task.workspace else summary_line(why)), ("answer", where_to_answer(task))
    )
    for request in task.requests[:ITEMS]:
        standing = f"{request.request_id[:8]}   {stage_words(request, view.now)}"
        yield from fields(("request", [paragraph(safe_line(request_words(request))), remark(standing)]))
    below: list[Content] = []
    if task.below:
        counts = task.below.shown
        counted = (look_words(LOOKS[one], f"{counts[one]:,} {one.word}") for one in reversed(Shown) if counts[one])
        below = [Content(plural(task.below.tasks, "task")), *counted]
    yield from fields(
        ("your note", decision.note if decision else None),
        ("model", task.result.model if task.result else None),
        ("mode", task.result.mode if task.result else None),
        ("below", Content("   ").join(below)),
    )
    yield GAP
    yield from _origin_fields(view)


def _return_fields(task: Task) -> Iterator[Block]:
    result, said = task.result, answer_line(task.latest)
    if result is None:
        none = "nothing: no file speaks of it" if task.inferred else "nothing" if task.ended_at else "nothing yet"
        yield from fields(("answered", summary_line(said)) if said else ("returned", faint(none)))
        return
    none = "see the Return tab" if result.contract is Contract.REPORT_CONTRACT else "no summary"
    # The head already shows the blockers that are part of the question.
    blockers = [one for one in result.blockers if one not in (task.question or "")]
    yield from fields(
        ("returned", markdown(result.summary) if result.summary else faint(none)),
        ("limits", bullet_list(result.limitations, most=ITEMS)),
        ("blockers", bullet_list(blockers, "■", "$state-blocked", ITEMS)),
        ("next", markdown(result.next_steps) if result.next_steps else None),
    )


def _origin_fields(view: View) -> Iterator[Block]:
    task, latest, run = view.task, view.task.latest, view.task.run
    yield from fields(("host", clean_name(task.host)), ("workspace", clean_name(workspace_address(task.workspace))))
    if task.workspace:
        host_facts = view.monitor.monitor_of_row(task.task_id).connection_facts if task.host else ()
        yield from fields(*((label, safe_line(words)) for label, words in host_facts if words))
        return
    parent, linked = view.tree.tasks.get(task.parent_id or ""), Content(BASES[Basis.NONE])
    if task.parent_id is not None and task.parent_basis is not Basis.NONE:
        called = name_of(parent) if parent else clean_name(task.parent_id)
        linked = Content.assemble("below ", safe_line(called), (f"   {BASES[task.parent_basis]}", FAINT))
    is_markdown = task.contract is Contract.RETURN_FORMAT
    yield from fields(
        # The head may have cut a long id.
        ("task", clean_name(task.own_id) if len(task.own_id) > _FULL_ID else None),
        ("contract", task.contract and f"{task.contract} ({'Markdown' if is_markdown else 'JSON'})"),
        ("linked", linked),
        ("session", latest.session_id if latest.session_id != task.own_id else None),
    )
    if run:
        tokens = f"{run.tokens:,}" if run.tokens else None
        yield from fields(("source", run.source), ("recorded", run.model), ("tokens", tokens), ("record", run.place))
    yield from fields(
        ("took", duration_words(task, latest, view.now) if latest.started_at is not None else None),
        *(("handoff", version.path) for _, version in view.latest_versions("handoff")),
        ("return", latest.returned and latest.returned.path),
    )


def live_tab(view: View) -> Iterator[Block]:
    """Yield a remark that there is no transcript. For a task with a transcript, the pane shows a `LiveLog` instead."""
    if view.task.run is None:
        yield remark("Only files speak of this task, so there is no transcript.")
    else:
        yield remark("It has no transcript of its own. Perhaps that of its parent tells. A recording has none.")


def handoff_tab(view: View) -> Iterator[Block]:
    """Yield the Handoff tab: all that the parent handed on, and the todos."""
    run, todos = view.task.run, view.task.todos
    if handed := view.latest_versions("handoff"):
        yield from _version_blocks(view, *handed[0])
    elif run and run.prompt:
        yield from _message_blocks(view, "Asked in words, without a handoff packet:", run.prompt)
    else:
        missing = safe_line((run.prompt_missing if run else None) or "no handoff was seen").plain
        yield remark(f"What was asked is not known: {missing}.")
    if todos:
        yield from heading("Todos", len(todos))
        words = (f"{todo.phase}: {todo.text}" if todo.phase else todo.text for todo in todos)
        states = (look_words(TODOS[todo.status]) for todo in todos)
        yield Table(("", ""), list(zip(states, map(safe_line, words), strict=True)))


def return_tab(view: View) -> Iterator[Block]:
    """Yield the Return tab: all that the child gave back."""
    run = view.task.run
    if back := view.latest_versions("returned"):
        yield from _version_blocks(view, *back[0])
    elif run and run.said:
        yield from _message_blocks(view, "Its answer follows none of the contracts; these are its words:", run.said)
    else:
        is_over = run is not None and run.state not in (RunState.SUBMITTED, RunState.WORKING)
        yield remark("It ended without an answer." if is_over else "Nothing has come back yet.")
        yield paragraph(safe_line(run.reason or "" if run else ""))
        if any(one.returned for one in view.task.attempts):
            yield remark("The Attempts tab has what came back before.")


def _version_blocks(view: View, attempt: Attempt, version: Seen) -> Iterator[Block]:
    if attempt is not view.task.latest:
        yield remark(f"This is of attempt {attempt.number}: attempt {view.task.attempt} has none yet.")
        yield GAP
    model, source = view.model_of(version), view.text_of(version)
    values = model.model_dump(exclude_none=True) if model else {}
    if not any(values.values()):
        words = "It cannot be read in whole; this is what was understood. The Raw tab has its text."
        yield remark(words if source else "Its text is gone; this is what was read of it.")
        yield GAP
        values = {name: value for name in _FALLBACK_FIELDS.split() if (value := getattr(version.document, name, None))}
    yield from document_blocks(values)


def _message_blocks(view: View, words: str, message: Message) -> Iterator[Block]:
    said = view.text_of(message)
    yield remark(words)
    yield GAP
    yield from markdown(message.opening + " …" if said is None else said)


def claim_path(claim: Claim) -> Content:
    """Return the path that a claim names, with its line numbers."""
    first, last = claim.lines or (0, 0)
    lines = "" if claim.lines is None else f":{first}" if first == last else f":{first}-{last}"
    return safe_line(claim.path) + Content(lines)


def claim_reason(claim: Claim) -> Content:
    """Return the kind of a claim and the reason for its verdict."""
    kind, detail = claim.kind.replace("_", " "), safe_line(claim.detail).plain
    return faint(detail if kind in detail.partition(":")[0] else f"{kind}   {detail}")


def attestation_tab(view: View) -> Iterator[Block]:
    """Yield the Attestation tab: the model and the mode that the return reports, and all claims with their verdicts."""
    task, attempt = view.task, next((attempt for attempt, _ in view.latest_versions("returned")), None)
    if attempt is None or (result := attempt.result) is None:
        yield remark("Nothing has come back yet, so nothing is attested.")
    else:
        if result.contract is Contract.RETURN_FORMAT:
            model, mode = runtime_of(result, attempt.run, attempt.packet or task.packet)
            yield from fields(("model", _comparison_words(model)), ("mode", _comparison_words(mode)))
        else:
            yield remark(f"There is no attestation in this contract ({result.contract}).")
        if view.monitor.checks and not task.is_checked:
            yield from heading("Claims", note=faint("not checked yet"))
    if claims := claims_of(task):
        yield from heading("Claims", len(claims))
    for claim in claims:
        verdict = look_words(VERDICTS[claim.verdict])
        lead = Content("  ") + verdict.pad_right(_VERDICT_WIDTH - verdict.cell_length)
        yield Text(claim_path(claim), lead, " " * len(lead), entry=claim)
        yield Text(claim_reason(claim), Content("    "), "    ", entry=claim)


def _comparison_words(one: Compared) -> Content:
    """Return a reported model or mode, and whether it agrees with the known value."""
    if not one.reported:
        return faint("not reported")
    other = safe_line(one.known or "", 60) if one.agreement is Agreement.DIFFERS else ""
    return Content.assemble(safe_line(one.reported), "   ", _AGREEMENTS[one.agreement], other)


def findings_tab(view: View) -> Iterator[Block]:
    """Yield the Findings tab: a table of findings for each file, in the order of its lines."""
    placed = sorted(view.task.findings, key=lambda one: (one.path, one.line or 0))
    if not placed:
        seen = any(attempt.handoff or attempt.returned for attempt in view.task.attempts)
        good = Content.assemble(("✓ ", "$state-completed"), "no findings: keeps its contract")
        yield paragraph(good) if seen else remark("Nothing to check: neither a handoff nor a return of it was seen.")
        return
    for path, there in groupby(placed, key=attrgetter("path")):
        yield GAP
        yield paragraph(safe_line(path).stylize("bold"))
        rows = [
            (
                look_words(SEVERITIES[finding.severity]),
                safe_line(finding.rule, 20),
                Content(f"line {finding.line}") if finding.line else faint("file"),
                safe_line(finding.message),
            )
            for finding in there
        ]
        yield Table(("severity", "rule", "place", "message"), rows)
    yield GAP
    yield remark("agentwatch rules --explain RULE says why a rule is there, with an example that keeps it")


def raw_tab(view: View) -> Iterator[Block]:
    """Yield the Raw tab: the texts of return and handoff with their findings."""
    titles = {"returned": "Return", "handoff": "Handoff"}
    versions = [(title, version) for part, title in titles.items() for _, version in view.latest_versions(part)]
    for title, version in versions:
        source = view.text_of(version)
        # Findings count lines as editors do. For editors, a carriage return without a line feed also ends a line.
        lines, note = clean_lines(re.sub("\r\n?", "\n", source or "").removesuffix("\n"))
        note = "its text is gone: the file was deleted or rewritten" if source is None else note
        words = f"   {note or plural(len(lines), 'line')}"
        yield from heading(title, note=Content.assemble(safe_line(version.path), (words, FAINT)))
        by_line = defaultdict(list)
        for finding in version.findings:
            by_line[finding.line or 0].append(finding)
        yield from source_lines(lines, by_line) if source is not None else ()
        yield GAP
    if not versions:
        yield remark("No file speaks of this task.")


def attempts_tab(view: View) -> Iterator[Block]:
    """Yield the Attempts tab: all attempts, the newest first, and the changes between two attempts."""
    task, every, now = view.task, view.task.attempts, view.now
    if not every:
        yield remark("No file speaks of this task, so no attempt is known.")
    for attempt in reversed(every):
        start, state = attempt.started_at, look_words(look_of_attempt(task, attempt))
        ran = [faint("start not known")] if start is None else [clock(start, now), duration_words(task, attempt, now)]
        yield GAP
        yield paragraph(Content("   ").join([Content.assemble(f"{attempt.number}  ", state), *ran]))
        if words := attempt.result.summary if attempt.result else answer_line(attempt):
            yield paragraph(safe_line(words, 400), _INDENT)
        for decision in attempt.decisions:
            yield paragraph(Content.assemble(("decided ", FAINT), receipt_line(decision, now)), _INDENT)
            if trouble := decision_warning(decision, now):
                yield caution(trouble, _INDENT)
    yield GAP
    if len(every) == 1:
        yield remark("Only one attempt is known. After a retry, what changed is shown here.")
    until = every[: max(len(every) - view.steps_back, 2)]
    yield from _compare("Handoff", view, [(one, one.handoff or (one.run.prompt if one.run else None)) for one in until])
    came = [(one, one.returned) for one in every if one.returned]
    if len(came) == 1 and came[0][0] is not task.latest:
        yield from heading("Return", note=safe_line(came[0][1].path))
        yield from _version_blocks(view, *came[0])
    yield from _compare("Return", view, [(one, one.returned or (one.run.said if one.run else None)) for one in until])


def duration_words(task: Task, attempt: Attempt, now: float) -> Content:
    """Return how long an attempt took or has been running, or `-` if this is not known."""
    lasted = span_of(task, attempt, now)
    if lasted is None:
        return Content(short_span(None))
    return Content.assemble(short_span(lasted.seconds), (" so far" if lasted.so_far else "", FAINT))


def _compare(title: str, view: View, texts: Iterable[tuple[Attempt, Seen | Message | None]]) -> Iterator[Block]:
    """Yield the changes between the last two known texts. `texts` are the handoffs or the returns of attempts."""
    versions = [(one.number, version) for one, version in texts if version is not None]
    if len(versions) < 2:
        return
    (first, before), (second, after) = versions[-2:]
    between, old, new = f"attempt {first} → {second}   ", view.text_of(before), view.text_of(after)
    if old is None or new is None:
        yield from heading(title, note=faint(between))
        yield remark(f"The text of attempt {first if old is None else second} is not kept any more.")
    else:
        difference = view.made_value((before.digest, after.digest), lambda: compare_texts(*format_alike(old, new)))
        yield from heading(title, note=Content.assemble((between, FAINT), difference.counts))
        yield from difference.blocks if difference.rows else [remark(_UNCHANGED[old == new])]


# The functions that make the tabs, by tab id, in the order of the tabs.
TABS = {
    "overview": overview_tab,
    "live": live_tab,
    "handoff": handoff_tab,
    "return": return_tab,
    "attestation": attestation_tab,
    "findings": findings_tab,
    "attempts": attempts_tab,
    "raw": raw_tab,
}
