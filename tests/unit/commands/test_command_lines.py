"""Command lines: the help of every command, what a shell is offered for the last word, and an early interrupt."""

import json
import os
import subprocess
import sys

from agentwatch.cli import run
from tests.unit.agents.documents import packet


def test_an_early_interrupt_ends_without_a_word(tmp_path):
    program = (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == 'agentwatch.cli.tree': raise KeyboardInterrupt\n"
        f"sys.meta_path.insert(0, Interrupts()); sys.argv = ['agentwatch', 'tree', {str(tmp_path)!r}]\n"
        "from agentwatch.__main__ import main; main()\n"
    )
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


HOSTILE = ["a\nb", "a\x1b]0;x\x07", "a\u202eb", "a\tb", "--yes", "-x", " a", "a\u2028"]
TYPED = [["", ""], ["\0"], ["decide", "\ud800"], ["--", "--", "--"], ["tree", "'"], ["\\"]]


def test_an_id_that_no_shell_could_take_is_not_offered(tmp_path, monkeypatch, capsys):
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    for number, task_id in enumerate([*HOSTILE, "shop.api"]):
        document = {**json.loads(packet()), "task_id": task_id}
        (tmp_path / f"t{number}.handoff.json").write_text(json.dumps(document), "utf-8")
    for shell in ("bash", "zsh", "fish"):
        assert run(["completion", shell, "--", "wait", ""]) == 0
        assert capsys.readouterr().out.partition("\t")[0] == "shop.api"
        for words in TYPED:
            assert run(["completion", shell, "--", *words]) == 0
            assert capsys.readouterr().err == ""


def test_completion_ends_by_itself_where_looking_takes_long():
    program = (
        "import time\nfrom agentwatch.cli import completion, run\n"
        "completion._SECONDS = 0.01\ncompletion._look_up = lambda _: time.sleep(600)\n"
        "run(['completion', 'fish', '--', 'wait', ''])\nraise SystemExit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
