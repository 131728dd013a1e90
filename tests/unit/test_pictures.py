"""The pictures that README and manual show are there, and the recorded decision is a cast that players understand."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.unit.test_manual import MANUAL

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(MANUAL.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_picture_of_a_page_is_there_and_can_be_drawn(page):
    for target in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text("utf-8")):
        picture = (page.parent / target).read_text("utf-8")
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        assert "@font-face" not in picture
        assert "<script" not in picture
