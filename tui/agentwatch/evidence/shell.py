"""Shell lines: their commands without wrappers, and which of those check, change or start something. Pure.

Nothing is ever run here. A line that is not surely understood (substitutions, loops, functions, here-documents) is not
plain, and nobody may build on its parts.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple


def words_of(words: str) -> frozenset[str]:
    """A table of words, as they stand in a line."""
    return frozenset(words.split())


LONGEST: Final = 16_384
"""Characters of a line that is looked at."""
_MOST: Final = 200
"""Commands of a line; one with more is a program."""

_MARKS: Final = "();<>|&\n"
_JOINS: Final = words_of("&& || | |& & ;") | {"\n"}
_TO_FILE: Final = words_of("> >> >| &> &>>")
_FROM: Final = frozenset(["<", ">&", "<&"])
_WORDS_OF_SHELL: Final = words_of(
    "if then else elif fi for while until do done case esac in function select coproc { } ! [[ ]] eval exec"
    " trap alias unalias exit return break continue shopt wait builtin command"
)
_SUBSTITUTED: Final = re.compile(r"`|\$\(|\$\{|<\(|>\(|<<|\(\)")
_QUOTED_MARK: Final = re.compile(r"""\\[();<>|&]|(["'])[();<>|&\s]+\1""")
_MERGED: Final = re.compile(r"(?<=\s)2>\s*(?:&1|/dev/null)(?=\s|\Z|[;&|)])")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_UNKNOWN_PLACE: Final = re.compile(r"[~-]|.*[$*?\[]")
_DOCUMENT: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?^[ \t]*\2[ \t]*$", re.DOTALL | re.MULTILINE)
_COMMENT: Final = re.compile(r"(?m)(?:(?<=\s)|^)#[^\n]*$")


class Topic(StrEnum):
    """The kinds of checks; the values are words of the reasons."""

    TESTS = "test"
    LINT = "linter"
    TYPES = "type checker"
    BUILD = "build"


class Command(NamedTuple):
    """A command without wrappers and without options that only say how much is printed.

    `odd`: variables that are set for it may make it another program. `box` is the container it runs in. `options` are
    those that say how a check is done, and not of what.
    """

    words: tuple[str, ...] = ()
    odd: bool = False
    box: str = ""
    options: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def program(self) -> tuple[str, ...]:
        """The program, with the words behind it that choose another one."""
        chosen = [word for word in self.words[1:] if not word.startswith("-")]
        if _PLAIN_PROGRAM.match(self.name) and (topic_of(self) or not chosen or not chosen[0].isalpha()):
            return self.words[:1]
        return (self.name, *chosen[: 2 if re.match(r"(?:python3?|php|docker|nx|turbo)\Z", self.name) else 1])


_PLAIN_PROGRAM: Final = re.compile(
    r"(?!(?:python|python3|php|node|bash|sh|cargo|go|npm|bun|deno|make|dotnet|mvn|gradle|composer|docker|rake|just|task"
    r"|nx|turbo|git|mix|zig|swift|cmake|bazel|sbt|bin/rails|mise|poetry|uv)\Z)"
)


class Part(NamedTuple):
    """One command of a line, the mark before it (`&&`, `|`, …; "" for the first) and the files it prints into."""

    words: tuple[str, ...]
    joined: str = ""
    targets: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The words without the variables that are set."""
        count = next((at for at, word in enumerate(self.words) if not _ASSIGNED.match(word)), len(self.words))
        return self.words[count:]


class Line(NamedTuple):
    """A whole line. `plain`: all of it is understood."""

    text: str
    parts: tuple[Part, ...] = ()
    plain: bool = False

    def directory(self, number: int, cwd: str) -> str:
        """The directory in which a part runs, "" where that cannot be told: `cd` before it leads there."""
        place = cwd
        for part in self.parts[:number]:
            match part.argv:
                case ("cd", to) if not _UNKNOWN_PLACE.match(to):
                    place = posixpath.join(place, to) if place or to.startswith("/") else ""
                case ("cd" | "pushd" | "popd", *_):
                    return ""
        return posixpath.normpath(place) if place else ""

    @property
    def sole(self) -> int | None:
        """The number of the command that alone has the exit code: it follows nothing but plain `cd`, and prints into
        no file. Nothing else of a shell is weighed: a check that is missed costs little, a false one everything."""
        last = len(self.parts) - 1
        leads = all(part.words[0] == "cd" and len(part.words) == 2 and not part.targets for part in self.parts[:last])
        joined = all(part.joined == "&&" for part in self.parts[1:])
        seen = self.plain and all(target.startswith("/dev/") for target in self.parts[last].targets)
        return last if leads and joined and seen else None


@lru_cache(4096)
def parse_line(text: str) -> Line:
    """Read a line. Never raises."""
    if len(text) > LONGEST or "\0" in text:
        return Line(text)
    lexer = shlex.shlex(_MERGED.sub("", text.replace("\\\n", " ")), posix=True, punctuation_chars=_MARKS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    try:
        tokens = list(lexer)
    except ValueError:
        return Line(text)
    parts = _parts(tokens)
    if parts is None or not 0 < len(parts) <= _MOST:
        return Line(text)
    strange = any(part.joined == "&" or (part.argv and part.argv[0] in _WORDS_OF_SHELL) for part in parts)
    doubtful = _SUBSTITUTED.search(text) or _QUOTED_MARK.search(text) or tokens[-1] == "&"
    return Line(text, parts, plain=not doubtful and not strange)


def _parts(tokens: Sequence[str]) -> tuple[Part, ...] | None:
    """The commands of a line; None where its marks make no sense, or group commands."""
    parts: list[Part] = []
    words: list[str] = []
    targets: list[str] = []
    joined, comment = "", False
    pending = iter([*tokens, "\n"])
    for token in pending:
        mark = token.strip("\n") or "\n" if set(token) <= set(_MARKS) else ""
        comment = comment and not (mark and "\n" in token)
        if comment:
            continue
        if mark in _JOINS:
            if words:
                parts.append(Part(tuple(words), joined, tuple(targets)))
                joined = ";" if mark == "\n" else mark
            elif mark not in (";", "\n"):
                return None
            words, targets = [], []
        elif mark in _TO_FILE or mark in _FROM:
            target = next(pending, "")
            targets += [target] if mark in _TO_FILE else []
            if words and words[-1] in ("1", "2"):
                words.pop()
        elif mark:
            return None
        elif token.startswith("#"):
            comment = True
        else:
            words.append(token)
    return tuple(parts)


# Wrappers

_WRAPPERS: Final = re.compile(
    r"(?:time|env|nice|nohup|sudo|command|xvfb-run|stdbuf -\w+|timeout (?:-\S+ )*\S+"
    r"|(?:uv|poetry|pipenv|pdm|rye) run|hatch run(?= (?:pytest|ruff|mypy|python))|conda run -n \S+|coverage run"
    r" -m|mise exec --|direnv exec \S+|dotenv --"
    r"|bundle exec|npx|bunx|pnpm (?:exec|dlx)|yarn exec|npm exec|nix develop -c"
    r"|(?P<box>docker[ -]compose (?:-\S+ \S+ )?(?:exec|run) (?:-\S+ )*\S+|(?:docker|podman) exec (?:-\S+ )*\S+))"
    r"(?: (?:-y|--yes|--no-install|--frozen|--locked|--no-sync|-q|--quiet|--preserve-status|--))* "
)
"""Commands that start another one and end as it does."""
_QUIET_VARIABLES: Final = re.compile(
    r"(?:CI|NO_COLOR|FORCE_COLOR|COLUMNS|TERM|TZ|LC_ALL|LANG|DEBUG|PORT|\w+_ENV|\w*LOG(?:_LEVEL)?|PYTHON(?:UNBUFFERED"
    r"|HASHSEED|DONTWRITEBYTECODE)|RUST_(?:BACKTRACE|LOG)|CARGO_TERM_COLOR|DATABASE_URL)="
)
"""Variables with which a program is still the same."""
_BINARIES: Final = re.compile(
    r"(?:\.?/)?(?:[\w.@-]+/)*(?:\.?v?env[\w.-]*/bin|node_modules/\.bin|vendor/bin)\Z|/(?:usr/(?:local/)?)?bin\Z"
)
"""Directories in which a program is the one that its name says."""
_RENAMED: Final = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"(?:\S*/)?gradlew(?= |\Z)", "gradle"),
        (r"(?:\S*/)?mvnw(?= |\Z)", "mvn"),
        (r"(?:python[\d.]*|py) -m build(?= |\Z)", "python build"),
        (r"(?:python[\d.]*|py) -m (?=\S)", ""),
        (r"py\.test(?= |\Z)", "pytest"),
        (r"cargo \+\S+", "cargo"),
        (r"(?:npm|pnpm|yarn|bun(?! test\b)) (?:run |run-script )?(?=\S)", "npm "),
        (r"npm t(?= |\Z)", "npm test"),
    )
]
"""Other names of the same program, in this order."""
_NEUTRAL: Final = re.compile(
    r"(?<= )(?:-(?:[qsvxi]{1,4}|l|r[A-Za-z]{1,6}|[jn]\d+|j|B|W \S+|[nj] (?:auto|\d+)|count=1|race)|--(?:(?:tb|colou?rs?"
    r"|durations|cov|cov-report|maxfail|max-warnings|reporters?|timeout)(?:[= ]\S+)?|no-(?:header|summary|color|cov"
    r"|watch|error-summary|fail-fast|progress|ansi|daemon|bail|build|restore)|quiet|silent|verbose|exitfirst"
    r"|watch(?:All)?=false|ci|coverage|run-?[iI]n-?[bB]and|pretty|show-error-codes|locked|nocapture|parallel"
    r"|strict-markers|passWithNoTests|batch-mode|nologo|stacktrace|output-on-failure|continue))(?= |\Z)"
)
"""Options that say how much is printed or how a check is done, and not of what."""
_PRINTING: Final = re.compile(
    r"-[qsvx]+|-B|--(?:tb|colou?rs?|quiet|silent|verbose|no-color|no-header|no-progress|batch-mode)"
)


@lru_cache(4096)
def command_of(words: tuple[str, ...]) -> Command:
    """The command that a part of a line starts."""
    rest, odd, box = list(words), False, ""
    while rest:
        if _ASSIGNED.match(rest[0]):
            odd |= _QUIET_VARIABLES.match(rest[0]) is None
            del rest[0]
        elif (wrapper := _WRAPPERS.match(" ".join(rest))) is not None:
            box = wrapper["box"] or box
            del rest[: wrapper[0].count(" ")]
        else:
            break
    if not rest:
        return Command()
    directory, name = posixpath.split(rest[0])
    text = " ".join([name if _BINARIES.match(directory) else rest[0], *rest[1:]])
    for pattern, name in _RENAMED:
        if (match := pattern.match(text)) is not None:
            text = name + text[match.end() :]
    if text.startswith("npm "):
        text = text.replace(" -- ", " ")
    command = Command(tuple(text.split()), odd, box)
    if command.name == "make" or topic_of(command) is None:
        return command
    options = frozenset(option.split(" ")[0] for option in _NEUTRAL.findall(text))
    return Command(tuple(_NEUTRAL.sub("", text).split()), odd, box, options)


def is_same(asked: Command, ran: Command) -> bool:
    """Whether a command that was run is the one that is asked for: it may print more or less."""
    missing = asked.options - ran.options
    boxed = not asked.box or asked.box == ran.box
    return asked.words == ran.words and asked.odd == ran.odd and boxed and all(map(_PRINTING.match, missing))


# Checks

_LINT: Final = re.compile(
    r"(?:ruff(?: check| format)?|eslint|flake8|pylint|black|prettier|isort|golangci-lint|shellcheck|rubocop|standardrb"
    r"|stylelint|biome(?: check| lint)?|hadolint|yamllint|markdownlint\S*|pre-commit|gofmt|goimports|oxlint"
    r"|lint-imports|phpcs|php-cs-fixer|pint|phpstan|psalm|ktlint|detekt|clang-(?:tidy|format)|cppcheck|swiftlint"
    r"|sqlfluff|staticcheck|bandit|cargo (?:clippy|fmt)|go vet|dotnet format|mix (?:credo|format))(?= |\Z)"
    r"|\S+ (?:\S+ )?(?:\S*(?:lint|cs-check|stan|sniff|analy[sz]e)\S*|\S*(?:format|fmt)\S*check\S*|fmt)(?= |\Z)"
)
_TYPES: Final = re.compile(
    r"(?:tsc|mypy|pyright|basedpyright|pyre|vue-tsc|ty|srb|flow)(?= |\Z)|\S+ (?:\S+ )?(?:type-?check\S*|types?"
    r"|tsc|check[:-]types)(?= |\Z)"
)
_TESTS: Final = re.compile(
    r"(?:pytest|unittest|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|pest|ctest|bats|trial|nose2|karma|cypress"
    r"|playwright|behave|cucumber|gotestsum|busted|cargo nextest|\S*[/_-]tests?|\S*tests?\.(?:sh|py|exe))(?= |\Z)"
    r"|\S+ (?:(?:-\S+|\w[\w:-]*|\S+\.(?:py|php|js|rb)) ){0,3}(?!-)(?:[\w:-]*[:_-])?(?:tests?"
    r"|specs?)(?:[:_-][\w.:-]+)?(?= |\Z)|(?:make|just|task|npm|gradle|mvn|rake|composer"
    r"|ninja)(?: -\S+)* (?:[\w:-]*[:_-])?(?:check|verify|ci)(?:[:_-][\w:-]+)?(?= |\Z)"
)
_BUILD: Final = re.compile(
    r"(?:make|ninja|webpack|rollup|tsup|esbuild|sphinx-build|javac|gcc|g\+\+|rustc|python build)(?= |\Z)|cargo check"
    r"|\S+ (?:(?:-\S+|\w[\w:-]*) ){0,3}-{0,2}(?:[\w:-]*[:_-])?(?:build|compile|assemble|package|bundle|publish"
    r"|pack)(?:[:_-][\w:-]+)?(?= |\Z)"
)
_RUNNERS: Final = re.compile(
    r"(?:npm|make|just|task|rake|tox|nox|pre-commit|mvn|gradle|docker\S*|zig|lake|ninja|cmake|bazel|sbt|turbo|nx"
    r"|composer|mix|meson|moon|lerna|manage\.py|\S*[/.]\S*)\Z"
)
"""Programs that start what somebody has written down for them elsewhere."""
_WHOLE: Final = words_of(
    ". ./... --workspace --all run discover --check --noEmit -r --release --all-features --all-targets"
)
"""Arguments with which all is checked."""
_OWN: Final = re.compile(r"/(?<!\Abin/)|bin/(?!rails |rake )|tests?[:_-]|[:_-]tests?\b")
"""Programs of one's own, and scripts that test a part: `test:unit`."""
_MAKING: Final = re.compile(r"-(?:s|w|k|C|j\d*)|--(?:silent|no-print-directory|jobs(?:=\d+)?)")
_NO_CHECK: Final = re.compile(
    r"(?:--version|-V|-h|--help|--collect-only|--co|--list\S*|--no-run|--dry-run|-n|-N|--just-print|--fixtures"
    r"|--markers|--init|--showConfig|--setup-(?:plan|only)|--print-config|--exit-zero|--issues-exit-code\S*"
    r"|--if-present|--ignore-scripts|--list-tests)\Z"
)
"""Options with which nothing is checked, or nothing need be."""
_FORMATTERS: Final = re.compile(
    r"(?:black|prettier|isort|ruff format|cargo fmt|gofmt|goimports|mix format|pint|php-cs-fixer|clang-format"
    r"|dotnet format)(?= |\Z)"
)


_REWRITING: Final = re.compile(r"(?!prettier|gofmt|goimports|clang-format)")


@lru_cache(4096)
def topic_of(command: Command) -> Topic | None:
    """The kind of check that a command is, None where it is none that is known."""
    text = " ".join(command.words)
    if not re.match(r"[A-Za-z./]", command.name) or CHECKING_NOTHING.match(command.name):
        return None
    for topic, pattern in ((Topic.LINT, _LINT), (Topic.TYPES, _TYPES), (Topic.TESTS, _TESTS), (Topic.BUILD, _BUILD)):
        if pattern.match(text):
            return topic
    return None


def checks_nothing(command: Command) -> bool:
    """Whether with its options a check says nothing by its end."""
    name, options = command.name, [word for word in command.words[1:] if word.startswith("-")]
    if name == "make":
        return any(not _MAKING.fullmatch(word) for word in options)
    is_formatter = _FORMATTERS.match(" ".join(command.words)) is not None
    if is_formatter and not any(
        re.match(r"--(?:check|dry-run|verify|list-different|test)|-c\Z", word) for word in options
    ):
        return True
    return any(map(_NO_CHECK.match, options)) and topic_of(command) is not None and not is_formatter


def is_whole(command: Command) -> bool:
    """Whether a check is of all there is, as far as its arguments tell."""
    text = " ".join(command.words)
    match = next((one for p in (_LINT, _TYPES, _TESTS, _BUILD) if (one := p.match(text)) is not None), None)
    if match is None or command.odd or text == "make" or _OWN.search(match[0]):
        return False
    if any(not re.match(r"-(?:[tTrj]|-target|-build)", word) for word in match[0].split() if word.startswith("-")):
        return False
    return set(text[match.end() :].split()) <= _WHOLE


def starts_others(command: Command) -> bool:
    """Whether a command starts what stands elsewhere, or is nothing that is known."""
    return topic_of(command) is None or _RUNNERS.match(command.name) is not None


# Commands that change or start nothing

_LOOKS: Final = (
    r"ls|cat|head|tail|less|more|grep|egrep|fgrep|rg|ag|wc|sort|uniq|cut|tr|pwd|echo|printf|which|type|whoami|id|date"
    r"|uname|hostname|stat|file|du|df|tree|find|fd|bat|jq|yq|diff|cmp|comm|column|nl|tac|rev|basename|dirname|realpath"
    r"|readlink|sleep|true|false|:|test|\[|printenv|ps|pgrep|sha256sum|md5sum|shasum|xxd|od|strings|seq|cd|export|set"
    r"|umask|awk|sed|free|lsof|ss|uptime|nproc|kill|pkill"
)
_DOES: Final = "curl|wget|tee|touch|cp|mv|rm|rmdir|ln|patch|tar|unzip|zip|gzip|gunzip|chmod|chown|mkdir"
_GIT_READS: Final = (
    "status|diff|log|show|branch|rev-parse|ls-files|blame|tag|remote|config|describe|shortlog|add|commit|push|fetch"
    "|rev-list|cat-file|grep|reflog|ls-remote|ls-tree|version|help|merge-base|check-ignore|for-each-ref|diff-tree"
)
GIT_HOOKED: Final = "commit|push|merge|rebase|pull|am|cherry-pick|revert|checkout|switch|worktree"
"""Commands at which git runs hooks."""
_GIT: Final = r"git (?:-C \S+ |-(?!c)\S+ )*"
LOOKING: Final = re.compile(rf"(?:{_LOOKS})\Z")
"""Programs that check nothing whatever they print, and change no file unless an option says so."""
CHECKING_NOTHING: Final = re.compile(rf"(?:{_LOOKS}|{_DOES}|git)\Z")
_STARTING: Final = re.compile(
    r"(?:find|fd) (?:.* )?(?:-(?:exec|ok)|-[xX](?= |\Z)|--exec)|awk .*(?:system|\|)|awk (?:.* )?-f"
    r"|sed (?:.* )?(?:.*[\d$;{/])?e(?: |\Z)|sed (?:.* )?(?:-f|--file)|rg (?:.* )?--pre\b"
    r"|sort (?:.* )?--compress-program|tar (?:.* )?(?:-I|--(?:checkpoint-action|to-command|use-compress))"
    r"|curl (?:.* )?(?:-[A-Za-z]*[XdFT]|--(?:request|data|json|form|upload-file))|wget (?:.* )?--(?:method|post|body)"
    r"|git (?:\S+ )*rebase(?= |\Z)",
    re.DOTALL,
)
"""Calls of such programs that start others, or what runs elsewhere."""
_STARTS_NOTHING: Final = re.compile(
    rf"(?:{_LOOKS}|{_DOES})(?= |\Z)|(?:source|\.) (?:.*/)?activate\Z"
    rf"|{_GIT}(?:{_GIT_READS}|{GIT_HOOKED}|restore|reset|stash|clean|rm|mv|init|clone|apply)(?= |\Z)"
)
_PREPARING: Final = re.compile(
    r"(?:npm|pip3?|gem|composer|bundle|poetry|pnpm|brew|apt(?:-get)?|go) (?:install|add|ci|mod|get|download)(?= |\Z)"
    r"|uv (?:sync|pip|add|lock)(?= |\Z)|dotnet (?!run|watch|tool|msbuild|test|exec)"
    r"|cargo (?!run|xtask|make|watch|test|nextest|insta)|go (?!run|generate|tool|test)"
)
"""Installations and builds: they start no check."""
_READING: Final = re.compile(
    rf"(?!(?:{_LOOKS}|{_DOES}|(?:ba|z)?sh|python3?|node|make|just|git) )\S+ (?:\S+ )?(?:validate|show|list|ls|info"
    r"|audit|outdated|status|version|diff|logs|ps|inspect|tree|why|view|describe|--version|-[vV]|--help|dev|start|serve"
    r"|preview)(?!.* (?:fix|--fix)\b)(?= |\Z)"
    r"|(?:grep|egrep|fgrep|rg|ag|ls|ps|id|wc|diff|pgrep|sort|date|cat|stat|which|test|\[|mkdir)(?= |\Z)"
    rf"|(?:source|\.) (?:.*/)?activate\Z|{_GIT}(?:{_GIT_READS})(?= |\Z)"
    rf"|(?:{_LOOKS})(?= |\Z)(?!.* (?:-i\S*|--in-place\S*|-delete|-exec\w*|-ok\w*|-fprint\w*|-w|-o"
    r"|--output\S*)(?= |\Z))",
    re.DOTALL,
)
"""Commands that leave the files as they are."""
_FIXING: Final = re.compile(r"(?:--fix\S*|--write|-w|-i|--in-place|-[uaA]|--update\S*|--auto\S*)\Z")
_BETWEEN: Final = re.compile(r"\$?\(+|[;&|\n)`]+|<\(")
_RESULT_RUN: Final = re.compile(r"(?:\A|[;&|\n(])[ \t]{0,40}['\"]?(?:`|\$\()")
_REDIRECTED: Final = re.compile(r"&?\d?[<>]{1,2}[|&]?\s*[^\s;&|()`<>]+")
_BEFORE: Final = words_of("if then else elif while until do ! { (")
_ALONE: Final = words_of(
    "for case select fi done esac } [[ ]] # exit return break continue wait read local declare shift unset \\"
)


def starts_nothing(words: Sequence[str]) -> bool:
    """Whether a command can be no check, and no script that has some run; what a hook of git runs, its output shows."""
    text, inner = " ".join(words), " ".join(command_of(tuple(words)).words)
    if not inner:
        return True
    known = _STARTS_NOTHING.match(text) or _PREPARING.match(inner) or _READING.match(inner)
    return known is not None and not _STARTING.match(text)


def changes_nothing(part: Part) -> bool:
    """Whether a command surely leaves the files of a workspace as they are."""
    command = command_of(part.words)
    text, topic = " ".join(command.words), topic_of(command)
    if any(not target.startswith("/dev/") for target in part.targets):
        return False
    if topic is None:
        return not text or _READING.match(text) is not None
    # What is built lies beside what it is built of; what `make` does is anybody's guess.
    writes = _REWRITING.match(text) and checks_nothing(command)
    is_making = command.name.startswith("make")
    return not (command.odd or writes or is_making or any(map(_FIXING.match, part.argv[1:])))


def without_documents(text: str) -> str:
    """A line without its here-documents."""
    return _DOCUMENT.sub(" ", text) if text.count("<<") <= 20 else text


def may_start(text: str, name: str = "") -> bool:
    """Whether a line that is not understood may start a check, a script or this program: it does not if all that stands
    between the marks of a shell begins with a word that starts nothing."""
    text = without_documents(text[: LONGEST + 1])
    if len(text) > LONGEST or _RESULT_RUN.search(text) or (name and re.search(rf"\b{re.escape(name)}\b", text)):
        return True
    for piece in _BETWEEN.split(_REDIRECTED.sub(" ", text)):
        words = piece.replace("'", " ").replace('"', " ").split()
        while words and (words[0] in _BEFORE or _ASSIGNED.match(words[0])):
            del words[0]
        if words and words[0] not in _ALONE and not starts_nothing(words):
            return True
    return False
