"""What Claude Code keeps of its sessions, read as runs: see `claude_code_reader`."""

from typing import Final

NAME: Final = "claude-code"
"""What its runs call the program."""
