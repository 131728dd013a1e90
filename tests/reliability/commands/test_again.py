"""A command that is called again says how things are now, and begins no process beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.reliability.commands.stage import Stage
from tests.unit.agents.documents import packet, returned

FEW_TASKS = 1_100

COUNTS_PROCESSES = (
    "import sys\n"
    "begun = []\n"
    "names = ('os.fork', 'os.forkpty', 'os.posix_spawn', 'subprocess.Popen')\n"
    "sys.addaudithook(lambda name, _: begun.append(name) if name in names else None)\n"
    "sys.argv = ['agentwatch', *sys.argv[1:]]\n"
    "from agentwatch.__main__ import main\n"
    "try: main()\n"
    "finally: print(begun, file=sys.stderr)\n"
)


def tree(stage: Stage) -> dict[str, object]:
    with stage.start("tree", "--json", stage.workspace) as begun:
        found: dict[str, object] = json.loads(begun.communicate()[0])
    return found


def test_a_commit_that_was_under_way_is_seen_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "here")
    git = ["git", "-C", str(stage.workspace), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    (stage.workspace / "lib.py").write_text("x = 1\n")
    subprocess.run([*git, "add", "-A"], check=True)
    (stage.workspace / ".git" / "index.lock").write_bytes(b"")
    before = [tree(stage) for _ in range(3)]
    (stage.workspace / ".git" / "index.lock").unlink()
    subprocess.run([*git, "commit", "-q", "-m", "work"], check=True)
    fresh = Stage(tmp_path / "fresh")
    fresh.environment |= {"XDG_STATE_HOME": str(tmp_path / "none")}
    after = tree(stage)
    told = fresh.run("tree", "--json", stage.workspace)
    assert json.loads(told.out)["tasks"] == after["tasks"]
    assert before[0]["tasks"] == before[2]["tasks"]


def test_many_files_are_read_by_no_other_process(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "here")
    for number in range(FEW_TASKS):
        (stage.workspace / f"{number}.handoff.json").write_text(packet(f"t{number}"))
        (stage.workspace / f"{number}.return.md").write_text(returned("SUCCESS"))
    for command in (["tree"], ["check"], ["wait", "t7", "--timeout=0"]):
        ran = subprocess.run(
            [sys.executable, "-c", COUNTS_PROCESSES, *command, str(stage.workspace)],
            env={**os.environ, **stage.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stderr.splitlines()[-1] == "[]", ran.stderr
    assert not Path(stage.environment["XDG_STATE_HOME"]).exists()
