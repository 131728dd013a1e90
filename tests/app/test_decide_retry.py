"""Retry on the screen, from the key to the ledger: the amended handoff, its check, its changes, the editor."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.widgets import Input, TextArea

from agentwatch.config import Settings
from agentwatch.decisions.errors import NoAnswerError
from agentwatch.decisions.record import Mitigation
from agentwatch.sources.files.source import FilesSource
from tests.app.deciding import FAILED, Office, office
from tests.journeys.made import handoff, returned


def area_of(s: Office) -> TextArea:
    return s.dialog.query_one(TextArea)


def packet_of(s: Office) -> Any:
    """The handoff of the one decision that was recorded."""
    (entry,) = s.entries()
    return json.loads(entry.record.params.handoff or "")


async def refused(s: Office, words: str):
    """The key that records does nothing, and the screen says why."""
    s.wait_for_arming()
    await s.until(lambda: words in s.words)
    await s.press("ctrl+s")
    assert s.in_dialog
    assert s.entries() == ()


BROKEN = json.loads(handoff())
del BROKEN["risks"]


@pytest.mark.parametrize(
    ("files", "wrong", "right", "words"),
    [
        (
            {"api.handoff.json": json.dumps(BROKEN)},
            "",
            '"risks": [{"risk": "Late.", "mitigation": "Ask."}], "mode"',
            "",
        ),
        ({}, '"attempt": 7', '"attempt": 2', "✗ attempt must be 2"),
    ],
)
async def test_a_handoff_that_breaks_its_contract_is_corrected_first(tmp_path, files, wrong, right, words):
    async with office(tmp_path, FAILED | files) as s:
        await s.open("r")
        await s.until(lambda: "Build the API." in area_of(s).text)
        if wrong:
            area_of(s).text = area_of(s).text.replace(right, wrong)
        await s.until(lambda: words in s.words)
        await refused(s, "not yet: correct the handoff first")
        area_of(s).text = area_of(s).text.replace(wrong or '"mode"', right).replace("the API.", "it in halves.")
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
        await s.until(lambda: "✓ valid" in s.text())
        assert "0 of 1 left now, 0 after this" in s.line("retries ")
        await refused(s, "a material mitigation earns one more")
        assert s.app.focused is not None
        assert s.app.focused.id == "field-mitigation"
        await s.press("right", "right")
        await s.until(lambda: "1 of 2 left now, 0 after this; the mitigation earns one" in s.text())
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
    monkeypatch.setattr(App, "suspend", lambda _app: nullcontext())
    async with office(tmp_path) as s:
        await s.open("r")
        await s.until(lambda: "✓ valid" in s.text())
        await s.ready()
        await s.press("ctrl+e")
        # What was typed in the editor must not count here.
        await s.until(lambda: "read it first" in s.text())
        if code:
            await s.until(lambda: "ended with exit code 1." in s.toasts)
        await s.record()
        assert packet_of(s)["objective"] == ("Build the API." if code else "Build half of it.")
        name, *modes = json.loads(log.read_text())
        assert (Path(name).name, modes) == ("api.handoff.json", [0o600, 0o700])
        assert not Path(name).is_relative_to(s.workspace)
        assert not Path(name).parent.exists()


async def test_what_is_too_large_for_the_screen_is_not_signed(tmp_path):
    async with office(tmp_path, FAILED | {"api.handoff.json": handoff(notes=["word " * 30_000])}) as s:
        await s.open("r")
        await refused(s, "not yet: the handoff is too large to be shown here")


async def test_a_handoff_that_is_written_from_nothing_is_checked_too(tmp_path):
    async with office(tmp_path, {"api.return.md": returned()}) as s:
        await s.open("r")
        await s.until(lambda: "none was ever seen" in s.text())
        area_of(s).text = handoff()
        await refused(s, "not yet: correct the handoff first: attempt must be 2")
        area_of(s).text = ""
        await s.until(lambda: "none was ever seen" in s.text() and "not yet" not in s.text())
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.handoff is None


async def test_a_note_that_nobody_saw_in_it_is_shown_first(tmp_path):
    """A terminal hands over note and key in one read: the key is heard before anybody is told of the note."""
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        note = s.dialog.query_one("#field-note", Input)
        with note.prevent(Input.Changed):
            note.value = "Use the map."
        await s.press("ctrl+s")
        await s.until(lambda: "The handoff is not what you saw: read it" in s.words)
        assert s.entries() == ()
        await s.until(lambda: "Operator: Use the map." in s.text() and "✓ valid" in s.text())
        await s.press("ctrl+s")
        await s.until(lambda: not s.in_dialog)
        assert s.entries()[0].record.note == "Use the map."
        assert packet_of(s)["notes"][0] == "Operator: Use the map."


class Silent(FilesSource):
    """Gives no text until it answers, and then it may be gone."""

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
        assert "not kept any more" not in s.words
        source.answers = True
        # The screen goes on asking by itself; nobody has read it yet.
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
        await s.until(lambda: "The handoff is not what you saw: read it" in s.words)
        assert "is not kept any more" in s.words
        assert s.entries() == ()
