"""Where this suite touches the product: the command line, in this process."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from agentwatch.cli import run


def tasks_of(workspace: Path) -> dict[str, dict[str, Any]]:
    """What `agentwatch tree PATH --json` prints of each task, by its id."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run(["tree", str(workspace), "--json"])
    return {task["task_id"]: task for task in json.loads(printed.getvalue())["tasks"]}
