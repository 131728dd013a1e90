"""The names of a fleet on a NATS server, and the accounts that limit each user's rights.

agentwatch.live.<host>.<screen>   from a host to a screen
agentwatch.to.<host>              from screens to a host
$KV.AGENTWATCH.<host>             the latest hello of a host: an entry of the key-value store AGENTWATCH

A host is named by the first 16 characters of its key's id. One account of a server is one fleet.

Each host has an account of its own, because a permission list limits only the user's own messages, but not the
server's answers, which go to any subject that a request names. An account that imports only its own subjects can name
no others.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any

from agentwatch.decisions.envelope import PublicKey

STREAM = "KV_AGENTWATCH"  # the stream of the key-value store
_KEPT_SECONDS = 30 * 24 * 3600.0


def host_of(key: PublicKey) -> str:
    """Return the name of a host in subjects."""
    return key.keyid[:16]


def screen_subject(host: str, screen: str) -> str:
    """Return the subject for messages of a host to a screen."""
    return f"agentwatch.live.{host}.{screen}"


def host_subject(host: str) -> str:
    """Return the subject for messages of screens to a host."""
    return f"agentwatch.to.{host}"


def store_subject(host: str) -> str:
    """Return the subject of a host's entry in the store."""
    return f"$KV.AGENTWATCH.{host}"


def store_config(replicas: int = 1) -> dict[str, Any]:
    """Return the settings of the store, times in seconds; no host may delete the entries of others by a roll-up."""
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
    """Return a public key in the form of a NATS user name."""
    data = bytes([20 << 3]) + key.raw
    return base64.b32encode(data + binascii.crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")


def format_accounts(operators: Iterable[tuple[str, PublicKey]], hosts: Sequence[tuple[str, PublicKey]]) -> str:
    """Return the part of a server's configuration by which each host can send and read only its own messages. Operators
    and hosts are (name, public key); names are foreign."""
    users = [f"      {{ nkey: {nkey_of(key)} }}  # {_comment_text(name)}" for name, key in operators]
    exports, own = list[str](), list[str]()
    for name, key in hosts:
        host = host_of(key)
        account = f"HOST_{host}"
        subjects = [("service", screen_subject(host, "*")), ("service", store_subject(host))]
        subjects.append(("stream", host_subject(host)))
        exports += [f'      {{ {kind}: "{subject}", accounts: [{account}] }}' for kind, subject in subjects]
        own += [
            f"  {account} {{  # {_comment_text(name)}",
            f"    users: [ {{ nkey: {nkey_of(key)} }} ]",
            "    imports: [",
        ]
        own += [f'      {{ {kind}: {{ account: AGENTWATCH, subject: "{subject}" }} }}' for kind, subject in subjects]
        own += ["    ]", "  }"]
    top = ["accounts {", "  AGENTWATCH {", "    jetstream: enabled", "    users: [", *users, "    ]", "    exports: ["]
    return "\n".join([*top, *exports, "    ]", "  }", *own, "}"]) + "\n"


def merge_accounts(old: str, new: str, ours: str) -> tuple[str, str, str]:
    """Return a server's configuration before, in and after its accounts, with the `new` accounts merged in. Lines of
    the old accounts stay if they are not in `ours`, which is everything ever generated for known keys."""
    before, given = old.splitlines(), new.splitlines()
    begin = next((at for at, line in enumerate(before) if line.startswith("accounts")), len(before))
    end = next((at for at, line in enumerate(before[begin:], begin + 1) if line.rstrip() == "}"), len(before))
    own, generated = before[begin:end], {_remove_comment(line) for line in (*ours.splitlines(), *given)}
    lines = list[str]()
    changes = SequenceMatcher(
        None, [*map(_remove_comment, own)], [*map(_remove_comment, given)], autojunk=False
    ).get_opcodes()
    for tag, first, last, at, to in changes:
        lines += [line for line in own[first:last] if tag == "equal" or _remove_comment(line) not in generated]
        lines += given[at:to] if tag != "equal" else ()
    head, block, tail = ("".join(f"{line}\n" for line in some) for some in (before[:begin], lines, before[end:]))
    return head, block, tail


def _remove_comment(line: str) -> str:
    """Return a line without the comment after it."""
    return line.partition("#")[0].rstrip() or line


def _comment_text(name: str) -> str:
    """Return a name in a form that can stand after a `#`."""
    return "".join(letter for letter in name if letter.isprintable())[:80]
