"""A key whose passphrase the keyring holds: nothing is typed where it answers, and the dialog says why where not."""

from __future__ import annotations

from pathlib import Path

from keyring.errors import KeyringLocked
from tests.app.deciding import office
from tests.unit.decisions.rings import Ring, in_use

from agentwatch.decisions.keys import PRIVATE, store


async def test_the_keyring_is_asked_before_the_operator(tmp_path: Path) -> None:
    ring = Ring()
    with in_use(ring):
        async with office(tmp_path) as s:
            keys = s.desk.keys
            keys.create("sesame")
            keys.choose_keyring(chosen=True)
            store(keys.directory / PRIVATE, "sesame")
            ring.trouble = KeyringLocked()
            await s.open("r")
            await s.ready()
            await s.press("ctrl+s")
            await s.until(lambda: "“KeyringLocked”: type its passphrase" in s.words)
            assert s.entries() == ()
            ring.trouble = None
            await s.press("ctrl+s")
            await s.until(lambda: not s.in_dialog)
            assert len(s.entries()) == 1
