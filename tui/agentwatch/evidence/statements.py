"""Statements of a return about commands and tests, held against the log of what was run. Pure.

The log is asked first: a clause is about the longest command in it that the log holds, and every number and quoted
literal of the clause has to stand in what that command printed. Only what shows is verified; only what cannot be true
is contradicted; of everything else the reason says what is missing.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.evidence.log import Counts, Done, ToolLog, number, read_counts, short, shows_fault, shows_result
from agentwatch.evidence.shell import (
    CHECKING_NOTHING,
    LOOKING,
    RUNNERS,
    Command,
    Line,
    checks_nothing,
    command_of,
    is_same,
    is_whole,
    kind_of,
    parse_line,
    starts_nothing,
    words_of,
)

LONGEST_TEXT: Final = 2_000
_MOST: Final = 20
_MOST_WORDS: Final = 16  # words of a command in a clause without ticks, and of a clause about the tests as such

_YES, _NO, _OPEN = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE
NOT_UNDERSTOOD: Final = "not understood"


class Statement(NamedTuple):
    """A clause about commands, or about the tests as such where `lines` is empty. `shown` are the numbers and literals
    that are no counts, `more` is what no log shows."""

    rest: str
    lines: Sequence[Line] = ()
    passes: bool = False
    fails: bool = False
    exit_code: int | None = None
    counts: Counts = Counts()
    shown: tuple[str, ...] = ()
    more: str = ""


# Words

_SENTENCE: Final = re.compile(
    r";\s+(?!(?:\d[\d,]*|no|zero) (?:failed|failures?|ignored|skipped|pending|errors?|filtered))"
    r"|(?<=[\w`)%”\"])[.!?]\s+(?=[^a-zß-ÿ])|\s\|\s|\n+|[。；！]"
)
_PIECE: Final = re.compile(r",\s+|\s+(?:and|und|et|y|e|but|aber|mais|pero|while)\s+|[，、]")
_TICKED: Final = re.compile(r"`+([^`\n]{1,1000})`+")
_LITERAL: Final = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|„([^“\n]{2,200})“|«([^»\n]{2,200})»")
_HEDGED: Final = re.compile(
    r"\b(?:not|never|cannot|unable|could|would|should|shall|will|must|may|might|need(?:s)? to|ha(?:s|ve) to|expect\w*"
    r"|plan(?:s|ned)?|todo|to be|if|when|once|unless|until|before|previous\w*|earlier|baseline|initial\w*|original\w*"
    r"|parent|orchestrator|reviewer|user|ci|upstream|somebody|someone|reported by|according|assum\w+|likely|probably"
    r"|maybe|seems?|appears?|estimated|approx\w*|roughly|about|around|almost|nearly|most|some|partly|partially|except"
    r"|but for|although|pre-?existing|instead|blocked|next|used to|want\w*|try|tried|trying|attempt\w*|for example|e\.g"
    r"|tomorrow|later|future|sibling|remain\w*|flaky|timed? ?out|abort\w*|interrupted|killed|crash\w*|wip|unknown"
    r"|unclear|can|please|to (?:check|verify|confirm|reproduce|see|run)|didn|don|doesn|isn|aren|wasn|won|couldn|nicht"
    r"|nie|konnten?|sollten?|würden?|müssen|vermutlich|wahrscheinlich|etwa|ungefähr|fast|außer|bis auf|vorher|zuvor"
    r"|bisher|ne|pas|jamais|devrai\w*|pourrai\w*|environ|presque|sauf|avant|probablement|debería\w*|podría\w*|casi"
    r"|excepto|antes)\b|\bwithout (?:running|executing)|\bskipp(?:ed|ing)\s+(?:running|the|\0)|\b(?:left out|omitted)\b"
    r"|\bno (?:se|fue|pude|pudo|he|hay|corr\w+)\b|\b(?:não|non|не|nunca|niemals)\b|未(?!失败)"
    r"|没有?(?:运行|执行|跑|测试)|ません|ない|なかった"
    r"|n't\b|[~≈?？]|无法|不能|没能|未能|应该|可能|大约|大概|左右|几乎|之前|除了|尚未|还没|以外|はず|できま",
    re.IGNORECASE,
)
"""Said only perhaps, of somebody else, or of another time."""
_QUOTED: Final = re.compile(
    r"(?:\.(?:md|markdown|mdx|rst|txt|adoc|json|ya?ml|toml|html?|log)(?::\d[\d-]*)?|\b(?:readme|changelog"
    r"|contributing|makefile"
    r"|docs?|documentation|manual|guide|issue|ticket|plan|comment|handoff|packet|task|description|badge))`?\s+"
    r"(?:says?|said|states?|stated|claims?|claimed|reads?|documents?|promises?|mentions?|tells?|asks?|notes?|describes?"
    r"|recommends?|requires?|shows?|lists?)\b",
    re.IGNORECASE,
)
_MORE: Final = re.compile(
    r"\b(?:on|under|in|with|for) (?:windows|linux|macos|mac|ios|android|chrome|firefox|safari|production|staging|node"
    r"|python)\b|\b(?:windows|macos|new|newly|touched|both|platforms?|browsers?|environments?|machines?|regressions?"
    r"|idempotent|stable|determinis\w+|twice|times|consistently|offline|fast(?:er)?|slow(?:er)?|leaks?|secure"
    r"|production-ready|as expected|handles?|rejects?|accepts?|proves?|(?:confirm|show|demonstrate|verif)\w* that"
    r"|because|since|due|apart|other than|besides|bar|only|warnings?|critical|high|major|more|further|return(?:s"
    r"|ed)? \d+(?! (?:tests?|passed|failed))|\d[\d,]*\s+(?:\w+\s+)?(?:suites|checks?|commands?|builds?"
    r"|linters?|projects?|changes|edits|verifications?|results|specs)\b|suites: \d+"
    r"|neue[rn]?|nouveaux?|nouvelles?|nuev[oa]s|warnungen|avertissements?)\b|新|警告",
    re.IGNORECASE,
)
"""More is said than a log shows."""
_EXIT: Final = re.compile(
    r"(?:\b(?:exit(?:s|ed|ing)?(?:[ -]?(?:code|status))?|return(?:s|ed)?\s+(?:exit\s+)?(?:code|status)|rc|rückgabewert"
    r"|codes? (?:de )?(?:sortie|retour)|código de salida)|退出[代状]?[码态]|終了コード|код\w* (?:выхода|возврата))"
    r"(?:\s+(?:with|code|status|value|was|is|of|a|mit|war|est))*\s*[:=：]?\s*\(?(?P<code>\d{1,3}|zero)\b"
    r"(?!\s*/|\s+(?:passed|failed|tests?|errors?|warnings?))\)?",
    re.IGNORECASE,
)
_PASSES: Final = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|successful(?:ly)?|success|ok|clean(?:ly)?|compiles|builds|works"
    r"|(?:no|0|zero|without(?: any)?) (?:\w+ )?(?:errors?|issues?|problems?|failures?|findings|complaints|offenses"
    r"|violations)|bestanden|bestehen|erfolgreich|fehlerfrei|grün|sauber|durch(?:gelaufen)?|passent?|réussi\w*"
    r"|vert[es]?|succès|sans (?:aucune )?erreurs?|pasan|pasa|pasaron|pasó|verde|éxito|sin errores|passam|passou"
    r"|passaram|sucesso|успешно|проходят|прошли)\b"
    r"|[\u2713\u2705\u2714]|通过|成功|正常|合格|パス|통과",
    re.IGNORECASE,
)
_FAILS: Final = re.compile(
    r"\b(?:fail(?:s|ed|ing)?|red|broken|fehlgeschlagen|schlägt fehl|échoue|échoué|falla|falló)\b|失败", re.IGNORECASE
)
_TESTS: Final = re.compile(
    r"\b(?:tests?|test[- ]?suite|suite|prüfungen|pruebas|testes|тест\w*)\b|测试|テスト|테스트", re.IGNORECASE
)
_CHECKS: Final = re.compile(
    rf"{_TESTS.pattern}|\b(?:lint(?:er|ing|s)?|ruff|eslint|clippy|flake8|pylint|rubocop|golangci-lint|phpstan"
    r"|type[- ]?check(?:s|er|ing)?|typprüfung|mypy|tsc|pyright|builds?|compiles|compilation|compile)\b|构建|编译",
    re.IGNORECASE,
)
"""With one of these begins what is said of something else."""
_ALL: Final = re.compile(
    r"\b(?:all|every|full|whole|entire|complete|everything|alle|sämtliche|toute?s?|tous|tod[oa]s|все)\b|全|所有|すべて",
    re.IGNORECASE,
)
_NEUTRAL: Final = words_of(
    "ran run runs running re-ran rerun executed test tests suite suites spec specs output outputs result results shows"
    " show reports says all every full whole entire complete everything and with the a an of in is are was were be has"
    " have it each reported printed shown that via using by locally successfully now still again exit exits exited code"
    " status command verified checked confirmed completed complete finished final last project"
    " total returned returns gives workspace repo verification"
    " validation evidence me i we after change this there on for to from at done test-suite alle die der das den laufen"
    " läuft sind ist jetzt wieder komplett gesamte les des la le tous toutes tout passent est sont suite maintenant"
    " todas todos las los el y e as os testes проходят все fully work works"
)
_TIME: Final = re.compile(
    r"\(?\b(?:in|after|took|nach|en)?\s*\d+(?:[.,]\d+)?\s*(?:ms|s|sec|secs|seconds|sekunden|secondes|秒|m|min"
    r"|minutes)\b\)?",
    re.IGNORECASE,
)
_PROGRAMS: Final = words_of(
    "python python3 node bash sh docker docker-compose podman npm npx pnpm yarn bun bunx cargo go mvn gradle uv"
    " uvx poetry pip ruby bundle rake rails php composer artisan dotnet java javac deno make cmake ninja ctest"
    " meson bazel gh just task tox nox turbo nx swift zig mix sbt kubectl helm terraform psql sqlite3 git rustc"
    " gcc g++ clang perl lua julia Rscript"
)
_NUMERAL: Final = r"(?<![\w.#/-])\d[\d.,]*\d|(?<![\w.#/-])\d(?![\w.])|(?<![\w./-])[A-Za-z]{1,8}-?\d[\w.]*\b(?![/\w])"
_AROUND: Final = "\"'“”(„:,;"
_ONE_WORD: Final = re.compile(r"[a-z][a-z0-9+]*(?:-(?!tests?\Z)[a-z]+)?\Z")
_TELLING: Final = re.compile(r"\d|`|\bexit|\bpass|\bran?\b|\brun\b|✓|✅", re.IGNORECASE)
_PUTTING_BACK: Final = re.compile(
    r"\bgit\s+(?:-C\s+\S+\s+)?(?:stash(?!\s+(?:list|show|drop|clear))|checkout(?!\s+-[bB])|switch(?!\s+-[cC])"
    r"|restore(?!\s+--staged)|revert|reset\s+--(?:hard|merge|keep)|apply\s+(?:-R|--reverse)|worktree\s+add|clone)"
    r"|\bpatch\s+-R"
)
"""With these, files become again what they were, or there is another copy of them."""
_TESTING_BUILDS: Final = words_of("make lake zig ninja cmake bazel mvn gradle sbt rake meson")
_NOT_BEGUN: Final = (4, 5, 126, 127, 254)
"""Of pytest, that it was called wrongly or found no test; of a shell and npm, that there is no such program."""


# The log

_Judged = tuple[Verdict, str, "Done | None"]


class LogJudge:
    """Judges what texts say of commands and tests by the log of what was done."""

    def __init__(self, log: ToolLog, workspace: str) -> None:
        self.log, self.workspace, self.ran = log, workspace, log.ran
        self.commands = {one.command for one in self.ran}
        self.starts = {one.command.name.removeprefix("./") for one in self.ran}
        self.starts |= {words[0].removeprefix("./") for one in self.ran for words in (one.parts or ())}

    def judge(self, kind: str, text: str, *, prose: bool = False) -> list[Claim]:
        """The statements of a text as claims, clause by clause. `prose`: a command in it is no claim by itself."""
        found: list[Claim] = []
        for clause in _clauses(text[:LONGEST_TEXT]):
            said = self._read(clause, prose=prose)
            claim = Claim(kind, clause.rstrip("."), _OPEN, NOT_UNDERSTOOD)
            if isinstance(said, Statement):
                judged = [self._of_command(said, line) for line in said.lines] or [self._of_tests(said)]
                found += (self._settle(claim, *one) for one in judged)
            elif said:
                found.append(claim)
        return found[:_MOST]

    # What a clause says

    def _is_known(self, line: Line) -> bool:
        return any(is_same(line.command, one) for one in self.commands)

    def _named(self, clause: str) -> tuple[list[Line], str]:
        """The commands that a clause names, in ticks or as they stand in the log, and its text without them."""
        lines: list[Line] = []

        def taken(match: re.Match[str]) -> str:
            line = parse_line(match[1].strip().removeprefix("$ "))
            if not (self._is_known(line) or _is_command(line)):
                return match[0]
            lines.append(line)
            return " \0 "

        rest = _TICKED.sub(taken, clause)
        if lines:
            return lines, rest
        found = list(re.finditer(r"[^\s`]+", clause))
        for count in range(min(_MOST_WORDS, len(found)), 0, -1):
            for first, last in zip(found, found[count - 1 :], strict=False):
                name = first[0].strip(_AROUND).removeprefix("./")
                if name not in self.starts or (count == 1 and "/" not in name):
                    continue
                span = clause[first.start() : last.end()].lstrip(_AROUND)
                line = parse_line(re.sub(r"[:,;)\"”]+\Z|(?<![./])\.\Z", "", span))
                if self._is_known(line):
                    return [line], f"{clause[: first.start()]} \0 {clause[last.end() :]}"
        return [], clause

    def _read(self, clause: str, *, prose: bool) -> Statement | bool:
        """The statement of a clause, or whether it speaks of commands or tests and is not understood."""
        lines, rest = self._named(clause)
        outside = _TICKED.sub(" ", rest)
        counts, left = read_counts(_TIME.sub(" ", outside))
        is_counted = counts.passed is not None or (counts.total is not None and counts.failed is not None)
        otherwise = bool(lines) or counts.passed is not None or counts.failed is not None
        if _HEDGED.search(outside) or _QUOTED.search(rest):
            return otherwise
        codes = set(map(number, _EXIT.findall(left)))
        exit_code = min(codes) if codes else None
        left = _EXIT.sub(" ", left)
        told = _PASSES.search(left) is not None or counts.passed is not None or counts.failed == 0
        fails = not told and (_FAILS.search(left) is not None or bool(counts.failed))
        passes = told and not counts.failed and not exit_code
        left = _PASSES.sub(" ", left)
        spans: list[str] = _TICKED.findall(rest)
        literals = ["".join(one) for one in _LITERAL.findall(rest)]
        numbers = re.findall(_NUMERAL, _LITERAL.sub(" ", left))
        more: list[str] = _MORE.findall(outside) + ["two exit codes"] * (len(codes) > 1)
        shown = (*literals, *spans, *numbers) if lines else ()
        if lines:
            says_how = passes or fails or exit_code is not None or counts != Counts()
            # Where no result is told, a bullet that is nothing but the command says that it was run.
            is_told = says_how or not (prose or re.search(r"\w", rest))
            if not is_told or (len(lines) > 1 and (counts != Counts() or exit_code is not None)):
                return True
        else:
            is_about = _TESTS.search(outside) or (is_counted and None in (counts.total, counts.passed))
            is_short = len(rest.split()) <= _MOST_WORDS
            if not (is_about and (passes or is_counted) and is_short):
                return otherwise
            words = re.findall(r"[A-Za-zÀ-ÿ][\w'./-]*", _TICKED.sub(" ", left))
            strange = [one for one in words if one.casefold().rstrip(".'") not in _NEUTRAL | self.starts]
            more += [*spans, *strange, *numbers]
        more_words = " ".join(dict.fromkeys(more))
        return Statement(rest, lines, passes, fails, exit_code, counts, shown, more_words)

    # Verdicts

    def _settle(self, claim: Claim, verdict: Verdict, detail: str, done: Done | None) -> Claim:
        """The claim with this verdict, unless the files may be others by now than when its run was."""
        changes, doubt = self.log.changes, ""
        if done is not None and verdict is _NO:
            same = (one.act.at for one in self.ran if one.command.name == done.command.name and not one.is_bad)
            good = max((at for at in same if at < done.act.at), default=math.inf)
            if any(good < one.act.at <= done.act.at for one in changes) and changes[-1].act.at > done.act.at:
                doubt = f"{detail}; but it was good before, and files were changed after that"
            if any(_PUTTING_BACK.search(one.act.what) for one in self.ran if one is not done):
                doubt = f"{detail}; but files were put back, or copied"
        elif done is not None and verdict is _YES:
            later = (one for one in changes if one.over_at > done.act.at and one is not done)
            doubt = next((f"outdated: {detail}; after that {one.change}" for one in later), "")
            doubt = f"{detail}, but {self.log.gap}" if self.log.is_partial else doubt
        call = None if done is None else done.call
        return claim._replace(verdict=_OPEN if doubt else verdict, detail=doubt or detail, call=call)

    def _of_command(self, said: Statement, line: Line) -> _Judged:
        """A command that is named."""
        asked = line.command
        same = [one for one in self.ran if is_same(asked, one.command)]
        if not same:
            return self._not_found(said, asked)
        words = {line.place, *(word.strip("`'\"(),:;./") for word in said.rest.split())}
        places = {posixpath.normpath(posixpath.join(self.workspace, word)) for word in words}
        here = [one for one in same if one.place in places]
        if not here:
            return _OPEN, f"it was run, but in {same[-1].place or 'a directory that is not told'}", same[-1]
        done = here[-1]
        verdict, detail = _weigh(said, done)
        if verdict is _NO and (said.counts.failed or said.exit_code):
            return _OPEN, f"{detail}; but it is said to have failed", done
        if verdict is _NO and any(one.act.at > done.act.at and _is_program(one, asked) for one in self.ran):
            return _OPEN, f"{detail}; something like it was run after that", done
        return verdict, detail, done

    def _not_found(self, said: Statement, asked: Command) -> _Judged:
        """No command that was run is the one that is named."""
        if like := [one for one in self.ran if one.command.program == asked.program]:
            more = like[-1].command.text.removeprefix(asked.text)
            is_part = more != like[-1].command.text and more[:1] == " "
            return _OPEN, f"{like[-1].words}; {f'it covers only{more}' if is_part else _NOT_AS_NAMED}", like[-1]
        if self.log.gap:
            return _OPEN, f"it is not in the log, but {self.log.gap}", None
        if maybe := [one for one in self.ran if _may_be(one, asked)]:
            return _OPEN, f"{_NOT_AS_NAMED}; `{short(maybe[-1].act.what)}` may be it", maybe[-1]
        if LOOKING.match(asked.name):
            return _OPEN, "it is not in the log, but there are other tools to look at files", None
        return _NO, f"never run{self._printed(said)}", None

    def _printed(self, said: Statement) -> str:
        """The command that only printed a result that is claimed."""
        passed = said.counts.passed
        printed = (one for one in self.ran if passed is not None and one.counts and one.counts.passed == passed)
        return next((f"; `{short(one.act.what)}` printed these words" for one in printed), "")

    def _of_tests(self, said: Statement) -> _Judged:
        """The tests as such."""
        is_plain = said.passes and not said.more
        tests = [one for one in self.ran if one.line and one.line.sole and kind_of(one.command) == "test"]
        tests = [one for one in tests if not checks_nothing(one.command)]
        vague = [one for one in self.ran if one not in tests and _may_test(one)]
        if not tests:
            return self._never_tested(said, vague)
        last = tests[-1]
        if any(one.command.odd or not f"{one.place}/".startswith(f"{self.workspace}/") for one in tests):
            return _OPEN, f"{last.words}; it may be about something else", last
        latest = {(one.command.text, one.place): one for one in tests}
        others = [one for one in latest.values() if one is not last]
        if any(one.is_bad or (one.code is None and one.counts is None) for one in others):
            return _OPEN, f"other tests failed, or it is not known how they ended; the last time, {last.words}", last
        whole = is_whole(last.command) and last.place == self.workspace
        if last.is_bad:
            is_final = last.code not in _NOT_BEGUN and not any(one.act.at > last.act.at for one in vague)
            failed, passed = (last.counts.failed, last.counts.passed) if last.counts is not None else (0, None)
            # Of a part whose failures are not counted, it may be the call that was wrong.
            is_lie = (
                failed or whole if said.counts.passed is None else failed and whole and passed != said.counts.passed
            )
            return _NO if is_plain and is_final and is_lie else _OPEN, f"the last time, {last.words}", last
        if not whole:
            return _OPEN, f"only a part was run: {last.words}", last
        verdict, detail = _weigh(said, last)
        if verdict is _NO and (others or vague or not is_plain):
            return _OPEN, f"the last run does not show it: {detail}", last
        return verdict, detail, last

    def _never_tested(self, said: Statement, vague: Sequence[Done]) -> _Judged:
        if self.log.gap:
            return _OPEN, f"no test is in the log, but {self.log.gap}", None
        if vague:
            return _OPEN, f"no test is in the log; what `{short(vague[-1].act.what)}` ran is not known", None
        if said.more:
            return _OPEN, f"no test is in the log; but more is said than that: {said.more[:80]}", None
        return _NO, f"no test was run{self._printed(said)}", None


_NOT_AS_NAMED: Final = "it was not run as it is named"


def _is_program(done: Done, asked: Command) -> bool:
    """Whether a line runs a program, or may."""
    return done.parts is None or any(command_of(words).program == asked.program for words in done.parts)


def _may_be(done: Done, asked: Command) -> bool:
    """Whether a line may have run the command that is named, or have started it."""
    return _is_program(done, asked) or any(
        kind == "" or (kind == kind_of(asked) and RUNNERS.match(name)) for kind, name in _starting(done)
    )


def _may_test(done: Done) -> bool:
    """Whether a line may have run tests without being known as one that does."""
    return done.parts is None or any(kind in ("", "test") or name in _TESTING_BUILDS for kind, name in _starting(done))


def _starting(done: Done) -> list[tuple[str, str]]:
    """The kinds and names of the commands of a line that may start others."""
    commands = [command_of(words) for words in done.parts or () if not starts_nothing(words)]
    return [(kind_of(command), command.name) for command in commands]


def _weigh(said: Statement, done: Done) -> tuple[Verdict, str]:
    """How a command ended, against how it is said to have ended."""
    code, output, counts, found = done.code, done.output, said.counts, done.counts or Counts()
    totals = (found.total, found.passed, (found.passed or 0) + (found.failed or 0))
    fits = (totals, *((one,) for one in found[1:]))
    rows = zip(counts, found, fits, ("tests", "passed", "failed", "skipped"), strict=True)
    unequal = [(one, other, word) for one, other, fit, word in rows if one is not None and one not in fit]
    # It may be quoted from one line of many, or count what was left out.
    wrong = [
        f"{one:,} {word}"
        for one, other, word in unequal
        if other is not None and (one == 0 or not _stands(str(one), output))
        if not (word == "passed" and one == found.total and not found.failed)
    ]
    if said.passes and found.failed and counts.passed is None:
        wrong.append("that it passes")
    if wrong and not said.more:
        return _NO, f"says {', '.join(wrong)}; its output says {found.words}"
    if None not in (code, said.exit_code) and code != said.exit_code:
        return _NO, f"says exit code {said.exit_code}; it ended with {code}"
    is_shown = said.more or (found.passed == counts.passed is not None)
    if said.passes and code and not is_shown and not LOOKING.match(done.command.name):
        return _NO, f"it ended with exit code {code}"
    kind, is_counted = kind_of(done.command), done.counts is not None
    numbers = [] if is_counted else [str(one) for one in counts if one]
    absent = [one for one in (*numbers, *said.shown) if not _stands(one, output)]
    says_all = counts.passed is None and (not said.lines or _ALL.search(said.rest))
    hides = (found.skipped and counts.skipped is None and says_all) or (found.failed and not code and not counts.failed)
    is_empty = (not (is_counted or code or shows_result(output))) or (found.passed == 0 and not found.failed)
    doubts = (
        (not (done.line and done.line.sole), "; the line hides how its commands ended"),
        (code is None, ": the line hides it, or it was in the background, or stopped"),
        (code and not (said.exit_code == code or counts.failed or said.fails), ", which it does not say"),
        (said.more, f"; but more is said than a log can show: {said.more[:80]}"),
        (is_counted and unequal, "; its output does not show all of it"),
        (hides, ", which it does not say"),
        (absent, f", but its output does not say {', '.join(absent)[:80]}"),
        (not is_counted and kind == "test" and counts != Counts(), ", but its output does not count them"),
        (checks_nothing(done.command), "; with these options it checks nothing"),
        (kind == "test" and is_empty, "; it printed no result, or no test was in it"),
        (
            not code and shows_fault(output, is_check=kind == "check" and said.passes),
            ", but its output speaks of faults",
        ),
    )
    words = next((words for applies, words in doubts if applies), None)
    return (_YES, done.words) if words is None else (_OPEN, f"{done.words}{words}")


def _stands(value: str, output: str) -> bool:
    """Whether a number or a literal stands in an output."""
    value, output = (" ".join(text.split()).casefold().replace(",", "") for text in (value, output))
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", output) is not None


# Clauses


def _parts(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Where the parts of a text begin and end between what is found outside of ticks."""
    start = 0
    for match in pattern.finditer(_TICKED.sub(lambda match: "`" * len(match[0]), text)):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _clauses(text: str) -> Iterator[str]:
    """The clauses of a text: in a sentence, a new one begins with each thing that something is said of."""
    for first, last in _parts(_SENTENCE, text):
        sentence, begin, before, has_subject = text[first:last], 0, 0, False
        for start, end in _parts(_PIECE, sentence):
            words = _TICKED.sub(" ", sentence[start:end])
            is_subject = _PASSES.search(words) is not None and _CHECKS.search(words) is not None
            is_subject |= any(_is_command(parse_line(one.strip())) for one in _TICKED.findall(sentence[start:end]))
            if start and is_subject and (has_subject or not _TELLING.search(sentence[begin:before])):
                yield sentence[begin:before].strip()
                begin = start
            has_subject |= is_subject
            before = end
        if clause := sentence[begin:].strip():
            yield clause


def _is_command(line: Line) -> bool:
    """Whether a text in ticks is a command, by its letters."""
    words = line.sole or (line.parts or ((),))[-1]
    if not words:
        return False
    command = command_of(words)
    if len(words) == 1:
        is_check = kind_of(command) and _ONE_WORD.match(words[0])
        return bool(is_check) or re.fullmatch(r"\./(?:[\w.-]+/)*[\w-]+(?:\.sh)?", words[0]) is not None
    names = {words[0], command.name}
    return kind_of(command) != "" or CHECKING_NOTHING.match(words[0]) is not None or bool(names & _PROGRAMS)
