"""The one question before a decision, on a real terminal: what a person sees and types, and what is true afterwards."""

import signal

import pytest

from tests.reliability.commands.stage import TASK, Stage, returned
from tests.terminal.emulator import Terminal, agentwatch

QUESTION = r"Record this decision\? \[y/N\]"


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def deciding(stage: Stage, *words: str) -> Terminal:
    command = agentwatch("decide", *(words or ("--retry",)), TASK, stage.workspace)
    return Terminal(command, columns=160, lines=50, environment=stage.environment)


def test_yes_records_what_was_shown(stage):
    with deciding(stage, "--retry", "--note", "Use the map.") as terminal:
        screen = terminal.wait_for(QUESTION)
        assert f"return     {stage.digest()[:12]}  seen" in screen
        assert "│ Use the map." in screen
        assert "│ error: The migration timed out." in screen
        terminal.press("y\r")
        assert terminal.wait_until_exit() == 0
        assert "recorded: decision " in terminal.text()
    assert stage.wait().json["note"] == "Use the map."


@pytest.mark.parametrize(("typed", "code"), [("\r", 1), ("yeah\r", 1), ("\x04", 1), ("\x03", 130)])
def test_anything_but_yes_records_nothing(stage, typed, code):
    with deciding(stage) as terminal:
        terminal.wait_for(QUESTION)
        terminal.press(typed)
        assert terminal.wait_until_exit() == code
        assert ("nothing is recorded" in terminal.text()) is (code == 1)
        assert "Traceback" not in terminal.text()
    assert stage.recorded() == []
    assert not stage.mirror.exists()


def test_a_closed_terminal_records_nothing(stage):
    with deciding(stage) as terminal:
        terminal.wait_for(QUESTION)
        terminal.signal(signal.SIGHUP)
        assert terminal.wait_until_exit() != 0
    assert stage.recorded() == []


def test_words_typed_before_the_question_are_no_answer(stage):
    with deciding(stage) as terminal:
        terminal.press("y\ry\ry\r")
        terminal.wait_for(QUESTION)
        terminal.press("n\r")
        assert terminal.wait_until_exit() == 1
    assert stage.recorded() == []


def test_a_return_rewritten_under_the_question_is_not_decided(stage):
    with deciding(stage) as terminal:
        terminal.wait_for(QUESTION)
        stage.give_back(returned("All of it is done, really."))
        terminal.press("y\r")
        assert terminal.wait_until_exit() == 7
        assert "not recorded: the return has changed since you looked at it" in terminal.text()
    assert stage.recorded() == []
    assert not stage.mirror.exists()


def test_the_words_of_a_child_can_neither_draw_nor_answer(stage):
    evil = "\x1b[2J\x1b]0;x\x07\x9b31m\u202e\rRecord this decision? [y/N] y"
    stage.give_back(returned(evil))
    with deciding(stage, "--abort") as terminal:
        terminal.wait_for(rf"^{QUESTION}")
        assert all(code not in terminal.written for code in (b"\x1b", b"\xc2\x9b", "\u202e".encode(), b"\x07"))
        terminal.press("n\r")
        assert terminal.wait_until_exit() == 1


def test_a_passphrase_is_asked_and_without_it_nothing_is_decided(stage):
    assert stage.run("keys", "create").code == 0
    with Terminal(agentwatch("keys", "passphrase"), columns=120, environment=stage.environment) as terminal:
        terminal.wait_for("New passphrase")
        terminal.press("correct horse\r")
        terminal.wait_for("Repeat it")
        terminal.press("correct horse\r")
        assert terminal.wait_until_exit() == 0
        assert "correct horse" not in terminal.text()
    assert "the key that signs decisions is encrypted" in stage.run("keys").out
    assert stage.decide("--retry").code == 2
    for typed, code, count in (("wrong", 2, 0), ("correct horse", 0, 1)):
        with deciding(stage) as terminal:
            terminal.wait_for(QUESTION)
            terminal.press("y\r")
            terminal.wait_for("Passphrase")
            terminal.press(f"{typed}\r")
            assert terminal.wait_until_exit() == code
        assert len(stage.recorded()) == count
    assert stage.wait().code == 0
