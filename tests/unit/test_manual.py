"""The manual: its generated parts agree with the code, nothing is left out, and `agentwatch help` shows it."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agentwatch.cli import COMMANDS, run
from agentwatch.manual import read_page, read_unwrapped, topic_names
from agentwatch.view.words import LOOKS
from tests.generate import MANUAL, PAGES, SCHEMAS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(MANUAL.glob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_made_from_the_code_is_up_to_date(name):
    assert (MANUAL / name).read_text() == PAGES[name](), "run `python -m tests.generate`"


def test_every_page_is_a_topic():
    assert sorted(topic_names()) == sorted(path.stem for path in MANUAL.glob("*.md") if path.stem != "README")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_link_leads_somewhere_and_pictures_can_be_drawn(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        place, _, heading = link.partition("#")
        if place.startswith("https://"):
            continue
        target = path.parent / place if place else path
        assert target.exists(), link
        if target.suffix == ".svg":
            picture = target.read_text()
            assert ElementTree.fromstring(picture).tag.endswith("svg")
            assert "@font-face" not in picture
            assert "<script" not in picture
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, link


@pytest.mark.parametrize("topic", topic_names())
def test_a_page_fits_a_terminal_of_80_columns(topic):
    outside_of_code = read_page(topic).split("```")[::2]
    assert [line for part in outside_of_code for line in part.splitlines() if len(line) > 79] == []


def test_a_terminal_is_spared_pictures():
    assert [topic for topic in topic_names() if "![" in read_page(topic)] == []
    assert sum("![" in path.read_text() for path in MANUAL.glob("*.md")) >= 7


def test_every_command_and_every_state_is_explained():
    assert [name for name in COMMANDS if f"`agentwatch {name}" not in read_page("commands")] == []
    faces = LOOKS.values()
    assert [face.word for face in faces if f"`{face.glyph}` **{face.word}**" not in read_page("states")] == []


def test_every_key_of_the_tree_as_json_is_explained():
    tree = SCHEMAS["tree"]
    keys = {key for one in (tree, *tree["$defs"].values()) for key in one.get("properties", ())}
    assert {"message", "verdict", "tokens", "done", "recommended", "source"} <= keys
    assert sorted(key for key in keys if f"`{key}`" not in read_page("json")) == []


def test_help_prints_a_topic_as_plain_text(capsys):
    assert run(["help", "keys"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# Keys\n")
    assert "<!--" not in printed


def test_without_a_known_width_a_paragraph_is_one_line():
    assert "\n- `t` shows the same tasks over time. `t` again goes back to the tree.\n" in read_unwrapped("tutorial")
    assert re.search(r"\nAgents build the checkout of a shop, .* what you can try next\.\n", read_unwrapped("tutorial"))
    assert "    def read(self, seconds):\n        self.trouble = None\n" in read_unwrapped("source")
