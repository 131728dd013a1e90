"""Runs the app in the terminal, cleans its output, and ends the process when the terminal is gone.

The process must end when its terminal is gone or a signal such as SIGTERM arrives. At that time, a running editor or a
write to the terminal may block the event loop. So a thread watches the terminal and ends the process.
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

# Restores the terminal as Textual does: mouse, paste, wrapping, keyboard, screen buffer, cursor and focus.
_RESTORATION = b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"

_ARENA_MAX = -8  # the option M_ARENA_MAX of `malloc.h`

PUSH_TITLE = "\x1b[22;0t"  # makes the terminal save its title on a stack, if the terminal has a stack

# Clears the title, then restores the saved title. Many terminals without a stack replace a cleared title by a default.
POP_TITLE = "\x1b]0;\x1b\\\x1b[23;0t"


# Textual's own decoder would end the app at the first byte that is not UTF-8, for example in pasted text. This decoder
# replaces the byte by `�`, a key without effect.
linux_driver.getincrementaldecoder = lambda encoding: partial(  # type: ignore[attr-defined]
    getincrementaldecoder(encoding), "replace"
)


class Terminal(linux_driver.LinuxDriver):
    """Textual's terminal driver, except that errors of writing are ignored.

    Such an error would end Textual's writing thread, and all drawing would then wait for that thread for ever.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # This class uses private names of Textual, which has no public way to replace the file or to handle signals.
        self._file = _DroppingFile(self._file)  # type: ignore[arg-type, assignment]

    def _sigtstp_application(self, *arguments: Any) -> None:
        """Suspend the app. Until it resumes, other programs can see that nobody looks at this screen."""
        set_attended(attended=False)
        super()._sigtstp_application(*arguments)

    def _sigcont_application(self, *arguments: Any) -> None:
        """Resume the app. Do nothing if it was not suspended, because two threads would then read the keys."""
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

    This is a second line of defence, because `agentwatch.text` has already cleaned all text.
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
    """Suspend the process group until the shell resumes it. Return False if there is no shell to go to.
    The whole group must stop, because a launcher that waits for this process would otherwise block the shell."""
    if os.getpgrp() == os.getsid(0):
        return False
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    return True


@contextmanager
def process_guard(end_app: Callable[[], None]) -> Iterator[None]:
    """While this context is open, end the process soon after its terminal is gone or an exit signal arrives.

    A thread first calls `end_app` repeatedly. If the app does not end in time, the thread ends the process, even
    during a scan or in an editor. No data is lost: the system frees the locks, and files are written atomically.
    """
    signals, signal_writer = os.pipe()
    descriptors = {stream.fileno() for stream in (sys.__stdin__, sys.__stderr__) if stream is not None}
    terminals = {descriptor: _terminal_attributes(descriptor) for descriptor in descriptors}
    Thread(target=_watch_terminals, args=(signals, terminals, end_app), name="agentwatch-ending", daemon=True).start()

    def pass_signal(number: int, _frame: FrameType | None) -> None:
        os.write(signal_writer, bytes([number]))

    # Handlers of the event loop would not run while the main thread waits, for example for an editor.
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
        # Ask for no events, because Textual reads the input. The system reports a hang-up anyway.
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
                # The write must not block. Reset the flag afterwards, because other programs share it with us.
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
    """Run the app in the terminal until the operator leaves, and return the exit code. If the app could not open its
    monitor, raise the error."""
    app.when_shown = _start_garbage_collection
    # Unless frozen, all objects of the first scan are visited again by each garbage collection. At 10,000 tasks, this
    # blocks the keys for a tenth of a second.
    app.when_settled = _freeze_objects
    app.adapt_to_terminal()
    # A thread that reads files loses the interpreter lock at each system call. It waits at most this long for the lock.
    # With Python's default of 5 ms, a first scan takes twice as long.
    sys.setswitchinterval(0.001)
    with _restoring_title() if app.settings.notify_title else nullcontext(), process_guard(app.request_exit):
        app.run()
    if app.failure is not None:
        raise app.failure
    # If the operator leaves, there is a return code. If there is none, an error in a Textual thread has ended the app.
    code = 1 if app.return_code is None else app.return_code
    if not (app.is_settled or app.is_played):
        # Python would wait for a thread that still loads files. The thread writes nothing, so exit without waiting.
        os._exit(code)
    return code


def _start_garbage_collection() -> None:
    """Start garbage collection for objects made from now on. Most objects of the first scan stay in use, so the
    collector visits mainly new objects until the scan is over."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1_000)
    gc.enable()
    # Make all threads share one memory arena. By default, glibc reserves an arena for each thread, several MB in all.
    if sys.platform == "linux":
        import ctypes  # the file watcher imports ctypes anyway

        with suppress(AttributeError):  # the C library is not glibc
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
