"""Finds the git repository of a workspace and reads what is needed of it without running git.

Its configuration is an agent's to write, and git runs programs that a configuration names: fsmonitor, hooks, filters,
textconv, pagers, transports. So git never reads it. HEAD and a few harmless settings are read here; everything else
is looked at through a repository of our own that borrows the objects and the index (see `plumbing`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.worktrees import NoRepositoryError, git_directories
from agentwatch.sources.worktrees import git_text as _text

_OBJECT_NAME: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_REFERENCE: Final = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000}\Z")
_SECTION: Final = re.compile(r"\s*\[\s*([A-Za-z0-9.-]+)\s*(\"[^\"]*\")?\s*\]")
_SETTING: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*\"?([A-Za-z0-9]{1,16})\"?\s*(?:[#;].*)?\Z")
_SETTINGS: Final = frozenset(
    {"symlinks", "ignorecase", "precomposeunicode", "autocrlf", "eol", "trustctime", "checkstat"}
)
"""Settings of `[core]` that say how files compare and name no program."""

_CONFIGURATION: Final = 1024 * 1024
_PACKED: Final = 64 * 1024 * 1024
_HOPS: Final = 5


class NotInRepositoryError(NoRepositoryError):
    """No directory from the workspace up is under git: there is nothing to ask, and nothing that failed."""


class Repository(NamedTuple):
    """A work tree and its repository: absolute paths, resolved.

    `prefix` is the workspace below the work tree, "" or ending in `/`. `head` is the commit checked out, None before
    the first one.
    """

    top: str
    git_directory: str
    common_directory: str
    prefix: str
    head: str | None
    settings: tuple[tuple[str, str], ...]


def find_repository(workspace: str) -> Repository:
    """The repository that the workspace is in, itself or one of the directories above. Raises NoRepositoryError."""
    for top in map(str, (Path(workspace), *Path(workspace).parents)):
        try:
            git, common = git_directories(top)
        except FileNotFoundError:
            if all(os.path.exists(f"{top}/{name}") for name in ("HEAD", "objects", "refs")):
                raise NoRepositoryError("a bare git repository: it has no files to compare with") from None
            continue
        prefix = "" if top == workspace else os.path.relpath(workspace, top) + "/"
        settings, format_is_known = _settings(common)
        if not format_is_known:
            raise NoRepositoryError("git keeps its references in a format (reftable) that agentwatch cannot read")
        head = _head(git, common)
        if head is None and _has_commits(git, common):
            why = "the HEAD of the git repository names a branch without a commit, though there are commits"
            raise NoRepositoryError(why)
        return Repository(top, git, common, prefix, head, settings)
    raise NotInRepositoryError("not in a git repository")


def _head(git: str, common: str) -> str | None:
    name = "HEAD"
    for _ in range(_HOPS):
        text = _text(git, name) if name == "HEAD" else _text(git, name) or _text(common, name)
        if text is None and name == "HEAD":
            raise NoRepositoryError("the git repository has no HEAD that can be read")
        if text is None:
            return _packed(common, name)
        text = text.strip()
        if _OBJECT_NAME.match(text):
            return text
        name = text.removeprefix("ref:").strip()
        if not text.startswith("ref:") or not _REFERENCE.match(name) or ".." in name:
            break
    raise NoRepositoryError("the HEAD of the git repository cannot be understood")


def _packed(common: str, name: str) -> str | None:
    """The commit of a reference that has no file of its own, None for a branch without a commit."""
    text = _text(common, "packed-refs", _PACKED) or ""
    match = re.search(rf"^([0-9a-f]{{40}}|[0-9a-f]{{64}}) {re.escape(name)}$", text, re.MULTILINE)
    return match[1] if match else None


def tips(repository: Repository) -> list[str]:
    """The names of all objects that the references of a repository name, of every branch and tag, and its HEAD."""
    common = repository.common_directory
    names = set(
        re.findall(r"^([0-9a-f]{40}|[0-9a-f]{64}) refs/", _text(common, "packed-refs", _PACKED) or "", re.MULTILINE)
    )
    for directory, _, files in os.walk(f"{common}/refs"):
        names.update((_text(directory, name) or "").strip() for name in files)
    return sorted(name for name in names | {repository.head or ""} if _OBJECT_NAME.match(name))


def _has_commits(git: str, common: str) -> bool:
    """A repository whose HEAD has no commit had some all the same: another branch, packed ones, or a log of them."""
    logged = os.path.lexists(f"{git}/logs/HEAD") or os.path.lexists(f"{common}/packed-refs")
    return logged or any(names for _, _, names in os.walk(f"{common}/refs"))


def _settings(common: str) -> tuple[tuple[tuple[str, str], ...], bool]:
    """(the settings that say how files compare, whether references are kept as files)."""
    settings: dict[str, str] = {}
    files = True
    section = ""
    for line in (_text(common, "config", _CONFIGURATION) or "").splitlines():
        if header := _SECTION.match(line):
            section = header[1].lower() if header[2] is None else ""
        setting = _SETTING.match(line, header.end() if header else 0)
        if setting is None:
            continue
        key, value = setting[1].lower(), setting[2]
        if section == "core" and key in _SETTINGS:
            settings[key] = value
        elif section == "extensions" and key == "refstorage":
            files = value.lower() == "files"
    return tuple(sorted(settings.items())), files
