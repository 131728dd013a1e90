"""The `agentwatch` command."""

from __future__ import annotations

import atexit
import gc
import os
import sys

_BRIEF = frozenset(
    {"check", "claim", "decide", "hook", "pending", "report", "rules", "sources", "tree", "verify", "wait"}
)
"""Commands that look once and end."""


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Asked by scripts, and answered without loading the argument parser.
        from agentwatch import __version__  # noqa: PLC0415

        print(f"agentwatch {__version__}")
        return
    if not _BRIEF.isdisjoint(sys.argv[1:2]):
        # Looking for garbage, while they run and when they end, takes a fifth of the time of a small `tree`.
        gc.disable()
        atexit.register(gc.freeze)
    from agentwatch.cli import run  # noqa: PLC0415

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    if not __package__:
        # By its path, as `shell.launcher` has it: without `site`, it is told where the packages lie.
        sys.path += sys.argv.pop(1).split(os.pathsep)
    main()
