"""Logs of what agents did by their tools, read from transcripts, and the counts of what was printed."""

from __future__ import annotations

import math
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final, NamedTuple

from agentwatch.background import let_others_work
from agentwatch.delegation.claims import Call
from agentwatch.delegation.run import Run
from agentwatch.evidence.shell import (
    GIT_HOOKED,
    LONGEST,
    Command,
    Line,
    Words,
    changes_nothing,
    parse_line,
    words_of,
)
from agentwatch.sources.sessions.entries import Act, ActKind, Ended, Entry, acts_in
from agentwatch.sources.sessions.following import RunTranscript

_MOST: Final = 20_000  # acts of one attempt that are kept
_PRINTED: Final = 16 * 1024  # characters at the end of an output that are kept: a summary stands last
_SLACK: Final = 1.0  # seconds by which a call may stand before the beginning of its round
_LONGEST_ACT: Final = 2_000

TranscriptOf = Callable[[Run], RunTranscript | None]

_DOCUMENTS: Final = re.compile(
    r"(?:\.(?:md|markdown|mdx|rst)|\.(?:handoff|return|report)\.json|return-meta[\w.-]*\.json)\Z", re.IGNORECASE
)
_HOOKED: Final = re.compile(rf"\bgit\s(?:[^\n;&|]{{0,200}}\s)?(?:{GIT_HOOKED})\b")


def is_document(path: str) -> bool:
    """Whether a file is one that no test is about: an agent writes of its work last."""
    return _DOCUMENTS.search(path) is not None


# Counts

_PASSED: Final = (
    r"passed|passing|pass(?:es)?|succeeded|successful|success(?:es)?|green|xpassed|ok\b|bestanden|erfolgreich|grün"
    r"|réussis?|réussies?|passés?|passent|通过|成功|合格|통과|pasad[oa]s|pasan|pasaron|aprobad[oa]s|exitos[oa]s|passaram"
    r"|passando|superati|пройден\w*|прошл\w*|успешн\w*"
)
_FAILED: Final = (
    r"failed|failing|fail(?:s|ures?)?|errors?|errored|broken|fehlgeschlagen|fehler|échecs?|échou(?:é|ée|és|ées|ent)"
    r"|erreurs?|失败|失敗|错误|エラー|실패|fallos?|fallid[oa]s|fallaron|errores|falhas?|falharam|falliti|ошиб\w+|упал\w*"
)
_SKIPPED: Final = (
    r"skipped|skips?|pending|ignored|todo|xfailed|deselected|disabled|canceled|cancelled|excluded|übersprungen|ignorés?"
    r"|ignorées?|sautés?|跳过|スキップ|건너뜀|omitid[oa]s|saltad[oa]s|ignorad[oa]s|пропущен\w*"
)
_NOUN: Final = (
    r"(?:test[ -]cases?|(?:unit[ -]?|new )?tests?(?: cases?)?|examples?|specs?|runs?|scenarios?|cases"
    r"|个?(?:单元)?测试(?:用例)?|項目|件(?:のテスト)?|テスト|개(?:의 테스트)?|pruebas|essais|testes|тест\w*)"
)
_NUMBER: Final = (
    r"(?<![\w.,#-])(?<!\btest )(?<!\bcase )(?<!\bstep )(?<!\bphase )"
    r"(?:\d{1,3}(?:[,.'\u202f]\d{3})+(?!\d)|\d+)(?![\d%]|[.,]\d|\s%)"
)
_NONE: Final = r"\b(?:no|zero|keine?|aucun[e]?|sans|ning[uú]n[ao]?|nessun[ao]?)(?= )|没有|无|零"
_COUNT: Final = re.compile(
    rf"(?P<part>{_NUMBER})\s?(?:/|of|out of|von|sur|de"
    rf"|из)\s?(?P<whole>\d[\d,]*)(?:\s*{_NOUN})?(?P<good>\s*(?:{_PASSED}))?"
    rf"|out of (?P<of>\d+)"
    rf"|(?P<n>{_NUMBER}|{_NONE})\s*(?:{_NOUN}\W{{0,2}}\s*)?(?:(?:have|are|were|sind|wurden|ont|all|now|tous"
    rf"|toutes|de|全部|都|均|已|个)\s*)*(?:(?P<passed>{_PASSED})|(?P<failed>{_FAILED})"
    rf"|(?P<skipped>{_SKIPPED}))(?![A-Za-zäöüé])"
    rf"|\b(?:(?P<passed2>{_PASSED})|(?P<failed2>{_FAILED})|(?P<skipped2>{_SKIPPED})|(?:tests? run|ran|total|tests?"
    rf"|cases))[\s\]:：=|]*(?P<n2>\d[\d,]*(?:\s*tests?\b(?=\W*(?:\Z|listed)))?)"
    rf"(?![\d%]|\.\d|\s*(?:{_PASSED}|{_FAILED}|{_SKIPPED}|[a-z]))"
    rf"|(?P<n3>{_NUMBER})\s*{_NOUN}",
    re.IGNORECASE,
)
"""`64 passed`, `Failures: 0`, `12/12`, `no errors`, `Ran 12 tests`, of a claim and of an output alike."""


class Counts(NamedTuple):
    """The numbers of a summary; None where it does not say. `failed` are failures and errors together."""

    total: int | None = None
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None

    @property
    def words(self) -> str:
        pairs = ((self.passed, "passed"), (self.failed or None, "failed"), (self.skipped or None, "skipped"))
        told = [f"{count:,} {word}" for count, word in pairs if count is not None]
        return ", ".join(told) or ("none failed" if self.failed == 0 else f"{self.total:,} tests")


def number(digits: str) -> int:
    """A number as it is written in a text; words for none are 0."""
    kept = re.sub(r"\D", "", digits)
    return int(kept) if kept else 0


def read_counts(text: str) -> tuple[Counts, str]:
    """The counts of a clause or a line, and its text without them."""
    found: dict[str, int] = {}

    def read(match: re.Match[str]) -> str:
        if match["part"]:
            found["total"] = number(match["whole"])
            if match["good"]:
                found["passed"] = number(match["part"])
            elif match["part"] == match["whole"]:
                found.setdefault("passed", found["total"])
            return " "
        count = number(match["of"] or match["n"] or match["n2"] or match["n3"])
        names = (name.rstrip("2") for name, words in match.groupdict().items() if words)
        key = next((name for name in names if name in Counts._fields), "total")
        found[key] = found.get(key, 0) + count if key in ("failed", "skipped") else count
        return " "

    rest = _COUNT.sub(read, text)
    return Counts(*(found.get(key) for key in Counts._fields)), rest


_COLORS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FRAME: Final = words_of(
    "in with and test tests result results ok run ran total finished measured filtered out warnings warning"
    " assertions time took s ms m h sec secs second seconds min info summary duration executed done expectations"
    " flaky obsolete rerun all passed failed failing subtests unexpected expected listed below skipped tap cases"
    " from passing ended doctests doctest no failures failure real user sys slow fastest the were of elapsed at"
    " completed success succeeded tasks error"
)
_ADDING: Final = re.compile(r"test result: |(?:Passed|Failed)! ")
_DLL: Final = re.compile(r", Duration: .*| - \S+\.dll.*")
_ALL_WELL: Final = re.compile(r"\W*(?:OK\b(?!,)|All tests passed|SUCCESS)")
_PACKAGES: Final = re.compile(r"^(?:(ok) {2}\t(?!.*\[no tests? )|(FAIL)\t|--- (FAIL):|(panic): )", re.MULTILINE)
_LONGEST_LINE: Final = 300
_COUNTED: Final = re.compile(rf"(?i){_PASSED}|{_FAILED}|{_SKIPPED}|tests?\b|examples?\b|specs?\b|runs?\b|scenarios?\b")


@lru_cache(256)
def counts_in(output: str) -> Counts | None:
    """The counts of an output's summary; None where there is none, or several that differ."""
    groups: list[dict[str, int]] = []
    adding = True
    for printed in _COLORS.sub("", output).replace("\r", "\n").splitlines():
        line = _DLL.sub("", printed.strip())
        if len(line) > _LONGEST_LINE or not _COUNTED.search(line):
            continue
        found, rest = read_counts(line)
        values = {key: count for key, count in found._asdict().items() if count is not None}
        if (groups or values) and _ALL_WELL.match(line) and not (groups and "passed" in values):
            values.setdefault("failed", 0)
        # `No errors` counts no tests.
        is_empty = not values or (found == Counts(failed=0) and not re.search(r"\d", line))
        strange = {word.casefold().rstrip(".'/-") for word in re.findall(r"[^\W\d_][\w.'/-]*", rest)} - _FRAME
        if is_empty or strange:
            continue
        adding = adding and _ADDING.match(line) is not None
        if not groups or adding or any(groups[-1].get(key, count) != count for key, count in values.items()):
            groups.append({})
        groups[-1] |= values
    made = [_completed(one) for one in groups]
    if made and adding:
        return Counts(*(sum(one or 0 for one in values) for values in zip(*made, strict=True)))
    if made:
        return made[-1] if all(one == made[0] for one in made) else None
    packages = [match[1] for match in _PACKAGES.finditer(output)]
    return Counts(failed=packages.count(None)) if packages else None


def _completed(found: dict[str, int]) -> Counts:
    """The numbers that follow from the others: a list without failures has none."""
    total, passed, failed, skipped = (found.get(key) for key in Counts._fields)
    others = (failed or 0) + (skipped or 0)
    if passed is None and (total is None or len(found) > 1):
        passed = max(total - others, 0) if total is not None else 0
    failed = failed if failed is not None or passed is None else 0
    return Counts(total if total is not None else (passed or 0) + others, passed, failed, skipped or 0)


_RESULT: Final = re.compile(
    r"^(?:ok {2}\t|BUILD SUCCESSFUL|\[INFO\] BUILD SUCCESS|\W*congratulations :\)|.*\bSuccessfully ran targets?"
    r" |\W*Tasks: +\d+ successful"
    r"|Executed \d+ out of \d+ tests?: \d+ tests? pass|All tests passed)",
    re.MULTILINE,
)
_EMPTY: Final = re.compile(
    r"NO-SOURCE|\bno tests? (?:to run|found|ran|files|were|collected)|Tests are skipped", re.IGNORECASE
)


def shows_result(output: str) -> bool:
    """Whether a runner of tests printed in other words than counts that some were run and passed."""
    return _RESULT.search(output) is not None and _EMPTY.search(output) is None


_FAULTS: Final = re.compile(
    r"^(?:Found [1-9]\d* (?:errors?|warnings?|issues?|problems?).*|[^\w\n]*[1-9]\d* problems? \(.*|[1-9]\d* errors?, .*"
    r"|error(?:\[E\d+\])?: .*|.*: error TS\d+: .*|.*: error: .*|(?:.*[ :])?warning: .*|\[WARNING\].*"
    r"|.*\b[1-9]\d* warnings?\b.*"
    r"|.*\bError \d+ \(ignored\).*)$",
    re.MULTILINE,
)


_FORGIVING: Final = re.compile(
    r"(?i)[(\[]ignored[)\]]|\.\.\.ignoring\b|\bcontinue-on-error\b|\bnpm ERR!|\bnpm error\b"
    r"|(?:\|\||;)\s*(?:/bin/|/usr/bin/)?(?:true\b|:(?:\s|$)|exit 0\b|echo\b|printf\b)"
)
"""The words of make, npm and others for a step whose failure did not count, or of a line that hides one."""


def shows_fault(output: str, *, is_check: bool) -> bool:
    """Whether an output says that a failure was ignored, shows a command line that would hide one, or is that of a
    check that found something."""
    found = is_check and _FAULTS.search(_COLORS.sub("", output))
    return bool(found or _FORGIVING.search(output))


_GITS_OWN: Final = re.compile(r"^(?:\[.*|\s.*|\d+ files? changed.*|To .*|branch .*)$", re.MULTILINE)
_HOOK: Final = re.compile(
    r"\b(?:tests?|pass(?:ed|ing|es)?|fail(?:ed|ing|ures?)?|hooks?|husky|lefthook|lint\w*|checks?)\b"
    r"|[\u2713\u2714\u2705]",
    re.IGNORECASE,
)


# Logs


class Done(NamedTuple):
    """An act that happened; of a command, where it ran ("" where that is not told), its exit code, None where that is
    not told, and the end of its output, which may show that git ran a hook (`hooked`)."""

    act: Act
    call: Call
    line: Line | None = None
    command: Command = Command()
    place: str = ""
    code: int | None = None
    output: str = ""
    hooked: bool = False

    @property
    def counts(self) -> Counts | None:
        """The tests that its output counts."""
        return counts_in(self.output)

    @property
    def is_bad(self) -> bool:
        """It failed, or counts failures."""
        return bool(self.code) or bool(self.counts and self.counts.failed)

    @property
    def words(self) -> str:
        """How it ended."""
        counted = f" and {self.counts.words}" if self.counts is not None else ""
        ended = "an exit code that does not show" if self.code is None else f"exit code {self.code}"
        return f"`{short(self.act.what)}` ended with {ended}{counted}"

    @property
    def parts(self) -> tuple[Words, ...] | None:
        """The commands of its line, None where that may have started others."""
        return self.line.parts if self.line is not None and not self.hooked else None

    @property
    def over_at(self) -> float:
        """When it was over; of a command whose end is not known, never: it may go on in the background."""
        if self.line is not None and self.code is None:
            return math.inf
        return self.act.at if self.act.ended_at is None else self.act.ended_at

    @property
    def change(self) -> str:
        """In words, how it may have changed a file that is no document; "" where it did not."""
        kind, what = self.act.kind, self.act.what
        if kind is ActKind.WRITE:
            return "" if self.act.failed or is_document(what) else f"{what} was changed"
        # A hook may have formatted files.
        if kind is ActKind.COMMAND and not (self.parts and all(map(changes_nothing, self.parts))):
            return f"`{short(what)}` may have changed files"
        return f"{self.act.tool[:60]} may have changed files" if kind is ActKind.STRANGE else ""


class ToolLog(NamedTuple):
    """Calls in the order in which they began. `gap` says why something may have been run that is not in it, if so;
    `is_partial`: nor does anybody know what was changed."""

    done: tuple[Done, ...] = ()
    gap: str = ""
    is_partial: bool = False

    @property
    def ran(self) -> list[Done]:
        """The commands."""
        return [one for one in self.done if one.line is not None]

    @property
    def changes(self) -> list[Done]:
        """Everything that may have changed a file."""
        return [one for one in self.done if one.change]


def short(text: str) -> str:
    """A command line to quote."""
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def read_log(runs: Sequence[Run], transcript_of: TranscriptOf) -> ToolLog | None:
    """The log of the attempt whose run comes first, and of those that it asked, which follow; None where there is none.

    Blocks for as long as reading their transcripts takes.
    """
    gaps: list[str] = []
    made: list[Done] = []
    for run in runs:
        if (transcript := transcript_of(run)) is None:
            if run is runs[0]:
                return None
            gaps.append("an agent that it asked has no transcript")
            continue
        try:
            made += _of_run(run, transcript.records())
        except Exception as error:  # noqa: BLE001  what somebody else's reader gives must not end all checks
            gaps.append(f"not all of its transcript can be read ({error})")
        if len(made) > _MOST:
            gaps.append("it did too much to keep in mind")
            del made[:-_MOST]
    made.sort(key=lambda one: (one.act.at, one.act.place))
    is_partial, done = bool(gaps), tuple(one for one in made if not one.act.refused)
    strange = (one.act.tool[:60] for one in done if one.act.kind is ActKind.STRANGE)
    gaps += (f"it used {tool}, and what that does is not known" for tool in strange)
    return ToolLog(done, gaps[0] if gaps else "", is_partial)


def _of_run(run: Run, records: Iterable[tuple[int, Sequence[Entry]]]) -> Iterator[Done]:
    """The acts of a run; what its session did in rounds before or after is another attempt's."""
    since = run.started_at - _SLACK if run.rounds else -math.inf
    until = run.ended_at + _SLACK if run.rounds and run.ended_at is not None else math.inf
    resolved = cache(os.path.realpath)
    for count, act in enumerate(acts_in(records)):
        if count % 100 == 0:
            let_others_work()
        if not since <= act.at <= until:
            continue
        call = Call(run.source, run.session_id, act.place, act.answered, act.at)
        done = Done(act._replace(what=act.what[:_LONGEST_ACT], ended=None), call)
        if act.kind is ActKind.COMMAND:
            line, (code, output, _) = parse_line(act.what), act.ended or Ended(None, "")
            cwd, output = resolved(act.cwd) if act.cwd else "", output[-_PRINTED:]
            done = done._replace(
                line=line,
                command=line.command,
                place=posixpath.normpath(posixpath.join(cwd, line.place)) if cwd or line.place[:1] == "/" else "",
                code=None if line.hides else code,
                output=output,
                hooked=bool(_HOOKED.search(line.text[:LONGEST]) and _HOOK.search(_GITS_OWN.sub("", output))),
            )
        yield done


class WorkspaceLogs:
    """The changes that the logs of a workspace's runs show, each log read again only where its run is another."""

    def __init__(self, runs: Callable[[], Iterable[Run]], transcript_of: TranscriptOf) -> None:
        self._runs, self._transcript_of = runs, transcript_of
        self._changes: dict[tuple[str, str], tuple[Run, list[Done] | None]] = {}

    def changed(self, own: Iterable[Run], since: float, until: float | None) -> str:
        """Changes by other than the `own` runs in a span of time, in words; "" for none."""
        mine = {run.session for run in own}
        last = math.inf if until is None else until
        for run in self._runs():
            is_over = run.ended_at is not None and max(run.ended_at, run.updated_at) < since
            if run.session in mine or is_over or run.started_at > last:
                continue
            known = self._changes.get(run.session)
            if known is None or known[0] != run:
                log = read_log([replace(run, rounds=())], self._transcript_of)
                changes = None if log is None or log.is_partial else [one._replace(output="") for one in log.changes]
                known = self._changes[run.session] = run, changes
            if known[1] is None:
                return "another agent was at work, and no log tells what it did"
            # A command may have changed a file at any time until it was over.
            for one in known[1]:
                if one.act.at <= last and one.over_at > since:
                    return f"another agent: {one.change}"
        return ""
