"""The demo in a real terminal: with keys alone a newcomer decides, sees what comes of it, and leaves no trace."""

import signal
from pathlib import Path

import pytest

from tests.terminal.emulator import Terminal, agentwatch

OWN = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


@pytest.fixture
def places(tmp_path):
    """An environment in which whatever the demo leaves behind is found."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return {"TMPDIR": str(temporary)} | {name: str(tmp_path / "own" / name) for name in OWN}


def left_behind(places: dict[str, str]) -> list[Path]:
    """All but the empty directory in which the demo's was."""
    temporary, shared = scratch(places), Path(places["TMPDIR"])
    left = [*shared.iterdir(), *(shared.parent / "own").rglob("*")]
    return [path for path in left if path not in (temporary, *temporary.parents)]


def scratch(places: dict[str, str]) -> Path:
    return Path(places["XDG_STATE_HOME"]) / "agentwatch" / "temporary"


def test_a_lie_is_caught_and_put_right_by_a_retry(places):
    command = agentwatch("demo", "--speed", "40")
    with Terminal(command, columns=140, lines=40, environment=places) as terminal:
        terminal.wait_for(r"^ DEMO ")
        terminal.wait_for(r"⚑ docs .*NEEDS YOU")
        terminal.press("/")
        terminal.wait_for(r"^ / words, or state: is: agent:")
        terminal.press("docs")
        terminal.wait_for(r"1 found")
        terminal.press("\r")
        terminal.wait_for(r"▌.*⚑ docs")
        terminal.wait_for(r"  r retry  ")
        terminal.press("r")
        terminal.wait_for(r"╔═ ◆ ↻ Retry")
        # Before the last line of the frame is there, no key is heard.
        terminal.wait_for(r"^║ [◌○◆] ")
        terminal.press("write it, then claim it")
        terminal.wait_for(r"handoff   ✓ valid")
        terminal.wait_for(r"◆ ctrl\+s records this decision")
        terminal.press("\x13")
        terminal.wait_for(r"decided +retry · recorded")
        terminal.wait_for(r"· acted")
        terminal.wait_for(r"✓ docs ↻2")
        terminal.press("7")
        terminal.wait_for(r"1  ⚑|1  ✓")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0
        assert b"Traceback" not in terminal.written
    assert left_behind(places) == []


@pytest.mark.parametrize(("shows", "number"), [(r"", signal.SIGTERM), (r"■ payments", signal.SIGHUP)])
def test_a_signal_leaves_nothing_behind(places, shows, number):
    command = agentwatch("demo", "--speed", "40")
    with Terminal(command, environment=places) as terminal:
        terminal.wait_until(lambda: list(scratch(places).glob("*")))
        terminal.wait_for(shows)
        terminal.signal(number)
        terminal.wait_until_exit()
    assert left_behind(places) == []
