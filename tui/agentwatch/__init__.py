"""agentwatch shows, as a live tree, the coding agents in a workspace and their tasks."""

__version__ = "0.1.0"
