"""A certificate that vouches for itself, and JWTs of NATS, made in a test."""

import base64
import ipaddress
import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nkeys
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


def certify(file: Path, *, address: str = "127.0.0.1", begins: timedelta = -DAY, ends: timedelta = DAY) -> str:
    """Make a certificate that is valid from and until so long from now. Returns what a nats-server is told of it."""
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
    """The configuration of a server that knows its users by JWTs, and the credentials of one of them."""
    account_byte = nkeys.PREFIX_BYTE_ACCOUNT
    prefixes = (nkeys.PREFIX_BYTE_OPERATOR, account_byte, account_byte, nkeys.PREFIX_BYTE_USER)
    seeds = [nkeys.encode_seed(os.urandom(32), prefix) for prefix in prefixes]
    operator, account, system, user = [nkeys.from_seed(bytearray(seed)) for seed in seeds]

    def vouched(by: nkeys.KeyPair, kind: str, of: nkeys.KeyPair, **claims: Any) -> str:
        said = {"iat": int(time.time()), "iss": by.public_key.decode(), "sub": of.public_key.decode(), "name": kind}
        parts = {"typ": "JWT", "alg": "ed25519-nkey"}, said | {"nats": {"type": kind, "version": 2, **claims}}
        body = b".".join(_encoded(json.dumps(part).encode()) for part in parts)
        return (body + b"." + _encoded(by.sign(body))).decode()

    everything = ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage")
    limits = dict.fromkeys((*everything, "streams", "consumer"), -1) | {"wildcards": True}
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
