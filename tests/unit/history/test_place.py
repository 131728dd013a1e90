"""Where the history of a workspace lies, and which journal it gets there."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agentwatch.history.database import has_safe_log, kind_of
from agentwatch.state import state_directory, workspace_id

TABLE = b"""\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /home/user rw shared:2 - nfs4 server:/home rw
23 22 8:2 / /home/user/with\\040space rw - xfs /dev/sdb1 rw
24 21 0:21 / /mnt rw - fuse.sshfs host: rw
25 21 0:22 / /over rw - nfs server:/a rw
26 21 8:3 / /over rw - btrfs /dev/sdc1 rw
garbage
"""


def test_the_directory_is_below_the_state_directory_of_the_user(tmp_path: Path) -> None:
    found = state_directory(Path("/a/b/Shop Front"), {"XDG_STATE_HOME": str(tmp_path)})
    assert found.parent == tmp_path / "agentwatch"
    assert re.fullmatch(r"shop-front-[0-9a-f]{16}", found.name)
    assert not found.exists()


@pytest.mark.parametrize("value", ["", "relative/path"])
def test_without_a_usable_setting_it_is_in_the_home(value: str) -> None:
    found = state_directory(Path("/a"), {"XDG_STATE_HOME": value})
    assert found.parent == Path.home() / ".local" / "state" / "agentwatch"


def test_a_link_to_a_workspace_is_that_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert workspace_id(tmp_path / "link") == workspace_id(tmp_path / "real")
    assert workspace_id(tmp_path / "real") != workspace_id(tmp_path)


@pytest.mark.parametrize("name", [b"\xff\xfe", "größe 漢字".encode(), b"x" * 200, b"--", b"a\nb\x1b[31m"])
def test_any_name_gives_a_plain_one(name: bytes) -> None:
    assert re.fullmatch(r"[a-z0-9_-]{1,60}", workspace_id(Path(os.fsdecode(b"/w/" + name))))
    assert re.fullmatch(r"workspace-[0-9a-f]{16}", workspace_id(Path("/")))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"/var/lib", "ext4"),
        (b"/home/user/x", "nfs4"),
        (b"/home/username", "ext4"),
        (b"/home/user/with space/y", "xfs"),
        (b"/mnt", "fuse.sshfs"),
        (b"/over/z", "btrfs"),
    ],
)
def test_the_type_of_the_file_system_is_that_of_the_mount_around_it(path: bytes, kind: str) -> None:
    assert kind_of(path, TABLE) == kind


def test_what_is_not_known_to_be_local_gets_no_log(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    assert not has_safe_log(tmp_path, table)
    table.write_bytes(b"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    assert has_safe_log(tmp_path, table)
    table.write_bytes(b"21 1 8:1 / / rw - 9p host rw\n")
    assert not has_safe_log(tmp_path, table)
    table.write_bytes(b"")
    assert not has_safe_log(tmp_path, table)
