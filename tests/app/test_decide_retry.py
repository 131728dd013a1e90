"""Retry on the screen, from the key to the ledger: the amended handoff, its check, its changes, the editor."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.app.deciding import FAILED, Office, office
from tests.journeys.made import handoff, returned
from textual.widgets import Input, TextArea

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.dialogs.document import Document
from agentwatch.config import Settings
from agentwatch.decisions.errors import NoAnswerError
from agentwatch.decisions.record import Mitigation


def document(s: Office) -> Document:
    return s.dialog.query_one(Document)


def packet_of(text: str | None) -> Any:
    return json.loads(text or "")


async def test_a_last_handoff_that_breaks_its_contract_is_corrected_first(tmp_path: Path) -> None:
    broken = json.loads(handoff())
    del broken["risks"]
    async with office(tmp_path, FAILED | {"api.handoff.json": json.dumps(broken)}) as s:
        await s.open("r")
        s.wait_for_arming()
        await s.until(lambda: "not yet: correct the handoff first" in s.text())
        await s.press("ctrl+s")
        assert s.entries() == ()
        packet = packet_of(document(s).text)
        s.dialog.query_one(TextArea).text = json.dumps(packet | {"risks": [{"risk": "Late.", "mitigation": "Ask."}]})
        await s.until(lambda: "✓ valid" in s.text())
        await s.record()
    assert len(s.entries()) == 1


async def test_the_last_retry_needs_a_mitigation(tmp_path: Path) -> None:
    files = {
        "api.handoff.json": handoff(attempt=2),
        "api.return.md": returned(more="error_code: E_TOOL_FAILURE\nattempt: 2\n"),
    }
    async with office(tmp_path, files) as s:
        await s.open("r")
        s.wait_for_arming()
        await s.until(lambda: "✓ valid" in s.text())
        assert "a material mitigation earns one more" in s.line("not yet:")
        assert "0 of 1 left now, 0 after this" in s.line("retries ")
        await s.press("ctrl+s")
        assert s.in_dialog
        assert s.entries() == ()
        assert s.app.focused is not None
        assert s.app.focused.id == "field-mitigation"
        await s.press("right", "right")
        await s.until(lambda: "1 of 2 left now, 0 after this; the mitigation earns one" in s.text())
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.mitigation is Mitigation.REDUCED_SCOPE


async def test_what_is_edited_is_checked_and_what_breaks_the_contract_is_not_recorded(tmp_path: Path) -> None:
    async with office(tmp_path) as s:
        await s.open("r")
        await s.until(lambda: "✓ valid" in s.text())
        area = s.dialog.query_one(TextArea)
        area.text = area.text.replace('"attempt": 2', '"attempt": 7')
        await s.until(lambda: "✗ attempt must be 2" in s.text())
        s.wait_for_arming()
        await s.press("ctrl+s")
        await s.until(lambda: "not yet: correct the handoff first" in s.text())
        assert s.entries() == ()
        area.text = area.text.replace('"attempt": 7', '"attempt": 2').replace("Build the API.", "Build it in halves.")
        await s.until(lambda: "✓ valid" in s.text())
        assert "edited by you" in s.text()
        s.dialog.query_one("#field-note").focus()
        await s.press(*"later")
        await s.record()
        (entry,) = s.entries()
        packet = packet_of(entry.record.params.handoff)
        assert packet["objective"] == "Build it in halves."
        assert entry.record.note == "later"
        assert "Operator: later" not in packet["notes"]


def editing(change: Callable[[Path], object], code: int = 0) -> Callable[[list[str], object], int]:
    def edit(command: list[str], _lines: object = ()) -> int:
        change(Path(command[-1]))
        return code

    return edit


async def test_the_editor_gets_a_private_file_outside_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Path, int, int]] = []

    def change(path: Path) -> None:
        modes = (stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent))
        seen.append((path, *modes))
        path.write_text(path.read_text().replace("Build the API.", "Build half of it."))

    monkeypatch.setenv("VISUAL", "vi")
    monkeypatch.setattr("agentwatch.app.editor.run", editing(change))
    monkeypatch.setattr(AgentwatchApp, "suspend", lambda _app: nullcontext())
    async with office(tmp_path) as s:
        await s.open("r")
        await s.until(lambda: "✓ valid" in s.text())
        await s.ready()
        await s.press("ctrl+e")
        await s.until(lambda: "Build half of it." in document(s).text)
        # What was typed in the editor must not count here.
        await s.until(lambda: "read it first" in s.text())
        await s.record()
        (entry,) = s.entries()
        assert packet_of(entry.record.params.handoff)["objective"] == "Build half of it."
        ((path, mode, mode_of_directory),) = seen
        assert (mode, mode_of_directory) == (0o600, 0o700)
        assert not path.is_relative_to(s.workspace)
        assert not path.parent.exists()


async def test_an_editor_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "vi")
    monkeypatch.setattr("agentwatch.app.editor.run", editing(lambda path: path.write_text("gone"), code=1))
    monkeypatch.setattr(AgentwatchApp, "suspend", lambda _app: nullcontext())
    async with office(tmp_path) as s:
        await s.open("r")
        await s.until(lambda: "✓ valid" in s.text())
        await s.press("ctrl+e")
        await s.until(lambda: "vi ended with exit code 1." in s.toasts)
        assert "Build the API." in document(s).text


async def test_what_is_too_large_for_the_screen_is_not_signed(tmp_path: Path) -> None:
    async with office(tmp_path, FAILED | {"api.handoff.json": handoff(notes=["word " * 30_000])}) as s:
        await s.open("r")
        s.wait_for_arming()
        await s.until(lambda: "not yet: the handoff is too large to be shown here" in s.words)
        await s.press("ctrl+s")
        assert s.entries() == ()


async def test_a_handoff_that_is_written_from_nothing_is_checked_too(tmp_path: Path) -> None:
    async with office(tmp_path, {"api.return.md": returned()}) as s:
        await s.open("r")
        await s.until(lambda: "none was ever seen" in s.text())
        area = s.dialog.query_one(TextArea)
        area.text = handoff()
        await s.until(lambda: "✗ attempt must be 2" in s.text())
        s.wait_for_arming()
        await s.press("ctrl+s")
        await s.until(lambda: "not yet: correct the handoff first" in s.text())
        assert s.entries() == ()
        area.text = ""
        await s.until(lambda: "none was ever seen" in s.text() and "not yet" not in s.text())
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.handoff is None


async def test_a_note_that_nobody_saw_in_it_is_shown_first(tmp_path: Path) -> None:
    """A terminal hands over note and key in one read: the key is heard before anybody is told of the note."""
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        dialog = s.dialog
        note = dialog.query_one("#field-note", Input)
        with note.prevent(Input.Changed):
            note.value = "Use the map."
        await s.press("ctrl+s")
        await s.until(lambda: "The handoff is not what you saw: read it" in s.words)
        assert s.entries() == ()
        await s.until(lambda: "Operator: Use the map." in s.text() and "✓ valid" in s.text())
        await s.press("ctrl+s")
        await s.until(lambda: s.app.screen is not dialog)
        (entry,) = s.entries()
        assert entry.record.note == "Use the map."
        assert json.loads(entry.record.params.handoff or "")["notes"][0] == "Operator: Use the map."


class Silent:
    """A host's text: it is not given until the host answers, and then it may be gone."""

    def __init__(self, monitor: Any) -> None:
        self.content, self.answers, self.has_it = monitor._source.content, False, True
        monitor._source.content = self

    def __call__(self, digest: str) -> str | None:
        if not self.answers:
            raise NoAnswerError("build1 does not give the text now: it does not answer")
        return self.content(digest) if self.has_it else None


@pytest.mark.parametrize("key", ["r", "e"])
async def test_a_text_that_was_never_shown_is_not_signed(tmp_path: Path, key: str) -> None:
    async with office(tmp_path, settings=Settings(modes=(("debug", ""),))) as s:
        host = Silent(s.app.monitor)
        s.tree.select("shop.api")
        await s.press(key)
        await s.until(lambda: s.in_dialog)
        s.wait_for_arming()
        await s.until(lambda: "not yet: the handoff is not here: build1 does not give the text now" in s.words)
        assert "not kept any more" not in s.words
        await s.press("ctrl+s")
        assert s.in_dialog
        host.answers = True
        # The screen goes on asking by itself; nobody has read it yet.
        await s.until(lambda: "Build the API." in document(s).text)
        await s.press("ctrl+s")
        assert s.entries() == ()
        await s.ready()
        shown = s.dialog.query_one(TextArea).text
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.handoff == shown
        assert "Hint of attempt 1: Raise the time-out." in shown


async def test_a_text_that_vanishes_meanwhile_is_not_signed_blank(tmp_path: Path) -> None:
    async with office(tmp_path) as s:
        await s.open("r")
        await s.ready()
        host = Silent(s.app.monitor)
        host.answers, host.has_it = True, False
        await s.press("ctrl+s")
        await s.until(lambda: "The handoff is not what you saw: read it" in s.words)
        assert "is not kept any more" in s.words
        assert s.entries() == ()
