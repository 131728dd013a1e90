"""What a sentence of a return says about a command or a test: which, and how it is said to have ended. Pure.

A sentence that says it only perhaps, of somebody else, or of another time, says nothing that could be held against a
log; half of an understanding would make lies of what are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from agentwatch.evidence.commands.line import CommandLine, parse
from agentwatch.evidence.commands.outcomes import Counts
from agentwatch.evidence.commands.programs import program
from agentwatch.evidence.commands.tables import DOING, LOOKING, TOPICS, Topic

LONGEST: Final = 2_000
"""Characters of a text in which statements are looked for."""
_MOST: Final = 20
_MOST_WORDS: Final = 16
"""Words of a sentence without a command that is still read: a longer one says more than how tests ended."""


class Statement(NamedTuple):
    """What is said of a command, or of the tests as such where `command` is None; then `topic` says of what.

    `passes`: it ended well. `counts` and `exit_code` are those that are named. `says_all`: of everything there is.
    `extra` is what else is said, which no log shows, "" for nothing.
    """

    text: str
    command: CommandLine | None = None
    topic: Topic | None = None
    passes: bool = False
    exit_code: int | None = None
    counts: Counts = Counts()
    says_all: bool = False
    extra: str = ""

    @property
    def says_how(self) -> bool:
        """It says how the command ended, and not only that there was one."""
        return self.passes or self.exit_code is not None or self.counts != Counts()


_PART: Final = re.compile(r";\s+|(?<=[\w`)%])[.!]\s+(?=[A-Z`\d])|\s\|\s|\n+")
_CLAUSE: Final = re.compile(
    r"(?:(?<!\d),\s+|,\s+(?!\d))"
    r"(?!(?:and\s+)?(?:\d+|no|zero)\s+(?:failed|failures?|errors?|skipped|xfailed|pending|warnings?))"
    r"|(?<!\d)\s+and\s+|\s+and\s+(?!\d)"
)
"""Between two numbers they belong together: `tests 3 and 4 pass`."""
_TICKED: Final = re.compile(r"`+([^`\n]{1,1000})`+")
_PERHAPS: Final = re.compile(
    r"\b(?:not|never|cannot|unable|could|would|will|may|might|expect\w*|plan(?:s|ned)?|todo|pending|to be|if|when"
    r"|once|unless|until|before|previous\w*|earlier|baseline|initial\w*|original\w*|parent|orchestrator|reviewer"
    r"|user|ci|upstream|somebody|someone|reported by|according|assum\w+|likely|probably|maybe|seems?|appears?"
    r"|estimated|approx\w*|roughly|about|around|almost|nearly|most|some|partly|partially|except|but|however"
    r"|although|pre-?existing|unrelated|instead|blocked|skip(?:ped)? running|next|used to|want\w*|try|tried|trying"
    r"|attempt\w*|example|e\.g|tomorrow|later|future|other agent|sibling|remain\w*|flaky|timed? ?out|abort\w*"
    r"|interrupted|killed|crash\w*|wip|unknown|unclear|skipped because|didn|don|doesn|isn|aren|wasn|won|couldn"
    r"|can|to (?:check|verify|confirm|reproduce|see|run)|please)\b|n't\b|~\s*\d|\?",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(
    r"(?:\.(?:md|markdown|mdx|rst|txt|adoc|json|ya?ml|toml|html?|log)(?::\d[\d-]*)?|\b(?:readme|changelog|contributing|makefile"
    r"|docs?|documentation|manual|guide|issue|ticket|plan|comment|handoff|packet|task|description|badge))`?\s+"
    r"(?:says?|said|states?|stated|claims?|claimed|reads?|documents?|promises?|mentions?|tells?|asks?|notes?|describes?"
    r"|recommends?|requires?|shows?|lists?)\b",
    re.IGNORECASE,
)
"""A document says it, and not who returns."""
_ASKED: Final = re.compile(r"^\W*(?:(?:re-?)?(?:run|execute)|the (?:\w+ )?command (?:is|to|for))\b", re.IGNORECASE)
"""It tells the reader to, where it names no result."""
_DEMANDED: Final = re.compile(
    r"\b(?:must|should|shall|has to|have to|need(?:s)? to)\b(?:\s+(?:all\s+)?be\b)?", re.IGNORECASE
)
_MADE: Final = re.compile(
    r"^\W*(?:add(?:ed|s|ing)?|wr(?:ite|ote|itten)|creat(?:e|ed|es)|fix(?:ed|es)?|updat(?:e|ed)|implement\w*|document\w*|remov\w+"
    r"|mak(?:e|es|ing)|made|refactor\w*|chang\w+|mov\w+|renam\w+|delet\w+|support\w*|handl\w+|ensur\w+|let|allow\w*)\b",
    re.IGNORECASE,
)
_N: Final = r"(?<![\w.#-])(\d[\d,]{0,8})"
_OF: Final = re.compile(rf"{_N}\s*(?:/|of|out of)\s*(\d[\d,]{{0,8}})\b", re.IGNORECASE)
_GOOD: Final = re.compile(
    rf"{_N}\s+((?:\w+\s+)??)(?:(?:unit\s+)?(?:tests?|examples?)\s+)?(?:(?:all|now|are|have|is)\s+)*"
    r"(?:passed|passing|pass(?:es)?|green|succeeded|ok)\b",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(
    r"\b(?:(?:test|suite|spec|check|case|command|run|build|step|phase|change|edit)\s+|(?:suites?|files?|projects?)\s*:\s*)\Z",
    re.IGNORECASE,
)
"""A number behind it says which, and not how many."""
_OTHERS: Final = re.compile(
    r"\b\d[\d,]*\s+(?:\w+\s+)?(suites?|specs?|checks?|cases?|commands?|builds?|linters?|types|runs|results|outputs"
    r"|projects?|verifications?|validations?|changes|edits)\b",
    re.IGNORECASE,
)
"""What is counted beside tests, and no output of tests counts."""
_RAN: Final = re.compile(rf"\bran\s+{_N}\s+tests?\b", re.IGNORECASE)
_BAD: Final = re.compile(
    r"\b(\d[\d,]{0,8}|no|zero)\s+(?:tests?\s+)?(?:failed|failing|fail|failures?|errors?)\b", re.IGNORECASE
)
_LEFT: Final = re.compile(rf"{_N}\s+(?:tests?\s+)?(?:skipped|pending|ignored|xfailed|deselected)\b", re.IGNORECASE)
_EXIT: Final = re.compile(
    r"\b(?:exit(?:s|ed|ing)?|return(?:s|ed)?\s+(?:exit\s+)?(?:code|status)|rc)(?:\s+(?:with|code|status|value|was|is|of|a))*"
    r"\s*[:=]?\s*\(?(?P<code>-?\d{1,3}|zero|cleanly)\b(?!\s*/|\s+(?:passed|failed|tests?|errors?|warnings?))\)?",
    re.IGNORECASE,
)
_PASSES: Final = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|successful(?:ly)?|success|ok|clean(?:ly)?|compiles|builds"
    r"|(?:no|0|zero|without(?: any)?) (?:(?!new|critical|high|major|more|other|further)\w+ )?"
    r"(?:errors?|issues?|problems?|failures?|findings|complaints))\b|[\u2713\u2705\u2714]",
    re.IGNORECASE,
)
_TOPIC_WORDS: Final = (
    (Topic.TESTS, re.compile(r"\b(?:tests?|test[- ]suite|suite)\b", re.IGNORECASE)),
    (Topic.LINT, re.compile(r"\blint(?:er|ing|s)?\b", re.IGNORECASE)),
    (Topic.TYPES, re.compile(r"\btype[- ]?check(?:s|er|ing)?\b", re.IGNORECASE)),
    (Topic.BUILD, re.compile(r"\bbuilds?\b", re.IGNORECASE)),
)
_VAGUE: Final = re.compile(r"\b(?:clean(?:ly)?|green|no \w+|without \w+)\b", re.IGNORECASE)
_KIND: Final = re.compile(
    r"(?:unit|integration|e2e|end-to-end|new|existing|relevant|regression|affected|related|functional|smoke|acceptance"
    r"|frontend|backend|\S+'s|\S*(?:tests?|specs?)\S*(?:/|\.(?:py|[jt]sx?|rs|go|rb|java|kt|php|cs|exs?|cc?|cpp|swift|sh)))\Z",
    re.IGNORECASE,
)
"""What tests are called of which only a part is meant; beside other words, they are not surely tests."""
_ALL: Final = re.compile(r"\b(?:all|every|full|whole|entire|complete|everything)\b", re.IGNORECASE)
_TIME: Final = re.compile(
    r"\(?\b(?:in|after|took)?\s*\d+(?:\.\d+)?\s*(?:ms|s|sec|secs|seconds|m|min|minutes)\b\)?", re.IGNORECASE
)
_NEUTRAL: Final = re.compile(
    r"(?:ran|run|runs|running|re-?ran|re-?run|executed|test|tests|suite|suites|spec|specs|output|outputs|result"
    r"|results|shows?|reports?|says|all|every|full|whole|entire|complete|everything|and|with|the|a|an|of|in|is|are"
    r"|was|were|be|has|have|it|each|reported|printed|shown|that|via|using|by|locally|successfully|now|still|again|exit|exits|exited|code"
    r"|status|command|commands|verified|checked|confirmed|passing|passed|pass|passes|green|ok|clean|cleanly"
    r"|completed?|finished|final|last|lint|linter|linting|linters|type|types|check|checks|checker|typecheck"
    r"|type-check|build|builds|compiles|project|total|returned|returns|gives|stdout|success|successful"
    r"|successfully|workspace|repo|verification|validation|evidence|me|i|we|after|change|changes|edit|edits|this"
    r"|there|on|for|to|from|at)\Z",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[\w'/.%+-]+")
_INSIDE: Final = re.compile(r"\([^()]*\)")
_LABEL: Final = re.compile(
    r"^\W*(?:\$\s+|>\s+)?(?:(?:re-?ran|ran|running|executed|command|cmd|verified (?:with|by)|checked with|tests?"
    r"|test (?:command|run)|verification|validation|lint|build|type-?check)\s*:?\s+)?",
    re.IGNORECASE,
)
_UNTICKED_END: Final = re.compile(
    r"\s+[\u2014\u2013-]\s+|\s*[:;(,\u2192]|\s*[=-]>|\s+(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|exit(?:s|ed)?"
    r"|fail(?:s|ed)?|return(?:s|ed)?|is|was|are|were|reports?|shows?|gives?|with|and|green|clean|ok"
    r"|successful(?:ly)?|completed?|finished|no)\b|\s+(?=\d+ )",
    re.IGNORECASE,
)
_TOOLS: Final = {"ruff": "ruff check", "clippy": "cargo clippy"}
"""What people call a check that has a longer name."""
_STARTERS: Final = frozenset(
    (
        *(
            "python",
            "python3",
            "node",
            "bash",
            "sh",
            "docker",
            "npm",
            "npx",
            "pnpm",
            "yarn",
            "bun",
            "cargo",
            "go",
            "mvn",
        ),
        *(
            "gradle",
            "uv",
            "poetry",
            "pip",
            "ruby",
            "bundle",
            "php",
            "composer",
            "dotnet",
            "java",
            "deno",
            "make",
            "gh",
            "just",
        ),
    )
)


_SCRIPT: Final = re.compile(r"\./(?:[\w.-]+/)*[\w-]+(?:\.sh)?\Z")
"""What is started by its path, and no file of another kind."""


def tells_result(text: str) -> bool:
    """Whether a text says how something ended, be it of a command or of a file in which that stands."""
    told = _result(_TICKED.sub(" ", text[:LONGEST]))
    return told.counts != Counts() or told.exit_code is not None


def statements_in(text: str, *, by_clause: bool = False, demanded: bool = False) -> list[Statement]:
    """What a text says about commands and tests, sentence by sentence.

    `by_clause`: it is prose, in which one sentence says several things. `demanded`: it says what has to be so.
    """
    found: list[Statement] = []
    for part in _split(_PART, text[:LONGEST]):
        if _PERHAPS.search(_TICKED.sub(" ", part)) or _QUOTED.search(part):
            continue
        for clause in _split(_CLAUSE, part) if by_clause else [part]:
            words = _DEMANDED.sub(" ", clause) if demanded else clause
            read = _read(words.strip())
            kept = (one for one in read if one.says_how or not (by_clause or demanded or one.extra))
            found += (one._replace(text=clause.strip().rstrip(".")) for one in kept)
    return found[:_MOST]


def _split(pattern: re.Pattern[str], text: str) -> list[str]:
    """The parts of a text between what the pattern finds outside of ticks and brackets."""
    masked = _TICKED.sub(lambda match: "`" * len(match[0]), text)
    masked = _INSIDE.sub(lambda match: "(" * len(match[0]), masked)
    parts, start = [], 0
    for match in pattern.finditer(masked):
        parts.append(text[start : match.start()])
        start = match.end()
    return [*parts, text[start:]]


def _read(clause: str) -> Iterator[Statement]:
    if not clause or _DEMANDED.search(_TICKED.sub(" ", clause)):
        return
    commands, rest = _commands_in(clause)
    if _MADE.match(rest.replace("`", "")):
        return
    result = _result(rest)
    if _ASKED.match(clause) and result.counts == Counts() and result.exit_code is None:
        return
    if len(commands) > 1 and (result.counts != Counts() or result.exit_code is not None):
        # Which of them it is about cannot be told.
        return
    for one in commands:
        is_check = any(program(part.words).name in TOPICS for part in one.parts)
        vague = _VAGUE.search(rest) if not is_check else None
        # Of what is no check, these words say something about its output.
        yield result._replace(command=one, extra=f"{result.extra} {vague[0]}".strip() if vague else result.extra)
    if commands:
        return
    topic = next((topic for topic, pattern in _TOPIC_WORDS if pattern.search(rest)), None)
    # `3/3 green` may be of anything.
    if topic is None and result.counts.passed is not None and not _OF.search(rest):
        topic = Topic.TESTS
    is_short = len(rest.split()) <= _MOST_WORDS
    says_how = result.passes or result.counts.passed is not None
    if topic is not None and is_short and says_how and all(map(_KIND.match, result.extra.split())):
        yield result._replace(topic=topic)


def _commands_in(clause: str) -> tuple[list[CommandLine], str]:
    """The commands that a clause names, and what it says besides."""
    ticked = [parse(span.strip()) for span in _TICKED.findall(clause)]
    commands = [line for line in ticked if _is_command(line)]
    if commands:
        return commands, _TICKED.sub(" ", clause)
    if ticked:
        # A name in ticks is something that the clause is about.
        return [], clause
    label = _LABEL.match(clause)
    behind = clause[label.end() if label else 0 :]
    end = _UNTICKED_END.search(behind)
    words = behind[: end.start() if end else len(behind)].strip().rstrip(".").removesuffix(" --")
    line = parse(_TOOLS.get(words, words))
    if words and line.plain and len(line.parts) == 1 and program(line.parts[0].words).name in TOPICS:
        # `make` and its like are words, too.
        is_word = words in ("make", "flow", "black", "just")
        return ([], clause) if is_word else ([line], clause.replace(words, " ", 1))
    return [], clause


def _is_command(line: CommandLine) -> bool:
    if not line.parts or not line.parts[-1].argv:
        return False
    first = line.parts[0].argv or line.parts[-1].argv
    if any(program(part.words).name in TOPICS for part in line.parts):
        return True
    name = first[0]
    if name in LOOKING or name in DOING or name in _STARTERS or name.startswith("./") or name.endswith("python"):
        return (len(first) > 1 or _SCRIPT.match(name) is not None) and not name[0].isupper()
    return "/" in name and any(word.startswith("-") for word in first[1:])


def _result(rest: str) -> Statement:
    """How a clause says that it ended; what is left of it is `extra`."""
    left = _TIME.sub(" ", rest)
    exit_code, counts = None, Counts()
    if (told := _EXIT.search(left)) is not None:
        word = told["code"].casefold()
        exit_code = 0 if word in ("zero", "cleanly") else int(word)
        left = left.replace(told[0], " ", 1)
    qualifier = ""
    if (of := _OF.search(left)) is not None:
        passed, total = _number(of[1]), _number(of[2])
        counts = Counts(passed, 0 if passed == total else None)
        left = left.replace(of[0], " ", 1)
    elif (good := _good(left)) is not None:
        counts, qualifier = Counts(_number(good[1])), good[2].strip()
        left = left.replace(good[0], f" {qualifier} passed ", 1)
    elif (ran := _RAN.search(left)) is not None:
        counts, left = Counts(_number(ran[1])), left.replace(ran[0], " ", 1)
    passes = _PASSES.search(left) is not None or (of is not None and counts.bad == 0)
    if (bad := _BAD.search(left)) is not None and (counts.passed is not None or not passes or bad[1][0].isdigit()):
        counts = counts._replace(bad=0 if not bad[1][0].isdigit() else _number(bad[1]))
        left = left.replace(bad[0], " ", 1)
    if (skipped := _LEFT.search(left)) is not None:
        counts = counts._replace(skipped=_number(skipped[1]))
        left = left.replace(skipped[0], " ", 1)
    if counts.bad:
        passes = False
    left = _PASSES.sub(" ", left)
    digits = re.findall(r"\S*\d\S*", left)
    outside = _INSIDE.sub(" ", left)
    others = [word for word in _WORD.findall(outside) if not _NEUTRAL.match(word) and re.search(r"\w", word)]
    counted = [match[1] for match in _OTHERS.finditer(rest)]
    extra = " ".join(dict.fromkeys([*others, *digits, *counted]))
    return Statement(rest, None, None, passes, exit_code, counts, _ALL.search(rest) is not None, extra)


def _good(text: str) -> re.Match[str] | None:
    """Where it says how many passed."""
    return next((match for match in _GOOD.finditer(text) if not _NUMBERED.search(text[: match.start()])), None)


def _number(digits: str) -> int:
    return int(digits.replace(",", ""))
