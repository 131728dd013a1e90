"""Themes: all shipped ones are valid and readable, an operator's own are checked, and nothing undefined can crash."""

import pytest
from textual.color import Color

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.theming import check_theme, shipped_themes, themes_folder, user_themes
from agentwatch.config import Settings
from agentwatch.view.words import LOOKS
from tests.app.scenes import monitor_of
from tests.app.stage import stage

SHIPPED = {theme.name: theme for theme in shipped_themes()}
COLORED = [name for name, theme in SHIPPED.items() if not theme.ansi]
DARK = (themes_folder() / "agentwatch-dark.toml").read_text("utf-8")


def luminance(color: Color) -> float:
    """As WCAG 2 has it."""
    parts = [part / 255 for part in (color.r, color.g, color.b)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The WCAG 2 ratio, 1 to 21."""
    lights = sorted((luminance(Color.parse(one)), luminance(Color.parse(other))))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("file", sorted(themes_folder().iterdir(), key=lambda file: file.name), ids=lambda f: f.name)
def test_a_shipped_theme_passes_the_schema_of_an_own_one(file):
    checked = check_theme(file.read_text("utf-8"))
    assert file.name == f"{checked['name']}.toml"


@pytest.mark.parametrize("name", COLORED)
def test_words_are_readable_on_everything_they_stand_on(name):
    theme = SHIPPED[name]
    variables = theme.to_color_system().generate() | theme.variables
    least = 7.0 if name == "agentwatch-contrast" else 4.5
    words = ["foreground", "text-muted", "accent", "primary", "secondary", "success", "warning", "error"]
    words += [f"text-{word}" for word in ("primary", "secondary", "accent", "success", "warning", "error")]
    words += [face.color for face in LOOKS.values()]
    unreadable = {
        (word, ground): round(contrast(variables[word], variables[ground]), 2)
        for word in words
        for ground in ("background", "panel", "cursor-row")
        if contrast(variables[word], variables[ground]) < least
    }
    assert not unreadable


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
    monitor, _source = monitor_of(settings=Settings(theme=wanted))
    app = AgentwatchApp(monitor)
    app.suit_terminal()
    assert app.theme == theme


async def test_without_colour_every_state_keeps_glyph_and_word(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(size=(80, 24)) as s:
        assert s.app.no_color
        for face in ("✗", "failed", "■", "blocked", "‼", "invalid", "NEEDS YOU"):
            assert face in s.text()
        grey = {
            color.triplet
            for strip in s.strips()
            for segment in strip
            if segment.style and (color := segment.style.color) and color.triplet
        }
        assert all(triplet.red == triplet.green == triplet.blue for triplet in grey)


async def test_without_colour_sixteen_colours_are_those_of_the_terminal_itself(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(size=(80, 24), settings=Settings(theme="agentwatch-ansi")) as s:
        styles = [segment.style for strip in s.strips() for segment in strip if segment.style]
        colors = {color for style in styles for color in (style.color, style.bgcolor)}
        assert all(color is None or color.is_default for color in colors)
        assert any(style.reverse for style in styles)


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
    assert len(failures) == 1
    assert failures[0].startswith("mine.toml: ")
    assert words in failures[0]
