"""Compares what a return says about commands with the log of the commands that were run.

A clause (a part of a sentence) is a statement about the commands that it names. Every number and quoted text of the
clause must occur in the output of the command. A statement is verified only if the log shows that it is true. It is
contradicted only if the log shows that it is false. Otherwise it is unverifiable, and has a reason.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from agentwatch.delegation.events import Claim, Verdict
from agentwatch.evidence.claims import NOT_UNDERSTOOD
from agentwatch.evidence.log import LoggedAct, ToolLog, shorten
from agentwatch.evidence.output import STATUSES, TIME, Counts, Quantity, parse_number, quantities_in, read_quantities
from agentwatch.evidence.shell import (
    LISTING,
    LOOKING,
    RUNNERS,
    Command,
    Line,
    checks_nothing,
    command_of,
    covers_everything,
    extra_words,
    kind_of,
    parse_line,
    starts_nothing,
    word_set,
)

LONGEST_TEXT = 2_000
_MOST = 20
_MOST_WORDS = 16  # most words of a command that is not in backticks

_YES, _NO, _OPEN = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE


class Mention(NamedTuple):
    """A command that a clause names, and its place in the clause. If `line` is None, it names tests in general."""

    start: int = 0
    end: int = 0
    line: Line | None = None


_UNKNOWN = Line("")  # stands for a named check that is not in the log


class Statement(NamedTuple):
    """The statement of a clause about commands. `rest` is the clause without these commands. `shown` are words that
    must occur in the output. `more` are words of the clause that no log can confirm."""

    rest: str
    passes: bool
    fails: bool
    exit_code: int | None
    quantities: tuple[Quantity, ...]
    shown: list[str]
    more: str
    kinds: set[str]

    @property
    def tests(self) -> list[Quantity]:
        """The numbers in the statement that count tests."""
        return [one for one in self.quantities if one.subject in ("", "tests") and one.number.isdigit()]

    @property
    def passed(self) -> list[int]:
        """The numbers of passed tests, according to the statement."""
        wanted = ("passed", "") if self.passes else ("passed",)
        return [int(one.number) for one in self.tests if one.status in wanted]

    @property
    def admits_failure(self) -> bool:
        """Whether the statement says that something failed."""
        return self.fails or bool(self.exit_code)


# Lines that test runners print, instead of numbers, if tests ran and passed.
_RESULT = re.compile(
    r"^(?:ok {2}\t(?!.*\[no tests)|BUILD SUCCESSFUL|\[INFO\] BUILD SUCCESS|[^\w\n]*congratulations :\)"
    r"|.*\bSuccessfully ran targets? |[^\w\n]*Tasks: +\d+ successful|Executed \d+ out of \d+ tests?: \d+ tests? pass"
    r"|All tests passed)",
    re.MULTILINE,
)
# Words that a runner prints if there was nothing to do.
_EMPTY = re.compile(
    r"NO-SOURCE|(?<!\[)\bno (?:tests?|tasks) (?:to run|found|ran|files|were|collected|executed)|Tests are skipped"
    r"|:\w*[tT]est SKIPPED|:\w*test UP-TO-DATE|is up to date|Nothing to be done",
    re.IGNORECASE,
)
# Output of make, npm and other tools about a failed step that they ignored, and shell code that hides a failure.
_FORGIVING = re.compile(
    r"(?im)^[^\w\n]*(?-i:FAIL(?:ED|URES?)?)\b|[(\[]ignored[)\]]|\.\.\.ignoring\b|\bcontinue-on-error\b|\bnpm ERR!"
    r"|\bnpm error\b|(?:\|\||;)\s*(?:/bin/|/usr/bin/)?(?:true\b|:(?:\s|$)|exit 0\b|echo\b|printf\b)"
)
# Lines that a check prints if it found errors or warnings.
_FAULTS = re.compile(
    r"^(?:Found [1-9]\d* (?:errors?|warnings?|issues?|problems?).*|[^\w\n]*[1-9]\d* problems? \(.*"
    r"|[1-9]\d* errors?, .*|error(?:\[E\d+\])?: .*|.*: error TS\d+: .*|.*: error: .*|(?:.*[ :])?warning: .*"
    r"|\[WARNING\].*|.*\b[1-9]\d* [Ww]arning.*|.*\bError \d+ \(ignored\).*)$",
    re.MULTILINE,
)
_SKIPPED = re.compile(r"\bskipp(?:ed|ing)\b|\bskip\b|\bavoided\b", re.IGNORECASE)

# Words

_NAUGHT = re.compile(r"\b(?:nothing|nichts|rien|nulla|nada|niente|nobody|any)\b", re.IGNORECASE)
# Numbers that may count something other than tests.
_VAGUE = re.compile(r"\bspecs\b|\A(?!.*\btests?\b).*\d\s?/\s?\d", re.IGNORECASE)
_SENTENCE = re.compile(
    r";\s+(?!(?:\d[\d,]*|no|zero) (?:failed|failures?|ignored|skipped|pending|errors?|filtered))"
    r"|(?<=[\w`)%”\"])[.!?]\s+(?=[^a-zß-ÿ])|\s\|\s|\n+|[。；！]"
)
_PIECE = re.compile(r",\s+|\s+(?:and|und|et|y|e|but|aber|mais|pero|while)\s+|[，、]")
_TICKED = re.compile(r"`+([^`\n]{1,1000})`+")
_LITERAL = re.compile(r"[\"“„«]([^\"“”„«»\n]{2,200})[\"”“»]")
# Words that make a statement uncertain, or that are about another person or another time.
_HEDGED = re.compile(
    r"\b(?:not|never|cannot|unable|could|would|should|shall|will|must|may|might|need(?:s)? to|ha(?:s|ve) to|expect\w*"
    r"|plan(?:s|ned)?|to do|todo|to be|if|when|once|unless|until|before|previous\w*|earlier|baseline|initial\w*"
    r"|original\w*|per the|parent|orchestrator|reviewer|user|ci|upstream|somebody|someone|reported by|according"
    r"|assum\w+|likely|probably|maybe|seems?|appears?|estimated|approx\w*|roughly|about|around|almost|nearly|most|some|partly|partially|except"
    r"|but for|although|pre-?existing|instead|blocked|next|used to|want\w*|try|tried|trying|attempt\w*"
    r"|for example(?!\.)|e\.g|tomorrow|later|future|sibling|remain\w*|timed? ?out|abort\w*|interrupted|killed"
    r"|crash\w*|wip|unknown|unclear|can|please|to (?:check|verify|confirm|reproduce|see|run)|didn|don|doesn|isn|aren"
    r"|wasn|won|couldn|nicht|nie|konnten?|sollten?|würden?|müssen|vermutlich|wahrscheinlich|etwa|ungefähr|fast|außer"
    r"|bis auf|vorher|zuvor|bisher|ne (?!demande rien|signale rien|trouve rien)|pas|jamais|devrai\w*|pourrai\w*"
    r"|environ|presque|sauf|avant|probablement|debería\w*|podría\w*|casi|excepto|antes|quasi|circa|quase)\b"
    r"|\bwithout (?:running|executing)|\bskipp(?:ed|ing)\s+(?:running|the|\0)|\b(?:left out|omitted)\b|\bno (?:se|fue"
    r"|pude|pudo|he|hay|corr\w+)\b|\b(?:não|non (?!segnala|trova|rileva)|не|nunca|niemals)\b|未(?!失败)|没有?(?:运行"
    r"|执行|跑|测试)|ません|ない|なかった|않|못|n't\b|[~≈?？]|无法|不能|没能|未能|应该|可能|大约|大概|左右|几乎|之前|除了|尚未|还没|以外|予定|计划|待办|はず|できま",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"(?:\.(?:md|markdown|mdx|rst|txt|adoc|json|ya?ml|toml|html?|log)(?::\d[\d-]*)?|\b(?:readme|changelog"
    r"|contributing|makefile|docs?|documentation|manual|guide|issue|ticket|plan|comment|handoff|packet|task"
    r"|description|badge))`?\s+(?:says?|said|states?|stated|claims?|claimed|reads?|documents?|promises?|mentions?"
    r"|tells?|asks?|notes?|describes?|recommends?|requires?|shows?|lists?)\b",
    re.IGNORECASE,
)
# Words that claim more than a log can show.
_MORE = re.compile(
    r"\b(?:on|under|in|with|for) (?:windows|linux|macos|mac|ios|android|chrome|firefox|safari|production|staging|node"
    r"|python|gcc|clang)\b|\b(?:windows|macos|new|newly|touched|platforms?|browsers|environments?|machines?|two|three"
    r"|four|five|six|seven|eight|nine|ten|dozen|regressions?|includ\w+|incl|idempotent|stable|determinis\w+"
    r"|reproducib\w+|twice|times|consistently|offline|fast(?:er)?|slow(?:er)?|secure|uncached|fresh\w*|really"
    r"|actually|real|race|production-ready|as expected|handles?|rejects?|accepts?|proves?|scratch|re-?ran|(?:confirm"
    r"|show|demonstrate|verif)\w* that|because|since|due|unchanged|unaffected|unrelated|expected|known|unverändert"
    r"|inchangé\w*|apart|other than|besides|bar|only|critical|high|major|more"
    r"|further|first|least|less|fewer|faster|under \d|below|mindestens|höchstens|weniger|mehr als|au moins|moins de"
    r"|plus de|al menos|menos de|más de|fixe[ds]|added|wrote|removed|return(?:s|ed)? \d+(?! (?:tests?|passed|failed))"
    r"|\d[\d,]*\s+(?:\w+\s+)?(?:commands?|builds?|linters?|changes|edits|verifications?)\b|tests? \d+(?:, \d+| and\b"
    r"| und\b| et\b| y\b)|neue[rn]?|nouveaux?|nouvelles?|nuev[oa]s)\b|新",
    re.IGNORECASE,
)
_EXIT = re.compile(
    r"(?:\b(?:exit(?:s|ed|ing)?(?:[ -]?(?:code|status))?|return(?:s|ed)?\s+(?:exit\s+)?(?:code|status)|rc"
    r"|rückgabewert|codes? (?:de )?(?:sortie|retour)|código de (?:salida|saída)|codice di uscita)|退出[代状]?[码态]"
    r"|終了コード|종료 코드|код\w* (?:выхода|возврата))(?:\s+(?:with|code|status|value|was|is|of|a|mit|war"
    r"|est))*\s*[:=：]?\s*\(?(?P<code>\d{1,3}|zero)\b(?!\s*/|\s+(?:passed|failed|tests?|errors?|warnings?))\)?",
    re.IGNORECASE,
)
_PASSES = re.compile(
    rf"{STATUSES['passed']}|\b(?:succeeds?|successful(?:ly)?|clean(?:ly)?|compiles|builds|works|formatted|valid|fine"
    r"|good|bestehen|fehlerfrei|sauber|durch(?:gelaufen)?|passe(?:nt)?|réussi\w*|vert[es]?|succès|pasa|pasó|verdes?"
    r"|éxito|limpi[oa]|passam|passou|sucesso|limpo|pulit[oa]|riuscit[oa]|superat[oi]|supera(?:no)?|passano|passati"
    r"|aprovad[oa]s|correct[oa]s?|correctamente|propre|einwandfrei|problemlos|in ordnung|laufen durch|läuft durch"
    r"|проходят|проходит|чисто|зелён\w+|(?:reports?|finds?|found|flags?|meldet|findet|demande|signale|trouve|segnala"
    r"|trova|encuentra|reporta) (?:nothing|nichts|rien|nulla|nada|niente))\b"
    r"|[\u2713\u2705\u2714]|正常|パス|グリーン|問題な|全绿|无误|干净|정상|이상 없",
    re.IGNORECASE,
)
_FAILS = re.compile(rf"{STATUSES['failed']}|\b(?:red|schlägt fehl|échoue|falla|falló|falha)\b", re.IGNORECASE)
_KIND = {
    "test": re.compile(r"(?i)\b(?:tests?|(?:test)?suite|specs|prüfungen|pruebas|testes|тест\w*)\b|测试|テスト|테스트"),
    "lint": re.compile(r"(?i)\b(?:lint(?:er|ing|s)?|code style|formatting)\b"),
    "types": re.compile(r"(?i)\b(?:type[- ]?check(?:s|er|ing)?|typprüfung)\b|类型检查|型チェック"),
    "build": re.compile(r"(?i)\b(?:builds?|compiles|compilation|compile|kompiliert|compila)\b|构建|编译|ビルド"),
}
_ALL = re.compile(
    r"\b(?:all|every|full|whole|entire|complete|everything|everywhere|repository|repo|solution|gesamte[ns]?"
    r"|ganze[ns]?|alle|sämtliche|toute?s?|tous|tod[oa]s|все)\b|全|所有|整个|すべて|모두",
    re.IGNORECASE,
)
_NEUTRAL = word_set(
    "ran run runs running re-ran rerun executed test tests suite suites spec specs output outputs result results shows"
    " show reports says all every full whole entire complete everything and with the a an of in is are was were be has"
    " have it each reported printed shown that via using by locally successfully now still again exit exits exited"
    " code status command verified checked confirmed completed complete finished final last project library crate"
    " package total returned returns gives workspace repo verification both validation evidence me i we after change"
    " this there on for to from at done test-suite alle die der das den laufen läuft sind ist jetzt wieder komplett"
    " gesamte les des la le tous toutes tout passent est sont suite maintenant todas todos las los el y e as os testes"
    " проходят все fully work works lint linting type types check checks build packages package modules module crates"
    " projects workspaces fix change changes container directory folder errors error warnings issues problems failures"
    " success ordnung fehler erreur erreurs succès errores éxito erros sucesso end place time row gesamt insgesamt"
    " place that it us docker repository root type-check type-checks wurden ausgeführt coverage abdeckung couverture"
    " cobertura bei"
)
_PROGRAMS = word_set(
    "python python3 node bash sh docker docker-compose podman npm npx pnpm yarn bun bunx cargo go mvn gradle uv uvx"
    " poetry pip ruby bundle rake rails php composer artisan dotnet java javac deno make cmake ninja ctest meson bazel"
    " gh just task tox nox turbo nx swift zig mix sbt kubectl helm terraform psql sqlite3 git rustc gcc g++ clang perl"
    " lua julia Rscript"
)
_ENGLISH = word_set("make just task go")
# Ordinary words that are also names of commands. In a sentence, such a word by itself does not name a command.
_ORDINARY = word_set(
    "test tests build check run fmt format doc docs bench install update add audit tool generate fix lint publish"
    " restore clean upgrade python python3 node bash sh npm npx yarn bun cargo go ruby bundle rake php java make just"
    " task git dotnet mix deno lake zig ci act cd rails swift docker mage composer mvn gradle uv"
)
_NUMERAL = r"(?<![\w.#/-])\d[\d.,]*\d|(?<![\w.#/-])\d(?![\w.])|(?<![\w./-])[A-Za-z]{1,8}-?\d[\w.]*\b(?![/\w])"
# Options, and words such as `unit` that narrow a check. They must occur in the command or its output.
_EXACT = re.compile(
    r"(?<!\S)\(?(--?[A-Za-z][\w-]*|(?i:unit|integration|e2e|end-to-end|smoke|functional|acceptance|strict|release"
    r"|debug|fmt|vet|miri|clippy|nextest|audit|headless|parallel|doc(?=[- ]?tests?))\b)"
)
# Words after a preposition, such as `on Linux`. They must occur in the command or its output.
_QUALIFIED = re.compile(
    r"(?:\b(?:on|for|under|with|across|against|at|from|over|within|in|after|auf|unter|mit|für|im|nach|sur|sous|avec|pour|dans"
    r"|après|con|bajo|para|com|sob|su|sotto|per|на|под)\s+|[(（])(?:(?:the|a|an|all|every|both|der|den|dem|die|das|allen|le"
    r"|la|les|el|los|las|o|os|as|il|lo|gli)\s+)*([^\W\d][\w./+:-]*)",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"\b(?:every|each|all|both)(?: of the| \w+)? (?:packages?|workspaces?|modules?|crates|projects?|services?"
    r"|targets?|versions?|features?)\b",
    re.IGNORECASE,
)
_PREBUILT = re.compile(r"ctest\b|\.?/?(?:build|target|dist)/|.*--no-build\b")  # commands that check an earlier build
# Words of a statement. If a part of a clause has these words but no result, it is about something else.
_ASSERTS = re.compile(
    r"\b(?:is|are|was|were|has|have|stays?|ist|sind|est|sont|está|están|são|everything|all|alles|tout|todo)\b",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"(?:[\w.-]+[._:/])?[A-Za-z]+(?:[A-Z][a-z]+|_[a-z]\w*|::\w+)\w*\Z")
_AROUND = "\"'“”(„:,;"
_TELLING = re.compile(rf"{_PASSES.pattern}|{_FAILS.pattern}|\d|\bexit|\bran?\b|\brun\b", re.IGNORECASE)
# Lines of an output that report failures or skipped tests. Their words do not show a success.
_BAD = re.compile(rf"(?im)^(?:=== |.*(?:{_SKIPPED.pattern}|{_FAILS.pattern})).*$")
# Commands that restore files, or make another copy of them.
_PUTTING_BACK = re.compile(
    r"\bgit\s+(?:-C\s+\S+\s+)?(?:stash(?!\s+(?:list|show|drop|clear))|checkout(?!\s+-[bB])|switch(?!\s+-[cC])"
    r"|restore(?!\s+--staged)|revert|reset\s+--(?:hard|merge|keep)|apply\s+(?:-R|--reverse)|worktree\s+add|clone)"
    r"|\bpatch\s+-R"
)
_BUILDERS = word_set("make lake zig ninja cmake bazel mvn gradle sbt rake meson")
# Exit codes of checks that did not run: pytest (4, 5), shells (126, 127), npm (254).
_NOT_BEGUN = (4, 5, 126, 127, 254)

# The log

_Judged = tuple[Verdict, str, "LoggedAct | None"]


class LogJudge:
    """Judges a text's statements about commands by the log of one attempt."""

    def __init__(self, log: ToolLog, workspace: str):
        self.log, self.workspace, self.ran, self.changes = log, workspace, log.commands, log.changes
        self.commands = defaultdict[str, set[Command]](set)  # by name and nickname
        for command in {one.command for one in self.ran}:
            self.commands[command.name].add(command)
            self.commands[command.nickname].add(command)
        self.programs = _PROGRAMS | {one.command.name.removeprefix("./") for one in self.ran}
        self.nicknames = {one.command.nickname for one in self.ran if not LOOKING.match(one.command.name)} - _ORDINARY

    def judge(self, kind: str, text: str, *, prose: bool = False) -> list[Claim]:
        """Return the claim and verdict for each command of each clause. In `prose`, a command by itself is no claim."""
        found: list[Claim] = []
        unknown: list[Claim] = []
        for clause in self._split_clauses(text[:LONGEST_TEXT]):
            claim = Claim(kind, clause.rstrip("."), _OPEN, NOT_UNDERSTOOD)
            mentions, said = self._read_clause(clause, prose=prose)
            if said is not None:
                for line in (one.line for one in mentions):
                    judged = (
                        self._judge_tests(said) if line is None else self._judge_command(said, line.command, line.place)
                    )
                    found.append(self._apply_doubts(claim, *judged))
            elif mentions:
                found.append(claim)
            elif re.search(r"\d", clause):
                # Keep this clause as not understood. Otherwise its numbers would seem verified by another clause.
                unknown.append(claim)
        return [*found, *unknown][:_MOST] if found else []

    # The statements of a text

    def _split_clauses(self, text: str) -> Iterator[str]:
        """Yield the clauses of a text. A sentence is split where it begins to speak of another check."""
        for first, last in _split_outside_ticks(_SENTENCE, text):
            sentence, begin, end, names = text[first:last], 0, 0, set[str]()
            for start, stop in _split_outside_ticks(_PIECE, sentence):
                piece = sentence[start:stop]
                kinds = {kind_of(one.line.command) for one in self._find_commands(piece) if one.line}
                about = {kind for kind, pattern in _KIND.items() if pattern.search(_TICKED.sub(" ", piece))}
                is_other = kinds or (about - names and "" not in names)
                if start and is_other and (not names or _TELLING.search(sentence[begin:end])):
                    yield sentence[begin:end].strip()
                    begin, names = start, set()
                names |= kinds or about
                end = stop
            if clause := sentence[begin:].strip():
                yield clause

    def _is_in_log(self, line: Line) -> bool:
        return any(extra_words(line.command, one) is not None for one in self.commands.get(line.command.name, ()))

    def _is_command(self, line: Line) -> bool:
        command = command_of(line.sole)
        if command.name.startswith("./") or kind_of(command):
            return True
        return len(line.sole) > 1 and command.name in self.programs

    def _find_commands(self, clause: str) -> list[Mention]:
        """Return the commands that a clause names in backticks. If there are none, return the commands of the log whose
        words occur in the clause."""
        ticked = [
            Mention(*one.span(), parse_line(" ".join(one[1].split()).removeprefix("$ ")))
            for one in _TICKED.finditer(clause)
        ]
        if mentions := [
            one for one in ticked if one.line and (self._is_in_log(one.line) or self._is_command(one.line))
        ]:
            return mentions
        words = list(re.finditer(r"[^\s`（），：、]+", _TICKED.sub(_mask, clause)))
        for place, first in enumerate(words):
            name = first[0].strip(_AROUND).removeprefix("./")
            nickname = name.casefold() if name.casefold() in self.nicknames else ""
            if (mentions and first.start() < mentions[-1].end) or not (nickname or name in self.programs):
                continue
            spans = (clause[first.start() : last.end()].lstrip(_AROUND) for last in words[place : place + _MOST_WORDS])
            lines = [parse_line(re.sub(r"[:,;)\"”]+\Z|(?<![./])\.\Z", "", span)) for span in spans]
            # A single word names a command only if it is a path or a nickname from the log.
            lines[0] = lines[0] if "/" in name else parse_line(nickname)
            known = next((count for count in range(len(lines), 0, -1) if self._is_in_log(lines[count - 1])), 0)
            if known or (len(lines) > 1 and name in _PROGRAMS - _ENGLISH and kind_of(lines[1].command)):
                line = lines[known - 1] if known else _UNKNOWN
                mentions.append(Mention(first.start(), words[place + (known or 2) - 1].end(), line))
        return mentions

    def _read_clause(self, clause: str, *, prose: bool) -> tuple[list[Mention], Statement | None]:
        """Return the commands that a clause mentions, and its statement about these commands. If the statement is not
        understood, it is None. If the clause is about no check, there are no mentions."""
        mentions, rest = self._find_commands(clause), clause
        for one in reversed(mentions):
            rest = f"{rest[: one.start]} \0 {rest[one.end :]}"
        outside = _TICKED.sub(" ", rest)
        codes = {parse_number(code) for code in _EXIT.findall(outside)}
        quantities, left = read_quantities(_EXIT.sub(" ", outside))
        is_result = any(one.status in ("passed", "failed") or one.subject == "errors" for one in quantities)
        unknown, code = mentions or [Mention()] * is_result, min(codes, default=None)
        is_strange = any(one.line is _UNKNOWN for one in mentions)
        if is_strange or len(codes) > 1 or _HEDGED.search(outside) or _QUOTED.search(rest):
            return unknown, None
        has_failures = any(one.is_failure for one in quantities)
        passes = _PASSES.search(outside) is not None or any(one.is_fault and not one.is_failure for one in quantities)
        fails = has_failures or _FAILS.search(left) is not None
        more: list[str] = _MORE.findall(outside) + _NAUGHT.findall(_PASSES.sub(" ", outside))
        pieces = (outside[first:last] for first, last in _split_outside_ticks(_PIECE, outside))
        more += [one for one in pieces if _ASSERTS.search(one) and not _TELLING.search(one) and "\0" not in one]
        shown = [*_TICKED.findall(rest), *re.findall(_NUMERAL, left)]
        shown += re.findall(r"\d+(?:[.,:]\d+)*", " ".join(TIME.findall(outside)))
        kinds = {kind_of(one.line.command) for one in mentions if one.line} or {"test"}
        if mentions:
            shown += _LITERAL.findall(rest) + _EXACT.findall(outside)
            shown += filter(_IDENTIFIER.match, re.findall(r"[\w.:]+", outside))
            named = (word.strip(".:") for word in _QUALIFIED.findall(left))
            shown += [one for one in named if one.casefold() not in _NEUTRAL and not _PASSES.search(one)]
            # A bullet that is only a command, without a result, says that the command was run.
            is_told = passes or fails or code is not None or quantities
            if not (is_told or (not prose and (shown or not re.search(r"\w", rest)))):
                return unknown, None
        else:
            is_of_tests = _KIND["test"].search(_TICKED.sub(" ", clause)) is not None
            is_counted = any(one.status == "passed" and one.subject in ("", "tests") for one in quantities)
            if not passes or not (is_of_tests or is_counted):
                return unknown, None
            words = re.findall(r"[A-Za-zÀ-ÿ][\w'./-]*", _PASSES.sub(" ", _TICKED.sub(" ", left)))
            more += shown + [one for one in words if one.casefold().rstrip(".'") not in _NEUTRAL | self.nicknames]
            shown = []
        passes = passes and not has_failures and not code
        more_words = " ".join(dict.fromkeys(more))
        said = Statement(rest, passes, fails, code, quantities, shown, more_words, kinds)
        return mentions or [Mention()], said

    # Verdicts

    def _apply_doubts(self, claim: Claim, verdict: Verdict, detail: str, done: LoggedAct | None) -> Claim:
        """Return the claim with this verdict, or as unverifiable if there are doubts. The main doubt is that files may
        have changed since the run."""
        if done is None:
            return claim._replace(verdict=verdict, detail=detail)
        doubts = [f"; after that {one.change}" for one in self.changes if one.latest_end > done.at and one is not done]
        same = [one for one in self.ran if one.command.program == done.command.program]
        if verdict is _NO:
            was_good = any(one.at < done.at and not one.is_bad for one in same)
            doubts = ["; but it was good before, and files were changed after that"] if was_good and doubts else []
            if any(_PUTTING_BACK.search(one.act.what) for one in self.ran if one is not done):
                doubts.append("; but files were put back, or copied")
        else:
            doubts += [f"; after that {one.words}" for one in same if one.at > done.at and one.is_bad]
            doubts += [f", but {self.log.gap}"] * self.log.is_partial
            replaced = re.compile(rf"/{re.escape(done.command.name)}(?![\w./-])")
            early = [one for one in self.changes if one.at < done.at]
            doubts += [f"; before it {one.change}" for one in early if replaced.search(one.act.what)]
            if _PREBUILT.match(done.command.text):
                builds = (one.at for one in self.ran if kind_of(one.command) == "build" and one.at < done.at)
                built = max(builds, default=0.0)
                doubts += [f"; it was built before {one.change}" for one in early if not one.line and built < one.at]
        if doubts and verdict is not _OPEN:
            verdict, detail = _OPEN, f"{detail}{doubts[0]}"
        return claim._replace(verdict=verdict, detail=detail, call=done.call)

    def _judge_command(self, said: Statement, asked: Command, place: str) -> _Judged:
        known = [(one, extra_words(asked, one.command, said.rest)) for one in self.ran]
        same = [one for one, rest in known if rest == ""]
        if not same:
            return self._judge_not_found(asked, [(one, rest) for one, rest in known if rest])
        words = {place, *(word.strip("`'\"(),:;./") for word in said.rest.split())}
        places = {posixpath.normpath(posixpath.join(self.workspace, word)) for word in words}
        here = [one for one in same if one.place in places]
        if not here:
            return _OPEN, f"it was run, but in {same[-1].place or 'a directory that is not told'}", same[-1]
        done = here[-1]
        verdict, detail = _compare_outcome(said, done)
        if verdict is _NO and said.admits_failure:
            return _OPEN, f"{detail}; but it is said to have failed", done
        if verdict is _NO and any(one.at > done.at and _runs_program(one, asked) for one in self.ran):
            return _OPEN, f"{detail}; something like it was run after that", done
        return verdict, detail, done

    def _judge_not_found(self, asked: Command, parts: list[tuple[LoggedAct, str]]) -> _Judged:
        """Judge a statement about a command that was not run exactly as named. `parts` are runs that covered less, each
        with its extra arguments."""
        for done, rest in parts[-1:]:
            return _OPEN, f"{done.words}; it covers only {rest}", done
        if self.log.gap:
            return _OPEN, f"it is not in the log, but {self.log.gap}", None
        kind, name = kind_of(asked), asked.name
        if maybe := [one for one in self.ran if _runs_program(one, asked) or _may_have_run(one, kind, name)]:
            return _OPEN, f"it was not run as it is named; `{shorten(maybe[-1].act.what)}` may be it", maybe[-1]
        return _NO, "never run", None

    def _judge_tests(self, said: Statement) -> _Judged:
        """Judge a statement about tests in general, which names no command."""
        runs = [one for one in self.ran if one.line and one.line.sole and kind_of(one.command) == "test"]
        runs = [one for one in runs if not checks_nothing(one.command)]
        vague = [one for one in self.ran if one not in runs and _may_have_run(one, "test")]
        if not runs:
            doubt = self.log.gap or (vague and f"what `{shorten(vague[-1].act.what)}` ran is not known")
            doubt = doubt or (said.more and f"more is said than that: {said.more[:80]}")
            return (_OPEN if doubt else _NO), "no test was run" + f"; but {doubt}" * bool(doubt), None
        last = runs[-1]
        others = {(one.command.text, one.place): one for one in runs}
        others.pop((last.command.text, last.place))
        is_elsewhere = any(not f"{one.place}/".startswith(f"{self.workspace}/") for one in runs)
        if is_elsewhere or any(one.is_bad or one.code is None for one in others.values()):
            return _OPEN, f"others failed, or may be about something else; the last time, {last.words}", last
        verdict, detail = _compare_outcome(said, last)
        is_bare = extra_words(Command(last.command.name), last.command, said.rest) == "" and not _ALL.search(said.rest)
        is_all = last.place == self.workspace and (is_bare or covers_everything(last.command))
        if not is_all and not (verdict is _NO and last.counts and last.counts.failed and not said.passed):
            return _OPEN, f"only a part was run: {last.words}", last
        is_sure = said.passes and not (said.more or said.admits_failure or vague) and last.code not in _NOT_BEGUN
        if verdict is _NO and (not is_sure or (others and not last.code) or _VAGUE.search(said.rest)):
            return _OPEN, f"the last run does not show it: {detail}", last
        return verdict, f"the last time, {last.words}" if verdict is _NO and last.is_bad else detail, last


def _runs_program(done: LoggedAct, asked: Command) -> bool:
    """Tell whether a shell line ran the program of the command `asked`, or may have run it."""
    return done.parts is None or any(command_of(words).program == asked.program for words in done.parts)


def _may_have_run(done: LoggedAct, kind: str, name: str = "") -> bool:
    """Tell whether a shell line may have run the program `name`, or any check of this kind if `name` is ""."""
    commands = [command_of(words) for words in done.parts or () if not starts_nothing(words)]
    names = {name} if name else _BUILDERS
    return done.parts is None or any(
        kind_of(one) == ""
        or (not name and kind_of(one) == kind)
        or (RUNNERS.match(one.name) and (kind_of(one) == kind or one.name in names))
        for one in commands
    )


# Numbers compared with an output


def _counts_same(said: Quantity, other: Quantity) -> bool:
    """Tell whether a claimed and a printed number may count the same. `12 tests` may mean all or only passed tests."""
    subjects = {said.subject, other.subject}
    if said.subject not in ("", "tests"):
        return len(subjects) == 1 and said.status in ("", other.status)
    wanted = {"": ("", "total", "passed"), "total": ("", "total")}.get(said.status, (said.status,))
    return (len(subjects) == 1 or ("" in subjects and said.status != "")) and other.status in wanted


def _compare_numbers(said: Statement, done: LoggedAct) -> tuple[list[str], list[str]]:
    """Return the numbers of a statement that the output contradicts, and the numbers that the output does not show."""
    wrong, absent = list[str](), list[str]()
    summed = (done.counts or Counts())._asdict().items()
    shown = quantities_in(done.output) | {
        Quantity(str(count), "tests", key) for key, count in summed if count is not None
    }
    for one in said.quantities:
        same = {other.number for other in shown if _counts_same(one, other)}
        if not (one.subject or one.status):
            if not _occurs_near(one, f"{done.output}\n{done.command.text}"):
                absent.append(f"{one.number} {one.near.strip()}"[:40])
        elif one.number not in same:
            # A number is wrong only if exactly one other number can be meant. A percentage may be rounded.
            is_sure = len(same) == 1 or (same and one.subject in ("", "tests", "errors"))
            if is_sure and one.number[-1] != "%":
                wrong.append(one.words)
            elif one.number != "0" or not one.is_fault:
                absent.append(one.words)
    return wrong, absent


def _occurs_near(one: Quantity, output: str) -> bool:
    """Tell whether a line of the output has this number, and also a word that is near the number in the claim."""
    near = [word[:5] for word in re.findall(r"[^\W\d_]{3,}", one.near.casefold())]
    lines = (line for line in output.casefold().splitlines() if _occurs(one.number, line))
    return any(not near or any(word in line for word in near) for line in lines)


def _occurs(value: str, output: str) -> bool:
    """Tell whether an output contains a number or a literal as a whole word."""
    value, output = (" ".join(text.split()).casefold().replace(",", "") for text in (value, output))
    more = r"(?:\.?\d*m?s?\b|)" if re.fullmatch(r"\d+(?:\.\d+)?", value) else "s?" if value.isalpha() else ""
    return re.search(rf"(?<![\w.]){re.escape(value)}{more}(?!\w|\.\d)", output) is not None


def _compare_outcome(said: Statement, done: LoggedAct) -> tuple[Verdict, str]:
    """Compare how a command ended with the statement about it. Return the verdict and the reason."""
    code, output, found, clause = done.code, done.output, done.counts or Counts(), said.rest
    kind, is_counted, passed = kind_of(done.command), done.counts is not None, said.passed
    wrong, absent = _compare_numbers(said, done)
    if said.passes and ((found.failed and not passed) or (LISTING.match(done.command.text) and output)):
        wrong.append("that it passes")
    if wrong and not said.more:
        return _NO, f"says {', '.join(wrong)}; its output says {found.words if is_counted else 'otherwise'}"
    if None not in (code, said.exit_code) and code != said.exit_code:
        return _NO, f"says exit code {said.exit_code}; it ended with {code}"
    is_shown = said.more or said.admits_failure or found.passed in passed
    if said.passes and code and not is_shown and not LOOKING.match(done.command.name):
        return _NO, f"it ended with exit code {code}"
    good = _BAD.sub("", output) if said.passes else output
    beside = f"{good}\n{done.act.what}\n{done.place}"
    absent += [one for one in said.shown if not _occurs(one, beside)]
    others = (words for of_kind, words in _KIND.items() if not (said.kinds & {of_kind, ""} or words.search(beside)))
    absent += [match[0] for words in others if (match := words.search(_TICKED.sub(" ", clause)))]
    numbers = {sum(passed), *(int(one.number) for one in said.tests)}
    has_skips = found.skipped if is_counted else _SKIPPED.search(output)
    is_told = any(one.status == "skipped" for one in said.quantities)
    hides = has_skips and not is_told and (found.passed not in numbers or _ALL.search(clause) is not None)
    is_unequal = passed and (is_counted or kind == "test") and not {sum(passed), *passed} & {found.passed, found.total}
    is_empty = found.passed == 0 if is_counted else _EMPTY.search(output) or not _RESULT.search(output)
    is_aside = said.quantities and all(one.subject in ("suites", "files") for one in said.quantities)
    is_faulty = _FORGIVING.search(output) or (kind not in ("", "test") and _FAULTS.search(output))
    doubts = (
        (not (done.line and done.line.sole), "; the line hides how its commands ended"),
        (code is None, ": the line hides it, or it was in the background, or stopped"),
        (code and not (said.exit_code == code or said.admits_failure), ", which it does not say"),
        (not code and said.fails and not found.failed, ", and not as it says"),
        (said.more, f"; but more is said than a log can show: {said.more[:80]}"),
        (_EACH.search(clause), "; that is not each, perhaps"),
        (wrong or is_unequal, "; its output does not show all of it"),
        (hides or (found.failed and not code), ", which it does not say"),
        (absent, f", but its output does not say {', '.join(dict.fromkeys(absent))[:80]}"),
        (checks_nothing(done.command), "; with these options it checks nothing"),
        (kind == "test" and (is_empty or is_aside) and not code, "; it printed no result, or no test was in it"),
        (not code and is_faulty, ", but its output speaks of faults"),
    )
    words = next((words for applies, words in doubts if applies), None)
    return (_YES, done.words) if words is None else (_OPEN, f"{done.words}{words}")


# Clauses


def _mask(match: re.Match[str]) -> str:
    return "`" * len(match[0])


def _split_outside_ticks(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a text between the matches. Ignore matches inside backticks."""
    start = 0
    for match in pattern.finditer(_TICKED.sub(_mask, text)):
        yield start, match.start()
        start = match.end()
    yield start, len(text)
