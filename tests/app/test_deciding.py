"""A decision on the screen is about the texts that were shown, made once, and never by accident or by foreign text."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, TextArea

from agentwatch.app.dialogs.dialog import ARMING_SECONDS
from agentwatch.config import Settings
from agentwatch.decisions.errors import NoAnswerError
from agentwatch.decisions.record import Mitigation, Params
from agentwatch.delegation.decision import Action
from agentwatch.sources.files.source import FilesSource
from tests.app.stage import FAILED, Office, desk_of, office
from tests.journeys.made import handoff, returned


def area_of(s: Office) -> TextArea:
    return s.dialog.query_one(TextArea)


def packet_of(s: Office) -> Any:
    """Return the handoff in the only decision that was recorded."""
    (entry,) = s.entries()
    return json.loads(entry.record.params.handoff or "")


async def refused(s: Office, words: str):
    """Press the key that records; nothing is recorded, and the screen shows `words` as the reason."""
    s.wait_for_arming()
    await s.until(lambda: words in s.words())
    await s.press("ctrl+s")
    assert s.in_dialog
    assert s.entries() == ()


async def test_a_handoff_that_breaks_its_contract_is_corrected_first(tmp_path):
    async with office(tmp_path, FAILED | {"api.handoff.json": handoff(risks=0)}) as s:
        await s.open("r")
        await s.until(lambda: "Build the API." in area_of(s).text)
        await refused(s, "not yet: correct the handoff first")
        written = area_of(s).text.replace("the API.", "it in halves.").replace('"risks": 0', '"risks": []')
        area_of(s).text = written.replace('"attempt": 2', '"attempt": 7')
        await refused(s, "✗ attempt must be 2")
        area_of(s).text = written
        await s.until(lambda: "✓ valid" in s.text() and "edited by you" in s.text())
        s.dialog.query_one("#field-note").focus()
        await s.press(*"later")
        await s.record()
        assert packet_of(s)["objective"] == "Build it in halves."
        assert s.entries()[0].record.note == "later"
        assert "Operator: later" not in packet_of(s).get("notes", [])


async def test_the_last_retry_needs_a_mitigation(tmp_path):
    files = {
        "api.handoff.json": handoff(attempt=2),
        "api.return.md": returned(more="error_code: E_TOOL_FAILURE\nattempt: 2\n"),
    }
    async with office(tmp_path, files) as s:
        await s.open("r")
        await s.shows("✓ valid")
        assert "0 of 1 left now, 0 after this" in s.line("retries ")
        await refused(s, "a material mitigation earns one more")
        assert s.app.focused is not None
        assert s.app.focused.id == "field-mitigation"
        await s.press("right", "right")
        await s.shows("1 of 2 left now, 0 after this; the mitigation earns one")
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.mitigation is Mitigation.REDUCED_SCOPE


@pytest.mark.parametrize("code", [0, 1])
async def test_the_editor_gets_a_private_file_outside_the_workspace(tmp_path, monkeypatch, code):
    log, script = tmp_path / "log", tmp_path / "editor.py"
    script.write_text(
        "import json, os, pathlib, sys\npath = pathlib.Path(sys.argv[1])\n"
        "modes = [place.stat().st_mode & 0o777 for place in (path, path.parent)]\n"
        f"pathlib.Path({str(log)!r}).write_text(json.dumps([str(path), *modes]))\n"
        f"path.write_text(path.read_text().replace('Build the API.', 'Build half of it.'))\nsys.exit({code})\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
    monkeypatch.setenv("EDITOR", "false")
    async with office(tmp_path) as s:
        await s.open("r")
        await s.shows("✓ valid")
        await s.ready()
        await s.press("ctrl+e")
        # Keys that were typed in the editor must not count here.
        await s.shows("read it first")
        if code:
            await s.until(lambda: "ended with exit code 1." in " ".join(s.told))
        await s.record()
        assert packet_of(s)["objective"] == ("Build the API." if code else "Build half of it.")
        name, *modes = json.loads(log.read_text())
        assert (Path(name).name, modes) == ("api.handoff.json", [0o600, 0o700])
        assert not Path(name).is_relative_to(s.workspace)
        assert not Path(name).parent.exists()


async def test_a_handoff_too_large_for_the_screen_is_not_signed(tmp_path):
    async with office(tmp_path, FAILED | {"api.handoff.json": handoff(notes=["word " * 30_000])}) as s:
        await s.open("r")
        await refused(s, "not yet: the handoff is too large to be shown here")


async def test_a_handoff_that_is_written_from_nothing_is_checked_too(tmp_path):
    async with office(tmp_path, {"api.return.md": returned()}) as s:
        await s.open("r")
        await s.shows("none was ever seen")
        area_of(s).text = handoff()
        await refused(s, "not yet: correct the handoff first: attempt must be 2")
        area_of(s).text = ""
        await s.until(lambda: "none was ever seen" in s.text() and "not yet" not in s.text())
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.handoff is None


async def test_a_handoff_with_an_unseen_note_is_shown_first(tmp_path):
    """A terminal may deliver the note and the key in one read: then the key arrives before the event about the note."""
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        note = s.dialog.query_one("#field-note", Input)
        with note.prevent(Input.Changed):
            note.value = "Use the map."
        await s.press("ctrl+s")
        await s.shows("The handoff is not what you saw: read it")
        assert s.entries() == ()
        await s.until(lambda: "Operator: Use the map." in s.text() and "✓ valid" in s.text())
        await s.press("ctrl+s")
        await s.until(lambda: not s.in_dialog)
        assert s.entries()[0].record.note == "Use the map."
        assert packet_of(s)["notes"][0] == "Operator: Use the map."


class Silent(FilesSource):
    """A source that returns no text while `answers` is false, and has lost the texts if `has_it` is false."""

    answers, has_it = True, True

    def content(self, digest: str) -> str | None:
        if not self.answers:
            raise NoAnswerError("build1 does not give the text now: it does not answer")
        return super().content(digest) if self.has_it else None


@pytest.mark.parametrize("key", ["r", "e"])
async def test_a_text_that_was_never_shown_is_not_signed(tmp_path, key):
    source = Silent(tmp_path / "shop")
    async with office(tmp_path, settings=Settings(modes=(("debug", ""),)), source=source) as s:
        source.answers = False
        await s.open(key)
        await refused(s, "not yet: the handoff is not here: build1 does not give the text now")
        assert "not kept any more" not in s.words()
        source.answers = True
        # The screen asks for the text again by itself; the operator has not read it yet.
        await s.until(lambda: "Build the API." in area_of(s).text)
        await s.press("ctrl+s")
        assert s.entries() == ()
        await s.ready()
        shown = area_of(s).text
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.handoff == shown
        assert "Hint of attempt 1: Raise the time-out." in shown


async def test_a_text_that_vanishes_meanwhile_is_not_signed_blank(tmp_path):
    source = Silent(tmp_path / "shop")
    async with office(tmp_path, source=source) as s:
        await s.open("r")
        await s.ready()
        source.has_it = False
        await s.press("ctrl+s")
        await s.shows("The handoff is not what you saw: read it")
        assert "is not kept any more" in s.words()
        assert s.entries() == ()


async def test_a_key_that_is_held_down_records_nothing(tmp_path):
    async with office(tmp_path) as s:
        s.tree.select("shop.api")
        await s.press("r")
        await s.shows("◌ read it first")
        for _ in range(5):
            s.clock[0] += 0.8 * ARMING_SECONDS
            await s.press("ctrl+s")
            await s.shows("too early, nothing is recorded: ctrl+s")
        assert s.entries() == ()


async def test_a_return_that_changed_unseen_is_refused_by_the_ledger(tmp_path):
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        # The tree does not know of this change: the file is read again when the decision is written.
        file = s.workspace / "api.return.md"
        status = file.stat()
        file.write_text(file.read_text().replace("timed out", "timed oat"))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        await s.press("ctrl+s")
        await s.until(lambda: "not recorded: the return" in s.text() or "✗ The return has changed" in s.text())
        assert s.in_dialog
        assert s.entries() == ()


async def test_the_second_operator_sees_the_decision_of_the_first(tmp_path):
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        subject = s.desk.subject(s.app.monitor.tree.tasks["shop.api"])
        desk_of(s.home).decide(subject, Action.ABORT, Params(), find_digest=lambda: subject.return_sha256)
        await s.press("ctrl+s")
        await s.until(lambda: "already decided" in s.text() or "It was decided meanwhile: abort." in s.text())
        # The return itself has not changed since the operator saw it.
        assert "unchanged" in s.line("return ")
        assert s.in_dialog
        assert [entry.record.action for entry in s.entries()] == [Action.ABORT]


async def test_a_locked_key_asks_for_its_passphrase_on_the_screen(tmp_path):
    async with office(tmp_path) as s:
        s.desk.keys.create("sesame")
        await s.open("r")
        await s.ready()
        await s.press("ctrl+s")
        await s.shows("is encrypted: type its passphrase")
        await s.press(*"wrong", "ctrl+s")
        await s.shows("the passphrase is wrong")
        assert "wrong" not in s.line("unlock ")
        assert s.entries() == ()
        await s.press(*"sesame")
        assert "sesame" not in s.text()
        await s.press("ctrl+s")
        await s.until(lambda: not s.in_dialog)
        assert len(s.entries()) == 1


async def test_an_error_of_the_disk_keeps_the_dialog_open(tmp_path):
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        s.desk.ledger.directory.mkdir(parents=True, exist_ok=True)
        s.desk.ledger.directory.chmod(0o755)
        await s.press("ctrl+s")
        await s.shows("is open to others (mode 755)")
        assert s.in_dialog
        s.desk.ledger.directory.chmod(0o700)
        await s.press("x")
        await s.record()
        assert len(s.entries()) == 1


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
    """Check that all lines between the double lines are the dialog's own, and that no other line looks like them."""
    lines = s.text().splitlines()
    edge = lines[0].index("╔")
    bottom = next(number for number, line in enumerate(lines) if line[edge : edge + 1] == "╚")
    frame = [line[edge + 1 : -1].strip() for line in lines[1:bottom]]
    labels = "task|asks|…|return|retries|writes|beware|different|hint|handoff|note|◌|◆|○|✗"
    assert lines[0][edge:].startswith("╔═ ◆ ↻ Retry ═")
    assert all(re.match(labels, line) for line in frame), frame
    assert len([line for line in frame if line.startswith("retries")]) == 1
    # The id stands in quotation marks, and cannot close them.
    (task,) = [line for line in frame if line.startswith("task")]
    assert task.count("“") == task.count("”") == 1
    assert "✗ failed → attempt 2" in task or "‼ invalid → attempt 2" in task
    for line in lines[bottom + 1 : -1]:
        assert (line[edge : edge + 1], line[-1]) in (("╭", "╮"), ("│", "│"), ("╰", "╯"))
        assert not line[edge + 1 :].startswith(("╔", "║", "╚"))
    assert all(character.isprintable() for line in lines for character in line)
