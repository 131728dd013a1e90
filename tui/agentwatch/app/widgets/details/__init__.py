"""The details of the selected task."""

from agentwatch.app.widgets.details.pane import DetailsPane

__all__ = ["DetailsPane"]
