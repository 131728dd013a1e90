"""What can be set about the files source."""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_BYTES: Final = 1024 * 1024
"""Handoffs and returns are a few KiB; whatever is larger was not written to be read by an orchestrator."""

DEFAULT_PRUNED: Final = frozenset[str]().union(
    # Version stores: the tool's own objects, changed by it all the time. No agent hands anything over there.
    (".git", ".hg", ".jj", ".svn"),
    # Installed packages: up to a hundred thousand files that ship README.md and package.json.
    ("node_modules", "site-packages", ".pnpm-store", ".yarn"),
    # Virtual environments and test environments: the same, by the names their tools give.
    (".venv", "venv", ".tox", ".nox", ".direnv"),
    # Lean: downloaded libraries and build products, mathlib with its thousands of files among them.
    (".lake",),
    # Caches, rewritten by their tools on each run.
    ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".gradle", ".terraform"),
    # Our own mirror: a decision is never taken for a handoff.
    (".agentwatch",),
)
"""Directories that are never entered, by name. Words that people give to directories of their own (`build`, `target`,
`dist`, `out`, `vendor`, `env`) are not in it, nor other dot directories, nor what git ignores: agents write there."""


class FilesSettings(NamedTuple):
    """`pruned`: directories that are not entered, by name or by a pattern such as `build-*`. `max_bytes`: larger
    files are refused. `settle_seconds`: how long a half-written file must rest before it is shown as broken.
    `force_polling`: never rely on events of the file system.
    """

    pruned: frozenset[str] = DEFAULT_PRUNED
    max_bytes: int = MAX_BYTES
    settle_seconds: float = 2.0
    force_polling: bool = False
