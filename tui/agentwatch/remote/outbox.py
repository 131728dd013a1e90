"""What this operator has signed for a host that has not said yet what became of it, a file each.

    <state directory>/outbox/                  0700
        <sha256 of what was signed>.signed     0600: it was never sent
        <sha256 of what was signed>.sent       0600: it may be recorded

It outlives the screen, so that the next one asks again, and says what is true.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.decisions.envelope import LARGEST, EnvelopeError, Trust
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.record import SignedRequest, read_request
from agentwatch.disk import DISK, Disk, PrivateDirectory
from agentwatch.text import quoted

NAME: Final = "outbox"
_SIGNED: Final = ".signed"
_SENT: Final = ".sent"
_DIGITS: Final = 64


class Letter(NamedTuple):
    """What was signed, and whether it was sent."""

    sha256: str
    text: str
    request: SignedRequest
    sent: bool = False

    @property
    def what(self) -> str:
        """What was decided about what, in a few words."""
        asked = self.request.asked
        return f"{asked.action} of {quoted(asked.task_id, 100)}"

    def waits(self, label: str, until: str) -> str:
        """What is true as long as the host, which has this label, has not answered; it may record it until then."""
        if not self.sent:
            way = f"it is sent once {label} can be reached, until {until}"
            return f"{self.what} is queued and not recorded: {way}; `decide TASK PATH --withdraw` takes it back."
        return (
            f"Nobody knows yet whether {self.what} is recorded: {label} has not said so. It is asked again, and may"
            f" record it until {until}; to decide the same again is safe, it counts once."
        )


class Outbox:
    """The letters of one workspace. Every method raises OSError. Any thread and any process may use it."""

    def __init__(self, state: Path, disk: Disk = DISK) -> None:
        self._place = PrivateDirectory(state / NAME, disk)

    def read(self, trust: Trust) -> list[Letter]:
        """All, by the time that they were signed. Those that this operator has not signed are none."""
        found = []
        try:
            with self._place.open() as directory:
                for name in directory.names():
                    sha256, ending = name[:_DIGITS], name[_DIGITS:]
                    if ending not in (_SIGNED, _SENT):
                        continue
                    with suppress(FileNotFoundError, EnvelopeError, RecordError):
                        text = directory.read(name, LARGEST).decode("ascii", "replace")
                        found.append(Letter(sha256, text, read_request(text, trust)[0], ending == _SENT))
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda one: (one.request.asked.created_at, one.sha256))

    def put(self, text: str, request: SignedRequest) -> Letter:
        """Keep what was signed, on disk, before it is sent."""
        letter = Letter(hashlib.sha256(text.encode()).hexdigest(), text, request)
        with self._place.make() as directory:
            directory.replace(f"{letter.sha256}{_SIGNED}", text.encode())
        return letter

    def note_sent(self, letter: Letter) -> Letter | None:
        """It is about to be sent: from now on it may be recorded. None where it was taken back: then it must not be."""
        if letter.sent:
            return letter
        signed, sent = f"{letter.sha256}{_SIGNED}", f"{letter.sha256}{_SENT}"
        with self._place.open() as directory:
            try:
                directory.move(signed, directory, sent)
            except FileNotFoundError:
                # Another screen may have sent it.
                if sent not in directory.names():
                    return None
        return letter._replace(sent=True)

    def take_back(self, letter: Letter) -> bool:
        """Whether it was never sent: then it never will be."""
        try:
            with self._place.open() as directory:
                directory.remove(f"{letter.sha256}{_SIGNED}")
        except FileNotFoundError:
            return False
        return True

    def drop(self, sha256: str) -> None:
        """The host has said what became of it, or it was never sent."""
        with suppress(FileNotFoundError), self._place.open() as directory:
            for ending in (_SIGNED, _SENT):
                with suppress(FileNotFoundError):
                    directory.remove(f"{sha256}{ending}")
