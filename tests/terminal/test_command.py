"""The command in a real pseudo-terminal: what a person sees, types and gets back."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.journeys.made import handoff, returned
from tests.terminal.emulator import Terminal, agentwatch

PACKET = json.loads(handoff())
FAILED = returned()


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "api.handoff.json").write_text(json.dumps(PACKET), "utf-8")
    return tmp_path / "shop"


def test_the_screen_follows_files_and_gives_the_terminal_back(workspace):
    with Terminal(agentwatch(workspace), columns=140, lines=40) as terminal:
        terminal.wait_for(r"○ shop\.api")
        (workspace / "api.return.md").write_text(FAILED, "utf-8")
        terminal.wait_for(r"✗ shop\.api.*NEEDS YOU")
        terminal.wait_for("The migration timed out")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0
        # The alternate screen is left and the cursor shown again.
        assert terminal.written.rstrip().rfind(b"\x1b[?1049l") > terminal.written.rfind(b"\x1b[?1049h")
        assert b"\x1b[?25h" in terminal.written[-200:]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_program_and_gives_the_terminal_back(workspace, number):
    with Terminal(agentwatch(workspace)) as terminal:
        terminal.wait_for(r"○ shop\.api")
        terminal.signal(number)
        terminal.wait_until_exit()
        assert b"\x1b[?1049l" in terminal.written


def test_foreign_sequences_never_reach_the_terminal(workspace):
    evil = "\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[@click=app.quit]x[/] [/]"
    packet = {key: value if isinstance(value, list) else f"{value} {evil}" for key, value in PACKET.items()}
    (workspace / "evil.handoff.json").write_text(json.dumps(packet), "utf-8")
    (workspace / "evil.return.md").write_text(FAILED.replace("timed out", f"timed out {evil}"), "utf-8")
    (workspace / "\x1b]0;name\x07.return.md").write_text(FAILED.replace("task_id: shop.api\n", ""), "utf-8")
    with Terminal(agentwatch(workspace), columns=140, lines=40) as terminal:
        terminal.wait_for("✗")
        for tab in "123456":
            terminal.press(tab)
        for key in "jjjkk":
            terminal.press(key)
        # A notification names a task, which is named by a file here.
        terminal.press("\x1b[O")
        (workspace / "\x1b]0;a;b\x07.return.md").write_text(
            FAILED.replace("task_id: shop.api\n", "attempt: 1\n"), "utf-8"
        )
        terminal.wait_until_written("\x1b]777;notify;agentwatch shop;␛]0,a,b␇ needs you".encode())
        terminal.press("q")
        assert terminal.wait_until_exit() == 0
        assert "\u202e".encode() not in terminal.written
        assert b"\xc2\x9b" not in terminal.written
        # What the program itself uses besides colours, cursor and modes: its title, notifications, the pointer's shape.
        ours = rb"(?:0;|0;(?:\(\d+\) )?agentwatch: shop|777;notify;agentwatch shop;[^;\x00-\x1f]*|22;[a-z-]*)"
        commands = re.findall(rb"\x1b[\]PX^_](.*?)(?:\x07|\x1b\\)", terminal.written, re.DOTALL)
        assert commands
        assert [command for command in commands if not re.fullmatch(ours, command)] == []


def test_little_output_into_a_closed_pipe_is_no_error_either(workspace):
    reader, writer = os.pipe()
    os.close(reader)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for arguments in (["tree", workspace], ["--help"]):
        result = subprocess.run(
            agentwatch(*arguments), stdout=writer, stderr=subprocess.PIPE, env=environment, text=True, check=False
        )
        assert (result.returncode, result.stderr) == (0, "")
    os.close(writer)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("buffered", [True, False])
def test_output_that_cannot_be_written_is_an_error_in_a_sentence(workspace, buffered):
    environment = os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"}
    for arguments in (["tree", "--fail", workspace], ["check", workspace]):
        with Path("/dev/full").open("w") as full:
            result = subprocess.run(
                agentwatch(*arguments), stdout=full, stderr=subprocess.PIPE, env=environment, text=True, check=False
            )
        assert (result.returncode, result.stderr) == (
            os.EX_IOERR,
            "agentwatch: No space left on device; free space, then try again\n",
        )


def test_init_lists_asks_once_and_takes_out_what_it_wrote(workspace):
    for words, answer, is_there in (("init", "n", False), ("init", "y", True), ("init --remove", "y", False)):
        (workspace / "CLAUDE.md").write_text("# Shop\n", "utf-8") if answer == "n" else None
        with Terminal(agentwatch(*words.split(), workspace), columns=100, lines=40) as terminal:
            terminal.wait_for(r"CLAUDE\.md +changed, [+-]\d+ lines(.|\n)*files\? \[y/N\]")
            terminal.press(f"{answer}\r")
            assert terminal.wait_until_exit() == (answer == "n")
        assert (workspace / ".claude" / "settings.json").exists() is is_there
        assert ("agentwatch" in (workspace / "CLAUDE.md").read_text("utf-8")) is is_there


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
PAGER = {"PAGER": "sed s/^/paged:/"}
PRINTED: dict[str, tuple[str, dict[str, str], str, bytes]] = {
    "tree": ("tree .", {}, r"^✗ shop\.api  failed \d+s", b"\x1b[31m"),
    "narrow": ("tree .", {}, r"^    left$", b"\x1b[1;35m"),
    "pending": ("pending .", {}, r"^✗ shop\.api  attempt 1, failed \d+s", b"\x1b[31m"),
    "check": ("check .", {}, r"^odd\.handoff\.json:1: HOF\d+ error", b"\x1b[31merror"),
    "report": ("report .", {}, r"^<sub>agentwatch report", b"\x1b[31m"),
    "verify": ("verify .", {}, r"^✓ ledger", b"\x1b[32m"),
    "no colour": ("tree .", {"NO_COLOR": "1"}, r"^✗ shop\.api  failed", b""),
    "dumb": ("tree .", {"TERM": "dumb"}, r"^✗ shop\.api  failed", b""),
    "paged": ("help commands", PAGER, r"^paged:- attest: 0 signed", b"paged:\x1b[1mCommands"),
    "no pager": ("help commands", {"PAGER": "/nowhere/less", "NO_COLOR": "1"}, r"^- 130: ended by ctrl\+c", b""),
    "short": ("help live", PAGER | {"LINES": "90"}, r"^Live|transcripts", b"\x1b[1m"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_person_gets_colours_rows_of_whole_words_and_pages(workspace, name):
    words, environment, seen, written = PRINTED[name]
    (workspace / "api.return.md").write_text(FAILED.replace("timed out", f"timed out {EVIL}"), "utf-8")
    (workspace / "odd.handoff.json").write_text(json.dumps({"task_id": f"odd {EVIL}"}), "utf-8")
    command = ["sh", "-c", f'cd "$1" && shift && exec "$@" {words}', "sh", str(workspace), *agentwatch()]
    with Terminal(command, columns=44, lines=60, environment=environment) as terminal:
        terminal.wait_until_exit()
        assert re.search(seen, terminal.text(), re.MULTILINE), terminal.text()
        assert written in terminal.written
        assert (b"\x1b" in terminal.written) is bool(written)
        assert re.findall(r"\x1b(?!\[[0-9;]*m).{0,9}|\x9b", terminal.written.decode()) == []
