"""The tabs of the details: each is a function from one look at a task to blocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from textual.content import Content

from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.markdown_safe import FAINT, Line, Text, markdown
from agentwatch.app.widgets.details.blocks import (
    GAP,
    Block,
    Table,
    caution,
    faint,
    fields,
    gist,
    heading,
    in_color,
    left_out,
    listed,
    plain,
    rich_list,
    text,
)
from agentwatch.app.widgets.details.documents import document
from agentwatch.app.widgets.details.source import Difference, Listing, compare, language_of
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Return, Severity
from agentwatch.delegation.asks import request_words
from agentwatch.delegation.claims import Call, Claim, Verdict
from agentwatch.delegation.links import missing_artifacts
from agentwatch.delegation.run import Message, RunState
from agentwatch.delegation.task import Attempt, Basis, State, Task
from agentwatch.text import clean_lines, exact
from agentwatch.view import looks, times
from agentwatch.view.requests import standing_words, where
from agentwatch.view.words import (
    BASES,
    Agreement,
    Compared,
    cost_of,
    decision_of,
    mode_of,
    model_of,
    name_of,
    plural,
    whereabouts,
    why_at,
)

if TYPE_CHECKING:
    from agentwatch.contracts.fields import Model
    from agentwatch.delegation.events import Seen
    from agentwatch.delegation.tree import Tree
    from agentwatch.monitor import Monitor

ITEMS: Final = 20
"""Blockers or limitations shown in the overview; the rest is in the return."""
_WHOLE: Final = 30
"""Characters of an id that the head shows whole."""
_FORMS: Final = {Contract.RETURN_FORMAT: "Markdown"}
"""How a contract is written, where that is not JSON."""
_AGREEMENTS: Final = {
    Agreement.MATCHES: ("✓ confirmed", "$state-completed"),
    Agreement.DIFFERS: ("! differs from ", "$text-warning"),
    Agreement.UNKNOWN: ("? unverifiable", FAINT),
}
"""How a reported model or mode compares; behind the words of DIFFERS comes the other one."""
_READ_OF_IT: Final = (
    "reported_state task_id parent_task_id mode objective summary error_code error_message retry_hint next_steps agent "
    "session_id blockers artifacts"
)
"""The fields that are told of a document whose text cannot be shown."""
_SHOWN: Final = 100
"""Deeds that are listed."""
_VERDICT: Final = 16
_DEED: Final = 12
"""Cells of the columns with the verdicts, and with kinds of deeds."""
_INDENT: Final = 3
_DIGITS: Final = 12
"""Hex digits of a digest that are shown."""


class Opened(NamedTuple):
    """A document that was read: its text, None if that is gone, and its model, None if it follows no contract."""

    text: str | None
    model: Model | None


class NotMadeError(Exception):
    """A tab needs a value that a thread has yet to make."""

    def __init__(self, key: Hashable, make: Callable[[], object]) -> None:
        super().__init__(key)
        self.key, self.make = key, make


@dataclass
class View:
    """One look at one task. `now` is in seconds since the epoch, `prices` are those of a million tokens, by model.

    `back` is how many attempts before the last are compared, `made` has the values that threads have made.
    """

    task: Task
    tree: Tree
    monitor: Monitor
    now: float
    prices: Mapping[str, float] = field(default_factory=dict)
    back: int = 0
    made: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def handed(self) -> Attempt | None:
        """The latest attempt that has a handoff."""
        return next((attempt for attempt in reversed(self.task.attempts) if attempt.handoff), None)

    @property
    def returned(self) -> Attempt | None:
        """The latest attempt that has a return."""
        return next((attempt for attempt in reversed(self.task.attempts) if attempt.returned), None)

    def later(self, key: Hashable, make: Callable[[], object]) -> Any:
        """The value that `make` returns in a thread; raises NotMadeError as long as it is not there."""
        if key not in self.made:
            raise NotMadeError(key, make)
        return self.made[key]

    def opened(self, version: Seen | Message) -> Opened:
        """The document of a version."""
        content, path = self.monitor.content, "" if isinstance(version, Message) else version.path

        def read() -> Opened:
            source = content(version)
            if source is None or isinstance(version, Message):
                return Opened(source, None)
            over = version.stored and isinstance(version.document, Handoff)
            document = read_document(source, path, embedded=version.stored, handed_over=over)
            is_known = document is not None and document.document.recognised
            return Opened(source, document.model if document is not None and is_known else None)

        opened: Opened = self.later((path, version.digest), read)
        return opened


# Overview


def overview(view: View) -> Iterator[Block]:
    """The request, the result, the reason for the state, and the origin of a task."""
    task, run, packet = view.task, view.task.run, view.task.packet
    if not task.workspace:
        none = faint("the handoff states no objective" if packet else "no handoff was seen")
        prompt = gist(run.prompt.opening) if packet is None and run is not None and run.prompt else none
        yield from fields(("asked", markdown(packet.objective) if packet and packet.objective else prompt))
        yield from _came_back(task)
        yield GAP
    yield from _standing(view)
    yield GAP
    yield from _provenance(view)


def _came_back(task: Task) -> Iterator[Block]:
    result, run = task.result, task.run
    if result is None:
        none = "nothing: no file speaks of it" if task.inferred else "nothing" if task.ended_at else "nothing yet"
        said = gist(run.said.opening) if run is not None and run.said is not None else None
        yield from fields(("answered", said), ("returned", None if said else faint(none)))
        return
    files = {"artifact": result.artifacts, "new file": result.files_created, "changed file": result.files_modified}
    counted = ", ".join(plural(len(paths), noun) for noun, paths in files.items() if paths)
    none = "what it found is in the Return tab" if result.contract is Contract.REPORT_CONTRACT else "no summary"
    summary = markdown(result.summary) if result.summary else [text(faint(none))]
    # The head has the question, with the hint.
    asked = task.question or ""
    blockers = [one for one in result.blockers if one not in asked]
    message = result.error_message if result.error_message != result.summary else None
    yield from fields(
        ("returned", [*summary, *([text(faint(counted))] if counted else [])]),
        ("limits", _items(result.limitations)),
        ("message", markdown(message or "")),
        ("blockers", _items(blockers, "■", "$state-blocked")),
        ("next", markdown(result.next_steps or "")),
        ("review", markdown(result.review_reason or "") if (result.review_reason or "") not in asked else None),
    )


def _items(items: Sequence[str], marker: str = "•", style: str = FAINT) -> Iterator[Block]:
    return rich_list(items, marker, style, ITEMS, ", see Return")


def _standing(view: View) -> Iterator[Block]:
    task, result, decision = view.task, view.task.result, decision_of(view.task)
    why = why_at(task, view.now) if task.why else ""
    yield from fields(("why", plain(why, 1_000) if task.workspace else gist(why)), ("answer", where(task)))
    for request in task.requests[:ITEMS]:
        words = plain(request_words(request))
        if request.waits_for_operator:
            words = in_color(looks.ASKS[request.kind], words.plain)
        standing = f"{request.request_id[:8]}   {standing_words(request, view.now)}"
        yield from fields(("request", [text(words), text(faint(standing))]))
    yield from left_out(len(task.requests), ITEMS)
    # A missing artifact is a false claim, too, and told as that.
    errors = _errors(task.findings) - len(missing_artifacts(task))
    has_errors = errors > 0 and task.own_state is not State.INVALID
    broken = in_color(looks.SEVERITIES[Severity.ERROR], f"{plural(errors, 'error')} in its files, see Findings")
    false = len(looks.false_claims(task))
    lies = in_color(looks.CONTRADICTED, f"{plural(false, 'false claim')}, see Attestation")
    states = {state: count for state, count in task.below.states.items() if count} if task.below else {}
    counted = [
        in_color(looks.LOOKS[state], f"{states[state]:,} {looks.LOOKS[state].word}")
        for state in sorted(states, key=lambda state: -state.urgency)
    ]
    below = Content("   ").join([Content(plural(sum(states.values()), "task")), *counted])
    yield from fields(
        ("findings", broken if has_errors else None),
        ("claims", lies if false else None),
        ("your note", decision.note if decision else None),
        ("model", result.model if result else None),
        ("mode", result.mode if result else None),
        ("below", below if states else None),
    )


def _errors(findings: Iterable[Finding]) -> int:
    return sum(finding.severity is Severity.ERROR for finding in findings)


def _provenance(view: View) -> Iterator[Block]:
    task, latest, run = view.task, view.task.latest, view.task.run
    yield from fields(("host", exact(task.host)), ("workspace", exact(whereabouts(task.workspace))))
    if task.workspace:
        return
    parent = view.tree.tasks.get(task.parent_id or "")
    linked = Content(BASES[Basis.NONE])
    if task.parent_id is not None and task.parent_basis is not Basis.NONE:
        called = name_of(parent) if parent else exact(task.parent_id)
        linked = Content.assemble("below ", plain(called), (f"   {BASES[task.parent_basis]}", FAINT))
    session = latest.session_id if latest else None
    yield from fields(
        # The head has it as far as there is room.
        ("task", exact(task.own_id) if len(task.own_id) > _WHOLE else None),
        ("contract", task.contract and f"{task.contract} ({_FORMS.get(task.contract, 'JSON')})"),
        ("linked", linked),
        ("session", session if session != task.own_id else None),
    )
    if run is not None:
        cost = cost_of(task, view.prices)
        yield from fields(
            ("source", run.source),
            ("recorded", run.model),
            ("tokens", f"{run.tokens:,}" if run.tokens else None),
            ("cost", None if cost is None else f"{cost:,.2f}, all attempts, by your prices"),
            ("record", run.place),
        )
    if latest and latest.started_at is not None:
        yield from fields(("took", took(task, latest, view.now)))
    for label, attempt in (("handoff", view.handed), ("return", view.returned)):
        version = attempt and (attempt.handoff if label == "handoff" else attempt.returned)
        if attempt is not None and version:
            earlier = f"   of attempt {attempt.number}" if attempt is not latest else ""
            yield from fields((label, Content.assemble(plain(version.path), (earlier, FAINT))))


def live(view: View) -> Iterator[Block]:
    """Why there is no transcript; where there is one, it is shown instead."""
    if view.task.run is None:
        yield text(faint("Only files speak of this task, so there is no transcript."))
    else:
        yield text(faint("No transcript of its own is to be had. Its parent's may tell; a recording has none."))


# Handoff and return


def handoff(view: View) -> Iterator[Block]:
    """Everything the parent gave, and how far its checklist has got."""
    attempt, run, todos = view.handed, view.task.run, view.task.todos
    if attempt is not None and attempt.handoff is not None:
        yield from _older(view, attempt, "has no handoff of its own; this is that of")
        yield from _document(view, attempt.handoff, attempt.packet)
    elif run is not None and run.prompt is not None:
        by = "a human" if run.parent_session is None else "its parent"
        yield text(faint(f"Asked by {by} in words, without a handoff packet:"))
        yield GAP
        yield from _said(view, run.prompt)
    else:
        missing = run.prompt_missing if run is not None else None
        yield text(faint(f"What was asked is not known: {plain(missing or 'no handoff was seen').plain}."))
    if todos is not None:
        yield from heading("Todos", len(todos))
        phases = [faint(f"{plain(todo.phase, 30).plain}: ") if todo.phase else Content("") for todo in todos]
        rows = [
            (in_color(looks.TODOS[todo.status]), phase + plain(todo.text))
            for todo, phase in zip(todos, phases, strict=True)
        ]
        yield Table(("", ""), rows) if rows else text(faint("the checklist is empty"))


def returned(view: View) -> Iterator[Block]:
    """Everything the child gave back, written out in the way of its contract."""
    attempt, run = view.returned, view.task.run
    if attempt is not None and attempt.returned is not None:
        yield from _older(view, attempt, "has not returned yet; this is what", " returned")
        yield from _document(view, attempt.returned, attempt.result)
    elif run is None or run.said is None:
        is_over = run is not None and run.state not in (RunState.SUBMITTED, RunState.WORKING)
        yield text(faint("It ended without an answer." if is_over else "Nothing has come back yet."))
        yield text(plain(run.reason or "" if run else ""))
    else:
        yield text(faint("Its answer follows none of the contracts; these are its words:"))
        yield GAP
        yield from _said(view, run.said)


def _older(view: View, attempt: Attempt, why: str, words: str = "") -> Iterator[Block]:
    """Say why the latest attempt is not the one that is told of, where that is so."""
    if attempt is not view.task.latest:
        yield text(faint(f"Attempt {view.task.attempt} {why} attempt {attempt.number}{words}."))
        yield GAP


def _document(view: View, version: Seen, known: Handoff | Return | None) -> Iterator[Block]:
    opened = view.opened(version)
    values = opened.model.model_dump(exclude_none=True) if opened.model else {}
    if not any(values.values()):
        words = "It cannot be read in whole; this is what was understood. The Raw tab has its text."
        yield text(faint(words if opened.text else "Its text is gone; this is what was read of it."))
        yield GAP
        values = {name: value for name in _READ_OF_IT.split() if (value := getattr(known, name, None))}
    yield from document(values)


def _said(view: View, message: Message) -> Iterator[Block]:
    """The whole of what was said in a session."""
    said = view.opened(message).text
    yield from markdown(message.opening + " …" if said is None else said)


# Attestation


class Entry(NamedTuple):
    """The entry that the cursor stands on: a claim, or what was done and not said. `call` is what was done, where a
    verdict rests on that, or where that is all there is to tell."""

    kind: str
    path: str
    lines: tuple[int, int] | None
    call: Call | None = None

    @classmethod
    def of(cls, claim: Claim) -> Entry:
        return cls(claim.kind, claim.path, claim.lines, claim.call)


def claimed(path: str, lines: tuple[int, int] | None) -> Content:
    """A foreign path, and the lines of it that are meant."""
    if lines is None:
        return plain(path)
    first, last = lines
    return plain(path) + Content(f":{first}" if first == last else f":{first}-{last}")


def verdict_line(claim: Claim) -> Content:
    """A verdict, and what it is about and rests on."""
    verdict, detail = in_color(looks.VERDICTS[claim.verdict]), faint(plain(claim.detail).plain)
    return Content.assemble(verdict, "   ", faint(claim.kind.replace("_", " ")), "   ", detail)


def attestation(view: View) -> Iterator[Block]:
    """The words of the return on itself, what the evidence says of every claim, and what nobody speaks of."""
    task, attempt = view.task, view.returned
    if attempt is None or attempt.result is None:
        yield text(faint("Nothing has come back yet, so nothing is attested."))
    else:
        yield from _older(view, attempt, "has not returned yet; this is what", " said")
        yield from _attested(task, attempt, attempt.result)
    claims = looks.claims_of(task)
    if claims:
        counts = Counter(claim.verdict for claim in claims)
        tally = [in_color(looks.VERDICTS[verdict], f"{counts[verdict]:,}") for verdict in Verdict if counts[verdict]]
        yield from heading("Claims", len(claims), Content("  ").join(tally))
        yield from map(_Claimed, claims)
    elif view.monitor.checks and attempt is task.latest is not None and not task.is_checked:
        yield from heading("Claims", note=faint("not checked yet"))
    if deeds := task.unsaid:
        yield from heading("Done and not said", len(deeds))
        yield text(faint("what this attempt did by its tools, and its return does not speak of"))
        for deed in deeds[:_SHOWN]:
            lead = Content.assemble("  ", faint(deed.kind.ljust(_DEED)))
            yield Text(plain(deed.what), lead, " " * len(lead), choice=Entry(deed.kind, deed.what, None, deed.call))
        yield from left_out(len(deeds), _SHOWN)


def _attested(task: Task, attempt: Attempt, result: Return) -> Iterator[Block]:
    """The model and mode that a return reports, and its files where they are not told among the claims."""
    if result.contract is Contract.RETURN_FORMAT:
        model, mode = model_of(result.model, attempt.run), mode_of(result.mode, attempt.packet or task.packet)
        yield from fields(("model", _reported(model)), ("mode", _reported(mode)))
    else:
        yield text(faint(f"There is no attestation in this contract ({result.contract})."))
    artifacts = result.artifacts if result.contract is not Contract.RETURN_FORMAT else ()
    files = (("artifacts", artifacts), ("created", result.files_created), ("modified", result.files_modified))
    if not task.claims:
        yield from fields(*((label, listed(paths, "none")) for label, paths in files if paths))
    yield from fields(("limits", _items(result.limitations)))


def _reported(one: Compared) -> Content:
    """A reported model or mode, and how it compares. To differ is no lie: the child itself says so."""
    if not one.reported:
        return faint("not reported")
    other = plain(one.known or "", 60) if one.agreement is Agreement.DIFFERS else ""
    return Content.assemble(plain(one.reported), "   ", _AGREEMENTS[one.agreement], other)


class _Claimed(NamedTuple):
    """A claim: verdict and path, and below them its kind and the reason."""

    claim: Claim

    def lines(self, width: int) -> Iterator[Line]:
        claim, choice = self.claim, Entry.of(self.claim)
        verdict, about = in_color(looks.VERDICTS[claim.verdict]), verdict_line(claim)
        lead = Content("  ") + verdict.pad_right(_VERDICT - verdict.cell_length)
        yield from Text(claimed(claim.path, claim.lines), lead, " " * len(lead), choice=choice).lines(width)
        yield from Text(about[len(verdict) + 3 :], Content("    "), "    ", choice=choice).lines(width)


# Findings, and the texts that they are about


def findings(view: View) -> Iterator[Block]:
    """One table for each file, the one with the worst first, and as `check` by line."""
    placed = sorted(view.task.findings, key=lambda one: one.severity is not Severity.ERROR)
    if not placed:
        if any(attempt.handoff or attempt.returned for attempt in view.task.attempts):
            yield text(Content.assemble(("✓ ", "$state-completed"), "no findings: keeps its contract"))
        else:
            yield text(faint("Nothing to check: neither a handoff nor a return of it was seen."))
        return
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for one in placed:
        by_path[one.path].append(one)
    for path, there in by_path.items():
        yield GAP
        yield text(plain(path).stylize("bold"))
        rows = [
            (
                in_color(looks.SEVERITIES[finding.severity]),
                plain(finding.rule, 20),
                Content(f"line {finding.line}") if finding.line else faint("file"),
                plain(finding.message),
            )
            for finding in sorted(there, key=lambda finding: finding.line or 0)
        ]
        yield Table(("severity", "rule", "place", "message"), rows)
    yield GAP
    yield text(faint("agentwatch rules --explain RULE says why a rule is there, with an example that keeps it"))


def raw(view: View) -> Iterator[Block]:
    """The texts: the return first, it is what is judged."""
    handed, returned = view.handed, view.returned
    if returned and returned.returned:
        yield from _text(view, "Return", returned.returned)
    if handed and handed.handoff:
        yield from _text(view, "Handoff", handed.handoff)
    if not (handed or returned):
        yield text(faint("No file speaks of this task."))


def _text(view: View, title: str, version: Seen) -> Iterator[Block]:
    source = view.opened(version).text
    if source is None:
        yield from heading(title, note=plain(version.path))
        yield text(faint("The text of this version is gone: the file was deleted or rewritten since it was read."))
        return
    # Findings count lines as editors do: a carriage return alone ends one, too.
    lines, note = clean_lines(source.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n"))
    total = note or plural(len(lines), "line")
    yield from heading(title, note=Content.assemble(plain(version.path), (f"   {total}", FAINT)))
    by_line: defaultdict[int, list[Finding]] = defaultdict(list)
    for finding in version.findings:
        by_line[finding.line or 0].append(finding)
    yield Listing(lines, language_of(source), by_line)
    yield GAP


# Attempts


def attempts(view: View) -> Iterator[Block]:
    """Every execution, the newest first, and what was changed from one to the next."""
    task, every = view.task, view.task.attempts
    if not every:
        yield text(faint("No file speaks of this task, so no attempt is known."))
    for attempt in reversed(every):
        yield GAP
        yield from _attempt(task, attempt, view.now)
    if len(every) == 1:
        yield GAP
        once = "Only one attempt is known. After a retry, what changed in the handoff and in the return is shown here."
        yield text(faint(once))
    until = every[: max(len(every) - view.back, 2)]
    yield from _changes("Handoff", view, [(one.number, _handed(one)) for one in until])
    yield from _changes("Return", view, [(one.number, _returned(one)) for one in until])


def _attempt(task: Task, attempt: Attempt, now: float) -> Iterator[Block]:
    end = times.ended_at(task, attempt)
    started = times.clock(attempt.started_at, now) if attempt.started_at is not None else "?"
    ended = times.clock(end, now) if end is not None else "not yet" if attempt.state.is_open else "-"
    state = in_color(looks.LOOKS[attempt.state])
    line = (f"{attempt.number}  ", state, f"   {started}", (" → ", FAINT), f"{ended}   ", took(task, attempt, now))
    yield text(Content.assemble(*line))
    for label, version in (("handoff", _handed(attempt)), ("return", _returned(attempt))):
        digest = version.digest[:_DIGITS] if version else "none"
        yield text(Content.assemble((f"{label:<8}", FAINT), digest), _INDENT)
    said = attempt.run.said.opening if attempt.run and attempt.run.said else None
    if summary := attempt.result.summary if attempt.result else said:
        yield text(plain(summary, 400), _INDENT)
    for decision in attempt.decisions:
        yield text(Content.assemble(("decided ", FAINT), receipt_line(decision, now)), _INDENT)
        if trouble := warning(decision, now):
            yield caution(trouble, _INDENT)


def took(task: Task, attempt: Attempt, now: float) -> Content:
    """How long an attempt took, or has been running; `-` where that is not known."""
    lasted = times.took(task, attempt, now)
    if lasted is None:
        return Content(times.duration(None))
    return Content.assemble(times.duration(lasted.seconds), (" so far" if lasted.so_far else "", FAINT))


def _handed(attempt: Attempt) -> Seen | Message | None:
    """The handoff of an attempt; if it was no packet, the words that a session store has."""
    return attempt.handoff or (attempt.run.prompt if attempt.run else None)


def _returned(attempt: Attempt) -> Seen | Message | None:
    return attempt.returned or (attempt.run.said if attempt.run else None)


def _changes(title: str, view: View, texts: Sequence[tuple[int, Seen | Message | None]]) -> Iterator[Block]:
    """The changes between the last two of these handoffs, or returns, of which each is of an attempt."""
    versions = [(number, version) for number, version in texts if version is not None]
    if len(versions) < 2:
        return
    (first, before), (second, after) = versions[-2:]
    between, content = faint(f"attempt {first} → {second}"), view.monitor.content

    def make() -> Difference | str:
        old, new = content(before), content(after)
        if old is None or new is None:
            return f"The text of attempt {first if old is None else second} is not kept any more."
        return compare(old, new)

    difference = view.later((before.digest, after.digest), make)
    if isinstance(difference, Difference) and difference.rows:
        yield from heading(title, note=Content.assemble(between, "   ", difference.counted))
        yield from difference.noted
    else:
        yield from heading(title, note=between)
        yield text(faint(difference if isinstance(difference, str) else "No line of it has changed."))


class Tab(NamedTuple):
    """A tab: its title, and the function that writes it."""

    title: str
    write: Callable[[View], Iterable[Block]]


TABS: Final = {
    "overview": Tab("Overview", overview),
    "live": Tab("Live", live),
    "handoff": Tab("Handoff", handoff),
    "return": Tab("Return", returned),
    "attestation": Tab("Attestation", attestation),
    "findings": Tab("Findings", findings),
    "attempts": Tab("Attempts", attempts),
    "raw": Tab("Raw", raw),
}
"""The tabs by their ids, in their order. One more is one more row."""
