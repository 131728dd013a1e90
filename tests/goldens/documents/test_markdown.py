"""Markdown that no document forbids makes no return invalid."""

import random
from collections.abc import Callable

import pytest

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Severity
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


def told_by(text: str) -> tuple[object, ...]:
    """The errors of a text, its fields, and all that it lists, but for evidence that was added."""
    document = read_document(text, NAME)
    assert document is not None
    errors = [one.rule for one in document.findings if one.severity is Severity.ERROR]
    evidence = [one for one in document.model.evidence if one in ("maps/north.md", "rows counted: 9")]
    return errors, document.document, document.model.deliverables, evidence


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
def test_what_no_document_forbids_changes_nothing(base):
    texts, expected = changed(base), told_by(base)
    assert (len(texts) > 800, expected[0]) == (True, [])
    assert [text for text in texts if told_by(text) != expected] == []
