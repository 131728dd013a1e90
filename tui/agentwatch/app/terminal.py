"""The terminal: guards what is written, runs the app, and ends the process when the terminal is gone.

The process must end when the terminal is gone or a signal asks for the end. The event loop may be blocked at
that time, by a write to a terminal that nobody reads or by a running editor. So a thread watches the terminal and ends
the process.
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

_EXIT_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

_SECONDS_AFTER_HANG_UP = 0.6  # how long the app may take to end after its terminal is gone

_SECONDS_AFTER_SIGNAL = 1.5  # how long the app may take to end and to restore the terminal after a signal

# The sequence with which Textual restores mouse, paste, wrapping, keyboard, screen buffer, cursor and focus.
_RESTORATION = b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"

_ARENA_MAX = -8  # M_ARENA_MAX of `malloc.h`

PUSH_TITLE = "\x1b[22;0t"  # makes the terminal push its title on a stack, if it has one

# Pops the title from that stack. Many terminals without a stack show their default title if the title is empty.
POP_TITLE = "\x1b]0;\x1b\\\x1b[23;0t"


# Textual's key reader would end the app at the first byte that is not UTF-8, for example from pasted text in another
# encoding. With this decoder, such a byte becomes `�`, which does nothing as a key.
linux_driver.getincrementaldecoder = lambda encoding: partial(  # type: ignore[attr-defined]
    getincrementaldecoder(encoding), "replace"
)


class Terminal(linux_driver.LinuxDriver):
    """Textual's driver, but it drops output that cannot be written.

    An error would end Textual's writing thread, and all drawing would then wait for that thread for ever.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Private names of Textual, here and below: its drivers have no public way to change the file or to see signals.
        self._file = _DroppingFile(self._file)  # type: ignore[arg-type, assignment]

    def _sigtstp_application(self, *arguments: Any) -> None:
        """Go to the shell. Until the app comes back, other programs know that nobody looks at this screen."""
        set_attended(attended=False)
        super()._sigtstp_application(*arguments)

    def _sigcont_application(self, *arguments: Any) -> None:
        """Come back from the shell. Do nothing if the app was not suspended: a second thread would read the keys."""
        if self._must_signal_resume:
            super()._sigcont_application(*arguments)


class _DroppingFile:
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
    """Replaces unprintable characters and removes links, so that no drawn text reaches the terminal as a command.

    This is a second line of defence: `agentwatch.text` has cleaned all text before.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        return [
            segment
            if segment.control or (segment.text.isprintable() and (segment.style is None or segment.style.link is None))
            else _sanitize(segment)
            for segment in segments
        ]


def _sanitize(segment: Segment) -> Segment:
    text = "".join(
        character if character.isprintable() else " " if character.isspace() else "�" for character in segment.text
    )
    style = segment.style
    return Segment(text, style.update_link(None) if style is not None and style.link else style)


def suspend_process_group() -> bool:
    """Suspend the process group until the shell wakes it. Return False if no shell waits for the group. The whole group
    must stop: a launcher that waits for this process would otherwise block the shell."""
    if os.getpgrp() == os.getsid(0):
        return False
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    return True


@contextmanager
def process_guard(end_app: Callable[[], None]) -> Iterator[None]:
    """Inside this context, end the process soon after its terminal is gone or after a signal.

    A thread then calls `end_app` repeatedly. If the app does not end in time, the process exits, even during a scan or
    in an editor. This is safe, because the system frees the locks, and our files are written atomically.
    """
    signals, signal_writer = os.pipe()
    descriptors = {stream.fileno() for stream in (sys.__stdin__, sys.__stderr__) if stream is not None}
    terminals = {descriptor: _terminal_attributes(descriptor) for descriptor in descriptors}
    Thread(target=_watch_terminals, args=(signals, terminals, end_app), name="agentwatch-ending", daemon=True).start()

    def pass_signal(number: int, _frame: FrameType | None) -> None:
        os.write(signal_writer, bytes([number]))

    # Not the handlers of the event loop, which do not run while the main thread waits.
    before = {number: signal.signal(number, pass_signal) for number in _EXIT_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch_terminals(signals: int, terminals: dict[int, list[Any] | None], end_app: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(signals, select.POLLIN)
    for descriptor in terminals:
        # Ask for no events, because Textual reads the input. The system always reports a hang-up.
        poll.register(descriptor, 0)
    deadline, code = math.inf, 128 + signal.SIGHUP
    while time.monotonic() < deadline:
        for descriptor, event in poll.poll(None if deadline == math.inf else 50):
            if descriptor == signals:
                code = 128 + os.read(signals, 1)[0]
                deadline = min(deadline, time.monotonic() + _SECONDS_AFTER_SIGNAL)
                continue
            poll.unregister(descriptor)
            # Ignore other events, such as POLLNVAL from a system that cannot poll a terminal.
            if event & (select.POLLHUP | select.POLLERR):
                deadline = min(deadline, time.monotonic() + _SECONDS_AFTER_HANG_UP)
        if deadline < math.inf:
            end_app()
    for descriptor, attributes in terminals.items():
        with suppress(termios.error, OSError):
            if attributes is not None:
                termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
                # If the terminal still exists, restore it without blocking. Other programs share this flag.
                os.set_blocking(descriptor, False)
                try:
                    os.write(descriptor, _RESTORATION)
                finally:
                    os.set_blocking(descriptor, True)
    remove_scratch_directories()
    os._exit(code)


def _terminal_attributes(descriptor: int) -> list[Any] | None:
    try:
        return termios.tcgetattr(descriptor)
    except termios.error:
        return None


def run_app(app: AgentwatchApp) -> int:
    """Show the app in the terminal until the operator leaves, and return the exit code. Raises the error if the app
    could not open its monitor."""
    app.when_shown = _start_garbage_collection
    # Without freezing, the collector visits all objects of the first scan again and again. At 10,000 tasks this blocks
    # the keys for a tenth of a second.
    app.when_settled = _freeze_objects
    app.adapt_to_terminal()
    # Threads that read files give up the interpreter at every system call, and get it back after this time at the
    # latest. With Python's default of 5 ms, a first scan takes twice as long.
    sys.setswitchinterval(0.001)
    with _restoring_title() if app.settings.notify_title else nullcontext(), process_guard(app.request_exit):
        app.run()
    if app.failure is not None:
        raise app.failure
    # Leaving sets a return code. Without one, an exception in a thread of Textual has ended the app.
    code = 1 if app.return_code is None else app.return_code
    if not (app.is_settled or app.is_played):
        # A thread may still load files. It writes nothing, so exit at once, because Python would wait for the thread.
        os._exit(code)
    return code


def _start_garbage_collection() -> None:
    """Start garbage collection for objects made from now on. Most objects of the first scan stay alive, so the
    collector mainly visits young objects until the scan is over."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1_000)
    gc.enable()
    # Make threads share one memory arena. By default, glibc reserves one for each thread, several megabytes in all.
    if sys.platform == "linux":
        import ctypes  # the file watcher needs it anyway

        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _freeze_objects() -> None:
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 10)


@contextmanager
def _restoring_title() -> Iterator[None]:
    _write_sequence(PUSH_TITLE)
    try:
        yield
    finally:
        _write_sequence(POP_TITLE)


def _write_sequence(sequence: str) -> None:
    """Write a control sequence to standard error, where Textual draws. Ignore errors: the terminal may be gone."""
    if sys.__stderr__ is not None:
        with suppress(OSError):
            sys.__stderr__.write(sequence)
            sys.__stderr__.flush()
