"""What a fleet is called on a NATS server: subjects, streams, and who may do what.

agentwatch.from.<host>.<what>            what a host observed, the latest of each; kept in the stream AGENTWATCH
agentwatch.decide.<host>                 what operators decide; kept in AGENTWATCH_DECISIONS until the host has it
agentwatch.live.<host>.<screen or all>   what a host says now
agentwatch.to.<host>                     what screens say now

A host is the first 16 characters of the id of its key. One account of a server is one fleet.

Why each host has an account of its own: a permission list holds what a user publishes, and not what he has the server
publish for him, which answers a request to whatever subject the request names. An account that imports its own subjects
has no other subject to name. And why no stream is a work queue: with server 2.9, any of its consumers can remove the
messages of all others.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agentwatch.decisions.envelope import PublicKey

STREAM: Final = "AGENTWATCH"
DECISIONS: Final = "AGENTWATCH_DECISIONS"
EVERYONE: Final = "all"
HELLO: Final = "hello"
"""The one key that stands as it is: who a host is."""
LARGEST_MESSAGE: Final = 8 * 1024 * 1024
"""What the configuration that we print lets a message have. Any server takes a mebibyte; what is larger is cut."""

_DAY: Final = 24 * 3600.0
KEPT_DAYS: Final = 30
_DUPLICATES: Final = 120.0
"""Seconds for which the server remembers what it has queued."""
_DECISION_DAYS: Final = 1


def host_of(key: PublicKey) -> str:
    """What a host is called in subjects."""
    return key.keyid[:16]


def said_by(host: str, key: str) -> str:
    """The subject that keeps what a host says of this. A digest, as a key may have any letters."""
    digest = hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=12).hexdigest()
    return f"agentwatch.from.{host}.{key if key == HELLO else digest}"


def all_said_by(host: str | None) -> str:
    """All that this host says and that is kept, None: all hosts."""
    return f"agentwatch.from.{host or '*'}.>"


def live(host: str | None, screen: str) -> str:
    """What a host says now, to this screen or to EVERYONE."""
    return f"agentwatch.live.{host or '*'}.{screen}"


def said_to(host: str) -> str:
    """What screens say to a host, and nobody keeps."""
    return f"agentwatch.to.{host}"


def decided_for(host: str) -> str:
    """What operators decide for a host."""
    return f"agentwatch.decide.{host}"


def host_in(subject: str) -> str:
    """The host that a subject of ours names."""
    parts = subject.split(".")
    return parts[2] if len(parts) > 2 else ""


def hosts_in(information: Mapping[str, Any]) -> list[str]:
    """The hosts of the subjects in what a server tells of a stream."""
    return sorted(set(map(host_in, information["state"].get("subjects") or ())))


def streams(replicas: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the streams of a fleet are made with, times in seconds."""
    common: dict[str, Any] = {"storage": "file", "discard": "old", "num_replicas": replicas, "allow_direct": False}
    return (
        {
            **common,
            "name": STREAM,
            "description": "What the hosts of agentwatch observed, the latest of each",
            "subjects": [all_said_by(None)],
            "max_msgs_per_subject": 1,
            "max_age": KEPT_DAYS * _DAY,
        },
        {
            **common,
            "name": DECISIONS,
            "description": "What operators decided with agentwatch, until the host has it",
            "subjects": ["agentwatch.decide.*"],
            "max_age": _DECISION_DAYS * _DAY,
            "duplicate_window": _DUPLICATES,
        },
    )


def nkey_of(key: PublicKey) -> str:
    """A public key as a user of NATS is named."""
    data = bytes([20 << 3]) + key.raw
    return base64.b32encode(data + _crc16(data).to_bytes(2, "little")).decode().rstrip("=")


def _crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021) & 0xFFFF if crc & 0x8000 else crc << 1 & 0xFFFF
    return crc


def _services(host: str) -> tuple[tuple[str, bool], ...]:
    """What a host may say, and whether more than one answer comes."""
    return (
        (all_said_by(host), False),
        (live(host, "*"), False),
        (f"$JS.API.CONSUMER.MSG.NEXT.{DECISIONS}.{host}", True),
        (f"$JS.ACK.{DECISIONS}.{host}.>", False),
    )


def accounts(operators: Iterable[tuple[str, PublicKey]], hosts: Sequence[tuple[str, PublicKey]]) -> str:
    """The part of a server's configuration by which each host can say only what is its own, and reads only what was
    decided for it. All are given as a name, which is foreign, and a public key."""
    lines = ["accounts {", "  AGENTWATCH {", "    jetstream: enabled", "    users: ["]
    lines += [f"      {{ nkey: {nkey_of(key)} }}  # {_comment(name)}" for name, key in operators]
    lines += ["    ]", "    exports: ["]
    for _, key in hosts:
        host = host_of(key)
        for subject, several in _services(host):
            answers = ", response_type: stream" if several else ""
            lines.append(f'      {{ service: "{subject}"{answers}, accounts: [HOST_{host}] }}')
        lines.append(f'      {{ stream: "{said_to(host)}", accounts: [HOST_{host}] }}')
    lines += ["    ]", "  }"]
    for name, key in hosts:
        host = host_of(key)
        lines += [
            f"  HOST_{host} {{  # {_comment(name)}",
            f"    users: [ {{ nkey: {nkey_of(key)} }} ]",
            "    imports: [",
        ]
        for subject, _ in _services(host):
            lines.append(f'      {{ service: {{ account: AGENTWATCH, subject: "{subject}" }} }}')
        lines.append(f'      {{ stream: {{ account: AGENTWATCH, subject: "{said_to(host)}" }} }}')
        lines += ["    ]", "  }"]
    return "\n".join([*lines, "}"]) + "\n"


def _comment(name: str) -> str:
    """A name as it can stand behind a `#`."""
    return "".join(letter for letter in name if letter.isprintable())[:80]
