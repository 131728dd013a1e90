"""`agentwatch init`: each program gets its files, no setting of the user is lost, and all of it can be taken back."""

import json
from pathlib import Path

import pytest

from agentwatch.agents import setup
from agentwatch.agents.setup import known_programs
from agentwatch.config import Settings
from agentwatch.shell import launch_words
from agentwatch.text import Mark
from tests.homes import live_in

SETTINGS = """\
{
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "PostToolUse": [
            {"matcher": "Edit", "hooks": [{"type": "command", "command": "make format"}]}
        ]
    }
}
"""
CLAUDE = {
    "CLAUDE.md": "# Shop\n\nUse tabs.\n",
    ".claude/settings.json": SETTINGS,
    ".mcp.json": '{"mcpServers": {"files": {"command": "files-server"}}}\n',
}
OPENCODE = {
    "AGENTS.md": "# Shop\r\n\r\nUse tabs.\r\n",
    "opencode.json": '{\n\t"mcp": {\n\t\t"files": {"type": "local", "command": ["files-server"]}\n\t}\n}\n',
}
BEFORE: dict[str, dict[str, str]] = {
    "claude-code": CLAUDE,
    "opencode": OPENCODE,
    "kilo": {".kilo/kilo.jsonc": "{}\n"},
    "codex": {".codex/config.toml": 'model = "some"\n'},
    "generic": {"AGENTS.md": "# Shop"},
}


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path_factory):
    """Use an empty home instead of this user's own files."""
    made = tmp_path_factory.mktemp("home")
    live_in(made, monkeypatch)
    return made


def put(workspace: Path, files: dict[str, str]):
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(text.encode())


def files_of(workspace: Path) -> dict[str, str]:
    found = sorted(path for path in workspace.rglob("*") if path.is_file())
    return {path.relative_to(workspace).as_posix(): path.read_bytes().decode() for path in found}


def init(workspace: Path, agent: str | None = None, *, write: bool = True, remove: bool = False) -> int:
    return setup.set_up(workspace, agent, Settings(), write=write, remove=remove)


@pytest.mark.parametrize("agent", BEFORE)
def test_changes_of_the_user_stay_when_ours_are_removed(tmp_path, agent):
    put(tmp_path, BEFORE[agent])
    init(tmp_path, agent)
    instructions = tmp_path / known_programs(Settings())[agent].instructions
    instructions.write_bytes(instructions.read_bytes() + b"\nAnd commas.\n")
    init(tmp_path, agent, remove=True)
    left = files_of(tmp_path)
    assert "And commas." in left[instructions.name]
    assert not any("agentwatch" in text for text in left.values())


def test_the_users_own_settings_stay_and_keep_their_indent(tmp_path):
    put(tmp_path, OPENCODE)
    (tmp_path / "opencode.json").chmod(0o600)
    init(tmp_path, "opencode")
    assert (tmp_path / "opencode.json").stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "opencode.json").read_text("utf-8")
    assert json.loads(text)["mcp"]["files"] == json.loads(OPENCODE["opencode.json"])["mcp"]["files"]
    assert '\n\t\t"agentwatch": {\n' in text
    init(tmp_path, "opencode", remove=True)
    left = files_of(tmp_path)
    assert left["AGENTS.md"] == OPENCODE["AGENTS.md"]
    assert json.loads(left["opencode.json"]) == json.loads(OPENCODE["opencode.json"])


def test_at_a_terminal_files_are_listed_and_written_after_a_yes(tmp_path, capsys):
    put(tmp_path, {name: text for name, text in CLAUDE.items() if name != ".mcp.json"})
    asked, codes = [], []
    for yes, remove in ((False, False), (True, False), (False, True), (True, True), (True, True)):
        confirm = lambda question: asked.append(question) or yes  # noqa: B023, E731
        codes.append(setup.set_up(tmp_path, None, Settings(), write=False, remove=remove, confirm=confirm))
        assert ("agentwatch" in files_of(tmp_path)["CLAUDE.md"]) is (yes != remove)
    assert (asked, codes) == (["Write 3 files?"] * 2 + ["Change 3 files?"] * 2, [1, 0, 1, 0, 0])
    out = capsys.readouterr().out
    listed = ("CLAUDE.md", "changed, +"), (".claude/settings.json", "changed, +"), (".mcp.json", "new, +")
    assert all(f"  {name:25}{what}" in out for name, what in (*listed, (".mcp.json", "removed, -")))
    assert all(f"`agentwatch init{more} | less` shows each line" in out for more in ("", " --remove"))
    left = files_of(tmp_path)
    assert (left["CLAUDE.md"], ".mcp.json" in left) == (CLAUDE["CLAUDE.md"], False)


@pytest.mark.parametrize(
    "broken", ['{"mcpServers": {', "[]", "{} // mine", '{"mcpServers": []}', "{'a': 1}", "\udcff"], ids=repr
)
def test_a_file_that_cannot_be_edited_safely_is_left_alone(tmp_path, capsys, broken):
    (tmp_path / ".mcp.json").write_bytes(broken.encode("utf-8", "surrogateescape"))
    before = (tmp_path / ".mcp.json").read_bytes()
    assert init(tmp_path) == setup.BY_HAND
    assert (tmp_path / ".mcp.json").read_bytes() == before
    assert Mark.BAD not in marks(tmp_path)
    shown = capsys.readouterr().out
    assert "by hand, to .mcp.json" in shown
    assert '"agentwatch": {' in shown


def test_nothing_is_written_through_a_link_or_outside(tmp_path, capsys):
    workspace, outside = tmp_path / "shop", tmp_path / "outside"
    workspace.mkdir()
    put(outside, {"settings.json": "{}", "CLAUDE.md": "theirs\n"})
    (workspace / ".claude").symlink_to(outside)
    (workspace / "CLAUDE.md").symlink_to(outside / "CLAUDE.md")
    assert init(workspace, "claude-code") == setup.BY_HAND
    assert files_of(outside) == {"settings.json": "{}", "CLAUDE.md": "theirs\n"}
    assert capsys.readouterr().out.count("nothing is written through links") == 2


def test_hostile_files_are_shown_harmlessly(tmp_path, capsys):
    put(tmp_path, {"CLAUDE.md": "\x1b]0;owned\x07 \u202e\n"})
    init(tmp_path, write=False)
    shown = capsys.readouterr().out
    assert "owned" in shown
    assert not any(character in shown for character in "\x1b\x07\u202e")


def old_setup(start: str) -> dict[str, str]:
    """Return every program's configuration as older versions wrote it, with `start` as the command."""
    words = start.split()
    server = {"command": words[0], "args": [*words[1:], "mcp"]}
    entry = {"hooks": [{"type": "command", "command": f"{start} hook", "timeout": 60}]}
    local = json.dumps({"mcp": {"agentwatch": {"type": "local", "command": [*words, "mcp"], "enabled": True}}})
    return {
        ".mcp.json": json.dumps({"mcpServers": {"agentwatch": server, "files": {"command": "files-server"}}}),
        # The entry is there twice, as a user may have pasted it again.
        ".claude/settings.json": json.dumps({"hooks": {"SubagentStop": [entry, entry], "PostToolUse": [entry]}}),
        "opencode.json": local,
        "kilo.json": local,
    }


def marks(workspace: Path, settings: Settings = Settings()) -> list[Mark]:  # noqa: B008  it cannot be changed
    return [one.mark for one in setup.check_setup(workspace, settings)]


STALE = "it does not start this agentwatch as it would be written now"
WRONG = ["agentwatch", "/x/bin/python -I -S /x/agentwatch/__main__.py /x", "/bin/sh -m agentwatch"]


def test_doctor_says_what_an_older_version_lacks(tmp_path):
    put(tmp_path, {**CLAUDE, "CLAUDE.md": "<!-- agentwatch: begin -->\nOld.\n<!-- agentwatch: end -->\n"})
    hooks = known_programs(Settings())["claude-code"].files[1].ours["hooks"]
    put(tmp_path, {".claude/settings.json": json.dumps({"hooks": {"SubagentStop": hooks["SubagentStop"]}})})
    block, started = (one.found for one in setup.check_setup(tmp_path, Settings()))
    assert block == "CLAUDE.md: its block is of another version; `agentwatch init` renews it"
    assert started.startswith(f".claude/settings.json: {STALE}")


@pytest.mark.parametrize("start", WRONG)
def test_doctor_says_what_is_stale_and_init_mends_it(tmp_path, home, start):
    put(tmp_path, old_setup(start))
    entry = f"[mcp_servers.agentwatch]\ncommand = {json.dumps(start.split(maxsplit=1)[0])}\n"
    put(home, {".codex/config.toml": f"{entry}args = {json.dumps([*start.split()[1:], 'mcp'])}\n"})
    found = [one.found for one in setup.check_setup(tmp_path, Settings())]
    assert [one for one in found if STALE in one] == found
    assert found[-1].startswith("~/.codex/config.toml: ")
    (home / ".codex" / "config.toml").unlink()
    assert marks(tmp_path) == [Mark.BAD] * 4
    assert init(tmp_path) == 0
    assert marks(tmp_path) == [Mark.GOOD, Mark.GOOD]
    assert marks(tmp_path, Settings(hook_wait=100)) == [Mark.BAD], "the time-outs are others now"
    written = files_of(tmp_path)
    assert json.loads(written[".mcp.json"])["mcpServers"]["files"] == {"command": "files-server"}
    assert written[".claude/settings.json"].count(f"{launch_words()[3]} {launch_words()[4]} hook") == 3
    put(tmp_path, old_setup(start))
    init(tmp_path, remove=True)
    assert files_of(tmp_path).keys() == {".mcp.json"}
