"""The `agentwatch` command."""

from __future__ import annotations

import atexit
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentwatch.kept.answers import Question

KEPT = ("tree", "pending", "check")
"""Commands that only say how things stand."""
_INTERRUPTED = 130
"""The exit code, as shells have it."""


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        _main()
    except KeyboardInterrupt:
        # Also while it is still being loaded.
        sys.exit(_INTERRUPTED)


def _main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Asked by scripts, and answered without loading the argument parser.
        from agentwatch import __version__

        print(f"agentwatch {__version__}")
        return
    # Looking for garbage takes a fifth of the time of a small `tree`, and of the first frame. What stays turns it on.
    gc.disable()
    atexit.register(gc.freeze)
    if sys.argv[1:] and sys.argv[1] in (*KEPT, "wait"):
        if sys.argv[1] == "wait":
            from agentwatch.polls import polled as answered
        else:
            from agentwatch.kept.answers import answered

        try:
            sys.exit(answered(sys.argv[1:], _run, _ask_git))
        except OSError as error:
            from agentwatch.cli import refused

            sys.exit(refused(error))
    if sys.argv[1:2] == ["hook"]:
        # What it asks of a task is kept; see `sightings`.
        from agentwatch.kept.looks import install

        install()
    sys.exit(_run())


def _run() -> int:
    from agentwatch.cli import run

    return run(sys.argv[1:])


def _ask_git(workspace: str, questions: list[Question]) -> list[str]:
    from agentwatch.evidence.plumbing import ask_again

    return ask_again(workspace, questions)


if __name__ == "__main__":
    if not __package__:
        # By its path, as `shell.launcher` has it: without `site`, it is told where the packages lie.
        sys.path += sys.argv.pop(1).split(os.pathsep)
    main()
