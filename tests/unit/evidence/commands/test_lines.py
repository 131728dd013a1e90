"""Lines of a shell: whose exit code shows, where a command runs, and which program it is."""

from __future__ import annotations

import shlex

import pytest

from agentwatch.evidence.commands.line import exit_code_of, parse
from agentwatch.evidence.commands.outcomes import Counts, counts_in, faults_in, was_cut
from agentwatch.evidence.commands.programs import changes_nothing, program, surely_checks_nothing
from agentwatch.evidence.commands.statements import statements_in
from agentwatch.evidence.commands.unsaid import unsaid_in
from tests.unit.evidence.commands.logs import WORKSPACE, log_of, ran

HIDDEN = None


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("pytest", 0, 0),
        ("pytest", 3, 3),
        ("pytest 2>&1", 1, 1),
        ("cd web && pytest", 0, 0),
        ("cd web && pytest", 1, 1),
        ("cd web; pytest", 1, 1),
        ("make && pytest", 1, HIDDEN),
        ("make; pytest", 1, 1),
        ("pytest && make", 0, 0),
        ("pytest && make", 1, HIDDEN),
        ("pytest && echo ok", 1, 1),
        ("pytest; make", 0, HIDDEN),
        ("pytest\nmake", 0, HIDDEN),
        ("pytest | tail", 0, HIDDEN),
        ("pytest |& tail", 0, HIDDEN),
        ("yes | pytest", 1, HIDDEN),
        ("yes | pytest", 0, 0),
        ("pytest || true", 0, HIDDEN),
        ("make || pytest", 0, HIDDEN),
        ("pytest &", 0, HIDDEN),
        ("! pytest", 0, HIDDEN),
        ("(pytest)", 0, HIDDEN),
        ("if pytest; then true; fi", 0, HIDDEN),
        ("set -e; pytest; make", 0, 0),
        ("set -e; pytest && make; make", 0, HIDDEN),
        ("set -e; set +e; pytest; make", 0, HIDDEN),
        ("set -o pipefail; pytest | tail", 0, 0),
        ("set -euo pipefail; pytest | tail; make", 0, 0),
        ("set -o pipefail; pytest | tail", 1, HIDDEN),
        ("pytest; exit 0", 0, HIDDEN),
        ("trap 'exit 0' EXIT; pytest", 0, HIDDEN),
        ("pytest $(ls tests)", 0, HIDDEN),
        ("pytest 'a && b; c | d'", 0, 0),
        ("pytest 'unclosed", 0, HIDDEN),
        ("pytest # and then; nothing", 0, 0),
        ("pytest \\\n  -q", 0, 0),
        ("pytest", None, HIDDEN),
    ],
)
def test_whose_exit_code_it_is(text: str, code: int | None, shown: int | None) -> None:
    line = parse(text)
    numbers = [number for number, part in enumerate(line.parts) if part.argv[:1] == ("pytest",)]
    assert (exit_code_of(line, numbers[0], code) if numbers else None) == shown


@pytest.mark.parametrize(
    ("text", "directory"),
    [
        ("pytest", "/shop"),
        ("cd web && pytest", "/shop/web"),
        ("cd .. && pytest", "/"),
        ("cd /other && cd web && pytest", "/other/web"),
        ("cd ~ && pytest", ""),
        ("cd - && pytest", ""),
        ("cd && pytest", ""),
        ("pushd web && pytest", ""),
    ],
)
def test_where_a_command_runs(text: str, directory: str) -> None:
    line = parse(text)
    assert line.directory(len(line.parts) - 1, "/shop") == directory


@pytest.mark.parametrize(
    ("text", "name", "whole"),
    [
        ("pytest -q --tb short -x", "pytest", True),
        ("python3.12 -m pytest .", "pytest", True),
        ("pytest tests", "pytest", False),
        ("pytest -k cart", "pytest", False),
        ("CI=1 pytest", "pytest", True),
        ("PATH=. pytest", "pytest", False),
        ("timeout 60 pytest", "pytest", True),
        ("/usr/bin/pytest", "pytest", True),
        ("bin/pytest", "pytest", False),
        ("npm t", "npm test", True),
        ("pnpm run test -- form", "npm test", False),
        ("npm run test:unit", "npm test:unit", False),
        ("make -j4 test", "make test", True),
        ("make -n test", "make test", False),
        ("go test -race ./...", "go test", True),
        ("go test ./cart", "go test", False),
        ("cargo +nightly test", "cargo test", True),
        ("cargo test --no-run", "cargo test", False),
        ("./gradlew test", "gradle test", True),
    ],
)
def test_which_program_it_is_and_whether_of_everything(text: str, name: str, whole: bool) -> None:
    found = program(shlex.split(text))
    assert found.is_whole is whole
    assert found.name == name or not whole


@pytest.mark.parametrize(
    ("text", "nothing_checked", "nothing_changed"),
    [
        ("ls -la", True, True),
        ("cat pytest.log", True, True),
        ("echo pytest", True, True),
        ("rm -rf build", True, False),
        ("sed -n 1,5p a.py", True, True),
        ("sed -i s/a/b/ a.py", True, False),
        ("find . -name a.py", True, True),
        ("find . -delete", True, False),
        ("find . -exec pytest {} +", False, False),
        ("git diff", True, True),
        ("git stash", True, False),
        ("git bisect run pytest", False, False),
        ("source .venv/bin/activate", True, True),
        ("source run.sh", False, False),
        ("bash run.sh", False, False),
        ("python3 a.py", False, False),
        ("pytest", False, True),
        ("ruff check --fix .", False, False),
        ("ruff format .", False, False),
        ("black --check .", False, True),
        ("npm install", False, False),
        ("make", False, False),
    ],
)
def test_what_surely_checks_or_changes_nothing(text: str, nothing_checked: bool, nothing_changed: bool) -> None:
    words = shlex.split(text)
    assert (surely_checks_nothing(words), changes_nothing(words)) == (nothing_checked, nothing_changed)


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("..... [100%]\n412 passed in 3.21s", (412, 0, 0)),
        ("== 13 failed, 399 passed, 2 skipped, 4 warnings in 4.00s (0:00:04) ==", (399, 13, 2)),
        ("1 failed, 2 errors in 0.10s", (0, 3, 0)),
        ("\x1b[32m12 passed\x1b[0m in 0.1s", (12, 0, 0)),
        ("=== no tests ran in 0.01s ===", (0, 0, 0)),
        ("Ran 12 tests in 0.003s\n\nOK (skipped=2)", (10, 0, 2)),
        ("Ran 12 tests in 0.003s\n\nFAILED (failures=1, errors=2)", (9, 3, 0)),
        ("test result: ok. 5 passed; 0 failed; 1 ignored\ntest result: ok. 2 passed; 1 failed; 0 ignored", (7, 1, 1)),
        ("     Summary [   0.1s] 12 tests run: 11 passed, 1 failed, 3 skipped", (11, 1, 3)),
        ("ok  \texample/a\t0.1s\nok  \texample/b\t0.2s", (None, 0, None)),
        ("--- FAIL: TestA (0.0s)\nFAIL\texample/a\t0.1s", (None, 2, None)),
        ("Test Suites: 1 failed, 1 total\nTests:       1 failed, 31 passed, 32 total", (31, 1, 0)),
        ("      Tests  1 failed | 30 passed (31)", (30, 1, 0)),
        ("  31 passing (2s)\n  1 pending\n  2 failing", (31, 2, 1)),
        ("# tests 13\n# pass 12\n# fail 1", (12, 1, 0)),
        ("  2 failed\n  36 passed (1.1m)", (36, 2, 0)),
        ("12 examples, 1 failure, 2 pending", (9, 1, 2)),
        ("OK (12 tests, 30 assertions)", (12, 0, 0)),
        ("Tests: 12, Assertions: 30, Errors: 1, Failures: 2.", (9, 3, 0)),
        ("Passed!  - Failed:     0, Passed:    12, Skipped:     1, Total:    13", (12, 0, 1)),
        ("[INFO] Tests run: 12, Failures: 1, Errors: 0, Skipped: 0", (11, 1, 0)),
        ("5 doctests, 12 tests, 0 failures", (12, 0, 0)),
        ("90% tests passed, 1 tests failed out of 10", (9, 1, 0)),
        ("3 passed in 1.0s\n4 passed in 1.0s", None),
        ("all is well", None),
        ("", None),
    ],
)  # fmt: skip
def test_what_an_output_counts(output: str, counts: tuple[int | None, ...] | None) -> None:
    assert counts_in(output) == (None if counts is None else Counts(*counts))


@pytest.mark.parametrize(
    ("output", "faults"),
    [
        ("All checks passed!", False),
        ("Success: no issues found in 12 source files", False),
        ("Found 3 errors.", True),
        ("a.py:1: error: bad\nFound 1 error in 1 file", True),
        ("src/a.ts(1,2): error TS2304: Cannot find name", True),
        ("\u2716 3 problems (3 errors, 0 warnings)", True),
        ("done", None),
    ],
)
def test_whether_a_check_found_something(output: str, faults: bool | None) -> None:
    assert faults_in(output) is faults


@pytest.mark.parametrize(
    ("output", "cut"),
    [
        ("a\n... [900 lines truncated] ...\nb", True),
        ("a\n\u202612 tokens truncated\u2026\nb", True),
        ("<persisted-output>\nOutput too large (61 KB).", True),
        ("Output too long and was saved to a file", True),
        ("412 passed in 3.21s", False),
        ("a cut above the rest, nothing omitted", False),
    ],
)
def test_whether_an_output_was_cut(output: str, cut: bool) -> None:
    assert was_cut(output) is cut


HOSTILE = (
    "\n",
    " \n",
    "=",
    "1 passed, ",
    "<<'A'\n",
    "(",
    "`",
    "a=1 ",
    "Tests:  1 a, ",
    "no issues ",
    "1 passing\n",
    "git ",
    "< ",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_what_is_written_to_keep_the_screen_waiting_is_read_as_well(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    assert isinstance(counts_in(text), Counts | None)
    assert faults_in(text) in (True, False, None)
    assert isinstance(statements_in(text), list)
    assert parse(text).text == text
    assert isinstance(unsaid_in(log_of(ran(text[:16_000], 0, text), ran(text, 0, text)), text, WORKSPACE), tuple)
