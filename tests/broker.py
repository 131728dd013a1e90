"""A real nats-server on loopback, as Debian has it, for tests."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats.js import api

from agentwatch.decisions.envelope import SigningKey
from agentwatch.remote.nats_connection import Login, connected
from agentwatch.remote.nats_names import streams

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


class Broker:
    """A server that can be killed, and started again as it was. `more` goes into its configuration."""

    def __init__(self, place: Path, more: str = "", *, jetstream: bool = True) -> None:
        self.place, self.more = place, more
        self.store = place / "store"
        self._jetstream = jetstream
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port: int = found.getsockname()[1]
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
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.005)
        raise AssertionError((self.place / "log").read_text())

    def kill(self) -> None:
        """End it as if the power went."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def make_streams(self, login: Login | None = None) -> Broker:
        async def make() -> None:
            client = await connected(self.url, login or Login(), "test")
            for one in streams():
                await client.jetstream().add_stream(api.StreamConfig(**one))
            await client.close()

        asyncio.run(make())
        return self


def running(place: Path, more: str = "", login: Login | None = None) -> Iterator[Broker]:
    """A server with the streams of a fleet, for as long as the test lasts."""
    broker = Broker(place, more).start()
    try:
        yield broker.make_streams(login)
    finally:
        broker.stop()
