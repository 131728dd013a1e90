"""What a relay and a screen say to each other, each a JSON object in one line. Whatever is read is foreign.

Another version may say more: what is not known here is passed over. Where the protocols differ by more than one minor
version, that is said instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, NoReturn

from agentwatch.delegation.events import Rules
from agentwatch.remote.codec import decoder, encoder
from agentwatch.remote.observed import Told
from agentwatch.sources import Health

PROTOCOL: Final = (3, 0)
"""Major and minor. What a version knows that an older one does not makes it the next minor."""

LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a message."""
ENOUGH: Final = 256 * 1024
"""Bytes up to which several things share a message."""
_SCREEN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What a screen may call itself: that becomes a part of what messages for it are called, and of every beat."""


class VersionError(ValueError):
    """The other side speaks another protocol. The message says which, and what to do."""


class Workspace(NamedTuple):
    """One that a host relays. `id` is that of its state directory there, `path` and `name` are the host's words,
    `asked` the paths by which the relay was told of it. The host judges it by these `rules`."""

    id: str
    path: str
    name: str
    rules: Rules = Rules()
    asked: tuple[str, ...] = ()


class Item(NamedTuple):
    """An entry of the book. `seq` is its number; `base` that of the one before it about the same, 0 where there is
    none: what is between the two is void."""

    seq: int
    base: int
    event: Told


# What a host says


class Hello(NamedTuple):
    """Who speaks. `epoch` is a random id of this run of the relay, which began at a time; `host_key` is the public key
    that signs. Times are the host's, in epoch seconds."""

    protocol: tuple[int, int]
    agentwatch: str
    host: str
    host_key: str
    epoch: str
    began_at: float
    now: float
    workspaces: tuple[Workspace, ...]


class Observed(NamedTuple):
    """What was observed after the number `after`, up to `upto`: who has all up to `after` then has all up to `upto`.
    Who does not may take it all the same: the entries say themselves where they belong. `at` is the host's time."""

    workspace: str
    epoch: str
    after: int
    upto: int
    at: float
    items: tuple[Item, ...]


class Reset(NamedTuple):
    """Forget all that was told of a workspace: what follows, up to `upto`, is everything."""

    workspace: str
    epoch: str
    upto: int


class Standing(NamedTuple):
    """How well the host sees a workspace, with all that cannot be read there. `number` grows with each in an epoch.
    `settled`: all that was there at first has been told."""

    workspace: str
    epoch: str
    number: int
    health: Health
    settled: bool


class Mark(NamedTuple):
    """How far a book is: its last number, and a digest of all that is in it; and the number of the last standing."""

    seq: int
    digest: str
    standing: int = 0


class Beat(NamedTuple):
    """The relay lives. `echo` has, by the id of a screen, what that screen said last as `Watch.sent`: only who has
    heard it just now can say it. `now` is the host's time. It comes every few seconds, and after each `Watch`."""

    epoch: str
    now: float
    marks: Mapping[str, Mark]
    echo: Mapping[str, float]


class Result(NamedTuple):
    """What became of a decision that was asked for. `record` is the envelope in the host's ledger."""

    workspace: str
    decision_id: str
    request_sha256: str
    outcome: str
    words: str
    record: str | None = None


class Reply(NamedTuple):
    """A part of the answer to `Ask`: number `part`, from 0, of `parts`; with none, there is no such text."""

    id: str
    part: int = 0
    parts: int = 0
    data: str = ""


# What a screen says


class Cursor(NamedTuple):
    """Up to which number of an epoch a screen has everything."""

    epoch: str
    seq: int


class Watch(NamedTuple):
    """A screen is there. `screen` is a random id; `sent` grows with each, and comes back in `Beat.echo`. It `greets`
    where it wants a hello. Somebody sees the workspaces that are `shown`. Of those with a cursor the screen lacks what
    comes after it; of those to `resync` it wants everything, whatever it has."""

    screen: str
    sent: float
    greets: bool = False
    shown: tuple[str, ...] = ()
    cursors: Mapping[str, Cursor] = MappingProxyType({})
    resync: tuple[str, ...] = ()


class Decide(NamedTuple):
    """Record this decision: the exact bytes of the operator's signed request, as text."""

    workspace: str
    request: str


Wish = Literal["text", "transcript", "wait", "read"]


class Ask(NamedTuple):
    """Somebody at this screen looks at a text: the one with the digest `key`, or the transcript of the run with this
    key, and there at the `place`. Or waits for the decision about the task `key`, in the attempt `place` ("": the
    latest); or has read the decision with this id. `id` is random."""

    id: str
    screen: str
    workspace: str
    what: Wish
    key: str
    place: str = ""


Frame = Hello | Observed | Reset | Standing | Beat | Result | Reply | Watch | Decide | Ask
_KINDS: Final[Mapping[str, Any]] = {
    one.__name__.lower(): one for one in (Hello, Observed, Reset, Standing, Beat, Result, Reply, Watch, Decide, Ask)
}


def to_bytes(frame: Frame) -> bytes:
    """One line without its end. Raises ValueError where it is too large, or holds what JSON cannot say."""
    kind = type(frame).__name__.lower()
    data = _line({"kind": kind, **encoder(_KINDS[kind])(frame)})
    if len(data) > LARGEST:
        raise ValueError(f"{len(data):,} bytes are too large for a message")
    return data


def in_pieces(frame: Observed) -> Iterator[bytes]:
    """The same as `to_bytes`, in as many frames as it takes for each to be of a size that travels well."""
    encode = encoder(Item)
    texts: list[bytes] = []
    size, after, last = 0, frame.after, len(frame.items) - 1
    for number, item in enumerate(frame.items):
        texts.append(_line(encode(item)))
        size += len(texts[-1])
        if number == last or size >= ENOUGH:
            upto = frame.upto if number == last else item.seq
            head = to_bytes(frame._replace(after=after, upto=upto, items=()))
            yield head.removesuffix(b"[]}") + b"[" + b",".join(texts) + b"]}"
            texts, size, after = [], 0, upto


def frame_of(data: bytes) -> Frame | None:
    """The frame in a message, None where its kind is not known here. Raises ValueError with the reason; VersionError
    for a hello in another protocol."""
    if len(data) > LARGEST:
        raise ValueError(f"{len(data):,} bytes are too large for a message")
    try:
        fields = json.loads(data, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("a message is nested too deeply") from error
    if type(fields) is not dict:
        raise ValueError("a message is no object")
    kind = fields.get("kind")
    shape: Any = _KINDS.get(kind) if type(kind) is str else None
    if shape is Hello:
        _check(fields.get("protocol"), fields.get("agentwatch"))
    frame: Frame | None = None if shape is None else decoder(shape)(fields)
    if isinstance(frame, Watch | Ask) and _SCREEN.fullmatch(frame.screen) is None:
        raise ValueError("no screen has such an id")
    return frame


def _line(fields: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        # Half a character, which an agent wrote.
        return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode()


def _check(protocol: object, version: object) -> None:
    """Raises VersionError where we do not understand each other."""
    theirs = protocol if isinstance(protocol, list) and len(protocol) == len(PROTOCOL) else None
    if theirs is None or not all(type(one) is int for one in theirs):
        raise ValueError("a hello does not say its protocol")
    if theirs[0] != PROTOCOL[0] or abs(theirs[1] - PROTOCOL[1]) > 1:
        (major, minor), older = PROTOCOL, "there" if tuple(theirs) < PROTOCOL else "here"
        raise VersionError(
            f"the relay there speaks protocol {theirs[0]}.{theirs[1]} (agentwatch {str(version)[:20]}), and this"
            f" agentwatch {major}.{minor}: update agentwatch {older}"
        )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
