"""The operator's decisions on the screen: one dialog an action, one task at a time."""

from agentwatch.app.dialogs.opening import decide

__all__ = ["decide"]
