"""Sessions of Claude Code, read as runs: see `claude_code_reader`."""

from typing import Final

NAME: Final = "claude-code"  # the name of the program in its runs
