"""The page is one file that needs nothing else, shows every task, and takes no element from foreign text."""

from __future__ import annotations

import re
import tomllib
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given

from agentwatch.report.account import Account, DecisionLine
from agentwatch.report.html import html
from tests.unit.report.hostile import TEXTS, is_visible
from tests.unit.report.sessions import START, Session, large, large_account, retold, small, told_everywhere

EVERYWHERE = told_everywhere()
EMPTY = {"meta", "input"}


class Page(HTMLParser):
    """The elements of a page with their attributes, what it says, and whether its tags fit each other."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self._said: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self._said.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        return "".join(self._said)

    def values(self, name: str) -> list[str]:
        return [value or "" for _, attributes in self.elements for key, value in attributes if key == name]

    def structure(self) -> list[tuple[str, tuple[tuple[str, str | None], ...]]]:
        # A text of several lines has an element a line.
        return [one for one in self.elements if one[0] != "bdi"]


STRUCTURE = Page(html(EVERYWHERE)).structure()


@pytest.mark.parametrize("account", [small().account(), large_account(200), EVERYWHERE, Session().account()])
def test_the_page_needs_no_network_and_no_script(account: Account) -> None:
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
    assert all(re.fullmatch(r"#task-\d+", target) for target in page.values("href"))
    assert not page.values("src")
    assert not page.values("style")
    assert not [key for _, attributes in page.elements for key, _ in attributes if key.startswith("on")]


def test_every_link_has_its_place_and_every_place_is_one() -> None:
    page = Page(html(large_account(200)))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {target.removeprefix("#") for target in page.values("href")} <= set(ids)


def test_every_task_is_told_with_its_state_in_words() -> None:
    account = large_account(200)
    page = Page(html(account))
    text = page.text
    for line in account.tasks:
        assert line.task.task_id in text
    for state in account.summary.by_state:
        assert f"{state.glyph} {state.value}" in text


def test_the_timeline_is_told_in_words_too() -> None:
    decision = DecisionLine(
        task_id="shop.api", attempt=1, action="retry", note="longer", operator="ann", at=START + 400, receipt="acted"
    )
    page = Page(html(small().account(decisions=[decision])))
    assert (
        "attempt 1 failed from 2026-09-21 14:14:50, 3m 30s; then waited for 2m; "
        "attempt 2 completed from 2026-09-21 14:20:20, 4m 40s; retry decided at 2026-09-21 14:20:00"
    ) in page.text
    assert "attempt 1 blocked from 2026-09-21 14:15:30, 3m 20s; has waited for 7m 10s" in page.text


def test_in_a_large_session_a_branch_in_which_all_is_well_begins_folded() -> None:
    session = large(200)
    tree = re.compile(r"<details( open)?><summary class=\"row d0")
    folds = tree.findall(html(session.account()))
    assert set(folds) == {"", " open"}
    assert set(tree.findall(html(small().account()))) == {" open"}


def test_a_long_chain_of_delegations_is_no_long_chain_of_elements() -> None:
    session = Session()
    for number in range(300):
        session.asked(number, f"t{number}", parent_task_id=f"t{number - 1}" if number else None)
    source = html(session.account(remembered=False))
    assert "t299" in Page(source).text
    depths = [0]
    for step in re.findall(r"<(/?)ul", source):
        depths.append(depths[-1] + (-1 if step else 1))
    assert max(depths) < 20


@given(TEXTS)
def test_foreign_text_never_becomes_an_element_or_an_attribute(text: str) -> None:
    source = html(retold(EVERYWHERE, text))
    assert Page(source).structure() == STRUCTURE
    body = source[source.index("</style>") :]
    assert all(is_visible(character) for character in body if character != "\n")


def test_the_colours_are_those_of_the_shipped_themes() -> None:
    root = Path(__file__).parents[3]
    style = (root / "tui/agentwatch/report/report.css").read_text("utf-8")
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for name, part in (("light", light), ("dark", dark[: dark.index("\n}\n")])):
        theme = tomllib.loads((root / f"themes/agentwatch-{name}.toml").read_text("utf-8"))
        colors = {key: theme["colors"][key] for key in ("background", "foreground", "muted", "accent")}
        for key, color in (colors | theme["states"]).items():
            assert f"--{key}: {color};" in part, f"{name}: {key}"
