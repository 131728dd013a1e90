"""A certificate authority of one's own, and JWTs of NATS, made in a test."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import nkeys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Certified(NamedTuple):
    """The files of a server."""

    certificate: Path
    key: Path

    @property
    def configuration(self) -> str:
        """For nats-server."""
        return f'tls {{ cert_file: "{self.certificate}", key_file: "{self.key}" }}'


class Authority:
    """It signs certificates; `file` is its own."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Nobody's CA")])
        self.file = place / "ca.pem"
        place.mkdir(exist_ok=True)
        made = self._built(self._name, self._key, timedelta(days=1), timedelta(days=-1))
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def certify(
        self,
        name: str = "server",
        *,
        address: str = "127.0.0.1",
        ends: timedelta = timedelta(days=1),
        begins: timedelta = timedelta(days=-1),
    ) -> Certified:
        """A certificate for an address, that is valid from and until so long from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        made = (
            self._built(subject, key, ends, begins)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        files = Certified(self._place / f"{name}.pem", self._place / f"{name}.key")
        files.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files

    def _built(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, ends: timedelta, begins: timedelta
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
        )


_PREFIXES = {"operator": nkeys.PREFIX_BYTE_OPERATOR, "account": nkeys.PREFIX_BYTE_ACCOUNT}


class Identity:
    """Somebody of NATS: `kind` is `operator`, `account` or `user`."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        prefix = _PREFIXES.get(kind, nkeys.PREFIX_BYTE_USER)
        self.seed: bytes = nkeys.encode_seed(hashlib.sha256(f"{kind} {number}".encode()).digest(), prefix)
        self._pair = nkeys.from_seed(bytearray(self.seed))
        self.public: str = self._pair.public_key.decode()

    def vouch_for(self, other: Identity, **claims: Any) -> str:
        """The JWT by which this one says who the other is."""
        said: dict[str, Any] = {"iat": int(time.time()), "iss": self.public, "sub": other.public, "name": other.kind}
        said["nats"] = {"type": other.kind, "version": 2, **claims}
        said["jti"] = base64.b32encode(hashlib.sha256(json.dumps(said).encode()).digest()).decode().rstrip("=")
        body = b".".join(_encoded(part) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, said))
        signature = base64.urlsafe_b64encode(self._pair.sign(body)).rstrip(b"=")
        return (body + b"." + signature).decode()


def _encoded(part: dict[str, Any]) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")


class Jwts(NamedTuple):
    """A server that knows its users by JWTs: its configuration, and the credentials of one of them."""

    configuration: str
    creds: str


def jwts() -> Jwts:
    operator, account, user = (Identity(kind, 1) for kind in ("operator", "account", "user"))
    system = Identity("account", 2)
    everything = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
    everything |= dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
    known = operator.vouch_for(account, limits={**everything, "wildcards": True})
    configuration = (
        f"operator: {operator.vouch_for(operator)}\nresolver: MEMORY\nsystem_account: {system.public}\n"
        f'resolver_preload: {{ {account.public}: "{known}", {system.public}: "{operator.vouch_for(system)}" }}\n'
    )
    token = account.vouch_for(user, subs=-1, data=-1, payload=-1)
    creds = (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
    )
    return Jwts(configuration, creds)
