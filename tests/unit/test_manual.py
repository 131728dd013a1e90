"""The manual: what is made from the code is as the code is, nothing is left out, and `agentwatch help` shows it."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agentwatch.cli import COMMANDS, run
from agentwatch.manual import page, topics, unwrapped
from agentwatch.view.document import tree_document
from agentwatch.view.words import LOOKS
from tests.generate import MANUAL, PAGES
from tests.unit.delegation.events import BROKEN, Recorder, handoff, returned, todos, tree_of
from tests.unit.history.test_log import ROOT as SESSION
from tests.unit.history.test_log import ran

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(MANUAL.glob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_made_from_the_code_is_up_to_date(name):
    assert (MANUAL / name).read_text("utf-8") == PAGES[name](), "run `python -m tests.generate`"


def test_every_page_is_a_topic():
    assert sorted(topics()) == sorted(path.stem for path in MANUAL.glob("*.md") if path.stem != "README")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_link_leads_somewhere(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        place, _, heading = link.partition("#")
        if place.startswith("https://"):
            continue
        target = path.parent / place if place else path
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, link


@pytest.mark.parametrize("topic", topics())
def test_a_page_fits_a_terminal_of_80_columns(topic):
    outside_of_code = page(topic).split("```")[::2]
    assert [line for part in outside_of_code for line in part.splitlines() if len(line) > 79] == []


def test_a_terminal_is_spared_pictures():
    assert [topic for topic in topics() if "![" in page(topic)] == []
    assert sum("![" in path.read_text("utf-8") for path in MANUAL.glob("*.md")) >= 7


def test_every_command_and_every_state_is_explained():
    assert [name for name in COMMANDS if f"`agentwatch {name}" not in page("commands")] == []
    faces = LOOKS.values()
    assert [face.word for face in faces if f"`{face.glyph}` **{face.word}**" not in page("states")] == []


def test_every_key_of_the_tree_as_json_is_explained():
    recorder = Recorder()
    seen = recorder.seen("a.return.md", returned("failed"), BROKEN)
    checked = recorder.checked(seen.path, seen.digest, "verified")
    asked = recorder.seen("a.handoff.json", handoff("a"))
    tree = tree_of([asked, seen, checked, recorder.seen("a.todos.md", todos("x")), *ran(SESSION)])
    keys = set(_keys(tree_document(tree, "/w", [("files", "/w", "no")])))
    assert {"message", "verdict", "tokens", "done", "recommended", "source"} <= keys
    assert sorted(key for key in keys if f"`{key}`" not in page("json")) == []


def _keys(value: object) -> Iterator[str]:
    """Those of all objects in it; states are counted by their names, which are no keys of ours."""
    for key, one in value.items() if isinstance(value, dict) else ():
        yield key
        yield from () if key in ("by_state", "by_shown_state") else _keys(one)
    for one in value if isinstance(value, list) else ():
        yield from _keys(one)


def test_help_prints_a_topic_as_plain_text(capsys):
    assert run(["help", "keys"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# Keys\n")
    assert "<!--" not in printed


def test_a_paragraph_is_one_line_where_the_width_is_not_known():
    assert "\n- `t` shows the same tasks over time. `t` again goes back to the tree.\n" in unwrapped("tutorial")
    assert re.search(r"\nAgents build the checkout of a shop, .* what you can try next\.\n", unwrapped("tutorial"))
    assert "    def read(self, seconds):\n        self.trouble = None\n" in unwrapped("source")


TOP = Path(__file__).parents[2]
PICTURED = [TOP / "README.md", *sorted(MANUAL.glob("*.md"))]


@pytest.mark.parametrize("page", PICTURED, ids=lambda page: page.name)
def test_each_picture_of_a_page_is_there_and_can_be_drawn(page):
    for target in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text("utf-8")):
        picture = (page.parent / target).read_text("utf-8")
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        assert "@font-face" not in picture
        assert "<script" not in picture
