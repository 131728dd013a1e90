"""Runs the app on a terminal."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.terminal import ending

if TYPE_CHECKING:
    from agentwatch.app.opening import Opening
    from agentwatch.monitor import Monitor
    from agentwatch.sources.playback import Playback

_ARENA_MAX: Final = -8
"""As `malloc.h` has it."""

KEEP_TITLE: Final = "\x1b[22;0t"
"""The terminal puts its title on a stack, if it has one."""

GIVE_TITLE_BACK: Final = "\x1b]0;\x1b\\\x1b[23;0t"
"""No title, and then the one on the stack: without a stack, many terminals show their own instead of none."""


def run(monitor: Monitor | Opening) -> int:
    """Show the monitor until the operator leaves; the exit code. The caller has seen to it that there is a terminal.
    Raises what opening it does."""
    app = AgentwatchApp(monitor)
    code = _run(app, titled=monitor.settings.notify_title)
    if not app.is_settled:
        # A thread may still load what nobody looks at any more, or wait for a database; it has nothing to write, and
        # Python would wait for it, or stop it in the midst of foreign code.
        os._exit(code)
    return code


def demo(monitor: Monitor, hold: Callable[[bool], None], is_over: Callable[[], bool]) -> int:
    """The same for the monitor of a demo, with what `DemoApp` needs of it."""
    from agentwatch.app.played import DemoApp  # nobody else needs it

    return _run(DemoApp(monitor, hold, is_over), titled=monitor.settings.notify_title)


def replay(monitor: Monitor, playback: Playback) -> int:
    """The same for a monitor whose source is a playback."""
    from agentwatch.app.played import ReplayApp  # nobody else needs it

    return _run(ReplayApp(monitor, playback))


def _run(app: AgentwatchApp, *, titled: bool = False) -> int:
    app.when_shown = _collect_garbage
    # What the first scan has made stays: without this, the collector looks at all of it again and again, at 10,000
    # tasks for a tenth of a second in which no key is answered.
    app.when_settled = _keep_what_is_there
    app.suit_terminal()
    # The threads that read, check and record release the interpreter at every call of the system. Then they wait for as
    # long as this to have it again: with the usual 5 ms, a first scan takes twice as long while the screen follows it.
    sys.setswitchinterval(0.001)
    with _own_title() if titled else nullcontext(), ending(app.ask_to_end):
        app.run()
    if app.failure is not None:
        raise app.failure
    # Who leaves gives a code. Without one, a thread of the screen library has ended the app by what it raised.
    return 1 if app.return_code is None else app.return_code


def _collect_garbage() -> None:
    """From now on: until the first frame it was put off, and what is there by then stays. So does most of what the
    first scan makes: before that is over, only what is new is looked at."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1_000)
    gc.enable()
    _share_memory()


def _share_memory() -> None:
    """Have the threads that begin from now on take memory from what there is: glibc has some set aside for each of
    them, several megabytes in all, though only one of them runs at a time."""
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
