"""The terminal: what reaches it, the app on it, and the end that needs no event loop.

That end comes when the terminal is gone, or a signal asks, while the loop may wait for something.
A terminal that nobody reads blocks its writers, an editor blocks the loop until it ends, and a file descriptor
whose other end is gone is readable for ever. So a thread of its own looks at the terminal and has the last word.
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

from agentwatch.state import attend_screens, remove_scratch_directories

if TYPE_CHECKING:
    from agentwatch.app.app import AgentwatchApp

_ASKING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

_GONE_SECONDS = 0.6  # How long the app may take to end when there is nobody left who could see it

_ASKED_SECONDS = 1.5  # How long it may take to end, and to give the terminal back, when a signal asks for it

# Textual writes this at its end: mouse, paste, wrapping, keyboard, the other screen, cursor and focus as before.
_GIVE_BACK = b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"

_ARENA_MAX = -8  # As `malloc.h` has it

KEEP_TITLE = "\x1b[22;0t"  # The terminal puts its title on a stack, if it has one

# No title, and then the one on the stack: without a stack, many terminals show their own instead of none.
GIVE_TITLE_BACK = "\x1b]0;\x1b\\\x1b[23;0t"


# Textual's thread that reads the keys would end, and the app with it, at the first byte that is no UTF-8: Alt with a
# letter in a terminal of eight bits, text pasted in another encoding, a bad line. As a key it does nothing, and in a
# text it shows that something was lost.
linux_driver.getincrementaldecoder = lambda encoding: partial(  # type: ignore[attr-defined]
    getincrementaldecoder(encoding), "replace"
)


class Terminal(linux_driver.LinuxDriver):
    """Draws as the screen library does, and drops what cannot be written: its thread that writes would end with it.

    Then everybody who draws would wait for ever for that thread.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # A driver takes no other file, and has no public hooks for being stopped and woken.
        self._file = _Dropping(self._file)  # type: ignore[arg-type, assignment]

    def _sigtstp_application(self, *arguments: Any) -> None:
        """Go to the shell: nobody looks at the screen until the app has come back."""
        attend_screens(attended=False)
        super()._sigtstp_application(*arguments)

    def _sigcont_application(self, *arguments: Any) -> None:
        """Come back; one that was not suspended would begin to read the keys twice."""
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
    """The second line of defence: nothing that the app draws reaches the terminal as a command.

    Replaces what is not printable and takes links away: a link's address would be written as it is.
    `agentwatch.text` shows such characters better; what it has cleaned passes unchanged.
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
    """Stop the process, and what it has started, until the shell wakes them; False where no shell waits for it.

    The whole group, as a terminal does: who waits for one of it, like a launcher, would keep the shell away.
    """
    if os.getpgrp() == os.getsid(0):
        return False
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    return True


@contextmanager
def ending(ask: Callable[[], None]) -> Iterator[None]:
    """Have the process end soon once its terminal is gone or a signal asks, from now on.

    `ask` is to end the app from another thread, and is called until the process has ended. Whatever is under way by
    then, a write, an editor, a scan, is given up: the system gives the locks back, and no file of ours is ever half
    written.
    """
    watching, asking = os.pipe()
    descriptors = {stream.fileno() for stream in (sys.__stdin__, sys.__stderr__) if stream is not None}
    terminals = {descriptor: _attributes(descriptor) for descriptor in descriptors}
    Thread(target=_watch, args=(watching, terminals, ask), name="agentwatch-ending", daemon=True).start()

    def note(number: int, _frame: FrameType | None) -> None:
        os.write(asking, bytes([number]))

    # Not the event loop's: they are called although the main thread waits, if only it waits for a lock or the system.
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
        # Not for input, which is Textual's: for the end alone, of which the system tells unasked.
        poll.register(descriptor, 0)
    end, code = math.inf, 128 + signal.SIGHUP
    while time.monotonic() < end:
        for descriptor, event in poll.poll(None if end == math.inf else 50):
            if descriptor == watching:
                code = 128 + os.read(watching, 1)[0]
                end = min(end, time.monotonic() + _ASKED_SECONDS)
                continue
            poll.unregister(descriptor)
            # Some systems cannot tell this of a terminal: POLLNVAL.
            if event & (select.POLLHUP | select.POLLERR):
                end = min(end, time.monotonic() + _GONE_SECONDS)
        if end < math.inf:
            ask()
    for descriptor, attributes in terminals.items():
        with suppress(termios.error, OSError):
            if attributes is not None:
                termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
                # It may be there after all. Nobody may be waited for any more, and it is not ours alone.
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
    """Show the app until the operator leaves; the exit code. The caller has seen to it that there is a terminal. Raises
    what opening its monitor does."""
    app.when_shown = _collect_garbage
    # The objects of the first scan stay: without this, the collector looks at all of it again and again, at 10,000
    # tasks for a tenth of a second in which no key is answered.
    app.when_settled = _keep_what_is_there
    app.suit_terminal()
    # The threads that read, check and record release the interpreter at every call of the system. Then they wait for as
    # long as this to have it again: with the usual 5 ms, a first scan takes twice as long while the screen follows it.
    sys.setswitchinterval(0.001)
    with _own_title() if app.settings.notify_title else nullcontext(), ending(app.ask_to_end):
        app.run()
    if app.failure is not None:
        raise app.failure
    # To leave gives a code. Without one, a thread of the screen library has ended the app by an exception.
    code = 1 if app.return_code is None else app.return_code
    if not (app.is_settled or app.is_played):
        # A thread may still load what nobody looks at any more, or wait for a database; it has nothing to write, and
        # Python would wait for it, or stop it in the midst of foreign code.
        os._exit(code)
    return code


def _collect_garbage() -> None:
    """From now on: until the first frame it was put off, and what is there by then stays. So does most of what the
    first scan makes: before that is over, only what is new is looked at."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1_000)
    gc.enable()
    # The threads that begin from now on take memory from what there is: glibc has some set aside for each of them,
    # several megabytes in all, though only one of them runs at a time.
    if sys.platform == "linux":
        import ctypes  # who watches has need of it, too

        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _keep_what_is_there() -> None:
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 10)


@contextmanager
def _own_title() -> Iterator[None]:
    """Whatever becomes of the app, the window has its title again afterwards."""
    _write(KEEP_TITLE)
    try:
        yield
    finally:
        _write(GIVE_TITLE_BACK)


def _write(sequence: str) -> None:
    """Where the screen library draws, while it does not. The terminal may be gone."""
    if sys.__stderr__ is not None:
        with suppress(OSError):
            sys.__stderr__.write(sequence)
            sys.__stderr__.flush()
