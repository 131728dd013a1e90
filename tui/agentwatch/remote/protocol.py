"""The messages between a relay and a screen: models as JSON, and those of a host signed with its key.

A signed message is the signature (64 bytes), the id of the key (32 bytes) and the packed frame: `=` and the frame as it
is, or `z` and the frame compressed. The signature covers the kind of thing that it is, so that none passes for a
decision, nor the other way round. Nothing is unpacked before its signature was checked.
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
LARGEST = 8 * 1024 * 1024  # Bytes of a frame
ENOUGH = 256 * 1024  # Bytes up to which several entries share a frame
EARLIEST = -62_135_596_800.0
LATEST = 253_402_300_800.0  # The years 1 and 10000, in seconds since the epoch

_PAYLOAD_TYPE = "application/vnd.agentwatch.frame.v1"
_SIGNATURE = 64
_HEAD = _SIGNATURE + 32
LARGEST_MESSAGE = LARGEST + _HEAD + 1024
_WORTH = 1024  # Bytes from which on compressing saves something


class VersionError(ValueError):
    """The other side speaks another protocol. The message says which, and what to do."""


class Standing(NamedTuple):
    """How well the host sees a workspace; `settled`: all that was there at first has been told."""

    health: Health
    settled: bool


# The observations that a host tells; the rest is the operator's own and never travels.
Observation = Seen | Gone | Unreadable | Checked | Ran | Decided | Requested


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, ser_json_inf_nan="constants")


class Entry(_Model):
    """One thing that is told of a workspace: exactly one of these."""

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
        # The return of a session stands in its run: a host tells of no other.
        return event._replace(stored=False) if isinstance(event, Seen) else event


class Workspace(_Model):
    """One that a host relays, judged by its `rules`. `id` is that of its state directory there, `path`, `name` and
    `summary` are the host's words, `asked` the paths by which the relay was told of it; it was first watched at
    `watched_at`."""

    id: str
    path: str
    name: str
    rules: Rules = Rules()
    asked: tuple[str, ...] = ()
    summary: str = ""
    watched_at: float = 0.0

    def is_called(self, name: str) -> bool:
        """Whether somebody who asks for this name means it; "" means any."""
        return name in ("", self.id, self.name, self.path, *self.asked)


class Hello(_Model):
    """The identity of a speaker. `epoch` is a random id of this run of the relay, which began at a time; `host_key` is
    the public key that signs, `echo` as in `Beat`, `missing` why paths that were asked for are not relayed."""

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
    """The entries after a number of the log up to another one; or, with `parts`, this part of all that counts up to
    that number, which takes the place of what was told before."""

    kind: Literal["observed"] = "observed"
    workspace: str
    epoch: str
    after: int
    upto: int
    part: int = 0
    parts: int = 0
    entries: tuple[Entry, ...] = ()


class Beat(_Model):
    """The relay lives, and all logs are told up to these numbers. `echo` has, by the id of a screen, what that screen
    said last as `Watch.sent`: only who has heard it just now can say it. `now` is the host's time, `deciders` are the
    ids of the keys whose owners may decide there; None: it does not say so."""

    kind: Literal["beat"] = "beat"
    epoch: str
    now: float
    seqs: dict[str, int] = {}
    echo: dict[str, float] = {}
    deciders: tuple[str, ...] | None = None


class Outcome(StrEnum):
    """The fate of a decision that was asked for. All but the last stay so."""

    RECORDED = "recorded"
    DECIDED_OTHERWISE = "decided otherwise"
    RETURN_CHANGED = "return changed"
    GONE = "gone"  # Nobody waits for the answer any more
    NOT_ALLOWED = "not allowed"
    EXPIRED = "expired"
    NOT_TRUSTED = "not trusted"
    REFUSED = "refused"  # It is for another host, or cannot be read
    FAILED = "failed"  # The disk, or the key of the host: it is right to send it again

    @property
    def is_final(self) -> bool:
        return self is not Outcome.FAILED


class Result(_Model):
    """The outcome of a decision that was asked for. `record` is the envelope in the host's ledger."""

    kind: Literal["result"] = "result"
    workspace: str
    decision_id: str
    request_sha256: str
    outcome: Outcome
    words: str
    record: str | None = None


class Reply(_Model):
    """A part of the answer to `Ask`: number `part`, from 0, of `parts`; with none, there is no such text."""

    kind: Literal["reply"] = "reply"
    id: str
    part: int = 0
    parts: int = 0
    data: str = ""


_Screen = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]{1,64}\z")]  # Becomes a part of the subjects of messages


class Watch(_Model):
    """A screen is there. `screen` is a random id; `sent` grows with each, and comes back as echo. `epoch` is the run of
    the relay that it knows, of which it `lacks` all of some workspaces. Somebody sees those that are `shown`."""

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
    """Somebody looks at a text: the one with the digest `key`, or the transcript of the run with this key, and there at
    the `place`. `id` is random."""

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
    """An event as it is told, None where it is the operator's own. Raises ValueError where no screen would take it."""
    if not isinstance(event, (*get_args(Observation), Standing)):
        return None
    entry = Entry.model_construct(**{type(event).__name__.lower(): event})  # type: ignore[arg-type]
    return Entry.model_validate_json(_limited(entry.model_dump_json(exclude_defaults=True).encode(), LARGEST - ENOUGH))


def _limited(data: bytes, most: int = LARGEST) -> bytes:
    if len(data) > most:
        raise ValueError(f"{len(data):,} bytes are too large for a message")
    return data


def to_bytes(frame: Frame) -> bytes:
    """A frame as JSON. Raises ValueError where it is too large, or holds half a character."""
    body = frame.model_dump_json(exclude_defaults=True).encode()
    return _limited(b'{"kind":"%b",' % frame.kind.encode() + body[1:])


def read_frame(data: bytes) -> Frame:
    """The frame in a message. Raises ValueError with the reason; VersionError for a hello in another protocol."""
    try:
        return _FRAMES.validate_json(_limited(data))
    except ValidationError:
        with suppress(ValidationError):
            hello = _Greeting.model_validate_json(data)
            if hello.protocol != [*PROTOCOL]:
                raise VersionError(
                    f"the relay there (agentwatch {hello.agentwatch[:20]}) speaks another protocol than this agentwatch"
                    f" ({__version__}): update the older one"
                ) from None
        raise


def pieces(entries: Sequence[Entry]) -> Iterator[tuple[Entry, ...]]:
    """The same entries in as many groups as it takes for each to be of a size that travels well."""
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


def pack(frame: Frame) -> bytes:
    """A frame for the way, compressed where that saves something."""
    data = to_bytes(frame)
    return b"z" + zlib.compress(data, 1) if len(data) >= _WORTH else b"=" + data


def unpack(packed: bytes) -> Frame:
    """The frame that was packed. Raises ValueError; it never takes much more memory than the largest frame."""
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


def signed(frame: Frame, key: SigningKey) -> bytes:
    """The message by which a host says this frame."""
    packed = pack(frame)
    return key.private.sign(to_sign(packed, _PAYLOAD_TYPE)) + bytes.fromhex(key.public.keyid) + packed


class Verifier:
    """Takes messages of one host, signed with its `key`. Where that is not known, `accept` is asked about the key of
    the first hello: it says why that is refused, "" where it is not."""

    def __init__(self, label: str, key: PublicKey | None, accept: Callable[[PublicKey], str]):
        self.key = key
        self.why = ""  # Why messages are not believed, and what to do
        self._label, self._accept = label, accept
        self._was_heard = False

    def read(self, message: bytes) -> Frame | None:
        """The frame in a message; None where the host cannot have said it."""
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
            # It is believed that this is the host's key once it has signed who it is with it.
            first = unpack(packed)
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
            return unpack(packed)
        if why := self._accept(key):
            self.why = f"is not believed: {why}"
            return None
        self.key = key
        return first
