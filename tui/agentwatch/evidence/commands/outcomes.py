"""What the programs that test and check say at the end of their output: how many passed, how many did not. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

_LOOKED_AT: Final = 64 * 1024
"""Characters at the end of an output that are looked at: a summary stands last."""
_MOST: Final = 200
"""Summaries of one output that are read."""
_COLORS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Counts(NamedTuple):
    """What a summary counts. None: it does not say. `bad` are failures and errors together."""

    passed: int | None = None
    bad: int | None = None
    skipped: int | None = None

    @property
    def words(self) -> str:
        parts = ((self.passed, "passed"), (self.bad, "failed"), (self.skipped or None, "skipped"))
        return ", ".join(f"{count:,} {word}" for count, word in parts if count is not None)


_GOOD: Final = ("passed", "passing", "pass", "xpassed", "succeeded", "ok")
_BAD: Final = ("failed", "failing", "fail", "failures", "failure", "errors", "error", "broken")
_LEFT_OUT: Final = ("skipped", "pending", "ignored", "todo", "xfailed", "deselected", "disabled")
_COUNTED: Final = re.compile(
    rf"(\d[\d,]{{0,8}})\s+(?:tests?\s+)?({'|'.join((*_GOOD, *_BAD, *_LEFT_OUT))})\b", re.IGNORECASE
)


def _pairs(words: str) -> Counts:
    """`399 passed, 13 failed` and its like; a list without failures has none."""
    sums = dict.fromkeys(("good", "bad", "left out"), 0)
    found = _COUNTED.findall(words)
    for number, word in found:
        kind = "good" if word.casefold() in _GOOD else "bad" if word.casefold() in _BAD else "left out"
        sums[kind] += int(number.replace(",", ""))
    return Counts(sums["good"], sums["bad"], sums["left out"]) if found else Counts()


def _of_pytest(match: re.Match[str]) -> Counts:
    return Counts(0, 0, 0) if match["none"] else _pairs(match["counts"])


def _of_unittest(match: re.Match[str]) -> Counts:
    details = dict(re.findall(r"(\w+(?: \w+)?)=(\d+)", match["details"] or ""))
    bad = sum(int(details.get(key, 0)) for key in ("failures", "errors", "unexpected successes"))
    skipped = sum(int(details.get(key, 0)) for key in ("skipped", "expected failures"))
    if match["end"] == "FAILED" and not bad:
        return Counts()
    return Counts(max(int(match["ran"]) - bad - skipped, 0), bad, skipped)


def _of_total(match: re.Match[str]) -> Counts:
    """A total with what went wrong beside it."""
    found = {key: int((value or "0").replace(",", "")) for key, value in match.groupdict().items()}
    bad, skipped = found.get("bad", 0) + found.get("errors", 0), found.get("skipped", 0)
    return Counts(max(found["total"] - bad - skipped, 0), bad, skipped)


def _of_parts(match: re.Match[str]) -> Counts:
    found = {key: int((value or "0").replace(",", "")) for key, value in match.groupdict().items()}
    return Counts(found["good"], found.get("bad", 0), found.get("skipped", 0))


def _of_listed(match: re.Match[str]) -> Counts:
    return _pairs(match["counts"])


_Row = tuple[Sequence[str], re.Pattern[str], Callable[[re.Match[str]], Counts], bool]


def _row(pattern: str, read: Callable[[re.Match[str]], Counts], *words: str, adds_up: bool = False) -> _Row:
    """One of the `words` stands in all that the pattern matches. They are looked for first: most outputs have none."""
    return words, re.compile(pattern, re.MULTILINE), read, adds_up


_PAIR: Final = r"\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun)"
_PYTEST: Final = ("no tests ran", "failed", "passed", "skipped", "deselected", "warning", "error", "rerun")
# Each with how its match is read, and whether several of one output add up; else several that differ say nothing.
_SUMMARIES: Final[Sequence[_Row]] = (
    _row(rf"^=*[ ]?(?:(?P<none>no tests ran)|(?P<counts>{_PAIR}(?:, {_PAIR})*)) in \d[\d.]*s.*$", _of_pytest, *_PYTEST),
    _row(
        r"^Ran (?P<ran>\d+) tests? in .*\n\s*^(?P<end>OK|FAILED|NO TESTS RAN)(?: \((?P<details>[^)\n]*)\))?\s*$",
        _of_unittest,
        "Ran ",
    ),
    _row(
        r"^test result: (?:ok|FAILED)\. (?P<good>\d+) passed; (?P<bad>\d+) failed; (?P<skipped>\d+) ignored",
        _of_parts,
        "test result: ",
        adds_up=True,
    ),
    _row(r"^[ \t]*Summary \[.*\] +\d+ tests? run: (?P<counts>.*)$", _of_listed, "Summary ["),
    _row(
        r"^[ \t]*Tests:? {2,}(?P<counts>(?:\d+ \w+(?:, | \| )?)+)(?: ?\(\d+\))?(?:, \d+ total)?\s*$",
        _of_listed,
        "Tests",
    ),
    _row(
        r"^[ \t]*(?P<good>\d+) passing\b.*(?:\n[ \t]*(?P<skipped>\d+) pending)?(?:\n[ \t]*(?P<bad>\d+) failing)?",
        _of_parts,
        " passing",
    ),
    _row(r"^[#\u2139] pass (?P<good>\d+)\n[#\u2139] fail (?P<bad>\d+)", _of_parts, " pass "),
    _row(r"^(?P<total>\d+) examples?, (?P<bad>\d+) failures?(?:, (?P<skipped>\d+) pending)?", _of_total, " example"),
    _row(r"^OK \((?P<total>\d+) tests?, \d+ assertions?\)", _of_total, "OK ("),
    _row(
        r"^Tests: (?P<total>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<bad>\d+))?"
        r"(?:.*, Skipped: (?P<skipped>\d+))?",
        _of_total,
        "Assertions: ",
    ),
    _row(
        r"(?:Passed|Failed)! +- Failed: +(?P<bad>\d+), Passed: +(?P<good>\d+), Skipped: +(?P<skipped>\d+)",
        _of_parts,
        "- Failed: ",
        adds_up=True,
    ),
    _row(
        r"^(?:\[\w+\] )?Tests run: (?P<total>\d+), Failures: (?P<bad>\d+), Errors: (?P<errors>\d+)"
        r", Skipped: (?P<skipped>\d+)\s*$",
        _of_total,
        "Tests run: ",
    ),
    _row(
        r"^(?:\d+ doctests?, )?(?P<total>\d+) tests?, (?P<bad>\d+) failures?"
        r"(?:, (?P<skipped>\d+) (?:skipped|excluded))?",
        _of_total,
        " failure",
    ),
    _row(r"^\d+% tests passed, (?P<bad>\d+) tests failed out of (?P<total>\d+)", _of_total, "% tests passed, "),
)
_PLAIN: Final = re.compile(
    rf"^\W*(?:Tests?:?\s+)?(?:\d+ tests?[,:]? )?(?P<counts>{_COUNTED.pattern}.*)$", re.MULTILINE | re.IGNORECASE
)
"""`38 passed (1.2m)`, where none of the others is there."""
_PACKAGES: Final = re.compile(r"^(?:(ok) {2}\t(?!.*\[no tests to run\])|(FAIL)\t|--- (FAIL):|(panic): )", re.MULTILINE)
"""go test: a line a package, and one for each test that failed."""


def counts_in(output: str) -> Counts | None:
    """How many passed and failed by the summary of an output; None where there is none, or several that differ."""
    text = _COLORS.sub("", output[-_LOOKED_AT:]).replace("\r\n", "\n")
    found = [counts for row in _SUMMARIES for counts in _read(text, *row)]
    if found:
        return found[0] if all(one == found[0] for one in found) else None
    packages = [match[1] for match in _PACKAGES.finditer(text)]
    if packages:
        return Counts(None, sum(word is None for word in packages))
    if _COUNTED.search(text) is None:
        return None
    last = [match for line in text.splitlines() if (match := _PLAIN.match(line.strip())) is not None]
    # Those that are listed below each other are one summary; a line among many others may be anything.
    together = _pairs("\n".join(match["counts"] for match in last)) if last and len(last) <= 3 else Counts()
    return together if together.passed is not None else None


def _read(
    text: str, words: Sequence[str], pattern: re.Pattern[str], read: Callable[[re.Match[str]], Counts], adds_up: bool
) -> Iterator[Counts]:
    if not any(word in text for word in words):
        return
    found = [read(match) for match in islice(pattern.finditer(text), _MOST)]
    if adds_up and found:
        yield Counts(*(sum(one[at] or 0 for one in found) for at in range(3)))
    else:
        yield from found


_CLEAN: Final = re.compile(
    r"^(?:All checks passed!|Success: no issues found.*|0 errors?, .*"
    r"|[^\w\n]*no (?:issues|problems|errors|warnings)(?: found)?[^\w\n]*"
    r"|\d+ files? (?:already formatted|would be left unchanged).*)$",
    re.MULTILINE | re.IGNORECASE,
)
_FAULTS: Final = re.compile(
    r"^(?:Found (?P<a>\d+) (?:errors?|warnings?|issues?|problems?).*|[^\w\n]*(?P<b>\d+) problems? \(.*"
    r"|(?P<c>[1-9]\d*) errors?, .*"
    r"|error(?:\[E\d+\])?: .*|.*: error TS\d+: .*|.*: error: .*"
    r"|(?:.*[ :])?warning: .*|\[WARNING\].*|.*\b[1-9]\d* warnings?\b.*)$",
    re.MULTILINE,
)
_OF_FAULTS: Final = ("Found ", "problem", "error", "warning", "[WARNING]")
"""One of these stands in all that tells of a fault."""
_OF_CLEAN: Final = ("passed!", "success: ", "no ", "errors, ", "error, ", "formatted", "unchanged")
"""The same of what tells that there is none, in small letters."""


def faults_in(output: str) -> bool | None:
    """Whether a check says that it found something; None where it does not say."""
    text = _COLORS.sub("", output[-_LOOKED_AT:])
    is_told = any(word in text for word in _OF_FAULTS)
    if is_told and any((match["a"] or match["b"] or match["c"] or "1") != "0" for match in _FAULTS.finditer(text)):
        return True
    folded = text.casefold()
    return False if any(word in folded for word in _OF_CLEAN) and _CLEAN.search(text) is not None else None


_FORGIVING: Final = re.compile(
    r"(?i)[(\[]ignored[)\]]|\.\.\.ignoring\b|\bcontinue-on-error\b|\bnpm ERR!|\bnpm error\b"
    r"|(?:\|\||;)\s*(?:/bin/|/usr/bin/)?(?:true\b|:(?:\s|$)|exit 0\b|echo\b|printf\b)"
)
"""What make, npm and others print of a step whose failure did not count, or of a line that hides one."""
_OF_FORGIVING: Final = ("gnored", "ignoring", "ontinue-on-error", "npm ERR!", "npm error", "||", ";")


def was_forgiven(output: str) -> bool:
    """Whether an output says that a failure was ignored, or shows a command line that would hide one."""
    return any(word in output for word in _OF_FORGIVING) and _FORGIVING.search(output) is not None


_CUT: Final = re.compile(
    r"(?i)(?:\d[\d,.]*\s*(?:more )?(?:characters|chars|bytes|lines|tokens|[km]i?b)\b"
    r".{0,20}\b(?:truncated|omitted|hidden|cut)"
    r"|\b(?:output|result|response) (?:was |is )?(?:too (?:large|long)|truncated|clipped)|truncated (?:output|part)"
    r"|\[(?:\.\.\. ?)?(?:output )?truncated|<persisted-output>|\btruncated\s*(?:\.{3}|\u2026|\]))"
)
"""What agents' programs write into an output of which they leave out a part."""
_CUTTING: Final = ("runcated", "mitted", "idden", " cut", "too l", "lipped", "persisted-output")
"""Looked for first: most outputs are long, and have none of it."""


def was_cut(output: str) -> bool:
    """Whether a program says in an output that this is not all of it."""
    return any(word in output for word in _CUTTING) and _CUT.search(output) is not None


_GITS_OWN: Final = re.compile(r"^(?:\[.*|\s.*|\d+ files? changed.*|To .*|branch .*)$", re.MULTILINE)
_HOOK: Final = re.compile(
    r"\b(?:tests?|pass(?:ed|ing|es)?|fail(?:ed|ing|ures?)?|hooks?|husky|lefthook|lint\w*|checks?)\b|[\u2713\u2714\u2705]",
    re.IGNORECASE,
)


def shows_hook(output: str) -> bool:
    """Whether in what git printed something speaks that it started: a hook."""
    return _HOOK.search(_GITS_OWN.sub("", output[-_LOOKED_AT:])) is not None
