"""The page is one file that needs nothing else, shows every task, and takes no element from foreign text."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given

from agentwatch.report.html import html
from tests.unit.report.hostile import TEXTS, is_visible
from tests.unit.report.sessions import large_account, retold, told_everywhere

EVERYWHERE = told_everywhere()
EMPTY = {"meta", "input"}


class Page(HTMLParser):
    """The elements of a page with their attributes, what it says, and whether its tags fit each other."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]):
        self.elements.append((tag, tuple(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str):
        assert self._open.pop() == tag

    def handle_decl(self, decl: str):
        assert decl == "doctype html"

    def handle_comment(self, data: str):
        raise AssertionError(f"a comment: {data}")

    def values(self, name: str) -> list[str]:
        return [value or "" for _, attributes in self.elements for key, value in attributes if key == name]

    def structure(self) -> list[tuple[str, tuple[tuple[str, str | None], ...]]]:
        # A text of several lines has an element a line.
        return [one for one in self.elements if one[0] != "bdi"]


STRUCTURE = Page(html(EVERYWHERE)).structure()


@pytest.mark.parametrize("account", [large_account(), EVERYWHERE])
def test_the_page_needs_no_network_and_no_script(account):
    source = html(account)
    page = Page(source)
    style = source[source.index("<style>") + len("<style>") : source.index("</style>")]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = dict(next(attributes for _, attributes in page.elements if ("http-equiv" in dict(attributes))))["content"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not {tag for tag, _ in page.elements} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "form",
        "base",
        "a:href",
    }
    assert not re.search(r"url\(|@import|://", style)
    assert {target.removeprefix("#") for target in page.values("href")} <= set(page.values("id"))
    assert all(re.fullmatch(r"#task-\d+", target) for target in page.values("href"))
    assert not page.values("src")
    assert not page.values("style")
    assert not [key for _, attributes in page.elements for key, _ in attributes if key.startswith("on")]


@given(TEXTS)
def test_foreign_text_never_becomes_an_element_or_an_attribute(text):
    source = html(retold(EVERYWHERE, text))
    assert Page(source).structure() == STRUCTURE
    body = source[source.index("</style>") :]
    assert all(is_visible(character) for character in body if character != "\n")
