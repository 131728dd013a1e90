"""Every rule with one way to break it, alone, in a document that is otherwise valid."""

import json
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.unit.contracts.documents import (
    FAILURE,
    META,
    PACKET,
    PARTIAL,
    REPORT,
    RETURN,
    SUBAGENT,
    SUBAGENT_FAILED,
    TODOS,
    Change,
    put,
    swap,
    text_of,
)


@dataclass(frozen=True)
class Case:
    """`change` breaks `rule` in `base`. The finding names line `at`, the line that holds the text `at`, or else the
    first changed line. `embedded` means that the text was returned by a subagent, and is no file."""

    rule: str
    name: str
    base: Any
    change: Change
    at: str | int | None = None
    embedded: bool = False

    @property
    def text(self) -> str:
        return text_of(self.change(self.base))

    @property
    def valid_text(self) -> str:
        return text_of(self.base)

    @property
    def line(self) -> int:
        if isinstance(self.at, int):
            return self.at
        lines = self.text.split("\n")
        if self.at is not None:
            return next(number for number, line in enumerate(lines, 1) if self.at in line)
        before = self.valid_text.split("\n")
        return next(number for number, (one, other) in enumerate(zip_longest(before, lines), 1) if one != other)


def _json(name: str, base: Any, *rows: tuple[Any, ...]) -> list[Case]:
    """Return the cases of rows: a rule, a place and its new value (`...` removes it) or a change, and the line."""
    return [
        Case(rule, name, base, place if callable(place) else put(place, value), *at) for rule, place, value, *at in rows
    ]


def _text(name: str, base: str, *rows: tuple[Any, ...]) -> list[Case]:
    """Return the cases of rows: a rule, a part of the text, the text in its place, and the line."""
    return [Case(rule, name, base, swap(old, new), *at) for rule, old, new, *at in rows]


_ELSEWHERE = r"""file:a.md $HOME/a.md $env:HOME/a.md ~/a.md https://host.test/a.md C:\a.md C:a.md
a/../../b.md \\host\a.md %TEMP%\a.md"""
_PACKET_TEXT = text_of(PACKET)
_NOT_FINISHED = """hmm interrupted timed_out not_ready nearly_complete token_limit_exceeded changes_requested corrupted
reverted deadlocked human_required approval_required escalated postponed truncated quota_reached submitted compromised
aborted_and_documented timed_out_and_recorded unresolved_documented rejected_reviewed errors_generated
not_yet_created completed_with_errors unwritten created_nothing"""
_LONG = "Nine rows are filled. " * 23
_STAGE = put("status", "planned")({**META, "metadata": {**META["metadata"], "agent_type": "planner"}})


_MORE = '"next_steps": "Buy the seeds."'
DOCUMENT = [
    *_text(
        "north.return.json",
        text_of(SUBAGENT),
        ("DOC001", '",\n  "summary"', '"\n  "summary"', '"summary"'),
        ("DOC001", '"completed"', "'completed'"),
        ("DOC001", 'seeds."\n}', 'seeds.",\n}', 31),
        ("DOC002", text_of(SUBAGENT)[text_of(SUBAGENT).index("plans/north") :], "", '"path"'),
        ("DOC004", '"phase_count": 2', '"phase_count": 2,\n    "phase_count": 3'),
        ("DOC005", "12.5", "1e400"),
        *(("DOC006", _MORE, '"more": ' + "[" * deep + "]" * deep) for deep in (101, 9_000)),
        ("DOC007", 'seeds."\n}\n', 'seeds."\n}\n\nAll done!\n'),
        ("DOC008", text_of(SUBAGENT), f"[\n{text_of(SUBAGENT)}]\n"),
    ),
    *_text("north.handoff.json", _PACKET_TEXT, ("DOC002", '_aa11"\n}\n', '_aa11"\n', '"session_id"')),
    *_text("north.report.json", text_of(REPORT), ("DOC005", '"token_usage": 1200', '"tokens": NaN')),
    *_json("north.return.json", REPORT, ("DOC015", "status", "failed", 31), ("DOC015", "status", "Error", 31)),
    *_json("x.json", {**SUBAGENT, "report_metadata": {}}, ("DOC015", "report_metadata.status", "failed", '"status"')),
    *_json(
        "north.handoff.json",
        PACKET,
        ("DOC009", "notes", ["x"] * 1_001, '"notes"'),
        ("HOF061", lambda packet: {"handoff_packet": packet}, None),
    ),
    Case("DOC012", "north.return.md", RETURN, lambda _: "The bed is planned.\n", 1),
    Case("DOC013", "north.todos.md", TODOS, lambda _: "Look at the map.\n", 1),
    Case("DOC013", "north.handoff.md", f"```json\n{_PACKET_TEXT}```\n", lambda _: "Plan the bed.\n", 1),
    Case("DOC011", "", RETURN, lambda text: f"{PARTIAL}\n{text}", 21, embedded=True),
    Case("DOC014", "north.return.md", RETURN, lambda text: f"Here it is:\n\n```markdown\n{text}```\n", 1),
    Case("DOC014", "north.handoff.md", _PACKET_TEXT, lambda text: f"Do this.\n\n```json\n{text}```\n", 1),
    Case("DOC014", "north.handoff.md", _PACKET_TEXT, lambda text: f"<task>\n```json\n{text}```\n</task>\n", 1),
]

HANDOFF = _json(
    "north.handoff.json",
    PACKET,
    ("HOF002", "task_id", None),
    ("HOF006", "objective", "Plan the bed. Then buy seeds."),
    ("HOF012", "evidence.1", "seeds/stock.csv"),
    ("HOF013", "evidence.1.path", ..., 11),
    *(
        ("HOF015", "evidence.0.path", value)
        for value in ("/home/ada/maps/north.md", "../maps/north.md", "~/maps/north.md", "C:\\maps\\north.md")
    ),
    ("HOF017", "evidence.0.purpose", None),
    ("HOF019", "evidence.0.required", 1),
    ("HOF022", "success_criteria.1", 9),
    ("HOF022", "success_criteria.1", " "),
    ("HOF034", "risks.0.risk", False),
    ("HOF041", "handoff_schema", "composability.handoff_packet.v9"),
    ("HOF043", "constraints.0", None),
    ("HOF047", "notes.0", 1.5),
    ("HOF071", "attempt", 0),
    ("HOF071", "attempt", True),
)
HANDOFF.append(
    Case(
        "HOF060", "north.handoff.md", f"```json\n{_PACKET_TEXT}```\n\n{TODOS}", lambda _: _PACKET_TEXT + "\n" + TODOS, 1
    )
)

CHECKLIST = _text(
    "north.todos.md",
    TODOS,
    ("TOD001", "- [ ] PLAN: Count the seeds", "- PLAN: Count the seeds"),
    ("TOD009", "- [ ] PLAN: Count the seeds", "Count the seeds"),
    *(("TOD001", "- [ ] PLAN: Count the seeds", f"{mark} Count the seeds") for mark in ("[ ]", "-[ ]", "[x]")),
    ("TOD009", "Draw the rows\n", "Draw the rows\n  and measure them\n"),
    ("TOD009", "- [ ] VERIFY", "  - with a tape\n- [ ] VERIFY"),
    ("TOD009", TODOS, f"<todos>\n{TODOS}"),
    ("TOD002", "- [ ] PLAN: Count", "- [~] PLAN: Count"),
    ("TOD002", "- [ ] PLAN: Count", "- [] PLAN: Count"),
    ("TOD003", "- [x]", "- [X]"),
    ("TOD004", "- [ ] PLAN: Count the seeds", "- [ ]"),
    ("TOD005", "Count the seeds", "Count the seeds - [ ] Buy more"),
    ("TOD006", "- [ ] VERIFY", "- [x] VERIFY"),
    ("TOD006", "- [ ] VERIFY: Check the shade", "- [x] VERIFY: Check it\n- [x] Go home"),
    ("TOD007", "- [ ] PLAN: Count", "  - [ ] PLAN: Count"),
    ("TOD008", "- [ ] PLAN: Count", "* [ ] PLAN: Count"),
    ("TOD008", "- [ ] PLAN: Count", "3. [ ] PLAN: Count"),
)

STATUS = [
    *_text(
        "north.return.md",
        RETURN,
        ("RET001", "## Status\nstate: SUCCESS\nsummary: Planned the north bed with nine rows.\n\n", ""),
        ("RET001", "## Status\n", ""),
        ("RET001", "## Status\n", "## Outcome\n"),
        ("RET002", "## Deliverables\n- plans/north.md \u2014 the plan\n- plans/seeds.csv - seeds to buy\n\n", "", 1),
        ("RET003", "## Evidence\n- maps/north.md\n- rows counted: 9\n\n", "", 1),
        ("RET004", RETURN[RETURN.index("## Runtime") :], "", 1),
        ("RET005", "## Status", "### Status"),
        ("RET005", "## Runtime Attestation", "# Runtime Attestation"),
        ("RET006", "## Runtime Attestation", "## Runtime attestation"),
        ("RET006", "## Status", "## STATUS"),
        ("RET007", "## Status", "## Status:"),
        ("RET007", "## Evidence", "## **Evidence**"),
        ("RET008", "## Runtime", "## Evidence\n- maps/south.md\n\n## Runtime"),
        ("RET010", "state: SUCCESS\n", "", "## Status"),
        ("RET011", "state: SUCCESS", "state: DONE"),
        ("RET011", "state: SUCCESS", "state:"),
        ("RET012", "state: SUCCESS", "state: Success"),
        ("RET013", "summary: Planned the north bed with nine rows.\n", "", "## Status"),
        ("RET014", "summary: Planned the north bed with nine rows.", "summary:"),
        ("RET015", "nine rows.", "nine rows. It took long."),
        ("RET016", "state: SUCCESS", "- state: SUCCESS"),
        ("RET016", "runtime_mode_reported", "* runtime_mode_reported"),
        ("RET016", "files_created:", "- files_created:"),
        *(
            ("RET017", "state: SUCCESS", value)
            for value in ("**state**: SUCCESS", "**state:** SUCCESS", "**state: SUCCESS**")
        ),
        ("RET017", "files_modified:", "`files_modified`:"),
        ("RET018", "nine rows.", "nine rows; retry_hint: none"),
        ("RET019", "nine rows.", "nine rows\nand a path.", "and a path"),
        ("RET017", "state: SUCCESS", "state: **SUCCESS**"),
        ("RET023", "nine rows.", "nine rows.\nTask id: garden"),
        ("RET020", "state: SUCCESS", "state: SUCCESS\nstate: ERROR"),
        ("RET020", "files_created:", "runtime_mode_reported: code\nfiles_created:"),
        ("RET021", "state: SUCCESS", "State: SUCCESS"),
        ("RET021", "runtime_mode_reported", "Runtime Mode Reported"),
        ("RET021", "runtime_mode_reported", "Runtime-Mode-Reported"),
        ("RET022", "nine rows.", "nine rows.\nattempt: second"),
        ("RET022", "nine rows.", "nine rows.\nattempt: 0"),
        ("RET030", "- plans/north.md \u2014 the plan\n- plans/seeds.csv - seeds to buy\n", "", "## Deliverables"),
        ("RET024", "- plans/north.md \u2014", "plans/north.md \u2014"),
        ("RET031", "- plans/north.md \u2014", "There are two files.\n- plans/north.md \u2014"),
        *(
            ("RET032", "- plans/north.md \u2014 the plan", value)
            for value in ("- plans/north.md", "- `plans/north.md`", "- plans/north.md:")
        ),
        ("RET033", "- plans/north.md \u2014 the plan", "- The new plan \u2014 all rows"),
        ("RET040", "- maps/north.md\n- rows counted: 9\n", "", "## Evidence"),
        ("RET041", "- maps/north.md", "I read maps/north.md."),
        ("RET050", "runtime_model_reported: acme/grower-2\n", "", "## Runtime"),
        ("RET051", "runtime_model_reported: acme/grower-2", "runtime_model_reported:"),
        ("RET052", "runtime_mode_reported: planner\n", "", "## Runtime"),
        ("RET053", "runtime_mode_reported: planner", "runtime_mode_reported: "),
        ("RET054", "files_created:\n- plans/north.md\n", "", "## Runtime"),
        ("RET055", "files_modified:\n- (none)\n", "", "## Runtime"),
        ("RET056", "files_created:\n- plans/north.md", "files_created: plans/north.md"),
        ("RET056", "files_modified:\n- (none)", "files_modified: (none)"),
        ("RET057", "files_modified:\n- (none)\n", "files_modified:\n", "files_modified"),
        *(
            ("RET058", "files_created:\n- plans/north.md", value)
            for value in (
                "files_created:\n- plans/north.md, plans/seeds.csv",
                "files_created:\n- plans/north.md \u2014 the plan of it",
                "files_created:\n- `plans/north.md` (new)",
                "files_created:\n- plans/north.md and a.md",
            )
        ),
        ("RET059", "files_created:\n- plans/north.md", "files_created:\n- /home/ada/north.md"),
        ("RET059", "files_modified:\n- (none)", "files_modified:\n- plans/../../other/a.md"),
        *(
            ("RET060", "files_created:\n- plans/north.md", value)
            for value in (
                "files_created:\n- `plans/north.md`",
                "files_created:\n- [the plan](plans/north.md)",
                'files_created:\n- "plans/north.md"',
                "files_created:\n* plans/north.md",
            )
        ),
        ("RET060", "files_modified:\n- (none)", "files_modified:\n- none"),
        ("RET060", "files_modified:\n- (none)", "files_modified:\n- No files were changed."),
        *(("RET059", "files_modified:\n- (none)", f"files_modified:\n- {path}") for path in _ELSEWHERE.split()),
        ("RET024", "files_created:\n- plans/north.md", "files_created:\nplans/north.md"),
        ("RET024", "files_created:\n- plans/north.md", "files_created:\nI made plans/north.md."),
        ("RET024", "files_modified:\n- (none)", "files_modified:\n(none)"),
        ("RET061", "files_created:", "I created one file.\nfiles_created:"),
        ("RET061", "runtime_model_reported", "- plans/south.md\nruntime_model_reported"),
        ("RET061", "files_created:\n- plans/north.md", "files_created:\n- plans/north.md\n    - plans/south.md"),
        *(
            ("ERR007", "nine rows.", value)
            for value in (
                "nine rows.\nerror_code: E_ODD",
                "nine rows.\nretry_recommended: yes",
                "nine rows.\nretry_hint: none",
            )
        ),
    ),
    *_text(
        "north.return.md",
        PARTIAL,
        ("RET062", "limitations:\n- Rows five to nine are open.", "limitations: Rows five to nine are open."),
        ("RET063", "limitations:\n- Rows five to nine are open.\n", "", "## Runtime"),
        ("RET063", "- Rows five to nine are open.", "- None.", "## Runtime"),
        ("ERR004", "half of the north bed.", "half of the north bed.\nretry_recommended: yes", 1),
        ("ERR002", "half of the north bed.", "half of the north bed.\nretry_recommended: perhaps"),
    ),
    *_text(
        "north.return.md",
        FAILURE,
        ("ERR001", "retry_recommended: yes\n", "", "## Status"),
        ("ERR002", "retry_recommended: yes", "retry_recommended: maybe"),
        ("ERR003", "retry_recommended: yes", "retry_recommended: YES"),
        ("ERR004", "retry_hint: Pass the map as text.\n", "", "## Status"),
        ("ERR004", "retry_hint: Pass the map as text.", "retry_hint:"),
        ("ERR005", "error_code: E_NO_MAP\n", "", "## Status"),
        ("ERR005", "error_code: E_NO_MAP", "error_code:"),
        ("ERR006", "E_NO_MAP", "there was no map"),
    ),
]

SUBAGENT_RETURN = [
    *_json(
        "north.return.json",
        SUBAGENT,
        ("SUB002", "status", None),
        ("SUB007", "summary", _LONG),
        ("SUB009", "summary", f"Planned. {'x' * 391}."),
        ("SUB008", "summary", "Done."),
        ("SUB008", "summary", "One. Two. Three. Four. Five. Six."),
        ("SUB005", "summary", " \n"),
        ("SUB012", "artifacts", []),
        ("SUB013", "artifacts.1", "reports/soil.md"),
        ("SUB018", "artifacts.1.path", ..., 10),
        ("SUB020", "artifacts.1.path", "/srv/reports/soil.md"),
        ("SUB018", "artifacts.1.path", ""),
        ("SUB021", "artifacts.1.summary", " "),
        ("SUB041", "metadata.delegation_path.2", ""),
        ("SUB037", "metadata.delegation_depth", True),
        ("SUB037", "metadata.delegation_depth", 1.5),
        ("SUB041", "metadata.delegation_path.2", 7),
        ("SUB042", "metadata.delegation_depth", 3),
        ("SUB044", "metadata.phase_count", 2.5),
        ("SUB047", "metadata.delegation_path", []),
        ("SUB050", "status", "partial", 1),
        ("SUB062", "attempt", 0, '"attempt"'),
        ("SUB062", "metadata.attempt", "second", '"attempt"'),
    ),
    *_json(
        "north.return.json",
        SUBAGENT_FAILED,
        ("SUB050", "errors", ..., 1),
        ("SUB050", "errors", []),
        ("SUB059", "errors.0.recommendation", "\t"),
        ("SUB056", "errors.0.message", None),
    ),
]

RETURN_META = [
    *_json(
        "garden/.return-meta.json",
        META,
        ("MET002", "status", None),
        *(("MET003", "status", word) for word in _NOT_FINISHED.split()),
        *(
            ("MET004", "status", word)
            for word in ("translated", "notes_written", "unit tests-Written", "request_ready", "survey_complete")
        ),
        ("MET005", "status", "Researched"),
        ("MET018", "artifacts.0.path", "/srv/almanac.md"),
        ("MET016", "artifacts.0.path", " "),
        ("MET025", "metadata.delegation_path", "orchestrator/planner"),
        ("MET026", lambda meta: put("session_id", 7)(put("metadata.session_id", ...)(meta)), None, '"session_id"'),
        ("MET025", "metadata.delegation_path.1", 3),
        ("MET031", "errors.0.recoverable", "yes"),
        ("MET031", "errors.0.message", 4),
        ("MET037", "metadata.attempt", 1.5, '"attempt"'),
    )
]

REPORT_CONTRACT = _json(
    "north.report.json",
    REPORT,
    ("REP004", "report_metadata.agent_name", None),
    ("REP018", "report_metadata.confidence_level", True),
    ("REP019", "report_metadata.confidence_level", 80),
    ("REP020", "report_metadata.confidence_level", 0.49),
    ("REP020", "report_metadata.confidence_level", 0),
    ("REP022", "report_metadata.execution_time_seconds", 4.5),
    ("REP013", "report_metadata.verbosity_level", None),
    ("REP024", "report_metadata.status", "failed", '"error_message"'),
    (
        "REP024",
        lambda one: put("report_metadata.error_message", " ")(put("report_metadata.status", "failed")(one)),
        None,
        '"error_message"',
    ),
    ("REP033", "findings.context_map.1", ["One."], 18),
    ("REP033", "findings.context_map.1", "One."),
    ("REP033", "findings.context_map.1.0", None, 18),
    *(
        ("REP035", "findings.context_map.1.1", value)
        for value in (
            "src/soil.py, line 10",
            4,
            "repo:///etc/soil:1-2",
            "repo://src/soil.py:20-10",
            "repo://src/soil.py:0-10",
        )
    ),
    ("REP046", "report_metadata.status", "blocked", '"blockers"'),
    (
        "REP046",
        lambda report: put("blockers", [""])(put("report_metadata.status", "blocked")(report)),
        None,
        '"blockers"',
    ),
    ("REP046", lambda report: put("blockers", ...)(put("report_metadata.status", "blocked")(report)), None, 1),
    ("REP047", "blockers", ["No spade."]),
    ("REP048", "recommendations", ..., 1),
    ("REP049", "blockers", ..., 1),
    ("REP051", "report_metadata.attempt", True, '"attempt"'),
)

TABLES = json.loads((Path(__file__).parent / "rows.json").read_text())
"""The contracts in JSON: an example, and each way to break one of its fields as rule, kind, path, line and value."""


_WRITTEN = [*DOCUMENT, *HANDOFF, *CHECKLIST, *STATUS, *SUBAGENT_RETURN, *RETURN_META, *REPORT_CONTRACT]
_IN_TABLES = [
    Case(rule, table["name"], table["example"], put(path, *(wrong or [...])), at)
    for table in TABLES
    for rule, _, path, at, *wrong in table["rows"]
]
CASES = [*_WRITTEN, *_IN_TABLES]
