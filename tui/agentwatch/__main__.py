"""The `agentwatch` command."""

import atexit
import gc
import os
import sys

_INTERRUPTED = 130  # the exit code, as shells have it


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Asked by scripts, and answered without loading the argument parser.
        from agentwatch import __version__

        print(f"agentwatch {__version__}")
        return
    # Looking for garbage takes a fifth of the time of a small `tree`, and of the first frame. Long commands turn it on.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        from agentwatch.cli import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        # Also while it is still being loaded.
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    if not __package__:
        # By its path, as `shell.launcher` has it: without `site`, it is told where the packages lie.
        sys.path += sys.argv.pop(1).split(os.pathsep)
    main()
