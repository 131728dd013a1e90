"""A real nats-server on loopback, as Debian has it, for tests."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.decisions.envelope import SigningKey
from agentwatch.remote.nats import Login, asked, make_store

PROGRAM = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin:/usr/local/sbin")


def new_key() -> SigningKey:
    """A key that nobody has had before."""
    return SigningKey(Ed25519PrivateKey.generate())


def key_of(number: int) -> SigningKey:
    """Always the same key."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(number.to_bytes(32, "big")))


def needed() -> str:
    """The server's program; without one the test is skipped."""
    if PROGRAM is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs Debian's package `nats-server`")
        pytest.skip("no nats-server here; Debian's package of that name has it")
    return PROGRAM


def _free_port() -> int:
    """A port that the system gives to no other program meanwhile: the server is killed, and started there again."""
    while True:
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
            port: int = found.getsockname()[1]
            return port


class Broker:
    """A server that can be killed, and started again as it was. `more` goes into its configuration."""

    def __init__(self, place: Path, more: str = "", *, jetstream: bool = True):
        self.place, self.more = place, more
        self.store = place / "store"
        self._jetstream = jetstream
        self.port = _free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Broker:
        program = needed()
        self.place.mkdir(exist_ok=True)
        configuration = self.place / "server.conf"
        kept = f'jetstream {{ store_dir: "{self.store}" }}' if self._jetstream else ""
        configuration.write_text(f"listen: 127.0.0.1:{self.port}\n{kept}\n{self.more}\n")
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen([program, "-c", str(configuration)], stdout=log, stderr=log)
        end = time.monotonic() + 20
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as tried:
                if tried.recv(4) == b"INFO" and self._process.poll() is None:
                    return self
            time.sleep(0.005)
        raise AssertionError((self.place / "log").read_text())

    def kill(self):
        """End it as if the power went."""
        self._end(signal.SIGKILL)

    def stop(self):
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals):
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def make_store(self, login: Login | None = None) -> Broker:
        asked(self.url, login or Login(), lambda client: make_store(client, 1))
        return self


class Wire:
    """Stands between somebody and a server, and carries everything there and back until it is cut."""

    def __init__(self, broker: Broker):
        self._broker = broker
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._connect = threading.Thread(target=self._accept, daemon=True)
        self._connect.start()

    def cut(self):
        """Break all that is connected, in the middle of what it carries; whoever connects again can."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def stop(self):
        with suppress(OSError):
            # Else whoever accepts does not wake.
            self._listening.shutdown(socket.SHUT_RDWR)
        self.cut()
        self._connect.join(5)
        self._listening.close()

    def _accept(self):
        carrying = []
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.socket()
                try:
                    far.connect(("127.0.0.1", self._broker.port))
                except OSError:
                    near.close()
                    far.close()
                    continue
                self._open += (near, far)
                for here, there in ((near, far), (far, near)):
                    carrying.append(threading.Thread(target=self._carry, args=(here, there), daemon=True))
                    carrying[-1].start()
        for thread in carrying:
            thread.join(5)
        for one in self._open:
            one.close()

    def _carry(self, here: socket.socket, there: socket.socket):
        with suppress(OSError):
            while data := here.recv(65536):
                there.sendall(data)
        for one in (here, there):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def running(place: Path, more: str = "", login: Login | None = None) -> Iterator[Broker]:
    """A server with the store of a fleet, for as long as the test lasts."""
    broker = Broker(place, more).start()
    try:
        yield broker.make_store(login)
    finally:
        broker.stop()
