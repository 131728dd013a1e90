"""Gives an answer again that holds still. It loads next to nothing: that would take longer than all it does."""

from __future__ import annotations

import os
import sys
import time
import zlib
from _blake2 import blake2b  # hashlib loads OpenSSL first, which takes longer than all of this
from _thread import allocate_lock, start_new_thread  # threading loads more
from array import array
from errno import EINVAL
from stat import S_ISDIR, S_ISREG
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

    Question = tuple[bool, list[str]]
    """Which files differ: whether git was to list untracked ones, and below which paths. It is asked nothing else: what
    lies in a file never says what is run."""

    Ask = Callable[[str, list[Question]], list[str]]
    """Asks git once more: a workspace and the questions about it, to the digests of what it says now."""

    IsUnconcerned = Callable[[bytes, Sequence[str], bytes], bool]
    """Told what matters of all paths: whether what was said holds though some have changed."""

    Answer = tuple[int, bytes | memoryview, bytes | memoryview]
    """The exit code of a command, and what it wrote to the two streams."""

NAME: Final = "answers"
"""The directory, in that of the state."""

CODES: Final = (0, 1)
"""Exit codes of commands that have said what there is."""
LONGEST: Final = 86_400.0
"""Seconds for which an answer holds at most."""
SECRET_BYTES: Final = 32

MAGIC: Final = b"agentwatch answer 4\n"
SEAL_BYTES: Final = 32
HEAD: Final = Struct("<20sddi8Q")
"""After the seal: what it is, from when and until when it holds, the exit code, and the lengths of what follows: the
key, the variables, the paths, their signs, the rest of what was looked at, what of the paths matters, and what was
written to the two streams."""
LARGEST: Final = 64 * 1024 * 1024
NOTHING: Final = b"[[], [], []]"
"""Of the rest, where there is none."""
THROUGH: Final = -1
"""In place of the ctime of a directory that was only passed."""

MOST_CHANGED: Final = 256
"""Paths that have changed, above which to look anew costs less."""
_NUMBERS: Final = 4
"""Of one sign."""
_LOOKS: Final = (os.lstat, os.stat)
"""As they are before anybody notes what they are asked: of that, nothing has to be noted."""
_CONTROLS: Final = bytes({*range(32), 127} - set(b"\t\n"))
_CHUNK: Final = 128 * 1024
"""As much as a processor has at hand."""
_MORE_CONTROLS: Final = range(0x80, 0xA0)
"""Those behind ASCII."""


def answered(arguments: Sequence[str], run: Callable[[], int], ask: Ask) -> int:
    """Say what was said before where that holds, else `run` and keep what it says. Returns the exit code.

    Raises OSError where it cannot be written.
    """
    key = key_of(arguments)
    place = place_of(key)
    if not place or sys.stdout is None or sys.stderr is None:
        return run()
    kept = read(place, key, ask)
    if kept is None:
        from agentwatch.kept.keeping import noted

        return noted(place, key, run)
    write(kept)
    return kept[0]


def read(place: str, key: bytes, ask: Ask, is_unconcerned: IsUnconcerned | None = None) -> Answer | None:
    """The answer that is kept under a key, None where there is none, or it holds no more."""
    try:
        answer = _unsealed(place, key, ask, is_unconcerned)
        if answer is not None:
            # Who takes the oldest away sees that it is of use.
            os.utime(place, follow_symlinks=False)
    except (OSError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError):
        # Whatever is wrong with it, a look tells the same.
        return None
    return answer


def _unsealed(place: str, key: bytes, ask: Ask, is_unconcerned: IsUnconcerned | None) -> Answer | None:
    """The same; raises what damaged bytes raise."""
    data, secret = memoryview(bytes_of(place)), secret_of(place)
    sealed = data[SEAL_BYTES:]
    if len(secret) != SECRET_BYTES or len(sealed) < HEAD.size:
        return None
    # It takes half as long as to look at all the paths, which does no harm whoever named them.
    is_sealed = _meanwhile(lambda: seal(secret, sealed) == data[:SEAL_BYTES])
    magic, begins, ends, code, *lengths = HEAD.unpack_from(sealed)
    rest = sealed[HEAD.size :]
    if magic != MAGIC or sum(lengths) != len(rest) or bytes(rest[: lengths[0]]) != key:
        return None
    if not begins <= time.time() < min(ends, begins + LONGEST) or code not in CODES:
        return None
    parts, at = [], 0
    for length in lengths:
        parts.append(rest[at : at + length])
        at += length
    # What was written to the streams may be long.
    _, variables, paths, signs, others, matters = map(bytes, parts[:-2])
    out, errors = parts[-2:]
    if not _same_variables(variables):
        return None
    changed = _changed(paths, array("q", signs), MOST_CHANGED if matters else 0)
    if changed is None or not is_sealed():
        return None
    if changed and (is_unconcerned is None or not is_unconcerned(matters, changed, paths)):
        return None
    return (code, out, errors) if _same_others(others, ask) and _is_text(out) and _is_text(errors) else None


def _meanwhile(work: Callable[[], bool]) -> Callable[[], bool]:
    """Begin some work in a thread. What is returned waits for the result; False where it raises."""
    found, has_ended = list[bool](), allocate_lock()

    def run() -> None:
        try:
            found.append(work())
        finally:
            has_ended.release()

    def result() -> bool:
        with has_ended:
            return found == [True]

    has_ended.acquire()
    start_new_thread(run, ())
    return result


def seal(secret: bytes, *sealed: bytes | memoryview) -> bytes:
    """What only those can make who know the secret."""
    made = blake2b(key=secret, digest_size=SEAL_BYTES)
    for part in sealed:
        made.update(part)
    return made.digest()


def secret_of(place: str) -> bytes:
    """The secret that seals the answers, nothing where there is none. It lies beside their directory and not in it: to
    be allowed to write there is not to know it."""
    return bytes_of(secret_place(place))


def secret_place(place: str) -> str:
    return f"{place.rpartition('/')[0]}.key"


def _is_text(said: memoryview) -> bool:
    """Whether it is what a command may print: no control character commands a terminal."""
    for at in range(0, len(said), _CHUNK):
        # One more: a character of two bytes may begin at the end.
        some = bytes(said[at : at + _CHUNK + 1])
        if len(some.translate(None, _CONTROLS)) != len(some):
            return False
        if b"\xc2" in some and any(bytes((0xC2, number)) in some for number in _MORE_CONTROLS):
            return False
    return True


def _same_variables(variables: bytes) -> bool:
    """Whether all variables hold what they held, or are not set, as before."""
    for variable in variables.split(b"\0"):
        name, is_set, value = variable.partition(b"=")
        if os.environb.get(name) != (value if is_set else None):
            return False
    return True


def paths_in(names: bytes) -> list[list[str]]:
    """The paths that were looked at, links as links; and those to what links lead to."""
    return [part.split("\n") if part else [] for part in os.fsdecode(names).split("\0")]


def _changed(names: bytes, signs: array[int], most: int) -> list[str] | None:
    """The paths that have other signs than they had, None where those are more than `most`."""
    rest, known, changed = iter(signs), paths_in(names), list[str]()
    if not any(known) or len(signs) != _NUMBERS * sum(map(len, known)):
        return None
    for look, paths in zip(_LOOKS, known, strict=True):
        for path, ctime, mtime, size, inode in zip(paths, rest, rest, rest, rest, strict=False):
            try:
                status = look(path)
            except (OSError, ValueError) as error:
                if not size and not inode and (getattr(error, "errno", None) or EINVAL) == ctime:
                    continue
            else:
                if ctime == THROUGH and status[1] == inode and S_ISDIR(status[0]):
                    continue
                is_same = status.st_ctime_ns == ctime and status.st_mtime_ns == mtime
                if is_same and status[1] == inode and status[6] == size:
                    continue
            changed.append(path)
            if len(changed) > most:
                return None
    return changed


def _same_others(told: bytes, ask: Ask) -> bool:
    """Whether files of the system, processes and git say what they said."""
    if told == NOTHING:
        return True
    import json

    from agentwatch.kept.noted import SYSTEM, bytes_at, is_alive

    held, processes, questions = json.loads(told)
    if not all(path.startswith(SYSTEM) for path, _ in held):
        return False
    if any((None if (now := bytes_at(path)) is None else now.hex()) != before for path, before in held):
        return False
    if any(is_alive(pid) != before for pid, before in processes):
        return False
    by_workspace: dict[str, list[tuple[Question, str]]] = {}
    for workspace, is_untracked, paths, answer in questions:
        by_workspace.setdefault(workspace, []).append(((is_untracked, paths), answer))
    return all(
        ask(workspace, [question for question, _ in some]) == [answer for _, answer in some]
        for workspace, some in by_workspace.items()
    )


def key_of(arguments: Sequence[str], *, speaks: bool = True) -> bytes:
    """Everything that the caller gives: two calls with the same key are the same question. Where and by what name one
    that `speaks` is called, and how its streams write, belongs to it, too."""
    who = sys.executable, sys.version, tuple(sys.flags), sys.path, os.getuid(), os.geteuid()
    if not speaks:
        return repr((list(arguments), who)).encode("utf-8", "surrogateescape")
    streams = [one is not None and (one.isatty(), one.encoding) for one in (sys.stdin, sys.stdout, sys.stderr)]
    here = os.getcwd()  # noqa: PTH109
    return repr((sys.argv[0], list(arguments), who, here, streams)).encode("utf-8", "surrogateescape")


def place_of(key: bytes) -> str:
    """The file of an answer, "" where nothing can be kept; as `place.state_directories` has it, which takes a while to
    load."""
    base, home = os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME", "")
    if not base.startswith("/"):
        base = f"{home}/.local/state"
    return f"{base}/agentwatch/{NAME}/{zlib.crc32(key):08x}" if base.startswith("/") else ""


def bytes_of(place: str) -> bytes:
    """What is in a file of this user that nobody else may write, nothing where there is none."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = os.fstat(descriptor)
        is_ours = S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
        if not is_ours or status.st_size > LARGEST + SEAL_BYTES + HEAD.size:
            return b""
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def write(answer: Answer) -> None:
    """Write it as it was written. Raises BrokenPipeError."""
    for stream, data in ((sys.stdout, answer[1]), (sys.stderr, answer[2])):
        if data:
            stream.flush()
            stream.buffer.write(data)
            stream.flush()
