"""One command that was run, with what came of it, against what is said of it. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Call, Verdict
from agentwatch.evidence.commands.line import PREPARING, CommandLine, is_alone
from agentwatch.evidence.commands.log import Ran
from agentwatch.evidence.commands.outcomes import Counts
from agentwatch.evidence.commands.programs import Program
from agentwatch.evidence.commands.statements import Statement
from agentwatch.evidence.commands.tables import FORMATTERS, TOPICS, Topic

_YES: Final = Verdict.VERIFIED
_NO: Final = Verdict.CONTRADICTED
_OPEN: Final = Verdict.UNVERIFIABLE

UNCHANGED: Final = ", and nothing was changed after that until it returned"
_PASSING_ON: Final = frozenset({"tail", "head", "tee", "cat"})
"""Behind a pipe, these leave a summary as it is."""
_SILENT: Final = PREPARING | {"sleep", "test", "rm", "cp", "mv", "touch"}
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})
_ANSWERING: Final = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "pgrep", "which"})
_LISTING: Final = (("gofmt",), ("goimports",))
"""They name what they find, and end well all the same."""
_NOT_BEGUN: Final = (4, 5, 126, 127, 254)
"""Of pytest, that it was called wrongly or found no test; of a shell, that there is no such program; of npm, that there
is no package."""
_HARMLESS: Final = re.compile(
    r"[\W\d_]+|\b(?:examples?|files?|compiled|checked|modules?|packages?|total|targets?|assertions?|seconds?|runs?|source"
    r"|failures?|expectations?|executed|tests?)\b",
    re.IGNORECASE,
)


class Held(NamedTuple):
    """A verdict with its reason, and the call it rests on. `since`: a file that was changed after that (epoch seconds)
    makes a verified one outdated; None where none does."""

    verdict: Verdict
    detail: str
    call: Call | None = None
    since: float | None = None


class Hit(NamedTuple):
    """A part of a command that was run, and what came of that part: None where it does not show."""

    ran: Ran
    number: int
    program: Program
    code: int | None
    counts: Counts | None
    directory: str


def is_bad(hit: Hit) -> bool:
    if hit.counts is not None and hit.counts.bad is not None:
        return hit.counts.bad > 0
    return hit.code is not None and hit.code != 0


def hits_of(ran: Iterable[Ran]) -> list[Hit]:
    """Every part of every line that is understood."""
    return [
        Hit(
            one,
            number,
            found,
            one.code if is_alone(one.line, number) else None,
            one.counts if _prints_alone(one.line, number) else None,
            one.line.directory(number, posixpath.normpath(one.cwd) if one.cwd else ""),
        )
        for one in ran
        if one.line.plain
        for number, found in enumerate(one.programs)
    ]


def _prints_alone(line: CommandLine, number: int) -> bool:
    """Whether what a line prints is what this part of it does."""
    parts = line.parts
    if parts[number].hidden:
        return False
    for at, part in enumerate(parts):
        name = part.argv[0] if part.argv else ""
        passes_on = at > number and part.joined in ("|", "|&") and name in _PASSING_ON
        says_little = name == "echo" and not any(re.search(r"\d", word) for word in part.argv[1:])
        is_silent = not name or name in _SILENT or (name == "sed" and any(one.startswith("-i") for one in part.argv))
        if at != number and not (passes_on or says_little or is_silent):
            return False
    return True


def hold_hit(statement: Statement, hit: Hit) -> Held:
    """How it ended, against how it is said to have ended."""
    ran, said, found = hit.ran, statement.counts, hit.counts
    if ran.over_at is None:
        return Held(_OPEN, "it was begun, but its end is not in the transcript", ran.call)
    if found is not None and contradicts(found, statement) and not _is_summand(hit, said):
        return Held(_NO, f"says {_said(statement)}; its output says {found.words}", ran.call)
    if _differs(statement.exit_code, hit.code) and not tells_more(statement):
        return Held(_NO, f"says exit code {statement.exit_code}; it ended with {hit.code}", ran.call)
    shows_it = found is not None and said.passed is not None and found.passed == said.passed
    is_told = shows_it or statement.exit_code == hit.code or tells_more(statement) or _is_answer(hit)
    if statement.passes and hit.code and not is_told:
        return Held(_NO, f"it ended with exit code {hit.code}", ran.call)
    return _shown(statement, hit)


def has_begun(hit: Hit) -> bool:
    """Whether it was more than a call that found no program, no script or no test."""
    has_counted = hit.counts is not None and bool(hit.counts.passed or hit.counts.bad)
    return has_counted or hit.code not in _NOT_BEGUN


def _is_summand(hit: Hit, said: Counts) -> bool:
    """Whether it may be quoted from one of several lines that each count a part, as cargo has one for each crate."""
    found = hit.counts
    is_less = found is not None and said.passed is not None and said.passed < (found.passed or 0)
    return is_less and found is not None and not found.bad and hit.program.name.startswith("cargo")


def tells_more(statement: Statement) -> bool:
    """Whether more is said than that it passes, and how many: of a part, of what is left, or of something else."""
    return bool(_HARMLESS.sub("", statement.extra))


def bears_out(statement: Statement, hit: Hit) -> bool:
    """Whether it failed as is said."""
    said = statement.counts.bad
    has_failed = bool(said) and hit.counts is not None and hit.counts.bad == said
    return has_failed or (bool(statement.exit_code) and statement.exit_code == hit.code)


def _is_answer(hit: Hit) -> bool:
    """Whether an exit code other than 0 says what was asked, such as that nothing was found."""
    words = hit.ran.line.parts[hit.number].argv
    return hit.code == 1 and bool(words) and (words[0] in _ANSWERING or tuple(words[:2]) == ("git", "diff"))


def contradicts(found: Counts, statement: Statement) -> bool:
    """Whether what an output counts is not what is said of it. Of which part something is said beside does not show."""
    said = statement.counts
    # Whoever says how many there are may count those that were left out.
    is_total = said.passed == (found.passed or 0) + (found.skipped or 0) and not found.bad
    differs = (_differs(said.passed, found.passed) and not is_total) or _differs(said.bad, found.bad)
    return not statement.extra and (differs or bool(statement.passes and found.bad and said.passed is None))


def _differs(said: int | None, found: int | None) -> bool:
    return said is not None and found is not None and said != found


def _said(statement: Statement) -> str:
    return statement.counts.words or "that it passes"


def _shown(statement: Statement, hit: Hit) -> Held:
    """What is not false is verified where all of it shows."""
    ran, said, found = hit.ran, statement.counts, hit.counts
    if _differs(statement.exit_code, hit.code):
        return Held(_OPEN, f"says exit code {statement.exit_code}; the last time, {ending(hit)}", ran.call)
    if hit.code is None:
        why = "in the background, or was stopped" if ran.code is None else "in a line that hides how it ended"
        return Held(_OPEN, f"it was run {why}: its exit code is not known", ran.call)
    if not statement.says_how and hit.code != 0:
        return Held(_OPEN, f"it was run and ended with exit code {hit.code}, of which nothing is said", ran.call)
    if hit.code != 0 and statement.exit_code is None and not said.bad:
        return Held(_OPEN, f"{ending(hit)}, which it does not say", ran.call)
    if said != Counts():
        if found is None:
            why = "its output was cut" if ran.is_cut else "its output does not count them"
            return Held(_OPEN, f"it ended with exit code {hit.code}, but {why}", ran.call)
        pairs = zip(said, found, strict=True)
        if any(one is not None and one != other for one, other in pairs):
            return Held(_OPEN, f"its output does not show all of it: {found.words}", ran.call)
    if found is not None and found.bad and hit.code == 0 and not said.bad:
        return Held(_OPEN, f"its output does not show all of it: {found.words}", ran.call)
    is_general = statement.command is None and said == Counts()
    if found is not None and found.skipped and said.skipped is None and (is_general or statement.says_all):
        return Held(_OPEN, f"it ended with exit code {hit.code}, but its output says {found.words}", ran.call)
    if why := _why_open(statement, hit):
        return Held(_OPEN, f"it ended with exit code {hit.code}, but {why}", ran.call)
    if ran.forgiven and hit.code == 0:
        return Held(_OPEN, "it ended with exit code 0, but its output shows that a failure may be ignored", ran.call)
    return Held(_YES, f"{ending(hit)}{UNCHANGED}", ran.call, ran.over_at)


def _why_open(statement: Statement, hit: Hit) -> str:
    """Why the end of a command does not show what is said of it, "" where it does."""
    name, found = hit.program.name, hit.counts
    argv = hit.ran.line.parts[hit.number].argv
    if name in _SHELLS and any(word.startswith("-") and "c" in word for word in hit.program.args):
        return "that is of a line which a shell was given"
    shows = bool(hit.code) or hit.ran.is_cut or (found is not None and found.passed != 0)
    if statement.exit_code is not None and not statement.passes and statement.command is not None and shows:
        return ""
    if name in TOPICS and hit.program.topic is None:
        return "with these options it checks nothing"
    if hit.program.topic is Topic.TESTS:
        if found is None:
            return "how many tests were run does not show"
        return "no test was in it" if found.passed == 0 and not found.bad else ""
    if not statement.passes:
        return ""
    if name in FORMATTERS and not any(word.startswith("--check") for word in argv):
        return "with these options it checks nothing"
    if hit.program.topic is not None and hit.ran.faults:
        return "its output speaks of faults"
    return "it ends so also where it lists files" if argv[:1] in _LISTING else ""


def ending(hit: Hit) -> str:
    counted = f" and {hit.counts.words}" if hit.counts is not None and hit.counts.words else ""
    code = "an exit code that does not show" if hit.code is None else f"exit code {hit.code}"
    return f"`{short(hit.ran)}` ended with {code}{counted}"


def short(ran: Ran) -> str:
    text = " ".join(ran.line.text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"
