"""The details of the selected task."""

from agentwatch.app.widgets.details.pane import DetailsPane
from agentwatch.app.widgets.details.tab_bar import TABS

__all__ = ["TABS", "DetailsPane"]
