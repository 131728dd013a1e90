"""Every rule with one way to break it, alone, in a document that is valid otherwise."""

import json
from dataclasses import dataclass
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
    drop,
    put,
    swap,
    text_of,
)

ROOT = "{"
"""The line of the document's object."""


@dataclass(frozen=True)
class Case:
    """`rule` is what `change` breaks in `base`; `at` is a part of the line that the finding must name.

    `embedded`: the text is what a subagent returned, and no file.
    """

    rule: str
    name: str
    base: Any
    change: Change
    at: str | int
    embedded: bool = False

    @property
    def text(self) -> str:
        changed = self.change(self.base)
        return changed if isinstance(changed, str) else text_of(changed)

    @property
    def valid_text(self) -> str:
        return self.base if isinstance(self.base, str) else text_of(self.base)

    @property
    def id(self) -> str:
        return f"{self.rule}-{self.at}"


def _json(name: str, base: Any, *rows: tuple[str, Change, str | int]) -> list[Case]:
    return [Case(rule, name, base, change, at) for rule, change, at in rows]


def _text(name: str, base: str, *rows: tuple[str, str, str, str | int]) -> list[Case]:
    return [Case(rule, name, base, swap(old, new), at) for rule, old, new, at in rows]


_ELSEWHERE = (
    *("file:a.md", "$HOME/a.md", "$env:HOME/a.md", "~/a.md", "https://host.test/a.md", "C:\\a.md", "C:a.md"),
    *("a/../../b.md", "\\\\host\\a.md", "%TEMP%\\a.md"),
)


def _todos(*rows: tuple[str, str, str, str | int]) -> list[Case]:
    return _text("north.todos.md", TODOS, *rows)


_PACKET_TEXT = text_of(PACKET)
NOT_FINISHED = (
    *("token_limit_exceeded", "changes_requested", "corrupted", "reverted", "deadlocked", "human_required"),
    *("approval_required", "escalated", "postponed", "truncated", "quota_reached", "submitted", "compromised"),
    *("aborted_and_documented", "timed_out_and_recorded", "unresolved_documented", "rejected_reviewed"),
    *("errors_generated", "not_yet_created", "completed_with_errors", "unwritten", "created_nothing"),
)
_LONG = "Nine rows are filled. " * 23
_STAGE = put("status", "planned")({**META, "metadata": {**META["metadata"], "agent_type": "planner"}})


_MORE = '"next_steps": "Buy the seeds."'
DOCUMENT = [
    *_text(
        "north.return.json",
        text_of(SUBAGENT),
        ("DOC001", '",\n  "summary"', '"\n  "summary"', '"summary"'),
        ("DOC001", '"completed"', "'completed'", "'completed'"),
        ("DOC001", 'seeds."\n}', 'seeds.",\n}', 31),
        ("DOC002", text_of(SUBAGENT)[text_of(SUBAGENT).index("plans/north") :], "", '"path"'),
        ("DOC004", '"phase_count": 2', '"phase_count": 2,\n    "phase_count": 3', '"phase_count": 3'),
        ("DOC005", "12.5", "1e400", "1e400"),
        *(("DOC006", _MORE, '"more": ' + "[" * deep + "]" * deep, '"more"') for deep in (101, 9_000)),
        ("DOC007", 'seeds."\n}\n', 'seeds."\n}\n\nAll done!\n', "All done"),
        ("DOC008", text_of(SUBAGENT), f"[\n{text_of(SUBAGENT)}]\n", 1),
    ),
    *_text("north.handoff.json", _PACKET_TEXT, ("DOC002", '_aa11"\n}\n', '_aa11"\n', '"session_id"')),
    *_text("north.report.json", text_of(REPORT), ("DOC005", '"token_usage": 1200', '"tokens": NaN', "NaN")),
    *_json(
        "north.return.json", REPORT, ("DOC015", put("status", "failed"), 31), ("DOC015", put("status", "Error"), 31)
    ),
    *_json(
        "x.json", {**SUBAGENT, "report_metadata": {}}, ("DOC015", put("report_metadata.status", "failed"), '"status"')
    ),
    *_json(
        "north.handoff.json",
        PACKET,
        ("DOC009", put("notes", ["x"] * 1_001), '"notes"'),
        ("HOF061", lambda packet: {"handoff_packet": packet}, "handoff_packet"),
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
    ("HOF002", put("task_id", None), '"task_id"'),
    ("HOF006", put("objective", "Plan the bed. Then buy seeds."), '"objective"'),
    ("HOF012", put("evidence.1", "seeds/stock.csv"), '"seeds/stock.csv"'),
    ("HOF013", drop("evidence.1.path"), 11),
    ("HOF015", put("evidence.0.path", "/home/ada/maps/north.md"), "/home/ada"),
    ("HOF015", put("evidence.0.path", "../maps/north.md"), "../maps"),
    ("HOF015", put("evidence.0.path", "~/maps/north.md"), "~/maps"),
    ("HOF015", put("evidence.0.path", "C:\\maps\\north.md"), "C:"),
    ("HOF017", put("evidence.0.purpose", None), '"purpose": null'),
    ("HOF019", put("evidence.0.required", 1), '"required": 1'),
    ("HOF022", put("success_criteria.1", 9), "    9"),
    ("HOF022", put("success_criteria.1", " "), '    " "'),
    ("HOF034", put("risks.0.risk", False), '"risk": false'),
    ("HOF041", put("handoff_schema", "composability.handoff_packet.v9"), '"handoff_schema"'),
    ("HOF043", put("constraints.0", None), "    null"),
    ("HOF047", put("notes.0", 1.5), "    1.5"),
    ("HOF071", put("attempt", 0), '"attempt"'),
    ("HOF071", put("attempt", True), '"attempt"'),
)
HANDOFF.append(
    Case(
        "HOF060", "north.handoff.md", f"```json\n{_PACKET_TEXT}```\n\n{TODOS}", lambda _: _PACKET_TEXT + "\n" + TODOS, 1
    )
)

CHECKLIST = _todos(
    ("TOD001", "- [ ] PLAN: Count the seeds", "- PLAN: Count the seeds", "Count"),
    ("TOD009", "- [ ] PLAN: Count the seeds", "Count the seeds", "Count"),
    *(("TOD001", "- [ ] PLAN: Count the seeds", f"{mark} Count the seeds", "Count") for mark in ("[ ]", "-[ ]", "[x]")),
    ("TOD009", "Draw the rows\n", "Draw the rows\n  and measure them\n", "measure"),
    ("TOD009", "- [ ] VERIFY", "  - with a tape\n- [ ] VERIFY", "tape"),
    ("TOD009", TODOS, f"<todos>\n{TODOS}", "<todos>"),
    ("TOD002", "- [ ] PLAN: Count", "- [~] PLAN: Count", "Count"),
    ("TOD002", "- [ ] PLAN: Count", "- [] PLAN: Count", "Count"),
    ("TOD003", "- [x]", "- [X]", "READ"),
    ("TOD004", "- [ ] PLAN: Count the seeds", "- [ ]", 5),
    ("TOD005", "Count the seeds", "Count the seeds - [ ] Buy more", "Count"),
    ("TOD006", "- [ ] VERIFY", "- [x] VERIFY", "VERIFY"),
    ("TOD006", "- [ ] VERIFY: Check the shade", "- [x] VERIFY: Check it\n- [x] Go home", "VERIFY"),
    ("TOD007", "- [ ] PLAN: Count", "  - [ ] PLAN: Count", "Count"),
    ("TOD008", "- [ ] PLAN: Count", "* [ ] PLAN: Count", "Count"),
    ("TOD008", "- [ ] PLAN: Count", "3. [ ] PLAN: Count", "Count"),
)

STATUS = [
    *_text(
        "north.return.md",
        RETURN,
        ("RET001", "## Status\nstate: SUCCESS\nsummary: Planned the north bed with nine rows.\n\n", "", 1),
        ("RET001", "## Status\n", "", 1),
        ("RET001", "## Status\n", "## Outcome\n", 1),
        ("RET002", "## Deliverables\n- plans/north.md \u2014 the plan\n- plans/seeds.csv - seeds to buy\n\n", "", 1),
        ("RET003", "## Evidence\n- maps/north.md\n- rows counted: 9\n\n", "", 1),
        ("RET004", RETURN[RETURN.index("## Runtime") :], "", 1),
        ("RET005", "## Status", "### Status", 1),
        ("RET005", "## Runtime Attestation", "# Runtime Attestation", "Attestation"),
        ("RET006", "## Runtime Attestation", "## Runtime attestation", "attestation"),
        ("RET006", "## Status", "## STATUS", 1),
        ("RET007", "## Status", "## Status:", 1),
        ("RET007", "## Evidence", "## **Evidence**", "Evidence"),
        ("RET008", "## Runtime", "## Evidence\n- maps/south.md\n\n## Runtime", 13),
        ("RET010", "state: SUCCESS\n", "", "## Status"),
        ("RET011", "state: SUCCESS", "state: DONE", "state"),
        ("RET011", "state: SUCCESS", "state:", "state"),
        ("RET012", "state: SUCCESS", "state: Success", "state"),
        ("RET013", "summary: Planned the north bed with nine rows.\n", "", "## Status"),
        ("RET014", "summary: Planned the north bed with nine rows.", "summary:", "summary"),
        ("RET015", "nine rows.", "nine rows. It took long.", "summary"),
        ("RET016", "state: SUCCESS", "- state: SUCCESS", "state"),
        ("RET016", "runtime_mode_reported", "* runtime_mode_reported", "runtime_mode_"),
        ("RET016", "files_created:", "- files_created:", "files_created"),
        ("RET017", "state: SUCCESS", "**state**: SUCCESS", "state"),
        ("RET017", "state: SUCCESS", "**state:** SUCCESS", "state"),
        ("RET017", "state: SUCCESS", "**state: SUCCESS**", "state"),
        ("RET017", "files_modified:", "`files_modified`:", "files_modified"),
        ("RET018", "nine rows.", "nine rows; retry_hint: none", "summary"),
        ("RET019", "nine rows.", "nine rows\nand a path.", "and a path"),
        ("RET017", "state: SUCCESS", "state: **SUCCESS**", "state"),
        ("RET023", "nine rows.", "nine rows.\nTask id: garden", "Task id"),
        ("RET020", "state: SUCCESS", "state: SUCCESS\nstate: ERROR", "state: ERROR"),
        ("RET020", "files_created:", "runtime_mode_reported: code\nfiles_created:", "reported: code"),
        ("RET021", "state: SUCCESS", "State: SUCCESS", "State"),
        ("RET021", "runtime_mode_reported", "Runtime Mode Reported", "Runtime Mode"),
        ("RET021", "runtime_mode_reported", "Runtime-Mode-Reported", "Runtime-Mode"),
        ("RET022", "nine rows.", "nine rows.\nattempt: second", "attempt"),
        ("RET022", "nine rows.", "nine rows.\nattempt: 0", "attempt"),
        ("RET030", "- plans/north.md \u2014 the plan\n- plans/seeds.csv - seeds to buy\n", "", "## Deliverables"),
        ("RET024", "- plans/north.md \u2014", "plans/north.md \u2014", "the plan"),
        ("RET031", "- plans/north.md \u2014", "There are two files.\n- plans/north.md \u2014", "There are"),
        ("RET032", "- plans/north.md \u2014 the plan", "- plans/north.md", "- plans/north.md"),
        ("RET032", "- plans/north.md \u2014 the plan", "- `plans/north.md`", "`plans/north.md`"),
        ("RET032", "- plans/north.md \u2014 the plan", "- plans/north.md:", "north.md:"),
        ("RET033", "- plans/north.md \u2014 the plan", "- The new plan \u2014 all rows", "The new plan"),
        ("RET040", "- maps/north.md\n- rows counted: 9\n", "", "## Evidence"),
        ("RET041", "- maps/north.md", "I read maps/north.md.", "I read"),
        ("RET050", "runtime_model_reported: acme/grower-2\n", "", "## Runtime"),
        ("RET051", "runtime_model_reported: acme/grower-2", "runtime_model_reported:", "runtime_model"),
        ("RET052", "runtime_mode_reported: planner\n", "", "## Runtime"),
        ("RET053", "runtime_mode_reported: planner", "runtime_mode_reported: ", "runtime_mode_"),
        ("RET054", "files_created:\n- plans/north.md\n", "", "## Runtime"),
        ("RET055", "files_modified:\n- (none)\n", "", "## Runtime"),
        ("RET056", "files_created:\n- plans/north.md", "files_created: plans/north.md", "files_created"),
        ("RET056", "files_modified:\n- (none)", "files_modified: (none)", "files_modified"),
        ("RET057", "files_modified:\n- (none)\n", "files_modified:\n", "files_modified"),
        (
            "RET058",
            "files_created:\n- plans/north.md",
            "files_created:\n- plans/north.md, plans/seeds.csv",
            "north.md, plans",
        ),
        (
            "RET058",
            "files_created:\n- plans/north.md",
            "files_created:\n- plans/north.md \u2014 the plan of it",
            "the plan of it",
        ),
        ("RET058", "files_created:\n- plans/north.md", "files_created:\n- `plans/north.md` (new)", "(new)"),
        ("RET058", "files_created:\n- plans/north.md", "files_created:\n- plans/north.md and a.md", "and a"),
        ("RET059", "files_created:\n- plans/north.md", "files_created:\n- /home/ada/north.md", "/home/ada"),
        ("RET059", "files_modified:\n- (none)", "files_modified:\n- plans/../../other/a.md", "other/a.md"),
        ("RET060", "files_created:\n- plans/north.md", "files_created:\n- `plans/north.md`", "`plans/north.md`"),
        ("RET060", "files_created:\n- plans/north.md", "files_created:\n- [the plan](plans/north.md)", "the plan]"),
        ("RET060", "files_created:\n- plans/north.md", 'files_created:\n- "plans/north.md"', '"plans'),
        ("RET060", "files_created:\n- plans/north.md", "files_created:\n* plans/north.md", "* plans"),
        ("RET060", "files_modified:\n- (none)", "files_modified:\n- none", "- none"),
        ("RET060", "files_modified:\n- (none)", "files_modified:\n- No files were changed.", "- No files"),
        *(("RET059", "files_modified:\n- (none)", f"files_modified:\n- {path}", path) for path in _ELSEWHERE),
        ("RET024", "files_created:\n- plans/north.md", "files_created:\nplans/north.md", 17),
        ("RET024", "files_created:\n- plans/north.md", "files_created:\nI made plans/north.md.", 17),
        ("RET024", "files_modified:\n- (none)", "files_modified:\n(none)", "(none)"),
        ("RET061", "files_created:", "I created one file.\nfiles_created:", "I created"),
        ("RET061", "runtime_model_reported", "- plans/south.md\nruntime_model_reported", "south"),
        (
            "RET061",
            "files_created:\n- plans/north.md",
            "files_created:\n- plans/north.md\n    - plans/south.md",
            "south",
        ),
        ("ERR007", "nine rows.", "nine rows.\nerror_code: E_ODD", "error_code"),
        ("ERR007", "nine rows.", "nine rows.\nretry_recommended: yes", "retry_recommended"),
        ("ERR007", "nine rows.", "nine rows.\nretry_hint: none", "retry_hint"),
    ),
    *_text(
        "north.return.md",
        PARTIAL,
        (
            "RET062",
            "limitations:\n- Rows five to nine are open.",
            "limitations: Rows five to nine are open.",
            "limitations",
        ),
        ("RET063", "limitations:\n- Rows five to nine are open.\n", "", "## Runtime"),
        ("RET063", "- Rows five to nine are open.", "- None.", "## Runtime"),
        ("ERR004", "half of the north bed.", "half of the north bed.\nretry_recommended: yes", 1),
        ("ERR002", "half of the north bed.", "half of the north bed.\nretry_recommended: perhaps", "retry_rec"),
    ),
    *_text(
        "north.return.md",
        FAILURE,
        ("ERR001", "retry_recommended: yes\n", "", "## Status"),
        ("ERR002", "retry_recommended: yes", "retry_recommended: maybe", "retry_recommended"),
        ("ERR003", "retry_recommended: yes", "retry_recommended: YES", "retry_recommended"),
        ("ERR004", "retry_hint: Pass the map as text.\n", "", "## Status"),
        ("ERR004", "retry_hint: Pass the map as text.", "retry_hint:", "retry_hint"),
        ("ERR005", "error_code: E_NO_MAP\n", "", "## Status"),
        ("ERR005", "error_code: E_NO_MAP", "error_code:", "error_code"),
        ("ERR006", "E_NO_MAP", "there was no map", "error_code"),
    ),
]

SUBAGENT_RETURN = [
    *_json(
        "north.return.json",
        SUBAGENT,
        ("SUB002", put("status", None), '"status"'),
        ("SUB007", put("summary", _LONG), '"summary"'),
        ("SUB009", put("summary", f"Planned. {'x' * 391}."), '"summary"'),
        ("SUB008", put("summary", "Done."), '"summary"'),
        ("SUB008", put("summary", "One. Two. Three. Four. Five. Six."), '"summary"'),
        ("SUB005", put("summary", " \n"), '"summary"'),
        ("SUB012", put("artifacts", []), '"artifacts"'),
        ("SUB013", put("artifacts.1", "reports/soil.md"), '"reports/soil.md"'),
        ("SUB018", drop("artifacts.1.path"), 10),
        ("SUB020", put("artifacts.1.path", "/srv/reports/soil.md"), "/srv"),
        ("SUB018", put("artifacts.1.path", ""), '"path": ""'),
        ("SUB021", put("artifacts.1.summary", " "), '"summary": " "'),
        ("SUB041", put("metadata.delegation_path.2", ""), '      ""'),
        ("SUB037", put("metadata.delegation_depth", True), '"delegation_depth"'),
        ("SUB037", put("metadata.delegation_depth", 1.5), '"delegation_depth"'),
        ("SUB041", put("metadata.delegation_path.2", 7), "      7"),
        ("SUB042", put("metadata.delegation_depth", 3), '"delegation_depth"'),
        ("SUB044", put("metadata.phase_count", 2.5), '"phase_count"'),
        ("SUB047", put("metadata.delegation_path", []), '"delegation_path"'),
        ("SUB050", put("status", "partial"), ROOT),
        ("SUB062", put("attempt", 0), '"attempt"'),
        ("SUB062", put("metadata.attempt", "second"), '"attempt"'),
    ),
    *_json(
        "north.return.json",
        SUBAGENT_FAILED,
        ("SUB050", drop("errors"), ROOT),
        ("SUB050", put("errors", []), '"errors"'),
        ("SUB059", put("errors.0.recommendation", "\t"), '"recommendation"'),
        ("SUB056", put("errors.0.message", None), '"message"'),
    ),
]

RETURN_META = [
    *_json(
        "garden/.return-meta.json",
        META,
        ("MET002", put("status", None), '"status"'),
        ("MET003", put("status", "hmm"), '"status"'),
        ("MET003", put("status", "interrupted"), '"status"'),
        ("MET003", put("status", "timed_out"), '"status"'),
        ("MET003", put("status", "not_ready"), '"status"'),
        ("MET003", put("status", "nearly_complete"), '"status"'),
        *(("MET003", put("status", word), f'"{word}"') for word in NOT_FINISHED),
        ("MET004", put("status", "translated"), '"status"'),
        ("MET004", put("status", "notes_written"), '"status"'),
        ("MET004", put("status", "unit tests-Written"), '"status"'),
        ("MET004", put("status", "request_ready"), '"status"'),
        ("MET004", put("status", "survey_complete"), '"status"'),
        ("MET005", put("status", "Researched"), '"status"'),
        ("MET018", put("artifacts.0.path", "/srv/almanac.md"), "/srv"),
        ("MET016", put("artifacts.0.path", " "), '"path": " "'),
        ("MET025", put("metadata.delegation_path", "orchestrator/planner"), '"delegation_path"'),
        ("MET026", lambda meta: put("session_id", 7)(drop("metadata.session_id")(meta)), '"session_id"'),
        ("MET025", put("metadata.delegation_path.1", 3), "      3"),
        ("MET031", put("errors.0.recoverable", "yes"), '"recoverable"'),
        ("MET031", put("errors.0.message", 4), '"message"'),
        ("MET037", put("metadata.attempt", 1.5), '"attempt"'),
    )
]

REPORT_CONTRACT = _json(
    "north.report.json",
    REPORT,
    ("REP004", put("report_metadata.agent_name", None), '"agent_name"'),
    ("REP018", put("report_metadata.confidence_level", True), '"confidence_level"'),
    ("REP019", put("report_metadata.confidence_level", 80), '"confidence_level"'),
    ("REP020", put("report_metadata.confidence_level", 0.49), '"confidence_level"'),
    ("REP020", put("report_metadata.confidence_level", 0), '"confidence_level"'),
    ("REP022", put("report_metadata.execution_time_seconds", 4.5), '"execution_time_seconds"'),
    ("REP013", put("report_metadata.verbosity_level", None), '"verbosity_level"'),
    ("REP024", put("report_metadata.status", "failed"), '"error_message"'),
    (
        "REP024",
        lambda one: put("report_metadata.error_message", " ")(put("report_metadata.status", "failed")(one)),
        '"error_message"',
    ),
    ("REP033", put("findings.context_map.1", ["One."]), 18),
    ("REP033", put("findings.context_map.1", "One."), '"One."'),
    ("REP033", put("findings.context_map.1.0", None), 18),
    ("REP035", put("findings.context_map.1.1", "src/soil.py, line 10"), "line 10"),
    ("REP035", put("findings.context_map.1.1", 4), "        4"),
    ("REP035", put("findings.context_map.1.1", "repo:///etc/soil:1-2"), "/etc/soil"),
    ("REP035", put("findings.context_map.1.1", "repo://src/soil.py:20-10"), "20-10"),
    ("REP035", put("findings.context_map.1.1", "repo://src/soil.py:0-10"), "0-10"),
    ("REP046", put("report_metadata.status", "blocked"), '"blockers"'),
    ("REP046", lambda report: put("blockers", [""])(put("report_metadata.status", "blocked")(report)), '"blockers"'),
    ("REP046", lambda report: drop("blockers")(put("report_metadata.status", "blocked")(report)), ROOT),
    ("REP047", put("blockers", ["No spade."]), '"blockers"'),
    ("REP048", drop("recommendations"), ROOT),
    ("REP049", drop("blockers"), ROOT),
    ("REP051", put("report_metadata.attempt", True), '"attempt"'),
)

TABLES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "rows.json").read_text("utf-8"))
"""The contracts in JSON: an example, and each way to break one of its fields as rule, kind, path, line and value."""


def _of_table(table: dict[str, Any]) -> list[Case]:
    name, base = table["name"], table["example"]
    return [
        Case(rule, name, base, drop(path) if kind == "missing" else put(path, *wrong), at)
        for rule, kind, path, at, *wrong in table["rows"]
    ]


_WRITTEN = [*DOCUMENT, *HANDOFF, *CHECKLIST, *STATUS, *SUBAGENT_RETURN, *RETURN_META, *REPORT_CONTRACT]
CASES = [*_WRITTEN, *(case for table in TABLES for case in _of_table(table))]
