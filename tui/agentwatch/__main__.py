"""The `agentwatch` command."""

import atexit
import gc
import os
import sys

_INTERRUPTED = 130  # the exit code that shells give for an interrupted command


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Scripts ask for the version often: answer without loading the argument parser.
        from agentwatch import __version__

        print(f"agentwatch {__version__}")
        return
    # A short command would spend a fifth of its time on garbage collection. Long-running commands turn it on again.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        from agentwatch.cli import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        # The import above is inside the `try`, because the user may press ctrl+c while modules load.
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    if not __package__:
        # `shell.launch_words` made this command line. Its first argument lists the package directories.
        sys.path += sys.argv.pop(1).split(os.pathsep)
    main()
