"""The terminal: what is written to it, the app that runs on it, and an end of the process that needs no event loop.

The process must end when the terminal is gone or a signal asks for it, even if the event loop is blocked: by a write to
a terminal that nobody reads, or by an editor that still runs. A file descriptor whose other end is gone stays readable
for ever. So a thread of its own watches the terminal and ends the process.
"""

from __future__ import annotations

import gc
import math
import os
import select
import signal
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from rich.segment import Segment
from textual.color import Color
from textual.drivers import linux_driver
from textual.filter import LineFilter

from agentwatch.state import remove_scratch_directories, set_attended

if TYPE_CHECKING:
    from agentwatch.app.app import AgentwatchApp

_ASKING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

_GONE_SECONDS = 0.6  # how long the app may take to end after its terminal is gone

_ASKED_SECONDS = 1.5  # how long the app may take to end and to restore the terminal after a signal

# Textual writes this when it ends, to restore mouse, paste, wrapping, keyboard, screen buffer, cursor and focus.
_GIVE_BACK = b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"

_ARENA_MAX = -8  # M_ARENA_MAX of `malloc.h`

KEEP_TITLE = "\x1b[22;0t"  # makes the terminal push its title on a stack, if it has one

# Sets an empty title, then pops the stack: many terminals without a stack show their default for an empty title.
GIVE_TITLE_BACK = "\x1b]0;\x1b\\\x1b[23;0t"


# Textual's key reader, and so the app, would end at the first byte that is not UTF-8: from Alt with a letter in an
# eight-bit terminal, pasted text in another encoding, or a bad line. Replaced by `�`, the byte does nothing as a key,
# and in a text it shows that something was lost.
linux_driver.getincrementaldecoder = lambda encoding: partial(  # type: ignore[attr-defined]
    getincrementaldecoder(encoding), "replace"
)


class Terminal(linux_driver.LinuxDriver):
    """Textual's driver, except that output which cannot be written is dropped: an error would end the writing thread,
    for which all drawing would then wait for ever."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Private names of Textual, here and below: its drivers have no public way to change the file or to see signals.
        self._file = _Dropping(self._file)  # type: ignore[arg-type, assignment]

    def _sigtstp_application(self, *arguments: Any) -> None:
        """Go to the shell, and mark the screen as unattended until the app comes back."""
        set_attended(attended=False)
        super()._sigtstp_application(*arguments)

    def _sigcont_application(self, *arguments: Any) -> None:
        """Come back from the shell; do nothing if not suspended, or a second thread would read the keys."""
        if self._must_signal_resume:
            super()._sigcont_application(*arguments)


class _Dropping:
    def __init__(self, file: TextIO):
        self._file = file
        self.fileno = file.fileno

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()


class TerminalGuard(LineFilter):
    """A second line of defence, so that nothing drawn reaches the terminal as a command.

    Replaces unprintable characters, and removes links, whose addresses would be written unchecked. Text that
    `agentwatch.text` has cleaned, and so made visible in a better way, passes unchanged.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        return [
            segment
            if segment.control or (segment.text.isprintable() and (segment.style is None or segment.style.link is None))
            else _harmless(segment)
            for segment in segments
        ]


def _harmless(segment: Segment) -> Segment:
    text = "".join(
        character if character.isprintable() else " " if character.isspace() else "�" for character in segment.text
    )
    style = segment.style
    return Segment(text, style.update_link(None) if style is not None and style.link else style)


def suspend_all() -> bool:
    """Suspend the process group until the shell wakes it; return False if no shell waits for it.

    The whole group, as a terminal does it: a launcher that waits for this process would otherwise block the shell.
    """
    if os.getpgrp() == os.getsid(0):
        return False
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    return True


@contextmanager
def process_guard(ask: Callable[[], None]) -> Iterator[None]:
    """End the process soon after its terminal is gone or a signal asks for it, from now on.

    `ask` asks the app to end; a thread calls it repeatedly. If the app does not end in time, the process exits, even
    during a scan or in an editor: the system frees the locks, and our files are written atomically.
    """
    watching, asking = os.pipe()
    descriptors = {stream.fileno() for stream in (sys.__stdin__, sys.__stderr__) if stream is not None}
    terminals = {descriptor: _attributes(descriptor) for descriptor in descriptors}
    Thread(target=_watch, args=(watching, terminals, ask), name="agentwatch-ending", daemon=True).start()

    def note(number: int, _frame: FrameType | None) -> None:
        os.write(asking, bytes([number]))

    # Plain handlers, not the event loop's: they also run while the main thread waits for a lock or the system.
    before = {number: signal.signal(number, note) for number in _ASKING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(watching: int, terminals: dict[int, list[Any] | None], ask: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(watching, select.POLLIN)
    for descriptor in terminals:
        # Ask for no events, as the input is for Textual: the system reports a hang-up unasked.
        poll.register(descriptor, 0)
    end, code = math.inf, 128 + signal.SIGHUP
    while time.monotonic() < end:
        for descriptor, event in poll.poll(None if end == math.inf else 50):
            if descriptor == watching:
                code = 128 + os.read(watching, 1)[0]
                end = min(end, time.monotonic() + _ASKED_SECONDS)
                continue
            poll.unregister(descriptor)
            # Ignore other events, such as POLLNVAL from a system that cannot poll a terminal.
            if event & (select.POLLHUP | select.POLLERR):
                end = min(end, time.monotonic() + _GONE_SECONDS)
        if end < math.inf:
            ask()
    for descriptor, attributes in terminals.items():
        with suppress(termios.error, OSError):
            if attributes is not None:
                termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
                # The terminal may still exist: restore it, but without blocking, and undo that as others share it.
                os.set_blocking(descriptor, False)
                try:
                    os.write(descriptor, _GIVE_BACK)
                finally:
                    os.set_blocking(descriptor, True)
    remove_scratch_directories()
    os._exit(code)


def _attributes(descriptor: int) -> list[Any] | None:
    try:
        return termios.tcgetattr(descriptor)
    except termios.error:
        return None


def run(app: AgentwatchApp) -> int:
    """Show the app until the operator leaves, and return the exit code. Needs a terminal. Raises the error with which
    the app's monitor could not be opened."""
    app.when_shown = _collect_garbage
    # Freeze the objects of the first scan: otherwise the collector visits them again and again, which at 10,000 tasks
    # blocks the keys for a tenth of a second.
    app.when_settled = _keep_what_is_there
    app.suit_terminal()
    # Threads that read, check and record give up the interpreter at every system call, and get it back after this time
    # at the latest. With the default of 5 ms, a first scan takes twice as long while the screen follows it.
    sys.setswitchinterval(0.001)
    with _own_title() if app.settings.notify_title else nullcontext(), process_guard(app.ask_to_end):
        app.run()
    if app.failure is not None:
        raise app.failure
    # Leaving sets a return code; if there is none, an exception in a thread of Textual has ended the app.
    code = 1 if app.return_code is None else app.return_code
    if not (app.is_settled or app.is_played):
        # A thread may still load or wait for a database. It writes nothing, so exit at once: Python would wait for it,
        # or stop it in the middle of foreign code.
        os._exit(code)
    return code


def _collect_garbage() -> None:
    """Start garbage collection, put off until the first frame, for objects made from now on. Most objects of the first
    scan stay as well, so until it is over mainly young objects are visited."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1_000)
    gc.enable()
    # Make new threads share the present memory arena: glibc would reserve an arena for each, several megabytes in all,
    # though only one of them runs at a time.
    if sys.platform == "linux":
        import ctypes  # the file watcher needs it anyway

        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _keep_what_is_there() -> None:
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 10)


@contextmanager
def _own_title() -> Iterator[None]:
    """Restore the window's title after the block, however it ends."""
    _write(KEEP_TITLE)
    try:
        yield
    finally:
        _write(GIVE_TITLE_BACK)


def _write(sequence: str) -> None:
    """Write a sequence to standard error, where Textual draws, while it does not run. The terminal may be gone."""
    if sys.__stderr__ is not None:
        with suppress(OSError):
            sys.__stderr__.write(sequence)
            sys.__stderr__.flush()
