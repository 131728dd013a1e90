"""Documents, and what is found and read in them: golden files of `check` and `report`, a line for each case."""

import json
import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.goldens.documents import adapter
from tests.goldens.documents.shown import shown_of, without_number
from tests.goldens.documents.table import THEMES, Case, cases_of, write_children, write_files

Results = dict[str, tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """By theme what `check` finds in each case and what `report` shows of it; all stand in one workspace."""
    root = Path(os.path.realpath(tmp_path_factory.mktemp("documents")))
    by_theme = {theme: cases_of(theme) for theme in THEMES}
    some = [case for cases in by_theme.values() for case in cases]
    homes = [root / "home", root / "checked", root / "shown"]
    for directory in homes:
        directory.mkdir()
    checked, shown = iter(_checked(*homes[:2], some)), iter(_tasks(homes[0], homes[2], some))
    return {
        theme: (dict(islice(checked, len(cases))), dict(islice(shown, len(cases)))) for theme, cases in by_theme.items()
    }


def _lines(results: dict[str, Any]) -> str:
    """One line for each case, in their order."""
    return "".join(f"{name} {json.dumps(found, ensure_ascii=False)}\n" for name, found in results.items())


def _number(path: str) -> int | None:
    """The number of the case in a path or the name of a call."""
    found = re.match(r"(?:claude-code:call_)?(\d{4})(?:/|$)", path)
    return int(found[1]) if found else None


def _checked(home: Path, workspace: Path, some: list[Case]) -> list[tuple[str, Any]]:
    """What `check` finds in each file, also where only naming it makes it look; null where it recognises nothing."""
    write_files(workspace, some)
    found: list[tuple[str, Any]] = [(case.id, None) for case in some]

    def note(files: list[dict[str, Any]]):
        for file in files:
            number = int(Path(file["path"]).relative_to(workspace).parts[0])
            findings = [[one["rule"], one["severity"], one["line"], one["message"]] for one in file["findings"]]
            found[number] = (some[number].id, without_number([file["contract"], file["state"], *findings], number))

    note(adapter.checked(home, workspace))
    passed = [number for number, (_, result) in enumerate(found) if result is None and some[number].mode == "file"]
    note(adapter.checked(home, *(workspace / f"{number:04}" / some[number].name for number in passed)))
    return found


def _tasks(home: Path, workspace: Path, some: list[Case]) -> list[tuple[str, list[Any]]]:
    """The tasks that `report` shows of each case; those that are only inferred show as parents."""
    write_files(workspace, some, own_ids=True)
    write_children(home, workspace, some)
    found: list[tuple[str, list[Any]]] = [(case.id, []) for case in some]
    for task in adapter.tasks(home, workspace):
        paths = [attempt[key] for attempt in task["attempts"] for key in ("handoff_path", "return_path")]
        paths += [f"{attempt['session_id']}"[1:] for attempt in task["attempts"]]
        paths += [one["path"] for one in task["findings"]]
        numbers = [number for path in paths if path and (number := _number(path)) is not None]
        if numbers:
            found[numbers[0]][1].append(shown_of(task, numbers[0]))
    return found


@pytest.mark.parametrize("theme", THEMES)
def test_each_file_has_its_findings(theme, results, golden):
    golden.check(f"documents/{theme}.check.txt", _lines(results[theme][0]))


@pytest.mark.parametrize("theme", THEMES)
def test_each_document_gives_its_task_its_fields(theme, results, golden):
    golden.check(f"documents/{theme}.tasks.txt", _lines(results[theme][1]))
