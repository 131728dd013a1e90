"""What OpenCode and Kilo Code keep of their sessions, read as runs: see `opencode_reader`."""

from agentwatch.sources.opencode.opencode_reader import OpenCodeReader
from agentwatch.sources.opencode.places import Store, find_stores

__all__ = ["OpenCodeReader", "Store", "find_stores"]
