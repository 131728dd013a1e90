"""Settings that hold for every test."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# `AGENTWATCH_EXAMPLES=20000 pytest tests/unit` searches longer than CI has time for.
settings.register_profile(
    "agentwatch",
    max_examples=int(os.environ.get("AGENTWATCH_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("agentwatch")

# Whoever runs the tests may ignore signals, as below `nohup` or in a background job, and what is ignored stays so in
# whatever a test starts. What is handled, if only by nothing, is not: that has its signals by default.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda _number, _frame: None)
