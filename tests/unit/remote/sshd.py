"""A real sshd on the loopback, with keys and a configuration of its own, run by the user who runs the tests."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from agentwatch.remote.address import Address, parse
from tests.broker import free_port

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
BIN = Path(sys.executable).parent

needs_sshd = pytest.mark.skipif(
    not (os.access(SSHD, os.X_OK) and shutil.which("ssh")), reason="there is no OpenSSH here"
)


_SSHD_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {place}/host
AuthorizedKeysFile {place}/user.pub
PidFile {place}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100:30:200
SetEnv {variables}
"""
_SSH_CONFIG = """
Host *
IdentityFile {place}/user
IdentitiesOnly yes
UserKnownHostsFile {place}/known
StrictHostKeyChecking accept-new
User {user}
"""


class Sshd:
    """An sshd that runs until `stop`. Its commands have a home below `place`, and use the agentwatch of these tests."""

    def __init__(self, place: Path, *, path: str | None = None):
        self.place = place
        self.home = place / "home"
        self.home.mkdir(parents=True)
        for name in ("host", "user"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
            subprocess.run(words, check=True, timeout=30)
        self.port = free_port()
        environment = self.environment | ({} if path is None else {"PATH": path})
        variables = " ".join(f'"{name}={value}"' for name, value in environment.items())
        (place / "sshd_config").write_text(_SSHD_CONFIG.format(port=self.port, place=place, variables=variables))
        (place / "ssh_config").write_text(_SSH_CONFIG.format(place=place, user=getpass.getuser()))
        self.program = ("ssh", "-F", str(place / "ssh_config"))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with (place / "sshd.log").open("ab") as log:
            command = [SSHD, "-D", "-e", "-f", str(place / "sshd_config")]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError((place / "sshd.log").read_text())

    def address(self, path: Path | str) -> Address:
        return parse(f"ssh://127.0.0.1:{self.port}{path}", "build1")

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a user who is logged in there."""
        return {
            "PATH": f"{BIN}:/usr/bin:/bin",
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
        }

    def relays(self) -> list[int]:
        """Return the process ids of the relays that run there."""
        return [
            pid
            for pid, words in _processes(f"HOME={self.home}".encode()).items()
            if b"relay" in words and b"python" in words[0]
        ]

    def clients(self) -> list[int]:
        """Return the process id of each connected `ssh`."""
        config = os.fsencode(self.program[2])
        return [pid for pid, words in _processes().items() if words[0].endswith(b"ssh") and config in words]

    def stop(self):
        self.process.kill()
        self.process.wait()


def _processes(variable: bytes = b"") -> dict[int, list[bytes]]:
    """Return the words of all processes with `variable` in their environment, by their ids."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if variable in (place / "environ").read_bytes().split(b"\0"):
                found[int(place.name)] = (place / "cmdline").read_bytes().split(b"\0")
    return found
