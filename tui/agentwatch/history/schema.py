"""The tables of the history, and how an older one is brought up to date.

`PRAGMA user_version` counts the migrations that were applied, `application_id` tells our files from others. To change
the schema, append a migration; never edit one.

observations  append-only, in the order they were recorded. `digest` is null where the file was gone. `run` is the
              process that recorded it and `ordinal` its own count: the same record twice is one row.
texts         zlib of the document, once for each digest. The texts of superseded versions are dropped first.
files         the index for a warm start; an empty digest for a file that holds no document. `contracts` is the version
              of the code that judged them.
requests      what is remembered of each request that has ended, as zlib of JSON; the latest.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "history.db"
"""The file, in the state directory of a workspace."""

APPLICATION_ID: Final = 0x61677768
"""`agwh`."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE observations (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            run TEXT NOT NULL,
            ordinal INTEGER NOT NULL,
            at REAL NOT NULL,
            path TEXT NOT NULL,
            digest TEXT,
            outline TEXT,
            UNIQUE (run, ordinal)
        )""",
        "CREATE INDEX observations_path ON observations (path, id)",
        "CREATE INDEX observations_digest ON observations (digest)",
        "CREATE TABLE texts (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, packed BLOB NOT NULL)",
    ),
    (
        """CREATE TABLE files (
            path TEXT PRIMARY KEY,
            mtime_ns INTEGER NOT NULL,
            ctime_ns INTEGER NOT NULL,
            size INTEGER NOT NULL,
            inode INTEGER NOT NULL,
            digest TEXT NOT NULL
        ) WITHOUT ROWID""",
    ),
    ("ALTER TABLE files ADD COLUMN contracts TEXT NOT NULL DEFAULT ''",),
    ("CREATE TABLE requests (request_id TEXT PRIMARY KEY, at REAL NOT NULL, packed BLOB NOT NULL) WITHOUT ROWID",),
)

SCHEMA_VERSION: Final = len(MIGRATIONS)
