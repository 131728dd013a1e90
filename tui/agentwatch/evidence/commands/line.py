"""A line that a shell was given: its commands, and whether one is alone in it, so that the exit code is its own. Pure.

Nothing is ever run here. What is not surely understood (substitutions, loops, functions, here-documents) is said to be
not plain, and nobody may build on its parts.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import Final, NamedTuple

LONGEST: Final = 16_384
"""Characters of a line that is looked at."""

_MOST: Final = 200
"""Commands of a line; one with more is a program."""
_MARKS: Final = "();<>|&\n"
_JOINS: Final = frozenset({"&&", "||", "|", "|&", "&", ";", "\n"})
_TO_FILE: Final = frozenset({">", ">>", ">|", "&>", "&>>"})
_FROM: Final = frozenset({"<", ">&", "<&"})
_WORDS_OF_SHELL: Final = re.compile(
    r"(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|in|function|select|coproc|[{}!]|\[\[|\]\]|eval|exec|trap"
    r"|alias|unalias|exit|return|break|continue|shopt|wait|builtin|command)\Z"
)
"""With them, the line is a program: what ran of it, and what its exit code is of, is not to be seen."""
_SUBSTITUTED: Final = re.compile(r"`|\$\(|\$\{|<\(|>\(|<<|\(\)")
_QUOTED_MARK: Final = re.compile(r"""\\[();<>|&]|(["'])[();<>|&\s]+\1""")
_MERGED: Final = re.compile(r"(?<=\s)2>\s*(?:&1|/dev/null)(?=\s|\Z|[;&|)])")
"""Where errors go says nothing of what a command does."""
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


_UNKNOWN: Final = re.compile(r"[~-]|.*[$*?\[]")
"""A directory that only the shell knows."""


class Part(NamedTuple):
    """One command of a line: its words, and the mark before it (`&&`, `|`, …; "" for the first). `targets` are the
    files that something it prints goes to; `hidden`: what it prints is not seen because of that."""

    words: tuple[str, ...]
    joined: str = ""
    hidden: bool = False
    targets: tuple[str, ...] = ()

    @property
    def assigned(self) -> tuple[str, ...]:
        """The variables that are set for it, each as `NAME=value`."""
        count = next((at for at, word in enumerate(self.words) if not _ASSIGNED.match(word)), len(self.words))
        return self.words[:count]

    @property
    def argv(self) -> tuple[str, ...]:
        """The words without those."""
        return self.words[len(self.assigned) :]


class CommandLine(NamedTuple):
    """A whole line. `plain`: all of it is understood."""

    text: str
    parts: tuple[Part, ...] = ()
    plain: bool = False

    def directory(self, number: int, cwd: str) -> str:
        """Where a part runs, "" where that cannot be told: `cd` before it leads there."""
        place = cwd
        for part in self.parts[:number]:
            match part.argv:
                case ("cd", to) if not _UNKNOWN.match(to):
                    place = posixpath.normpath(posixpath.join(place, to)) if place or to.startswith("/") else ""
                case ("cd" | "pushd" | "popd", *_):
                    return ""
        return posixpath.normpath(place) if place else ""


PREPARING: Final = frozenset({"cd", "export", "source", ".", "set", "true", ":", "mkdir", "umask"})
"""What goes before a command and only prepares it."""


def parse(text: str) -> CommandLine:
    """Read a line. Never raises."""
    line = CommandLine(text)
    if len(text) > LONGEST or "\0" in text:
        return line
    doubtful = _SUBSTITUTED.search(text) is not None or _QUOTED_MARK.search(text) is not None
    source = _MERGED.sub("", text.replace("\\\n", " "))
    lexer = shlex.shlex(source, posix=True, punctuation_chars=_MARKS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    try:
        tokens = list(lexer)
    except ValueError:
        return line
    parts = _parts(tokens)
    if parts is None or len(parts) > _MOST:
        return line
    strange = (
        any(_WORDS_OF_SHELL.match(part.argv[0]) for part in parts if part.argv)
        or any(part.joined == "&" for part in parts)
        or tokens[-1:] == ["&"]
    )
    return CommandLine(text, parts, plain=not doubtful and not strange and bool(parts))


def _parts(tokens: list[str]) -> tuple[Part, ...] | None:
    """The commands of a line; None where its marks make no sense, or group commands."""
    parts: list[Part] = []
    words: list[str] = []
    targets: list[str] = []
    joined, hidden, comment = "", False, False
    pending = iter(tokens)
    for token in pending:
        mark = token.strip("\n") or "\n" if set(token) <= set(_MARKS) else ""
        if mark and "\n" in token:
            comment = False
        if comment:
            continue
        if mark in _JOINS:
            if words:
                parts.append(Part(tuple(words), joined, hidden, tuple(targets)))
                joined = ";" if mark == "\n" else mark
            elif mark not in (";", "\n"):
                return None
            words, targets, hidden = [], [], False
        elif mark in _TO_FILE or mark in _FROM:
            target = next(pending, "")
            targets += [target] if mark in _TO_FILE else []
            if words and words[-1] in ("1", "2"):
                hidden = hidden or (words.pop() == "1" and mark in _TO_FILE)
            else:
                hidden = hidden or (mark in _TO_FILE and target != "/dev/stdout")
        elif mark:
            return None
        elif token.startswith("#"):
            comment = True
        else:
            words.append(token)
    if words:
        parts.append(Part(tuple(words), joined, hidden, tuple(targets)))
    return tuple(parts)


def is_alone(line: CommandLine, number: int) -> bool:
    """Whether a part is the sole command of a line, but for a `cd` before it; what it prints goes to no file.

    Nothing else of what a shell does is weighed: a check that is missed costs little, a false one everything.
    """
    before = line.parts[:number]
    leads = all(part.words[0] == "cd" and len(part.words) == 2 and not part.targets for part in before)
    joined = all(part.joined == "&&" for part in line.parts[1:])
    to_nowhere = all(target.startswith("/dev/") for target in line.parts[number].targets)
    return line.plain and leads and joined and to_nowhere and number == len(line.parts) - 1
