"""DOC: rules that hold for any document, whatever contract it follows."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import WARNING, Rule, RuleMaker

_rule = RuleMaker(None)
_VALID = "JSON Validity"

# A table: a rule a paragraph.
# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    _rule("DOC001", _VALID, "not JSON", "This is not valid JSON: {reason}; write the document with a JSON serialiser.",
          why="A parent can only read a return that parses. JSON has no comments, no trailing commas, no single "
          "quotes.",
          right='{"status": "completed"}', wrong="{'status': 'completed',}"),
    _rule("DOC002", _VALID, "ends in the middle",
          "The document ends in the middle; write it to a temporary file and rename it, or write it again.",
          why="A writer that was stopped, or is still writing, leaves half a document. What it meant to say is "
          "unknown.",
          right='{"status": "completed"}', wrong='{"status": "compl'),
    _rule("DOC003", _VALID, "not UTF-8",
          "The text holds bytes that are not UTF-8, or a broken character; save it as UTF-8.",
          why="JSON and Markdown are exchanged as UTF-8. Other bytes are shown as U+FFFD, and what they were is lost.",
          right='"caf\u00e9" in UTF-8', wrong='"caf\ufffd"', severity=WARNING),
    _rule("DOC004", _VALID, "key twice", "The key {key} stands twice in one object; keep one of them.",
          why="Parsers differ in which of two equal keys they keep, so two readers of one return may disagree.",
          right='{"status": "failed"}', wrong='{"status": "failed", "status": "completed"}'),
    _rule("DOC005", _VALID, "number that JSON does not have",
          "NaN, Infinity and numbers too large for a float are not JSON; write a finite number or null.",
          why="Strict parsers refuse the whole document because of one such number.",
          right='"confidence_level": 0.9', wrong='"confidence_level": NaN'),
    _rule("DOC006", _VALID, "nested too deep",
          "Arrays and objects are nested deeper than {limit} levels; flatten the document.",
          why="No contract needs more than five levels, and deep nesting crashes parsers.",
          right='{"findings": {"a": [1]}}', wrong='{"findings": [[[[[[[[\u2026]]]]]]]]}'),
    _rule("DOC007", _VALID, "text around the object",
          "There is text behind the JSON object; the file must hold the object and nothing else.",
          why="One valid JSON object is what the parser expects. A second object or a remark behind it makes it fail.",
          right='{"status": "completed"}', wrong='{"status": "completed"} All done!'),
    _rule("DOC008", _VALID, "not an object",
          "The document is {value}, not a JSON object; write the contract's keys into one object.",
          why="Every JSON contract is one object with fixed keys.",
          right='{"status": "completed"}', wrong='[{"status": "completed"}]'),
    _rule("DOC009", _VALID, "too many entries",
          "{key} has more than {limit} entries; only the first {limit} are read, shorten the list.",
          why="A list this long is a dump, not a report: neither a parent nor a person reads it.",
          right='"artifacts": [\u2026a few\u2026]', wrong='"artifacts": [\u2026thousands\u2026]', severity=WARNING),
    _rule("DOC010", _VALID, "more findings", "{count} more findings are not listed; correct these first.",
          why="One mistake repeated a thousand times is one mistake: at most 20 findings of a rule, 100 of a file.",
          right="", wrong="", severity=WARNING),
    _rule("DOC011", "Enforcement and Prompting", "several returns in one text",
          "{count} returns stand in this text and say different things; this one, the last, is read: give one only.",
          why="A parent reads one return. A template, a draft or a correction beside it may be taken for the answer.",
          right="## Status\nstate: ERROR\n\u2026",
          wrong="Draft:\n## Status\nstate: SUCCESS\n\u2026\n\nCorrection:\n## Status\nstate: ERROR\n\u2026",
          severity=WARNING),
    _rule("DOC012", _VALID, "nothing of what the name says",
          "The name says that this is a {contract}, and there is nothing of one in it; write the contract's keys or "
          "headers, or name the file otherwise.",
          why="Whoever waits for it looks for a file of this name: silence would hide that it says nothing.",
          right='job.return.json: {"status": "completed", \u2026}', wrong='job.return.json: {"ok": true}'),
    _rule("DOC013", "A) new_task.message (string)", "no packet, or no checklist, under its name",
          "The name says that this is a {contract}, and there is none in it; put it in, or name the file otherwise.",
          why="A message should begin with the packet, and todos should be a checklist: else nothing is tracked.",
          right="job.todos.md: - [ ] Read the schema", wrong="job.todos.md: Remember the schema!", severity=WARNING),
    _rule("DOC014", "Minimum MVP Fields", "inside something else",
          "The document stands in a fence, in a wrapper or behind other text; begin the file with it.",
          why="It is understood here; a parser that reads from the top may find nothing.",
          right="## Status\nstate: SUCCESS\n\u2026", wrong="```markdown\n## Status\nstate: SUCCESS\n\u2026\n```",
          severity=WARNING),
    _rule("DOC015", _VALID, "two statuses that disagree",
          "`status` is {value} and `report_metadata.status` is {other}; keep the status of one contract.",
          why="A reader of the one contract sees success where a reader of the other sees failure: nobody can tell.",
          right='{"report_metadata": {"status": "failed", \u2026}, \u2026}',
          wrong='{"status": "failed", "report_metadata": {"status": "completed", \u2026}, \u2026}'),
)
# fmt: on
