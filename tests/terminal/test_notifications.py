"""What reaches the terminal when a task begins to need an operator who looks elsewhere, and when he does not."""

import json
import re
from pathlib import Path

import pytest

from tests.terminal.emulator import Terminal, agentwatch
from tests.terminal.test_command import FAILED, PACKET

FOCUS, BLUR = "\x1b[I", "\x1b[O"
ASKED = rb"\x1b\]777;notify;agentwatch shop;([^;\x00-\x1f\x7f]*)\x1b\\"
TITLE = rb"\x1b\]0;([^;\x00-\x1f\x7f]*)\x1b\\"


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "shop").mkdir()
    for name in ("api", "ui"):
        packet = PACKET | {"task_id": f"shop.{name}"}
        (tmp_path / "shop" / f"{name}.handoff.json").write_text(json.dumps(packet), "utf-8")
    return tmp_path / "shop"


def fail(workspace: Path, name: str):
    (workspace / f"{name}.return.md").write_text(FAILED.replace("shop.api", f"shop.{name}"), "utf-8")


def titles(terminal: Terminal) -> list[str]:
    return [title.decode() for title in re.findall(TITLE, terminal.written)]


def asked(terminal: Terminal) -> list[str]:
    return [text.decode() for text in re.findall(ASKED, terminal.written)]


def bells(terminal: Terminal) -> int:
    return others(terminal).count(b"\x07")


def others(terminal: Terminal) -> bytes:
    """All that was written but the shape of the mouse pointer, which the screen library sets and ends with a bell."""
    return re.sub(rb"\x1b\]22;[a-z-]*\x07", b"", terminal.written)


def leave(terminal: Terminal):
    terminal.press("q")
    assert terminal.wait_until_exit() == 0


def test_a_window_without_the_focus_is_told_once(workspace):
    with Terminal(agentwatch(workspace), columns=140, lines=40) as terminal:
        terminal.wait_for(r"○ shop\.api")
        terminal.wait_until_written(TITLE)
        assert titles(terminal) == ["agentwatch: shop"]
        terminal.press(BLUR)
        fail(workspace, "api")
        terminal.wait_until_written(ASKED)
        assert asked(terminal) == ["shop.api needs you: retry? the child recommends it, 1 retry left"]
        assert titles(terminal)[-1] == "(1) agentwatch: shop"
        # The ask goes on waiting, and is on the screen in any case.
        terminal.wait_for(r"Needs you .*shop\.api.* ([4-9]|\d\d+)s")
        leave(terminal)
        assert len(asked(terminal)) == 1
        assert bells(terminal) == 1
        assert terminal.written.startswith(b"\x1b[22;0t")
        assert terminal.written.endswith(b"\x1b]0;\x1b\\\x1b[23;0t")
