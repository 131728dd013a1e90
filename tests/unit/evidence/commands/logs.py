"""Logs of made sessions, by name: what an attempt ran and wrote, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.evidence.commands.log import ToolLog, read_log
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.following import RunTranscript

WORKSPACE: Final = "/shop"
BEGAN: Final = 1_000.0

Deed = Sequence[Entry]


def ran(
    line: str, code: int | None = 0, output: str = "", *, cwd: str = WORKSPACE, refused: bool = False, over: bool = True
) -> Deed:
    """A command in a shell, and what came of it; `over` is False where there is no result."""
    call = Entry(0.0, EntryKind.CALL, tool="Bash", given={"command": line}, cwd=cwd)
    ended = None if refused else Ended(code, output)
    result = Entry(0.0, EntryKind.RESULT, output, failed=refused or bool(code), refused=refused, ended=ended)
    return [call, result] if over else [call]


def wrote(path: str, *, tool: str = "Write", failed: bool = False, refused: bool = False) -> Deed:
    """A file that was written."""
    call = Entry(0.0, EntryKind.CALL, tool=tool, given={"file_path": path}, cwd=WORKSPACE)
    return [call, Entry(0.0, EntryKind.RESULT, "ok", failed=failed or refused, refused=refused)]


def used(tool: str, **given: object) -> Deed:
    """Any other tool."""
    call = Entry(0.0, EntryKind.CALL, tool=tool, given=given, cwd=WORKSPACE)
    return [call, Entry(0.0, EntryKind.RESULT, "ok")]


class MadeTranscript(RunTranscript):
    """Deeds as the records of a transcript, a second each."""

    def __init__(self, deeds: Sequence[Deed], began: float = BEGAN) -> None:
        super().__init__(Path())
        self._deeds = deeds
        self._began = began

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        for number, deed in enumerate(self._deeds):
            at = self._began + 2 * number
            call = f"call-{number}"
            yield number, [one._replace(at=at + half, call=call) for half, one in enumerate(deed)]

    def entries(self) -> Iterator[Entry]:
        return (entry for _, record in self.records() for entry in record)

    def _read(self) -> bool:
        return False

    def _entries_at(self, place: int) -> Sequence[Entry]:
        return next(record for at, record in self.records() if at == place)


def run_of(session: str = "child", parent: str | None = "main") -> Run:
    return Run(
        source="made",
        session_id=session,
        parent_session=parent,
        state=RunState.ENDED,
        place="/store/child.jsonl",
        started_at=BEGAN,
        updated_at=BEGAN + 900.0,
        ended_at=BEGAN + 900.0,
    )


def log_of(*deeds: Deed) -> ToolLog:
    log = read_log([run_of()], lambda _: MadeTranscript(deeds))
    assert log is not None
    return log


_412: Final = "........ [100%]\n412 passed in 3.21s\n"
_399: Final = "FAILED tests/test_a.py::test_b\n13 failed, 399 passed in 4.00s\n"
_UNIT: Final = "......\n----\nRan 12 tests in 0.003s\n\nOK\n"
_JEST: Final = "PASS src/form.test.ts\n\nTests:       31 passed, 31 total\nTime: 2 s\n"
_CARGO: Final = "running 7 tests\ntest result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n"
_TRIMMED: Final = "tests/test_a.py ....\n... [20133 characters truncated] ...\n"

UNKNOWN: Final = (
    "$(cat command)",
    "ls; `cat command`",
    "tar -cf x.tar --checkpoint-action=exec=julia .",
    "(cd sub && lein test)",
    "for t in a b; do julia $t; done",
    "D=$(date) lein test",
    "if lein test; then echo ok; fi",
    "lein test & wait",
    'Rscript -e "devtools::test()"',
    'julia -e "using Pkg; Pkg.test()"',
    "zig build test",
    "lake build",
    "ninja test",
    "cmake --build . --target test",
    "find . -name '*.jl' -exec julia {} ';'",
    "awk 'BEGIN{system(\"lein test\")}'",
    "sed '1e lein test' a.txt",
    'git rebase -x "lein test" main',
    "git test",
    "gh workflow run ci.yml && gh run watch",
    "curl -X POST https://ci.example/run",
)
"""Lines that may run tests, for all that anybody knows."""
HARMLESS: Final = (
    "for f in a b; do cat $f; done",
    "if grep -q x a.py; then echo yes; fi",
    "(cd sub && ls)",
    "N=$(wc -l < a.py); echo $N",
    "git -C /shop log --oneline 2>&1 | head",
    "ls $(git rev-parse --show-toplevel) 2>/dev/null || true",
)
"""And those that surely run none, though they are programs."""
LOGS: Final[Mapping[str, Sequence[Deed]]] = {
    "nothing": [],
    "mostly skipped": [ran("pytest -q", 0, "2 passed, 40 skipped in 1.0s")],
    "stashed": [ran("pytest -q", 0, _412), ran("git stash"), ran("pytest -q", 1, _399), ran("git stash pop")],
    "only before, stashed": [ran("git stash"), ran("pytest -q", 1, _399), ran("git stash pop"), wrote("src/a.py")],
    "on main": [ran("pytest -q", 0, _412), ran("git checkout -q main && pytest -q; git checkout -q feat", 0, _399)],
    "on main, fewer": [ran("git checkout main && pytest", 0, "400 passed in 3s"), ran("git checkout feat")],
    "mutated": [ran("pytest -q", 0, _412), ran("sed -i s/1/2/ a.py && pytest -q; git checkout a.py", 0, _399)],
    "worktree inside": [
        *(ran("pytest -q", 0, _412), ran("git worktree add .base main"), ran("cd .base && pytest -q", 1, _399))
    ],
    "mutated by hand": [
        *(ran("pytest -q", 0, _412), wrote("src/a.py"), ran("pytest -q", 1, _399), wrote("src/a.py"))
    ],
    "red, then an edit": [ran("pytest -q", 1, _399), wrote("src/a.py")],
    "red, then a branch": [ran("pytest -q", 1, _399), ran("git checkout -b next && git stash list")],
    "put back, then red": [ran("git stash"), ran("git stash pop"), ran("pytest -q", 1, _399)],
    "hooked": [ran("git commit -m x", 0, "pytest...............Passed\n[main 1a2b] x\n 1 file changed")],
    "committed, tests in it": [
        ran("git commit -m 'tests pass'", 0, "[main 1a2b] tests pass\n 1 file changed\n create mode 100644 tests/a.py")
    ],
    "hooked, in a document": [
        ran("git commit -m \"$(cat <<'END'\nx (y)\nEND\n)\"", 0, "husky - running tests\n[main 1a2b] x (y)")
    ],
    "pushed, checked there": [ran("git push", 0, "remote: pre-receive hook: 12 passed\nTo host:x\n")],
    "pushed": [ran("git push", 0, "remote: Resolving deltas: 100% (1/1)\nTo host:x\n   a..b  main -> main\n")],
    "green then hooked": [ran("pytest -q", 0, _412), ran("git commit -m x", 0, "black....Failed\n[main 1a2b] x")],
    "looked by tools": [used("Read", file_path="a.py"), used("Grep", pattern="foo")],
    **{line: [ran(line, 0, "")] for line in UNKNOWN},
    **{line: [ran(line, 0, "")] for line in HARMLESS},
    "three checks": [
        ran("pytest -q", 0, "12 passed in 0.1s"),
        ran("ruff check .", 0, "All checks passed!"),
        ran("mypy .", 0, "Success: no issues found in 12 source files"),
    ],
    "only looked": [ran("ls -la", 0, "src"), ran("cat src/a.py", 0, "x = 1"), ran("git diff --stat", 0, "")],
    "green": [wrote("src/a.py"), ran("pytest -q", 0, _412)],
    "module": [ran("python3 -m pytest", 0, _412)],
    "venv": [ran(".venv/bin/pytest -q --tb=short", 0, _412)],
    "uv": [ran("uv run pytest -n auto", 0, _412)],
    "red": [wrote("src/a.py"), ran("pytest -q", 1, _399)],
    "red then green": [ran("pytest -q", 1, _399), wrote("src/a.py"), ran("pytest -q", 0, _412)],
    "types red": [ran("mypy src", 1, "src/a.py:1: error: no\nFound 3 errors in 1 file (checked 9 source files)")],
    "served": [ran("curl -s localhost:8080/health", 0, "200")],
    "no match": [ran("grep -rn console.log src", 1, "")],
    "refuses": [ran("python cli.py --bad", 2, "usage: cli.py")],
    "warned": [ran("cargo clippy", 0, "warning: unused variable\nwarning: `x` (lib) generated 3 warnings")],
    "renamed green": [
        ran("npm test", 1, "Tests:       2 failed, 29 passed, 31 total"),
        wrote("src/a.ts"),
        ran("npx jest", 0, "Tests:       31 passed, 31 total"),
    ],
    "not begun": [ran("pytest -q", 4, "ERROR: file not found"), ran("cd api && pytest -q", 0, _412)],
    "no program": [ran("pytest -q", 0, _412), ran("vitest run", 127, "vitest: command not found")],
    "no tests there": [
        ran("npm test", 0, "Tests:       31 passed, 31 total"),
        ran("pytest", 5, "no tests ran in 0.01s"),
    ],
    "crates": [
        ran(
            "cargo test",
            0,
            "test result: ok. 35 passed; 0 failed; 0 ignored\ntest result: ok. 2 passed; 0 failed; 0 ignored\n",
        )
    ],
    "suites": [ran("npm test", 0, "Test Suites: 3 passed, 3 total\nTests:       31 passed, 31 total")],
    "listed": [ran("gofmt -l .", 0, "api/x.go")],
    "odd end": [ran("pytest -q", 0, "12 passed, 1 error in 1s")],
    "checked by cargo": [ran("cargo check", 0, "    Finished dev in 1.2s")],
    "green then red": [ran("pytest -q", 0, _412), wrote("src/a.py"), ran("pytest -q", 1, _399)],
    "green then edit": [ran("pytest -q", 0, _412), wrote("src/a.py", tool="Edit")],
    "green then sed": [ran("pytest -q", 0, _412), ran("sed -i s/a/b/ src/a.py", 0)],
    "green then checkout": [ran("pytest -q", 0, _412), ran("git checkout -- src", 0)],
    "green then patch": [
        ran("pytest -q", 0, _412),
        used("apply_patch", input="*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch"),
    ],
    "green then redirect": [ran("pytest -q", 0, _412), ran("echo 'x = 2' > src/a.py", 0)],
    "green then heredoc": [ran("pytest -q", 0, _412), ran("cat > src/a.py <<'END'\nx = 2\nEND", 0)],
    "green then notes": [ran("pytest -q", 0, _412), wrote("docs/notes.md"), wrote("shop.return.json")],
    "green then looks": [ran("pytest -q", 0, _412), ran("git status", 0, ""), ran("git diff | head -5", 0, "")],
    "green then commit": [ran("pytest -q", 0, _412), ran("git add -A && git commit -m done", 0, "")],
    "green, edit refused": [ran("pytest -q", 0, _412), wrote("src/a.py", refused=True)],
    "green, edit failed": [ran("pytest -q", 0, _412), wrote("src/a.py", failed=True)],
    "green, strange tool": [ran("pytest -q", 0, _412), used("mcp__ide__rename", name="a")],
    "strange tool alone": [used("mcp__ide__run_tests", scope="all")],
    "refused": [ran("pytest -q", None, "Permission to use Bash was denied", refused=True)],
    "cat": [ran("cat pytest.log", 0, _412)],
    "tail": [ran("tail -n 3 out/pytest.log", 0, _412)],
    "grep": [ran("grep passed pytest.log", 0, "412 passed in 3.21s")],
    "echo": [ran("echo '412 passed in 3.21s'", 0, "412 passed in 3.21s")],
    "echo command": [ran("echo pytest -q: 412 passed", 0, "pytest -q: 412 passed")],
    "quoted mark": [ran('echo "&&" pytest -q', 0, "&& pytest -q\n412 passed in 3.21s")],
    "printed by python": [ran("python3 -c 'print(\"412 passed in 1s\")'", 0, "412 passed in 1s")],
    "or true": [ran("pytest -q || true", 0, _412)],
    "or true, red": [ran("pytest -q || true", 0, _399)],
    "pipe": [ran("pytest -q | tail -3", 0, _412)],
    "pipe, red": [ran("pytest -q 2>&1 | tail -3", 0, _399)],
    "pipefail": [ran("set -o pipefail; pytest -q | tail -3", 0, _412)],
    "pipe, silent": [ran("pytest -q | tail -1 > /dev/null", 0, "")],
    "semicolon": [ran("pytest -q; echo done", 0, _412 + "done")],
    "semicolon, red": [ran("pytest -q; echo done", 0, _399 + "done")],
    "set +e": [ran("set +e\npytest -q\necho finished", 0, _412 + "finished")],
    "set -e": [ran("set -e\npytest -q\necho finished", 0, _412 + "finished")],
    "and echo": [ran("pytest -q && echo fine", 0, _412 + "fine")],
    "and edit": [ran("pytest -q && sed -i s/1/2/ src/a.py", 0, _412)],
    "edit and": [ran("sed -i s/1/2/ src/a.py && pytest -q", 0, _412)],
    "cd and": [ran(f"cd {WORKSPACE} && pytest -q", 0, _412)],
    "cd and, red": [ran(f"cd {WORKSPACE} && pytest -q", 1, _399)],
    "in background": [ran("pytest -q &", 0, "")],
    "background run": [ran("pytest -q", None, "Command running in background with ID: b1")],
    "not over": [ran("pytest -q", over=False)],
    "killed": [ran("pytest -q", 137, "tests/test_a.py ....")],
    "elsewhere": [ran("cd /other && pytest -q", 0, _412)],
    "below": [ran("cd packages/api && pytest -q", 0, _412)],
    "called elsewhere": [ran("pytest -q", 0, _412, cwd="/other")],
    "nowhere": [ran("pytest -q", 0, _412, cwd="")],
    "subset": [ran("pytest tests/test_a.py -q", 0, "3 passed in 0.10s")],
    "subset, red": [ran("pytest tests/test_a.py -q", 1, "1 failed, 2 passed in 0.10s")],
    "keyword": [ran("pytest -q -k cart", 0, "12 passed, 400 deselected in 0.30s")],
    "folder": [ran("pytest tests/ -q", 0, _412)],
    "red then subset": [ran("pytest -q", 1, _399), wrote("a.py"), ran("pytest tests/test_a.py", 0, "13 passed in 1s")],
    "no tests": [ran("pytest -q", 5, "no tests ran in 0.01s")],
    "none collected": [ran("python3 -m unittest", 0, "Ran 0 tests in 0.000s\n\nOK\n")],
    "collect only": [ran("pytest --collect-only -q", 0, "412 tests collected in 0.20s")],
    "version": [ran("pytest --version", 0, "pytest 8.3.2")],
    "trimmed": [ran("pytest", 0, _TRIMMED)],
    "trimmed, end there": [ran("pytest", 0, _TRIMMED + "===== 412 passed in 3.21s =====")],
    "own addopts": [ran("PYTEST_ADDOPTS='-k cart' pytest -q", 0, "12 passed in 0.30s")],
    "other pytest": [ran("./pytest -q", 0, _412)],
    "other path": [ran("PATH=.:$PATH pytest -q", 0, _412)],
    "function": [ran("pytest() { echo '412 passed in 1s'; }; pytest", 0, "412 passed in 1s")],
    "in a loop": [ran("for i in 1 2; do pytest -q; done", 0, _412)],
    "two suites": [ran("pytest -q", 0, _412), ran("npm test", 0, _JEST)],
    "one suite red": [ran("pytest -q", 1, _399), ran("npm test", 0, _JEST)],
    "script": [ran("bash run_tests.sh", 0, "all good: 412 passed")],
    "make": [ran("make test", 0, "python -m pytest\n" + _412)],
    "make, quiet": [ran("make test", 0, "done")],
    "make, red": [ran("make check", 2, "make: *** [check] Error 1")],
    "unittest": [ran("python3 -m unittest", 0, _UNIT)],
    "unittest, red": [ran("python -m unittest discover", 1, "Ran 12 tests in 0.1s\n\nFAILED (failures=2)\n")],
    "npm": [ran("npm test", 0, _JEST)],
    "npm form": [ran("npm test -- form", 0, _JEST)],
    "npm, red": [ran("npm test", 1, "Tests:       1 failed, 30 passed, 31 total\n")],
    "yarn": [ran("yarn test --silent", 0, _JEST)],
    "vitest": [ran("npx vitest run", 0, " Test Files  2 passed (2)\n      Tests  31 passed (31)\n")],
    "mocha": [ran("npx mocha", 1, "  31 passing (2s)\n  2 failing\n")],
    "cargo": [ran("cargo test", 0, _CARGO + _CARGO)],
    "cargo, red": [ran("cargo test", 101, "test result: FAILED. 6 passed; 1 failed; 0 ignored; 0 measured\n")],
    "go": [ran("go test ./...", 0, "ok  \texample/a\t0.1s\nok  \texample/b\t0.2s\n")],
    "go, red": [ran("go test ./...", 1, "--- FAIL: TestA (0.0s)\nFAIL\texample/a\t0.1s\nFAIL\n")],
    "lint": [ran("ruff check .", 0, "All checks passed!")],
    "lint, red": [ran("ruff check .", 1, "Found 3 errors.")],
    "lint of a part": [ran("ruff check src/a.py", 0, "All checks passed!")],
    "types": [ran("mypy .", 0, "Success: no issues found in 12 source files")],
    "types, red": [ran("npx tsc --noEmit", 2, "src/a.ts(1,2): error TS2304: Cannot find name 'x'.")],
    "build": [ran("npm run build", 0, "built in 2.1s")],
    "build, red": [ran("npm run build", 1, "error: cannot resolve ./b")],
    "green then build": [ran("npm test", 0, _JEST), ran("npm run build", 0, "built in 2.1s")],
    "script failed": [ran("python3 -m no_such_checker src/calc.py", 1, "No module named no_such_checker")],
    "ended with 3": [ran("sleep 1; exit 3", 3, "")],
    "missing program": [ran("pytest -q", 127, "bash: pytest: command not found")],
    "committed only": [wrote("src/a.py"), ran("git add -A && git commit -m 'all tests pass'", 0, "")],
    "written with cat": [ran("mkdir -p $(dirname docs/a.txt) && cat > docs/a.txt <<'END'\npytest\nEND", 0)],
    "both": [ran("ruff check .", 0, "All checks passed!"), ran("pytest -q", 0, _412)],
    "both in one": [ran("ruff check . && pytest -q", 0, "All checks passed!\n" + _412)],
    "both in one, red": [ran("ruff check . && pytest -q", 1, "All checks passed!\n" + _399)],
    "partly printed": [ran("cat old.log && pytest -q", 0, "13 failed, 399 passed in 1.0s\n" + _412)],
    "asked for": [ran("pytest -q tests/test_cart.py::test_total", 0, "1 passed in 0.05s")],
    "coverage": [ran("pytest -q --cov=shop", 1, _412 + "FAIL Required test coverage of 90% not reached.")],
    "script, red": [ran("bash run_tests.sh", 1, "11 passed, 1 failed")],
    "script, counted": [ran("sh check.sh", 0, "12 passed, 0 failed")],
    "skipped": [ran("pytest -q", 0, "412 passed, 3 skipped in 3.0s")],
    "compiled": [ran("make", 0, "cc -o shop shop.c")],
    "later in a script": [ran("pytest -q", 1, _399), wrote("src/a.py"), ran("./ci.sh", 0, "ok")],
    "curl": [ran("curl -s localhost:8000/health", 0, '{"ok": true}')],
}  # fmt: skip
