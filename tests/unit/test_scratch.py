"""Temporary directories of ours lie where no agent can write."""

import shutil
from contextlib import suppress

import pytest

from agentwatch.state import scratch_directory


def test_only_the_user_may_enter_and_it_is_gone_at_the_end(tmp_path, monkeypatch):
    state = tmp_path / "missing" / "deep" / "agentwatch"
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    with suppress(KeyError), scratch_directory() as place:
        (place / "file").touch()
        assert place.is_relative_to(state)
        assert [path.stat().st_mode & 0o777 for path in (place, place.parent, state)] == [0o700] * 3
        raise KeyError
    with scratch_directory() as gone:
        shutil.rmtree(gone)
    assert list(state.rglob("*")) == [place.parent]
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "inside"))
    with pytest.raises(NotADirectoryError), scratch_directory():
        pass
