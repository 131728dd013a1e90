"""RET and ERR: rules of the return-format, and of the keys of error-propagation in its Status."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract

_error, _warning = makers(Contract.RETURN_FORMAT)
_MINIMUM = "Minimum MVP Fields"
_STATUS = "## Status"
_DELIVERABLES = "## Deliverables"
_EVIDENCE = "## Evidence"
_ATTESTATION = "## Runtime Attestation"
_PROPAGATION = "Error Return Format (MVP)"
_HEADERS: Final = (
    ("RET001", "Status", "The parent finds the state below this header and nowhere else."),
    ("RET002", "Deliverables", "The parent learns here what there is to pick up."),
    ("RET003", "Evidence", "A result without its evidence cannot be checked."),
    ("RET004", "Runtime Attestation", "The attestation says who did the work and which files to look for."),
)

RULES: Final[tuple[Rule, ...]] = (
    *(
        _error(rule_id, _MINIMUM, f"`## {header}` missing")
        .says(f"The header `## {header}` is missing; add the section, spelled exactly so.")
        .because(why)
        .example(f"## {header}", f"(no `## {header}`)")
        for rule_id, header, why in _HEADERS
    ),
    _warning("RET005", _MINIMUM, "header of another level")
    .says("The header `{header}` has level {level}; write it with two `#`.")
    .example("## Status", "### Status"),
    _warning("RET006", _MINIMUM, "header in another letter case")
    .says("The header is {value}; write it exactly as `{header}`.")
    .example("## Runtime Attestation", "## Runtime attestation"),
    _error("RET007", _MINIMUM, "header spelled otherwise")
    .says("The header is {value}; write it exactly as `{header}`.")
    .because("A parser looks for the exact spelling and takes the section for missing.")
    .example("## Status", "## Status:"),
    _warning("RET008", _MINIMUM, "header twice")
    .says("The header `{header}` stands here a second time; keep one section.")
    .because("Both are read here as one section; elsewhere a parser reads one of the two, and nobody knows which.")
    .example("## Status", "## Status\n…\n## Status"),
    _warning("RET009", _MINIMUM, "text before the first header")
    .says("There is text before the first header; begin the return with `## Status`.")
    .because("The return is the four sections; a parser that reads from the top stumbles over anything before them.")
    .example("## Status\nstate: SUCCESS", "Here is my report:\n\n## Status\nstate: SUCCESS"),
    _warning("RET015", _STATUS, "`summary` is more than one sentence")
    .says("`summary` has {count} sentences; write one and move the rest to the other sections.")
    .because("The contract asks for one sentence: it is a line in a list of many returns.")
    .example("summary: Built the API; all tests pass.", "summary: Built the API. All tests pass."),
    _warning("RET016", _MINIMUM, "key in a bullet")
    .says("The key `{key}` stands in a bullet; write `{key}: …` without `-`.")
    .example("state: SUCCESS", "- state: SUCCESS"),
    _warning("RET017", _MINIMUM, "key in bold")
    .says("The key `{key}` is decorated; write `{key}: …` without markup.")
    .example("state: SUCCESS", "**state**: SUCCESS"),
    _error("RET018", _STATUS, "several keys on one line")
    .says("The key `{key}` stands on the line of another key; give it a line of its own.")
    .because("Keys stand one per line; the second key would be read as part of the first value.")
    .example("state: SUCCESS\nsummary: Built the API.", "state: SUCCESS, summary: Built the API."),
    _warning("RET019", _STATUS, "line is not `key: value`")
    .says("This line of `## Status` is not `key: value` and is left aside; keep each value on the line of its key.")
    .because("Keys stand one per line as `key: value`; a parser drops or misreads any other line.")
    .example("summary: Built the API.", "summary: Built\nthe API."),
    _error("RET020", _MINIMUM, "key twice")
    .says("The key `{key}` stands here a second time, with another value; keep one of them.")
    .because("A parser reads one of the two, and nobody knows which.")
    .example("state: ERROR", "state: ERROR\nstate: SUCCESS"),
    _error("RET021", _MINIMUM, "key spelled otherwise")
    .says("The key is {value}; write it exactly as `{key}:`.")
    .because("Parsers look for the exact key and take it for missing.")
    .example("state: SUCCESS", "State: SUCCESS"),
    _warning("RET022", _STATUS, "`attempt` is not a positive integer")
    .says("`attempt` is {value}; agentwatch understands it only as an integer from 1 on.")
    .because("`attempt` is not of the contract; agentwatch counts retries by it.")
    .example("attempt: 2", "attempt: second"),
    _warning("RET023", _MINIMUM, "optional key spelled otherwise")
    .says("The key is {value}; write it exactly as `{key}:`.")
    .example("error_code: E_TOOL_FAILURE", "Error code: E_TOOL_FAILURE"),
    _error("RET024", _MINIMUM, "entry without its bullet")
    .says("This entry has no bullet: {value}; write it as `- path`.")
    .because("The section is a bullet list of files: a parser drops any other line.")
    .example("files_created:\n- src/api.py", "files_created:\nsrc/api.py"),
    _error("RET030", _DELIVERABLES, "no deliverables listed")
    .says("`## Deliverables` has no bullet; list the files, or write `- (none)`.")
    .because("An empty section leaves open whether there are no files or the list was forgotten.")
    .example("- (none)", "## Deliverables\n\n## Evidence"),
    _warning("RET031", _DELIVERABLES, "deliverable is no bullet")
    .says("This line of `## Deliverables` is no deliverable and is left aside; write `- path — description`.")
    .because("The section is a bullet list of files: a parser drops any other line.")
    .example("- src/api.py — the API", "I wrote src/api.py."),
    _error("RET032", _DELIVERABLES, "deliverable without a description")
    .says("This deliverable has no description; write `- path — description`.")
    .because("Each file has a path and a one-line description, so that nobody has to open it to know what it is.")
    .example("- src/api.py — the API", "- src/api.py"),
    _error("RET033", _DELIVERABLES, "deliverable without a path")
    .says("This deliverable starts with {value}, which is no path; write `- path — description`.")
    .because("A deliverable is a file; without its path it cannot be found.")
    .example("- src/api.py — the API", "- The new API — all endpoints"),
    _warning("RET034", _DELIVERABLES, "description of several lines")
    .says("This line continues the deliverable above; keep its description on one line.")
    .because("The contract asks for a one-line description: a parser reads line by line.")
    .example("- src/api.py — the API and its tests", "- src/api.py — the API\n  and its tests"),
    _error("RET040", _EVIDENCE, "no evidence listed")
    .says("`## Evidence` has no bullet; list what the result rests on, or write `- (none)`.")
    .because("An empty section leaves open whether there is no evidence or the list was forgotten.")
    .example("- pytest: 41 passed", "## Evidence\n\n## Runtime Attestation"),
    _warning("RET041", _EVIDENCE, "evidence is no bullet")
    .says("This line of `## Evidence` is no bullet and is left aside; write `- pointer`.")
    .because("The section is a bullet list of pointers: a parser drops any other line.")
    .example("- pytest: 41 passed", "All tests pass."),
    _error("RET056", _ATTESTATION, "paths on the line of their key")
    .says("`{key}` has its value on its own line; put each path on a line of its own below, as `- path`.")
    .because("It is a list key followed by one path per bullet line; a parser finds no list here.")
    .example("files_created:\n- src/api.py", "files_created: src/api.py, src/db.py"),
    _warning("RET057", _ATTESTATION, "list without a line")
    .says("`{key}` has no line below it; write `- (none)`.")
    .because("A list without a line leaves open whether there are no files or the list was cut off.")
    .example("files_modified:\n- (none)", "files_modified:"),
    _error("RET058", _ATTESTATION, "more than a path")
    .says("This line of `{key}` holds more than one path: {value}; write one path and nothing else.")
    .because("There is one path per bullet line; anything beside it is read as part of the path.")
    .example("- src/api.py", "- src/api.py, src/db.py"),
    _error("RET059", _ATTESTATION, "attested path not repo-relative")
    .says("The path {value} in `{key}` is not repo-relative: {reason}; write it from the root of the repository.")
    .because("Paths in the attestation must be repo-relative: they are checked in the workspace.")
    .example("- src/api.py", "- /home/me/shop/src/api.py"),
    _warning("RET060", _ATTESTATION, "path written otherwise")
    .says("This line of `{key}` is not plain `- path`; remove the markup, or write `- (none)` for an empty list.")
    .example("- src/api.py", "* `src/api.py`"),
    _warning("RET061", _ATTESTATION, "line is neither key nor list")
    .says("This line of `## Runtime Attestation` is neither `key: value` nor `- path` below a list; it is left aside.")
    .because("The section is read by a parser: it drops or misreads any other line.")
    .example("files_created:\n- src/api.py", "I created src/api.py."),
    _error("RET062", _ATTESTATION, "`limitations` is no list")
    .says("`limitations` has its value on its own line; put each limitation on a line of its own below, as `- …`.")
    .because("`limitations` is one bullet list.")
    .example("limitations:\n- No tests.", "limitations: No tests."),
    _warning("RET063", "Guidance by state", "partial without limitations")
    .says("The state is `PARTIAL`, but the attestation has no `limitations`; list what is left to do.")
    .because("A partial return includes the completed subset plus explicit limitations and next-step guidance.")
    .example("limitations:\n- The docs are not written.", "state: PARTIAL (and no `limitations`)"),
    _warning("RET064", "Guidance by state", "partial without a next step")
    .says("The state is `PARTIAL`, but nothing says what comes next; add a `retry_hint`, or say it in `limitations`.")
    .because("A partial return includes the completed subset plus explicit limitations and next-step guidance.")
    .example("limitations:\n- No docs: write them after the review.", "limitations:\n- No docs."),
    _error("ERR001", _PROPAGATION, "`retry_recommended` missing")
    .says("The state is `ERROR`, but `retry_recommended` is missing; add `retry_recommended: yes` or `no`.")
    .because("It is required when the state is ERROR: the parent decides retry, abort or escalate by it.")
    .example("state: ERROR\nretry_recommended: no", "state: ERROR"),
    _warning("ERR004", _PROPAGATION, "`retry_hint` missing")
    .says("A retry is recommended, but `retry_hint` is missing; say what to change before it.")
    .because("A retry that changes nothing fails again; the hint is what the amended handoff is made of.")
    .example("retry_recommended: yes\nretry_hint: Pass the schema path.", "retry_recommended: yes"),
    _warning("ERR005", _PROPAGATION, "`error_code` missing")
    .says("The state is `ERROR`, but `error_code` is missing; add a stable identifier such as `E_TOOL_FAILURE`.")
    .because("A machine routes by the code; a summary cannot be routed by.")
    .example("state: ERROR\nerror_code: E_TOOL_FAILURE", "state: ERROR"),
    _warning("ERR006", _PROPAGATION, "`error_code` is no identifier")
    .says("`error_code` is {value}; write a stable identifier without spaces, such as `E_TOOL_FAILURE`.")
    .because("A machine routes by the code, so it must be the same each time.")
    .example("error_code: E_TOOL_FAILURE", "error_code: the tool failed"),
    _warning("ERR007", "Guidance by state", "error keys on success")
    .says("The state is `SUCCESS`, but `{key}` speaks of an error; leave it out or report another state.")
    .because("A successful return omits error-oriented keys, so that nobody retries what is done.")
    .example("state: SUCCESS", "state: SUCCESS\nerror_code: E_TOOL_FAILURE"),
)
