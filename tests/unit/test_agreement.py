"""The model and the mode that a return reports, held against the session store and the handoff."""

from __future__ import annotations

import pytest

from agentwatch.view.words import Agreement, mode_of, model_of
from tests.unit.delegation.asking import session
from tests.unit.delegation.events import handoff

MATCHES, DIFFERS, UNKNOWN = Agreement.MATCHES, Agreement.DIFFERS, Agreement.UNKNOWN


@pytest.mark.parametrize(
    ("asked", "reported", "agreement"),
    [
        ("code", "code", MATCHES),
        ("code", " Code ", MATCHES),
        ("architect", "code", DIFFERS),
        (None, "code", UNKNOWN),
        ("code", None, UNKNOWN),
    ],
)
def test_the_mode(asked: str | None, reported: str | None, agreement: Agreement) -> None:
    assert mode_of(reported, handoff("a", mode=asked)).agreement is agreement


@pytest.mark.parametrize(
    ("recorded", "reported", "agreement"),
    [
        ("gpt-5.2", "openai/gpt-5.2", MATCHES),
        ("anthropic/Opus", "opus", MATCHES),
        ("opus", "sonnet", DIFFERS),
        (None, "sonnet", UNKNOWN),
    ],
)
def test_the_model(recorded: str | None, reported: str | None, agreement: Agreement) -> None:
    assert model_of(reported, session(model=recorded)).agreement is agreement
