"""Sessions of Claude Code, read as runs: see `claude_code_reader`."""

NAME = "claude-code"  # the name of the program in its runs
