"""Compares a result with its golden file."""

import json
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

import pytest


class Golden:
    """The golden files of one run of the tests."""

    def __init__(self, update: bool):
        self.update = update

    def check(self, name: str, result: Any, key: str | None = None):
        """Compare a text, or any JSON value, with the golden file of this name below `tests/goldens`.

        With `key`, the file is a JSON object of many results, and this is one of them. Fails if they differ. With
        `--update-goldens` the file is written instead."""
        path = Path(__file__).parent / name
        was = _read(path, parsed=not isinstance(result, str))
        if self.update:
            _read.cache_clear()
            path.parent.mkdir(parents=True, exist_ok=True)
            new = result if key is None else dict(sorted({**was, key: result}.items()))
            text = new if isinstance(new, str) else json.dumps(new, indent=1, ensure_ascii=key is not None) + "\n"
            path.write_text(text, encoding="utf-8")
            return
        was = was if key is None else was.get(key)
        if result != was:
            texts = (one if isinstance(one, str) else _indented(one) for one in (was, result))
            lines = unified_diff(*(text.splitlines() for text in texts), name, "now", lineterm="", n=2)
            pytest.fail("\n".join([f"{key or ''} differs; `pytest tests/goldens --update-goldens` writes it", *lines]))


@cache
def _read(path: Path, *, parsed: bool) -> Any:
    text = path.read_text("utf-8") if path.exists() else "{}"
    return json.loads(text) if parsed else text


def _indented(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


@pytest.fixture
def golden(request):
    """Return the golden files, to compare with or, with `--update-goldens`, to write."""
    return Golden(request.config.getoption("--update-goldens"))
