"""Runs the app on a terminal."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.terminal import ending

_ARENA_MAX = -8
"""As `malloc.h` has it."""

KEEP_TITLE = "\x1b[22;0t"
"""The terminal puts its title on a stack, if it has one."""

GIVE_TITLE_BACK = "\x1b]0;\x1b\\\x1b[23;0t"
"""No title, and then the one on the stack: without a stack, many terminals show their own instead of none."""


def run(app: AgentwatchApp) -> int:
    """Show the app until the operator leaves; the exit code. The caller has seen to it that there is a terminal. Raises
    what opening its monitor does."""
    app.when_shown = _collect_garbage
    # What the first scan has made stays: without this, the collector looks at all of it again and again, at 10,000
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
    # Who leaves gives a code. Without one, a thread of the screen library has ended the app by what it raised.
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
