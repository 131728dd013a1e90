"""The report in a real browser: what an agent wrote makes no element, runs nothing and asks the network for nothing."""

from __future__ import annotations

import os
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agentwatch.report.account import Account
from agentwatch.report.html import html
from tests.unit.report.hostile import PIECES
from tests.unit.report.sessions import retold, told_everywhere

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOST = "agentwatch-report.invalid"
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"),
)
ATTACK = "".join(PIECES).replace("e.invalid", HOST).replace("\ud800", "") + "".join(
    f"<{name} src=http://{HOST}/{name} href=http://{HOST}/{name} onload=document.title='owned'>"
    for name in ("img", "script", "iframe", "link rel=stylesheet", "video", "embed")
)


class Proxy(socketserver.ThreadingTCPServer):
    """Answers nothing, and remembers the first line of whatever it was asked."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Listener)


class Listener(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Proxy)
        self.server.asked.append(self.rfile.readline(2_000).decode("latin-1"))


class Browser:
    """Opens pages in Chromium, each in a profile of its own, with the network behind a proxy that leads nowhere."""

    def __init__(self, directory: Path, proxy: Proxy) -> None:
        self._directory = directory
        self._proxy = proxy
        self._opened = 0

    @property
    def asked(self) -> list[str]:
        """What pages have asked of the attacker's host."""
        return [line for line in self._proxy.asked if HOST in line]

    def open(self, page: str) -> tuple[Dom, str]:
        """The document after it was loaded, and what the browser complained of."""
        done = self._run(page, "--dump-dom")
        return Dom(done.stdout), done.stderr

    def photograph(self, page: str, *more: str) -> bytes:
        picture = self._directory / f"{self._opened}.png"
        self._run(page, f"--screenshot={picture}", *more)
        return picture.read_bytes()

    def _run(self, page: str, *flags: str) -> subprocess.CompletedProcess[str]:
        self._opened += 1
        file = self._directory / f"{self._opened}.html"
        file.write_text(page, encoding="utf-8")
        profile = self._directory / f"profile-{self._opened}"
        command = [
            str(CHROMIUM),
            *QUIET,
            f"--user-data-dir={profile}",
            f"--proxy-server=http://127.0.0.1:{self._proxy.server_address[1]}",
            "--proxy-bypass-list=<-loopback>",
            *flags,
            file.as_uri(),
        ]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


class Dom(HTMLParser):
    """The elements and the texts of a document that a browser has written out."""

    def __init__(self, written: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: set[str] = set()
        self.title = ""
        self._said: list[str] = []
        self._within: list[str] = []
        self.feed(written)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.targets |= {value or "" for name, value in attrs if name in ("href", "src", "action")}
        self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._within[-1:] == ["title"] and "svg" not in self._within:
            self.title += data
        self._said.append(data)

    @property
    def text(self) -> str:
        return "".join(self._said)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs Debian's package `chromium`")
        pytest.skip("no chromium here; Debian's package of that name has it")
    proxy = Proxy()
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    yield Browser(tmp_path_factory.mktemp("browser"), proxy)
    proxy.shutdown()
    proxy.server_close()
    thread.join()


@pytest.fixture(scope="module")
def hostile() -> Account:
    return retold(told_everywhere(), ATTACK)


def test_a_page_that_does_what_the_attack_wants_is_noticed(browser: Browser) -> None:
    page = f"<title>mine</title><script>document.title='owned'</script><img src=http://{HOST}/control>"
    assert browser.open(page)[0].title == "owned"
    assert browser.asked


def test_hostile_text_stays_text(browser: Browser, hostile: Account) -> None:
    before = len(browser.asked)
    page = html(hostile)
    dom, complaints = browser.open(page)
    assert dom.title.startswith("agentwatch report: ")
    harmless, _ = browser.open(html(told_everywhere()))
    assert dom.elements == harmless.elements
    assert dom.attributes == harmless.attributes
    assert all(target.startswith("#task-") for target in dom.targets)
    assert "<script>document.title='owned'</script>" in dom.text
    assert browser.asked[before:] == []
    assert "Content Security Policy" not in complaints


def test_even_an_injected_script_would_not_run(browser: Browser, hostile: Account) -> None:
    before = len(browser.asked)
    injected = f"<script>document.title='owned'</script><img src=http://{HOST}/x onerror=\"document.title='owned'\">"
    dom, complaints = browser.open(html(hostile).replace("</body>", f"{injected}</body>"))
    assert "script" in dom.elements
    assert dom.title.startswith("agentwatch report: ")
    assert browser.asked[before:] == []
    assert "Content Security Policy" in complaints
