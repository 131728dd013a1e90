"""The operator's own keys, themes and editor: which of them hold, and what the screen says about the others."""

import sys
from itertools import product

import pytest
from rich.color import Color as RichColor
from textual.color import Color

from agentwatch.app.actions import COMMANDS, HELP, RESERVED_KEYS, apply_user_keys, parse_key, textual_keymap
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.editor import choose_command, run_program
from agentwatch.app.theming import check_theme, shipped_themes, themes_folder, user_themes
from agentwatch.config import Settings
from agentwatch.view.words import LOOKS
from tests.app.scenes import monitor_of
from tests.app.stage import Stage, stage


def mine(**wishes: str | tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return key bindings as settings have them; a double underscore stands for a dot."""
    return tuple((name.replace("__", "."), (keys,) if isinstance(keys, str) else keys) for name, keys in wishes.items())


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("r", "r"), ("R", "R"), ("?", "?"), (",", "comma"), ("é", "é"), ("ctrl+r", "ctrl+r"), ("esc", "escape"),
        ("f5", "f5"), ("⇧tab", "shift+tab"), ("alt+1", "alt+1"), ("", None), ("rr", None), ("strg+r", None),
        ("ctrl+", None), ("f999", None), ("\x1b", None), ("a\nb", None),
    ],
)  # fmt: skip
def test_a_key_is_known_by_the_names_that_people_write(word, key):
    assert parse_key(word) == key


def test_every_action_has_valid_keys_and_a_sentence():
    assert all(parse_key(key) == key for command in COMMANDS.values() for key in command.keys)
    assert {name for some in HELP.values() for name in some} == COMMANDS.keys()
    assert (apply_user_keys(()), textual_keymap(COMMANDS)) == ((COMMANDS, []), {})


def test_a_wish_takes_the_place_of_the_default():
    tabs = tuple(f"alt+{number}" for number in range(1, 9))
    made, faults = apply_user_keys(mine(decide__retry="ctrl+r", timeline=("t", "f9"), tabs=tabs, timeline__idle="m"))
    changes = textual_keymap(made)
    assert not faults
    assert (changes["decide.retry"], changes["timeline"], changes["tabs.6"]) == ("ctrl+r", "t,f9", "alt+7")


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (mine(decide__retri="x"), "there is no command “decide.retri”; did you mean decide.retry?"),
        (mine(open="enterr"), "“enterr” is no key; write one such as x, R, ctrl+r, f5 or pageup; it keeps enter"),
        (mine(tabs="x"), "it needs a list of 8 different keys, one for each of its numbers; it keeps 1–8"),
        (mine(dialog__edit="e"), "characters are needed where you write; take another key, such as ctrl+r or f9"),
        (mine(decide__retry="e"), "decide.retry and decide.escalate would both have the key e; give one"),
        (mine(decide__retry="n"), "decide.retry and needs.next would both have the key n"),
        (mine(follow="ctrl+c"), "follow and quit would both have the key ^c"),
        (mine(dialog__edit="ctrl+s"), "dialog.edit and dialog.record would both have the key ^s"),
    ],
)
def test_a_wrong_key_setting_is_reported_and_the_default_stays(wishes, words):
    made, (fault,) = apply_user_keys(wishes)
    assert fault.partition(": ")[0].endswith("config.toml")
    assert words in fault
    assert made == COMMANDS


def test_a_setting_for_the_key_of_a_fallback_falls_back_too():
    made, faults = apply_user_keys(mine(decide__retry="e", decide__escalate="x", follow="F"))
    assert len(faults) == 2
    assert textual_keymap(made) == {"follow": "F"}


@pytest.mark.parametrize("command_id", RESERVED_KEYS)
def test_the_way_to_decide_and_the_ways_out_stay(command_id):
    made, _ = apply_user_keys([(command_id, ("f9",))])
    assert textual_keymap(made) == {command_id: f"f9,{RESERVED_KEYS[command_id]}"}


SHIPPED = {theme.name: theme for theme in shipped_themes()}
COLORED = [name for name, theme in SHIPPED.items() if not theme.ansi]
DARK = (themes_folder() / "agentwatch-dark.toml").read_text("utf-8")


def luminance(name: str) -> float:
    """Return the relative luminance of a colour as WCAG 2 defines it."""
    parts = (part / 255 for part in Color.parse(name).rgb)
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(*colors: str) -> float:
    """Return the WCAG 2 contrast ratio of two colours, 1 to 21."""
    low, high = sorted(map(luminance, colors))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("file", sorted(themes_folder().iterdir(), key=lambda file: file.name), ids=lambda f: f.name)
def test_a_shipped_theme_passes_the_schema_of_own_themes(file):
    checked = check_theme(file.read_text("utf-8"))
    assert file.name == f"{checked['name']}.toml"


@pytest.mark.parametrize("name", COLORED)
def test_words_are_readable_on_every_background(name):
    theme = SHIPPED[name]
    variables = theme.to_color_system().generate() | theme.variables
    least = 7.0 if name == "agentwatch-contrast" else 4.5
    words = ["foreground", "text-muted", "accent", "primary", "secondary", "success", "warning", "error"]
    words += [f"text-{word}" for word in ("primary", "secondary", "accent", "success", "warning", "error")]
    words += [face.color for face in LOOKS.values()]
    pairs = product(words, ("background", "panel", "cursor-row"))
    assert [pair for pair in pairs if contrast(*(variables[name] for name in pair)) < least] == []


@pytest.mark.parametrize(
    ("terminal", "colors", "wanted", "theme"),
    [
        ("screen", "", None, "agentwatch-ansi"),
        ("linux", "", None, "agentwatch-ansi"),
        ("screen", "", "agentwatch-light", "agentwatch-light"),
        ("screen", "truecolor", None, "agentwatch-dark"),
        ("tmux-256color", "", None, "agentwatch-dark"),
        ("tmux-256color", "none", None, "agentwatch-ansi"),
    ],
)
def test_a_terminal_of_sixteen_colours_gets_the_theme_for_it(terminal, colors, wanted, theme, monkeypatch):
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setenv("NO_COLOR" if colors == "none" else "COLORTERM", colors)
    app = AgentwatchApp(monitor_of(settings=Settings(theme=wanted))[0])
    app.adapt_to_terminal()
    assert app.theme == theme


def colors_of(s: Stage) -> set[RichColor | None]:
    styles = [part.style for strip in s.strips() for part in strip if part.style]
    return {color for style in styles for color in (style.color, style.bgcolor)}


async def test_without_colour_every_state_keeps_glyph_and_word(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(size=(80, 24)) as s:
        assert s.app.no_color
        for face in ("✗", "failed", "■", "blocked", "‼", "invalid", "NEEDS YOU"):
            assert face in s.text()
        triplets = {color.triplet for color in colors_of(s) if color and color.triplet}
        assert all(triplet.red == triplet.green == triplet.blue for triplet in triplets)


async def test_without_colour_sixteen_colours_are_the_terminals_own(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(size=(80, 24), settings=Settings(theme="agentwatch-ansi")) as s:
        assert all(color is None or color.is_default for color in colors_of(s))
        assert any(part.style.reverse for strip in s.strips() for part in strip if part.style)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('accent = "#ffb454"', 'accent = "amberish"', "colors.accent"),
        ('accent = "#ffb454"', "accent = 3", "colors.accent"),
        ('accent = "#ffb454"', "", "colors.accent"),
        ('accent = "#ffb454"', 'accent = "#ffb454"\nlime = "#0f0"', "colors.lime"),
        ('name = "agentwatch-dark"', 'name = "[/]"', "missing, unknown, or no colour"),
        ("dark = true", "dark = ", "Invalid value"),
    ],
)
def test_a_wrong_theme_file_is_named_with_what_is_wrong(tmp_path, old, new, words):
    assert old in DARK
    (tmp_path / "mine.toml").write_text(DARK.replace(old, new), "utf-8")
    (tmp_path / "fine.toml").write_text(DARK.replace("agentwatch-dark", "fine"), "utf-8")
    themes, failures = user_themes(tmp_path)
    assert [theme.name for theme in themes] == ["fine"]
    (failure,) = failures
    assert failure.startswith("mine.toml: ")
    assert words in failure


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (["code --wait", "vi"], ["code", "--wait"]),
        ([None, "", "'my editor' -n"], ["my editor", "-n"]),
        (["vi 'x"], []),
        ([None], []),
    ],
)
def test_the_first_command_that_is_named_is_taken(named, words, tmp_path):
    assert choose_command(named, ["vi"], str(tmp_path)) == words


def test_without_settings_the_usual_command_is_taken(tmp_path):
    (tmp_path / "more").touch(mode=0o755)
    assert choose_command([None], ["less", "more"], str(tmp_path)) == ["more"]


def test_the_file_is_one_argument_and_never_a_command(tmp_path):
    seen = tmp_path / "seen.txt"
    script = f"import sys, pathlib; pathlib.Path({str(seen)!r}).write_text(repr(sys.argv[1:])); sys.exit(3)"
    file = tmp_path / "-rf $(touch owned); x.md"
    assert run_program([sys.executable, "-c", script, str(file)]) == 3
    assert seen.read_text("utf-8") == repr([str(file)])


def test_lines_are_given_to_a_command_that_may_end_early(tmp_path):
    seen = tmp_path / "seen.txt"
    script = f"import sys, pathlib; pathlib.Path({str(seen)!r}).write_text(sys.stdin.readline())"
    assert run_program([sys.executable, "-c", script], (f"line {number}" for number in range(1_000_000))) == 0
    assert seen.read_text("utf-8") == "line 0\n"
