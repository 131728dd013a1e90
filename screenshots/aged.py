"""A repository with two years of agents' work behind it, and a session of Claude Code that is at work in it now."""

from __future__ import annotations

import json
import os
import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tests.unit.claude_code.building import Log, Store, meta, returned

DAY: Final = 86_400
_WORK: Final = (
    "vat_rules", "stock_feed", "login_flow", "search_index", "price_rounding", "mail_templates", "checkout_retry",
    "image_sizes", "gift_cards", "returns_desk", "order_export", "rate_limits",
)  # fmt: skip
_STEPS: Final = ("researcher", "planner", "coder", "reviewer")


def aged(root: Path) -> tuple[Path, dict[str, str]]:
    """Build it below a directory. Returns the workspace, and the environment in which it is looked at."""
    store = Store(root)
    store.workspace = root / "shop"
    _history(store.workspace)
    (store.workspace / "README.md").write_text("# Shop\n", "utf-8")
    _session(store)
    store.save()
    # Of now, whatever the records say: nobody has opened it before.
    own = {name: str(root / name) for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    return store.workspace, own | {"CLAUDE_CONFIG_DIR": str(store.home)}


def _history(workspace: Path) -> None:
    chance = random.Random(7)
    for number in range(60):
        days = 0.4 if number == 0 else 1.2 if number < 3 else 5 + number * 11
        name = f"{number + 11:03d}_{_WORK[number % len(_WORK)]}"
        for step, agent in enumerate(_STEPS[: 2 + number % 3]):
            then = time.time() - days * DAY + step * 900
            ends = ["researched", "planned", "implemented", *(["partial", "failed"] if days > 5 else [])]
            document = {
                "status": chance.choice(ends),
                "summary": f"{name.partition('_')[2].replace('_', ' ').capitalize()}: the part of the {agent}.",
                "artifacts": [],
                "completed_at": datetime.fromtimestamp(then, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "metadata": {
                    "session_id": f"sess_{int(then)}_{step}c0de",
                    "agent_type": agent,
                    "delegation_path": ["orchestrator", f"skill-{agent}", agent],
                },
            }
            path = workspace / "specs" / name / f".return-meta-{agent}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(document), "utf-8")
            os.utime(path, (then, then))


def _packet(task_id: str, objective: str) -> str:
    handed = {
        "handoff_schema": "composability.handoff_packet.v1",
        "task_id": task_id,
        "objective": objective,
        "constraints": ["Change nothing outside src/export"],
        "evidence": [{"path": "src/export/invoice.py", "purpose": "what is exported", "required": False}],
        "success_criteria": ["The tests of the export pass"],
        "risks": [],
    }
    return f"```json\n{json.dumps(handed, indent=1)}\n```\n\nAnswer in the agreed format."


def _report(state: str = "SUCCESS", summary: str = "") -> str:
    made = returned(["README.md"], summary, state=state)
    return made.replace("runtime_model_reported: m", "runtime_model_reported: claude-test-1")


def _session(store: Store) -> None:
    store.time = datetime.now(UTC) - timedelta(seconds=400)  # it begins in the past
    main = store.session()
    main.asked("Ship the invoice export: schema, API and docs.")
    main.said("I split this into three parts and hand them out.", None)
    schema = _handed(store, main, "a1", "export.schema", "Describe the export format")
    schema.used("Read", "r1", file_path="src/export/invoice.py")
    schema.got("r1", "class Invoice:\n    number: str\n    total: Decimal")
    _later(store, 60)
    schema.said(_report(summary="The format stands in schema.json."))
    main.returned("call_a1", "a1", _report(summary="The format stands in schema.json."))
    docs = _handed(store, main, "a3", "export.docs", "Document the export for shop owners")
    docs.used("Bash", "b3", command="make docs")
    docs.got("b3", "sphinx-build: command not found", error=True)
    _later(store, 40)
    failed = _report("ERROR", "The docs cannot be built: sphinx is missing.").replace(
        "retry_recommended: no", "retry_recommended: yes\nretry_hint: install sphinx from docs/requirements.txt"
    )
    docs.said(failed)
    main.returned("call_a3", "a3", failed)
    api = _handed(store, main, "a2", "export.api", "Build GET /invoices/export")
    api.said("First I look at how invoices are loaded.", None)
    api.used("Read", "r2", file_path="src/export/invoice.py")
    api.got("r2", "class Invoice:\n    number: str\n    total: Decimal")
    _later(store, 30)
    _edited(api, "e2", "src/export/api.py", "pass", "return rows")
    api.used("Bash", "b2", command="pytest -q tests/export")
    api.got("b2", "F..\n1 failed, 2 passed in 0.41s", error=True)
    _later(store, 20)
    api.said("The totals come as floats. They have to stay decimals up to the last line.", None)
    _edited(api, "e4", "src/export/rows.py", "float(total)", "Decimal(total)")
    behind = (datetime.now(UTC) - store.time).total_seconds() - 12
    _later(store, max(behind, 0))
    api.used("Bash", "b4", command="pytest -q tests/export")


def _edited(log: Log, call: str, path: str, old: str, new: str) -> None:
    log.used("Edit", call, file_path=path, old_string=old, new_string=new)
    log.got(call, f"The file {path} has been updated.")


def _handed(store: Store, main: Log, agent: str, task_id: str, objective: str) -> Log:
    prompt = _packet(task_id, objective)
    main.delegated(f"call_{agent}", prompt, description=objective)
    child = store.agent(agent, meta(f"call_{agent}", description=objective))
    child.asked(prompt)
    return child


def _later(store: Store, seconds: float) -> None:
    store.time += timedelta(seconds=seconds)
