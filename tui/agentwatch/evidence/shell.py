"""Parses shell lines. Finds the command that set the exit code, and commands that check, change or start something.

Nothing is run. A command has the result of its line only if it is the only command, or follows a plain `cd`. A line
that is not fully understood (substitutions, loops, functions) may have started any program and changed any file.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from functools import lru_cache
from typing import NamedTuple


def word_set(words: str) -> frozenset[str]:
    """Return the set of the words in a text."""
    return frozenset(words.split())


LONGEST = 16_384  # characters of the longest line that is parsed

Words = tuple[str, ...]

_MARKS = "();<>|&\n"
_WORDS_OF_SHELL = word_set(
    "if then else elif fi for while until do done case esac in function select coproc { } ! [[ ]] eval exec trap alias"
    " unalias exit return break continue shopt wait builtin command"
)
_SUBSTITUTED = re.compile(r"`|\$\(|\$\{|<\(|>\(|<<|\(\)|\0")
# A here-document in which nothing is substituted.
_DOCUMENT = re.compile(r"<<-?\s*(['\"])(\w+)\1.*?^[ \t]*\2[ \t]*$", re.DOTALL | re.MULTILINE)
_OTHER_BLANK = re.compile(r"[^\S \t\n]")  # a blank at which shells do not split words
# Finds a single `&`, which leaves a job running in the background.
_DETACHED = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[&<>|]&|&>|(&)", re.DOTALL)
_SILENT = re.compile(r"(?<!2)>\s*/dev/null")
_MERGED = re.compile(r"(?<=\s)(?:2>\s*&1|[12&]?>\s*/dev/null)(?=\s|\Z|[;&|)])")
_LED = re.compile(r"\s*cd\s+(?P<to>[^\s;&|<>()$`*?\[~'\"\\-][^\s;&|<>()$`*?\['\"\\]*)\s*&&\s*")
# Ends of a line, such as `| tail`, that set the line's exit code but print no result of their own.
_PASSED_ON = re.compile(
    r"(?<!\s)\s*(?:\|\s*(?:tail|head|tee|cat)\b[^|;&<>\n]*|(?:;|\|\|)\s*(?:true|echo\b[^|;&<>\d\n]*))\Z"
)


class Line(NamedTuple):
    """A shell line. `parts` are the words of all its commands, or None if the line is not fully understood. If only one
    command prints, `sole` are its words. The line has the exit code of this command, unless `hides_exit_code`. `place`
    is the directory to which plain `cd` commands lead."""

    text: str
    parts: tuple[Words, ...] | None = None
    sole: Words = ()
    place: str = ""
    hides_exit_code: bool = False

    @property
    def command(self) -> Command:
        """The command that prints if exactly one does, otherwise the whole line as one command."""
        return command_of(self.sole) if self.sole else Command(" ".join(self.text.split()))


@lru_cache(4096)
def parse_line(text: str) -> Line:
    """Parse a shell line. Never raise."""
    text = _OTHER_BLANK.sub("\N{REPLACEMENT CHARACTER}", text)
    plain = _DOCUMENT.sub(" ", text) if text.count("<<") <= 20 else text
    parts, place, end = _split_commands(plain), "", 0
    while (led := _LED.match(text, end)) is not None:
        place, end = posixpath.join(place, led["to"]), led.end()
    rest = _PASSED_ON.sub("", text[end:])
    sole = _split_commands(rest) if parts and not _SILENT.search(rest) else None
    is_sole = sole is not None and len(sole) == 1 and not any("<" in word or ">" in word for word in sole[0])
    hides_exit_code = rest != text[end:] or "&" in _DETACHED.findall(plain[:LONGEST])
    return Line(text, parts, sole[0] if sole and is_sole else (), place, hides_exit_code)


def _split_commands(text: str) -> tuple[Words, ...] | None:
    """Return the words of each command in a line, with redirections, or None if the line is not fully understood."""
    if len(text) > LONGEST or _SUBSTITUTED.search(text):
        return None
    lexer = shlex.shlex(_MERGED.sub("", text.replace("\\\n", " ")), posix=True, punctuation_chars=_MARKS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t", "", True
    parts: list[list[str]] = [[]]
    try:
        for token in lexer:
            mark = set(token) if set(token) <= set(_MARKS) else set()
            if token.startswith("#") or mark & set("()"):
                return None
            if mark and not mark & set("<>"):
                parts.append([])
            else:
                parts[-1].append(token)
    except ValueError:
        return None
    commands = tuple(tuple(part) for part in parts if part)
    return None if not commands or {part[0] for part in commands} & _WORDS_OF_SHELL else commands


# Wrappers

# Prefixes before a command, such as `env` or `CI=1`. Any other variable (`odd`) may make another program run.
_WRAPPERS = re.compile(
    r"(?:(?:(?:CI|NO_COLOR|FORCE_COLOR|COLUMNS|TERM|TZ|LC_ALL|LANG|DEBUG|PORT|\w+_ENV|\w*LOG(?:_LEVEL)?|DATABASE_URL"
    r"|PYTHON(?:UNBUFFERED|HASHSEED|DONTWRITEBYTECODE)|RUST_(?:BACKTRACE|LOG)|CARGO_TERM_COLOR)=\S*"
    r"|(?P<odd>[A-Za-z_]\w*\+?=\S*))(?: |\Z)"
    r"|(?:time|env|nice|nohup|sudo|command|xvfb-run|stdbuf -\w+|timeout (?:-[ks] ?\w+ |--(?:kill-after|signal)=\w+ "
    r"|--(?:preserve-status|foreground) )*\d\S*|(?:uv|poetry|pipenv|pdm|rye) run"
    r"|hatch run(?= (?:pytest|ruff|mypy|python))|conda run -n \w\S*|coverage run -m|mise exec --|direnv exec \."
    r"|dotenv --|bundle exec|npx|bunx|pnpm (?:exec|dlx)|yarn exec|npm exec|nix develop -c"
    r"|(?:docker[ -]compose (?:exec|run)|(?:docker|podman) exec) (?:(?:-[iTt]+|--(?:rm|no-deps)) )*\w\S*)"
    r"(?: (?:-y|--yes|--no-install|--frozen|--locked|--no-sync|-q|--quiet|--preserve-status|--))* )"
)
_BINARIES = re.compile(r"(?:\./)?(?:\.?v?env[\w.-]*/bin|node_modules/\.bin|vendor/bin)\Z|/(?:usr/(?:local/)?)?bin\Z")
_RENAMED = [
    (re.compile(r"\A(?:\./)?(gradle|mvn)w(?= |\Z)"), r"\1"),
    (re.compile(r"\A(?:python[\d.]*|py) -m (?=\S)"), ""),
    (re.compile(r"\A(?:npm|pnpm|yarn|bun(?! test\b)) (?:run |run-script )?(?=\S)"), "npm "),
]
# Options that change how much is printed or how a check is done, but not what is checked.
_NEUTRAL = re.compile(
    r"(?<= )(?:-(?:[qsvxi]{1,4}|l|D \S+|p tsconfig\S*|ntp|r[A-Za-z]{1,6}|[jn]\d+|j|B|W \S+|[nj] (?:auto|\d+)|count=1"
    r"|race)|--(?:(?:tb|format|ext|colou?rs?|durations|cov|cov-report|maxfail|max-warnings|reporters?"
    r"|timeout)(?:[= ]\S+)?|no-(?:cache|header|summary|color|cov|watch|error-summary|fail-fast|progress|ansi|pager"
    r"|transfer-progress|daemon|bail|build|restore)|quiet|silent|verbose|exitfirst|watch(?:All)?=false|ci|coverage"
    r"|run-?[iI]n-?[bB]and|pretty|show-error-codes|locked|nocapture|parallel|strict-markers|passWithNoTests|batch-mode"
    r"|nologo|stacktrace|output-on-failure|continue|diff)|--test-dir[ =]\S+|-[Cp] (?:\S*build\S*|out))(?= |\Z)"
    r"|(?<=cmake --build) \S+"
)


class Command(NamedTuple):
    """A command without wrappers such as `env`. If `may_be_other`, its variables may make another program run."""

    text: str = ""
    may_be_other: bool = False

    @property
    def name(self) -> str:
        """The first word, which names the program."""
        return self.text.partition(" ")[0]

    @property
    def nickname(self) -> str:
        """The name by which people call the command: `test` for `cargo test`, or the program's name."""
        words = self.text.split()
        return words[1] if len(words) > 1 and words[0] in _STARTING_TOOLS else self.name.rpartition("/")[2]

    @property
    def program(self) -> tuple[str, ...]:
        """The program's name, and its first argument if that argument chooses what runs (`npm test`)."""
        chosen = [word for word in self.text.split()[1:] if not word.startswith("-")][:1]
        return (self.name, *chosen) if _CHOOSING.match(self.name) else (self.name,)


_STARTING_TOOLS = word_set("cargo go dotnet npm bundle composer mix")
_CHOOSING = re.compile(
    r"(?:python|python3|php|node|bash|sh|cargo|go|npm|bun|deno|make|dotnet|mvn|gradle|composer|docker|rake|just|task"
    r"|nx|turbo|git|mix|zig|swift|cmake|bazel|sbt|bin/rails|mise|poetry|uv)\Z"
)


@lru_cache(4096)
def command_of(words: Words) -> Command:
    """Return the command that these words of a line run, without wrappers such as `env` or `uv run`."""
    text, may_be_other = " ".join(words), False
    while match := _WRAPPERS.match(text):
        may_be_other, text = may_be_other or match["odd"] is not None, text[match.end() :]
    directory, name = posixpath.split(text.partition(" ")[0])
    if _BINARIES.match(directory):
        text = name + text[len(directory) + 1 + len(name) :]
    for pattern, name in _RENAMED:
        text = pattern.sub(name, text, count=1)
    return Command(text, may_be_other)


_LONGEST_COMPARED = 600  # characters; a longer command is not compared with others


def extra_words(asked: Command, ran: Command, clause: str = "") -> str | None:
    """Return the extra arguments that make `ran` check less than `asked`. Leave out arguments that the clause mentions.
    Return None if `ran` is another command."""
    if asked.may_be_other != ran.may_be_other or max(len(ran.text), len(asked.text)) > _LONGEST_COMPARED:
        return None
    wanted, words = asked.text.split(), ran.text.split()
    is_known, is_nickname = kind_of(ran) != "", wanted == [ran.nickname] != words[:1] and "/" not in ran.name
    if not (wanted and words) or (wanted[0] != words[0] and not is_nickname):
        return None
    place, rest = 1, list[str]()
    for word in words[2 if is_nickname and words[0] in _STARTING_TOOLS else 1 :]:
        if wanted[place : place + 1] == [word]:
            place += 1
        else:
            rest.append(word)
    if place < len(wanted):
        return None
    more = " " + " ".join(rest)
    more = _NEUTRAL.sub("", more) if is_known else more
    return " ".join(word for word in more.split() if word not in _WHOLE and not _is_mentioned(word, clause))


def _is_mentioned(word: str, clause: str) -> bool:
    """Tell whether a clause mentions an argument. `model` mentions `spec/models`, `dry run` mentions `--dry-run`."""
    names = [name for name in re.split(r"[\W_]+", word.partition("=")[0].rstrip("/").rpartition("/")[2]) if name]
    pattern = r"[\W_]*".join(re.escape(name.removesuffix("s")) for name in names)
    return len(pattern) > 2 and re.search(rf"(?<![^\W_]){pattern}s?(?![^\W_])", clause, re.IGNORECASE) is not None


# Checks

_LINT = re.compile(
    r"(?:ruff(?: check| format)?|eslint|flake8|pylint|black|prettier|isort|golangci-lint|shellcheck|rubocop|standardrb"
    r"|stylelint|biome(?: check| lint)?|hadolint|yamllint|markdownlint\S*|pre-commit|gofmt|goimports|oxlint"
    r"|lint-imports|phpcs|php-cs-fixer|pint|phpstan|psalm|ktlint|detekt|clang-(?:tidy|format)|cppcheck|swiftlint"
    r"|sqlfluff|staticcheck|bandit|brakeman|semgrep|cargo (?:clippy|fmt)|go vet|dotnet format|mix (?:credo"
    r"|format))(?= |\Z)|\S+ (?:\S+ )?(?:\S*(?:lint|checkstyle|spotless|spotbugs|cs-check|stan|sniff|analy[sz]e)\S*"
    r"|\S*(?:format|fmt)\S*check\S*|fmt)(?= |\Z)"
)
_TYPES = re.compile(
    r"(?:tsc|mypy|pyright|basedpyright|pyre|vue-tsc|ty|srb|flow)(?= |\Z)|\S+ (?:\S+ )?(?:type-?check\S*|types?|tsc"
    r"|check[:-]types)(?= |\Z)"
)
_TESTS = re.compile(
    r"(?:pytest|unittest|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|pest|ctest|bats|trial|nose2|karma|cypress"
    r"|node (?:\S+ )*--test|playwright|behave|cucumber|gotestsum|busted|cargo nextest|\S*[/_-]tests?|\S*tests?\.(?:sh"
    r"|py|exe))(?= |\Z)|\S+ (?:(?:-\S+|\w[\w:-]*|\S+\.(?:py|php|js|rb)) ){0,3}(?!-)(?:[\w:-]*[:_-])?(?:tests?"
    r"|specs?)(?:[:_-][\w.:-]+)?(?= |\Z)|(?:make|just|task|npm|gradle|mvn|rake|composer"
    r"|ninja)(?: -\S+)* (?:[\w:-]*[:_-])?(?:check|verify|ci)(?:[:_-][\w:-]+)?(?= |\Z)"
)
_BUILD = re.compile(
    r"(?:make|ninja|webpack|rollup|tsup|esbuild|sphinx-build|javac|gcc|g\+\+|rustc|python build)(?= |\Z)|cargo check"
    r"|\S+ (?:(?:-\S+|\w[\w:-]*) ){0,3}-{0,2}(?:[\w:-]*[:_-])?(?:build|compile|assemble|package|bundle|publish"
    r"|pack)(?:[:_-][\w:-]+)?(?= |\Z)"
)
# Programs that run commands from a file of the project.
RUNNERS = re.compile(
    r"(?:npm|make|just|task|rake|tox|nox|pre-commit|mvn|gradle|docker\S*|zig|lake|ninja|cmake|bazel|sbt|turbo|nx"
    r"|composer|mix|meson|moon|lerna|manage\.py|\S*[/.]\S*)\Z"
)
_WHOLE = word_set(
    ". ./... --workspace --all run discover check --check --noEmit -r --release --all-features --all-targets --"
    " analyse analyze --verify-no-changes --all-files"
)
# Programs of the project itself, and scripts that test only a part of it, such as `test:unit`.
_OWN = re.compile(r"/(?<!\Abin/)|bin/(?!rails |rake )|tests?[:_-]|[:_-]tests?\b")
_MAKING = re.compile(r"-(?:s|w|k|C|j\d*)|--(?:silent|no-print-directory|jobs(?:=\d+)?)")
# Options that may make a check do nothing.
_NO_CHECK = re.compile(
    r"(?:--version|-V|-h|--help|--collect-only|--co|--list\S*|--no-run|--dry-run|-n|-N|--just-print|--fixtures"
    r"|--markers|--init|--showConfig|--setup-(?:plan|only)|--print-config|--exit-zero|--issues-exit-code\S*"
    r"|--if-present|--ignore-scripts|--list-tests)\Z"
)
_NO_TESTS = re.compile(r"gradle .*-x \S*[tT]est\b|.* -DskipTests\b|.* -Dmaven\.test\.skip\b")
_FORMATTERS = re.compile(
    r"(?:black|prettier|isort|ruff format|cargo fmt|gofmt|goimports|mix format|pint|php-cs-fixer|clang-format"
    r"|dotnet format)(?= |\Z)"
)

_LOOKING_ONLY = re.compile(r"--(?:check|dry-run|verify|verify-no-changes|list-different|list|test|help|version)\Z")
# Formatters that list the files that they would change, but exit with 0.
LISTING = re.compile(r"(?:gofmt|goimports) (?:.* )?-l(?= |\Z)(?!.* -w)")
_PARTIAL = re.compile(r" -(?![tTrj]|-target|-build)")


@lru_cache(4096)
def kind_of(command: Command) -> str:
    """Return the kind of a check: "test", "lint", "types" or "build". Return "" if the command is no check."""
    if not re.match(r"[A-Za-z./]", command.text) or CHECKING_NOTHING.match(command.name):
        return ""
    text = re.sub(r"\Acargo \+\S+", "cargo", command.text)
    kinds = {"lint": _LINT, "types": _TYPES, "test": _TESTS, "build": _BUILD}
    found = [kind for kind, pattern in kinds.items() if pattern.match(text)]
    return next((kind for kind in found if kind != "test" or not _NO_TESTS.match(text)), "")


def checks_nothing(command: Command) -> bool:
    """Tell whether the options of a check make its exit code meaningless."""
    if command.name == "make":
        return any(word.startswith("-") and not _MAKING.fullmatch(word) for word in command.text.split())
    options = [word for word in _NEUTRAL.sub("", command.text).split() if word.startswith("-")]
    if _FORMATTERS.match(command.text):
        return not (any(map(_LOOKING_ONLY.match, options)) or LISTING.match(command.text))
    is_shell = re.match(r"(?:ba|z|da)?sh -\w*c", command.text) is not None
    return is_shell or (any(map(_NO_CHECK.match, options)) and kind_of(command) != "")


def covers_everything(command: Command) -> bool:
    """Tell whether a check covers the whole project, as far as its arguments show."""
    text = " ".join(_NEUTRAL.sub("", command.text).split())
    match = next((match for pattern in (_LINT, _TYPES, _TESTS, _BUILD) if (match := pattern.match(text))), None)
    if match is None or command.may_be_other or _OWN.search(match[0]) or _PARTIAL.search(match[0]):
        return False
    return set(text[match.end() :].split()) <= _WHOLE


# Commands that change or start nothing

_LOOKS = (
    r"ls|cat|head|tail|less|more|grep|egrep|fgrep|rg|ag|wc|sort|uniq|cut|tr|pwd|echo|printf|which|type|whoami|id|date"
    r"|uname|hostname|stat|file|du|df|tree|find|fd|bat|jq|yq|diff|cmp|comm|column|nl|tac|rev|basename|dirname|realpath"
    r"|readlink|sleep|true|false|:|test|\[|printenv|ps|pgrep|sha256sum|md5sum|shasum|xxd|od|strings|seq|cd|export|set"
    r"|umask|awk|sed|free|lsof|ss|uptime|nproc|kill|pkill"
)
_DOES = "curl|wget|tee|touch|cp|mv|rm|rmdir|ln|patch|tar|unzip|zip|gzip|gunzip|chmod|chown|mkdir"
_GIT_READS = (
    "status|diff|log|show|branch|rev-parse|ls-files|blame|tag|remote|config|describe|shortlog|add|commit|push|fetch"
    "|rev-list|cat-file|grep|reflog|ls-remote|ls-tree|version|help|merge-base|check-ignore|for-each-ref|diff-tree"
)
GIT_HOOKED = "commit|push|merge|rebase|pull|am|cherry-pick|revert|checkout|switch|worktree"
_GIT = r"git (?:-C \S+ |-(?!c)\S+ )*"
# These programs never check anything. Programs in LOOKING also change no file, unless an option tells them to.
LOOKING = re.compile(rf"(?:{_LOOKS})\Z")
CHECKING_NOTHING = re.compile(rf"(?:{_LOOKS}|{_DOES}|git)\Z")
# Commands with these programs that start other programs, or change data on a server.
_STARTING = re.compile(
    r"(?:find|fd) (?:.* )?(?:-(?:exec|ok)|-[xX](?= |\Z)|--exec)|awk .*(?:system|\|)|awk (?:.* )?-f"
    r"|sed (?:.* )?(?:.*[\d$;{/])?e(?: |\Z)|sed (?:.* )?(?:-f|--file)|rg (?:.* )?--pre\b"
    r"|sort (?:.* )?--compress-program|tar (?:.* )?(?:-I|--(?:checkpoint-action|to-command|use-compress))"
    r"|curl (?:.* )?(?:-[A-Za-z]*[XdFT]|--(?:request|data|json|form|upload-file))|wget (?:.* )?--(?:method|post|body)"
    r"|git (?:\S+ )*rebase(?= |\Z)",
    re.DOTALL,
)
_STARTS_NOTHING = re.compile(
    rf"(?:{_LOOKS}|{_DOES})(?= |\Z)|(?:source|\.) (?:.*/)?activate\Z|{_GIT}(?:{_GIT_READS}|{GIT_HOOKED}|restore|reset"
    rf"|stash|clean|rm|mv|init|clone|apply)(?= |\Z)"
)
_PREPARING = re.compile(
    r"(?:npm|pip3?|gem|composer|bundle|poetry|pnpm|brew|apt(?:-get)?|go) (?:install|add|ci|mod|get|download)(?= |\Z)"
    r"|uv (?:sync|pip|add|lock)(?= |\Z)|dotnet (?!run|watch|tool|msbuild|test|exec)|cargo (?!run|xtask|make|watch|test"
    r"|nextest|insta)|go (?!run|generate|tool|test)"
)
_READING = re.compile(
    rf"(?!(?:{_LOOKS}|{_DOES}|(?:ba|z)?sh|python3?|node|make|just|git) )\S+ (?:\S+ )?(?:validate|show|list|ls|info"
    r"|audit|outdated|plan|graph|dependencies|dependency:\S+|config|query|doctor|status|version|diff|logs|ps|inspect"
    r"|tree|why|view|describe|--version|-[vV]|--help|dev|start|serve|preview)(?!.* (?:fix|--fix)\b)(?= |\Z)|(?:grep"
    r"|egrep|fgrep|rg|ag|ls|ps|id|wc|diff|pgrep|sort|date|cat|stat|which|test|\[|mkdir)(?= |\Z)"
    r"|\S+ (?:\S+ )?\S*:(?:check|status|show|list|routes|version)(?= |\Z)|(?:valgrind|nm|ldd|objdump|readelf|size"
    r"|hyperfine|javap)(?= |\Z)|curl (?!.*(?:-o|-O|--output|--remote-name))"
    rf"|(?:source|\.) (?:.*/)?activate\Z|{_GIT}(?:{_GIT_READS})(?= |\Z)|(?:{_LOOKS})(?= |\Z)(?!.* (?:-i\S*"
    rf"|--in-place\S*|-delete|-exec\w*|-ok\w*|-fprint\w*|-w|-o"
    r"|--output\S*)(?= |\Z))",
    re.DOTALL,
)
_FIXING = re.compile(
    r"(?:\S*(?:\bfix|\bformat|\bfmt|write|apply)\b\S*|--fix\S*|--write|-w|-i|--in-place|-[uaA]|--update\S*|--auto\S*"
    r"|--accept\S*)\Z"
)


def starts_nothing(words: Words) -> bool:
    """Tell whether a command is no check and starts no check. Hooks of git are ignored."""
    text, inner = " ".join(words), command_of(words).text
    known = not inner or _STARTS_NOTHING.match(text) or _PREPARING.match(inner) or _READING.match(inner)
    return bool(known) and not _STARTING.match(text)


def changes_nothing(words: Words) -> bool:
    """Tell whether a command certainly changes no file of the workspace."""
    command = command_of(words)
    if any(">" in mark and set(mark) <= set("<>&|") for mark in words):
        return False
    if any(map(_LOOKING_ONLY.match, words[1:])):
        return True
    if not kind_of(command):
        return not command.text or _READING.match(command.text) is not None
    # A build writes only its own output files, but `make` may do anything.
    guessed = command.name.startswith("make") and kind_of(command) == "build"
    is_writing = _FORMATTERS.match(command.text) and checks_nothing(command)
    return not (command.may_be_other or is_writing or guessed or any(map(_FIXING.match, words[1:])))
