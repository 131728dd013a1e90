"""Places that nobody may enter and files that nobody may read, even if root runs the tests."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_VERSION = 0x20080522
_OVERRIDE = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, which let root read without permission."""
_PR_SET_SECUREBITS = 28
_NOROOT = 1
"""Programs that this thread starts as root get no capabilities for being root."""


@contextmanager
def closed(path: Path) -> Iterator[None]:
    """Close a file or a directory for everybody, including root in this thread."""
    mode = path.stat().st_mode & 0o777
    path.chmod(0)
    try:
        with bound_by_permissions():
            yield
    finally:
        path.chmod(mode)


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Bind root, in this thread and in the programs that it starts, by the permissions of an ordinary user."""
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
