"""The `agentwatch` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Asked by scripts, and answered without loading the argument parser.
        from agentwatch import __version__  # noqa: PLC0415

        print(f"agentwatch {__version__}")
        return
    from agentwatch.cli import run  # noqa: PLC0415

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
