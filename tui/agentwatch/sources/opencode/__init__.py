"""What OpenCode and Kilo Code keep of their sessions, read as runs: see `reader`."""

from agentwatch.sources.opencode.places import Store, find_stores
from agentwatch.sources.opencode.reader import OpenCodeReader

__all__ = ["OpenCodeReader", "Store", "find_stores"]
