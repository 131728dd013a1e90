"""The tabs of the details: each is a function from a `View` of a task to blocks."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from textual.content import Content

from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.widgets.details.blocks import (
    FAINT,
    GAP,
    Block,
    Table,
    Text,
    caution,
    compare,
    document,
    faint,
    fields,
    gist,
    heading,
    in_color,
    laid_out_alike,
    listed,
    listing,
    markdown,
    plain,
    remark,
    text,
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
    answer,
    claims_of,
    clock,
    decision_of,
    duration,
    look_of_attempt,
    name_of,
    plural,
    prompt,
    runtime_of,
    standing_words,
    took,
    where,
    whereabouts,
    why_at,
)

ITEMS = 20  # the most blockers, limitations or requests in the overview
_WHOLE = 30  # the most characters of an id that the head always shows in full
_AGREEMENTS = {
    Agreement.MATCHES: ("✓ confirmed", "$state-completed"),
    Agreement.DIFFERS: ("! differs from ", "$text-warning"),
    Agreement.UNKNOWN: ("? unverifiable", FAINT),
}  # words and style for each comparison of a model or mode; after those of DIFFERS comes the other value
_READ_OF_IT = (
    "reported_state task_id parent_task_id mode objective summary error_code error_message retry_hint next_steps agent "
    "session_id blockers artifacts"
)  # the fields to show of a document whose text cannot be read
_VERDICT = 16  # cells of the column with the verdicts
_UNCHANGED = "Only how it is laid out has changed.", "No line of it has changed."
_INDENT = 3


Made = TypeVar("Made")


class NotMadeError(Exception):
    """A tab needs a value that a thread must make first. The arguments are the value's key and the function for it."""


@dataclass
class View:
    """A task at the time `now` (epoch seconds). `back` is how many attempts back from the last two are compared; `made`
    has the values that threads have made."""

    task: Task
    tree: Tree
    monitor: Monitor
    now: float
    back: int = 0
    made: dict[Hashable, Any] = field(default_factory=dict)

    def latest(self, part: str) -> list[tuple[Attempt, Seen]]:
        """Return the latest attempt with a `handoff`, or the latest attempt if it has `returned`, with that version;
        else []."""
        attempts = self.task.attempts if part == "handoff" else [self.task.latest]
        return [(one, version) for one in attempts if (version := getattr(one, part))][-1:]

    def later(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the value that `make` returned in a thread. Raises NotMadeError until it is there."""
        if key not in self.made:
            raise NotMadeError(key, make)
        made: Made = self.made[key]
        return made

    def source(self, version: Seen | Message) -> str | None:
        """Return the text of a version, None if it is gone."""
        content = self.monitor.content
        return self.later(version.digest, lambda: content(version))

    def model(self, version: Seen) -> Model | None:
        """Return the pydantic model of a version, None if its text is gone or follows no contract."""
        source = self.source(version)
        over = version.stored and isinstance(version.document, Handoff)

        def read() -> Model | None:
            found = read_document(source or "", version.path, embedded=version.stored, handed_over=over)
            return found.model if found and found.document.recognised else None

        return self.later((version.path, version.digest), read)


def overview(view: View) -> Iterator[Block]:
    """Yield what was asked and returned, the reason for the state, and where the task comes from."""
    task, latest, packet, decision = view.task, view.task.latest, view.task.packet, decision_of(view.task)
    if not task.workspace:
        words = None if packet else prompt(latest)
        none = faint("the handoff states no objective" if packet else "no handoff was seen")
        objective = markdown(packet.objective) if packet and packet.objective else None
        yield from fields(("asked", objective or (gist(words) if words else none)))
        yield from _came_back(task)
        yield GAP
    why = why_at(task, view.tree.tasks, view.now) if task.why else ""
    yield from fields(("why", plain(why, 1_000) if task.workspace else gist(why)), ("answer", where(task)))
    for request in task.requests[:ITEMS]:
        standing = f"{request.request_id[:8]}   {standing_words(request, view.now)}"
        yield from fields(("request", [text(plain(request_words(request))), remark(standing)]))
    below: list[Content] = []
    if task.below:
        counts = task.below.shown
        counted = (in_color(LOOKS[one], f"{counts[one]:,} {one.word}") for one in reversed(Shown) if counts[one])
        below = [Content(plural(task.below.tasks, "task")), *counted]
    yield from fields(
        ("your note", decision.note if decision else None),
        ("model", task.result.model if task.result else None),
        ("mode", task.result.mode if task.result else None),
        ("below", Content("   ").join(below)),
    )
    yield GAP
    yield from _provenance(view)


def _came_back(task: Task) -> Iterator[Block]:
    result, said = task.result, answer(task.latest)
    if result is None:
        none = "nothing: no file speaks of it" if task.inferred else "nothing" if task.ended_at else "nothing yet"
        yield from fields(("answered", gist(said)) if said else ("returned", faint(none)))
        return
    none = "see the Return tab" if result.contract is Contract.REPORT_CONTRACT else "no summary"
    # The head already shows the question and the hint.
    blockers = [one for one in result.blockers if one not in (task.question or "")]
    yield from fields(
        ("returned", markdown(result.summary) if result.summary else faint(none)),
        ("limits", listed(result.limitations, most=ITEMS)),
        ("blockers", listed(blockers, "■", "$state-blocked", ITEMS)),
        ("next", markdown(result.next_steps) if result.next_steps else None),
    )


def _provenance(view: View) -> Iterator[Block]:
    task, latest, run = view.task, view.task.latest, view.task.run
    yield from fields(("host", clean_name(task.host)), ("workspace", clean_name(whereabouts(task.workspace))))
    if task.workspace:
        about = view.monitor.behind(task.task_id).connection_facts if task.host else ()
        yield from fields(*((label, plain(words)) for label, words in about if words))
        return
    parent, linked = view.tree.tasks.get(task.parent_id or ""), Content(BASES[Basis.NONE])
    if task.parent_id is not None and task.parent_basis is not Basis.NONE:
        called = name_of(parent) if parent else clean_name(task.parent_id)
        linked = Content.assemble("below ", plain(called), (f"   {BASES[task.parent_basis]}", FAINT))
    is_markdown = task.contract is Contract.RETURN_FORMAT
    yield from fields(
        # The head may have cut a long id.
        ("task", clean_name(task.own_id) if len(task.own_id) > _WHOLE else None),
        ("contract", task.contract and f"{task.contract} ({'Markdown' if is_markdown else 'JSON'})"),
        ("linked", linked),
        ("session", latest.session_id if latest.session_id != task.own_id else None),
    )
    if run:
        tokens = f"{run.tokens:,}" if run.tokens else None
        yield from fields(("source", run.source), ("recorded", run.model), ("tokens", tokens), ("record", run.place))
    yield from fields(
        ("took", ran_for(task, latest, view.now) if latest.started_at is not None else None),
        *(("handoff", version.path) for _, version in view.latest("handoff")),
        ("return", latest.returned and latest.returned.path),
    )


def live(view: View) -> Iterator[Block]:
    """Yield why there is no transcript; if there is one, `LiveLog` is shown instead of this."""
    if view.task.run is None:
        yield remark("Only files speak of this task, so there is no transcript.")
    else:
        yield remark("It has no transcript of its own. Perhaps that of its parent tells. A recording has none.")


def handoff(view: View) -> Iterator[Block]:
    """Yield everything that the parent gave, and the state of its checklist."""
    run, todos = view.task.run, view.task.todos
    if handed := view.latest("handoff"):
        yield from _document(view, *handed[0])
    elif run and run.prompt:
        yield from _said(view, "Asked in words, without a handoff packet:", run.prompt)
    else:
        missing = plain((run.prompt_missing if run else None) or "no handoff was seen").plain
        yield remark(f"What was asked is not known: {missing}.")
    if todos:
        yield from heading("Todos", len(todos))
        words = (f"{todo.phase}: {todo.text}" if todo.phase else todo.text for todo in todos)
        states = (in_color(TODOS[todo.status]) for todo in todos)
        yield Table(("", ""), list(zip(states, map(plain, words), strict=True)))


def returned(view: View) -> Iterator[Block]:
    """Yield everything that the child gave back, in the form of its contract."""
    run = view.task.run
    if back := view.latest("returned"):
        yield from _document(view, *back[0])
    elif run and run.said:
        yield from _said(view, "Its answer follows none of the contracts; these are its words:", run.said)
    else:
        is_over = run is not None and run.state not in (RunState.SUBMITTED, RunState.WORKING)
        yield remark("It ended without an answer." if is_over else "Nothing has come back yet.")
        yield text(plain(run.reason or "" if run else ""))
        if any(one.returned for one in view.task.attempts):
            yield remark("The Attempts tab has what came back before.")


def _document(view: View, attempt: Attempt, version: Seen) -> Iterator[Block]:
    if attempt is not view.task.latest:
        yield remark(f"This is of attempt {attempt.number}: attempt {view.task.attempt} has none yet.")
        yield GAP
    model, source = view.model(version), view.source(version)
    values = model.model_dump(exclude_none=True) if model else {}
    if not any(values.values()):
        words = "It cannot be read in whole; this is what was understood. The Raw tab has its text."
        yield remark(words if source else "Its text is gone; this is what was read of it.")
        yield GAP
        values = {name: value for name in _READ_OF_IT.split() if (value := getattr(version.document, name, None))}
    yield from document(values)


def _said(view: View, words: str, message: Message) -> Iterator[Block]:
    """Yield the whole text of a session's message."""
    said = view.source(message)
    yield remark(words)
    yield GAP
    yield from markdown(message.opening + " …" if said is None else said)


def claimed(claim: Claim) -> Content:
    """Return the foreign path of a claim, with its lines."""
    first, last = claim.lines or (0, 0)
    lines = "" if claim.lines is None else f":{first}" if first == last else f":{first}-{last}"
    return plain(claim.path) + Content(lines)


def about(claim: Claim) -> Content:
    """Return the kind of a claim, and the reason for its verdict."""
    kind, detail = claim.kind.replace("_", " "), plain(claim.detail).plain
    return faint(detail if kind in detail.partition(":")[0] else f"{kind}   {detail}")


def attestation(view: View) -> Iterator[Block]:
    """Yield the model and mode that the return reports, and each claim with its verdict and the reason."""
    task, attempt = view.task, next((attempt for attempt, _ in view.latest("returned")), None)
    if attempt is None or (result := attempt.result) is None:
        yield remark("Nothing has come back yet, so nothing is attested.")
    else:
        if result.contract is Contract.RETURN_FORMAT:
            model, mode = runtime_of(result, attempt.run, attempt.packet or task.packet)
            yield from fields(("model", _reported(model)), ("mode", _reported(mode)))
        else:
            yield remark(f"There is no attestation in this contract ({result.contract}).")
        if view.monitor.checks and not task.is_checked:
            yield from heading("Claims", note=faint("not checked yet"))
    if claims := claims_of(task):
        yield from heading("Claims", len(claims))
    for claim in claims:
        verdict = in_color(VERDICTS[claim.verdict])
        lead = Content("  ") + verdict.pad_right(_VERDICT - verdict.cell_length)
        yield Text(claimed(claim), lead, " " * len(lead), choice=claim)
        yield Text(about(claim), Content("    "), "    ", choice=claim)


def _reported(one: Compared) -> Content:
    """Return a reported model or mode, and how it compares; a difference is no false claim, as the child says so."""
    if not one.reported:
        return faint("not reported")
    other = plain(one.known or "", 60) if one.agreement is Agreement.DIFFERS else ""
    return Content.assemble(plain(one.reported), "   ", _AGREEMENTS[one.agreement], other)


def findings(view: View) -> Iterator[Block]:
    """Yield a table of findings for each file, sorted by line."""
    placed = sorted(view.task.findings, key=lambda one: (one.path, one.line or 0))
    if not placed:
        seen = any(attempt.handoff or attempt.returned for attempt in view.task.attempts)
        good = Content.assemble(("✓ ", "$state-completed"), "no findings: keeps its contract")
        yield text(good) if seen else remark("Nothing to check: neither a handoff nor a return of it was seen.")
        return
    for path, there in groupby(placed, key=attrgetter("path")):
        yield GAP
        yield text(plain(path).stylize("bold"))
        rows = [
            (
                in_color(SEVERITIES[finding.severity]),
                plain(finding.rule, 20),
                Content(f"line {finding.line}") if finding.line else faint("file"),
                plain(finding.message),
            )
            for finding in there
        ]
        yield Table(("severity", "rule", "place", "message"), rows)
    yield GAP
    yield remark("agentwatch rules --explain RULE says why a rule is there, with an example that keeps it")


def raw(view: View) -> Iterator[Block]:
    """Yield the texts with their findings, the return before the handoff."""
    titles = {"returned": "Return", "handoff": "Handoff"}
    versions = [(title, version) for part, title in titles.items() for _, version in view.latest(part)]
    for title, version in versions:
        source = view.source(version)
        # Findings count lines as editors do, for which a lone carriage return also ends a line.
        lines, note = clean_lines(re.sub("\r\n?", "\n", source or "").removesuffix("\n"))
        note = "its text is gone: the file was deleted or rewritten" if source is None else note
        words = f"   {note or plural(len(lines), 'line')}"
        yield from heading(title, note=Content.assemble(plain(version.path), (words, FAINT)))
        by_line = defaultdict(list)
        for finding in version.findings:
            by_line[finding.line or 0].append(finding)
        yield from listing(lines, by_line) if source is not None else ()
        yield GAP
    if not versions:
        yield remark("No file speaks of this task.")


def attempts(view: View) -> Iterator[Block]:
    """Yield all attempts, the newest first, and the changes between two of them."""
    task, every, now = view.task, view.task.attempts, view.now
    if not every:
        yield remark("No file speaks of this task, so no attempt is known.")
    for attempt in reversed(every):
        start, state = attempt.started_at, in_color(look_of_attempt(task, attempt))
        ran = [faint("start not known")] if start is None else [clock(start, now), ran_for(task, attempt, now)]
        yield GAP
        yield text(Content("   ").join([Content.assemble(f"{attempt.number}  ", state), *ran]))
        if words := attempt.result.summary if attempt.result else answer(attempt):
            yield text(plain(words, 400), _INDENT)
        for decision in attempt.decisions:
            yield text(Content.assemble(("decided ", FAINT), receipt_line(decision, now)), _INDENT)
            if trouble := warning(decision, now):
                yield caution(trouble, _INDENT)
    yield GAP
    if len(every) == 1:
        yield remark("Only one attempt is known. After a retry, what changed is shown here.")
    until = every[: max(len(every) - view.back, 2)]
    yield from _changes("Handoff", view, [(one, one.handoff or (one.run.prompt if one.run else None)) for one in until])
    came = [(one, one.returned) for one in every if one.returned]
    if len(came) == 1 and came[0][0] is not task.latest:
        yield from heading("Return", note=plain(came[0][1].path))
        yield from _document(view, *came[0])
    yield from _changes("Return", view, [(one, one.returned or (one.run.said if one.run else None)) for one in until])


def ran_for(task: Task, attempt: Attempt, now: float) -> Content:
    """Return how long an attempt took or has been running; `-` if unknown."""
    lasted = took(task, attempt, now)
    if lasted is None:
        return Content(duration(None))
    return Content.assemble(duration(lasted.seconds), (" so far" if lasted.so_far else "", FAINT))


def _changes(title: str, view: View, texts: Iterable[tuple[Attempt, Seen | Message | None]]) -> Iterator[Block]:
    """Yield the changes between the last two of these handoffs or returns, each given with its attempt."""
    versions = [(one.number, version) for one, version in texts if version is not None]
    if len(versions) < 2:
        return
    (first, before), (second, after) = versions[-2:]
    between, old, new = f"attempt {first} → {second}   ", view.source(before), view.source(after)
    if old is None or new is None:
        yield from heading(title, note=faint(between))
        yield remark(f"The text of attempt {first if old is None else second} is not kept any more.")
    else:
        difference = view.later((before.digest, after.digest), lambda: compare(*laid_out_alike(old, new)))
        yield from heading(title, note=Content.assemble((between, FAINT), difference.counted))
        yield from difference.noted if difference.rows else [remark(_UNCHANGED[old == new])]


# The functions that write the tabs, by tab id, in the order of the tabs.
TABS = {
    "overview": overview,
    "live": live,
    "handoff": handoff,
    "return": returned,
    "attestation": attestation,
    "findings": findings,
    "attempts": attempts,
    "raw": raw,
}
