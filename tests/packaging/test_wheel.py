"""The wheel is what runs: the package, its themes and its demo are inside the wheel."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_holds_the_package_and_all_themes(wheel):
    names = set(wheel.namelist())
    package = {
        f"agentwatch/{path.relative_to(ROOT / 'tui/agentwatch').as_posix()}"
        for path in (ROOT / "tui/agentwatch").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    themes = {f"agentwatch/themes/{path.name}" for path in (ROOT / "themes").glob("*.toml")}
    assert themes
    assert package | themes <= names


def test_the_wheel_holds_nothing_else(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"agentwatch"}


def test_the_wheel_is_typed_and_has_its_command(wheel):
    assert "agentwatch/py.typed" in wheel.namelist()
    entry_points = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert b"agentwatch = agentwatch.__main__:main" in wheel.read(entry_points)
