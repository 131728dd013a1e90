"""A text that was handed over or back is judged by the contracts, which are loaded only for one that may follow one."""

import subprocess
import sys

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Document, Return
from agentwatch.sources.sessions.reader import message
from tests.unit.sessions.store import packet, report


def found(text: str) -> Document | None:
    read = read_document(text, "agents", embedded=True)
    return read and Document(read.document, read.findings, read.complete)


def test_a_packet_beside_a_return_is_found_too():
    both = message(f"{packet('t.a')}\n\nAnswer like this:\n\n{report()}", 1.0)
    assert both.reading is not None
    assert isinstance(both.reading.document, Return)
    assert both.packet == found(packet("t.a"))
    assert message(report(), 1.0).packet is None


def test_plain_words_load_no_contract():
    script = (
        "import sys; from agentwatch.sources.sessions.reader import message; message('Do it.', 1.0);"
        "print('agentwatch.contracts.reading' in sys.modules, 'pydantic' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]
