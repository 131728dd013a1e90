"""What the chats of Qwen Code come to, where they say less, or more, than one would think."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.unit.qwen.building import SESSION, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces and start times are read from /proc")
def test_a_program_that_left_its_file_behind_is_gone(store: Store) -> None:
    store.session().asked("Go.")
    store.save()
    path = store.home / "sessions" / "7.json"
    path.parent.mkdir()
    namespace = int("".join(filter(str.isdigit, str(Path("/proc/self/ns/pid").readlink()))))
    known = {"pid": os.getpid(), "procStart": "boot:1", "pidNs": namespace, "sessionId": SESSION}
    path.write_text(json.dumps(known), encoding="utf-8")
    os.utime(store.session().path, (1.0, 1.0))
    assert store.runs()[SESSION].process_gone is True
    path.write_text(json.dumps(known | {"pidNs": namespace + 1}), encoding="utf-8")
    assert store.runs()[SESSION].process_gone is None
