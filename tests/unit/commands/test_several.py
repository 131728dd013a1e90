"""`tree` and `pending` of several workspaces: each as it is alone, with its path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentwatch.cli import run
from tests.unit.test_monitors import home, workspace

__all__ = ["home"]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(words)
    return code, capsys.readouterr().out


@pytest.mark.parametrize("command", ["tree", "pending"])
def test_of_several_each_has_its_path_above_it(home: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    one, two = workspace(home, "one"), workspace(home, "two")
    alone = {place: printed(capsys, command, str(place)) for place in (one, two)}
    code, text = printed(capsys, command, str(one), str(two), str(one))
    assert (code, text) == (0, f"{one}\n{alone[one][1]}\n{two}\n{alone[two][1]}")


@pytest.mark.parametrize("command", ["tree", "pending"])
def test_as_json_each_task_says_its_workspace_and_one_path_says_what_it_always_did(
    home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    one, two = workspace(home, "one"), workspace(home, "two")
    alone: list[dict[str, Any]] = [json.loads(printed(capsys, command, "--json", str(at))[1]) for at in (one, two)]
    assert all("workspace" not in task for document in alone for task in document["tasks"])
    told = json.loads(printed(capsys, command, "--json", str(one), str(two))[1])
    assert told["schema_version"] == 1
    assert [document["workspace"] for document in told["workspaces"]] == [str(one), str(two)]
    tasks = [task for document in told["workspaces"] for task in document["tasks"]]
    assert [(task["task_id"], task["workspace"]) for task in tasks] == [("shop.api", str(one)), ("shop.api", str(two))]
    assert told["workspaces"][0]["tasks"][0].keys() - {"workspace"} == alone[0]["tasks"][0].keys()


def test_the_exit_code_is_that_of_the_worst(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = workspace(home, "one"), home / "two"
    two.mkdir()
    assert printed(capsys, "tree", "--fail", str(two))[0] == 0
    assert printed(capsys, "tree", "--fail", str(one), str(two))[0] == 1
