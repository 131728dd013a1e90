"""Compares a result with its golden file."""

import json
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


class Golden:
    """The golden files of one run of the tests."""

    def __init__(self, update: bool):
        self.update = update

    def check(self, name: str, result: Any, key: str | None = None):
        """Compare a text, or anything JSON holds, with the golden file of this name below `tests/goldens`.

        With `key`, the file is a JSON object of many results, and this is one of them. Raises AssertionError where they
        differ. With `--update-goldens` the file is written instead.
        """
        path = HERE / name
        if key is not None:
            self._check_key(path, result, key)
            return
        text = result if isinstance(result, str) else json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{name} is missing; write it with: pytest tests/goldens --update-goldens"
        expected = path.read_text(encoding="utf-8")
        if isinstance(result, str):
            different = "\n".join(unified_diff(expected.splitlines(), text.splitlines(), name, "now", n=1, lineterm=""))
            assert not different, different
            assert text == expected, f"{name} differs"
        else:
            assert result == json.loads(expected), f"{name} differs"

    def _check_key(self, path: Path, result: Any, key: str):
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            results = dict(sorted({**known, key: result}.items()))
            path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            return
        assert key in known, f"{key!r} is missing in {path.name}; write it with: pytest tests/goldens --update-goldens"
        if result != known[key]:
            shown = (json.dumps(one, indent=1, ensure_ascii=False).splitlines() for one in (known[key], result))
            pytest.fail("\n".join([f"{key!r} in {path.name} differs", *unified_diff(*shown, lineterm="", n=2)]))


@pytest.fixture
def golden(request):
    """The golden files, compared or, with `--update-goldens`, written."""
    return Golden(request.config.getoption("--update-goldens"))
