"""The time from a key that answers a request until the program goes on, through the hook of Claude Code."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.benchmarks.measuring import Row, timed
from tests.journeys.made import SESSION, called, session
from tests.terminal.emulator import Terminal, agentwatch

_ROUNDS = 11
_IN_SIGHT = 1.0
"""Seconds to wait before the key that decides, which is ignored during the first 0.6."""


def _ask(workspace: Path, transcript: Path, number: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start the hook as the program does for one more command."""
    given = {"command": f"make seeds-{number}", "description": "Seed"}
    with transcript.open("a", encoding="utf-8") as file:
        file.write(called(time.time(), SESSION, str(workspace), "Bash", given))
    payload = {
        "session_id": SESSION,
        "transcript_path": str(transcript),
        "cwd": str(workspace),
        "permission_mode": "default",
        "hook_event_name": "PermissionRequest",
        "tool_name": "Bash",
        "tool_input": given,
    }
    hook = subprocess.Popen(
        [sys.executable, "-m", "agentwatch", "hook"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert hook.stdin is not None
    hook.stdin.write(json.dumps(payload).encode())
    hook.stdin.close()
    return hook


def _bare():
    subprocess.run(["sh", "-c", "read line; echo $line"], input=b"{}\n", stdout=subprocess.DEVNULL, check=True)


def run() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        workspace, store = root / "shop", root / "claude"
        workspace.mkdir()
        places = {name: str(root / name) for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
        places["CLAUDE_CONFIG_DIR"] = str(store)
        environment = {**os.environ, **places, "CLAUDE_PROJECT_DIR": str(workspace)}
        at_home, text = session(workspace)
        transcript = store / "projects" / at_home.parent.name / at_home.name
        transcript.parent.mkdir(parents=True, exist_ok=True)
        transcript.write_text(text, "utf-8")
        shown, answered, bare = [], [], []
        with Terminal(agentwatch(workspace), columns=140, lines=40, environment=places) as terminal:
            terminal.wait_for("● live")
            for number in range(_ROUNDS):
                # The emulator draws more slowly than the screen: each measurement begins when nothing is left to draw.
                terminal.rest()
                begin = time.perf_counter()
                hook = _ask(workspace, transcript, number, environment)
                terminal.wait_until_written(rf"seeds-{number}\b".encode())
                shown.append((time.perf_counter() - begin) * 1_000)
                terminal.wait_for(rf"allow\? Bash +make seeds-{number}\b")
                for key, shows in (("a", "Allow\\?"), (" ", "◆ ctrl\\+s")):
                    terminal.press(key)
                    terminal.wait_for(shows)
                time.sleep(_IN_SIGHT)
                begin = time.perf_counter()
                terminal.press("\x13")
                assert hook.stdout is not None
                printed = hook.stdout.read()
                hook.wait()
                answered.append((time.perf_counter() - begin) * 1_000)
                assert b"allow" in printed
                terminal.wait_for("Allowed for")
                bare.append(timed(_bare))
    reference = median(bare)
    yield Row("answer: ctrl+s -> the program goes on", "a bare hook of sh", reference, median(answered))
    yield Row("ask: the program starts its hook -> on the screen", "a bare hook of sh", reference, median(shown))
