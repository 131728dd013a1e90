"""The Markdown reads well in a pull request, and foreign text in it is only ever text."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.task import State
from agentwatch.history.log import StateChange
from agentwatch.report.account import LIMIT, code, inline, markdown
from tests.unit.report.hostile import TEXTS, is_visible
from tests.unit.report.sessions import START, large_account, retold, told_everywhere

GITHUB = MarkdownIt("gfm-like")
OWN_INLINE = {"<code>", "</code>", "<span>", "</span>", "<br>", "<sub>", "</sub>"}
LINKED = re.compile(
    r"@\w|#\d|://|www\.|\$|:[a-z0-9+-]+:|[A-Za-z]-\d|(?<![0-9A-Za-z])[0-9a-f]{7,40}(?![0-9A-Za-z])", re.IGNORECASE
)
"""What GitHub makes a link, a mention, a picture or mathematics of, where it stands in one piece outside code."""

EVERYWHERE = told_everywhere()


class Pieces(HTMLParser):
    """The pieces of text outside code, and the elements, of rendered Markdown."""

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


STRUCTURE = structure(GITHUB.parse(markdown(EVERYWHERE)))


def test_it_fits_whatever_is_written_in_it():
    account = large_account()
    for task, _ in account.attention[:20]:
        assert f"<code>{inline(task.task_id)}</code>" in markdown(account)
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
def test_foreign_text_never_changes_the_structure(text):
    told = markdown(retold(EVERYWHERE, text))
    tokens = GITHUB.parse(told)
    assert structure(tokens) == STRUCTURE
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
    pieces = Pieces(GITHUB.render(f"said {inline(text)}\n\n- {code(text)}\n\n| a |\n| --- |\n| {inline(text)} |\n"))
    for piece in pieces.texts:
        assert not LINKED.search(piece) or piece in ("@", "#", "$", ":", "://", ".", "-"), piece
