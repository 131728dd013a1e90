"""What the machine has to work with."""

from __future__ import annotations

import os


def has_two_cores() -> bool:
    usable = getattr(os, "sched_getaffinity", None)
    return (len(usable(0)) if usable is not None else os.cpu_count() or 1) > 1
