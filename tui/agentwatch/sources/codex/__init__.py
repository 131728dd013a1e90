"""Codex: the rollouts, databases and writer locks of its home, read and never written."""
