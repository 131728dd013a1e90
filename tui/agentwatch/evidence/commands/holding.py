"""Holds what a return says of commands and tests against the log of what was done. Pure.

Only what shows is verified: it was run here, ended so, and nothing has changed since. Only what cannot be true is
contradicted: it was surely never run, or ended otherwise the last time. Everything else is unverifiable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.commands.hits import (
    UNCHANGED,
    Held,
    Hit,
    bears_out,
    contradicts,
    ending,
    has_begun,
    hits_of,
    hold_hit,
    is_bad,
    short,
)
from agentwatch.evidence.commands.line import LONGEST, PREPARING, CommandLine
from agentwatch.evidence.commands.log import Ran, ToolLog, is_document
from agentwatch.evidence.commands.programs import (
    Program,
    may_start,
    program,
    starts_others,
    surely_checks_nothing,
)
from agentwatch.evidence.commands.statements import Statement
from agentwatch.evidence.commands.tables import LOOKING, TOPICS, Topic

_YES: Final = Verdict.VERIFIED
_NO: Final = Verdict.CONTRADICTED
_OPEN: Final = Verdict.UNVERIFIABLE

_PUTTING_BACK: Final = re.compile(
    r"\bgit\s+(?:-C\s+\S+\s+)?(?:stash(?!\s+(?:list|show|drop|clear))|checkout(?!\s+-[bB])|switch(?!\s+-[cC])"
    r"|restore(?!\s+--staged)|revert|reset\s+--(?:hard|merge|keep)|apply\s+(?:-R|--reverse))|\bpatch\s+-R"
)
"""With these, files become again what they were."""
_COPYING: Final = re.compile(r"\bgit\s+(?:-C\s+\S+\s+)?(?:worktree\s+add|clone)\b")

_SHOWN_BY: Final = {
    Topic.BUILD: (Topic.TESTS, Topic.TYPES),
    Topic.TYPES: (Topic.BUILD, Topic.TESTS),
    Topic.LINT: (Topic.BUILD,),
}
"""What tests or checks types compiles as well, and what builds may check."""
_NEVER: Final = "was never run by this attempt"


def hold(statement: Statement, log: ToolLog, workspace: str, *, demanded: bool = False) -> Held:
    """The verdict on a statement. `demanded`: the handoff asks for it, and the return says no more than that all is
    done, so that what was never run is no lie."""
    held = _of_command(statement, log, workspace) if statement.command else _of_topic(statement, log, workspace)
    if held.verdict is _NO and demanded and held.call is None:
        return held._replace(verdict=_OPEN)
    if held.verdict is _NO and (why := _other_version(held, log, workspace)):
        return held._replace(verdict=_OPEN, detail=f"{held.detail}; but {why}")
    if held.verdict is _YES and statement.extra:
        more = f"{held.detail}; but more is said than a log can show: {statement.extra[:80]}"
        return Held(_OPEN, more, held.call)
    if held.verdict is _YES and log.is_partial:
        return Held(_OPEN, f"{held.detail.partition(UNCHANGED)[0]}, but {log.gap}", held.call)
    if held.verdict is _YES and held.call is not None:
        at = held.call.at
        later = [path for over, path, by in log.changes() if over > at and by != held.call and not is_document(path)]
        if later:
            what = next(filter(None, later), "")
            words = f"{what} was changed" if what else "files may have been changed"
            return Held(_OPEN, f"outdated: {held.detail.partition(UNCHANGED)[0]}, and after that {words}", held.call)
    return held


def _other_version(held: Held, log: ToolLog, workspace: str) -> str:
    """Why a run may be of files as they are no more, "" where it is not: something was put back after it; it was made
    in a copy; or there was a good run, what was changed then made it bad, and was changed once more."""
    ran = next((one for one in log.ran if one.call == held.call), None)
    if ran is None:
        return ""
    checked = next((number for number, found in enumerate(ran.programs) if found.topic is not None), 0)
    behind = [" ".join(part.words) for part in ran.line.parts[checked + 1 :]]
    later = [one.line.text[:LONGEST] for one in log.ran if one.at > ran.at]
    if any(_PUTTING_BACK.search(text) for text in (*behind, *later)):
        return "files were put back after that"
    hits = hits_of(log.ran)
    is_elsewhere = any(hit.ran is ran and hit.directory != workspace for hit in hits)
    if is_elsewhere and any(_COPYING.search(one.line.text[:LONGEST]) for one in log.ran if one.at <= ran.at):
        return "it may have been run in another copy"
    bad = {hit.program.name for hit in hits if hit.ran is ran and is_bad(hit)}
    good = [hit.ran for hit in hits if hit.ran.at < ran.at and hit.program.name in bad and not _fails(hit)]
    changed = [at for at, path, by in log.changes() if not is_document(path)]
    over_at = ran.at if ran.over_at is None else ran.over_at
    # A line that changes files and then checks them has done so when it is over.
    is_between = any(good[-1].at < at <= over_at for at in changed) if good else False
    return "it was good before, and files were changed after that" if is_between and changed[-1] > over_at else ""


# A command that is named


def _of_command(statement: Statement, log: ToolLog, workspace: str) -> Held:
    line = statement.command
    assert line is not None  # noqa: S101
    wanted = [number for number, part in enumerate(line.parts) if part.argv and part.argv[0] not in PREPARING]
    if not line.plain or len(wanted) != 1:
        return _of_whole_line(statement, line, log)
    number = wanted[0]
    asked = program(line.parts[number].words)
    place = line.directory(number, workspace)
    hits = [hit for hit in hits_of(log.ran) if _is_same(asked, line.parts[number].words, hit)]
    if not hits:
        return _not_found(statement, line, asked, log)
    here = [hit for hit in hits if hit.directory == place]
    if not here:
        where = hits[-1].directory or "a directory that is not told"
        return Held(_OPEN, f"it was run, but in {where}", hits[-1].ran.call)
    hit = here[-1]
    later = [ran for ran in log.ran if ran.at > hit.ran.at and _may_be(ran, asked)]
    held = hold_hit(statement, hit)
    if held.verdict is _NO and any(bears_out(statement, one) for one in hits):
        return Held(_OPEN, f"{held.detail}; an earlier run ended as is said", hit.ran.call)
    if held.verdict is _NO and later:
        return Held(_OPEN, f"{held.detail}; something like it was run after that", hit.ran.call)
    return held


def _is_same(asked: Program, words: Sequence[str], hit: Hit) -> bool:
    found = hit.program
    if asked.name not in TOPICS or tuple(words) == hit.ran.line.parts[hit.number].words:
        return tuple(words) == hit.ran.line.parts[hit.number].words
    is_known = not asked.odd and not found.odd and asked.name == found.name and asked.topic is found.topic
    return is_known and (asked.args == found.args or (asked.is_whole and found.is_whole))


def _of_whole_line(statement: Statement, line: CommandLine, log: ToolLog) -> Held:
    """A line of several commands: only the same line is it, and its exit code that of the line."""
    said = " ".join(line.text.split())
    same = [ran for ran in log.ran if " ".join(ran.line.text.split()) == said]
    if not same:
        return _not_found(statement, line, program(line.parts[-1].words if line.parts else ()), log)
    ran = same[-1]
    if ran.over_at is None or ran.code is None:
        return Held(_OPEN, "it was run, but how it ended is not told", ran.call)
    if statement.exit_code is not None and statement.exit_code != ran.code:
        return Held(_NO, f"it ended with exit code {ran.code}", ran.call)
    if ran.counts is not None and contradicts(ran.counts, statement):
        return Held(_NO, f"its output says {ran.counts.words}", ran.call)
    if statement.passes and ran.code != 0 and line.plain and all(part.joined in ("", "&&") for part in line.parts):
        return Held(_NO, f"it ended with exit code {ran.code}", ran.call)
    return Held(_OPEN, "it was run, but the line hides how its commands ended", ran.call)


def _not_found(statement: Statement, line: CommandLine, asked: Program, log: ToolLog) -> Held:
    """No command that was run is the one that is named."""
    if log.gap:
        return Held(_OPEN, f"it is not in the log, but {log.gap}")
    like = [ran for ran in log.ran if _may_be(ran, asked)]
    if like:
        return Held(_OPEN, f"it was not run as it is named; `{short(like[-1])}` may be it", like[-1].call)
    if log.looked and all(part.argv and part.argv[0] in LOOKING - {"git"} for part in line.parts):
        return Held(_OPEN, "it is not in the log, but files were looked at by other tools than a shell")
    if statement.extra:
        return Held(_OPEN, f"it is not in the log; but more is said of it than that it was run: {statement.extra[:80]}")
    words = {part.argv[0] for part in line.parts if part.argv}
    if any(words & {part.argv[0] for part in one.parts if part.argv} for one in log.refused):
        return Held(_NO, f"it {_NEVER}: it was refused")
    return Held(_NO, f"it {_NEVER}")


def _may_be(ran: Ran, asked: Program) -> bool:
    """Whether a command that was run may have been, or have started, the one that is named."""
    names = {asked.name.split()[0]} if asked.name else set()
    if ran.hooked or not ran.line.plain:
        return ran.hooked or may_start(ran.line.text, names)
    for part, found in zip(ran.line.parts, ran.programs, strict=True):
        if found.name.split()[:1] == asked.name.split()[:1] and asked.name:
            return True
        if not surely_checks_nothing(part.argv) and starts_others(found):
            return True
    return False


# The tests, or another check, as such


def _of_topic(statement: Statement, log: ToolLog, workspace: str) -> Held:
    topic = statement.topic or Topic.TESTS
    every = hits_of(log.ran)
    hits = [hit for hit in every if hit.program.topic is topic]
    vague = [ran for ran in log.ran if _is_vague(ran, topic)]
    script = _failed_script(every, hits, vague) if topic is Topic.TESTS else None
    if script is not None and statement.passes and not statement.extra and statement.counts.passed is None:
        return Held(_NO, f"the last time, {ending(script)}", script.ran.call)
    if not hits:
        return _never_checked(topic, vague, log)
    last = hits[-1]
    if any(hit.program.odd or not _is_below(hit.directory, workspace) for hit in hits):
        return Held(_OPEN, "what was run may be about something else", last.ran.call)
    latest = {(hit.program.name, hit.directory): hit for hit in hits}
    bad = next((hit for hit in latest.values() if is_bad(hit)), None)
    # A good run after it, by whatever name, or a bad one that never began, makes no lie of what is said.
    is_last = bad is not None and not (
        any(ran.at > bad.ran.at for ran in vague)
        or any(hit.ran.at > bad.ran.at and _makes_good(hit, bad) for hit in hits)
        or not has_begun(bad)
    )
    if bad is not None and is_last and statement.passes and not statement.extra and _speaks_of(statement, bad):
        return Held(_NO, f"the last time, {ending(bad)}", bad.ran.call)
    whole = [hit for hit in hits if hit.program.is_whole and hit.directory == workspace]
    said = statement.counts
    if said.passed is not None:
        return _of_counts(statement, hits, vague, whole, workspace)
    if bad is not None:
        return Held(_OPEN, f"{ending(bad)}; what was run after that may say otherwise", bad.ran.call)
    if not whole or (is_bad(whole[-1]) and whole[-1] is not latest[whole[-1].program.name, workspace]):
        return Held(_OPEN, f"only a part was run: `{short(last.ran)}`", last.ran.call)
    if len(hits) > 1 and not has_begun(whole[-1]):
        return Held(_OPEN, f"{ending(whole[-1])}, and ran nothing", whole[-1].ran.call)
    if any(hit.code is None and hit.counts is None for hit in latest.values()):
        return Held(_OPEN, "how all that was run ended does not show", last.ran.call)
    return hold_hit(statement, whole[-1])


def _makes_good(hit: Hit, bad: Hit) -> bool:
    """Whether a good run may be of what was bad, by another name or from another directory: it has as many tests."""
    if _fails(hit):
        return False
    had = 0 if bad.counts is None else (bad.counts.passed or 0) + (bad.counts.bad or 0)
    return had == 0 or (hit.counts is not None and (hit.counts.passed or 0) >= had)


def _fails(hit: Hit) -> bool:
    """Whether a run is no good one, as far as it shows: with a doubt nothing is called a lie."""
    return bool(hit.code) or is_bad(hit)


def _failed_script(every: Sequence[Hit], hits: Sequence[Hit], vague: Sequence[Ran]) -> Hit | None:
    """What was run last, where it is no known test and counts failures: what it is does not show, that they failed
    does."""
    if not vague or (hits and hits[-1].ran.at > vague[-1].at):
        return None
    of_it = (hit for hit in every if hit.ran is vague[-1] and hit.counts is not None and hit.counts.bad)
    return next(of_it, None)


def _of_counts(
    statement: Statement, hits: Sequence[Hit], vague: Sequence[Ran], whole: Sequence[Hit], workspace: str
) -> Held:
    """So many tests are said to have passed, without a command."""
    last, said = hits[-1], statement.counts
    showing = [hit for hit in hits if hit.counts is not None and hit.counts.passed == said.passed]
    if showing and showing[-1] is last:
        if last.directory != workspace or (statement.says_all and not last.program.is_whole):
            return Held(_OPEN, f"only a part was run: `{short(last.ran)}`", last.ran.call)
        return hold_hit(statement, last)
    one_kind = len({(hit.program.name, hit.directory) for hit in hits}) == 1
    known = last.counts is not None and last.counts.passed is not None
    if known and not showing and not vague and one_kind and whole and whole[-1] is last and not statement.extra:
        return hold_hit(statement, last)
    return Held(_OPEN, f"the last run of tests does not show it: {ending(last)}", last.ran.call)


def _never_checked(topic: Topic, vague: Sequence[Ran], log: ToolLog) -> Held:
    what = {Topic.TESTS: "no test", Topic.LINT: "no linter", Topic.TYPES: "no type checker"}.get(topic, "no build")
    if log.gap:
        return Held(_OPEN, f"{what} is in the log, but {log.gap}")
    if vague:
        return Held(_OPEN, f"{what} is in the log; what `{short(vague[-1])}` ran is not known", vague[-1].call)
    is_refused = any(program(part.words).topic is topic for line in log.refused for part in line.parts)
    return Held(_NO, f"{what} was run by this attempt{': it was refused' if is_refused else ''}")


def _is_vague(ran: Ran, topic: Topic) -> bool:
    """Whether a command may have started such a check without being one."""
    if ran.hooked or not ran.line.plain:
        return ran.hooked or may_start(ran.line.text, ())
    if any(found.topic in _SHOWN_BY.get(topic, ()) for found in ran.programs):
        return True
    return any(
        found.topic is not topic and starts_others(found) and not surely_checks_nothing(part.argv)
        for part, found in zip(ran.line.parts, ran.programs, strict=True)
    )


def _speaks_of(statement: Statement, bad: Hit) -> bool:
    """A failure makes a lie of it: of a part whose failures are not counted, it may be the call that was wrong."""
    if statement.counts.passed is not None:
        told = bad.counts
        return bool(told and told.bad and told.passed != statement.counts.passed and bad.program.is_whole)
    return bad.program.is_whole or (bad.counts is not None and bool(bad.counts.bad))


def _is_below(directory: str, workspace: str) -> bool:
    return directory == workspace or directory.startswith(f"{workspace}/")
