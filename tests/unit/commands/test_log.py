"""The log without a screen: what was is told first, and which claims are false now at its end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentwatch.commands import log
from agentwatch.composition import inbox_of
from agentwatch.config import Settings
from agentwatch.sources.files.source import FilesSource
from tests.app.deciding import handoff, returned

SETTINGS = Settings(sessions=False)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_claim_that_is_false_now_is_told_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = tmp_path / "shop"
    workspace.mkdir()
    (workspace / "api.handoff.json").write_text(handoff())
    (workspace / "api.return.md").write_text(returned("SUCCESS", more=""))
    source = FilesSource(workspace)
    observations = source.scan().observations

    @contextmanager
    def past_of(*_: object, **__: object) -> Iterator[log.Past]:
        yield log.Past(observations, (), source.content, dict, None, inbox_of(workspace))

    monkeypatch.setattr(log, "past_of", past_of)
    assert log.print_log(workspace, SETTINGS, as_json=as_json, follow=False) == 0
    *before, last = capsys.readouterr().out.splitlines()
    assert before
    if as_json:
        assert [json.loads(one)["contradicted"] for one in (*before, last)] == [False] * len(before) + [True]
    else:
        assert "  shop.api  completed → completed, contradicted  a claim is false: " in last
        assert not any("false" in one for one in before)
