"""Settings come from the user's own file, and a wrong one is said with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.config import Settings, config_directory, load, where
from agentwatch.errors import ConfigError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text, "utf-8")
    return path


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load(tmp_path / "none.toml") == Settings()


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """
    enforcement = "lenient"
    stale_after = 30
    low_confidence = 0.7
    pruned = ["build-*"]
    max_bytes = 4096
    poll = true
    sessions = false
    require_contract = true
    read_only = true
    modes = ["debug", "architect"]
    theme = "agentwatch-light"
    editor = "vi"
    [retry]
    max_retries = 2
    expires_after = 3600
    """
    assert load(written(tmp_path, text)) == Settings(
        enforcement="lenient",
        stale_after=30,
        retry_max_retries=2,
        retry_expires_after=3600,
        low_confidence=0.7,
        pruned=frozenset({"build-*"}),
        max_bytes=4096,
        poll=True,
        sessions=False,
        require_contract=True,
        read_only=True,
        modes=(("debug", ""), ("architect", "")),
        theme="agentwatch-light",
        editor="vi",
    )


def test_modes_may_say_what_they_are_for(tmp_path: Path) -> None:
    settings = load(written(tmp_path, '[modes]\ndebug = "finds the cause"\narchitect = ""\n'))
    assert settings.modes == (("debug", "finds the cause"), ("architect", ""))


def test_prices_are_numbers_by_model(tmp_path: Path) -> None:
    settings = load(written(tmp_path, '[prices]\n"gpt-5.1" = 5\nsmall = 0.5\n'))
    assert settings.prices == (("gpt-5.1", 5), ("small", 0.5))
    with pytest.raises(ConfigError, match="prices: must be a table of models, each with a number"):
        load(written(tmp_path, "[prices]\nsmall = -1\n"))
    with pytest.raises(ConfigError, match="prices: must be a table of models, each with a number up to 1000000"):
        load(written(tmp_path, "[prices]\nsmall = 1e308\n"))


def test_views_keep_their_order(tmp_path: Path) -> None:
    settings = load(written(tmp_path, '[views]\nmine = "is:needs-you"\na = "state:failed since:1d"\n'))
    assert settings.views == (("mine", "is:needs-you"), ("a", "state:failed since:1d"))
    with pytest.raises(ConfigError, match="views: must be a table that says what each view looks for"):
        load(written(tmp_path, 'views = ["state:failed"]'))


KEYS = """
[keys]
decide.retry = "ctrl+r"
timeline = ["t", "f9"]
"timeline.in" = "p"
filter.state.back = "B"
"""


def test_keys_are_read_by_the_names_of_commands(tmp_path: Path) -> None:
    settings = load(written(tmp_path, KEYS))
    assert dict(settings.keys) == {
        "decide.retry": ("ctrl+r",),
        "timeline": ("t", "f9"),
        "timeline.in": ("p",),
        "filter.state.back": ("B",),
    }


@pytest.mark.parametrize("wrong", ["keys = 3", "keys.open = 3", "keys.open = []", "keys.filter.state = [1]"])
def test_a_key_is_a_text_or_a_list_of_texts(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match="keys: must be a table of commands, each with a key or a list of keys"):
        load(written(tmp_path, wrong))


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        (KEYS, "keys.decide.retry", 3),
        (KEYS, "keys.timeline.in", 5),
        (KEYS, "keys.filter.state.back", 6),
        ("poll = true\nkeys . open = 'x'", "keys.open", 2),
        ("\n[ keys.filter ]\nstate = 's'", "keys.filter.state", 3),
        ("keys = { open = 'x' }", "keys.open", 1),
        ("[views]\n'my own' = 'is:wrong'\n[notify]\nbell = true", "views.my own", 2),
    ],
)
def test_the_place_of_a_key_is_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, key: str, line: int
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "agentwatch").mkdir()
    path = written(tmp_path / "agentwatch", text)
    load()
    assert where(key) == f"{path}:{line}"


def test_without_a_line_the_place_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert where("keys.open") == str(tmp_path / "agentwatch" / "config.toml")
    (tmp_path / "agentwatch").mkdir()
    path = written(tmp_path / "agentwatch", '"keys"."open"="x"\nkeyss = 1')
    assert where("keys.quit") == str(path)


def test_what_is_for_agents_stands_in_tables_of_its_own(tmp_path: Path) -> None:
    text = '[mcp]\nwait = 20\n[hook]\nwait = 5.5\nwhen = "always"\nundecided = "let-go"\ncorrects = false\n'
    expected = Settings(mcp_wait=20, hook_wait=5.5, hook_when="always", hook_undecided="let-go", hook_corrects=False)
    assert load(written(tmp_path, text)) == expected


@pytest.mark.parametrize("url", ["http://127.0.0.1:4096", "http://localhost:4096/", "http://[::1]:4096"])
def test_a_server_of_opencode_is_on_this_computer(tmp_path: Path, url: str) -> None:
    assert load(written(tmp_path, f'[opencode]\nurl = "{url}"')) == Settings(opencode_url=url)


def test_notifications_stand_in_a_table_of_their_own(tmp_path: Path) -> None:
    text = """
    [notify]
    bell = false
    title = false
    terminal = true
    desktop = false
    command = ["ring", "--loud"]
    """
    assert load(written(tmp_path, text)) == Settings(
        notify_bell=False,
        notify_title=False,
        notify_terminal=True,
        notify_desktop=False,
        notify_command=("ring", "--loud"),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stale_after = 1\npoll = maybe", "line 2"),
        ("colour = 1", "unknown key 'colour'; known keys are alarms.minutes"),
        ('enforcement = "off"', "enforcement: must be one of strict, lenient, not 'off'"),
        ("stale_after = true", "stale_after: must be a number, at least 1, not True"),
        ("stale_after = 0", "at least 1, not 0"),
        ("stale_after = nan", "at least 1, not nan"),
        ("[retry]\nexpires_after = inf", "retry.expires_after: must be a number from 60 to 315360000, not inf"),
        ("[retry]\nexpires_after = 1e12", "from 60 to 315360000"),
        ("[mcp]\nwait = nan", "mcp.wait: must be a number from 0 to 86400, not nan"),
        ("[hook]\nwait = inf", "hook.wait: must be a number from 0 to 86400, not inf"),
        ("retry.max_retries = 1.5", "retry.max_retries: must be a whole number, at least 0, not 1.5"),
        ("pruned = [1]", "pruned: must be a list of directory names"),
        ("poll = 1", "poll: must be true or false, not 1"),
        ('theme = ""', "theme: must be a text"),
        ('[hook]\nwhen = "now"', "hook.when: must be one of watched, always, never"),
        ("[mcp]\nwaits = 1", "unknown key 'mcp.waits'"),
        ("hook = 1", "unknown key 'hook'"),
        ('[opencode]\nurl = "http://example.org:4096"', "opencode.url: must be like http://127.0.0.1:4096"),
        ('[opencode]\nurl = "http://127.0.0.1.example.org:4096"', "a server on this computer"),
        ('[opencode]\nurl = "http://127.0.0.1:4096@example.org:1"', "a server on this computer"),
        ('[opencode]\nurl = "http://127.0.0.1:99999"', "a server on this computer"),
        ("[opencode]\nurl = 4096", "a server on this computer"),
        ("[notify]\nbell = 1", "notify.bell: must be true or false"),
        ('[notify]\ncommand = "ring"', "notify.command: must be a list of words, the command and its arguments"),
        ("[notify]\ncommand = []", "notify.command: must be a list of words"),
    ],
)
def test_a_wrong_file_is_said_with_its_name_and_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load(path)
    assert str(path) in str(error.value)
    assert words in str(error.value)


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(path)


def test_the_directory_follows_the_xdg_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config_directory({"XDG_CONFIG_HOME": str(tmp_path / "x")}) == tmp_path / "x" / "agentwatch"
    assert config_directory({"XDG_CONFIG_HOME": "relative"}) == tmp_path / ".config" / "agentwatch"
    assert config_directory({}) == tmp_path / ".config" / "agentwatch"
