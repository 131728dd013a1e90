"""What Claude Code keeps of its sessions, read as runs: see `reader`."""

from agentwatch.sources.claude_code.reader import ClaudeCodeReader

__all__ = ["ClaudeCodeReader"]
