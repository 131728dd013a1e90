"""Claim a decision before you carry it out: exactly one of all who ask gets it."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from typing import Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, argument
from agentwatch.cli.wait import complain_of_refused, exit_code_of, settings_in_sight
from agentwatch.decisions.reader import Asker, Expired, Question, Verified, answer
from agentwatch.decisions.service import operator_name
from agentwatch.errors import ExitCode, UsageError
from agentwatch.text import clean, complain, say

ARGUMENTS: Final = (
    argument("decision", "DECISION", "its decision_id, 32 hex digits"),
    PATH,
    argument("--by", "NAME", "who you are, for the others (default: user and process)"),
)
EXIT_CODES: Final = (
    "exit codes: 0 it is yours to carry out, 6 somebody else has it, 3 there is no such decision (yet), 4 it has"
    " expired, 5 a fake was refused, 2 wrong usage, or nothing can be written"
)


def run(options: Namespace) -> int:
    """Claim a decision, and print who has it. Raises ReceiptError."""
    decision_id, by = options.decision, options.by
    if len(decision_id) != 32 or not set(decision_id) <= set("0123456789abcdef"):
        raise UsageError("a decision id has 32 hex digits; `agentwatch wait` prints it as decision_id")
    asker = Asker(workspace_at(options.path), settings_in_sight(), "claim")
    found = asker.reader.find(Question(None, decision_id=decision_id))
    if not isinstance(found, Verified):
        known = "has expired: the operator must decide again" if isinstance(found, Expired) else "is not there (yet)"
        complain(f"not claimed: a signed decision {decision_id} {known}")
        document = answer(found)
        complain_of_refused(document)
        return exit_code_of(document)
    made = asker.claim(found.record, by or f"{operator_name()}, process {os.getppid()}")
    owner = f"{clean(made.by, 200)} claimed it at {clean(made.at, 40)}"
    again = bool(by) and not made.won and made.by == by
    if again:
        # The same name is the same agent: it may have crashed after its claim.
        made = made._replace(won=True)
        complain(f"already yours: {owner}")
    say(json.dumps({"decision_id": decision_id, **made._asdict(), "again": again}))
    if not made.won:
        complain(f"not yours: {owner}; do not carry it out again")
    return ExitCode.DONE if made.won else ExitCode.TAKEN
