"""What a command starts: which test or check, of everything or of a part, or surely nothing of the kind. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from agentwatch.evidence.commands import tables
from agentwatch.evidence.commands.line import LONGEST
from agentwatch.evidence.commands.tables import Topic

_PYTHON: Final = re.compile(r"(?:python[\d.]*|py)\Z")
_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
_TWO_WORDS: Final = frozenset(name.split()[0] for name in tables.TOPICS if " " in name)
_HERE: Final = re.compile(r"<<-?\s*(['\"])(\w+)\1.*?^[ \t]*\2[ \t]*$", re.DOTALL | re.MULTILINE)
"""A here-document that is taken as it stands."""
_MOST: Final = 20
"""Here-documents of a line; one with more is no line of an agent."""
_BETWEEN: Final = re.compile(r"\$?\(+|[;&|\n)`]+|<\(")
_SUBSTITUTED: Final = re.compile(r"(?:\A|[;&|\n(])[ \t]{0,40}['\"]?(?:`|\$\()")
"""What a command prints is the command that is started."""
_REDIRECTED: Final = re.compile(r"&?\d?[<>]{1,2}[|&]?\s*[^\s;&|()`<>]+")
"""Where a command reads and prints starts nothing."""
_BEFORE: Final = frozenset(("if", "then", "else", "elif", "while", "until", "do", "!", "{", "("))
"""Words of a shell behind which a command stands."""
_ALONE: Final = frozenset(
    (
        *("for", "case", "select", "fi", "done", "esac", "}", "[[", "]]", "#", "exit", "return", "break", "continue"),
        *("wait", "read", "local", "declare", "shift", "unset"),
    )
)
"""And those behind which none does."""
_SAME: Final = {"gradlew": "gradle", "mvnw": "mvn", "py.test": "pytest"}


class Program(NamedTuple):
    """One command by its meaning: `python3 -m pytest -q` is `pytest`, as `npm run test` and `yarn test` are `npm test`.

    `args` are those that say of what it does something, and not how much it prints. `topic` is what it checks, None
    where it checks nothing. `odd`: variables are set for it, or it lies somewhere, so that it may be another program.
    """

    name: str
    args: tuple[str, ...] = ()
    topic: Topic | None = None
    odd: bool = False

    @property
    def is_whole(self) -> bool:
        """It checks all that there is, as far as its arguments tell."""
        is_all = not self.args or " ".join(self.args) in tables.WHOLE.get(self.name, ())
        # What `make` makes first is anybody's guess.
        is_known = self.name in tables.TOPICS and self.name != "make"
        return self.topic is not None and is_known and not self.odd and is_all


def program(words: Sequence[str]) -> Program:
    """What the words of a command start."""
    rest, odd = list(words), False
    while rest:
        first = rest[0]
        if re.match(r"[A-Za-z_]\w*\+?=", first):
            odd = odd or tables.QUIET_VARIABLES.match(first) is None
            rest = rest[1:]
            continue
        wrapper = next((one for one in tables.WRAPPERS if tuple(rest[: len(one)]) == one), None)
        if wrapper is None:
            break
        rest = rest[len(wrapper) :]
        while rest and tables.WRAPPER_FLAGS.match(rest[0]):
            rest = rest[1:]
        rest = rest[tables.WRAPPERS[wrapper] :]
    if not rest:
        return Program("")
    directory, name = posixpath.split(rest[0])
    is_known = not directory or tables.BINARIES.match(directory) is not None or name in ("gradlew", "mvnw")
    return _named(_SAME.get(name, name), rest[1:], odd=odd or not is_known)


def _named(name: str, args: list[str], *, odd: bool) -> Program:
    if _PYTHON.match(name):
        if args[:1] == ["-m"] and len(args) > 1:
            module = "python build" if args[1] == "build" else _SAME.get(args[1], args[1])
            return _named(module, args[2:], odd=odd)
        if args and posixpath.basename(args[0]) == "manage.py" and args[1:2] == ["test"]:
            return _checking("manage.py test", args[2:], odd=odd)
    if name in _MANAGERS:
        return _of_manager(name, args, odd=odd)
    if name in _TWO_WORDS:
        first = next(
            (at for at, one in enumerate(args) if not (tables.NEUTRAL.match(one) or one[:1] == "+")), len(args)
        )
        if first < len(args) and (two := f"{name} {args[first]}") in tables.TOPICS:
            options = [one for one in args[:first] if one[0] == "-"]
            return _checking(two, [*options, *args[first + 1 :]], odd=odd)
    return _checking(name, args, odd=odd)


def _of_manager(name: str, args: list[str], *, odd: bool) -> Program:
    """A script of a package, whichever manager of packages starts it."""
    while args and tables.NEUTRAL.match(args[0]):
        args = args[1:]
    is_run = args[:1] in (["run"], ["run-script"]) and len(args) > 1
    script, rest = (args[1], args[2:]) if is_run else (args[0] if args else "", args[1:])
    if name == "bun" and script == "test" and not is_run:
        return _checking("bun test", rest, odd=odd)
    for topic, called, pattern in tables.SCRIPTS:
        if pattern.match(script):
            given = tuple(one for one in _telling(rest) if one != "--")
            return Program(called, given, None if _checks_nothing(called, rest) else topic, odd)
    is_part = tables.PARTIAL.search(script) is not None
    return Program(f"{name} {script}".strip(), _telling(rest), Topic.TESTS if is_part else None, odd)


def _checking(name: str, args: Sequence[str], *, odd: bool) -> Program:
    topic = tables.TOPICS.get(name) if not _checks_nothing(name, args) else None
    return Program(name, _telling(args), topic, odd)


def _checks_nothing(name: str, args: Sequence[str]) -> bool:
    if name.startswith("make"):
        return any(one.startswith("-") and not tables.OF_MAKE.match(one) for one in args)
    is_build = tables.TOPICS.get(name) is Topic.BUILD
    return any(tables.NO_CHECK.match(one) and (one != "-n" or is_build) for one in args)


def _telling(args: Sequence[str]) -> tuple[str, ...]:
    """The arguments but those that only say how much is printed."""
    telling: list[str] = []
    pending = iter(args)
    for one in pending:
        if one in tables.NEUTRAL_WITH_VALUE:
            next(pending, None)
        elif not tables.NEUTRAL.match(one):
            telling.append(one)
    return tuple(telling)


def surely_checks_nothing(words: Sequence[str]) -> bool:
    """Whether a command can be no check, and no script that has some run; of what a hook of git runs, its output
    tells."""
    if not words:
        return True
    name = words[0]
    if name in ("source", "."):
        return words[-1].endswith("/activate")
    if name == "git":
        return git_command(words) in tables.GIT_KNOWN
    is_starting = tables.STARTING.get(name)
    if is_starting is not None and any(is_starting.search(word) for word in words[1:]):
        return False
    return name in tables.LOOKING or name in tables.DOING or program(words).name == ""


def git_command(words: Sequence[str]) -> str:
    """What git is to do: its first word that is no option; "" where `-c` may mean something else by it."""
    pending = iter(words[1:])
    for word in pending:
        if word == "-C":
            next(pending, None)
        elif not word.startswith("-"):
            return word
        elif word.startswith("-c"):
            break
    return ""


def without_documents(text: str) -> str:
    """A line without its here-documents."""
    return _HERE.sub(" ", text) if text.count("<<") <= _MOST else text


def may_start(text: str, names: Iterable[str]) -> bool:
    """Whether a line that is not understood may start a check, a script, or one of these programs: it does not if the
    first word of all that stands between the marks of a shell is one that starts nothing."""
    if len(text) > LONGEST:
        return True
    text = without_documents(text)
    if any(re.search(rf"\b{re.escape(name)}\b", text) for name in names):
        return True
    return _SUBSTITUTED.search(text) is not None or not all(
        map(_starts_nothing, _BETWEEN.split(_REDIRECTED.sub(" ", text)))
    )


def _starts_nothing(piece: str) -> bool:
    words = piece.replace("'", " ").replace('"', " ").split()
    while words and (words[0] in _BEFORE or re.match(r"[A-Za-z_]\w*\+?=", words[0])):
        words = words[1:]
    return not words or words[0] in _ALONE or words == ["\\"] or surely_checks_nothing(words)


def starts_others(one: Program) -> bool:
    """Whether a check, or another program, starts what somebody has written down for it elsewhere."""
    return (
        one.topic is None
        or re.match(
            r"(?:npm|make|just|task|rake|tox|nox|pre-commit|mvn|gradle|docker|zig|lake|ninja|cmake|bazel|sbt)\b",
            one.name,
        )
        is not None
    )


def changes_nothing(words: Sequence[str]) -> bool:
    """Whether a command surely leaves the files of a workspace as they are."""
    one = program(words)
    if not one.name or one.name == "mkdir":
        return True
    if one.name == "git":
        return git_command(words) in tables.GIT_READING
    if one.name not in tables.NEVER_WRITING and any(tables.WRITING_OPTIONS.match(word) for word in words[1:]):
        return False
    if one.topic is Topic.LINT and one.name in tables.FORMATTERS:
        return "--check" in words
    if one.topic is not None:
        # What is built lies beside what it is built of; what `make` does is anybody's guess.
        return not one.odd and not one.name.startswith("make")
    return words[0] in tables.LOOKING or (words[0] in ("source", ".") and words[-1].endswith("/activate"))
