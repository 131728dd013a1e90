"""A copy of a process does a part of its work: it is seen in nothing else, and nothing of it stays."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

_BEGIN = "import os, sys, threading, time; from agentwatch.forked import Forked, may_fork\n"
"""Of a program without threads: who runs the tests may have some."""


_LOOKS_LAST = """\
import atexit, os
def look():
    try: os.waitpid(-1, os.WNOHANG)
    except ChildProcessError: print("none")
atexit.register(look)
"""
"""Before the program: when it ends, it says whether it leaves no child, running or not."""


def said(program: str, before: str = "") -> list[str]:
    ran = subprocess.run([sys.executable, "-c", before + _BEGIN + program], capture_output=True, text=True, check=True)
    assert not ran.stderr
    return ran.stdout.split()


def test_what_it_tells_arrives_and_it_ends() -> None:
    program = (
        "known = b'known'\n"
        "made = Forked(lambda told: told.write(known))\n"
        "print(made.stdout.read().decode())\n"
        "made.wait(20)\n"
        "print(made.poll())\n"
    )
    assert said(program) == ["known", "True"]


def test_it_says_nothing_itself_and_what_was_about_to_be_said_is_said_once() -> None:
    program = (
        "sys.stdout.write('once ')\n"
        "def work(told):\n"
        "    print('twice', flush=True); print('wrong', file=sys.stderr, flush=True); os.write(1, b'more')\n"
        "    raise ValueError('wrong')\n"
        "made = Forked(work)\n"
        "made.wait(20)\n"
        "print(made.stdout.read())\n"
    )
    assert said(program) == ["once", "b''"]


def test_it_holds_no_file_open() -> None:
    program = (
        "got, given = os.pipe()\n"
        "made = Forked(lambda told: time.sleep(60))\n"
        "os.close(given)\n"
        "print(os.read(got, 1))\n"
        "made.kill()\n"
        "made.wait(20)\n"
        "print(made.poll())\n"
        "made.kill()\n"
    )
    assert said(program) == ["b''", "True"]


def test_where_a_thread_runs_there_is_none() -> None:
    program = "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\nprint(may_fork())\n"
    assert said(f"print(may_fork())\n{program}") == [str(sys.platform == "linux"), "False"]


def test_a_program_whose_children_nobody_waits_for_can_have_one() -> None:
    program = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "made = Forked(lambda told: None)\n"
        "made.stdout.read(); made.wait(20); print(made.poll())\n"
    )
    assert said(program) == ["True"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_it_ends_when_nobody_reads_any_more() -> None:
    program = (
        "def work(told):\n"
        "    while True: told.write(b'x' * 4096)\n"
        "print(Forked(work).pid, flush=True); time.sleep(60)\n"
    )
    first = subprocess.Popen([sys.executable, "-c", _BEGIN + program], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    status = Path(f"/proc/{int(first.stdout.readline())}/stat")
    first.kill()
    first.wait()
    first.stdout.close()
    until = time.monotonic() + 20.0
    while time.monotonic() < until and (status.exists() and ") Z " not in status.read_text()):
        time.sleep(0.02)
    assert time.monotonic() < until


@pytest.mark.parametrize("begins", ["", "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"])
def test_what_is_done_aside_is_done_once_the_process_has_ended(tmp_path: Path, begins: str) -> None:
    place = tmp_path / "done"
    program = (
        "from pathlib import Path; from agentwatch import forked; forked.has_two_cores = lambda: True\n"
        f"def work(): time.sleep(0.2); Path({str(place)!r}).write_text(str(os.getpid()))\n"
        f"{begins}forked.aside(work)\n"
        "print(os.getpid())\n"
    )
    (own,) = said(program)
    is_copied = sys.platform == "linux" and not begins
    assert (place.read_text() != own) is is_copied


needs_copies = pytest.mark.skipif(sys.platform != "linux", reason="no copy of a process is made")


@needs_copies
def test_who_ends_early_leaves_none_behind() -> None:
    assert said("made = Forked(lambda told: time.sleep(60))\n", _LOOKS_LAST) == ["none"]


_ASIDE = "import signal; from agentwatch import forked; forked.has_two_cores = lambda: True\n"


@needs_copies
def test_what_is_done_aside_and_held_up_is_waited_for_once_and_left_out() -> None:
    program = (
        f"{_ASIDE}forked._ASIDE_SECONDS = 0.2\n"
        "for _ in range(9): forked.aside(lambda: time.sleep(60))\n"
        "for made in forked._copies: os.kill(made.pid, signal.SIGSTOP)\n"
    )
    assert said(program, _LOOKS_LAST) == ["none"]


@needs_copies
def test_an_interrupt_ends_what_is_done_aside_without_a_word() -> None:
    program = (
        f"{_ASIDE}forked._ASIDE_SECONDS = 60.0\n"
        "forked.aside(lambda: time.sleep(60))\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler); signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
    )
    assert said(program, _LOOKS_LAST) == ["none"]
