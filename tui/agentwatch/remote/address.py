"""Parses addresses of workspaces on other machines, from the command line and from the settings.

The patterns allow few characters, because parts of an address become arguments of `ssh`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote

from agentwatch.config import RUN, locate_setting
from agentwatch.errors import ConfigError, UsageError

HERE = "here"  # the name of this machine, as in the filter `host:here`; no host may have this name
HOME = "~"

_EXAMPLES = {
    "ssh": "ssh://kim@build1/srv/shop, ssh://build1/~/shop for a directory in your home there, or ssh://build1",
    "nats": "nats://broker for all hosts, nats://broker:4222/build1 for one, or nats://broker/build1/shop",
}
_HOST = r"[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\]"
_NAME = "[A-Za-z0-9_][A-Za-z0-9_.-]*"
_PORT = "(?::(?P<port>[0-9]{1,5}))?"
_FORMS = {
    "ssh": rf"ssh://(?:(?P<user>[A-Za-z0-9_.][A-Za-z0-9_.+-]*)@)?(?P<host>{_HOST}){_PORT}(?:/(?P<path>.*))?",
    "nats": rf"(?:nats|tls)://(?P<server>{_HOST}){_PORT}(?:/+(?P<host>{_NAME})(?:/+(?P<path>[^/]+))?)?/*",
}
_BROKEN = re.compile(r"%(?![0-9A-Fa-f]{2})|[\x00-\x1f\x7f\ud800-\udfff]")
_LONGEST = 4_096


class Address(NamedTuple):
    """The address of a workspace on another machine. If `path` is "", it means all workspaces of the machine.

    `name` is the name of the address in the settings. Over ssh, `host`, `user` and `port` are arguments of ssh, and
    `path` is a directory. Over NATS, `server` is `host:port`, or `tls://host:port` if the server must encrypt. `host`
    is then the name of a host that uses the server, and `path` is the name or id of a workspace."""

    written: str
    kind: Literal["ssh", "nats", "run"]
    host: str
    user: str = ""
    port: int | None = None
    path: str = ""
    server: str = ""
    name: str = ""
    run: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name of the host on the screen, or "" if the address means all hosts of a NATS server."""
        return self.name or self.host.strip("[]")

    @property
    def target(self) -> str:
        """The host in the form `user@host:port`. User and port may be missing."""
        user, port = f"{self.user}@" if self.user else "", f":{self.port}" if self.port is not None else ""
        return f"{user}{self.host}{port}"

    @property
    def place(self) -> Path:
        """A made-up local path. agentwatch stores its data about the workspace under the id of this path."""
        return Path(f"/{self.kind}:{self.target}:{self.path}")


def is_address(word: str) -> bool:
    """Tell whether a word of the command line is an address."""
    return "://" in word


def parse(text: str, name: str = "") -> Address:
    """Parse an address. `name` is its name in the settings. If it is invalid, raise UsageError with an example."""
    scheme = text.partition("://")[0].lower()
    kind = "nats" if scheme == "tls" else scheme
    if kind not in _FORMS:
        raise UsageError(f"{text}: an address begins with ssh:// or nats://, such as ssh://kim@build1/srv/shop")
    found = re.fullmatch(_FORMS[kind], text, re.IGNORECASE | re.DOTALL)
    steps = _path_steps(found["path"] or "") if found else None
    port = int(found["port"]) if found and found["port"] else None
    if found is None or steps is None or (port is not None and not 0 < port < 65_536):
        hint = "a path is whole, without `..`, and has `%25` for a `%`"
        raise UsageError(f"{text[:200]}: this is no address; write {_EXAMPLES[kind]}; {hint}")
    if kind == "ssh":
        whole = "/".join(steps if steps[:1] == [HOME] else ["", *steps] if steps else ())
        return Address(text, "ssh", found["host"], found["user"] or "", port, whole, name=name)
    server = found["server"] if port is None else f"{found['server']}:{port}"
    server = f"tls://{server}" if scheme == "tls" else server
    return Address(text, "nats", found["host"] or "", path="/".join(steps), server=server, name=name)


def _path_steps(path: str) -> list[str] | None:
    """Return the decoded parts of a path. Return None if the path is not allowed."""
    plain = unquote(path, errors="surrogateescape")
    steps = [step for step in plain.split("/") if step not in ("", ".")]
    # The home of another user, such as `~kim`, is not supported.
    is_strange = ".." in steps or (steps and steps[0].startswith(HOME) and steps[0] != HOME)
    return (
        None
        if is_strange or _BROKEN.search(path) or _BROKEN.search(plain.replace("%", "")) or len(plain) > _LONGEST
        else steps
    )


def read_hosts(hosts: Iterable[tuple[str, Sequence[str]]]) -> Mapping[str, tuple[Address, ...]]:
    """Return the addresses in the settings, by name. If one is wrong, raise ConfigError with its line."""
    known: dict[str, tuple[Address, ...]] = {}
    for name, addresses in hosts:
        place = locate_setting(f"hosts.{name}")
        if not is_host_name(name):
            raise ConfigError(f"{place}: {name!r} cannot be the name of a host: use letters, digits, '.', '_' and '-'")
        try:
            if addresses[0] == RUN:
                path, *run = addresses[1:]
                known[name] = (Address(name, "run", name, path=path, name=name, run=tuple(run)),)
            else:
                known[name] = tuple(parse(one, name) for one in addresses)
        except UsageError as error:
            raise ConfigError(f"{place}: {error}") from error
    return known


def ssh_addresses(words: Iterable[str], hosts: Iterable[tuple[str, Sequence[str]]]) -> list[Address]:
    """Return one ssh address for each host that the words name. Raise UsageError if a word is wrong.
    A word is a name in the settings, an address, or a host name that ssh knows."""
    known, found = read_hosts(hosts), dict[str, Address]()
    for word in words:
        for address in known.get(word) or [parse(word if is_address(word) else f"ssh://{word}/{HOME}")]:
            if address.kind != "ssh":
                raise UsageError(f"{word}: ssh does not reach it; there, run `agentwatch keys trust KEY --name NAME`")
            found.setdefault(address.target, address)
    return [*found.values()]


def is_host_name(name: str) -> bool:
    """Tell whether a text may be the name of a host."""
    return re.fullmatch(_NAME, name) is not None and name != HERE
