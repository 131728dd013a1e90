"""Places that nobody may enter and files that nobody may read, also where the tests are run by root."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_VERSION = 0x20080522
_OVERRIDE = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root reads without permission."""
_PR_SET_SECUREBITS = 28
_NOROOT = 1
"""Programs that this thread starts get no capabilities for being root."""


@contextmanager
def closed(path: Path) -> Iterator[None]:
    """Nobody may read a file, or enter a directory; root, in this thread, neither."""
    mode = path.stat().st_mode & 0o777
    path.chmod(0)
    try:
        with bound_by_permissions():
            yield
    finally:
        path.chmod(mode)


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Root, in this thread and in the programs that it starts, may read and write only what its user may."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may read everything; run the tests as a user")
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    before = sets[0]
    sets[0] &= ~_OVERRIDE
    assert libc.capset(header, sets) == 0
    assert libc.prctl(_PR_SET_SECUREBITS, _NOROOT, 0, 0, 0) == 0
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(header, sets) == 0
        assert libc.prctl(_PR_SET_SECUREBITS, 0, 0, 0, 0) == 0
