"""A host that floods its standard error, with commands to the terminal in it: the reason stays short and safe."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from agentwatch.cli import run
from tests.homes import live_in

FLOOD = """#!{python} -ISE
import os, sys
for _ in range(2000):
    os.write(2, b"\\x1b]0;owned\\x07\\xe2\\x80\\xae" + b"y" * 4000 + b"{end}")
sys.exit({code})
"""


@pytest.mark.parametrize("code", [255, 1])
@pytest.mark.parametrize("end", ["", "\\n"], ids=["one line", "lines"])
def test_endless_words_of_a_host_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, end: str
) -> None:
    live_in(tmp_path, monkeypatch)
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(FLOOD.format(python=sys.executable, code=code, end=end))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    run(["tree", "--json", "ssh://build1/w"])
    said = capsys.readouterr()
    words = [one["message"] for one in json.loads(said.out)["problems"]]
    assert any("yyy" in one for one in words)
    assert all(len(one) < 500 and one.isprintable() for one in (*words, *said.err.splitlines()))
