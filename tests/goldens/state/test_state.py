"""What version 0.1 left of a user, made once by `make`, opens with nothing lost: ledger, keys, receipts, trust,
settings, history, what was put aside, statements, a worktree, and the hooks and servers that `init` installed."""

import fcntl
import json
import os
import shutil
import tarfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.goldens.transcript import Session, play
from tests.goldens.world import World

HERE, ROOT = Path(__file__).parent, Path("/var/tmp/agentwatch-state-of-0.1")
pytestmark = pytest.mark.skipif(
    os.path.realpath(ROOT) != str(ROOT), reason="ids follow from the real path, and /var/tmp is a link here"
)


@pytest.fixture
def world(monkeypatch):
    """The user, a minute later. One test at a time: what the ids follow from is the path."""
    with Path(f"{ROOT}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(ROOT, ignore_errors=True)
        ROOT.mkdir(mode=0o700)
        with tarfile.open(HERE / "state.tar.gz") as archive:
            for one in archive.getmembers():
                one.uid, one.gid, one.uname, one.gname = os.getuid(), os.getgid(), "", ""
                archive.extract(one, ROOT, filter="tar")
        made = World(ROOT, monkeypatch)
        made.now = datetime.fromisoformat((ROOT / "now").read_text()) + timedelta(minutes=1)
        yield made
        shutil.rmtree(ROOT)


@pytest.mark.parametrize("group", sorted(path.stem for path in HERE.glob("*.txt")))
def test_nothing_of_an_old_state_is_lost(world, golden, monkeypatch, group):
    golden.check(f"state/{group}.txt", play(Session(world, monkeypatch), HERE / f"{group}.txt"))


def test_old_hooks_and_servers_are_known_as_ours(world):
    shop = world.root / "shop"
    out = world.run("doctor", cwd=shop).out
    assert "`agentwatch init` mends it" in out
    world.run("init", "--agent", "opencode", "--write", cwd=shop)
    assert world.run("init", "--agent", "claude-code", "--write", cwd=shop).code == 0
    hooks = json.loads((shop / ".claude" / "settings.json").read_text())["hooks"]
    commands = [one["command"] for groups in hooks.values() for group in groups for one in group["hooks"]]
    # The old places are replaced, not added to.
    assert sum("agentwatch" in one for one in commands) == 3
    assert not any("/opt/" in one for one in commands)
    # Twice: the first one goes back to before the last writing.
    for agent in ("claude-code", "opencode", "codex") * 2:
        world.run("init", "--agent", agent, "--remove", "--write", cwd=shop)
    assert json.loads((shop / ".claude" / "settings.json").read_text())["hooks"] == {
        "PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "make format"}]}]
    }
    for name in ("CLAUDE.md", "AGENTS.md", ".mcp.json", "opencode.json"):
        assert not (shop / name).exists() or "agentwatch" not in (shop / name).read_text()
