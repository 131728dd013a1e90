"""The parts of readers: whole lines of a growing file, each once, and texts that are judged by the contracts."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Document, Return
from agentwatch.sources.sessions.fields import Line, Tail, parse_record, record_at
from agentwatch.sources.sessions.reader import message
from tests.unit.claude_code.building import packet, report

BUDGET = 1 << 20
ONE, TWO = b'{"a": 1}\n', b'{"a": 2}\n'


def values(lines: list[Line]) -> list[object]:
    return [None if line.record is None else line.record["a"] for line in lines]


def read(tail: Tail, budget: int = BUDGET) -> list[object]:
    return values(list(tail.read(budget).lines))


@given(texts=st.lists(st.text(max_size=30)), cuts=st.lists(st.integers(0, 400), max_size=12), budget=st.integers(1, 50))
def test_any_chunking_and_any_budget_give_the_same_lines(texts, cuts, budget, tmp_path_factory):
    path = tmp_path_factory.mktemp("tail") / "a.jsonl"
    whole = "".join(json.dumps({"a": text}) + "\n" for text in texts).encode()
    tail = Tail(path)
    seen: list[Line] = []
    for end in [*sorted(cuts), len(whole)]:
        with path.open("ab") as file:
            file.write(whole[file.tell() : end])
        looked = tail.read(budget)
        assert not looked.restarted
        seen += looked.lines
    while tail.behind:
        seen += tail.read(budget).lines
    assert values(seen) == texts
    assert [record_at(path, line.offset) for line in seen] == [line.record for line in seen]


@pytest.mark.parametrize("after", [ONE, b"", TWO + ONE + TWO + TWO], ids=["shorter", "empty", "longer"])
def test_a_file_that_was_cut_short_is_read_from_its_beginning(tmp_path, after):
    path = tmp_path / "a.jsonl"
    path.write_bytes(ONE + TWO + b'{"a"')
    tail = Tail(path)
    assert read(tail) == [1, 2]
    path.write_bytes(after)
    looked = tail.read(BUDGET)
    assert looked.restarted
    assert len(looked.lines) == after.count(b"\n")


def test_a_line_that_is_too_long_is_passed_over_and_counted(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(ONE + b"x" * 100 + b"\n" + TWO)
    for budgets in ([30, BUDGET], [BUDGET]):
        tail = Tail(path)
        tail.line_limit = 10
        assert [number for budget in budgets for number in read(tail, budget)] == [1, 2]
        assert tail.passed_over == 1


def test_only_regular_files_are_opened(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(ONE)
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", ".", "gone"):
        with pytest.raises(OSError):  # noqa: PT011  any refusal of the system will do
            Tail(tmp_path / name).read(BUDGET)
        assert record_at(tmp_path / name, 0) is None


@pytest.mark.parametrize("line", [b"", b"[1]", b"{", b'{"a": ' + b"[" * 100_000, b"\x00" * 8, b"9" * 5000])
def test_a_line_that_is_no_json_object_is_no_record(line):
    assert parse_record(line) is None


@pytest.mark.parametrize(
    ("value", "read"), [(b'"a\xff"', "a\ufffd"), (b'"\\ud800"', "\ud800"), (b'"\xed\xa0\x80"', "\ufffd" * 3)]
)
def test_a_line_with_damaged_text_is_a_record(value, read):
    assert parse_record(b'{"a": ' + value + b"}") == {"a": read}


def test_a_packet_beside_a_return_is_found_too():
    read = read_document(packet("t.a"), "agents", embedded=True)
    both = message(f"{packet('t.a')}\n\nAnswer like this:\n\n{report()}", 1.0)
    assert isinstance(both.reading.document, Return)
    assert (both.packet, message(report(), 1.0).packet) == (Document(read.document, read.findings, read.complete), None)


def test_plain_words_load_no_contract():
    script = (
        "import sys; from agentwatch.sources.sessions.reader import message; message('Do it.', 1.0);"
        "print('agentwatch.contracts.reading' in sys.modules, 'pydantic' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]
