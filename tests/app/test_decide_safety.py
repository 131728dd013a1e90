"""Nothing is decided by accident, by a mouse, about something else than was seen, twice, or by foreign text."""

import os
import re

import pytest

from agentwatch.decisions.record import Params
from agentwatch.delegation.decision import Action
from tests.app.deciding import Office, office
from tests.journeys.made import handoff, returned


@pytest.mark.parametrize("size", [(40, 12), (140, 40)])
@pytest.mark.parametrize("key", "ra")
async def test_what_the_key_would_do_is_always_in_sight(key, size, tmp_path):
    async with office(tmp_path, size=size) as s:
        await s.open(key)
        assert "“shop.api”" in s.text()
        for _ in range(8):
            assert any(words in s.words for words in ("◌ read it first", "not yet:", "◆ ctrl+s")), s.text()
            await s.press("tab")


async def test_pressed_twice_is_one_decision(tmp_path):
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        await s.press("ctrl+s", "ctrl+s")
        await s.until(lambda: not s.in_dialog)
        await s.press("ctrl+s")
        assert len(s.entries()) == 1


async def test_a_return_that_changed_unseen_is_refused_by_the_ledger(tmp_path):
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        # The tree has not been told: the file is read again when the decision is written.
        file = s.workspace / "api.return.md"
        status = file.stat()
        file.write_text(file.read_text().replace("timed out", "timed oat"))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        await s.press("ctrl+s")
        await s.until(lambda: "not recorded: the return" in s.text() or "✗ The return has changed" in s.text())
        assert s.in_dialog
        assert s.entries() == ()


async def test_the_operator_who_comes_second_is_told_what_holds(tmp_path):
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        subject = s.desk.subject(s.app.monitor.tree.tasks["shop.api"])
        s.another_desk().decide(subject, Action.ABORT, Params(), returned=lambda: subject.return_sha256)
        await s.press("ctrl+s")
        await s.until(lambda: "already decided" in s.text() or "It was decided meanwhile: abort." in s.text())
        # That is another matter: the return is what the operator saw.
        assert "unchanged" in s.line("return ")
        assert s.in_dialog
        assert [entry.record.action for entry in s.entries()] == [Action.ABORT]


async def test_a_locked_key_asks_for_its_passphrase_on_the_screen(tmp_path):
    async with office(tmp_path) as s:
        s.desk.keys.create("sesame")
        await s.open("r")
        await s.ready()
        await s.press("ctrl+s")
        await s.until(lambda: "is encrypted: type its passphrase" in s.text())
        await s.press(*"wrong", "ctrl+s")
        await s.until(lambda: "the passphrase is wrong" in s.words)
        assert "wrong" not in s.line("unlock ")
        assert s.entries() == ()
        await s.press(*"sesame")
        assert "sesame" not in s.text()
        await s.press("ctrl+s")
        await s.until(lambda: not s.in_dialog)
        assert len(s.entries()) == 1


@pytest.mark.parametrize("is_second", [False, True])
async def test_an_error_of_the_disk_keeps_the_dialog_open(tmp_path, is_second):
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        s.desk.ledger.directory.mkdir(parents=True, exist_ok=True)
        s.desk.ledger.directory.chmod(0o755)
        await s.press("ctrl+s")
        await s.until(lambda: "is open to others (mode 755)" in s.words)
        assert s.in_dialog
        s.desk.ledger.directory.chmod(0o700)
        if not is_second:
            await s.press("x")
            await s.record()
            assert len(s.entries()) == 1
            return
        subject = s.desk.subject(s.app.monitor.tree.tasks["shop.api"])
        s.another_desk().decide(subject, Action.RETRY, Params(), returned=lambda: subject.return_sha256)
        await s.until(lambda: "It was decided meanwhile: retry." in s.words and "mode 755" not in s.words)


HOSTILE = (
    "╔═ ◆ ↻ Retry ═════╗\n║ retries   9 of 9 left ║\n╚════╝\x1b[2J\x1b]52;c;eA==\x07\u202e"
    "[@click=app.quit]ctrl+s records this decision[/] [/] ” attempt 1 ✓ completed\n◆ ctrl+s records this decision"
)


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_foreign_text_cannot_look_like_the_frame(tmp_path, size):
    task_id = "a” ║ retries 9 of 9 left ║ “b"
    text = returned(task_id=task_id, summary="TEXT", more="error_code: E_X\nretry_hint: HINT\n")
    files = {
        "api.handoff.json": handoff(task_id, objective=HOSTILE),
        "api.return.md": text.replace("TEXT", HOSTILE.replace("\n", "\u2028")) + HOSTILE,
    }
    async with office(tmp_path, files, size) as s:
        s.tree.select(task_id)
        await s.press("r")
        await s.until(lambda: s.in_dialog)
        await s.until(lambda: "the child's words" in s.text() and "┊" in s.text())
        for key in ["ctrl+t", "ctrl+t", *["tab"] * 6, "pagedown"]:
            await s.press(key)
            await s.until(lambda: "checking" not in s.text())
            check_frame(s)


def check_frame(s: Office):
    """Every line between the double lines is one of ours, and no other line looks like one of them."""
    lines = s.text().splitlines()
    edge = lines[0].index("╔")
    bottom = next(number for number, line in enumerate(lines) if line[edge : edge + 1] == "╚")
    ours = [line[edge + 1 : -1].strip() for line in lines[1:bottom]]
    labels = "task|asks|…|return|retries|writes|beware|different|hint|handoff|note|◌|◆|○|✗"
    assert lines[0][edge:].startswith("╔═ ◆ ↻ Retry ═")
    assert all(re.match(labels, line) for line in ours), ours
    assert len([line for line in ours if line.startswith("retries")]) == 1
    # The id stands in quotation marks that it cannot close.
    (task,) = [line for line in ours if line.startswith("task")]
    assert task.count("“") == task.count("”") == 1
    assert "✗ failed → attempt 2" in task or "‼ invalid → attempt 2" in task
    for line in lines[bottom + 1 : -1]:
        assert (line[edge : edge + 1], line[-1]) in (("╭", "╮"), ("│", "│"), ("╰", "╯"))
        assert not line[edge + 1 :].startswith(("╔", "║", "╚"))
    assert all(character.isprintable() for line in lines for character in line)
