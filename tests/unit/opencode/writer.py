"""A program in a process of its own that writes without end: to be read beside, and to be killed.

Arguments: the database, the workspace, the journal, and for how many seconds. Prints how often it was told that the
database is busy, with the patience that OpenCode has, and how long its slowest change took in milliseconds.
"""

import sqlite3
import sys
import time
from pathlib import Path

from tests.unit.opencode.program import Program, framed


def main(database: Path, workspace: Path, journal: str, seconds: float):
    program = Program(database, workspace, journal=journal)
    program.connection.execute("PRAGMA busy_timeout = 5000")
    root = program.session()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    busy, slowest, end = 0, 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            asking = program.begin(root)
            child, call = program.delegate(root, asking, "Do it. " * 200)
            program.answer(child, "Done. " * 200)
            program.hand_out(root, asking, child, "Do it.", call, status="completed", output=framed(child, "Done."))
            if journal == "wal":
                program.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.OperationalError:
            busy += 1
        slowest = max(slowest, time.monotonic() - begun)
    sys.stdout.write(f"{busy} {slowest * 1000:.0f}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
