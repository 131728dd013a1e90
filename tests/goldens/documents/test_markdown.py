"""Markdown that the contract does not forbid never makes a return invalid."""

import random
from collections.abc import Sequence

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
WRAPPERS = [
    "---\ntask: north\n---\n@",
    "---\n\n@\n---\n",
    "# Return of the planner\n\n@",
    "## Overview\nHere it is.\n\n@",
    "Here is my return.\n\n@",
    "<result>\n@</result>\n",
    "<result>@</result>\n",
    "````markdown\n@````\n",
    "Here is my return:\n\n~~~~~\n@~~~~~\n\nThat is all.\n",
    "<!-- written by the planner -->\n@",
    "@\nThat is all.\n",
    "@\n-- \nAda, planner\n",
    "@\nSigned-off-by: Ada <ada@host.test>\n",
    "@\n## Notes\n- /etc/hosts was read\n",
    "\ufeff@",
]
"""Texts around the return, which replaces the `@`."""
ENDS = [("\n", "\r\n"), ("\n", "  \n")]
DRESSES = [
    ("state:", "**state:**"),
    ("summary:", "- summary:"),
    ("- plans/north.md\nfiles", "- `plans/north.md`\nfiles"),
    ("- plans/north.md\nfiles", "* [x] **plans/north.md**\nfiles"),
    ("- plans/north.md\nfiles", "  - plans/north.md\nfiles"),
    ("- plans/north.md \u2014", "- [plans/north.md](plans/north.md) \u2014"),
    ("- plans/north.md \u2014", "- **`plans/north.md`** \u2014"),
    ("- (none)", "- None"),
    ("- (none)", "- N/A"),
    ("files_modified:\n- (none)", "files_modified:\n- No files were changed."),
    ("## Deliverables\n- (none)", "## Deliverables\n- No files; nothing was written"),
    ("state: SUCCESS", "state: `SUCCESS`"),
    ("## Status\n", "## Status\n```yaml\n", "\n\n## Deliverables", "\n```\n\n## Deliverables"),
    ("## Evidence\n- maps/north.md", "## Evidence\n\n## Evidence\n- maps/north.md"),
]
"""Pairs of texts: one that a return holds, and another with the same meaning."""


def dressed(text: str, dress: Sequence[str]) -> str:
    for old, new in zip(dress[::2], dress[1::2], strict=True):
        text = text.replace(old, new)
    return text


def blocks_at(text: str) -> list[tuple[int, str]]:
    """Return each line number below the first header with each block that may stand above that line."""
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
    """Return the errors of a text, its fields, and its lists without the evidence that was added."""
    document = read_document(text, NAME)
    errors = [one.rule for one in document.findings if one.severity is Severity.ERROR]
    evidence = [one for one in document.model.evidence if one in ("maps/north.md", "rows counted: 9")]
    return errors, document.document, document.model.deliverables, evidence


def changed(base: str) -> list[str]:
    """Return the base in every wrapper and dress, with each block at each place, and with several of these changes."""
    texts = [inserted(base, [place]) for place in blocks_at(base)]
    texts += [wrap.replace("@", dressed(base, dress), 1) for wrap in WRAPPERS for dress in ((), *DRESSES)]
    texts += [dressed(dressed(base, dress), ends) for ends in ENDS for dress in ((), *DRESSES)]
    chance = random.Random(7)
    for _ in range(200):
        text = base
        for dress in chance.sample(DRESSES[:7] + DRESSES[8:12], chance.randint(0, 2)):
            text = dressed(text, dress)
        text = inserted(text, chance.sample(blocks_at(text), chance.randint(0, 4)))
        texts.append(chance.choice([*WRAPPERS, "@"]).replace("@", dressed(text, chance.choice([*ENDS, ()])), 1))
    return texts


@pytest.mark.parametrize("base", [*BASES, MANY], ids=["success", "error", "partial", "many"])
def test_markdown_that_is_not_forbidden_changes_no_return(base):
    texts, expected = changed(base), told_by(base)
    assert (len(texts) > 800, expected[0]) == (True, [])
    assert [text for text in texts if told_by(text) != expected] == []
