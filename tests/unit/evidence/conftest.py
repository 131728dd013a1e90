"""Workspaces for the tests of evidence."""

import pytest

from tests.unit.evidence.repository import Repository


@pytest.fixture
def plain(tmp_path):
    """Return a workspace that is in no git repository."""
    return Repository(tmp_path / "workspace", tmp_path / "home")


@pytest.fixture
def repository(plain):
    """Return a git repository with one commit from before the handoff, which holds `tracked.md`."""
    plain.init()
    plain.write("tracked.md", "one\n", at=-1_000)
    plain.commit(at=-1_000)
    return plain
