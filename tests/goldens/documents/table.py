"""The cases: texts under a name of a file, or in a session as what a child was asked or returned."""

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from tests.goldens.documents.store import A_MINUTE_AGO, write_session
from tests.unit.contracts import cases, documents

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
"""Of these themes each case breaks one rule of the contract that is named behind."""
CONTRACTS = ("DOC", "HOF", "TOD", "RET", "ERR", "SUB", "MET", "REP")
THEMES = (
    *("embedded", "fields", "json_text", "markdown", "named", "recognition", "stages", "valid", "wording"),
    *(f"{RULES}{contract}" for contract in CONTRACTS),
)
_TASK = re.compile(r'([Tt]ask[_ ]id"?: ?"?)([A-Za-z][\w.-]*)')


class Case(NamedTuple):
    """A text, and where it stands: in a `file` called `name`, or `asked` of or `returned` by a child."""

    id: str
    name: str
    text: str
    mode: str = "file"

    def text_of_its_own(self, number: int) -> str:
        """The text with task ids that no other case has."""
        return _TASK.sub(rf"\1\2~{number}", self.text)


def _edited(base: str, edits: list[tuple[int, int, list[str]]]) -> str:
    """The text of a base with lines replaced: from which, how many, by which."""
    lines = BASES[base].split("\n")
    for at, count, others in reversed(edits):
        lines[at : at + count] = others
    return "\n".join(lines)


def cases_of(theme: str) -> list[Case]:
    """The cases of a theme: those of its file, or those that break the rules of a contract."""
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
"""Files that the documents speak of."""


def write_files(root: Path, some: list[Case], *, own_ids: bool = False):
    """Write each case in a file into a directory of its own, which has its number, beside what they speak of."""
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
    """Write each other case into a session, the number of which is the name of the child."""
    children = []
    for number, case in enumerate(some):
        if case.mode != "file":
            text = case.text_of_its_own(number)
            both = (text, "I am done.") if case.mode == "asked" else ("Plant it.", text)
            children.append((f"{number:04}", *both))
    if children:
        write_session(home, workspace, children)
