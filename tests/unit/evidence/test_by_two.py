"""Two processes check the returns of one look: what is found, noted and kept is the same, whatever becomes of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.agents.documents import packet, returned

TASKS = 12
_PROGRAM = """\
import json, os, sys
from pathlib import Path
from agentwatch.kept import looks
looks.install()
from agentwatch.composition import scanned
from agentwatch.config import Settings
from agentwatch.evidence import by_two, one_look
from agentwatch.forked import Forked
from agentwatch.kept.noted import Looks

workspace, begun, saved = Path(sys.argv[1]), [], []
by_two.MANY, by_two.has_two_cores = 4, lambda: True

class Counted(Forked):
    becomes = "whole"

    def __init__(self, work):
        super().__init__(work)
        begun.append(self)
        if self.becomes == "killed":
            self.kill()

    def told(self, seconds):
        data = super().told(seconds)
        return data[:-9] if self.becomes == "cut off" else data

def save(look):
    asked, new = look._claims.told()
    saved.append((sorted(map(repr, asked)), sorted(map(repr, new.items()))))

by_two.Forked, one_look.OneLook.save = Counted, save
one_look.Index.load = lambda index, wanted: setattr(index, "_key", b"known")

def look():
    noted = Looks()
    looks.begin(noted)
    tree = scanned(workspace, Settings(sessions=False)).tree
    looks.begin(None)
    claims = {task_id: [ascii(one) for one in task.claims] for task_id, task in tree.tasks.items()}
    asked = sorted({repr(one) for one in noted.questions})
    signs = [sorted(map(repr, known.items())) for known in (noted.themselves, noted.followed)]
    return [claims, asked, signs, sorted(noted.variables), noted.spoilt, saved.pop()]

forks, by_two.may_fork = by_two.may_fork, lambda: False
look()  # the first one looks for modules and programs, too
found = {"alone": look()}
by_two.may_fork = forks
for becomes in ("whole", "killed", "cut off"):
    Counted.becomes = becomes
    found[becomes] = look()
print(json.dumps([found, len(begun), all(one.poll() for one in begun)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no copy of a process can be made")
@pytest.mark.parametrize("is_repository", [False, True], ids=["plain", "git"])
def test_two_find_note_and_keep_what_one_does(tmp_path: Path, is_repository: bool) -> None:
    workspace = tmp_path / "work"
    for number in range(TASKS):
        place = workspace / f"t{number}"
        place.mkdir(parents=True)
        (place / "handoff.json").write_text(packet(f"t{number}"))
        made = f"t{number}/return.md" if number % 2 else f"t{number}/Return.md"
        (place / "return.md").write_text(returned("SUCCESS", f"{number}").replace("(none)", made))
    (workspace / "docs").mkdir()
    (workspace / "docs" / "api.md").write_text("# API\n")
    if is_repository:
        author = ("-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-q", "-m", "work")):
            subprocess.run(["git", *words], cwd=workspace, check=True)
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(workspace)], env=home, capture_output=True, text=True, check=True
    )
    found, begun, have_ended = json.loads(ran.stdout)
    assert (begun, have_ended) == (3, True)
    claims, asked, *_, spoilt, (_, new) = found["alone"]
    assert len(claims) == len(new) == TASKS
    assert all(claims.values())
    assert bool(asked) is is_repository
    assert not spoilt
    for becomes in ("whole", "killed", "cut off"):
        assert found[becomes] == found["alone"], becomes
