"""Whatever cannot be read, every command says so: in words, in JSON and in its exit code."""

import json

import pytest

from agentwatch.agents.documents import EXAMPLES
from agentwatch.cli import run
from agentwatch.state import HISTORY, state_directory
from tests.closing import bound_by_permissions
from tests.homes import live_in


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace with one task, which was handed off, of a user who has no programs."""
    live_in(tmp_path, monkeypatch)
    place = tmp_path / "shop"
    place.mkdir()
    (place / "job.handoff.md").write_text(f"```json\n{EXAMPLES['handoff-packet']}\n```\n")
    return place


@pytest.mark.parametrize(
    ("source", "path", "is_closed"),
    [
        ("opencode", ".local/share/opencode/opencode.db", False),
        ("claude-code", ".claude/projects", True),
        ("files", "shop/specs", True),
        ("history", f"STATE/{HISTORY}", False),
        ("history", "STATE", True),
        ("decisions", "STATE/decisions", True),
    ],
)
def test_every_face_says_what_it_could_not_see(workspace, capsys, source, path, *, is_closed):
    def asked(*words: str) -> tuple[int, str, str]:
        return run([*words, str(workspace)]), *capsys.readouterr()

    for words in (["tree", "--fail"], ["pending"], ["report"]):
        assert asked(*words)[::2] == (0, "")
    assert asked("pending")[1] == "nothing needs you\n"
    assert "Nothing needs a human" in asked("report")[1]
    place = workspace.parent / path.replace("STATE", str(state_directory(workspace)))
    place.parent.mkdir(parents=True, exist_ok=True)
    if is_closed:
        place.mkdir(0)
    else:
        place.write_bytes(b"broken" * 1_000)
    with bound_by_permissions():
        for words, expected in (["tree"], 0), (["tree", "--fail"], 1), (["report"], 1), (["pending"], 1):
            code, out, err = asked(*words)
            assert (code, "not all can be seen: " in err) == (expected, True), words
        assert out == "nothing that can be seen needs you\n"
        for words, expected in (["tree", "--json"], 0), (["pending", "--json"], 1):
            code, out, _ = asked(*words)
            told = json.loads(out)
            assert (code, told["complete"]) == (expected, False)
            assert source in {problem["source"] for problem in told["problems"]}
            assert all(problem.keys() == {"source", "place", "message"} for problem in told["problems"])
        code, out, _ = asked("report", "--format", "json")
        told = json.loads(out)
        assert (code, told["complete"], bool(told["problems"])) == (1, False, True)
        assert "could not be read" in told["verdict"]
        for format_ in ("md", "html"):
            assert "Could not be read" in asked("report", "--format", format_)[1]
    if is_closed:
        place.chmod(0o700)
