"""Claims in returns about files, checked against the disk and git: the verdicts of `tree --json`."""

import json
import os
import re
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.goldens.verdicts.claude import returned, tasks_of
from tests.homes import live_in
from tests.unit.evidence.repository import BEFORE, Repository

DATA = json.loads(Path(__file__).with_name("files_data.json").read_text(encoding="utf-8"))
RETURNED = 10_000
METADATA = {"agent_name": "a", "status": "completed", "verbosity_level": "summary", "confidence_level": 0.9}
SECTIONS = ("created", "modified", "deliverables", "evidence", "summary")


class Workspace(Repository):
    """A directory in which the steps of a case are done; `$OTHER` is a directory beside it."""

    def do(self, kind: str, *what: Any):
        if kind == "git":
            *words, at = what if isinstance(what[-1], int) else (*what, BEFORE)
            self.git(*(word.replace("$OTHER", str(self.root.parent / "other")) for word in words), at=at)
        else:
            getattr(self, kind)(*what)

    def remove(self, path: str):
        (self.root / path).unlink()

    def mkdir(self, path: str):
        (self.root / path).mkdir(parents=True)

    def move(self, path: str, to: str):
        (self.root / path).rename(self.root / to)

    def link(self, path: str, to: str):
        (self.root / path).symlink_to(to)

    def hard_link(self, path: str, to: str):
        os.link(self.root / to, self.root / path)

    def chmod(self, path: str, mode: int):
        (self.root / path).chmod(mode)

    def pipe(self, path: str):
        os.mkfifo(self.root / path)

    def socket(self, path: str):
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(self.root / path))

    def truncate(self, path: str, size: int):
        with (self.root / path).open("wb") as file:
            file.truncate(size)

    def task(self, task_id: str, task: Any):
        """Write the return of a task, and its handoff if there is one."""
        place = f"{task.get('directory', '')}{task_id}"
        if (more := task.get("handoff", {})) is not None:
            packet = {"task_id": task_id, "objective": "o", "evidence": [], "success_criteria": [], "risks": []}
            self.write(f"{place}.handoff.json", json.dumps(packet | more), task.get("handed_off_at", 0))
        if "pointers" in task:
            rows = [["what it is", pointer] for pointer in task["pointers"]]
            about = {"report_metadata": METADATA | {"task_id": task_id}, "blockers": []}
            report = about | {"findings": {"context_map": rows}}
            self.write(f"{place}.report.json", json.dumps(report), RETURNED)
        elif "artifacts" in task:
            artifacts = [{"type": "report", "path": path, "summary": "s"} for path in task["artifacts"]]
            about = {"session_id": "s", "agent_type": "a", "delegation_depth": 1, "delegation_path": ["a"]}
            document = {"status": "completed", "summary": "s", "artifacts": artifacts, "metadata": about}
            self.write(f"{place}/.return-meta.json".replace("/a/", "/"), json.dumps(document), RETURNED)
        else:
            text = returned(**{key: task[key] for key in SECTIONS if key in task})
            text = text.replace("## Status\n", f"## Status\ntask_id: {task_id}\n").replace("$WS", str(self.root))
            self.write(f"{place}.return.md", text.replace("SUCCESS", task.get("state", "SUCCESS")), RETURNED)


@pytest.fixture(scope="module")
def found():
    """Return the claims as printed, by case and task, with `$WS` for the workspace."""
    # The path is short because that of a socket is limited.
    base = Path(tempfile.mkdtemp(prefix="w")).resolve()
    found: dict[str, dict[str, Any]] = {}
    now = time.time
    home = base / "home"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        live_in(home, patch)
        # The clock is ahead so that no file has a time in the future.
        patch.setattr(time, "time", lambda: now() + 200_000)
        under_git = Workspace(base / "git", home)
        under_git.git("init", "-q", "-b", "main")
        under_git.write("tracked.md", "one\n", -1_000)
        under_git.commit(-1_000)
        for number, (name, case) in enumerate(DATA.items()):
            made = Workspace(base / str(number) / "ws", home)
            if case.get("git", True):
                shutil.copytree(under_git.root, made.root, dirs_exist_ok=True)
            for step in case["steps"]:
                made.do(*step)
            for task_id, task in case["tasks"].items():
                made.task(task_id, task)
            for step in case.get("then", ()):
                made.do(*step)
            text = json.dumps(tasks_of(made.root)).replace(str(made.root), "$WS").replace(str(made.root.parent), "$UP")
            text = re.sub(r"\bcommit [0-9a-f]{10}\b", "commit $ID", text)
            found[name] = {task_id: claims(task) for task_id, task in json.loads(text).items()}
    shutil.rmtree(base)
    return found


def claims(task: Any) -> list[dict[str, Any]]:
    keys = ("kind", "path", "verdict", "detail", "file")
    return [{key: claim.get(key) for key in keys} for claim in task["claims"] if claim["kind"] != "criterion"]


def test_claims_of_files(found, golden):
    golden.check("verdicts/files.json", found)


@pytest.mark.parametrize("verdict", ["verified", "contradicted"])
def test_no_doubtful_claim_of_a_file_is_decided(found, verdict):
    """This holds independently of the golden file."""
    wrong = [
        (name, task_id, claim)
        for name, case in DATA.items()
        for task_id, task in case["tasks"].items()
        for claim in found[name].get(task_id, ())
        if claim["path"] in task.get(f"never_{verdict}", ()) and claim["verdict"] == verdict
    ]
    assert not wrong
