"""agentwatch: the live delegation tree of a workspace in which coding agents work."""

__version__ = "0.1.0"
