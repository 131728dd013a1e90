"""A real nats-server on loopback, as Debian ships it, for tests."""

from __future__ import annotations

import base64
import ipaddress
import json
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
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nkeys
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from agentwatch.decisions.envelope import SigningKey
from agentwatch.remote.nats import Login, ask_server, make_store

PROGRAM = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin:/usr/local/sbin")


def new_key() -> SigningKey:
    """Return a new random key."""
    return SigningKey(Ed25519PrivateKey.generate())


def key_of(number: int) -> SigningKey:
    """Return the key with this number, the same each time."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(number.to_bytes(32, "big")))


def needed() -> str:
    """Return the path of nats-server, or skip the test if there is none."""
    if PROGRAM is None:
        pytest.skip("no nats-server here; Debian's package of that name has it")
    return PROGRAM


def free_port() -> int:
    """Return a port that the system gives to no other program while the server is killed and started again."""
    while True:
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
            return found.getsockname()[1]


class Broker:
    """A server that can be killed, and started again with the same store. `more` is added to its configuration."""

    def __init__(self, place: Path, more: str = ""):
        self.place, self.more = place, more
        self.store = place / "store"
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Broker:
        program = needed()
        self.place.mkdir(exist_ok=True)
        configuration = self.place / "server.conf"
        kept = f'jetstream {{ store_dir: "{self.store}" }}'
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
        """Kill the server, as a power failure would."""
        self._end(signal.SIGKILL)

    def stop(self):
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals):
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object):
        self.stop()

    def make_store(self, login: Login | None = None) -> Broker:
        ask_server(self.url, login or Login(), lambda client: make_store(client, 1))
        return self


class Wire:
    """A proxy between a client and a server that carries everything in both directions until it is cut."""

    def __init__(self, broker: Broker):
        self._broker = broker
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._connect = threading.Thread(target=self._accept, daemon=True)
        self._connect.start()

    def cut(self):
        """Break all connections, in the middle of their messages; clients can connect again."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def stop(self):
        with suppress(OSError):
            # Without this the thread that accepts connections does not wake.
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
    """Run a server with the store of a fleet for the length of a `with` block."""
    with Broker(place, more) as broker:
        yield broker.make_store(login)


DAY = timedelta(days=1)


def certify(file: Path, *, address: str = "127.0.0.1", begins: timedelta = -DAY, ends: timedelta = DAY) -> str:
    """Make a certificate that is valid from and until so long from now, and return a server's configuration for it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file.write_bytes(made.public_bytes(Encoding.PEM))
    private = file.with_suffix(".key")
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return f'tls {{ cert_file: "{file}", key_file: "{private}" }}\n'


def jwts() -> tuple[str, str]:
    """Return the configuration of a server that knows its users by JWTs, and the credentials of one of its users."""
    account_byte = nkeys.PREFIX_BYTE_ACCOUNT
    prefixes = (nkeys.PREFIX_BYTE_OPERATOR, account_byte, account_byte, nkeys.PREFIX_BYTE_USER)
    seeds = [nkeys.encode_seed(os.urandom(32), prefix) for prefix in prefixes]
    operator, account, system, user = [nkeys.from_seed(bytearray(seed)) for seed in seeds]

    def vouched(by: nkeys.KeyPair, kind: str, of: nkeys.KeyPair, **claims: Any) -> str:
        said = {"iat": int(time.time()), "iss": by.public_key.decode(), "sub": of.public_key.decode()}
        parts = {"typ": "JWT", "alg": "ed25519-nkey"}, said | {"nats": {"type": kind, "version": 2, **claims}}
        body = b".".join(_encoded(json.dumps(part).encode()) for part in parts)
        return (body + b"." + _encoded(by.sign(body))).decode()

    limited = ("subs", "data", "payload", "conn", "mem_storage", "disk_storage", "streams", "consumer")
    limits = dict.fromkeys(limited, -1)
    known = vouched(operator, "account", account, limits=limits)
    configuration = (
        f"operator: {vouched(operator, 'operator', operator)}\nresolver: MEMORY\n"
        f"system_account: {system.public_key.decode()}\nresolver_preload: {{ {account.public_key.decode()}: {known},"
        f" {system.public_key.decode()}: {vouched(operator, 'account', system)} }}\n"
    )
    token = vouched(account, "user", user, subs=-1, data=-1, payload=-1)
    creds = (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seeds[3].decode()}\n------END USER NKEY SEED------\n"
    )
    return configuration, creds


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
