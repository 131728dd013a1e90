"""Gives an answer again that holds still. It loads next to nothing: that would take longer than all it does."""

from __future__ import annotations

import os
import sys
import time
import zlib
from array import array
from errno import EINVAL
from stat import S_ISDIR, S_ISREG
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

    Ask = Callable[[str, list[list[str]]], list[str]]
    """Asks git once more: a workspace and the questions about it, to the digests of what it says now."""

    Answer = tuple[int, bytes, bytes]
    """The exit code of a command, and what it wrote to the two streams."""

NAME: Final = "answers"
"""The directory, in that of the state."""

MAGIC: Final = b"agentwatch answer 2\n"
HEAD: Final = Struct("<20sIddi7Q")
"""What it is, the checksum of the rest, from when and until when it holds, the exit code, and the lengths of what
follows: the key, the variables, the paths, their signs, the rest of what was looked at, and what was written to the
two streams."""
LARGEST: Final = 64 * 1024 * 1024
NOTHING: Final = b"[[], [], []]"
"""Of the rest, where there is none."""
THROUGH: Final = -1
"""In place of the ctime of a directory that was only passed."""


def answered(arguments: Sequence[str], run: Callable[[], int], ask: Ask) -> int:
    """Say what was said before where that holds, else `run` and keep what it says. Returns the exit code."""
    key = key_of(arguments)
    place = place_of(key)
    if not place or sys.stdout is None or sys.stderr is None:
        return run()
    kept = read(place, key, ask)
    if kept is None:
        from agentwatch.kept.keeping import noted

        return noted(place, key, run)
    try:
        _write(kept)
    except BrokenPipeError:
        # The reader (`| head`) has seen enough; Python would complain once more while it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return kept[0]


def read(place: str, key: bytes, ask: Ask) -> Answer | None:
    """The answer that is kept under a key, None where there is none, or it holds no more."""
    data = _bytes_of(place)
    if len(data) < HEAD.size:
        return None
    magic, checksum, begins, ends, code, *lengths = HEAD.unpack_from(data)
    rest = memoryview(data)[HEAD.size :]
    if magic != MAGIC or sum(lengths) != len(rest) or bytes(rest[: lengths[0]]) != key:
        return None
    if not begins <= time.time() < ends or zlib.crc32(rest) != checksum:
        return None
    parts, at = [], 0
    for length in lengths:
        parts.append(rest[at : at + length])
        at += length
    _, variables, paths, signs, others, out, errors = parts
    if not _same_variables(bytes(variables)):
        return None
    if not (_same_files(bytes(paths), array("q", bytes(signs))) and _same_others(bytes(others), ask)):
        return None
    return code, bytes(out), bytes(errors)


def _same_variables(variables: bytes) -> bool:
    """Whether all variables hold what they held, or are not set, as before."""
    for variable in variables.split(b"\0"):
        name, is_set, value = variable.partition(b"=")
        if os.environb.get(name) != (value if is_set else None):
            return False
    return True


def _same_files(names: bytes, signs: array[int]) -> bool:
    """Whether all paths have the signs that they had."""
    rest = iter(signs)
    for look, part in zip((os.lstat, os.stat), os.fsdecode(names).split("\0"), strict=True):
        paths = part.split("\n") if part else []
        for path, ctime, mtime, size, inode in zip(paths, rest, rest, rest, rest, strict=False):
            try:
                status = look(path)
            except (OSError, ValueError) as error:
                if size or inode or (getattr(error, "errno", None) or EINVAL) != ctime:
                    return False
                continue
            if ctime == THROUGH and status[1] == inode and S_ISDIR(status[0]):
                continue
            if status.st_ctime_ns != ctime or status[1] != inode or status[6] != size or status.st_mtime_ns != mtime:
                return False
    return True


def _same_others(told: bytes, ask: Ask) -> bool:
    """Whether files of the system, processes and git say what they said."""
    if told == NOTHING:
        return True
    import json

    from agentwatch.kept.looks import bytes_at, is_alive

    held, processes, questions = json.loads(told)
    if any((None if (now := bytes_at(path)) is None else now.hex()) != before for path, before in held):
        return False
    if any(is_alive(pid) != before for pid, before in processes):
        return False
    by_workspace: dict[str, list[tuple[list[str], str]]] = {}
    for workspace, question, answer in questions:
        by_workspace.setdefault(workspace, []).append((question, answer))
    return all(
        ask(workspace, [question for question, _ in some]) == [answer for _, answer in some]
        for workspace, some in by_workspace.items()
    )


def key_of(arguments: Sequence[str], *, speaks: bool = True) -> bytes:
    """Everything that the caller gives: two calls with the same key are the same question. Where one that `speaks` is
    called, and how its streams write, belongs to it, too."""
    who = sys.executable, sys.version, tuple(sys.flags), sys.path, os.getuid(), os.geteuid()
    if not speaks:
        return repr((list(arguments), who)).encode("utf-8", "surrogateescape")
    streams = [one is not None and (one.isatty(), one.encoding) for one in (sys.stdin, sys.stdout, sys.stderr)]
    here = os.getcwd()  # noqa: PTH109
    return repr((list(arguments), who, here, streams)).encode("utf-8", "surrogateescape")


def place_of(key: bytes) -> str:
    """The file of an answer, "" where nothing can be kept; as `place.state_directories` has it, which takes a while to
    load."""
    base, home = os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME", "")
    if not base.startswith("/"):
        base = f"{home}/.local/state"
    return f"{base}/agentwatch/{NAME}/{zlib.crc32(key):08x}" if base.startswith("/") else ""


def _bytes_of(place: str) -> bytes:
    """What is in a file of this user that nobody else may write, nothing where there is none."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = os.fstat(descriptor)
        is_ours = S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
        if not is_ours or status.st_size > LARGEST + HEAD.size:
            return b""
        os.utime(descriptor)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _write(answer: Answer) -> None:
    """Write it as it was written. Raises BrokenPipeError."""
    for stream, data in ((sys.stdout, answer[1]), (sys.stderr, answer[2])):
        if data:
            stream.flush()
            stream.buffer.write(data)
            stream.flush()
