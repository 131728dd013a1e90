"""A report reads well in a pull request and in a browser, and foreign text in it is never more than text."""

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from agentwatch.cli.report import json_report
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.task import State
from agentwatch.history.log import StateChange
from agentwatch.report.account import LIMIT, code_text, inline_text, markdown
from agentwatch.report.html import html
from tests.unit.report.sessions import START, TEXTS, is_visible, large_account, retold, told_everywhere

EVERYWHERE = told_everywhere()


@pytest.mark.parametrize(("end", "write"), [("md", markdown), ("json", json_report), ("html", html)])
def test_a_report_in_the_workspace_is_taken_for_no_document(end, write):
    text = write(large_account())
    for name in (f"report.{end}", f"shop.report.{end}", f"handoffs/shop.{end}"):
        reading = read_document(text, name)
        # With the name of an agents' report it is checked as one, but nothing in it is recognised.
        assert reading is None or not reading.document.recognised, name


def test_the_last_of_many_changes_are_told():
    changes = [StateChange(START + n, f"task-{n:03d}", None, State.FAILED, 1, "") for n in range(100)]
    text = markdown(replace(told_everywhere(), changes=changes))
    assert "task-099" in text
    assert text.index("task-098") < text.index("task-099")
    assert "task-000" not in text


# As a page


EMPTY = {"meta", "input"}


class Page(HTMLParser):
    """The elements of a page with their attributes; its tags must fit each other."""

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
        # A text of several lines has an element for each line.
        return [one for one in self.elements if one[0] != "bdi"]


PAGE = Page(html(EVERYWHERE)).structure()


@pytest.mark.parametrize("make", [large_account, told_everywhere])
def test_the_page_needs_no_network_and_no_script(make):
    source = html(make())
    page = Page(source)
    style = source[source.index("<style>") + len("<style>") : source.index("</style>")]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = dict(next(attributes for _, attributes in page.elements if "http-equiv" in dict(attributes)))["content"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    elements = {tag for tag, _ in page.elements}
    assert not elements & {"script", "link", "img", "iframe", "object", "form", "base"}
    assert not re.search(r"url\(|@import|://", style)
    assert {target.removeprefix("#") for target in page.values("href")} <= set(page.values("id"))
    assert all(re.fullmatch(r"#task-\d+", target) for target in page.values("href"))
    names = {key for _, attributes in page.elements for key, _ in attributes}
    assert not [name for name in names if name in ("src", "style") or name.startswith("on")]


@given(TEXTS)
def test_foreign_text_becomes_no_element_of_the_page(text):
    source = html(retold(EVERYWHERE, text))
    assert Page(source).structure() == PAGE
    body = source[source.index("</style>") :]
    assert all(is_visible(character) for character in body if character != "\n")


# As Markdown


GITHUB = MarkdownIt("gfm-like")
OWN_INLINE = {"<code>", "</code>", "<span>", "</span>", "<br>", "<sub>", "</sub>"}
LINKED = re.compile(
    r"@\w|#\d|://|www\.|\$|:[a-z0-9+-]+:|[A-Za-z]-\d|(?<![0-9A-Za-z])[0-9a-f]{7,40}(?![0-9A-Za-z])", re.IGNORECASE
)
"""Texts of which GitHub makes a link, a mention, a picture or mathematics if they are in one piece outside code."""


class Pieces(HTMLParser):
    """The elements of rendered Markdown, and its pieces of text outside code."""

    def __init__(self, rendered: str):
        super().__init__()
        self.texts: list[str] = []
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self._code = 0
        self.feed(rendered)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._code += tag in ("code", "pre")

    def handle_endtag(self, tag: str):
        self._code -= tag in ("code", "pre")

    def handle_data(self, data: str):
        if not self._code:
            self.texts.append(data)


def structure(tokens: list[Token]) -> list[tuple[str, str, int]]:
    return [(token.type, token.tag, token.level) for token in tokens]


TOKENS = structure(GITHUB.parse(markdown(EVERYWHERE)))


def test_a_markdown_report_always_fits():
    account = large_account()
    text = markdown(account)
    for task, _ in account.attention[:20]:
        assert f"<code>{inline_text(task.task_id)}</code>" in text
    # Each of these characters becomes an element of its own.
    hostile = "`@" * 400
    account = replace(
        account,
        attention=[(task, hostile) for task, _ in account.attention],
        changes=[StateChange(START + n, f"{hostile}{n}", None, State.FAILED, 1, hostile) for n in range(100)],
        notices=[Finding("DOC001", Severity.ERROR, hostile, n, path=hostile) for n in range(100)],
    )
    text = markdown(account)
    assert len(text) <= LIMIT
    assert f"What happened: {len(account.changes)} state changes" in text
    assert re.search(r"The details of \d+ tasks do not fit here", text)
    assert GITHUB.render(text).count("<details>") == text.count("</details>")


@given(TEXTS)
def test_foreign_text_never_changes_the_markdown(text):
    told = markdown(retold(EVERYWHERE, text))
    tokens = GITHUB.parse(told)
    assert structure(tokens) == TOKENS
    for token in tokens:
        for child in token.children or ():
            assert child.type in {"text", "code_inline", "strong_open", "strong_close", "html_inline", "softbreak"}
            assert child.type != "html_inline" or child.content in OWN_INLINE
    pieces = Pieces(GITHUB.renderer.render(tokens, GITHUB.options, {}))
    own = {"details", "summary", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "p", "pre"}
    assert pieces.elements <= own | {"code", "span", "br", "sub", "strong", "h2", "h3"}
    assert pieces.attributes <= {"class"}
    assert all(map(is_visible, told.replace("\n", "")))


@given(TEXTS)
def test_foreign_text_mentions_nobody_and_refers_to_nothing(text):
    pieces = Pieces(
        GITHUB.render(f"said {inline_text(text)}\n\n- {code_text(text)}\n\n| a |\n| --- |\n| {inline_text(text)} |\n")
    )
    for piece in pieces.texts:
        assert not LINKED.search(piece) or piece in ("@", "#", "$", ":", "://", ".", "-"), piece
