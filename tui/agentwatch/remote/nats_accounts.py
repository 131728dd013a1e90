"""The names of a fleet on a NATS server, and the accounts that say who may do what.

agentwatch.live.<host>.<screen>   what a host says to a screen
agentwatch.to.<host>              what screens say to a host
$KV.AGENTWATCH.<host>             the latest hello of a host: an entry of the key-value store AGENTWATCH

A host is the first 16 characters of the id of its key. One account of a server is one fleet.

Each host has an account of its own because a permission list holds what a user publishes, and not what he has the
server publish for him, which answers a request to whatever subject the request names. An account that imports its own
subjects has no other subject to name.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any

from agentwatch.decisions.envelope import PublicKey

STREAM = "KV_AGENTWATCH"  # Holds the key-value store
_KEPT_SECONDS = 30 * 24 * 3600.0


def host_of(key: PublicKey) -> str:
    """The name of a host in subjects."""
    return key.keyid[:16]


def screen_subject(host: str, screen: str) -> str:
    """The subject of what a host says to a screen."""
    return f"agentwatch.live.{host}.{screen}"


def host_subject(host: str) -> str:
    """The subject of what screens say to a host."""
    return f"agentwatch.to.{host}"


def store_subject(host: str) -> str:
    """The subject of the entry of a host in the store."""
    return f"$KV.AGENTWATCH.{host}"


def store(replicas: int = 1) -> dict[str, Any]:
    """The settings of the store, times in seconds. No host may roll up what others have in it."""
    return {
        "name": STREAM,
        "description": "The latest hello of each host of agentwatch",
        "subjects": [store_subject(">")],
        "max_msgs_per_subject": 1,
        "max_age": _KEPT_SECONDS,
        "storage": "file",
        "discard": "new",
        "num_replicas": replicas,
        "deny_delete": True,
        "allow_rollup_hdrs": False,
        "allow_direct": False,
    }


def nkey_of(key: PublicKey) -> str:
    """A public key as a user of NATS is named."""
    data = bytes([20 << 3]) + key.raw
    return base64.b32encode(data + binascii.crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")


def accounts(operators: Iterable[tuple[str, PublicKey]], hosts: Sequence[tuple[str, PublicKey]]) -> str:
    """The part of a server's configuration by which each host can say only what is its own, and reads only what is said
    to it. All are given as a name, which is foreign, and a public key."""
    users = [f"      {{ nkey: {nkey_of(key)} }}  # {_comment(name)}" for name, key in operators]
    exports, own = list[str](), list[str]()
    for name, key in hosts:
        host = host_of(key)
        account = f"HOST_{host}"
        subjects = [("service", screen_subject(host, "*")), ("service", store_subject(host))]
        subjects.append(("stream", host_subject(host)))
        exports += [f'      {{ {kind}: "{subject}", accounts: [{account}] }}' for kind, subject in subjects]
        own += [f"  {account} {{  # {_comment(name)}", f"    users: [ {{ nkey: {nkey_of(key)} }} ]", "    imports: ["]
        own += [f'      {{ {kind}: {{ account: AGENTWATCH, subject: "{subject}" }} }}' for kind, subject in subjects]
        own += ["    ]", "  }"]
    top = ["accounts {", "  AGENTWATCH {", "    jetstream: enabled", "    users: [", *users, "    ]", "    exports: ["]
    return "\n".join([*top, *exports, "    ]", "  }", *own, "}"]) + "\n"


def merged(old: str, new: str, ours: str) -> tuple[str, str, str]:
    """A server's configuration before, in and behind its accounts, with `new` ones in the place of those that it has.
    Of these stays what is not in `ours`, all that was ever written there for keys that are known."""
    before, given = old.splitlines(), new.splitlines()
    begin = next((at for at, line in enumerate(before) if line.startswith("accounts")), len(before))
    end = next((at for at, line in enumerate(before[begin:], begin + 1) if line.rstrip() == "}"), len(before))
    own, generated = before[begin:end], {_plain(line) for line in (*ours.splitlines(), *given)}
    lines = list[str]()
    changes = SequenceMatcher(None, [*map(_plain, own)], [*map(_plain, given)], autojunk=False).get_opcodes()
    for tag, first, last, at, to in changes:
        lines += [line for line in own[first:last] if tag == "equal" or _plain(line) not in generated]
        lines += given[at:to] if tag != "equal" else ()
    head, block, tail = ("".join(f"{line}\n" for line in some) for some in (before[:begin], lines, before[end:]))
    return head, block, tail


def _plain(line: str) -> str:
    """A line without the comment behind it."""
    return line.partition("#")[0].rstrip() or line


def _comment(name: str) -> str:
    """A name as it can stand behind a `#`."""
    return "".join(letter for letter in name if letter.isprintable())[:80]
