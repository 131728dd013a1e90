"""The messages between a relay and a screen: models as JSON, signed by the host's key if the host sends them.

A signed message is the signature (64 bytes), the id of the key (32 bytes) and the packed frame: `=` and the frame, or
`z` and the compressed frame. The signature covers a type, so that no message passes for a decision, or the other way
round. Nothing is unpacked before its signature was checked.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agentwatch import __version__
from agentwatch.decisions.envelope import PublicKey, SigningKey, holds, parse_public, to_sign
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.delegation.events import Checked, Decided, Event, Gone, Ran, Requested, Rules, Seen, Unreadable
from agentwatch.sources import Health

PROTOCOL: Final = (4, 0)
LARGEST = 8 * 1024 * 1024  # bytes of a frame
ENOUGH = 256 * 1024  # bytes up to which several entries share a frame
EARLIEST = -62_135_596_800.0
LATEST = 253_402_300_800.0  # the years 1 and 10000, in seconds since the epoch

_PAYLOAD_TYPE = "application/vnd.agentwatch.frame.v1"
_SIGNATURE = 64
_HEAD = _SIGNATURE + 32
LARGEST_MESSAGE = LARGEST + _HEAD + 1024
_WORTH = 1024  # from so many bytes on, compressing saves something


class VersionError(ValueError):
    """The other side speaks another protocol; the message names both versions and the remedy."""


class Standing(NamedTuple):
    """The health of a host's view of a workspace; `settled`: everything that was there at first has been sent."""

    health: Health
    settled: bool


# The events that a host sends; others are the operator's own and never sent.
Observation = Seen | Gone | Unreadable | Checked | Ran | Decided | Requested


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, ser_json_inf_nan="constants")


class Entry(_Model):
    """One event of a workspace: exactly one field is set."""

    seen: Seen | None = None
    gone: Gone | None = None
    unreadable: Unreadable | None = None
    checked: Checked | None = None
    ran: Ran | None = None
    decided: Decided | None = None
    requested: Requested | None = None
    standing: Standing | None = None

    @property
    def event(self) -> Observation | Standing | None:
        event = next((one for _, one in self if one is not None), None)
        # A session's return is part of its run: a host sends no other stored return.
        return event._replace(stored=False) if isinstance(event, Seen) else event


class Workspace(_Model):
    """A workspace that a host relays, judged by its `rules` and first watched at `watched_at`. `id` is that of its
    state directory there; `path`, `name` and `summary` are the host's words; `asked` are the paths given to the
    relay."""

    id: str
    path: str
    name: str
    rules: Rules = Rules()
    asked: tuple[str, ...] = ()
    summary: str = ""
    watched_at: float = 0.0

    def is_called(self, name: str) -> bool:
        """Tell whether a name means this workspace; "" means any."""
        return name in ("", self.id, self.name, self.path, *self.asked)


class Hello(_Model):
    """The identity of a relay and its workspaces. `epoch` is a random id of this run of the relay, which began at
    `began_at`; `host_key` is the public key that signs; `echo` is as in `Beat`; `missing` gives reasons why requested
    paths are not relayed."""

    kind: Literal["hello"] = "hello"
    protocol: tuple[Literal[4], Literal[0]]
    agentwatch: str
    host: str
    host_key: str
    epoch: str
    began_at: float
    now: float
    echo: dict[str, float] = {}
    workspaces: tuple[Workspace, ...] = ()
    missing: dict[str, str] = {}


class Observed(_Model):
    """The entries between two numbers of the log; or, with `parts`, one part of all entries that count up to `upto`.
    All parts together replace everything that was sent before."""

    kind: Literal["observed"] = "observed"
    workspace: str
    epoch: str
    after: int
    upto: int
    part: int = 0
    parts: int = 0
    entries: tuple[Entry, ...] = ()


class Beat(_Model):
    """A sign that the relay lives and has sent all logs up to these numbers. `echo` has the last `Watch.sent` of each
    screen by its id, which proves that the beat is fresh. `now` is the host's time, `deciders` are the ids of the keys
    whose owners may decide there; None: not stated."""

    kind: Literal["beat"] = "beat"
    epoch: str
    now: float
    seqs: dict[str, int] = {}
    echo: dict[str, float] = {}
    deciders: tuple[str, ...] | None = None


class Outcome(StrEnum):
    """The outcome of a requested decision; all outcomes but the last are final."""

    RECORDED = "recorded"
    DECIDED_OTHERWISE = "decided otherwise"
    RETURN_CHANGED = "return changed"
    GONE = "gone"  # nobody waits for the answer any more
    NOT_ALLOWED = "not allowed"
    EXPIRED = "expired"
    NOT_TRUSTED = "not trusted"
    REFUSED = "refused"  # it is for another host, or unreadable
    FAILED = "failed"  # the host's disk or key failed: sending it again is right

    @property
    def is_final(self) -> bool:
        return self is not Outcome.FAILED


class Result(_Model):
    """The result of a requested decision; `record` is the envelope in the host's ledger."""

    kind: Literal["result"] = "result"
    workspace: str
    decision_id: str
    request_sha256: str
    outcome: Outcome
    words: str
    record: str | None = None


class Reply(_Model):
    """A part of the answer to `Ask`: number `part` (from 0) of `parts`; if `parts` is 0, there is no such text."""

    kind: Literal["reply"] = "reply"
    id: str
    part: int = 0
    parts: int = 0
    data: str = ""


_Screen = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]{1,64}\z")]  # becomes a part of the subjects of messages


class Watch(_Model):
    """A sign that a screen is there; `screen` is a random id, `sent` grows with each message and returns as `echo`.
    `epoch` is the known run of the relay; the screen `lacks` all entries of some workspaces. Those `shown` are seen."""

    kind: Literal["watch"] = "watch"
    screen: _Screen
    sent: float
    epoch: str = ""
    shown: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


class Decide(_Model):
    """Record this decision: the exact bytes of the operator's signed request, as text."""

    kind: Literal["decide"] = "decide"
    screen: _Screen
    workspace: str
    request: str


Wish = Literal["text", "transcript"]


class Ask(_Model):
    """A question for a text with the digest `key`, or for the transcript of that run at the `place`; `id` is random."""

    kind: Literal["ask"] = "ask"
    id: str
    screen: _Screen
    workspace: str
    what: Wish
    key: str
    place: str = ""


Frame = Hello | Observed | Beat | Result | Reply | Watch | Decide | Ask
_FRAMES = TypeAdapter(Annotated[Frame, Field(discriminator="kind")])


class _Greeting(BaseModel):
    """A hello of any version."""

    kind: Literal["hello"]
    protocol: Any
    agentwatch: str


def entry_of(event: Event | Standing) -> Entry | None:
    """Return an event as an entry, None if it is never sent; raise ValueError if no screen would accept it."""
    if not isinstance(event, (*get_args(Observation), Standing)):
        return None
    entry = Entry.model_construct(**{type(event).__name__.lower(): event})  # type: ignore[arg-type]
    return Entry.model_validate_json(
        _require_size(entry.model_dump_json(exclude_defaults=True).encode(), LARGEST - ENOUGH)
    )


def _require_size(data: bytes, most: int = LARGEST) -> bytes:
    if len(data) > most:
        raise ValueError(f"{len(data):,} bytes are too large for a message")
    return data


def frame_to_json(frame: Frame) -> bytes:
    """Return a frame as JSON; raise ValueError if it is too large or holds a lone surrogate."""
    body = frame.model_dump_json(exclude_defaults=True).encode()
    return _require_size(b'{"kind":"%b",' % frame.kind.encode() + body[1:])


def read_frame(data: bytes) -> Frame:
    """Return the frame in a message; raise ValueError with the reason, VersionError for a hello of another protocol."""
    try:
        return _FRAMES.validate_json(_require_size(data))
    except ValidationError:
        with suppress(ValidationError):
            hello = _Greeting.model_validate_json(data)
            if hello.protocol != [*PROTOCOL]:
                raise VersionError(
                    f"the relay there (agentwatch {hello.agentwatch[:20]}) speaks another protocol than this agentwatch"
                    f" ({__version__}): update the older one"
                ) from None
        raise


def group_entries(entries: Sequence[Entry]) -> Iterator[tuple[Entry, ...]]:
    """Yield the entries in groups of a suitable message size."""
    some: list[Entry] = []
    size = 0
    for entry in entries:
        some.append(entry)
        size += len(entry.model_dump_json(exclude_defaults=True))
        if size >= ENOUGH:
            yield tuple(some)
            some, size = [], 0
    if some:
        yield tuple(some)


# Signatures


def pack_frame(frame: Frame) -> bytes:
    """Return a frame packed for sending, compressed if that saves something."""
    data = frame_to_json(frame)
    return b"z" + zlib.compress(data, 1) if len(data) >= _WORTH else b"=" + data


def unpack_frame(packed: bytes) -> Frame:
    """Return the frame that was packed, in little more memory than the largest frame takes; raise ValueError."""
    if packed[:1] == b"=":
        return read_frame(packed[1:])
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed[1:], LARGEST + 1)
    except zlib.error as error:
        raise ValueError("a message cannot be unpacked") from error
    if packed[:1] != b"z" or not inflater.eof or inflater.unused_data:
        raise ValueError("a message cannot be unpacked: it is cut off, or too large")
    return read_frame(data)


def sign_frame(frame: Frame, key: SigningKey) -> bytes:
    """Return the message of a host with this frame."""
    packed = pack_frame(frame)
    return key.private.sign(to_sign(packed, _PAYLOAD_TYPE)) + bytes.fromhex(key.public.keyid) + packed


class Verifier:
    """Accepts messages of one host, signed with its `key`; if that is None, `accept` judges the first hello's key.
    `accept` returns the reason why it refuses a key, or ""."""

    def __init__(self, label: str, key: PublicKey | None, accept: Callable[[PublicKey], str]):
        self.key = key
        self.why = ""  # why messages are not believed, and the remedy
        self._label, self._accept = label, accept
        self._was_heard = False

    def read(self, message: bytes) -> Frame | None:
        """Return the frame in a message; None if it does not come from the host."""
        try:
            frame = self._read(message[:_SIGNATURE], message[_SIGNATURE:_HEAD].hex(), message[_HEAD:])
        except VersionError as error:
            self.why = f"is not understood: {error}"
            return None
        except (ValueError, KeyProblemError):
            return None
        self._was_heard |= frame is not None
        if isinstance(frame, Hello):
            self.why = ""
        return frame

    def _read(self, signature: bytes, keyid: str, packed: bytes) -> Frame | None:
        if not 0 < len(packed) <= LARGEST_MESSAGE:
            raise ValueError("a message is not in the form of a signed one")
        key, first = self.key, None
        if key is None:
            # A hello that is signed with the key that it names proves that the host has that key.
            first = unpack_frame(packed)
            if not isinstance(first, Hello):
                return None
            key = parse_public(first.host_key)
        elif keyid != key.keyid and not self._was_heard:
            self.why = (
                "is not believed: it signs with another key than it had before, or its agentwatch is older; update"
                f" agentwatch there, or if you know of a new key: `agentwatch keys distrust {self._label} --host`, then"
                " start again"
            )
        if keyid != key.keyid or not holds(signature, to_sign(packed, _PAYLOAD_TYPE), key):
            raise ValueError("the signature of a message does not hold: it is a fake, or was changed")
        if first is None:
            return unpack_frame(packed)
        if why := self._accept(key):
            self.why = f"is not believed: {why}"
            return None
        self.key = key
        return first
