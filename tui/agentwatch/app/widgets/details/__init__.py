"""The details of the selected task."""

from agentwatch.app.widgets.details.pane import DetailsPane
from agentwatch.app.widgets.details.tabs import TABS

__all__ = ["TABS", "DetailsPane"]
