"""Accept: a partial, invalid or contradicted return is good enough as it is, and the operator says why."""

from __future__ import annotations

from typing import ClassVar

from agentwatch.app.dialogs.frame import DecisionScreen


class AcceptScreen(DecisionScreen):
    """Nothing more is asked of the child."""

    note_label: ClassVar[str] = "because"
    note_placeholder: ClassVar[str] = "why it is good enough"
