"""The report in a real browser: an agent's text makes no element, runs nothing and asks the network for nothing."""

import os
import shutil
import socketserver
import subprocess
import threading
from html.parser import HTMLParser

import pytest

from agentwatch.report.html import html
from tests.unit.report.sessions import PIECES, retold, told_everywhere

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
    """Answers nothing, and remembers the first line of each request about the attacker's host."""

    daemon_threads = True

    def __init__(self):
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Listener)


class Listener(socketserver.StreamRequestHandler):
    def handle(self):
        if HOST in (line := self.rfile.readline(2_000).decode("latin-1")):
            self.server.asked.append(line)


class Dom(HTMLParser):
    """The elements of a document, as a browser writes it after loading."""

    def __init__(self, written: str):
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: set[str] = set()
        self.written, self.title = written, written.partition("<title>")[2].partition("</title>")[0]
        self.feed(written)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.targets |= {value or "" for name, value in attrs if name in ("href", "src", "action")}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Open pages in Chromium, each in a profile of its own, with the network behind a proxy that leads nowhere."""
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs Debian's package `chromium`")
        pytest.skip("no chromium here; Debian's package of that name has it")

    def opened(page: str) -> tuple[Dom, list[str], str]:
        """Return the document, its requests to the attacker's host, and the complaints of the browser."""
        proxy.asked.clear()
        place = tmp_path_factory.mktemp("browser")
        (place / "page.html").write_text(page, encoding="utf-8")
        through = f"--proxy-server=http://127.0.0.1:{proxy.server_address[1]}"
        own = (f"--user-data-dir={place}", through, "--proxy-bypass-list=<-loopback>", "--dump-dom")
        command = [str(CHROMIUM), *QUIET, *own, (place / "page.html").as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return Dom(done.stdout), proxy.asked, done.stderr

    with Proxy() as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield opened
        proxy.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def hostile():
    return retold(told_everywhere(), ATTACK)


def test_a_page_that_does_what_the_attack_wants_is_noticed(opened):
    page = f"<title>mine</title><script>document.title='owned'</script><img src=http://{HOST}/control>"
    dom, asked, _ = opened(page)
    assert dom.title == "owned"
    assert asked


def test_hostile_text_stays_text(opened, hostile):
    dom, asked, complaints = opened(html(hostile))
    assert (dom.title.startswith("agentwatch report: "), asked) == (True, [])
    assert "Content Security Policy" not in complaints
    assert all(target.startswith("#task-") for target in dom.targets)
    assert "&lt;script&gt;document.title='owned'&lt;/script&gt;" in dom.written
    harmless, *_ = opened(html(told_everywhere()))
    assert (dom.elements, dom.attributes) == (harmless.elements, harmless.attributes)


def test_even_an_injected_script_would_not_run(opened, hostile):
    injected = f"<script>document.title='owned'</script><img src=http://{HOST}/x onerror=\"document.title='owned'\">"
    dom, asked, complaints = opened(html(hostile).replace("</body>", f"{injected}</body>"))
    assert "script" in dom.elements
    assert (dom.title.startswith("agentwatch report: "), asked) == (True, [])
    assert "Content Security Policy" in complaints
