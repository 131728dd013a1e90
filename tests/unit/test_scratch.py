"""Temporary directories of ours lie where no agent can write."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from agentwatch.state import scratch_directory


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "agentwatch"


def test_only_the_user_may_enter_and_it_is_gone_at_the_end(state: Path) -> None:
    with suppress(KeyError), scratch_directory() as place:
        (place / "file").touch()
        assert place.is_relative_to(state)
        assert [path.stat().st_mode & 0o777 for path in (place, place.parent, state)] == [0o700] * 3
        raise KeyError
    assert list(state.rglob("*")) == [place.parent]


def test_what_is_gone_already_is_no_error(state: Path) -> None:
    with scratch_directory() as place:
        shutil.rmtree(place)
    assert list(state.rglob("*")) == [place.parent]


@pytest.mark.parametrize("state_home", ["missing/deep", "file/inside"])
def test_a_place_that_cannot_be_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state_home: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / state_home))
    if state_home.startswith("file"):
        with pytest.raises(OSError), scratch_directory():  # noqa: PT011
            pass
    else:
        with scratch_directory() as place:
            assert place.exists()
