"""Keys that are pressed as soon as the command is typed: they count, from the first one on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.terminal.emulator import Terminal, agentwatch
from tests.terminal.test_command import PACKET


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for number in range(300):
        packet = json.dumps({**PACKET, "task_id": f"k{number}"})
        (tmp_path / f"k{number}.handoff.json").write_text(packet, "utf-8")
    return tmp_path


def test_a_filter_is_typed_before_anything_is_drawn(workspace: Path) -> None:
    with Terminal(agentwatch(workspace), columns=100) as terminal:
        # Nobody has told the terminal yet what enter is to be: it comes as a line feed.
        terminal.press("/k298\r")
        terminal.wait_for(r"^ / k298 .*1 found")
        terminal.wait_for(r"^▌ .*k298 ")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0
