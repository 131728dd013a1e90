"""Transcripts of sessions: each line that begins with `$` is run again, and all that comes of it is compared.

`$ agentwatch …` runs in this process, with `< FILE` from a file, and `LAST-ID` is the last id that was printed; `$ cd`,
`$ export` and `$ wait hours=2` change this world, and all others are for a shell. Below a line stand, each with its
mark, standard output (two blanks), standard error (`!`), the exit code unless it is 0 (`=`), and what was made (`+`),
changed (`~`) or removed (`-`), with modes. To add a case, write its line and run
`pytest tests/goldens --update-goldens`.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.goldens.world import Result, World, scrub


class Session:
    """What is typed in one world."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch):
        self.world, self.monkeypatch = world, monkeypatch
        self.here, self.before = world.root / "shop", world.files()
        self.ids = ["0" * 32]
        """Those that were printed, the last one behind the others."""
        self.seen: dict[str, None] = {}
        """The same, the first one before the others."""

    def answer(self, line: str) -> str:
        """All that a line brings about, below it."""
        name, _, rest = line.replace("LAST-ID", self.ids[-1]).partition(" ")
        result = Result(0, "", "")
        if name == "agentwatch":
            words, file = shlex.split(rest), ""
            if "<" in words[-2:-1]:
                words, file = words[:-2], words[-1]
            result = self.world.run(*words, stdin=(self.here / file).read_bytes() if file else b"", cwd=self.here)
        elif name == "cd":
            self.here = (self.world.root / rest).resolve()
        elif name == "export":
            variable, _, value = rest.partition("=")
            self.monkeypatch.setenv(variable, value.replace("@", str(self.world.root)))
        elif name == "wait":
            unit, _, count = rest.partition("=")
            self.world.wait(**{unit: float(count)})
        else:
            result = self.world.shell(f"{name} {rest}", self.here)
        self.world.date_files()
        for one in re.findall(r"\b[0-9a-f]{32}\b", result.out + result.err):
            self.seen.setdefault(one)
            self.ids = [*(other for other in self.ids if other != one), one]
        told = [f"  {one}".rstrip() for one in result.out.splitlines()] + [
            f"! {one}" for one in result.err.splitlines()
        ]
        if result.code:
            told.append(f"= {result.code}")
        after = self.world.files()
        if name == "agentwatch":
            for path in sorted({*self.before, *after}, key=self._order):
                if self.before.get(path) != after.get(path):
                    mark = "+" if path not in self.before else "-" if path not in after else "~"
                    told.append(f"{mark} {(after.get(path) or self.before[path])[0]} {path}")
        self.before = after
        return "".join(f"{one}\n" for one in told)

    def _order(self, path: str) -> tuple[str, str]:
        # Another directory gives other ids, and another order of them.
        known = {one: f"{number:04d}" for number, one in enumerate(self.seen)}
        return re.sub(r"[0-9a-f]{32}", lambda found: known.get(found[0], "new"), path), path


def play(session: Session, file: Path) -> str:
    """The transcript in a file as it reads today."""
    lines, parts = list[str](), list[str]()
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("$ "):
            lines.append(line)
            parts.append(f"$\n{session.answer(line[2:])}")
        elif line.startswith("#"):
            parts.append(f"\n{line}\n" if parts else f"{line}\n")
    text, typed = scrub("".join(parts), session.world.root), iter(lines)
    return tidy(re.sub(r"^\$$", lambda _: next(typed), text, flags=re.MULTILINE))


def tidy(text: str) -> str:
    """Take out how one Python writes its help, and what is about to go."""
    text = re.sub(r"^  (  agentwatch doctor|teamwork) .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\(choose from .*\)", lambda one: one[0].replace("'", ""), text)
    text = re.sub(
        r"^[! ] usage: .*(?:\n[! ] {9,}\S.*)+", lambda one: re.sub(r"\n. +", " ", one[0]), text, flags=re.MULTILINE
    )
    return re.sub(r"^(  +)-(\w) ([A-Z]+), (--\w+) \3", r"\1-\2, \4 \3", text, flags=re.MULTILINE)
