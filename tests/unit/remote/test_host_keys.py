"""A host in a container, which a program leads to: it is seen as long as its key is trusted, and no longer."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.homes import live_in
from tests.journeys.made import handoff

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys, Role

ENTER = f"""#!/bin/sh
export HOME="$BOX" XDG_STATE_HOME="$BOX/state" XDG_CONFIG_HOME="$BOX/config" PATH="{Path(sys.executable).parent}:$PATH"
exec "$@"
"""


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the host that is called `box` here."""
    live_in(tmp_path, monkeypatch)
    box, enter = tmp_path / "in the box", tmp_path / "enter"
    (box / "shop").mkdir(parents=True)
    (box / "shop" / "api.handoff.json").write_text(handoff("shop.api"))
    enter.write_text(ENTER)
    enter.chmod(0o755)
    monkeypatch.setenv("BOX", str(box))
    settings = Keys().directory.parent / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[hosts]\nbox = {{ run = ["{enter}"], path = "~/shop" }}\n')
    return box


def test_a_host_whose_key_is_distrusted_or_another_is_not_believed_and_that_is_said(
    box: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def seen() -> tuple[list[str], str]:
        run(["tree", "--json", "box"])
        tree: dict[str, Any] = json.loads(capsys.readouterr().out)
        return [task["task_id"] for task in tree["tasks"]], " ".join(one["message"] for one in tree["problems"])

    assert seen() == (["shop.api"], "")
    (noted,) = Keys().others(Role.HOST)
    assert run(["keys", "distrust", "box", "--host"]) == 0
    capsys.readouterr()
    tasks, why = seen()
    assert (tasks, "its key is trusted no more: `agentwatch keys trust" in why) == ([], True)
    # Nor does it become another host by another name.
    config = Keys().directory.parent / "config.toml"
    config.write_text(config.read_text().replace("box =", "other ="))
    run(["tree", "--json", "other"])
    assert json.loads(capsys.readouterr().out)["tasks"] == []
    config.write_text(config.read_text().replace("other =", "box ="))
    assert run(["keys", "trust", noted.public.text, "--name", "box", "--host"]) == 0
    capsys.readouterr()
    assert seen() == (["shop.api"], "")
    shutil.rmtree(box / "config")
    tasks, why = seen()
    assert (tasks, "it signs with another key than it had before" in why) == ([], True)
    assert [one.public for one in Keys().others(Role.HOST)].count(noted.public) >= 1
    assert len({one.public for one in Keys().others(Role.HOST)}) == 1
