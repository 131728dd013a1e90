"""The words that return-meta writes as a status, and what each means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts.findings import shown
from agentwatch.contracts.shapes import Outcome

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

STAGE_WORDS: Final = frozenset(
    {
        "in_progress",
        "researched",
        "planned",
        "implemented",
        "tasks_created",
        "report_written",
        "assembled",
        "plan_created",
        "plan_written",
        "summary_written",
        "synthesized",
        "revised",
    }
)
"""Words that only this dialect uses: one of them as a status tells it from a subagent-return."""

EVERYDAY: Final = frozenset({"in_progress", "planned", "implemented", "revised", "assembled"})
"""Those of them that any program may use."""

_MEANS: Final[dict[str, Outcome]] = {
    **dict.fromkeys(STAGE_WORDS, Outcome.COMPLETED),
    **dict.fromkeys(("done", "completed", "complete", "success", "succeeded", "finished", "ok"), Outcome.COMPLETED),
    **dict.fromkeys(("reviewed", "analyzed", "documented", "verified", "validated", "tested"), Outcome.COMPLETED),
    **dict.fromkeys(("in_progress", "running", "started", "working", "pending"), Outcome.WORKING),
    **dict.fromkeys(("researching", "planning", "implementing", "reviewing", "revising", "testing"), Outcome.WORKING),
    **dict.fromkeys(("partial", "partially_completed", "partially_done", "partially_implemented"), Outcome.PARTIAL),
    "blocked": Outcome.BLOCKED,
    **dict.fromkeys(("failed", "failure", "error"), Outcome.FAILED),
}
_PARTICIPLE: Final = re.compile(
    r"[a-z][a-z0-9_-]*(?:ed|_written|_created|_built|_done|_made|_sent|_found|_complete|_ready)\Z"
)
# Past participles that do not mean that anything succeeded.
_NOT_A_SUCCESS: Final = re.compile(
    r"(?:^|_)(?:un\w+|not_\w+|fail\w*|err\w*|block\w*|abort\w*|cancel\w*|interrupt\w*|timed_?out|time_?out|crash\w*"
    r"|stopped|skipped|reject\w*|abandon\w*|paused|deferred|halted|killed|terminated|denied|refused|expired|queued"
    r"|scheduled|delayed|suspended|stalled|exhausted|limited|dropped|lost|need\w*"
    r"|partial\w*|part|partly|mostly|nearly|almost|half|incomplet\w*|no|nothing|never|to_be)(?:_|\Z)"
)


def judge_status(top: dict[str, Any], judgement: Judgement) -> Outcome | None:
    """What the status of a return means, None where it means nothing known; every rule it breaks is noted."""
    if "status" not in top:
        judgement.add("MET001", ())
        return None
    status = top["status"]
    if not isinstance(status, str):
        judgement.add("MET002", ("status",), value=shown(status))
        return None
    meant = status.strip().casefold().replace(" ", "_").replace("-", "_")
    outcome = _MEANS.get(meant)
    if outcome is not None:
        if meant != status:
            judgement.add("MET005", ("status",), value=shown(status), meant=meant)
        return outcome
    if _PARTICIPLE.match(meant) and not _NOT_A_SUCCESS.search(meant):
        judgement.add("MET004", ("status",), value=shown(status))
        return Outcome.COMPLETED
    judgement.add("MET003", ("status",), value=shown(status))
    return None
