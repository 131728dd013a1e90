"""Tables of the programs that agents start, by the names that `programs` gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Topic(StrEnum):
    """What a program checks. The values are words of the reasons."""

    TESTS = "tests"
    LINT = "lint"
    TYPES = "types"
    BUILD = "build"


_TESTS: Final = (
    *("pytest", "unittest", "tox", "nox", "cargo test", "cargo nextest", "go test", "jest", "vitest", "mocha"),
    *("ava", "playwright test", "cypress run", "npm test", "make test", "make check", "mvn test", "mvn verify"),
    *("gradle test", "gradle check", "dotnet test", "rspec", "phpunit", "mix test", "swift test", "ctest"),
    *("rake test", "deno test", "bats", "node --test", "just test", "task test", "zig test", "sbt test"),
    *("manage.py test", "bun test", "trial", "nose2", "karma start", "flutter test", "dart test", "busted"),
)
_LINT: Final = (
    *("ruff check", "ruff format", "eslint", "flake8", "pylint", "cargo clippy", "cargo fmt", "golangci-lint run"),
    *("shellcheck", "black", "prettier", "biome check", "biome lint", "stylelint", "npm lint", "make lint"),
    *("go vet", "rubocop", "isort", "hadolint", "yamllint", "markdownlint", "pre-commit run", "gofmt", "oxlint"),
    *("mix credo", "mix format", "lint-imports", "just lint"),
)
_TYPES: Final = (*("tsc", "mypy", "pyright", "npm types", "pyre", "vue-tsc", "basedpyright", "ty check"),)
_BUILD: Final = (
    *("cargo build", "cargo check", "go build", "npm build", "make build", "make all", "make", "mvn package"),
    *("mvn compile", "gradle build", "gradle assemble", "vite build", "next build", "webpack", "rollup"),
    *("lake build", "cmake --build", "docker build", "dotnet build", "swift build", "mix compile", "zig build"),
    *("python build", "tsup", "esbuild", "bun build", "mkdocs build", "sphinx-build", "ninja", "bazel build"),
)
TOPICS: Final[Mapping[str, Topic]] = {
    name: topic
    for topic, names in ((Topic.TESTS, _TESTS), (Topic.LINT, _LINT), (Topic.TYPES, _TYPES), (Topic.BUILD, _BUILD))
    for name in names
}
"""What the known programs check, some by their first two words."""

WHOLE: Final[Mapping[str, tuple[str, ...]]] = {
    "unittest": ("discover",),
    "go test": ("./...",),
    "go vet": ("./...",),
    "go build": ("./...",),
    "ruff check": (".",),
    "ruff format": ("--check", "--check .", ". --check"),
    "eslint": (".",),
    "mypy": (".",),
    "pytest": (".",),
    "vitest": ("run",),
    "tsc": ("--noEmit",),
    "cargo test": ("--workspace", "--all"),
    "cargo clippy": ("--workspace", "--all"),
    "prettier": ("--check .",),
    "black": ("--check .",),
}
"""Arguments with which they check all that is there; without any they do, too."""

SCRIPTS: Final = (
    (Topic.TESTS, "npm test", re.compile(r"(?:t|tests?)\Z")),
    (Topic.LINT, "npm lint", re.compile(r"(?:lint|eslint|format:check|check:lint)\Z")),
    (Topic.TYPES, "npm types", re.compile(r"(?:type-?check|types?|tsc|check[:-]types)\Z")),
    (Topic.BUILD, "npm build", re.compile(r"build\Z")),
)
"""What the scripts of a package are called that are all of a check."""
PARTIAL: Final = re.compile(r"tests?[:_-]|[:_-]tests?\Z")
"""And those that test a part: `test:unit`."""

WRAPPERS: Final[Mapping[tuple[str, ...], int]] = {
    ("time",): 0,
    ("env",): 0,
    ("timeout",): 1,
    ("uv", "run"): 0,
    ("poetry", "run"): 0,
    ("pipenv", "run"): 0,
    ("pdm", "run"): 0,
    ("hatch", "run"): 0,
    ("rye", "run"): 0,
    ("coverage", "run", "-m"): 0,
    ("bundle", "exec"): 0,
    ("npx",): 0,
    ("bunx",): 0,
    ("pnpm", "exec"): 0,
    ("pnpm", "dlx"): 0,
    ("yarn", "exec"): 0,
}
"""Commands that start another one and end as it does, and how many words of their own follow."""
WRAPPER_FLAGS: Final = re.compile(
    r"(?:-y|--yes|--no-install|--frozen|--locked|--no-sync|-q|--quiet|--preserve-status)\Z"
)

NEUTRAL: Final = re.compile(
    r"(?:-q{1,3}|-v{1,3}|-s|-l|-r[A-Za-z]{1,6}|-x|-i|-j\d*|-n\d+|--tb=\w+|--colors?(?:=\w+)?|--no-(?:header|summary|color|cov)"
    r"|--quiet|--silent|--verbose|--durations=\d+|--cov(?:=\S*)?|--cov-report(?:=\S*)?|--maxfail=\d+|--exitfirst|-p=?no:\w+"
    r"|-count=1|-race|--watch=false|--watchAll=false|--ci|--coverage|--no-watch|--run-?[iI]n-?[bB]and|--reporters?=\S+|--pretty"
    r"|--no-error-summary|--show-error-codes|--all-features|--all-targets|--locked|--release|--max-warnings=0|--nocapture"
    r"|--no-fail-fast|--parallel|--strict-markers|--passWithNoTests)\Z"
)
"""Options that say how much is printed or how it is done, and not of what."""
NEUTRAL_WITH_VALUE: Final = frozenset(
    (
        *("-n", "-j", "-W", "--tb", "--color", "--durations", "--cov-report", "--reporter", "--maxfail"),
        *("--max-warnings", "--timeout"),
    )
)
NO_CHECK: Final = re.compile(
    r"(?:--version|-V|-h|--help|--collect-only|--co|--listTests|--list|--no-run|--dry-run|-n|--just-print|--fixtures|--markers"
    r"|--init|--showConfig|--setup-plan|--setup-only|--print-config|--exit-zero|--issues-exit-code\S*|--if-present"
    r"|--ignore-scripts)\Z"
)
"""Options with which nothing is checked, or nothing need be; `-n` is one of what builds alone."""
OF_MAKE: Final = re.compile(r"(?:-s|--silent|--no-print-directory|-j\d*|--jobs(?:=\d+)?|-w|-k)\Z")
"""Options with which make still makes what it is told to, and says so when that fails."""

LOOKING: Final = frozenset(
    (
        *("ls", "cat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "rg", "ag", "wc", "sort", "uniq"),
        *("cut", "tr", "pwd", "echo", "printf", "which", "type", "whoami", "id", "date", "uname", "hostname"),
        *("stat", "file", "du", "df", "tree", "find", "fd", "bat", "jq", "yq", "diff", "cmp", "comm", "column"),
        *("nl", "tac", "rev", "basename", "dirname", "realpath", "readlink", "sleep", "true", "false", ":", "test"),
        *("[", "printenv", "ps", "pgrep", "sha256sum", "md5sum", "shasum", "xxd", "od", "strings", "seq", "cd"),
        *("export", "set", "umask", "awk", "sed", "free", "lsof", "ss", "uptime", "nproc", "git", "kill", "pkill"),
    )
)
"""Programs that check nothing whatever they print, and change no file unless an option says so."""
DOING: Final = frozenset(
    (
        *("curl", "wget", "tee", "touch", "cp", "mv", "rm", "rmdir", "ln", "patch", "tar", "unzip", "zip", "gzip"),
        *("gunzip", "chmod", "chown", "mkdir"),
    )
)
"""Programs that check nothing either, and may change files."""
GIT_READING: Final = frozenset(
    (
        *("status", "diff", "log", "show", "branch", "rev-parse", "ls-files", "blame", "tag", "remote", "config"),
        *("describe", "shortlog", "add", "commit", "push", "fetch", "rev-list", "cat-file", "grep", "reflog"),
        *("ls-remote", "ls-tree", "version", "help", "merge-base", "check-ignore", "for-each-ref", "diff-tree"),
    )
)
"""What git does without a change to the files."""
GIT_HOOKED: Final = frozenset(
    ("commit", "push", "merge", "rebase", "pull", "am", "cherry-pick", "revert", "checkout", "switch", "worktree")
)
"""What git runs hooks at."""
GIT_KNOWN: Final = frozenset(
    (
        *GIT_READING,
        *(GIT_HOOKED - {"rebase"}),
        "restore",
        "reset",
        "stash",
        "clean",
        "rm",
        "mv",
        "init",
        "clone",
        "apply",
    )
)
"""What is git's own, and no alias; `git rebase -x` starts others."""
_FINDING: Final = re.compile(r"-(?:exec|ok)|-[xX]\Z|--exec")
STARTING: Final[Mapping[str, re.Pattern[str]]] = {
    "find": _FINDING,
    "fd": _FINDING,
    "awk": re.compile(r"system|\||\A-f"),
    "sed": re.compile(r"(?:\A|[\d$;{/])e(?:\s|\Z)|\A(?:-f|--file)"),
    "rg": re.compile(r"\A--pre\b"),
    "sort": re.compile(r"\A--compress-program"),
    "tar": re.compile(r"\A(?:-I|--(?:checkpoint-action|to-command|use-compress))"),
    "curl": re.compile(r"\A(?:-[A-Za-z]*[XdFT]|--(?:request|data|json|form|upload-file))"),
    "wget": re.compile(r"\A--(?:method|post|body)"),
}
"""Arguments with which programs that look or do start others, or what runs elsewhere."""
WRITING_OPTIONS: Final = re.compile(
    r"(?:-i\S*|--in-place\S*|-delete|-exec\w*|-ok\w*|-fprint\w*|--fix|--write|-w|-o|--output\S*)\Z"
)
NEVER_WRITING: Final = frozenset(("grep", "egrep", "fgrep", "rg", "ag", "ls", "ps", "id", "wc", "diff", "pgrep"))
"""Of these, the same letters mean something else."""
FORMATTERS: Final = frozenset(("black", "prettier", "isort", "ruff format", "cargo fmt", "gofmt", "mix format"))
"""They write, but for `--check`."""
BINARIES: Final = re.compile(
    r"(?:\.?/)?(?:[\w.@-]+/)*(?:\.?v?env[\w.-]*/bin|node_modules/\.bin)\Z|/(?:usr/(?:local/)?)?bin\Z"
)
"""Directories in which a program is the one that its name says."""
QUIET_VARIABLES: Final = re.compile(
    r"(?:CI|NO_COLOR|FORCE_COLOR|COLUMNS|TERM|TZ|LC_ALL|LANG|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED"
    r"|PYTHONHASHSEED|RUST_BACKTRACE|CARGO_TERM_COLOR)="
)
"""Those with which a program is still the same."""
