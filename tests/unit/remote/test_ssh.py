"""A real ssh to a real sshd: a relay is run there, and what cannot be done is said in a sentence."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.remote.sshd import SeenBySsh, Sshd, needs_sshd

from agentwatch.remote.address import parse
from agentwatch.remote.pipe import command, reason

PACKET = '{"task_id": "%s", "objective": "count the seeds", "acceptance_criteria": ["done"], "scope": {"in": ["a"]}}'


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    running = Sshd(tmp_path_factory.mktemp("sshd"))
    yield running
    running.stop()


@pytest.fixture
def workspace(sshd: Sshd, tmp_path: Path) -> Path:
    made = tmp_path / 'it\'s a shop; $(touch pwned) `x` "y"'
    made.mkdir()
    (made / "a.handoff.json").write_text(PACKET % "a")
    return made


@needs_sshd
def test_what_agents_write_there_is_seen_here_whatever_the_directory_is_called(sshd: Sshd, workspace: Path) -> None:
    seen = SeenBySsh(sshd, workspace)
    try:
        seen.until(lambda: [*seen.tree.tasks] == ["a"])
        (workspace / "b.handoff.json").write_text(PACKET % "a.b")
        seen.until(lambda: [*seen.tree.tasks] == ["a", "a.b"])
        assert seen.host.hello is not None
        assert seen.host.hello.workspaces[0].path == str(workspace)
        assert not list(workspace.glob("pwned"))
    finally:
        seen.source.stop()
    assert seen.link._process is None


@needs_sshd
def test_agentwatch_that_is_not_there_is_named_with_how_to_install_it(tmp_path: Path) -> None:
    bare = Sshd(tmp_path / "bare", path="/usr/bin:/bin")
    seen = SeenBySsh(bare, tmp_path)
    try:
        seen.until(lambda: seen.health.mode == "degraded")
        assert seen.health.detail == (
            f"build1 cannot be reached: agentwatch is not installed on 127.0.0.1:{bare.port}, or not where ssh finds"
            " it: `pipx install .` in a clone of it there"
        )
        assert seen.told == ["Lost"]
    finally:
        seen.source.stop()
        bare.stop()


@needs_sshd
def test_a_directory_that_is_not_there_and_an_sshd_that_is_not_there_are_named(sshd: Sshd, tmp_path: Path) -> None:
    seen, gone = SeenBySsh(sshd, tmp_path / "none"), Sshd(tmp_path / "gone")
    gone.stop()
    nobody = SeenBySsh(gone, tmp_path)
    try:
        seen.until(lambda: "no such directory" in seen.health.detail)
        nobody.until(lambda: "Connection refused" in nobody.health.detail)
        assert nobody.health.detail.endswith(f"`ssh 127.0.0.1:{gone.port}` in a terminal says more")
    finally:
        seen.source.stop()
        nobody.source.stop()


def test_the_shell_there_gets_paths_quoted_and_ssh_no_word_that_could_be_an_option() -> None:
    hostile = "/srv/-rf '; touch pwned; '$(x)\n"
    made = command(parse("ssh://kim@[::1]:2222/srv"), [hostile, "~/shop"])
    assert made[-2] == "::1"
    assert made[-3] == "--"
    assert made[made.index("-p") + 1 : made.index("-p") + 4] == ["2222", "-l", "kim"]
    assert shlex.split(made[-1])[-2:] == [hostile, "~/shop"]


@pytest.mark.parametrize(
    ("code", "lines", "words"),
    [
        (127, ["sh: 1: exec: agentwatch: not found"], "agentwatch is not installed on build1"),
        (
            255,
            ["ssh: Could not resolve hostname build1: Name or service not known"],
            "Could not resolve hostname build1",
        ),
        (
            255,
            ["kim@build1: Permission denied (publickey)."],
            "denied (publickey): `ssh build1` in a terminal says more",
        ),
        (255, ["Warning: Permanently added 'build1'"], "ssh could not connect"),
        (1, ["agentwatch: the key is locked"], "the key is locked"),
        (0, [], "the connection has ended"),
    ],
)
def test_a_reason_is_the_last_line_that_says_one_and_what_to_do(code: int, lines: list[str], words: str) -> None:
    assert words in reason(code, lines, "build1", "the connection has ended")
