"""The operator's decisions on the screen: one dialog an action, one task at a time."""

from agentwatch.app.screens.decide.opening import decide

__all__ = ["decide"]
