"""The report as JSON: the account itself, schema version 1."""

from __future__ import annotations

import json
from dataclasses import asdict

from agentwatch.report.shapes import FOR_PEOPLE, Account
from agentwatch.view.times import iso


def document(account: Account) -> str:
    """The account, indented and in ASCII: foreign characters reach the reader as escapes, a terminal never.

    Times are ISO 8601 in UTC, null where they are not known. Texts are as the documents have them.
    """
    return json.dumps(asdict(account, dict_factory=_written), indent=2) + "\n"


def _written(pairs: list[tuple[str, object]]) -> dict[str, object]:
    return {
        key: iso(value) if isinstance(value, float) and (key in ("at", "since") or key.endswith("_at")) else value
        for key, value in pairs
        if key not in FOR_PEOPLE
    }
