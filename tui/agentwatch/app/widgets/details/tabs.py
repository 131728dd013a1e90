"""The tabs of the details: each is a function from a task to blocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from textual.content import Content

from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.markdown_safe import FAINT, Line, Text, markdown
from agentwatch.app.widgets.cells import left
from agentwatch.app.widgets.details.blocks import (
    GAP,
    Block,
    Column,
    Field,
    Table,
    caution,
    faint,
    field,
    fields,
    gist,
    heading,
    in_color,
    left_out,
    listed,
    plain,
    rich_fields,
    rich_list,
    section,
    text,
)
from agentwatch.app.widgets.details.documents import attestation as attestation_fields
from agentwatch.app.widgets.details.documents import document, part
from agentwatch.app.widgets.details.source import Difference, Listing, compare, language_of
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.handoff import HandoffPacket
from agentwatch.contracts.return_format import ReturnFormat
from agentwatch.contracts.shapes import Contract, Finding, Outcome, Return, Severity
from agentwatch.delegation.claims import Call, Claim, Verdict
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Seen
from agentwatch.delegation.links import missing_artifacts
from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.delegation.task import Attempt, Basis, State, Task
from agentwatch.text import clean_lines, exact
from agentwatch.view import looks, times
from agentwatch.view.document import cost_of
from agentwatch.view.requests import request_words, standing_words, where
from agentwatch.view.words import (
    ADVICE,
    BASES,
    Agreement,
    Compared,
    decision_of,
    mode_of,
    model_of,
    plural,
    whereabouts,
    why_at,
)

ITEMS: Final = 20
"""Blockers or limitations shown in the overview; the rest is in the return."""
_WHOLE: Final = 30
"""Characters of an id or a title that the head shows whole."""
_CAN: Final = {Action.ALLOW: "allow once", Action.DENY: "deny", Action.ANSWER: "answer"}
_CONTRACTS: Final = {
    Contract.HANDOFF_PACKET: "handoff-packet (JSON)",
    Contract.RETURN_FORMAT: "return-format (Markdown)",
    Contract.SUBAGENT_RETURN: "subagent-return (JSON)",
    Contract.RETURN_META: "return-meta, a dialect of subagent-return (JSON)",
    Contract.REPORT_CONTRACT: "report-contract (JSON)",
}
_MODEL_WORDS: Final = {
    Agreement.MATCHES: "✓ as recorded",
    Agreement.DIFFERS: "! differs: recorded as ",
    Agreement.UNKNOWN: "? unverifiable: no source says",
}
"""How a reported model compares; behind the last word of DIFFERS comes the other one."""
_MODE_WORDS: Final = {
    Agreement.MATCHES: "✓ as the handoff asked",
    Agreement.DIFFERS: "! differs: the handoff asked for ",
    Agreement.UNKNOWN: "? unverifiable: the handoff names no mode",
}
_AGREEMENT_COLORS: Final = {Agreement.MATCHES: "$state-completed", Agreement.DIFFERS: "$text-warning"}
_UNATTESTED: Final = {
    Contract.SUBAGENT_RETURN: "it names artifacts, but no model, no mode and no modified files",
    Contract.RETURN_META: "it names artifacts, but no model and no mode",
    Contract.REPORT_CONTRACT: "it names no model, no mode and no files",
}
_SHOWN: Final = 100
"""Files that nobody claims that are listed."""
_VERDICT: Final = 16
_DEED: Final = 12
"""Cells of the columns with the verdicts, and with kinds of deeds."""
_FINDINGS: Final = (Column("severity"), Column("rule"), Column("place", right=True), Column("message", flexible=True))
_DIGITS: Final = 12
"""Hex digits of a digest that are shown."""
_STATE: Final = 2 + max(len(state.value) for state in State)


# Overview


def overview(view: View) -> Iterator[Block]:
    """The request, the result, the reason for the state, and the origin of a task."""
    task = view.task
    if not task.workspace:
        objective = task.packet.objective if task.packet else None
        if objective:
            yield Field("asked", tuple(markdown(objective)))
        elif task.packet is None and task.run is not None and task.run.prompt is not None:
            yield field("asked", gist(task.run.prompt.opening))
        else:
            none = "the handoff states no objective" if task.packet else "no handoff was seen"
            yield field("asked", faint(none))
        yield from _came_back(task)
        yield GAP
    yield from _standing(view)
    yield GAP
    yield from _provenance(view)


def _came_back(task: Task) -> Iterator[Block]:
    result = task.result
    if result is None:
        if task.run is not None and task.run.said is not None:
            yield field("answered", gist(task.run.said.opening))
        else:
            none = "nothing: no file speaks of it" if task.inferred else "nothing" if task.ended_at else "nothing yet"
            yield field("returned", faint(none))
        return
    none = "what it found is in the Return tab" if result.contract is Contract.REPORT_CONTRACT else "no summary"
    counted = [
        plural(len(items), word).replace("createds", "created").replace("modifieds", "modified")
        for items, word in (
            (result.artifacts, "artifact"),
            (result.files_created, "file created"),
            (result.files_modified, "file modified"),
        )
        if items
    ]
    summary = tuple(markdown(result.summary)) if result.summary else (text(faint(none)),)
    yield Field("returned", (*summary, *([text(faint(", ".join(counted)))] if counted else [])))
    limits = list(_items("limits", result.limitations))
    if result.outcome is Outcome.PARTIAL:
        # The part that is missing is the first thing to know of it.
        yield from limits
    yield from rich_fields(("message", result.error_message if result.error_message != result.summary else None))
    # The head has the question, with the hint.
    asked = task.question or ""
    yield from _items("blockers", [one for one in result.blockers if one not in asked], "■", "$state-blocked")
    review = result.review_reason if (result.review_reason or "") not in asked else None
    yield from rich_fields(("next", result.next_steps), ("review", review))
    if result.outcome is not Outcome.PARTIAL:
        yield from limits


def _items(label: str, items: Sequence[str], marker: str = "•", style: str = FAINT) -> Iterator[Block]:
    if items:
        yield Field(label, tuple(rich_list(items, marker, style, ITEMS, ", see Return")))


def _standing(view: View) -> Iterator[Block]:
    task, result = view.task, view.task.result
    if task.why:
        why = why_at(task, view.now)
        yield field("why", plain(why, 1_000) if task.workspace else gist(why))
    yield from fields(("answer", where(task)))
    for request in task.requests[:ITEMS]:
        words = in_color(looks.ASKS[request.kind], request_words(request)) if request.waits_for_operator else None
        can = " · ".join(_CAN[action] for action in request.actions) if request.can_answer else ""
        standing = f"{request.request_id[:8]}   {standing_words(request, view.now)}{f'   a: {can}' if can else ''}"
        yield Field("request", (text(words or plain(request_words(request))), text(faint(standing))))
    if (others := len(task.requests) - ITEMS) > 0:
        yield field("", faint(f"and {plural(others, 'other')}"))
    # A missing artifact is a false claim, too, and told as that.
    errors = _errors(task.findings) - len(missing_artifacts(task))
    if errors > 0 and task.own_state is not State.INVALID:
        words = in_color(looks.SEVERITIES[Severity.ERROR], f"{plural(errors, 'error')} in its files, see Findings")
        yield field("findings", words)
    if false := len(looks.false_claims(task)):
        yield field("claims", in_color(looks.CONTRADICTED, f"{plural(false, 'false claim')}, see Attestation"))
    if (decision := decision_of(task)) is not None:
        yield from fields(("different", decision.mitigation and decision.mitigation.replace("_", " ")))
        yield from fields(("your note", decision.note))
    if result and (result.model or result.mode):
        yield field("model", _attested(task, result))
    if result and result.confidence is not None:
        yield field("confidence", Content(f"{result.confidence:.2f}"))
    # How often it was tried, and what it asks after a failure, stands in the head.
    if (advice := ADVICE[task.retry.recommended]) and not (task.question and task.state is State.FAILED):
        yield field("retries", Content(advice))
    if task.below and task.below.tasks:
        states = task.below.states
        some = sorted((state for state in states if states[state]), key=lambda state: -state.urgency)
        counted = [in_color(looks.LOOKS[state], f"{states[state]:,} {looks.LOOKS[state].word}") for state in some]
        yield field("below", Content("   ").join([Content(plural(sum(states.values()), "task")), *counted]))
    if holds := task.open_below:
        yield field("holds", Content(plural(holds, "task")))


def _errors(findings: Iterable[Finding]) -> int:
    return sum(finding.severity is Severity.ERROR for finding in findings)


def _attested(task: Task, result: Return) -> Content:
    """The model and mode that a return reports, and what others say where that is something else."""
    model = plain(result.model) if result.model else faint("not reported")
    mode = Content.assemble(("   mode  ", FAINT), plain(result.mode)) if result.mode else ""
    others = ((_MODEL_WORDS, model_of(result.model, task.run)), (_MODE_WORDS, mode_of(result.mode, task.packet)))
    differing = [
        Content.assemble("   ", (words[one.agreement], "$text-warning"), plain(one.known or "", 60))
        for words, one in others
        if one.agreement is Agreement.DIFFERS
    ]
    return Content.assemble(model, mode, *(differing or [faint("   (attested)")]))


def _provenance(view: View) -> Iterator[Block]:
    task, latest = view.task, view.task.latest
    yield from fields(("host", exact(task.host)))
    if task.workspace:
        yield from fields(("workspace", exact(whereabouts(task.workspace))))
        return
    # The head has them as far as there is room.
    if len(task.own_id) > _WHOLE:
        yield field("task", plain(exact(task.own_id)))
    if len(task.title) > _WHOLE and task.title not in task.own_id:
        yield field("title", gist(task.title))
    yield from fields(("contract", _CONTRACTS[task.contract] if task.contract else None))
    if task.parent_id is None or task.parent_basis is Basis.NONE:
        yield field("linked", Content(BASES[Basis.NONE]))
    else:
        # As the tree calls it: the id of a session says nothing.
        parent = view.tree.tasks.get(task.parent_id)
        own_id = parent.own_id if parent else task.parent_id
        called = gist(parent.title) if parent and parent.title not in own_id else plain(exact(own_id))
        yield field("linked", Content.assemble("below ", called, (f"   {BASES[task.parent_basis]}", FAINT)))
    session = latest.session_id if latest else None
    yield from fields(("session", session if session != task.own_id else None))
    if (run := task.run) is not None:
        yield field("source", Content.assemble(plain(run.source), faint("   in the background" * run.background)))
        if run.model:
            yield field("model", Content.assemble(plain(run.model), ("   (as recorded)", FAINT)))
        cost = cost_of(task, view.prices)
        yield from fields(
            ("tokens", f"{run.tokens:,}" if run.tokens else None),
            ("cost", None if cost is None else f"{cost:,.2f}, all attempts, by your prices"),
            ("known by", run.link),
            ("record", run.place),
        )
    if latest and latest.started_at is not None:
        yield field("took", took(task, latest, view.now))
    handed, returned = view.handed, view.returned
    for label, attempt, version in (
        ("handoff", handed, handed.handoff if handed else None),
        ("return", returned, returned.returned if returned else None),
    ):
        if attempt is not None and version is not None:
            earlier = f"   of attempt {attempt.number}" if attempt is not latest else ""
            yield field(label, Content.assemble(plain(version.path), (earlier, FAINT)))


# Live, where there is no transcript


def live(view: View) -> Iterator[Block]:
    """Why there is no transcript, and what there is instead."""
    task, run = view.task, view.task.run
    if run is None:
        yield text(faint("Only files speak of this task, so there is no transcript."))
    else:
        yield text(faint("No transcript of its own is to be had. Its parent's may tell; a recording has none."))
    instead = [
        "its checklist is in Handoff" if task.todos else "",
        "what it returned is in Return" if task.result or (run and run.said) else "",
    ]
    if words := " and ".join(filter(None, instead)):
        yield text(faint(f"{words[0].upper()}{words[1:]}."))


# Handoff and return


def handoff(view: View) -> Iterator[Block]:
    """Everything the parent gave, and how far its checklist has got."""
    attempt, run = view.handed, view.task.run
    if attempt is not None and attempt.handoff is not None:
        yield from view.older(attempt, "has no handoff of its own; this is that of")
        yield from _packet(view, attempt.handoff, attempt)
    elif run is None:
        yield text(faint("No handoff was seen: what was asked is not known."))
    elif run.prompt is None:
        missing = run.prompt_missing or "the session store does not have it"
        yield text(Content.assemble(("What was asked is not known: ", FAINT), plain(missing)))
    else:
        by = "a human" if run.parent_session is None else "its parent"
        yield text(faint(f"Asked by {by} in words, without a handoff packet:"))
        yield GAP
        yield from _said(view, run.prompt)
    if (todos := view.task.todos) is not None:
        yield from heading("Todos", len(todos))
        if not todos:
            yield text(faint("the checklist is empty"))
        rows = []
        for todo in todos:
            phase = faint(f"{plain(todo.phase, 30).plain}: ") if todo.phase else Content("")
            rows.append((in_color(looks.TODOS[todo.status]), phase + plain(todo.text)))
        yield Table((Column(""), Column("", flexible=True)), rows)


def _packet(view: View, version: Seen, attempt: Attempt) -> Iterator[Block]:
    opened, packet = view.opened(version), attempt.packet
    if opened is None:
        yield READING
    elif isinstance(opened.model, HandoffPacket):
        yield from document(opened.model)
    else:
        if opened.text is None:
            yield text(faint("The text of the handoff is gone; this is what was read of it."))
        else:
            words = "The handoff cannot be read as a packet; this is what was understood. The Raw tab has its text."
            yield text(faint(words))
        yield GAP
        if packet:
            yield from markdown(packet.objective or "")
            yield from fields(("task", packet.task_id), ("parent", packet.parent_task_id), ("mode", packet.mode))


def _said(view: View, message: Message) -> Iterator[Block]:
    """The whole of what was said in a session."""
    opened = view.opened(message)
    if opened is None:
        yield READING
    else:
        yield from markdown(message.opening + " …" if opened.text is None else opened.text)


def returned(view: View) -> Iterator[Block]:
    """Everything the child gave back, written out in the way of its contract."""
    attempt, run = view.returned, view.task.run
    if attempt is not None and attempt.returned is not None:
        yield from view.older(attempt, "has not returned yet; this is what", " returned")
        if errors := _errors(attempt.returned.findings):
            broken = f"‼ breaks its contract: {plural(errors, 'error')}, see Findings"
            yield text(Content.styled(broken, "$state-invalid"))
            yield GAP
        yield from _document(view, attempt.returned, attempt.result)
    elif run is None:
        yield text(faint("Nothing has come back yet."))
    else:
        yield from _answered(view, run)


def _answered(view: View, run: Run) -> Iterator[Block]:
    """The words of a run that follow no contract."""
    if run.said is None:
        ended = run.state not in (RunState.SUBMITTED, RunState.WORKING)
        yield text(faint("It ended without an answer." if ended else "Nothing has come back yet."))
        if run.reason:
            yield text(plain(run.reason))
    else:
        yield text(faint("Its answer follows none of the contracts; these are its words:"))
        yield GAP
        yield from _said(view, run.said)
    earlier = [one.said for one in run.rounds[:-1] if one.said is not None]
    for number, message in reversed(list(enumerate(earlier, 1))):
        yield from heading(f"Answer {number}", note=faint("in the same session, before it was sent on"))
        yield from _said(view, message)


def _document(view: View, version: Seen, result: Return | None) -> Iterator[Block]:
    opened = view.opened(version)
    if opened is None:
        yield READING
    elif opened.model is not None and any(opened.model.model_dump(exclude_none=True).values()):
        yield from document(opened.model, result.reported_state if result else None)
    else:
        if opened.text is None:
            yield text(faint("The text of the return is gone; this is what was read of it."))
        else:
            words = "The return cannot be read in whole; this is what was understood. The Raw tab has its text."
            yield text(faint(words))
        yield GAP
        if result:
            yield from fields(
                ("status", result.reported_state),
                ("summary", result.summary),
                ("error", result.error_code),
                ("message", result.error_message),
                ("hint", result.retry_hint),
                ("next", result.next_steps),
                ("agent", result.agent),
                ("session", result.session_id),
            )
            yield from section("Blockers", result.blockers)
            yield from _paths("Artifacts", result.artifacts)


def _paths(title: str, files: Sequence[str] | None) -> Iterator[Block]:
    if files:
        yield from heading(title, len(files))
        yield from listed(files, "none")


# Attestation


class Entry(NamedTuple):
    """The entry that the cursor stands on: a claim, or a changed file that no return claims, which has no kind. `call`
    is what was done, where a verdict rests on that, or where that is all there is to tell."""

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
    task = view.task
    yield from _attestation(view)
    claims = looks.claims_of(task)
    if task.claims:
        counts = Counter(claim.verdict for claim in claims)
        tally = [in_color(looks.VERDICTS[verdict], f"{counts[verdict]:,}") for verdict in Verdict if counts[verdict]]
        yield from heading("Claims", len(claims), Content("  ").join(tally))
        yield from map(_Claimed, claims)
    elif view.monitor.checks and view.returned is task.latest is not None and not task.is_checked:
        yield from heading("Claims", note=faint("not checked yet"))
    deeds = [(faint(deed.kind.ljust(_DEED)), Entry(deed.kind, deed.what, None, deed.call)) for deed in task.unsaid]
    words = "what this attempt did by its tools, and its return does not speak of"
    yield from _entries("Done and not said", words, deeds)


def _entries(title: str, why: str, entries: Sequence[tuple[Content, Entry]]) -> Iterator[Block]:
    if entries:
        yield from heading(title, len(entries))
        yield text(faint(why))
        for mark, entry in entries[:_SHOWN]:
            lead = Content("  ") + mark
            yield Text(plain(entry.path), lead, " " * len(lead), choice=entry)
        yield from left_out(len(entries), _SHOWN)


class _Claimed(NamedTuple):
    """A claim: verdict and path, and below them its kind and the reason."""

    claim: Claim

    def lines(self, width: int) -> Iterator[Line]:
        claim, choice = self.claim, Entry.of(self.claim)
        verdict, about = in_color(looks.VERDICTS[claim.verdict]), verdict_line(claim)
        lead = Content("  ") + verdict.pad_right(_VERDICT - verdict.cell_length)
        yield from Text(claimed(claim.path, claim.lines), lead, " " * len(lead), choice=choice).lines(width)
        yield from Text(about[len(verdict) + 3 :], Content("    "), "    ", choice=choice).lines(width)


def _attestation(view: View) -> Iterator[Block]:
    attempt = view.returned
    result = attempt.result if attempt else None
    if attempt is None or attempt.returned is None or result is None:
        yield text(faint("Nothing has come back yet, so nothing is attested."))
        return
    yield from view.older(attempt, "has not returned yet; this is what", " said")
    opened = view.opened(attempt.returned)
    if opened is None:
        yield READING
    elif result.contract is Contract.RETURN_FORMAT:
        # A return whose text is gone, or whose section has no header, is told from what is known of it.
        attested = opened.model.attestation if isinstance(opened.model, ReturnFormat) else None
        values = attested.model_dump() if attested else _known_attestation(result)
        if not view.task.claims:
            yield from attestation_fields(values)
            return
        # The claimed files follow among the claims.
        model, mode = values["runtime_model_reported"], values["runtime_mode_reported"]
        yield field("model", _reported(model_of(model, attempt.run), _MODEL_WORDS))
        yield field("mode", _reported(mode_of(mode, attempt.packet or view.task.packet), _MODE_WORDS))
        for label in ("created", "modified"):
            files = values[f"files_{label}"]
            none = "none" if files is not None else "not reported"
            yield field(label, Content(plural(len(files), "file")) if files else faint(none))
        yield from _items("limits", values["limitations"] or ())
    else:
        missing = _UNATTESTED[result.contract]
        yield text(faint(f"There is no attestation in this contract ({result.contract}): {missing}."))
        yield GAP
        confidence = None if result.confidence is None else f"{result.confidence:.2f}"
        yield from fields(("agent", result.agent), ("session", result.session_id), ("confidence", confidence))
        artifacts = opened.model.model_dump(exclude_none=True).get("artifacts") if opened.model else None
        yield from part("artifacts", artifacts) if artifacts else _paths("Artifacts", result.artifacts)
        yield from _paths("Files created", result.files_created)
        yield from _paths("Files modified", result.files_modified)


def _known_attestation(result: Return) -> dict[str, Any]:
    return {
        "runtime_model_reported": result.model,
        "runtime_mode_reported": result.mode,
        "files_created": result.files_created,
        "files_modified": result.files_modified,
        "limitations": result.limitations,
    }


def _reported(one: Compared, words: Mapping[Agreement, str]) -> Content:
    """A reported model or mode, and how it compares. To differ is no lie: the child itself says so."""
    if not one.reported:
        return faint("not reported")
    other = one.known or "" if one.agreement is Agreement.DIFFERS else ""
    style = _AGREEMENT_COLORS.get(one.agreement, "$text-muted")
    return Content.assemble(plain(one.reported), "   ", (words[one.agreement], style), plain(other, 60))


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
    counts = Counter(one.severity for one in placed)
    faces = [(look, counts[severity]) for severity, look in looks.SEVERITIES.items() if counts[severity]]
    yield text(Content("   ").join([in_color(look, plural(count, look.word)) for look, count in faces]))
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
        yield Table(_FINDINGS, rows)
    yield GAP
    yield text(faint("agentwatch rules --explain RULE says why a rule is there, with an example that keeps it"))


def raw(view: View) -> Iterator[Block]:
    """The texts: the return first, it is what is judged."""
    handed, returned = view.handed, view.returned
    if returned and returned.returned:
        yield from _text(view, "Return", returned.number, returned.returned)
    if handed and handed.handoff:
        yield from _text(view, "Handoff", handed.number, handed.handoff)
    if not (handed or returned):
        yield text(faint("No file speaks of this task."))


def _text(view: View, title: str, attempt: int, version: Seen) -> Iterator[Block]:
    opened = view.opened(version)
    source = opened.text if opened else None
    if source is None:
        yield from heading(title, note=plain(version.path))
        gone = "The text of this version is gone: the file was deleted or rewritten since it was read."
        yield READING if opened is None else text(faint(gone))
        return
    # Findings count lines as editors do: a carriage return alone ends one, too.
    lines, note = clean_lines(source.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n"))
    several = f"attempt {attempt}   " if len(view.task.attempts) > 1 else ""
    total = note or plural(len(lines), "line")
    yield from heading(title, note=Content.assemble(several, plain(version.path), (f"   {total}", FAINT)))
    by_line: defaultdict[int, list[Finding]] = defaultdict(list)
    for finding in version.findings:
        by_line[finding.line or 0].append(finding)
    yield Listing(lines, language_of(source), by_line)
    if note:
        yield caution(note)
    yield GAP


# Attempts

_Texts = Callable[[Attempt], "Seen | Message | None"]


def attempts(view: View) -> Iterator[Block]:
    """Every execution, the newest first, and what was changed from one to the next."""
    all_attempts = view.task.attempts
    if not all_attempts:
        yield text(faint("No file speaks of this task, so no attempt is known."))
    digits = len(str(max((attempt.number for attempt in all_attempts), default=0)))
    for attempt in reversed(all_attempts):
        yield GAP
        yield from _attempt(view.task, attempt, view.now, digits)
    if len(all_attempts) == 1:
        yield GAP
        once = "Only one attempt is known. After a retry, what changed in the handoff and in the return is shown here."
        yield text(faint(once))
    until = [attempt for attempt in all_attempts if attempt.number <= compared_attempt(view)]
    yield from _changes("Handoff", view, until, _handed)
    yield from _changes("Return", view, until, _returned)


def comparable(all_attempts: Sequence[Attempt]) -> list[int]:
    """The numbers of the attempts that have one before them, in order."""
    return [attempt.number for attempt in all_attempts[1:]]


def compared_attempt(view: View) -> int:
    """The number of the attempt that is compared with the one before."""
    numbers = comparable(view.task.attempts)
    return view.compared if view.compared in numbers else max(numbers, default=0)


def _attempt(task: Task, attempt: Attempt, now: float, digits: int) -> Iterator[Block]:
    look = looks.LOOKS[attempt.state]
    state = Content.styled(left(f"{look.glyph} {look.word}", _STATE), f"${look.color}")
    started = times.clock(attempt.started_at, now) if attempt.started_at is not None else "?"
    end = times.ended_at(task, attempt)
    ended = times.clock(end, now) if end is not None else "not yet" if attempt.state.is_open else "-"
    lasted = Content.assemble(started, (" → ", FAINT), ended, "   ", took(task, attempt, now))
    yield text(Content.assemble(f"{attempt.number:>{digits}}  ", state, "   ", lasted))
    below = digits + 2
    digests = []
    for label, version in (("handoff", _handed(attempt)), ("return", _returned(attempt))):
        digest = Content(version.digest[:_DIGITS]) if version else faint("none")
        digests.append(Content.assemble((f"{label} ", FAINT), digest))
    yield text(Content("   ").join(digests), below)
    if attempt.session_id:
        yield text(Content.assemble(("session ", FAINT), plain(attempt.session_id, 60)), below)
    said = attempt.run.said.opening if attempt.run and attempt.run.said else None
    if summary := attempt.result.summary if attempt.result else said:
        yield text(plain(summary, 400), below)
    for decision in attempt.decisions:
        yield text(Content.assemble(("decided ", FAINT), receipt_line(decision, now)), below)
        if trouble := warning(decision, now):
            yield caution(trouble, below)


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


def _changes(title: str, view: View, until: Sequence[Attempt], version_of: _Texts) -> Iterator[Block]:
    """The changes between the last two handoffs, or returns, of these attempts."""
    versions = [(attempt.number, version) for attempt in until if (version := version_of(attempt)) is not None]
    if len(versions) < 2:
        return
    (first, before), (second, after) = versions[-2:]
    between, content = faint(f"attempt {first} → {second}"), view.monitor.content
    if before.digest == after.digest:
        yield from heading(title, note=between)
        yield text(faint("The same, byte for byte."))
        return

    def make() -> Difference | str:
        texts = content(before), content(after)
        if texts[0] is None or texts[1] is None:
            return f"The text of attempt {first if texts[0] is None else second} is not kept any more."
        changes = compare(texts[0], texts[1])
        return changes if changes.rows else "They differ only in what cannot be seen, such as line breaks."

    difference = view.later((before.digest, after.digest), make)
    if isinstance(difference, Difference):
        yield from heading(title, note=Content.assemble(between, "   ", difference.counted))
        yield from difference.noted
    else:
        yield from heading(title, note=between)
        yield READING if difference is None else text(faint(difference))


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
