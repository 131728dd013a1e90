"""With the manual alone, a newcomer plays the demo, and watches two hosts and a sandbox in six commands."""

import re
import shutil
import signal
import socket
import stat
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import agentwatch as package
from tests.broker import needed
from tests.journeys.made import handoff, returned
from tests.terminal.emulator import Terminal, agentwatch
from tests.unit.remote.sshd import BIN, Sshd, needs_sshd

OWN = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


@pytest.fixture
def places(tmp_path):
    """Return an environment whose directories hold everything that the demo might leave behind."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return {"TMPDIR": str(temporary)} | {name: str(tmp_path / "own" / name) for name in OWN}


def left_behind(places: dict[str, str]) -> list[Path]:
    """Return all files that are left, without the empty directory in which the demo's directory was."""
    temporary, shared = scratch(places), Path(places["TMPDIR"])
    left = [*shared.iterdir(), *(shared.parent / "own").rglob("*")]
    return [path for path in left if path not in (temporary, *temporary.parents)]


def scratch(places: dict[str, str]) -> Path:
    return Path(places["XDG_STATE_HOME"]) / "agentwatch" / "temporary"


def test_a_lie_is_caught_and_put_right_by_a_retry(places):
    command = agentwatch("demo", "--speed", "40")
    with Terminal(command, columns=140, lines=40, environment=places) as terminal:
        terminal.wait_for(r"(?s)^ DEMO .*Try it")
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
        # Keys count only after the last line of the frame is drawn.
        terminal.wait_for(r"^║ [◌○◆] ")
        terminal.press("write it, then claim it")
        # The note makes the handoff longer.
        terminal.wait_for(r"handoff   ✓ valid   \+5 ")
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


@pytest.mark.parametrize(
    ("shows", "number"), [("", signal.SIGTERM), ("■ payments", signal.SIGHUP), ("■ payments", None)]
)
def test_a_demo_that_is_ended_leaves_nothing_behind(places, shows, number):
    with Terminal(agentwatch("demo", "--speed", "40"), columns=140, lines=40, environment=places) as terminal:
        terminal.wait_until(lambda: list(scratch(places).glob("*")))
        terminal.wait_for(shows)
        if number:
            terminal.signal(number)
            terminal.wait_until_exit()
        else:
            # The terminal is closed during heavy drawing.
            for _ in range(60):
                terminal.press("jk?\x1b")
                time.sleep(0.01)
            terminal.hang_up()
            terminal.wait_until_gone()
    assert left_behind(places) == []


# The six commands are those of the manual, except for keys, ports and paths: these come from the output of earlier
# commands, or are free on this machine

PAGE = Path(package.__file__).parent / "manual" / "machines.md"
HOSTS = ("build1", "build2")


@pytest.fixture
def hosts(tmp_path):
    running = [Sshd(tmp_path / name) for name in HOSTS]
    yield running
    for one in running:
        one.stop()


def ssh_of_kim(place: Path, hosts: list[Sshd]):
    """Write an `ssh` that knows the hosts by name, as the user's own configuration would do."""
    lines = [
        f"Host {name}\nHostName 127.0.0.1\nPort {one.port}\nInclude {one.place / 'ssh_config'}\n"
        for name, one in zip(HOSTS, hosts, strict=True)
    ]
    (place / "ssh_config").write_text("".join(lines))
    (place / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {place / "ssh_config"} "$@"\n')
    (place / "ssh").chmod(stat.S_IRWXU)


def prompt(home: Path, directory: Path) -> Terminal:
    """Start a shell for a user with this home."""
    home.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "USER": "kim", "LOGNAME": "kim", "PS1": "$ ", "TERM": "xterm-256color"}
    environment |= {f"XDG_{name}_HOME": str(home / name) for name in ("STATE", "CONFIG", "DATA")}
    environment["PATH"] = f"{home}:{BIN}:/usr/bin:/bin"
    command = ["sh", "-c", 'cd "$0" && exec bash --norc --noprofile', str(directory)]
    return Terminal(command, columns=200, lines=45, environment=environment)


@needs_sshd
def test_six_commands_lead_to_the_first_remote_retry(hosts, tmp_path):
    needed()
    section = PAGE.read_text("utf-8").split("## Two hosts and a sandbox, in six commands")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    send, relay, config, serve, init, watch = "".join(blocks).splitlines()
    shop, api, work = tmp_path / "srv" / "shop", hosts[1].home / "api", tmp_path / "work"
    for place, task in ((shop, "seeds"), (api, "routes"), (work, "crawl")):
        place.mkdir(parents=True)
        (place / f"{task}.handoff.json").write_text(handoff(task), "utf-8")
        (place / f"{task}.return.md").write_text(returned(task_id=task), "utf-8")
    kim = tmp_path / "kim"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    broker = f"nats://127.0.0.1:{port}"
    server_there = relay.partition("--nats ")[2].split()[0]
    assert server_there == "nats://broker:4223"
    kim.mkdir()
    ssh_of_kim(kim, hosts)
    with ExitStack() as open_terminals:
        here, server = (open_terminals.enter_context(prompt(kim, kim)) for _ in range(2))
        box = open_terminals.enter_context(prompt(tmp_path / "box", work))

        here.press(f"{send}\r")
        said = here.wait_for(r"next, to watch .*: agentwatch ssh://build1/PATH ssh://build2/PATH")
        assert [f"{name}: you may decide there, as kim" in said for name in HOSTS] == [True, True]
        key = here.wait_for(r"agentwatch relay --nats nats://SERVER --trust kim=ed25519:\S{44}").rpartition("kim=")[2]

        box.press(relay.replace("ed25519:…", key.split()[0]).replace(server_there, broker) + "\r")
        said = box.wait_for(r"next, .*: agentwatch fleet config --port \d+ --trust \S+=ed25519:\S{44} nats.conf")
        assert "may decide here: kim" in said
        box.wait_for("cannot be reached .*trying again")

        own = re.findall(r"=(ed25519:\S{44}) nats", said)[0]
        server.press(config.replace("ed25519:…", own).replace("4223", str(port)) + "\r")
        server.wait_for("next: \\S*nats-server -c nats.conf, .*: agentwatch fleet init nats://SERVER")
        server.press(serve.replace("/usr/sbin/nats-server", needed()) + "\r")
        server.wait_for("Server is ready")

        here.press(init.replace(server_there, broker) + "\r")
        here.wait_for(f"made: .*next, to watch: agentwatch {broker}")
        box.wait_for("agentwatch: connected")

        here.press(watch.replace(server_there, broker).replace("/srv/shop", str(shop)) + "\r")
        here.wait_for("3 need you")
        here.press("n")
        here.wait_for(r"retry\?")
        here.press("r")
        here.wait_for("Retry")
        here.wait_for(r"ctrl\+s records")
        here.press("\x13")
        here.wait_for("recorded, delivered")
        here.press("q")
        for one in (server, box):
            one.press("\x03")
            one.wait_for(r"\^C")
    decided = [one for place in (shop, api, work) for one in (place / ".agentwatch" / "decisions").glob("*.json")]
    assert len(decided) == 1
