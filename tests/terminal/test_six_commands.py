"""Two hosts behind ssh and a sandbox that only dials out, from nothing to the first retry: in the six commands of the
manual, typed as they stand there, but for keys, ports and paths, which are those that the commands before have printed,
or that are free here."""

import json
import re
import shutil
import socket
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

import agentwatch
from tests.broker import needed
from tests.reliability.commands.stage import HANDOFF, returned
from tests.terminal.emulator import Terminal
from tests.unit.remote.sshd import BIN, Sshd, needs_sshd

PAGE = Path(agentwatch.__file__).parent / "manual" / "machines.md"
HEADING = "## Two hosts and a sandbox, in six commands"
HOSTS = ("build1", "build2")

pytestmark = pytest.mark.slow


def commands() -> list[str]:
    """The command lines of the section."""
    section = PAGE.read_text("utf-8").split(HEADING)[1].split("\n## ")[0]
    return [line for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


@pytest.fixture
def hosts(tmp_path):
    running = [Sshd(tmp_path / name) for name in HOSTS]
    yield running
    for one in running:
        one.stop()


def ssh_of_kim(place: Path, hosts: list[Sshd]):
    """An `ssh` that knows the hosts by name, as the user's own configuration would have it."""
    lines = []
    for name, one in zip(HOSTS, hosts, strict=True):
        lines += [f"Host {name}", "HostName 127.0.0.1", f"Port {one.port}", f"IdentityFile {one.place / 'user'}"]
    lines += ["Host *", "IdentitiesOnly yes", f"UserKnownHostsFile {place / 'known'}"]
    lines += ["StrictHostKeyChecking accept-new"]
    (place / "ssh_config").write_text("\n".join(lines) + "\n")
    (place / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {place / "ssh_config"} "$@"\n')
    (place / "ssh").chmod(stat.S_IRWXU)


def fail(workspace: Path, task: str):
    """A task that came back with an error."""
    workspace.mkdir(parents=True)
    (workspace / f"{task}.handoff.json").write_text(json.dumps(HANDOFF | {"task_id": task}), "utf-8")
    (workspace / f"{task}.return.md").write_text(returned().replace("task_id: shop.api", f"task_id: {task}"), "utf-8")


def prompt(home: Path, directory: Path) -> Terminal:
    """A shell of a user with this home."""
    home.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "USER": "kim", "LOGNAME": "kim", "PS1": "$ ", "TERM": "xterm-256color"}
    environment |= {f"XDG_{name}_HOME": str(home / name) for name in ("STATE", "CONFIG", "DATA")}
    environment["PATH"] = f"{home}:{BIN}:/usr/bin:/bin"
    command = ["sh", "-c", 'cd "$0" && exec bash --norc --noprofile', str(directory)]
    return Terminal(command, columns=200, lines=45, environment=environment)


@needs_sshd
def test_six_commands_lead_to_the_first_remote_retry(hosts, tmp_path):
    needed()
    written = commands()
    assert len(written) <= 6
    send, relay, config, serve, init, watch = written
    shop, api, work = tmp_path / "srv" / "shop", hosts[1].home / "api", tmp_path / "work"
    for place, task in ((shop, "seeds"), (api, "routes"), (work, "crawl")):
        fail(place, task)
    kim, port = tmp_path / "kim", free_port()
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
