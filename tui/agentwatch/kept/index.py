"""Values that take long to find out and hold for long, each by its key, for the next process that needs them.

An answer holds until anything changes that was looked at. What a file says holds as long as this one file does, so
after a change all others need not be read again. Whoever puts a value here says by its key when it holds.

Two files beside the answers, sealed as they are: one with all values, and one with what has come since, so that a
change costs little. Where either is damaged, old, of another code or somebody else's, it is as if it were not there.
"""

from __future__ import annotations

import io
import os
import sys
import time
from _blake2 import blake2b
from _pickle import Pickler, Unpickler, UnpicklingError  # `pickle` has them in Python, too, which takes a while to load
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from struct import Struct
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from agentwatch.forked import aside
from agentwatch.kept import looks
from agentwatch.kept.answers import LARGEST, LONGEST, SEAL_BYTES, SECRET_BYTES, bytes_of, place_of, seal, secret_of
from agentwatch.kept.keeping import prepare, put
from agentwatch.kept.noted import sign_of

WORTH: Final = 300
"""Values below which to find them out costs less than to keep them."""

_MANY: Final = 2_000
"""Values that take longer to write than another process to begin."""
_MAGIC: Final = b"agentwatch index 1\n\0"
_HEAD: Final = Struct(f"<20sd{SEAL_BYTES}s{SEAL_BYTES}s")
"""After the seal: what it is, since when it holds, the key, and, of what came later, the seal of what it came to."""
_FIRST: Final = bytes(SEAL_BYTES)
_SHARE: Final = 8
"""One part in so many has changed, at most, before all is written again."""
_CODE: Final = (
    *("", "contracts", "delegation", "evidence", "evidence/commands", "kept"),
    *("sources/files", "sources/sessions", "sources/claude_code"),
)
"""Where the code lies that finds out what is kept."""
_PROTOCOL: Final = 5
_PACKAGES: Final = ("pydantic", "pydantic_core")

_NOTHING: Final[Mapping[type, Callable[[], object]]] = MappingProxyType({})
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Index(Generic[K, V]):
    """Values of one `name` about a thing, which `about` tells apart from all others. Never raises.

    They are made of `kinds`, which are enums, named tuples and frozen dataclasses, and of what Python has itself.
    """

    def __init__(self, name: str, about: Sequence[object], kinds: Sequence[type], worth: int | None = None) -> None:
        """Fewer values than `worth`, by default `WORTH`, are not kept."""
        self._kinds = kinds
        self._worth = WORTH if worth is None else worth
        self._about = repr((name, about))
        self._place = place_of(self._about.encode("utf-8", "surrogatepass"))
        self._key = b""
        self._seal = b""
        """Of the file with all values that was loaded."""
        self._began = 0.0
        """Since when the oldest of what is known holds, at the latest."""
        self._all: dict[K, V] = {}
        self._later: dict[K, V] = {}
        """What has come since that file was written, and what is new."""
        self._new: set[K] = set()
        self._asked: set[K] = set()

    def load(self, wanted: int) -> None:
        """Take in what was kept, and keep from now on what is put in, if so many values will be wanted that it is worth
        it."""
        if wanted < self._worth:
            return
        with looks.unnoted():
            code = _code()
            if not (self._place and code):
                return
            said = repr((self._about, code)).encode("utf-8", "surrogatepass")
            self._key, self._began = blake2b(said, digest_size=SEAL_BYTES).digest(), time.time()
            found = self._read(self._place, _FIRST)
            if found is not None:
                # However often it is written anew: nothing in it gets older than a day.
                self._began, self._seal, self._all = found
                more = self._read(self._more, self._seal)
                self._later = {} if more is None else more[2]

    def get(self, key: K) -> V | None:
        if not self._key:
            return None
        self._asked.add(key)
        value = self._later.get(key)
        return self._all.get(key) if value is None else value

    def put(self, key: K, value: V) -> None:
        if self._key:
            self._asked.add(key)
            self._later[key] = value
            self._new.add(key)

    def told(self) -> tuple[set[K], dict[K, V]]:
        """What was asked for, and what was put in."""
        return self._asked, {key: self._later[key] for key in self._new}

    def take(self, told: tuple[set[K], dict[K, V]]) -> None:
        """What a copy of this one has told was asked for and put in here, too."""
        asked, new = told
        self._asked |= asked
        self._later |= new
        self._new |= new.keys()

    def save(self) -> None:
        """Leave what is known for the next one, where that is worth it. Only what was asked for is left."""
        if len(self._new) >= _MANY:
            aside(self._save)
        elif self._new:
            self._save()
        self._new.clear()

    def _save(self) -> None:
        with looks.unnoted():
            prepare(self._place)
            if self._seal and len(self._later) <= max(self._worth, len(self._all) // _SHARE):
                self._write(self._more, self._seal, self._later)
            elif len(self._asked) >= self._worth:
                known = self._all | self._later
                self._write(self._place, _FIRST, {key: known[key] for key in known if key in self._asked})

    @property
    def _more(self) -> str:
        return f"{self._place}+"

    def _read(self, place: str, first: bytes) -> tuple[float, bytes, dict[K, V]] | None:
        """(since when it holds, its seal, the values) of a file, None where it holds nothing."""
        data, secret = memoryview(bytes_of(place)), secret_of(place)
        found, sealed = bytes(data[:SEAL_BYTES]), data[SEAL_BYTES:]
        # Before a byte of it means anything.
        if len(secret) != SECRET_BYTES or len(sealed) < _HEAD.size or seal(secret, sealed) != found:
            return None
        magic, begins, *belongs = _HEAD.unpack_from(sealed)
        if magic != _MAGIC or belongs != [self._key, first] or not begins <= time.time() < begins + LONGEST:
            return None
        try:
            os.utime(place, follow_symlinks=False)
            values = unpacked(sealed[_HEAD.size :], self._kinds)
        except (OSError, ValueError):
            return None
        return (begins, found, values) if isinstance(values, dict) else None

    def _write(self, place: str, first: bytes, values: Mapping[K, V]) -> None:
        data, secret = packed(values, self._kinds), secret_of(place)
        head = _HEAD.pack(_MAGIC, self._began, self._key, first)
        if len(secret) != SECRET_BYTES or len(head) + len(data) > LARGEST or code_has_changed():
            return
        try:
            put(place, seal(secret, head, data) + head + data)
        except OSError:
            # It is only slower then.
            return


def packed(values: object, kinds: Sequence[type]) -> bytes:
    """Values as bytes, each text in them once."""
    file = io.BytesIO()
    pickler = Pickler(file, _PROTOCOL)
    # By its own way, a dataclass takes twice as long.
    pickler.dispatch_table = {kind: _reducer(kind) for kind in kinds if is_dataclass(kind)}
    pickler.dump(values)
    return file.getvalue()


def unpacked(
    data: bytes | memoryview, kinds: Sequence[type], instead: Mapping[type, Callable[[], object]] = _NOTHING
) -> Any:
    """Values of these kinds from bytes that are our own. Whatever they are, nothing else is called than the kinds, or
    what is called `instead` of one. Raises ValueError."""
    try:
        return _Unpickler(io.BytesIO(data), kinds, instead).load()
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        UnpicklingError,
    ) as error:
        raise ValueError(str(error)) from error


class _Unpickler(Unpickler):
    def __init__(self, file: io.BytesIO, kinds: Sequence[type], instead: Mapping[type, Callable[[], object]]) -> None:
        super().__init__(file)
        known = (*kinds, *instead)
        self._kinds = {(kind.__module__, kind.__qualname__): instead.get(kind, kind) for kind in known}

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        try:
            return self._kinds[module, name]
        except KeyError:
            raise UnpicklingError(f"{module}.{name} is not expected") from None


@lru_cache(maxsize=64)
def _reducer(kind: type) -> Callable[[Any], tuple[type, tuple[Any, ...]]]:
    names = [field.name for field in fields(kind)]
    if len(names) == 1:
        return lambda value: (kind, (getattr(value, names[0]),))
    get = attrgetter(*names)
    return lambda value: (kind, get(value))


def code_has_changed() -> bool:
    """Whether the code that runs is perhaps not that which lies there by now."""
    return _code_now() != _code()


def _code_now() -> str:
    """What tells one code from another, "" where that is not known."""
    # It takes a while to load.
    from importlib.util import find_spec

    root = str(Path(__file__).parent.parent)
    signs: list[object] = []
    try:
        for directory in _CODE:
            place = os.path.join(root, directory)  # noqa: PTH118
            with os.scandir(place) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(".py"))
            signs += [(name, sign_of(os.stat(f"{place}/{name}"))) for name in names]  # noqa: PTH116
        for package in _PACKAGES:
            found = find_spec(package)
            signs.append((found.origin, sign_of(os.stat(found.origin))) if found and found.origin else "")  # noqa: PTH116
    except (OSError, ValueError, ImportError):
        return ""
    return repr((root, sys.version, signs))


_code: Final = lru_cache(maxsize=1)(_code_now)
"""As it was when it was first needed."""
