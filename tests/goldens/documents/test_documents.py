"""Documents with their findings and fields: golden files of `check` and `report`, a line for each case."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.goldens.world import run
from tests.homes import live_in
from tests.unit.claude_code.building import SESSION, Store, meta
from tests.unit.contracts import cases, documents

A_MINUTE_AGO = datetime.now(UTC) - timedelta(minutes=1)
CASES = Path(__file__).parent / "cases"
BASES = {
    "packet": documents.text_of(documents.PACKET),
    "fenced_packet": f"```json\n{documents.text_of(documents.PACKET)}```\n",
    "todos": documents.TODOS,
    "return": documents.RETURN,
    "failure": documents.FAILURE,
    "partial": documents.PARTIAL,
    "subagent": documents.text_of(documents.SUBAGENT),
    "subagent_failed": documents.text_of(documents.SUBAGENT_FAILED),
    "meta": documents.text_of(documents.META),
    "report": documents.text_of(documents.REPORT),
}
RULES = "rules_"
"""A theme with this prefix has a contract behind it; each of its cases breaks one rule of that contract."""
CONTRACTS = ("DOC", "HOF", "TOD", "RET", "ERR", "SUB", "MET", "REP")
THEMES = (
    *("embedded", "fields", "json_text", "markdown", "named", "recognition", "stages", "valid", "wording"),
    *(f"{RULES}{contract}" for contract in CONTRACTS),
)
_TASK = re.compile(r'([Tt]ask[_ ]id"?: ?"?)([A-Za-z][\w.-]*)')


class Case(NamedTuple):
    """A text and its place: in a `file` called `name`, or `asked` of a child or `returned` by it."""

    id: str
    name: str
    text: str
    mode: str = "file"

    def text_of_its_own(self, number: int) -> str:
        """Return the text with task ids that no other case has."""
        return _TASK.sub(rf"\1\2~{number}", self.text)


def _edited(base: str, edits: list[tuple[int, int, list[str]]]) -> str:
    """Return the text of a base with lines replaced; an edit is the first line, how many lines, and the new lines."""
    lines = BASES[base].split("\n")
    for at, count, others in reversed(edits):
        lines[at : at + count] = others
    return "\n".join(lines)


def cases_of(theme: str) -> list[Case]:
    """Return the cases of a theme: those of its file, or those that break the rules of a contract."""
    made: list[Case] = []
    if theme.startswith(RULES):
        for case in cases.CASES:
            if case.rule.startswith(theme.removeprefix(RULES)):
                number = 1 + sum(one.id.startswith(case.rule) for one in made)
                made.append(
                    Case(f"{case.rule}-{number}", case.name, case.text, "returned" if case.embedded else "file")
                )
        return made
    for row in json.loads((CASES / f"{theme}.json").read_text("utf-8")):
        text = row["text"] if "text" in row else _edited(row["base"], row.get("edits", []))
        made.append(Case(row["id"], row["name"], text, row.get("mode", "file")))
    return made


ON_DISK = (
    *("plans/north.md", "plans/seeds.csv", "plans/api.md", "plan.md", "reports/soil.md", "reports/almanac.md"),
    *("maps/north.md", "seeds/stock.csv", "src/soil.py"),
)
"""Files that the documents name."""


def write_files(root: Path, some: list[Case], *, own_ids: bool = False):
    """Write each `file` case into a directory named after its number, beside the files that the documents name."""
    for name in ON_DISK:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("A line.\n" * 30)
        os.utime(root / name, (A_MINUTE_AGO.timestamp() - 3_600,) * 2)
    for number, case in enumerate(some):
        if case.mode == "file":
            path = root / f"{number:04}" / case.name
            path.parent.mkdir(parents=True)
            text = case.text_of_its_own(number) if own_ids else case.text
            path.write_bytes(text.encode("utf-8", "replace"))
            os.utime(path, (A_MINUTE_AGO.timestamp(),) * 2)


def write_children(home: Path, workspace: Path, some: list[Case]):
    """Write the other cases into a session: each is a child, named after the number of the case."""
    store = Store(workspace)
    store.workspace, store.home, store.time = workspace, home / ".claude", A_MINUTE_AGO
    main = store.session()
    main.asked("Plant the garden.")
    for number, case in enumerate(some):
        if case.mode != "file":
            name, text = f"{number:04}", case.text_of_its_own(number)
            asked, returned = (text, "I am done.") if case.mode == "asked" else ("Plant it.", text)
            main.delegated(f"call_{name}", asked)
            child = store.agent(f"a{name}", meta(f"call_{name}", description=name))
            child.asked(asked)
            child.said(returned)
            main.got(f"call_{name}", returned)
    store.save()


def command(home: Path, *words: str) -> Any:
    """Return the JSON that a command prints for a user with this home."""
    with pytest.MonkeyPatch.context() as patch:
        live_in(home, patch)
        patch.chdir(home)
        return json.loads(run(*words).out)


@cache
def rules() -> list[dict[str, Any]]:
    """Return the catalogue of rules."""
    listed: list[dict[str, Any]] = command(Path.cwd(), "rules", "--format", "json")["rules"]
    return listed


@cache
def schema(contract: str) -> Any:
    """Return the JSON Schema of a contract."""
    return command(Path.cwd(), "schema", contract)


_OF_TASK = (
    *("task_id", "parent_id", "parent_basis", "title", "agent", "state", "reported_state", "contract", "objective"),
    *("summary", "progress", "error_code", "error_message", "errors", "blockers", "limitations"),
)
_OF_RETURN = (
    *("next_steps", "review_reason", "model", "mode", "confidence", "retry_hint"),
    *("artifacts", "files_created", "files_modified"),
)


def without_number(value: Any, number: int) -> Any:
    """Return a result without the number of its case, so that it does not depend on the order of the cases."""
    text = json.dumps(value, ensure_ascii=False).replace(f"~{number}", "").replace(SESSION, "s")
    return json.loads(re.sub(rf"(?<![\d]){number:04}(?!\d)", "N", text))


def _attempts(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return, for each attempt, the fields that its task does not show."""
    for attempt in task["attempts"]:
        known = {key: attempt[key] for key in ("number", "state", "session_id")}
        known |= {key: attempt["returned"][key] for key in _OF_RETURN} if attempt["returned"] else {}
        yield {key: value for key, value in known.items() if value not in (None, [], {})}


def shown_of(task: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the fields of a task that come from its documents and are not empty."""
    shown = {key: task[key] for key in _OF_TASK}
    shown["mode_asked"], shown["retry"] = task["runtime"]["mode_asked"], task["retry"]["recommended"]
    shown["attempts"] = list(_attempts(task))
    shown["claims"] = [f"{one['kind']} {one['path']}: {one['verdict']}" for one in task["claims"]]
    shown["todos"] = [f"{one['line']} {one['status']} {one['phase']} {one['text']}" for one in task["todos"]]
    shown["findings"] = [f"{one['rule']} {one['line']}" for one in task["findings"]]
    found: dict[str, Any] = {key: value for key, value in shown.items() if value not in (None, [], {})}
    return without_number(found, number)  # type: ignore[no-any-return]


def _lines(results: Iterable[tuple[str, Any]]) -> str:
    """Return one line for each case, in the order of the cases."""
    return "".join(f"{name} {json.dumps(found, ensure_ascii=False)}\n" for name, found in results)


def _number(path: str) -> int | None:
    """Return the number of the case in a path or in the name of a call."""
    found = re.match(r"(?:claude-code:call_)?(\d{4})(?:/|$)", path)
    return int(found[1]) if found else None


def _checked(home: Path, workspace: Path, some: list[Case]) -> list[tuple[str, Any]]:
    """Return the findings of each file; a file that a check of the workspace passes over is named to `check`."""
    write_files(workspace, some)
    found: list[tuple[str, Any]] = [(case.id, None) for case in some]

    def note(*paths: Path):
        for file in command(home, "check", *map(str, paths), "--format", "json")["files"]:
            number = int(Path(file["path"]).relative_to(workspace).parts[0])
            findings = [[one["rule"], one["severity"], one["line"], one["message"]] for one in file["findings"]]
            found[number] = (some[number].id, without_number([file["contract"], file["state"], *findings], number))

    note(workspace)
    passed = [number for number, (_, result) in enumerate(found) if result is None and some[number].mode == "file"]
    note(*(workspace / f"{number:04}" / some[number].name for number in passed))
    return found


def _tasks(home: Path, workspace: Path, some: list[Case]) -> list[tuple[str, list[Any]]]:
    """Return the tasks that `report` shows of each case; inferred tasks appear only as parents of others."""
    write_files(workspace, some, own_ids=True)
    write_children(home, workspace, some)
    found: list[tuple[str, list[Any]]] = [(case.id, []) for case in some]
    for task in command(home, "report", str(workspace), "--format", "json")["tasks"]:
        paths = [attempt[key] for attempt in task["attempts"] for key in ("handoff_path", "return_path")]
        paths += [f"{attempt['session_id']}"[1:] for attempt in task["attempts"]]
        paths += [one["path"] for one in task["findings"]]
        numbers = [number for path in paths if path and (number := _number(path)) is not None]
        if numbers:
            found[numbers[0]][1].append(shown_of(task, numbers[0]))
    return found


def test_each_document_has_its_findings_and_fields(tmp_path, golden):
    """`check` and `report` are one look each at all cases of all themes, as a look takes most of the time."""
    by_theme = {theme: cases_of(theme) for theme in THEMES}
    some = [case for found in by_theme.values() for case in found]
    homes = [tmp_path / name for name in ("home", "checked", "shown")]
    for directory in homes:
        directory.mkdir()
    checked, shown = iter(_checked(*homes[:2], some)), iter(_tasks(homes[0], homes[2], some))
    for theme, found in by_theme.items():
        golden.check(f"documents/{theme}.check.txt", _lines(islice(checked, len(found))))
        golden.check(f"documents/{theme}.tasks.txt", _lines(islice(shown, len(found))))
