"""The fields that a report shows of a task and that come from its documents."""

import json
import re
from collections.abc import Iterator
from typing import Any

_OF_TASK = (
    *("task_id", "parent_id", "parent_basis", "title", "agent", "state", "reported_state", "contract", "objective"),
    *("summary", "progress", "error_code", "error_message", "errors", "blockers", "limitations"),
)
_OF_RETURN = (
    *("next_steps", "review_reason", "model", "mode", "confidence", "retry_hint"),
    *("artifacts", "files_created", "files_modified"),
)


def without_number(value: Any, number: int) -> Any:
    """A result without the number of its case, so that it is the same wherever the case stands."""
    text = json.dumps(value, ensure_ascii=False).replace(f"~{number}", "")
    return json.loads(re.sub(rf"(?<![\d]){number:04}(?!\d)", "N", text))


def _attempts(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What each attempt has that its task does not show."""
    for attempt in task["attempts"]:
        known = {key: attempt[key] for key in ("number", "state", "session_id")}
        known |= {key: attempt["returned"][key] for key in _OF_RETURN} if attempt["returned"] else {}
        yield {key: value for key, value in known.items() if value not in (None, [], {})}


def shown_of(task: dict[str, Any], number: int) -> dict[str, Any]:
    """The fields of a task that come from its documents, as far as there is something in them."""
    shown = {key: task[key] for key in _OF_TASK}
    shown["mode_asked"], shown["retry"] = task["runtime"]["mode_asked"], task["retry"]["recommended"]
    shown["attempts"] = list(_attempts(task))
    shown["claims"] = [f"{one['kind']} {one['path']}: {one['verdict']}" for one in task["claims"]]
    shown["todos"] = [f"{one['line']} {one['status']} {one['phase']} {one['text']}" for one in task["todos"]]
    shown["findings"] = [f"{one['rule']} {one['line']}" for one in task["findings"]]
    found: dict[str, Any] = {key: value for key, value in shown.items() if value not in (None, [], {})}
    return without_number(found, number)  # type: ignore[no-any-return]
