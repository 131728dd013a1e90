"""Compares a result with its golden file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


class Golden:
    """The golden files of one run of the tests."""

    def __init__(self, update: bool) -> None:
        self.update = update

    def check(self, name: str, result: Any) -> None:
        """Compare a text, or anything JSON holds, with the golden file of this name below `tests/goldens`.

        Raises AssertionError where they differ. With `--update-goldens` the file is written instead.
        """
        path = HERE / name
        text = result if isinstance(result, str) else json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{name} is missing; write it with: pytest tests/goldens --update-goldens"
        expected = path.read_text(encoding="utf-8")
        if isinstance(result, str):
            assert text == expected, f"{name} differs"
        else:
            assert result == json.loads(expected), f"{name} differs"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """The golden files, compared or, with `--update-goldens`, written."""
    return Golden(request.config.getoption("--update-goldens"))
