"""Defines the messages (frames) between a relay and a screen. Frames are JSON. A relay signs its frames.

A signed message consists of the signature (64 bytes), the id of the key (32 bytes) and the packed frame. A packed frame
is `=` and the frame, or `z` and the compressed frame. The signature also covers the type of the message, so that nobody
can pass off a message as a decision, or a decision as a message. A frame is unpacked only after its signature has been
checked. The only exception is the first `Hello` of a new host.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agentwatch import __version__
from agentwatch.decisions.envelope import PublicKey, SigningKey, bytes_to_sign, is_valid_signature, parse_public
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.delegation.events import Checked, Decided, Event, Gone, Ran, Requested, Rules, Seen, Unreadable
from agentwatch.sources import Health

PROTOCOL: Final = (4, 0)
LARGEST = 8 * 1024 * 1024  # the most bytes of a frame
ENOUGH = 256 * 1024  # no more entries are added to a frame that has so many bytes
EARLIEST = -62_135_596_800.0
LATEST = 253_402_300_800.0  # the years 1 and 10000 in epoch seconds

_PAYLOAD_TYPE = "application/vnd.agentwatch.frame.v1"
_SIGNATURE = 64
_HEAD = _SIGNATURE + 32
LARGEST_MESSAGE = LARGEST + _HEAD + 1024
_WORTH = 1024  # a frame with fewer bytes is not compressed


class VersionError(ValueError):
    """The other side uses another protocol. The message names the versions and the remedy."""


class Standing(NamedTuple):
    """The health of a workspace. `settled` says that the host has read the whole workspace and sent all events."""

    health: Health
    settled: bool


# The events that a host sends. All other events arise only on the operator's machine.
Observation = Seen | Gone | Unreadable | Checked | Ran | Decided | Requested


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, ser_json_inf_nan="constants")


class Entry(_Model):
    """One event in the log of a workspace. Exactly one field is set."""

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
        # A host sends a return from a session store within a `Ran`. So a `Seen` is about a file and never `stored`.
        return event._replace(stored=False) if isinstance(event, Seen) else event


class Workspace(_Model):
    """A workspace that a host relays. `id` names its state directory. `watched_at` is when the host first watched it.
    `path`, `name` and `summary` come from the host (untrusted). `asked` are the paths on the relay's command line that
    mean the workspace."""

    id: str
    path: str
    name: str
    rules: Rules = Rules()
    asked: tuple[str, ...] = ()
    summary: str = ""
    watched_at: float = 0.0

    def is_called(self, name: str) -> bool:
        """Tell whether a name means this workspace. The name "" means any workspace."""
        return name in ("", self.id, self.name, self.path, *self.asked)


class Hello(_Model):
    """Introduces a relay, and lists its workspaces. `epoch` is a random id. It was made at `began_at`, when the relay
    started or last found more workspaces. `host_key` is the public key of the host. `Beat` explains `echo`. `missing`
    maps each path that is not relayed to the reason."""

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
    """Sends the entries of a log that have numbers above `after`, up to `upto`. If `parts` is not 0, this is part
    `part` of the whole log. The whole log replaces all entries that were sent before."""

    kind: Literal["observed"] = "observed"
    workspace: str
    epoch: str
    after: int
    upto: int
    part: int = 0
    parts: int = 0
    entries: tuple[Entry, ...] = ()


class Beat(_Model):
    """Says that the relay is alive, and has sent each log up to the number in `seqs`. `echo` has the last `Watch.sent`
    of each screen, which proves that the beat is new. `now` is the time on the host. `deciders` are the ids of the keys
    whose decisions the host accepts, or None if unknown."""

    kind: Literal["beat"] = "beat"
    epoch: str
    now: float
    seqs: dict[str, int] = {}
    echo: dict[str, float] = {}
    deciders: tuple[str, ...] | None = None


class Outcome(StrEnum):
    """The outcome of `Decide`, which asks a host to record a decision. Every outcome except FAILED is final."""

    RECORDED = "recorded"
    DECIDED_OTHERWISE = "decided otherwise"
    RETURN_CHANGED = "return changed"
    GONE = "gone"  # no program waits for this answer any more
    NOT_ALLOWED = "not allowed"
    EXPIRED = "expired"
    NOT_TRUSTED = "not trusted"
    REFUSED = "refused"  # the signed text is meant for another host, or is unreadable
    FAILED = "failed"  # the disk or the key of the host failed; the screen may send `Decide` again

    @property
    def is_final(self) -> bool:
        return self is not Outcome.FAILED


class Result(_Model):
    """Answers `Decide`. `record` is the text of the decision's file in the ledger of the host, or None."""

    kind: Literal["result"] = "result"
    workspace: str
    decision_id: str
    request_sha256: str
    outcome: Outcome
    words: str
    record: str | None = None


class Reply(_Model):
    """One part of the answer to `Ask`: number `part` (from 0) of `parts`. `parts` is 0 if the host lacks the text."""

    kind: Literal["reply"] = "reply"
    id: str
    part: int = 0
    parts: int = 0
    data: str = ""


_Screen = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]{1,64}\z")]  # part of the subject of a NATS message


class Watch(_Model):
    """Says that a screen is connected. `screen` is its random id. `sent` is the time of sending. It comes back as
    `echo`. `epoch` is from the last `Hello`. `shown` are the workspaces on screen. `lacks` are the logs it needs."""

    kind: Literal["watch"] = "watch"
    screen: _Screen
    sent: float
    epoch: str = ""
    shown: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


class Decide(_Model):
    """Asks the host to record a decision. `request` is the text that the operator signed."""

    kind: Literal["decide"] = "decide"
    screen: _Screen
    workspace: str
    request: str


Wish = Literal["text", "transcript"]


class Ask(_Model):
    """Asks for a text or a part of a transcript. `key` is the text's digest or names the run. `place` is the part."""

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
    """A hello of any version of the protocol."""

    kind: Literal["hello"]
    protocol: Any
    agentwatch: str


def entry_of(event: Event | Standing) -> Entry | None:
    """Return the entry for an event, or None if a host does not send it. Raise ValueError if the event is invalid."""
    if not isinstance(event, (*get_args(Observation), Standing)):
        return None
    entry = Entry.model_construct(**{type(event).__name__.lower(): event})  # type: ignore[arg-type]
    data = entry.model_dump_json(exclude_defaults=True).encode()
    return Entry.model_validate_json(_require_size(data, LARGEST - ENOUGH))


def _require_size(data: bytes, most: int = LARGEST) -> bytes:
    if len(data) > most:
        raise ValueError(f"{len(data):,} bytes are too large for a message")
    return data


def frame_to_json(frame: Frame) -> bytes:
    """Return a frame as JSON. Raise ValueError if it is too large or has invalid text."""
    body = frame.model_dump_json(exclude_defaults=True).encode()
    return _require_size(b'{"kind":"%b",' % frame.kind.encode() + body[1:])


def read_frame(data: bytes) -> Frame:
    """Parse a frame. Raise VersionError if a relay uses another protocol. Raise ValueError if the frame is invalid."""
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
    """Yield the entries in groups. Each group fits into one message."""
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
    """Return a frame as bytes for sending, compressed if it is large."""
    data = frame_to_json(frame)
    return b"z" + zlib.compress(data, 1) if len(data) >= _WORTH else b"=" + data


def unpack_frame(packed: bytes) -> Frame:
    """Return the frame in packed bytes. Raise ValueError if the frame is invalid or too large."""
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
    """Return a frame as a signed message."""
    packed = pack_frame(frame)
    return key.private.sign(bytes_to_sign(packed, _PAYLOAD_TYPE)) + bytes.fromhex(key.public.keyid) + packed


class Verifier:
    """Checks that messages are signed with the `key` of a host. For a new host, `key` is None: then `accept` is called
    with the key from the first hello. It returns "", or the reason why the key is refused."""

    def __init__(self, label: str, key: PublicKey | None, accept: Callable[[PublicKey], str]):
        self.key = key
        self.why = ""  # why the messages of the host are not accepted, and the remedy
        self._label, self._accept = label, accept
        self._was_heard = False

    def read(self, message: bytes) -> Frame | None:
        """Return the frame in a message. Return None if the host has not signed the message."""
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
            # A hello proves that the host has the key: the hello names the key, and is signed with it.
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
        if keyid != key.keyid or not is_valid_signature(signature, bytes_to_sign(packed, _PAYLOAD_TYPE), key):
            raise ValueError("the signature of a message does not hold: it is a fake, or was changed")
        if first is None:
            return unpack_frame(packed)
        if why := self._accept(key):
            self.why = f"is not believed: {why}"
            return None
        self.key = key
        return first
