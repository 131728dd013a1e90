"""Markdown that no document forbids makes no return invalid."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.goldens.documents import adapter
from tests.goldens.documents.shown import shown_of
from tests.goldens.documents.table import Case, write_files
from tests.unit.contracts.documents import FAILURE, PARTIAL, RETURN

NAME = "north.return.md"
BASES = [RETURN, FAILURE, PARTIAL]
MANY = RETURN.replace(
    "files_created:\n- plans/north.md\nfiles_modified:\n- (none)",
    "files_created:\n- plans/north.md\n- src/__init__.py\nfiles_modified:\n- Makefile\n- plans/a b.md",
)

BLOCKS = [
    "",
    "---",
    "***",
    "* * *",
    "<!-- a remark -->",
    "<!--\n## Status\nstate: ERROR\n- /etc/passwd\n-->",
    "### Details",
    "#### Status of the tests",
    "**Details:**",
    "__Details__",
    "> state: ERROR",
    "> - /etc/passwd",
    "```\nstate: ERROR\n- /etc/passwd\n## Status\nstate: ERROR\n```",
    "~~~yaml\nfiles_created:\n- /etc/passwd\n~~~",
    "  ```text\n  - ../x\n  ```",
    "All of this was checked twice.",
    "<note>\nas agreed\n</note>",
    "| file | tests |\n| --- | --- |",
    "checked.by: ada",
    "Next step: wait for the rain",
    "![a picture](https://host.test/a.png)",
]
NESTED = ["  - checked by hand", "    * 4 tests", "  and more of it", "\t- see the map", "  1. first"]
WRAPPERS: list[Callable[[str], str]] = [
    lambda text: f"---\ntask: north\n---\n{text}",
    lambda text: f"---\n\n{text}\n---\n",
    lambda text: f"# Return of the planner\n\n{text}",
    lambda text: f"## Overview\nHere it is.\n\n{text}",
    lambda text: f"Here is my return.\n\n{text}",
    lambda text: f"<result>\n{text}</result>\n",
    lambda text: f"<result>{text}</result>\n",
    lambda text: f"````markdown\n{text}````\n",
    lambda text: f"Here is my return:\n\n~~~~~\n{text}~~~~~\n\nThat is all.\n",
    lambda text: f"<!-- written by the planner -->\n{text}",
    lambda text: f"{text}\nThat is all.\n",
    lambda text: f"{text}\n-- \nAda, planner\n",
    lambda text: f"{text}\nSigned-off-by: Ada <ada@host.test>\n",
    lambda text: f"{text}\n## Notes\n- /etc/hosts was read\n",
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "  \n"),
    lambda text: "\ufeff" + text,
]
DRESSES: list[Callable[[str], str]] = [
    lambda text: text.replace("state:", "**state:**"),
    lambda text: text.replace("summary:", "- summary:"),
    lambda text: text.replace("- plans/north.md\nfiles", "- `plans/north.md`\nfiles"),
    lambda text: text.replace("- plans/north.md\nfiles", "* [x] **plans/north.md**\nfiles"),
    lambda text: text.replace("- plans/north.md\nfiles", "  - plans/north.md\nfiles"),
    lambda text: text.replace("- plans/north.md \u2014", "- [plans/north.md](plans/north.md) \u2014"),
    lambda text: text.replace("- plans/north.md \u2014", "- **`plans/north.md`** \u2014"),
    lambda text: text.replace("- (none)", "- None"),
    lambda text: text.replace("- (none)", "- N/A"),
    lambda text: text.replace("files_modified:\n- (none)", "files_modified:\n- No files were changed."),
    lambda text: text.replace("## Deliverables\n- (none)", "## Deliverables\n- No files; nothing was written"),
    lambda text: text.replace("state: SUCCESS", "state: `SUCCESS`"),
    lambda text: text.replace("## Status\n", "## Status\n```yaml\n").replace(
        "\n\n## Deliverables", "\n```\n\n## Deliverables"
    ),
    lambda text: text.replace("## Evidence\n- maps/north.md", "## Evidence\n\n## Evidence\n- maps/north.md"),
]


def blocks_at(text: str) -> list[tuple[int, str]]:
    """Each line below the first header, and what may stand above it."""
    found = []
    for index, above in enumerate(text.split("\n")[:-1], 1):
        found += [(index, block) for block in BLOCKS]
        found += [(index, block) for block in NESTED if above.startswith("- ")]
    return found


def inserted(text: str, blocks: list[tuple[int, str]]) -> str:
    lines = text.split("\n")
    for index, block in sorted(blocks, reverse=True):
        lines[index:index] = block.split("\n")
    return "\n".join(lines)


def told_by(texts: list[str], root: Path) -> list[Any]:
    """The errors of each text, its state, and all that is shown of it, but for evidence that was added."""
    found: list[Any] = [None for _ in texts]
    workspace = Path(os.path.realpath(root)) / "work"
    write_files(workspace, [Case("", NAME, text) for text in texts])
    for task in adapter.tasks(root, workspace):
        number = int(task["attempts"][0]["return_path"].partition("/")[0])
        shown = shown_of(task, number)
        own = ("evidence maps/north.md:", "evidence rows counted: 9:")
        shown["claims"] = [
            one for one in shown.get("claims", ()) if not one.startswith("evidence") or one.startswith(own)
        ]
        shown["findings"] = [one["rule"] for one in task["findings"] if one["severity"] == "error"]
        found[number] = shown
    return found


def changed(base: str) -> list[str]:
    """The base in every wrapper and dress, with each block at each place, and with several of all this."""
    texts = [inserted(base, [place]) for place in blocks_at(base)]
    texts += [wrap(dress(base)) for wrap in WRAPPERS for dress in (str, *DRESSES)]
    chance = random.Random(7)
    for _ in range(200):
        dressed = base
        for dress in chance.sample(DRESSES[:7] + DRESSES[8:12], chance.randint(0, 2)):
            dressed = dress(dressed)
        text = inserted(dressed, chance.sample(blocks_at(dressed), chance.randint(0, 4)))
        texts.append(chance.choice([*WRAPPERS, str])(text))
    return texts


@pytest.mark.parametrize("base", [*BASES, MANY], ids=["success", "error", "partial", "many"])
def test_what_no_document_forbids_changes_nothing(base: str, tmp_path: Path) -> None:
    texts = changed(base)
    expected, *told = told_by([base, *texts], tmp_path)
    assert (len(texts) > 800, expected["findings"]) == (True, [])
    assert [text for text, one in zip(texts, told, strict=True) if one != expected] == []
