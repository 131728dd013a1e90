"""Makes `state.tar.gz`: what this version leaves of a user, below a fixed path that its ids follow from.

Run once, `python -m tests.goldens.state.make`: the files have to stay those that an old version wrote.
"""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentwatch.shell import launcher
from tests.goldens.ledger.dsse import ATTACKER, KIM
from tests.goldens.world import World

ROOT, HERE = Path("/var/tmp/agentwatch-state-of-0.1"), Path(__file__).parent
SETTINGS = """\
stale_after = 3600
modes = { debug = "finds the cause of a failure" }
views = { mine = "is:needs-you" }
hosts = { build1 = "ssh://kim@build1/srv/shop" }
keys = { decide.retry = "ctrl+r", timeline = ["t", "f9"] }
prices = { "claude-test-1" = 15 }
[retry]
max_retries = 3
[hook]
wait = 0
when = "always"
"""
MINE = '{"hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "make format"}]}]}}\n'


def screen(workspace: Path, meanwhile: Callable[[], None] = lambda: None):
    """Watch a workspace for a moment, as somebody who looks at it does."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(workspace)
        os.environ |= {"TERM": "xterm-256color", "LINES": "40"}
        os.execv(sys.executable, [sys.executable, "-m", "agentwatch", "."])
    threading.Thread(target=drain, args=[terminal], daemon=True).start()
    time.sleep(5)
    meanwhile()
    time.sleep(4)
    os.write(terminal, b"q")
    os.waitpid(process, 0)


def drain(terminal: int):
    with suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass


def make(world: World):
    world.use_key()
    shop, fix = world.copy_shop(), world.root / "shop-fix"
    (world.config / "config.toml").write_text(SETTINGS)
    world.use_system_clock()

    begun = world.now.strftime("%Y-%m-%dT%H:%M")
    for path in world.home.rglob("*.jsonl"):
        path.write_text(path.read_text().replace("2030-01-01T11:50", begun))

    def run(*words: str, stdin: bytes = b"", at: Path = shop) -> str:
        world.now = datetime.now(UTC)
        done = world.run(*words, stdin=stdin, cwd=at)
        assert done.code == 0 or words[0] == "init", done
        return done.out

    git = "git -c user.name=ada -c user.email=ada@localhost -c init.defaultBranch=main -c commit.gpgsign=false"
    world.shell(f"{git} init -q; {git} add docs; {git} commit -qm Begin; {git} worktree add -q ../shop-fix", shop)
    shutil.copy(shop / "api.handoff.json", fix / "fix.handoff.json")
    shutil.copy(shop / "api.return.md", fix / "fix.return.md")
    (shop / "gone.return.md").write_text((shop / "api.return.md").read_text())
    screen(shop)
    (shop / "gone.return.md").unlink()
    (shop / "cart.return.md").write_text((shop / "api.return.md").read_text())
    asked = {"hook_event_name": "PermissionRequest", "session_id": "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10"}
    asked |= {"transcript_path": str(next(world.home.rglob("0b6f*.jsonl"))), "cwd": str(shop), "prompt_id": "p"}
    asked |= {"permission_mode": "default", "tool_name": "Bash", "tool_input": {"command": "make seeds"}}
    words = [sys.executable, "-m", "agentwatch", "hook", str(shop)]

    def allow():
        hook = subprocess.Popen(words, stdin=subprocess.PIPE, text=True)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(asked))
        hook.stdin.close()
        while not (found := re.search(r"agentwatch answer .*?\b([0-9a-f]{8,32})\b", run("pending"))):
            time.sleep(0.2)
        run("answer", found[1], "--allow", "--yes")
        hook.wait()

    screen(shop, allow)
    run("decide", "shop.api", "--retry", "--note", "Use the replica.", "--yes")
    decision = json.loads(run("wait", "shop.api", "--timeout", "0"))["decision_id"]
    run("claim", decision, "--by", "w1")
    time.sleep(1.1)
    run("keys", "rotate")
    run("decide", "shop.ship", "--abort", "--yes")
    run("decide", "shop.search", "--retry", "--note", "Look again.", "--yes")
    run("hook", stdin=(world.root / "payloads" / "stop-failed.json").read_bytes())
    run("ack", "shop.seeds")
    run("ack", "shop.web", "--for", "7d")
    run("attest", "shop.cart", "-o", str(world.root / "cart.jsonl"))
    run("decide", "shop.api", "--escalate", "debug", "--yes", at=fix)
    for key, words in ((KIM, ["--name", "kim"]), (KIM, ["--name", "build1", "--host"]), (ATTACKER, ["--name", "eve"])):
        run("keys", "trust", key.text, *words)
    run("keys", "distrust", "eve")
    (shop / ".claude").mkdir()
    (shop / ".claude" / "settings.json").write_text(MINE)
    for agent in ("claude-code", "opencode", "codex"):
        run("init", "--agent", agent, "--write")
    # The places of this machine are nobody's business.
    places = dict(zip(launcher(), ("/opt/python", "-I", "-S", "/opt/agentwatch/__main__.py", "/opt"), strict=True))
    places[str(Path(launcher()[3]).parents[1])] = "/opt"
    for path in (path for path in shop.rglob("*") if path.is_file() and ".git" not in path.parts):
        before = text = path.read_bytes()
        for old, new in places.items():
            text = text.replace(old.encode(), new.encode())
        if text != before:
            path.write_bytes(text)


def main():
    shutil.rmtree(ROOT, ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        world = World(ROOT, patch)
        make(world)
        (ROOT / "now").write_text(world.now.isoformat())
    for path in ROOT.glob("home/.local/state/agentwatch/*"):
        if re.search(r"answers|\.sqlite-(wal|shm)", path.name):
            shutil.rmtree(path)
    with tarfile.open(HERE / "state.tar.gz", "w:gz") as archive:
        for name in ("home", "shop", "shop-fix", "now", "cart.jsonl"):
            archive.add(ROOT / name, name)
    subprocess.run(["/bin/ls", "-l", HERE / "state.tar.gz"], check=True)


if __name__ == "__main__":
    main()
