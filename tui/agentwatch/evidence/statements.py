"""Statements of a return about commands and tests, held against the log of what was run. Pure.

The log is asked first: a clause is about the longest command in it that the log holds, and every number and quoted
literal of the clause has to stand in what that command printed. Only what shows is verified; only what cannot be true
is contradicted; of everything else the reason says what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Call, Verdict
from agentwatch.evidence.log import (
    Counts,
    Ran,
    ToolLog,
    counts_in,
    is_forgiving,
    read_counts,
    short,
    shows_faults,
    shows_result,
)
from agentwatch.evidence.shell import (
    CHECKING_NOTHING,
    LONGEST,
    LOOKING,
    Command,
    Line,
    Topic,
    checks_nothing,
    command_of,
    is_same,
    is_whole,
    may_start,
    parse_line,
    starts_nothing,
    starts_others,
    topic_of,
    words_of,
)

LONGEST_TEXT: Final = 2_000
"""Characters of a text in which statements are looked for."""
_MOST: Final = 20
_MOST_WORDS: Final = 16
"""Words of a command in a clause without ticks, and of a clause about the tests as such."""

_YES, _NO, _OPEN = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE
NOT_UNDERSTOOD: Final = "not understood"


class Held(NamedTuple):
    """A statement with its verdict, the reason, and the call it rests on."""

    text: str
    verdict: Verdict
    detail: str
    call: Call | None = None
    is_command: bool = False

    @property
    def is_understood(self) -> bool:
        return self.detail != NOT_UNDERSTOOD


class Statement(NamedTuple):
    """The parts of a clause that say something of a command, or of a kind of check where `asked` is None.

    `asked` has the whole line where that is of several commands; `place` is the directory that it leads to. `tool`
    narrows the kind of check. `shown` are the other numbers and literals. `more` is what no log shows. `fails`: it is
    said to have failed.
    """

    rest: str
    asked: Command | None = None
    place: str = ""
    topic: Topic = Topic.TESTS
    tool: str = ""
    passes: bool = False
    fails: bool = False
    exit_code: int | None = None
    counts: Counts = Counts()
    shown: tuple[str, ...] = ()
    more: str = ""

    @property
    def says_how(self) -> bool:
        return self.passes or self.fails or self.exit_code is not None or self.counts != Counts()


class Hit(NamedTuple):
    """A command that was run, and what came of it: None where that does not show. Its `words` say how it ended.

    `prints_alone`: all that the line printed is its own.
    """

    ran: Ran
    command: Command
    code: int | None
    prints_alone: bool
    directory: str

    @property
    def counts(self) -> Counts | None:
        return counts_in(self.ran.output) if self.prints_alone else None

    @property
    def is_bad(self) -> bool:
        return bool(self.code) or bool(self.counts and self.counts.failed)

    @property
    def words(self) -> str:
        counted = f" and {self.counts.words}" if self.counts is not None else ""
        ended = "an exit code that does not show" if self.code is None else f"exit code {self.code}"
        return f"`{short(self.ran.line.text)}` ended with {ended}{counted}"


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
    r"|ed)? \d+(?! (?:tests?|passed|failed))|\d[\d,]*\s+(?:\w+\s+)?suites?|suites: \d+"
    r"|neue[rn]?|nouveaux?|nouvelles?|nuev[oa]s|warnungen|avertissements?)\b|新|警告",
    re.IGNORECASE,
)
"""More is said than a log shows."""
_OTHERS: Final = re.compile(
    r"\b\d[\d,]*\s+(?:\w+\s+)?(?:checks?|commands?|builds?|linters?|projects?|changes|edits|verifications?"
    r"|results|specs)\b",
    re.IGNORECASE,
)
"""The number of something else than tests."""
_EXIT: Final = re.compile(
    r"(?:\b(?:exit(?:s|ed|ing)?(?:[ -]?(?:code|status))?|return(?:s|ed)?\s+(?:exit\s+)?(?:code|status)|rc|rückgabewert"
    r"|codes? (?:de )?(?:sortie|retour)|código de salida)|退出[代状]?[码态]|終了コード|код\w* (?:выхода|возврата))"
    r"(?:\s+(?:with|code|status|value|was|is|of|a|mit|war|est))*\s*[:=：]?\s*\(?(?P<code>-?\d{1,3}|zero|cleanly)\b"
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
_RUNS: Final = re.compile(
    r"(?:\b(?:re-?)?(?:ran|run|runs|running|executed|verified (?:with|by)|checked with|command|cmd)\b:?|\$|>"
    r"|\b(?:ausgeführt|lancé|exécuté|ejecuté|ejecutado)\b:?|运行了?|执行了?)\s+",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(r"^\W*(?:(?:re-?)?(?:run|execute)|the (?:\w+ )?command (?:is|to|for))\b", re.IGNORECASE)
_IN_FILE: Final = re.compile(r"\b(?:in|from|of|see|per) `?\S+\.(?:md|rst|txt|toml|ya?ml|json|cfg)\b")
_MADE: Final = re.compile(
    r"^\W*(?:add(?:ed|s|ing)?|wr(?:ite|ote|itten)|creat(?:e|ed|es)|fix(?:ed|es)?|updat(?:e|ed)|implement\w*"
    r"|document\w*|remov\w+"
    r"|mak(?:e|es|ing)|made|refactor\w*|chang\w+|mov\w+|renam\w+|delet\w+|support\w*|handl\w+|ensur\w+|let|allow\w*)\b",
    re.IGNORECASE,
)
_DEMANDED: Final = re.compile(
    r"\b(?:must|should|shall|has to|have to|need(?:s)? to)\b(?:\s+(?:all\s+)?be\b)?", re.IGNORECASE
)
_TOPICS: Final = (
    (
        Topic.TESTS,
        re.compile(
            r"\b(?:tests?|test[- ]?suite|suite|prüfungen|pruebas|testes|тест\w*)\b|测试|テスト|테스트", re.IGNORECASE
        ),
    ),
    (
        Topic.LINT,
        re.compile(
            r"\b(?:lint(?:er|ing|s)?|ruff|eslint|clippy|flake8|pylint|rubocop|golangci-lint|phpstan)\b", re.IGNORECASE
        ),
    ),
    (Topic.TYPES, re.compile(r"\b(?:type[- ]?check(?:s|er|ing)?|typprüfung|mypy|tsc|pyright)\b", re.IGNORECASE)),
    (Topic.BUILD, re.compile(r"\b(?:builds?|compiles|compilation|compile)\b|构建|编译|ビルド", re.IGNORECASE)),
)
_ALL: Final = re.compile(
    r"\b(?:all|every|full|whole|entire|complete|everything|alle|sämtliche|toute?s?|tous|tod[oa]s|все)\b|全|所有|すべて",
    re.IGNORECASE,
)
_NEUTRAL: Final = words_of(
    "ran run runs running re-ran rerun executed test tests suite suites spec specs output outputs result results shows"
    " show reports says all every full whole entire complete everything and with the a an of in is are was were be has"
    " have it each reported printed shown that via using by locally successfully now still again exit exits exited code"
    " status command verified checked confirmed completed complete finished final last lint linter linting type types"
    " check checker typecheck build compiles project total returned returns gives workspace repo verification"
    " validation evidence me i we after change this there on for to from at done test-suite alle die der das den laufen"
    " läuft sind ist jetzt wieder komplett gesamte les des la le tous toutes tout passent est sont suite maintenant"
    " todas todos las los el y e as os testes проходят все ruff eslint clippy mypy tsc pyright fully work works"
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
_TEST_PATH: Final = re.compile(r"\S*(?:tests?|specs?)\S*(?:/|\.\w{1,6})\Z", re.IGNORECASE)
_KIND: Final = re.compile(
    r"(?:new|unit|integration|e2e|existing|relevant|regression|affected|related|functional|smoke|acceptance"
    r"|frontend|backend)\Z"
    r"|\S*(?:tests?|specs?)\S*(?:/|\.\w{1,6})\Z",
    re.IGNORECASE,
)
"""Words by which only a part of the tests is meant."""
_PREPARING: Final = words_of("cd export source . set true : mkdir umask")
_PASSING_ON: Final = words_of("tail head tee cat")
_SILENT: Final = _PREPARING | words_of("sleep test rm cp mv touch")
_AROUND: Final = "\"'“”(„:,;"
_ONE_WORD: Final = re.compile(r"[a-z][a-z0-9+]*(?:-(?!tests?\Z)[a-z]+)?\Z")
_TELLING: Final = re.compile(r"\d|`|\bexit|\bpass|\bran?\b|\brun\b|✓|✅", re.IGNORECASE)
_PUTTING_BACK: Final = re.compile(
    r"\bgit\s+(?:-C\s+\S+\s+)?(?:stash(?!\s+(?:list|show|drop|clear))|checkout(?!\s+-[bB])|switch(?!\s+-[cC])"
    r"|restore(?!\s+--staged)|revert|reset\s+--(?:hard|merge|keep)|apply\s+(?:-R|--reverse))|\bpatch\s+-R"
)
"""With these, files become again what they were."""
_COPYING: Final = re.compile(r"\bgit\s+(?:-C\s+\S+\s+)?(?:worktree\s+add|clone)\b")
_ANSWERING: Final = re.compile(r"(?:[ef]?grep|rg|ag|diff|cmp|test|\[|pgrep|which|git diff)(?= |\Z)")
"""Of these, exit code 1 is an answer."""
_SHOWN_BY: Final = {
    Topic.BUILD: (Topic.TESTS, Topic.TYPES),
    Topic.TYPES: (Topic.BUILD, Topic.TESTS),
    Topic.LINT: (Topic.BUILD,),
}
"""Tests and checks of types compile as well, and builds may check."""
_TESTING_BUILDS: Final = words_of("make lake zig ninja cmake bazel mvn gradle sbt rake meson")
"""Programs that may test where they build."""
_NOT_BEGUN: Final = (4, 5, 126, 127, 254)
"""Of pytest, that it was called wrongly or found no test; of a shell and npm, that there is no such program."""


# The log


class LogJudge:
    """Judges what texts say of commands and tests by the log of what was done."""

    def __init__(self, log: ToolLog, workspace: str) -> None:
        self.log, self.workspace = log, workspace
        self.hits = [hit for ran in log.ran for hit in _hits_of(ran)]
        self.commands = {hit.command for hit in self.hits}
        starts = [part.argv[0] for ran in log.ran for part in ran.line.parts if part.argv]
        self.starts = {
            name.removeprefix("./") for name in (*starts, *(one.name.rpartition(" ")[2] for one in self.commands))
        } - {""}

    def judge(self, text: str, *, prose: bool = False, demanded: bool = False) -> list[Held]:
        """The statements of a text, clause by clause, with the verdicts.

        `prose`: a command in it is no claim by itself. `demanded`: it says what has to be so, and whoever says that all
        is done says this, too; what was never run is no lie then.
        """
        found: list[Held] = []
        for clause in _clauses(text[:LONGEST_TEXT]):
            words = _DEMANDED.sub(" ", clause) if demanded else clause
            statements, understood = self._read(words, prose=prose or demanded)
            shown = clause.rstrip(".")
            if not understood and not demanded:
                found.append(Held(shown, _OPEN, NOT_UNDERSTOOD))
            for one in statements:
                verdict, detail, hit = self._hold(one, demanded=demanded)
                call = hit.ran.call if hit is not None else None
                found.append(Held(shown, verdict, detail, call, one.asked is not None))
        return found[:_MOST]

    # What a clause says

    def _asked(self, line: Line) -> tuple[Command, str]:
        """The command that a line in a text names, and the directory in which that is meant."""
        wanted = [at for at, part in enumerate(line.parts) if part.argv and part.argv[0] not in _PREPARING]
        if line.plain and len(wanted) == 1:
            return command_of(line.parts[wanted[0]].words), line.directory(wanted[0], self.workspace)
        return Command((" ".join(line.text.split()),)), self.workspace

    def _is_known(self, line: Line) -> bool:
        return any(is_same(self._asked(line)[0], one) for one in self.commands)

    def _named(self, clause: str) -> tuple[list[Line], str]:
        """The commands that a clause names, in ticks or as they stand in the log, and its text without them."""
        says = _TELLING.search(_TICKED.sub(" ", clause)) is not None
        lines: list[Line] = []

        def taken(match: re.Match[str]) -> str:
            line = parse_line(match[1].strip().removeprefix("$ "))
            words = next((part.argv for part in line.parts if part.argv and part.argv[0] not in _PREPARING), ("",))
            is_called = len(words) > 1 and words[0].removeprefix("./") in self.starts
            if not (is_called or self._is_known(line) or _is_command(line, loosely=says)):
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

    def _read(self, clause: str, *, prose: bool) -> tuple[list[Statement], bool]:
        """The statements of a clause, and whether it is understood, or says nothing of commands and tests."""
        lines, rest = self._named(clause)
        outside = _TICKED.sub(" ", rest)
        counts, left = read_counts(_TIME.sub(" ", outside))
        if _HEDGED.search(outside) or _QUOTED.search(rest) or (_MADE.match(rest) and not lines):
            return [], not lines and counts.passed is None and counts.failed is None
        codes = {{"zero": "0", "cleanly": "0"}.get(word.casefold(), word) for word in _EXIT.findall(left)}
        exit_code = int(min(codes)) if codes else None
        left = _EXIT.sub(" ", left)
        told = _PASSES.search(left) is not None or counts.passed is not None or counts.failed == 0
        fails = not told and (_FAILS.search(left) is not None or bool(counts.failed))
        passes = told and not counts.failed and not exit_code
        left = _PASSES.sub(" ", left)
        spans: list[str] = _TICKED.findall(rest)
        literals = [next(filter(None, one)) for one in _LITERAL.findall(rest)]
        numbers = re.findall(_NUMERAL, _LITERAL.sub(" ", left))
        more = [match[0] for match in _MORE.finditer(outside)] + ["two exit codes"] * (len(codes) > 1)
        made = Statement(rest, None, "", Topic.TESTS, "", passes, fails, exit_code, counts)
        if lines:
            is_told = _RUNS.search(rest) is not None if prose else True
            if not made.says_how and (not is_told or _ASKED.match(clause) or _IN_FILE.search(rest)):
                return [], False
            if len(lines) > 1 and (counts != Counts() or exit_code is not None):
                return [], False
            shown = tuple(dict.fromkeys([*literals, *spans, *numbers]))
            made = made._replace(shown=shown, more=" ".join(dict.fromkeys(more)))
            asked = (self._asked(line) for line in lines)
            return [made._replace(asked=command, place=place) for command, place in asked], True
        topic, tool = next(((kind, one[0]) for kind, words in _TOPICS if (one := words.search(outside))), (None, ""))
        counted = counts.passed is not None or (counts.total is not None and counts.failed is not None)
        if topic is None and counted and (counts.total is None or counts.passed is None):
            topic = Topic.TESTS
        is_short = len(rest.split()) <= _MOST_WORDS and all(map(_TEST_PATH.match, spans))
        if topic is None or not (passes or counted) or not is_short:
            return [], counts.passed is None and counts.failed is None
        words = re.findall(r"[A-Za-zÀ-ÿ][\w'./-]*", _TICKED.sub(" ", left))
        strange = [one for one in words if one.casefold().rstrip(".'") not in _NEUTRAL | self.starts]
        others = [match[0] for match in _OTHERS.finditer(outside)]
        more = [*more, *spans, *strange, *numbers, *others]
        tool = "" if topic in (Topic.TESTS, Topic.BUILD) or tool[:3].casefold() in ("lin", "typ") else tool.casefold()
        return [made._replace(topic=topic, tool=tool, more=" ".join(dict.fromkeys(more)))], True

    # Verdicts

    def _hold(self, statement: Statement, *, demanded: bool) -> _Judged:
        verdict, detail, hit = (
            self._of_command(statement, statement.asked) if statement.asked else self._of_topic(statement)
        )
        if verdict is _NO and demanded and hit is None:
            return _OPEN, detail, hit
        if verdict is _NO and hit is not None and (why := self._other_version(hit)):
            return _OPEN, f"{detail}; but {why}", hit
        if verdict is _YES and hit is not None:
            if self.log.is_partial:
                return _OPEN, f"{detail}, but {self.log.gap}", hit
            later = [one for one in self.log.changes() if one.over_at > hit.ran.at and one.call != hit.ran.call]
            if later:
                change = next((one for one in later if one.path), later[0])
                return _OPEN, f"outdated: {detail}; after that {change.words}", hit
        return verdict, detail, hit

    def _other_version(self, bad: Hit) -> str:
        """Why a bad run may be of files as they are no more, "" where it is not."""
        ran = bad.ran
        if any(_PUTTING_BACK.search(one.line.text[:LONGEST]) for one in self.log.ran if one.at >= ran.at):
            return "files were put back after that"
        copied = any(_COPYING.search(one.line.text[:LONGEST]) for one in self.log.ran)
        if bad.directory != self.workspace and copied:
            return "it may have been run in another copy"
        good = [one.ran.at for one in self.hits if one.command.name == bad.command.name and not one.is_bad]
        good = [at for at in good if at < ran.at]
        changed = [one.call.at for one in self.log.changes()]
        is_between = good and changed[-1:] > [ran.at] and any(good[-1] < at <= ran.at for at in changed)
        return "it was good before, and files were changed after that" if is_between else ""

    def _of_command(self, statement: Statement, asked: Command) -> _Judged:
        same = [hit for hit in self.hits if is_same(asked, hit.command)]
        if not same:
            return self._not_found(statement, asked)
        words = {word.strip("`'\"(),:;./") for word in statement.rest.split()}
        places = {statement.place, *(f"{self.workspace}/{word}" for word in words)}
        here = [hit for hit in same if hit.directory in places or hit.command.box]
        if not here:
            return _OPEN, f"it was run, but in {same[-1].directory or 'a directory that is not told'}", same[-1]
        verdict, detail, hit = _hold_hit(statement, here[-1])
        if verdict is _NO and any(_bears_out(statement, one) for one in same):
            return _OPEN, f"{detail}; an earlier run ended as is said", hit
        if verdict is _NO and any(ran.at > here[-1].ran.at and _is_program(ran, asked) for ran in self.log.ran):
            return _OPEN, f"{detail}; something like it was run after that", hit
        return verdict, detail, hit

    def _not_found(self, statement: Statement, asked: Command) -> _Judged:
        """No command that was run is the one that is named."""
        if like := [hit for hit in self.hits if hit.command.program == asked.program]:
            last, count = like[-1], len(asked.words)
            is_part = last.command.words[:count] == asked.words
            more = (
                f"it covers only {' '.join(last.command.words[count:])}" if is_part else "it was not run as it is named"
            )
            return _OPEN, f"{last.words}; {more}", last
        if self.log.gap:
            return _OPEN, f"it is not in the log, but {self.log.gap}", None
        if maybe := [ran for ran in self.log.ran if _may_be(ran, asked)]:
            text = f"it was not run as it is named; `{short(maybe[-1].line.text)}` may be it"
            return _OPEN, text, next((hit for hit in self.hits if hit.ran is maybe[-1]), None)
        name = asked.name.split(" ")[0]
        if self.log.looked and LOOKING.match(name):
            return _OPEN, "it is not in the log, but files were looked at by other tools than a shell", None
        return _NO, f"never run{self._printed(statement)}", None

    def _printed(self, statement: Statement) -> str:
        """The command that only printed a result that is claimed."""
        said = statement.counts.passed
        likely = (ran for ran in self.log.ran if said is not None and str(said) in ran.output)
        ran = next((ran for ran in likely if (found := counts_in(ran.output)) and found.passed == said), None)
        return f"; `{short(ran.line.text)}` printed these words" if ran is not None else ""

    def _of_topic(self, statement: Statement) -> _Judged:
        """The tests, or another kind of check, as such."""
        topic, said, is_plain = statement.topic, statement.counts, statement.passes and not statement.more
        hits = [hit for hit in self.hits if topic_of(hit.command) is topic and not checks_nothing(hit.command)]
        hits = [hit for hit in hits if statement.tool in " ".join(hit.command.words)]
        vague = [ran for ran in self.log.ran if _is_vague(ran, topic)]
        if not hits:
            return self._never_checked(statement, vague)
        last = hits[-1]
        if any(hit.command.odd or not f"{hit.directory}/".startswith(f"{self.workspace}/") for hit in hits):
            return _OPEN, f"{last.words}; it may be about something else", last
        latest = {(hit.command.name, hit.directory): hit for hit in hits}
        bad = next((hit for hit in latest.values() if hit.is_bad), None)
        if bad is not None:
            is_false = is_plain and _is_final(bad, hits, vague) and _speaks_of(said.passed, bad)
            return _NO if is_false else _OPEN, f"the last time, {bad.words}", bad
        whole = [hit for hit in hits if is_whole(hit.command) and hit.directory == self.workspace]
        if said.passed is not None or said.total is not None:
            shows = any(hit.counts is not None and hit.counts.passed == said.passed for hit in hits)
            is_part = last.directory != self.workspace or _ALL.search(statement.rest)
            if (shows and not is_part) or (last in whole and (shows or (is_plain and len(latest) == 1 and not vague))):
                return _hold_hit(statement, last)
            return _OPEN, f"the last run does not show it: {last.words}", last
        if not whole or whole[-1].is_bad or any(hit.code is None and hit.counts is None for hit in latest.values()):
            return _OPEN, f"only a part was run: {last.words}", last
        return _hold_hit(statement, whole[-1])

    def _never_checked(self, statement: Statement, vague: Sequence[Ran]) -> _Judged:
        nothing = f"no {statement.topic} is in the log"
        if self.log.gap:
            return _OPEN, f"{nothing}, but {self.log.gap}", None
        if vague:
            return _OPEN, f"{nothing}; what `{short(vague[-1].line.text)}` ran is not known", None
        if not all(map(_KIND.match, statement.more.split())):
            return _OPEN, f"{nothing}; but more is said than that: {statement.more[:80]}", None
        return _NO, f"no {statement.topic} was run{self._printed(statement)}", None


_Judged = tuple[Verdict, str, "Hit | None"]


def _hits_of(ran: Ran) -> Iterator[Hit]:
    """Every command of a line that is understood, and the whole of one of several."""
    line = ran.line
    for at, command in enumerate(ran.commands if line.plain else ()):
        code = ran.code if line.sole == at else None
        yield Hit(ran, command, code, _prints_alone(line, at), line.directory(at, ran.cwd))
    if not line.plain or len(line.parts) > 1:
        yield Hit(ran, Command((" ".join(line.text.split()),)), ran.code, True, ran.cwd)


def _prints_alone(line: Line, number: int) -> bool:
    """Whether what a line prints is what this part of it does."""
    for at, part in enumerate(line.parts):
        name = part.argv[0] if part.argv else ""
        if at == number:
            if any(not target.startswith("/dev/std") for target in part.targets):
                return False
        elif not (
            (at > number and part.joined in ("|", "|&") and name in _PASSING_ON)
            or (name == "echo" and not any(re.search(r"\d", word) for word in part.argv[1:]))
            or not name
            or name in _SILENT
        ):
            return False
    return True


def _is_program(ran: Ran, asked: Command) -> bool:
    """Whether a line runs a program, or may."""
    if not ran.line.plain or ran.hooked:
        return ran.hooked or may_start(ran.line.text, asked.name.split("/")[-1])
    return any(command.program == asked.program for command in ran.commands)


def _may_be(ran: Ran, asked: Command) -> bool:
    """Whether a command that was run may have been, or have started, the one that is named."""
    if _is_program(ran, asked) or not ran.line.plain:
        return _is_program(ran, asked)
    wanted = topic_of(asked)
    return any(
        (wanted is None or topic_of(command) in (None, wanted))
        and starts_others(command)
        and not starts_nothing(part.argv)
        for part, command in zip(ran.line.parts, ran.commands, strict=True)
    )


def _is_vague(ran: Ran, topic: Topic) -> bool:
    """Whether a command may have started such a check without being one."""
    if ran.hooked or not ran.line.plain:
        return ran.hooked or may_start(ran.line.text)
    for part, command in zip(ran.line.parts, ran.commands, strict=True):
        found = topic_of(command)
        tests = found is Topic.BUILD and topic is Topic.TESTS and command.name in _TESTING_BUILDS
        if tests or found in _SHOWN_BY.get(topic, ()) or (found is topic and checks_nothing(command)):
            return True
        if found is None and not starts_nothing(part.argv):
            return True
    return False


def _is_final(bad: Hit, hits: Sequence[Hit], vague: Sequence[Ran]) -> bool:
    """Whether nothing that was run after a bad run may be of the same, by whatever name: it has as many tests."""
    later = (hit for hit in hits if hit.ran.at > bad.ran.at and not hit.is_bad)
    is_later = any(is_whole(hit.command) or bad.counts is None for hit in later)
    return bad.code not in _NOT_BEGUN and not is_later and not any(ran.at > bad.ran.at for ran in vague)


def _speaks_of(said: int | None, bad: Hit) -> bool:
    """A failure makes a lie of it: of a part whose failures are not counted, it may be the call that was wrong."""
    counts = bad.counts
    if said is None:
        return is_whole(bad.command) or bool(counts and counts.failed)
    return bool(counts and counts.failed and counts.passed != said and (is_whole(bad.command) or counts.total == said))


def _hold_hit(statement: Statement, hit: Hit) -> _Judged:
    """How a command ended, against how it is said to have ended."""
    code, found, said = hit.code, hit.counts, statement
    if not said.more and found is not None and (words := _differing(said, found, hit.ran.output)):
        return _NO, words, hit
    if None not in (code, said.exit_code) and code != said.exit_code:
        return _NO, f"says exit code {said.exit_code}; it ended with {code}", hit
    is_shown = said.more or (found and found.passed == said.counts.passed is not None)
    if said.passes and code and not is_shown and not _ANSWERING.match(" ".join(hit.command.words)):
        return _NO, f"it ended with exit code {code}", hit
    why = next((words for applies, words in _doubts(said, hit) if applies), "")
    return (_OPEN, why, hit) if why else (_YES, hit.words, hit)


def _differing(statement: Statement, found: Counts, output: str) -> str:
    """The first number that differs from the output, in words; "" for none."""
    said = statement.counts
    pairs = zip(said, found, ("tests", "passed", "failed", "skipped"), strict=True)
    # Whoever says how many there are may count those that were left out; and it may be quoted from one line of many.
    wrong = [
        f"{one:,} {word}"
        for one, other, word in pairs
        if None not in (one, other) and one != other and (one == 0 or not _stands(str(one), output))
        if not (word == "tests" and not _wrong_total(said, found))
        if not (word == "passed" and one == found.total and not found.failed)
    ]
    if wrong:
        return f"says {', '.join(wrong)}; its output says {found.words}"
    is_wrong = statement.passes and found.failed and said.passed is None
    return f"says that it passes; its output says {found.words}" if is_wrong else ""


def _wrong_total(said: Counts, found: Counts) -> bool:
    return said.total not in (None, found.total, found.passed, (found.passed or 0) + (found.failed or 0))


def _stands(value: str, output: str) -> bool:
    """Whether a number or a literal stands in an output."""
    value, output = (" ".join(text.split()).casefold().replace(",", "") for text in (value, output))
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", output) is not None


def _bears_out(statement: Statement, hit: Hit) -> bool:
    """Whether it failed as is said."""
    failed = statement.counts.failed
    has_failed = bool(failed) and hit.counts is not None and hit.counts.failed == failed
    return has_failed or (bool(statement.exit_code) and statement.exit_code == hit.code)


def _doubts(statement: Statement, hit: Hit) -> Iterator[tuple[object, str]]:
    """The reasons for which what is said is not shown by how a command ended, each with whether it applies."""
    ran, said, found, code, command = hit.ran, statement.counts, hit.counts, hit.code, hit.command
    topic, ended, output = topic_of(command), hit.words, ran.output
    is_line = " " in command.name and command.name == " ".join(ran.line.text.split())
    yield is_line, "it was run, but the line hides how its commands ended"
    where = "in the background, or was stopped" if ran.code is None else "in a line that hides how it ended"
    yield code is None, f"it was run {where}: its exit code is not known"
    says_bad = statement.exit_code == code or said.failed or statement.fails
    yield code and not says_bad, f"{ended}, which it does not say"
    yield statement.more, f"{ended}; but more is said than a log can show: {statement.more[:80]}"
    if found is not None:
        wrong = any(one not in (None, other) for one, other in zip(said[1:], found[1:], strict=True))
        yield wrong or _wrong_total(said, found), f"its output does not show all of it: {found.words}"
        says_all = said.passed is None and (statement.asked is None or _ALL.search(statement.rest))
        hides = (found.skipped and said.skipped is None and says_all) or (found.failed and not code and not said.failed)
        yield hides, f"{ended}, which it does not say"
    numbers = [str(one) for one in said if one] if found is None else []
    absent = [one for one in (*numbers, *statement.shown) if not _stands(one, output)]
    is_uncounted = found is None and topic is Topic.TESTS and said != Counts()
    missing = "was cut" if ran.is_cut else f"does not say {', '.join(absent)[:80]}" if absent else "does not count them"
    yield absent or is_uncounted, f"{ended}, but its output {missing}"
    is_shell = re.match(r"(?:ba|z|da)?sh -\w*c", " ".join(command.words))
    yield is_shell or checks_nothing(command), f"{ended}; with these options it checks nothing"
    if topic is Topic.TESTS:
        is_cut = ran.is_cut and found is None and statement.exit_code is not None
        yield not (found or code or is_cut or shows_result(output)), f"{ended}; it printed no result"
        yield found is not None and not found.failed and found.passed == 0, f"{ended}; no test was in it"
    faults = topic not in (None, Topic.TESTS) and statement.passes and shows_faults(output)
    yield not code and (faults or is_forgiving(output)), f"{ended}, but its output speaks of faults"


# Clauses


def _parts(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Where the parts of a text begin and end between what is found outside of ticks and brackets."""
    masked = _TICKED.sub(lambda match: "`" * len(match[0]), text)
    masked = re.sub(r"\([^()]*\)", lambda match: "(" * len(match[0]), masked)
    start = 0
    for match in pattern.finditer(masked):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _clauses(text: str) -> Iterator[str]:
    """The clauses of a text: in a sentence, a new one begins with each thing that something is said of."""
    for first, last in _parts(_SENTENCE, text):
        sentence = text[first:last]
        begins = [0]
        is_open = has_subject = False
        for start, end in _parts(_PIECE, sentence):
            piece = sentence[start:end]
            ticked = any(_is_command(parse_line(one.strip())) for one in _TICKED.findall(piece))
            words = _TICKED.sub(" ", piece)
            says = _PASSES.search(words) is not None
            is_topic = says and any(pattern.search(words) for _, pattern in _TOPICS)
            is_told = has_subject or not _TELLING.search(sentence[begins[-1] : start])
            if start and is_told and (ticked or (is_topic and not is_open)):
                begins.append(start)
                has_subject = is_open = False
            has_subject |= ticked or is_topic
            is_open = (ticked or is_open) and not says
        for start, end in zip(begins, [*begins[1:], len(sentence)], strict=True):
            if clause := sentence[start:end].strip():
                yield re.sub(r"[,，、]?(?:\s+(?:and|und|et|y|e|but))?\Z", "", clause)


def _is_command(line: Line, *, loosely: bool = False) -> bool:
    """Whether a text in ticks is a command, by its letters: any path with arguments where a result is told"
    " `loosely`."""
    part = next((one for one in line.parts if one.argv and one.argv[0] not in _PREPARING), None)
    if part is None:
        return False
    words, command = part.argv, command_of(part.words)
    if len(words) == 1:
        is_check = topic_of(command) is not None and _ONE_WORD.match(words[0]) is not None
        return is_check or re.fullmatch(r"\./(?:[\w.-]+/)*[\w-]+(?:\.sh)?", words[0]) is not None
    if topic_of(command) or CHECKING_NOTHING.match(words[0]) or words[0] in _PROGRAMS or command.name in _PROGRAMS:
        return True
    is_path = re.match(r"(?:\.{0,2}/)?[a-z][\w.+-]*/[\w./+-]*\Z|.*python\Z", words[0]) is not None
    return is_path and (loosely or any(word.startswith("-") for word in words[1:]))
