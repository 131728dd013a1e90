"""Codex: the rollouts, databases and writer locks of its home, read and never written."""

from agentwatch.sources.codex.codex_reader import CodexReader

__all__ = ["CodexReader"]
