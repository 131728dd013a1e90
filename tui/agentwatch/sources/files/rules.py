"""SRC: the rules that a file must keep to be read at all."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.rules import ERROR, WARNING, Rule
from agentwatch.contracts.shapes import Severity

REASONS: Final[dict[str, str]] = {}
"""By the id of a rule, its message without what to do about it."""


def _rule(
    rule_id: str, title: str, reason: str, remedy: str, *, why: str, right: str, wrong: str, severity: Severity = ERROR
) -> Rule:
    REASONS[rule_id] = reason
    return Rule(rule_id, None, severity, "Files", title, f"{reason}; {remedy}.", why, right, wrong)


NOT_REGULAR: Final = _rule(
    "SRC001",
    "not a regular file",
    "This is {kind}, not a file, and is not opened",
    "write the document as an ordinary file",
    why="Opening a pipe waits for ever, a device may act on being opened, and none of them has a content that stays.",
    right="cp result.md job.return.md",
    wrong="mkfifo job.return.md",
)
SYMBOLIC_LINK: Final = _rule(
    "SRC002",
    "a symbolic link",
    "This is a symbolic link, which is not followed",
    "write the file itself here",
    why="What a link shows can be changed without touching it. A file inside the workspace is read where it lies.",
    right="cp run-3.return.md job.return.md",
    wrong="ln -s run-3.return.md job.return.md",
    severity=WARNING,
)
OUTSIDE: Final = _rule(
    "SRC003",
    "outside the workspace",
    "This leads out of the workspace and is not read",
    "copy the file into the workspace",
    why="An agent must not be able to bring other files of this machine on screen by linking to them.",
    right="cp ../other/return.md job.return.md",
    wrong="ln -s ../other/return.md job.return.md",
)
TOO_LARGE: Final = _rule(
    "SRC004",
    "too large",
    "This holds {size:,} bytes, and at most {limit:,} are read",
    "shorten it and name large results as files",
    why="A return is read by an orchestrator with little room. What is larger belongs in an artifact.",
    right="a return of 3 KiB that names logs/build.log",
    wrong="a return that contains the build log",
)
NOT_READABLE: Final = _rule(
    "SRC005",
    "not readable",
    "This cannot be read ({reason})",
    "give the user who runs agentwatch the permission, or check the disk",
    why="What cannot be read cannot be shown or judged, so the task's state may be older than the file.",
    right="-rw-r--r-- job.return.md",
    wrong="---------- job.return.md",
)
NOT_UTF8: Final = _rule(
    "SRC006",
    "not UTF-8",
    "Some bytes are not UTF-8 and are shown as U+FFFD",
    "save the file as UTF-8",
    why="The contracts are exchanged as UTF-8. What the other bytes meant is lost.",
    right="caf\u00e9 as c3 a9",
    wrong="caf\u00e9 as e9",
    severity=WARNING,
)
CHANGING: Final = _rule(
    "SRC007",
    "never at rest",
    "This changed each time it was read",
    "write it under another name and rename it when it is whole",
    why="A file that changes while it is read gives a mixture of two contents, which nobody wrote.",
    right="write job.return.md.tmp, then rename it to job.return.md",
    wrong="append to job.return.md for minutes",
    severity=WARNING,
)
NOT_UNDERSTOOD: Final = _rule(
    "SRC008",
    "breaks agentwatch",
    "agentwatch itself failed on this file ({fault})",
    "report it together with the file",
    why="No content may end the watching. The file is left out until it changes, so that the others are still seen.",
    right="any file",
    wrong="the file that this finding is about",
)

RULES: Final = (NOT_REGULAR, SYMBOLIC_LINK, OUTSIDE, TOO_LARGE, NOT_READABLE, NOT_UTF8, CHANGING, NOT_UNDERSTOOD)
"""In the order of their ids."""
