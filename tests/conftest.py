"""Settings that hold for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# `AGENTWATCH_EXAMPLES=20000 pytest tests/unit` searches longer than CI has time for.
settings.register_profile(
    "agentwatch",
    max_examples=int(os.environ.get("AGENTWATCH_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("agentwatch")
