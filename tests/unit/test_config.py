"""Settings, state and home come from the user's own file and variables; an error about one names its place."""

import pwd
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.config import Settings, config_directory, load, locate_setting
from agentwatch.errors import ConfigError
from agentwatch.state import leads_through, scratch_directory


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


KEYS = """
[keys]
decide.retry = "ctrl+r"
timeline = ["t", "f9"]
"timeline.in" = "p"
filter.state.back = "B"
"""


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ('enforcement = "lenient"\nstale_after = 30\nlow_confidence = 0.7\nmax_bytes = 4096\npoll = true',
         Settings(enforcement="lenient", stale_after=30, low_confidence=0.7, max_bytes=4096, poll=True)),
        ('pruned = ["build-*"]\nsessions = false\nrequire_contract = true\nread_only = true\neditor = "vi"',
         Settings(pruned=frozenset({"build-*"}), sessions=False, require_contract=True, read_only=True, editor="vi")),
        ("[retry]\nmax_retries = 2\nexpires_after = 3600", Settings(retry_max_retries=2, retry_expires_after=3600)),
        ('modes = ["debug", "architect"]', Settings(modes=(("debug", ""), ("architect", "")))),
        ('[modes]\ndebug = "finds the cause"', Settings(modes=(("debug", "finds the cause"),))),
        ('[prices]\n"gpt-5.1" = 5\nsmall = 0.5', Settings(prices=(("gpt-5.1", 5), ("small", 0.5)))),
        ('[views]\nmine = "is:needs-you"\na = "x"', Settings(views=(("mine", "is:needs-you"), ("a", "x")))),
        ('[mcp]\nwait = 20\n[hook]\nwhen = "always"\ncorrects = false',
         Settings(mcp_wait=20, hook_when="always", hook_corrects=False)),
        ('[hosts]\na = "ssh://a/x"\nb = ["nats://b"]', Settings(hosts=(("a", ("ssh://a/x",)), ("b", ("nats://b",))))),
        ("[retry]\n[hook]", Settings()),
        (KEYS, Settings(keys=(("decide.retry", ("ctrl+r",)), ("timeline", ("t", "f9")), ("timeline.in", ("p",)),
                              ("filter.state.back", ("B",))))),
        ('[opencode]\nurl = "http://[::1]:4096"\n[alarms]\n[remote]\nqueue = 5', Settings()),
        ('[notify]\nbell = false\ndesktop = false\ncommand = ["ring", "--loud"]',
         Settings(notify_bell=False, notify_desktop=False, notify_command=("ring", "--loud"))),
    ],
)  # fmt: skip
def test_settings_are_read(tmp_path, text, settings):
    assert load(written(tmp_path, text)) == settings
    assert load(tmp_path / "none.toml") == Settings()


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        (KEYS, "keys.decide.retry", 3),
        (KEYS, "keys.timeline.in", 5),
        (KEYS, "keys.filter.state.back", 6),
        ("poll = true\nkeys . open = 'x'", "keys.open", 2),
        ("\n[ keys.filter ]\nstate = 's'", "keys.filter.state", 3),
        ("keys = { open = 'x' }", "keys.open", 1),
        ("theme = 'x'\n[views]\ntheme = 'is:wrong'", "views.theme", 3),
        ("[views]\n'my own' = 'is:wrong'\n[notify]\nbell = true", "views.my own", 2),
    ],
)
def test_the_place_of_a_key_is_its_line(tmp_path, monkeypatch, text, key, line):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "agentwatch").mkdir()
    path = written(tmp_path / "agentwatch", text)
    load()
    assert locate_setting(key) == f"{path}:{line}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("keys = 3", "keys: must be a table of commands, each with a key or a list of keys"),
        ("keys.filter.state = [1]", "keys: must be a table of commands, each with a key or a list of keys"),
        ("[prices]\nsmall = -1", "prices: must be a table of models, each with a number up to 1000000"),
        ('views = ["state:failed"]', "views: must be a table that says what each view looks for"),
        ("stale_after = 0", "at least 1, not 0"),
        ("stale_after = nan", "at least 1, not nan"),
        ("stale_after = true", "at least 1, not True"),
        ("keys.open = []", "keys: must be a table of commands, each with a key or a list of keys"),
        ('hosts.box = { run = ["x"], path = "/work", port = 1 }', "hosts: must be a table of names"),
        ("[retry]\nexpires_after = inf", "retry.expires_after: must be a number from 60 to 315360000, not inf"),
        ("[mcp]\nwait = nan", "mcp.wait: must be a number from 0 to 86400, not nan"),
        ("[hook]\nwait = inf", "hook.wait: must be a number from 0 to 86400, not inf"),
        ("retry.max_retries = 1.5", "retry.max_retries: must be a whole number, at least 0, not 1.5"),
        ("pruned = [1]", "pruned: must be a list of directory names"),
        ("poll = 1", "poll: must be true or false, not 1"),
        ('theme = ""', "theme: must be a text"),
        ('[hook]\nwhen = "now"', "hook.when: must be one of watched, always, never"),
        ("[mcp]\nwaits = 1", "unknown key 'mcp.waits'"),
        ("hook = 1", "unknown key 'hook'"),
        ('[notify]\ncommand = "ring"', "notify.command: must be a list of words, the command and its arguments"),
    ],
)
def test_an_error_in_the_file_names_the_file_and_the_fault(tmp_path, text, words):
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load(path)
    assert str(path) in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize("value", ["", "relative"])
def test_the_directory_follows_the_xdg_specification(tmp_path, monkeypatch, value):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    assert config_directory() == tmp_path / ".config" / "agentwatch"


@pytest.mark.parametrize("command", ["tree", "pending", "sources", "keys", "wait"])
def test_a_user_without_a_home_is_told_to_set_one(command, tmp_path, monkeypatch, capsys):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(_user):
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    assert run([command, *(["shop.api"] if command == "wait" else [])]) == 2
    said = capsys.readouterr().err
    assert "set HOME" in said
    assert said.count("\n") == 1


def test_a_path_by_links_leads_through_the_workspace(tmp_path):
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for directory in (workspace, outside, tmp_path / "near"):
        directory.mkdir()
    (workspace / "out").symlink_to(outside)
    (tmp_path / "there").symlink_to(workspace / "out")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to(workspace / "later")
    through = (workspace / "a", workspace / "out" / "a", tmp_path / "there" / "a", outside / ".." / "workspace")
    # A loop may lead anywhere; a dangling link leads there once its target is made.
    for path in (*through, tmp_path / "dangling" / "a", tmp_path / "loop" / "a"):
        assert leads_through(path, workspace)
    for path in (outside / "a", tmp_path / "near" / ".." / "x"):
        assert not leads_through(path, workspace)


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
