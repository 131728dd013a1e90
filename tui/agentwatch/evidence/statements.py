"""Statements of a return about commands and tests, held against the log of what was run. Pure.

The log is asked first: a clause is about the longest command in it that the log holds, and every number and quoted
literal of the clause has to stand in what that command printed. Only what shows is verified; only what cannot be true
is contradicted; of everything else the reason says what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Call, Deed, Verdict
from agentwatch.delegation.run import Run
from agentwatch.evidence.log import (
    Counts,
    Ran,
    ToolLog,
    WorkspaceLogs,
    counts_in,
    number,
    read_counts,
    read_log,
    short,
    shows_faults,
    shows_result,
)
from agentwatch.evidence.shell import (
    DOING,
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
from agentwatch.evidence.unsaid import unsaid_in

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
    """The parts of a clause that say something of a command, or of a kind of check where `line` is None.

    `shown` are the other numbers and literals in it. `more` is what else is said, which no log shows. `fails`: it is
    said to have failed.
    """

    text: str
    rest: str
    line: Line | None = None
    topic: Topic | None = None
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


# Words

_SENTENCE: Final = re.compile(
    r";\s+(?!(?:\d[\d,]*|no|zero) (?:failed|failures?|ignored|skipped|pending|errors?|filtered))|(?<=[\w`)%”\"])[.!?]\s+(?=[^a-zß-ÿ])|\s\|\s|\n+|[。；！]"
)
_PIECE: Final = re.compile(r",\s+|\s+(?:and|und|et|y|e|but|aber|mais|pero|while)\s+|[，、]")
_TICKED: Final = re.compile(r"`+([^`\n]{1,1000})`+")
_INSIDE: Final = re.compile(r"\([^()]*\)")
_LITERAL: Final = re.compile(r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|„([^“\n]{2,200})“|«([^»\n]{2,200})»")
_HEDGED: Final = re.compile(
    r"\b(?:not|never|cannot|unable|could|would|should|shall|will|must|may|might|need(?:s)? to|ha(?:s|ve) to|expect\w*"
    r"|plan(?:s|ned)?|todo|to be|if|when|once|unless|until|before|previous\w*|earlier|baseline|initial\w*|original\w*|parent"
    r"|orchestrator|reviewer|user|ci|upstream|somebody|someone|reported by|according|assum\w+|likely|probably|maybe|seems?"
    r"|appears?|estimated|approx\w*|roughly|about|around|almost|nearly|most|some|partly|partially|except|but for|although"
    r"|pre-?existing|instead|blocked|next|used to|want\w*|try|tried|trying|attempt\w*|for example|e\.g|tomorrow|later|future"
    r"|sibling|remain\w*|flaky|timed? ?out|abort\w*|interrupted|killed|crash\w*|wip|unknown|unclear|can|please"
    r"|to (?:check|verify|confirm|reproduce|see|run)|didn|don|doesn|isn|aren|wasn|won|couldn"
    r"|nicht|nie|konnten?|sollten?|würden?|müssen|vermutlich|wahrscheinlich|etwa|ungefähr|fast|außer|bis auf|vorher|zuvor|bisher"
    r"|ne|pas|jamais|devrai\w*|pourrai\w*|environ|presque|sauf|avant|probablement|debería\w*|podría\w*|casi|excepto|antes)\b"
    r"|n't\b|[~≈?？]|无法|不能|没能|未能|应该|可能|大约|大概|左右|几乎|之前|除了|尚未|还没|以外|はず|できま",
    re.IGNORECASE,
)
"""Said only perhaps, of somebody else, or of another time."""
_QUOTED: Final = re.compile(
    r"(?:\.(?:md|markdown|mdx|rst|txt|adoc|json|ya?ml|toml|html?|log)(?::\d[\d-]*)?|\b(?:readme|changelog|contributing|makefile"
    r"|docs?|documentation|manual|guide|issue|ticket|plan|comment|handoff|packet|task|description|badge))`?\s+"
    r"(?:says?|said|states?|stated|claims?|claimed|reads?|documents?|promises?|mentions?|tells?|asks?|notes?|describes?"
    r"|recommends?|requires?|shows?|lists?)\b",
    re.IGNORECASE,
)
_MORE: Final = re.compile(
    r"\b(?:on|under|in|with|for) (?:windows|linux|macos|mac|ios|android|chrome|firefox|safari|production|staging|node|python)\b"
    r"|\b(?:windows|macos|new|newly|touched|both|platforms?|browsers?|environments?|machines?|regressions?|idempotent|stable"
    r"|determinis\w+|twice|times|consistently|offline|fast(?:er)?|slow(?:er)?|leaks?|secure|production-ready|as expected|handles?"
    r"|rejects?|accepts?|proves?|(?:confirm|show|demonstrate|verif)\w* that|because|since|due|apart|other than|besides|bar|only"
    r"|warnings?|critical|high|major|more|further|return(?:s|ed)? \d+(?! (?:tests?|passed|failed))"
    r"|\d[\d,]*\s+(?:\w+\s+)?suites?|suites: \d+"
    r"|neue[rn]?|nouveaux?|nouvelles?|nuev[oa]s|warnungen|avertissements?)\b|新|警告",
    re.IGNORECASE,
)
"""More is said than a log shows."""
_OTHERS: Final = re.compile(
    r"\b\d[\d,]*\s+(?:\w+\s+)?(?:checks?|commands?|builds?|linters?|projects?|changes|edits|verifications?|results|specs)\b",
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
    r"|(?:no|0|zero|without(?: any)?) (?:\w+ )?(?:errors?|issues?|problems?|failures?|findings|complaints|offenses|violations)"
    r"|bestanden|bestehen|erfolgreich|fehlerfrei|grün|sauber|durch(?:gelaufen)?|passent?|réussi\w*|vert[es]?|succès|sans (?:aucune )?erreurs?"
    r"|pasan|pasa|pasaron|pasó|verde|éxito|sin errores|passam|passou|passaram|sucesso|успешно|проходят|прошли)\b"
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
_MADE: Final = re.compile(
    r"^\W*(?:add(?:ed|s|ing)?|wr(?:ite|ote|itten)|creat(?:e|ed|es)|fix(?:ed|es)?|updat(?:e|ed)|implement\w*|document\w*|remov\w+"
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
    "ran run runs running re-ran rerun executed test tests suite suites spec specs output outputs result"
    " results shows show reports says all every full whole entire complete everything and with the a an of in is"
    " are was were be has have it each reported printed shown that via using by locally successfully now still"
    " again exit exits exited code status command verified checked confirmed completed complete finished final"
    " last lint linter linting type types check checker typecheck build compiles project total returned returns"
    " gives workspace repo verification validation evidence me i we after change this there on for to from at"
    " done test-suite alle die der das den laufen läuft sind ist jetzt wieder komplett gesamte les des la le"
    " tous toutes tout passent est sont suite maintenant todas todos las los el y e as os testes проходят все"
    " ruff eslint clippy mypy tsc pyright fully work works"
)
_TIME: Final = re.compile(
    r"\(?\b(?:in|after|took|nach|en)?\s*\d+(?:[.,]\d+)?\s*(?:ms|s|sec|secs|seconds|sekunden|secondes|秒|m|min|minutes)\b\)?",
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
_NO_PROGRAMS: Final = words_of("all the every full unit our my new each both no run ran full whole")
_KIND: Final = re.compile(
    r"(?:new|unit|integration|e2e|existing|relevant|regression|affected|related|functional|smoke|acceptance|frontend|backend)\Z"
    r"|\S*(?:tests?|specs?)\S*(?:/|\.\w{1,6})\Z",
    re.IGNORECASE,
)
"""Words by which only a part of the tests is meant."""
_CODE: Final = re.compile(r"[{}=]|\w\(|;\s*\Z")
_PREPARING: Final = words_of("cd export source . set true : mkdir umask")


# Clauses


def judge_text(text: str, log: ToolLog, workspace: str, *, prose: bool = False, demanded: bool = False) -> list[Held]:
    """What a text says about commands and tests, clause by clause, with the verdicts.

    `prose`: a command in it is no claim by itself. `demanded`: it says what has to be so, and whoever says that all is
    done says this, too; what was never run is no lie then.
    """
    known = _KnownCommands(log)
    found: list[Held] = []
    for sentence in _split(text[:LONGEST_TEXT]):
        for clause in sentence if len(sentence) > 1 else [sentence[0].strip()]:
            words = _DEMANDED.sub(" ", clause) if demanded else clause
            statements, understood = _read(words.strip(), known, prose=prose or demanded)
            shown = clause.strip().rstrip(".")
            if not understood and not demanded:
                found.append(Held(shown, _OPEN, NOT_UNDERSTOOD))
            for one in statements:
                held = _hold(one, log, workspace, demanded=demanded)
                found.append(held._replace(text=shown, is_command=one.line is not None))
    return found[:_MOST]


class AttemptLog:
    """The log of one attempt, whose run comes first, and of the agents that it asked, which follow: read when first
    asked, and then only the answers are kept. One thread uses it."""

    def __init__(self, runs: Sequence[Run], logs: WorkspaceLogs, returned_at: float | None) -> None:
        self._runs = runs
        self._logs = logs
        self._returned_at = returned_at
        self._log: ToolLog | None = None
        self._is_there: bool | None = None
        self._judged: dict[tuple[str, bool, bool], list[Held]] = {}
        self._unsaid: tuple[Deed, ...] | None = None

    @property
    def is_there(self) -> bool:
        """Whether a log of the attempt is to be had. Reads it at first."""
        if self._is_there is None:
            self._is_there = self._read() is not None
        return self._is_there

    def judge(self, text: str, *, prose: bool = False, demanded: bool = False) -> list[Held]:
        """The verdicts on what a text says of commands, with what any other agent of the workspace changed since."""
        key = text, prose, demanded
        if key not in self._judged:
            log, workspace = self._read() or ToolLog(), self._logs.workspace
            self._judged[key] = judge_text(text, log, workspace, prose=prose, demanded=demanded)
        return [self._with_others(one) for one in self._judged[key]]

    def _with_others(self, held: Held) -> Held:
        if held.verdict is not _YES or held.call is None:
            return held
        by_others = self._logs.changed(self._runs, held.call.at, self._returned_at)
        if not by_others:
            return held
        return held._replace(verdict=_OPEN, detail=f"outdated: {held.detail}; after that {by_others}")

    def unsaid(self, returned_text: str) -> tuple[Deed, ...]:
        """The deeds that the return does not speak of."""
        if self._unsaid is None:
            self._unsaid = unsaid_in(self._read() or ToolLog(), returned_text, self._logs.workspace)
        return self._unsaid

    def forget(self) -> None:
        """Keep the answers alone: what was once done stays as it is."""
        self._log = None

    def _read(self) -> ToolLog | None:
        if self._log is None and self._is_there is not False:
            self._log = read_log(self._runs, self._logs.transcript_of)
        return self._log


def _masked(text: str) -> str:
    masked = _TICKED.sub(lambda match: "`" * len(match[0]), text)
    return _INSIDE.sub(lambda match: "(" * len(match[0]), masked)


def _parts(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Where the parts of a text begin and end between what is found outside of ticks and brackets."""
    start = 0
    for match in pattern.finditer(_masked(text)):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _split(text: str) -> Iterator[list[str]]:
    """The clauses of each sentence: a new one begins with each thing that something is said of."""
    for first, last in _parts(_SENTENCE, text):
        sentence = text[first:last]
        if not sentence.strip():
            continue
        groups: list[tuple[int, int]] = []
        open_command, has_subject = False, False
        for start, end in _parts(_PIECE, sentence):
            piece = sentence[start:end]
            ticked = any(_is_command(parse_line(one.strip())) for one in _TICKED.findall(piece))
            words = _TICKED.sub(" ", piece)
            says = _PASSES.search(words) is not None
            is_topic = says and any(pattern.search(words) for _, pattern in _TOPICS)
            begins = (ticked or (is_topic and not open_command)) and (
                has_subject or not _TELLING.search(sentence[groups[-1][0] : start] if groups else "")
            )
            if not groups or begins:
                groups.append((start, end))
                has_subject = open_command = False
            groups[-1] = groups[-1][0], end
            has_subject |= ticked or is_topic
            open_command = (ticked or open_command) and not says
        yield [sentence[start:end] for start, end in groups]


_WORDS: Final = re.compile(r"(?:make|flow|black|just|task|check)\Z")
"""Programs that are words, too."""
_TELLING: Final = re.compile(r"\d|`|\bran\b|\brun\b", re.IGNORECASE)


class _KnownCommands:
    """The commands of a log, to be found in a text."""

    def __init__(self, log: ToolLog) -> None:
        self._lines = {" ".join(one.line.text.split()) for one in log.ran}
        self._commands = {command for one in log.ran for command in one.commands if command.words}
        self._starts = {part.argv[0] for one in log.ran for part in one.line.parts if part.argv}
        self.names = {command.name.casefold() for command in self._commands}
        self._starts = {one.removeprefix("./") for one in self._starts}
        self._starts |= {command.name.split()[-1] for command in self._commands}

    def named(self, clause: str) -> tuple[list[Line], str]:
        """The commands that a clause names, and its text without them."""
        ticked = [(match, parse_line(match[1].strip().removeprefix("$ "))) for match in _TICKED.finditer(clause)]
        says = _COUNTED_OR_ENDED.search(_TICKED.sub(" ", clause)) is not None
        lines = [(match, line) for match, line in ticked if self._knows(line) or _is_command(line, loosely=says)]
        if lines:
            for match, _ in reversed(lines):
                clause = f"{clause[: match.start()]} \0 {clause[match.end() :]}"
            return [line for _, line in lines], clause
        return self._unticked(clause)

    def _knows(self, line: Line) -> bool:
        """Whether a program of the log is called in a line."""
        words = next((part.argv for part in line.parts if part.argv and part.argv[0] not in _PREPARING), ())
        return (len(words) > 1 and words[0].removeprefix("./") in self._starts) or self._holds(line)

    def _holds(self, line: Line) -> bool:
        if " ".join(line.text.split()) in self._lines:
            return True
        commands = [command_of(part.words) for part in line.parts if part.argv and part.argv[0] not in _PREPARING]
        return len(commands) == 1 and any(is_same(commands[0], one) for one in self._commands)

    def _unticked(self, clause: str) -> tuple[list[Line], str]:
        """The longest command without ticks: one of the log, or one that is said to have been run."""
        found = list(re.finditer(r"[^\s`]+", clause))
        for count in range(min(_MOST_WORDS, len(found)), 0, -1):
            for at in range(len(found) - count + 1):
                first = found[at][0].strip("\"'“”(„:,;")
                if first.removeprefix("./") in self._starts and (count > 1 or "/" in first):
                    span = clause[found[at].start() : found[at + count - 1].end()]
                    line = parse_line(re.sub(r"[:,;)]+\Z|(?<![./])\.\Z", "", span.strip("\"'“”„").lstrip("(")))
                    if self._holds(line):
                        return [line], f"{clause[: found[at].start()]} \0 {clause[found[at + count - 1].end() :]}"
        if "`" in clause:
            return [], clause
        said = _RUNS.search(clause)
        start = said.end() if said else len(clause) - len(clause.lstrip(" \t=*-"))
        end = _UNTICKED_END.search(clause, start)
        line = parse_line(clause[start : end.start() if end else len(clause)].strip().rstrip("."))
        words = line.text.split()
        if len(line.parts) != 1 or line.text[:1].isupper() or (len(words) == 1 and _WORDS.match(line.text)):
            return [], clause
        is_program = words[0] in _PROGRAMS or topic_of(Command((words[0],))) is not None
        if is_program and topic_of(command_of(line.parts[0].words)) and _is_command(line) and (said or len(words) > 1):
            return [line], f"{clause[:start]} \0 {clause[start + len(line.text) :]}"
        return [], clause


_COUNTED_OR_ENDED: Final = re.compile(r"\d|\bexit|\bpass|\bran\b|✓|✅", re.IGNORECASE)
_UNTICKED_END: Final = re.compile(
    r"\s+[\u2014\u2013-]\s+|\s*[:;(,\u2192]|\s*[=-]>|\s+(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|exit(?:s|ed)?"
    r"|fail(?:s|ed)?|return(?:s|ed)?|is|was|are|were|reports?|shows?|gives?|with|and|green|clean|ok|on|in"
    r"|successful(?:ly)?|completed?|finished|no|lief|läuft|passe|ist)\b|\s+(?=\d+ )",
    re.IGNORECASE,
)


def _is_command(line: Line, *, loosely: bool = False) -> bool:
    """Whether a text in ticks is a command, by its letters: any where a result is told `loosely`."""
    part = next((one for one in line.parts if one.argv and one.argv[0] not in _PREPARING), None)
    if part is None:
        return False
    words, command = part.argv, command_of(part.words)
    if topic_of(command) is not None and words[0] not in _NO_PROGRAMS:
        return len(words) > 1 or re.fullmatch(r"[a-z][a-z0-9+]*(?:-(?!tests?\Z)[a-z]+)?", words[0]) is not None
    if len(words) == 1:
        return re.fullmatch(r"\./(?:[\w.-]+/)*[\w-]+(?:\.sh)?", words[0]) is not None
    if words[0] in LOOKING or words[0] in DOING or command.name in _PROGRAMS or words[0].endswith("python"):
        return True
    if _CODE.search(line.text) or not re.fullmatch(r"(?:\.{0,2}/)?[a-z][\w./+-]*", words[0]):
        return False
    return "/" in words[0] and (loosely or any(word.startswith("-") for word in words[1:]))


def _read(clause: str, known: _KnownCommands, *, prose: bool) -> tuple[list[Statement], bool]:
    """The statements of a clause, and whether it is understood, or says nothing of commands and tests."""
    lines, rest = known.named(clause)
    outside = _TICKED.sub(" ", rest)
    counts, left = read_counts(_TIME.sub(" ", outside))
    speaks = bool(lines) or counts.passed is not None or counts.failed is not None
    if _HEDGED.search(outside) or _QUOTED.search(rest) or (_MADE.match(rest) and not lines):
        return [], not speaks
    exits = list(_EXIT.finditer(left))
    code = exits[0]["code"].casefold() if exits else ""
    exit_code = None if not code else 0 if code in ("zero", "cleanly") else int(code)
    left = _EXIT.sub(" ", left)
    # `returns 200` may be said of its output, and of its exit code.
    more = " ".join(dict.fromkeys(match[0] for match in _MORE.finditer(outside)))
    if len({match["code"] for match in exits}) > 1:
        more = "two exit codes"
    failed = counts.failed or 0
    told = _PASSES.search(left) is not None or (counts.passed is not None or counts.failed == 0)
    fails = not told and (_FAILS.search(left) is not None or failed > 0)
    passes = told and not failed and not exit_code
    left = _PASSES.sub(" ", left)
    literals = [next(filter(None, one)) for one in _LITERAL.findall(rest)]
    spans = [one for one in _TICKED.findall(rest)]
    numbers = re.findall(_NUMERAL, _LITERAL.sub(" ", left))
    shown = tuple(dict.fromkeys([*literals, *(one for one in spans if lines), *numbers]))
    made = Statement(clause, rest, None, None, "", passes, fails, exit_code, counts, shown, more)
    if lines:
        if len(lines) > 1 and (counts != Counts() or exit_code is not None):
            return [], False
        has_run = _RUNS.search(rest) is not None and _ASKED.match(clause) is None
        if not made.says_how and ((prose and not has_run) or _ASKED.match(clause) or " \0 " not in f" {rest} "):
            return [], False
        return [made._replace(line=line) for line in lines], True
    topic, match = next(((topic, one) for topic, pattern in _TOPICS if (one := pattern.search(outside))), (None, None))
    tool = match[0].casefold() if match is not None else ""
    counted = counts.passed is not None or (counts.total is not None and counts.failed is not None)
    if topic is None and counted and (counts.total is None or counts.passed is None):
        topic = Topic.TESTS
    if topic is None or not (passes or counted) or len(rest.split()) > _MOST_WORDS:
        return [], not speaks
    if any(not _TEST_PATH.match(one) for one in spans):
        return [], not speaks
    words = re.findall(r"[^\W\d_][\w'./-]*", _TICKED.sub(" ", left))
    latin = [word for word in words if re.match(r"[A-Za-zÀ-ÿ]", word)]
    strange = [word for word in latin if word.casefold().rstrip(".'") not in _NEUTRAL]
    strange = [word for word in strange if word.casefold() not in known.names]
    others = [match[0] for match in _OTHERS.finditer(outside)]
    more = " ".join(dict.fromkeys([more, *spans, *strange, *numbers, *others])).strip()
    is_tool = tool if topic in (Topic.LINT, Topic.TYPES) and command_of((tool,)).words else ""
    return [
        made._replace(topic=topic, tool="" if is_tool.startswith(("lint", "type", "typ")) else is_tool, more=more)
    ], True


# Runs


class Hit(NamedTuple):
    """A command that was run, and what came of it: None where that does not show."""

    ran: Ran
    at: int
    command: Command
    code: int | None
    counts: Counts | None
    directory: str

    @property
    def is_bad(self) -> bool:
        if self.counts is not None and self.counts.failed is not None and (self.counts.failed or self.code is None):
            return self.counts.failed > 0
        return bool(self.code)

    @property
    def words(self) -> str:
        counted = f" and {self.counts.words}" if self.counts is not None else ""
        ended = "an exit code that does not show" if self.code is None else f"exit code {self.code}"
        return f"`{short(self.ran.line.text)}` ended with {ended}{counted}"


_PASSING_ON: Final = words_of("tail head tee cat")
_SILENT: Final = _PREPARING.union(words_of("sleep test rm cp mv touch"))


def _hits_of(log: ToolLog) -> list[Hit]:
    """Every command of every line that is understood."""
    return [
        Hit(
            ran,
            at,
            command,
            ran.code if ran.line.sole == at else None,
            counts_in(ran.output) if _prints_alone(ran.line, at) else None,
            ran.line.directory(at, ran.cwd),
        )
        for ran in log.ran
        if ran.line.plain
        for at, command in enumerate(ran.commands)
    ]


def _prints_alone(line: Line, number: int) -> bool:
    """Whether what a line prints is what this part of it does."""
    for at, part in enumerate(line.parts):
        name = part.argv[0] if part.argv else ""
        passes_on = at > number and part.joined in ("|", "|&") and name in _PASSING_ON
        says_little = name == "echo" and not any(re.search(r"\d", word) for word in part.argv[1:])
        is_silent = not name or name in _SILENT or (name == "sed" and any(one.startswith("-i") for one in part.argv))
        if any(not target.startswith("/dev/std") for target in part.targets if at == number):
            return False
        if at != number and not (passes_on or says_little or is_silent):
            return False
    return True


def _hold(statement: Statement, log: ToolLog, workspace: str, *, demanded: bool) -> Held:
    hits = _hits_of(log)
    held = _of_line(statement, log, hits, workspace) if statement.line else _of_topic(statement, log, hits, workspace)
    if held.verdict is _NO:
        if demanded and held.call is None:
            return held._replace(verdict=_OPEN)
        if why := _other_version(held, log, hits, workspace):
            return held._replace(verdict=_OPEN, detail=f"{held.detail}; but {why}")
    if held.verdict is _YES and log.is_partial:
        return held._replace(verdict=_OPEN, detail=f"{held.detail}, but {log.gap}")
    if held.verdict is _YES and held.call is not None:
        later = [one for one in log.changes() if one.over_at > held.call.at and one.call != held.call]
        if later:
            change = next((one for one in later if one.path), later[0])
            return held._replace(verdict=_OPEN, detail=f"outdated: {held.detail}; after that {change.words}")
    return held


_PUTTING_BACK: Final = re.compile(
    r"\bgit\s+(?:-C\s+\S+\s+)?(?:stash(?!\s+(?:list|show|drop|clear))|checkout(?!\s+-[bB])|switch(?!\s+-[cC])"
    r"|restore(?!\s+--staged)|revert|reset\s+--(?:hard|merge|keep)|apply\s+(?:-R|--reverse))|\bpatch\s+-R"
)
_COPYING: Final = re.compile(r"\bgit\s+(?:-C\s+\S+\s+)?(?:worktree\s+add|clone)\b")


def _other_version(held: Held, log: ToolLog, hits: Sequence[Hit], workspace: str) -> str:
    """Why a bad run may be of files as they are no more, "" where it is not."""
    those = [hit for hit in hits if hit.ran.call == held.call and hit.command.name != "cd"]
    if not those:
        return ""
    bad = next((hit for hit in those if hit.is_bad), those[0])
    later = [bad.ran.line.text[:LONGEST].partition(bad.command.name)[2]]
    later += [one.line.text[:LONGEST] for one in log.ran if one.at > bad.ran.at]
    if any(map(_PUTTING_BACK.search, later)):
        return "files were put back after that"
    copied = any(_COPYING.search(one.line.text[:LONGEST]) for one in log.ran if one.at <= bad.ran.at)
    if bad.directory != workspace and copied:
        return "it may have been run in another copy"
    good = [hit for hit in hits if hit.ran.at < bad.ran.at and hit.command.name == bad.command.name and not hit.is_bad]
    changed = [one.call.at for one in log.changes()]
    over_at = bad.ran.at if bad.ran.over_at is None else bad.ran.over_at
    between = any(good[-1].ran.at < at <= over_at for at in changed) if good else False
    return "it was good before, and files were changed after that" if between and changed[-1] > over_at else ""


# A command that is named


def _of_line(statement: Statement, log: ToolLog, hits: Sequence[Hit], workspace: str) -> Held:
    line = statement.line
    assert line is not None  # noqa: S101
    wanted = [at for at, part in enumerate(line.parts) if part.argv and part.argv[0] not in _PREPARING]
    if not line.plain or len(wanted) != 1:
        return _of_whole_line(statement, line, log)
    asked, place = command_of(line.parts[wanted[0]].words), line.directory(wanted[0], workspace)
    same = [hit for hit in hits if is_same(asked, hit.command)]
    if not same:
        return _not_found(statement, line, asked, log, hits)
    here = [hit for hit in same if hit.directory == place or hit.command.box or _is_told(statement, hit, workspace)]
    if not here:
        where = same[-1].directory or "a directory that is not told"
        return Held("", _OPEN, f"it was run, but in {where}", same[-1].ran.call)
    hit = here[-1]
    held = _hold_hit(statement, hit)
    if held.verdict is _NO and any(_bears_out(statement, one) for one in same):
        return held._replace(verdict=_OPEN, detail=f"{held.detail}; an earlier run ended as is said")
    if held.verdict is _NO and any(ran.at > hit.ran.at and _is_program(ran, asked) for ran in log.ran):
        return held._replace(verdict=_OPEN, detail=f"{held.detail}; something like it was run after that")
    return held


def _is_told(statement: Statement, hit: Hit, workspace: str) -> bool:
    """Whether a clause names the directory below the workspace in which a command was run."""
    below = hit.directory.removeprefix(f"{workspace}/")
    words = {word.strip("`'\"(),:;./") for word in statement.rest.split()}
    return below != hit.directory and below in words


def _of_whole_line(statement: Statement, line: Line, log: ToolLog) -> Held:
    """A line of several commands: only the same line is it, and it is never verified, for it hides how they ended."""
    said = " ".join(line.text.split())
    ran = next((one for one in reversed(log.ran) if " ".join(one.line.text.split()) == said), None)
    if ran is None:
        return _not_found(statement, line, command_of(line.parts[-1].words) if line.parts else Command(), log, ())
    counts, code = counts_in(ran.output), ran.code
    if code is None or ran.over_at is None:
        return Held("", _OPEN, "it was run, but how it ended is not told", ran.call)
    if statement.exit_code is not None and statement.exit_code != code:
        return Held("", _NO, f"says exit code {statement.exit_code}; it ended with {code}", ran.call)
    if counts is not None and (words := _differing(statement, counts, ran)):
        return Held("", _NO, words, ran.call)
    is_chain = line.plain and all(part.joined in ("", "&&") for part in line.parts)
    if statement.passes and code and is_chain:
        return Held("", _NO, f"it ended with exit code {code}", ran.call)
    return Held("", _OPEN, "it was run, but the line hides how its commands ended", ran.call)


def _not_found(statement: Statement, line: Line, asked: Command, log: ToolLog, hits: Sequence[Hit]) -> Held:
    """No command that was run is the one that is named."""
    like = [hit for hit in hits if asked.words and hit.command.program == asked.program]
    if like:
        last = like[-1]
        extra = " ".join(last.command.words[len(asked.words) :])
        is_part = extra and last.command.words[: len(asked.words)] == asked.words
        more = f"; it covers only {extra}" if is_part else "; it was not run as it is named"
        return Held("", _OPEN, f"{last.words}{more}", last.ran.call)
    if log.gap:
        return Held("", _OPEN, f"it is not in the log, but {log.gap}")
    if maybe := [ran for ran in log.ran if _may_be(ran, asked)]:
        return Held(
            "", _OPEN, f"it was not run as it is named; `{short(maybe[-1].line.text)}` may be it", maybe[-1].call
        )
    if log.looked and all(part.argv and part.argv[0] in LOOKING for part in line.parts):
        return Held("", _OPEN, "it is not in the log, but files were looked at by other tools than a shell")
    if statement.more and not statement.says_how:
        return Held("", _OPEN, f"it is not in the log; but more is said than that it was run: {statement.more[:80]}")
    names = {part.argv[0] for part in line.parts if part.argv}
    if any(names & {part.argv[0] for part in one.parts if part.argv} for one in log.refused):
        return Held("", _NO, "never run: it was refused")
    return Held("", _NO, f"never run{_printed_by(statement, log)}")


def _printed_by(statement: Statement, log: ToolLog) -> str:
    """The command that only printed a result that is claimed."""
    if statement.counts.passed is None:
        return ""
    told = (ran for ran in log.ran if (found := counts_in(ran.output)) and found.passed == statement.counts.passed)
    ran = next(told, None)
    return f"; `{short(ran.line.text)}` printed these words" if ran is not None else ""


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
    for part, command in zip(ran.line.parts, ran.commands, strict=True):
        is_of_it = wanted is None or topic_of(command) in (None, wanted)
        # The scripts of a package are printed before they are run.
        is_told = _SCRIPT.search(ran.output) is not None and asked.name not in ran.output
        if is_of_it and starts_others(command) and not starts_nothing(part.argv) and not is_told:
            return True
    return False


_SCRIPT: Final = re.compile(r"(?m)^> \S+@\S* .*\n(?:\n?> )")


def _hold_hit(statement: Statement, hit: Hit) -> Held:
    """How a command ended, against how it is said to have ended."""
    ran, found = hit.ran, hit.counts
    if ran.over_at is None:
        return Held("", _OPEN, "it was begun, but its end is not in the transcript", ran.call)
    if found is not None and not statement.more and (words := _differing(statement, found, ran)):
        return Held("", _NO, words, ran.call)
    said = statement.exit_code
    if said is not None and hit.code is not None and said != hit.code and not statement.more:
        return Held("", _NO, f"says exit code {said}; it ended with {hit.code}", ran.call)
    shows_it = found is not None and statement.counts.passed is not None and found.passed == statement.counts.passed
    if statement.passes and hit.code and not (shows_it or said == hit.code or statement.more or _is_answer(hit)):
        return Held("", _NO, f"it ended with exit code {hit.code}", ran.call)
    if why := _why_open(statement, hit):
        return Held("", _OPEN, why, ran.call)
    return Held("", _YES, hit.words, ran.call)


def _differing(statement: Statement, found: Counts, ran: Ran) -> str:
    """What is said otherwise than an output counts, "" for nothing."""
    said = statement.counts
    wrong = [
        (one, word)
        for one, other, word in (
            (said.total if _is_total_wrong(said, found) else None, found.total, "tests"),
            (said.passed, found.passed, "passed"),
            (said.failed, found.failed, "failed"),
            (said.skipped, found.skipped, "skipped"),
        )
        if one is not None and other is not None and one != other
    ]
    # Whoever says how many there are may count those that were left out; and it may be quoted from one line of many.
    wrong = [(one, word) for one, word in wrong if not (word == "passed" and one == found.total and not found.failed)]
    wrong = [(one, word) for one, word in wrong if one == 0 or not _stands(str(one), ran.output)]
    if wrong:
        return f"says {', '.join(f'{one:,} {word}' for one, word in wrong)}; its output says {found.words}"
    if statement.passes and found.failed and said.passed is None:
        return f"says that it passes; its output says {found.words}"
    return ""


def _is_total_wrong(said: Counts, found: Counts) -> bool:
    totals = (found.total, found.passed, (found.passed or 0) + (found.failed or 0))
    return said.total is not None and said.total not in totals


def _stands(value: str, output: str) -> bool:
    """Whether a number or a literal stands in an output."""
    if re.fullmatch(r"\d[\d.,]*", value):
        plain = value if re.fullmatch(r"\d+\.\d+", value) else str(number(value))
        grouped = f"{number(value):,}"
        return any(re.search(rf"(?<![\w.,]){re.escape(one)}(?![\w]|[.,]\d)", output) for one in (plain, grouped, value))
    return " ".join(value.split()).casefold() in " ".join(output.split()).casefold()


def _bears_out(statement: Statement, hit: Hit) -> bool:
    """Whether it failed as is said."""
    failed = statement.counts.failed
    has_failed = bool(failed) and hit.counts is not None and hit.counts.failed == failed
    return has_failed or (bool(statement.exit_code) and statement.exit_code == hit.code)


def _is_answer(hit: Hit) -> bool:
    """Whether exit code 1 says what was asked, such as that nothing was found."""
    words = hit.command.words
    asks = words[:1] and words[0] in (
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "ag",
        "diff",
        "cmp",
        "test",
        "[",
        "pgrep",
        "which",
    )
    return hit.code == 1 and bool(asks or words[:2] == ("git", "diff"))


def _why_open(statement: Statement, hit: Hit) -> str:
    """Why what is said is not shown by how a command ended, "" where it is."""
    ran, said, found, code = hit.ran, statement.counts, hit.counts, hit.code
    command, topic = hit.command, topic_of(hit.command)
    if statement.exit_code is not None and code is not None and statement.exit_code != code:
        return f"says exit code {statement.exit_code}; the last time, {hit.words}"
    if code is None:
        where = "in the background, or was stopped" if ran.code is None else "in a line that hides how it ended"
        return f"it was run {where}: its exit code is not known"
    says_bad = statement.exit_code == code or bool(said.failed) or statement.fails
    if code and not says_bad:
        return f"{hit.words}, which it does not say"
    if not code and statement.fails:
        return f"says that it failed; {hit.words}"
    if statement.more:
        return f"{hit.words}; but more is said than a log can show: {statement.more[:80]}"
    if said != Counts():
        numbers = [str(one) for one in said if one]
        if found is None and (topic is Topic.TESTS or not all(_stands(one, ran.output) for one in numbers)):
            return f"{hit.words}, but its output {'was cut' if ran.is_cut else 'does not count them'}"
        pairs = list(zip(said, found or said, strict=True))[1:]
        if any(one is not None and one != other for one, other in pairs) or (found and _is_total_wrong(said, found)):
            return f"its output does not show all of it: {found.words if found else ''}"
    for value in statement.shown:
        if not _stands(value, ran.output):
            return f"{hit.words}, but its output {'was cut' if ran.is_cut else f'does not say {value[:80]}'}"
    if found is not None and not code and (found.failed or 0) and not said.failed:
        return f"its output does not show all of it: {found.words}"
    is_general = statement.line is None and said == Counts()
    says_all = is_general or (said.passed is None and _ALL.search(statement.rest))
    if found is not None and found.skipped and said.skipped is None and says_all:
        return f"{hit.words}, which it does not say"
    if command.name in ("bash", "sh", "zsh", "dash") and any(re.match(r"-\w*c", word) for word in command.words[1:]):
        return f"{hit.words}; that is of a line which a shell was given"
    if any(word.startswith(("PATH=", "PATH+=")) for word in ran.line.parts[hit.at].words):
        return f"{hit.words}; with another PATH it may be another program"
    if checks_nothing(command):
        return f"{hit.words}; with these options it checks nothing"
    if topic is Topic.TESTS:
        is_cut = ran.is_cut and found is None and statement.exit_code is not None
        if not (found or code or is_cut or shows_result(ran.output)):
            return f"{hit.words}; it printed no result"
        if found is not None and found.passed == 0 and not found.failed:
            return f"{hit.words}; no test was in it"
    ignored = "(ignored)" in ran.output
    if (statement.passes or statement.exit_code == 0 or ignored) and topic is not None and not code:
        if ignored or (topic is not Topic.TESTS and shows_faults(ran.output)):
            return f"{hit.words}; its output speaks of faults"
    return ""


# The tests, or another kind of check, as such

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


def _of_topic(statement: Statement, log: ToolLog, every: Sequence[Hit], workspace: str) -> Held:
    topic = statement.topic or Topic.TESTS
    hits = [hit for hit in every if topic_of(hit.command) is topic and not checks_nothing(hit.command)]
    if statement.tool:
        hits = [hit for hit in hits if statement.tool in " ".join(hit.command.words)]
    vague = [ran for ran in log.ran if _is_vague(ran, topic)]
    script = next((hit for hit in every if vague and hit.ran is vague[-1] and hit.counts and hit.counts.failed), None)
    is_last = script is not None and (not hits or hits[-1].ran.at < script.ran.at)
    is_plain = statement.passes and not statement.more
    if script and is_last and topic is Topic.TESTS and is_plain and statement.counts.passed is None:
        return Held("", _NO, f"the last time, {script.words}", script.ran.call)
    if not hits:
        return _never_checked(statement, topic, vague, log)
    last = hits[-1]
    outside = any(not f"{hit.directory}/".startswith(f"{workspace}/") for hit in hits)
    if outside or any(hit.command.odd for hit in hits):
        return Held("", _OPEN, f"{last.words}; it may be about something else", last.ran.call)
    latest = {(hit.command.name, hit.directory): hit for hit in hits}
    bad = next((hit for hit in latest.values() if hit.is_bad), None)
    if bad is not None and is_plain and _is_final(bad, hits, vague) and _speaks_of(statement, bad):
        return Held("", _NO, f"the last time, {bad.words}", bad.ran.call)
    whole = [hit for hit in hits if is_whole(hit.command) and hit.directory == workspace]
    if statement.counts.passed is not None or statement.counts.total is not None:
        return _of_counts(statement, hits, vague, whole, workspace)
    if bad is not None:
        return Held("", _OPEN, f"{bad.words}; what was run after that may say otherwise", bad.ran.call)
    if not whole or (whole[-1].is_bad and whole[-1] is not latest[whole[-1].command.name, workspace]):
        return Held("", _OPEN, f"only a part was run: {last.words}", last.ran.call)
    if any(hit.code is None and hit.counts is None for hit in latest.values()):
        return Held("", _OPEN, "how all that was run ended does not show", last.ran.call)
    return _hold_hit(statement, whole[-1])


def _has_begun(hit: Hit) -> bool:
    counted = hit.counts is not None and bool(hit.counts.passed or hit.counts.failed)
    return counted or hit.code not in _NOT_BEGUN


def _is_final(bad: Hit, hits: Sequence[Hit], vague: Sequence[Ran]) -> bool:
    """Whether nothing that was run after a bad run may be of the same, by whatever name: it has as many tests."""
    had = 0 if bad.counts is None else (bad.counts.passed or 0) + (bad.counts.failed or 0)
    good = [hit for hit in hits if not hit.is_bad and not hit.code]
    later = [hit for hit in good if hit.ran.at > bad.ran.at]
    makes_good = any(not had or (hit.counts is not None and (hit.counts.passed or 0) >= had) for hit in later)
    return (_has_begun(bad) or not good) and not makes_good and not any(ran.at > bad.ran.at for ran in vague)


def _speaks_of(statement: Statement, bad: Hit) -> bool:
    """A failure makes a lie of it: of a part whose failures are not counted, it may be the call that was wrong."""
    if (said := statement.counts.passed) is not None:
        counts = bad.counts
        return bool(
            counts and counts.failed and counts.passed != said and (is_whole(bad.command) or counts.total == said)
        )
    return is_whole(bad.command) or (bad.counts is not None and bool(bad.counts.failed))


def _of_counts(
    statement: Statement, hits: Sequence[Hit], vague: Sequence[Ran], whole: Sequence[Hit], workspace: str
) -> Held:
    """So many tests are said to have passed, without a command."""
    last, said = hits[-1], statement.counts.passed
    if (
        last.counts is not None
        and (said is None or last.counts.passed == said)
        and not _is_total_wrong(statement.counts, last.counts)
    ):
        if last.directory != workspace or (_ALL.search(statement.rest) and not is_whole(last.command)):
            return Held("", _OPEN, f"only a part was run: {last.words}", last.ran.call)
        return _hold_hit(statement, last)
    showing = any(hit.counts is not None and hit.counts.passed == said for hit in hits)
    one_kind = len({(hit.command.name, hit.directory) for hit in hits}) == 1
    is_known = last.counts is not None and last.counts.passed is not None and not showing and not vague and one_kind
    if is_known and whole and whole[-1] is last and not statement.more:
        return _hold_hit(statement, last)
    return Held("", _OPEN, f"the last run does not show it: {last.words}", last.ran.call)


def _never_checked(statement: Statement, topic: Topic, vague: Sequence[Ran], log: ToolLog) -> Held:
    if log.gap:
        return Held("", _OPEN, f"no {topic} is in the log, but {log.gap}")
    if vague:
        text = f"no {topic} is in the log; what `{short(vague[-1].line.text)}` ran is not known"
        return Held("", _OPEN, text, vague[-1].call)
    refused = any(topic_of(command_of(part.words)) is topic for line in log.refused for part in line.parts)
    if any(not _KIND.match(word) for word in statement.more.split()):
        return Held("", _OPEN, f"no {topic} is in the log; but more is said than that: {statement.more[:80]}")
    words = ": it was refused" if refused else _printed_by(statement, log)
    return Held("", _NO, f"no {topic} was run{words}")


def _is_vague(ran: Ran, topic: Topic) -> bool:
    """Whether a command may have started such a check without being one."""
    if ran.hooked or not ran.line.plain:
        return ran.hooked or may_start(ran.line.text)
    for part, command in zip(ran.line.parts, ran.commands, strict=True):
        found = topic_of(command)
        if found in _SHOWN_BY.get(topic, ()) or (found is topic and checks_nothing(command)):
            return True
        if found is None and not starts_nothing(part.argv):
            return True
        if found is Topic.BUILD and topic is Topic.TESTS and command.name in _TESTING_BUILDS:
            return True
    return False
