"""Names the subjects of messages on a NATS server, and writes the accounts that limit what each host may do.

agentwatch.live.<host>.<screen>   from a host to a screen
agentwatch.to.<host>              from screens to a host
$KV.AGENTWATCH.<host>             the latest hello of a host: an entry of the key-value store AGENTWATCH

<host> is the first 16 characters of the id of the host's key. All operators share the account AGENTWATCH.

Each host has its own account, which imports only the subjects of this host. A permission list would not be enough: a
host can make the server send an answer to any subject, and no permission limits that.
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
    """Return the name that a host has in subjects."""
    return key.keyid[:16]


def screen_subject(host: str, screen: str) -> str:
    """Return the subject of messages from a host to a screen."""
    return f"agentwatch.live.{host}.{screen}"


def host_subject(host: str) -> str:
    """Return the subject of messages from screens to a host."""
    return f"agentwatch.to.{host}"


def store_subject(host: str) -> str:
    """Return the subject under which a host's hello is stored."""
    return f"$KV.AGENTWATCH.{host}"


def bucket(replicas: int = 1) -> dict[str, Any]:
    """Return the settings of the store. With these settings no host can delete the entries of another host."""
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
    """Return the accounts for a server's configuration. They let each host send and read only its own messages.
    Operators and hosts are pairs of name and public key. The names are untrusted."""
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


def merge_accounts(old: str, new: str, ours: str) -> tuple[str, str, str]:
    """Put the `new` accounts into the configuration `old`. Return three texts: before, in and after the accounts.
    `ours` has all lines that agentwatch generates for the known keys. Any other line was added by the operator, so it
    stays."""
    before, given = old.splitlines(), new.splitlines()
    begin = next((at for at, line in enumerate(before) if line.startswith("accounts")), len(before))
    end = next((at for at, line in enumerate(before[begin:], begin + 1) if line.rstrip() == "}"), len(before))
    own, generated = before[begin:end], {_code_of(line) for line in (*ours.splitlines(), *given)}
    lines = list[str]()
    changes = SequenceMatcher(None, [*map(_code_of, own)], [*map(_code_of, given)], autojunk=False).get_opcodes()
    for tag, first, last, at, to in changes:
        lines += [line for line in own[first:last] if tag == "equal" or _code_of(line) not in generated]
        lines += given[at:to] if tag != "equal" else ()
    head, block, tail = ("".join(f"{line}\n" for line in some) for some in (before[:begin], lines, before[end:]))
    return head, block, tail


def _code_of(line: str) -> str:
    return line.partition("#")[0].rstrip() or line


def _comment(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable())[:80]
