"""Run with `python -m tests.benchmarks [NAME…]`: one table of ratios, with their goals. Never part of the test suite.

`--short` takes less than a minute. `--against DIR` does so beside a checkout of the commit before, and fails where a
ratio is worse by half than there, twice.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Final

from tests.benchmarks.measuring import HEAD, Row

_WORSE: Final = 1.5


def _modules(names: Iterable[str]) -> list[str]:
    return sorted(names or (path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")))


def _short() -> list[Row]:
    modules = [import_module(f"tests.benchmarks.bench_{name}") for name in _modules(())]
    return [row for module in modules if hasattr(module, "short") for row in module.short()]


def _ratios(checkout: Path) -> dict[str, float] | None:
    """What a checkout's own short form finds of its own package; None where it has none, or it does not run here."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (checkout / "tui", checkout)))}
    command = [sys.executable, "-m", "tests.benchmarks", "--short", "--json"]
    ran = subprocess.run(command, cwd=checkout, env=environment, check=False, capture_output=True)
    return dict(json.loads(ran.stdout)) if ran.returncode == 0 else None


def _worse(checkout: Path) -> set[str]:
    """Measure both once, and print it: the rows that are worse by half here."""
    before = _ratios(checkout)
    if before is None:
        print("the commit before cannot be measured: nothing to compare with")
    worse = set()
    for row in _short():
        known = (before or {}).get(row.what)
        print(row, "" if known is None else f"(before: {known:.2f})", flush=True)
        if known is not None and row.ratio > known * _WORSE:
            worse.add(row.what)
    return worse


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these of the modules bench_NAME")
    parser.add_argument("--short", action="store_true", help="a few rows, in less than a minute")
    parser.add_argument("--against", type=Path, metavar="DIR", help="the short form, beside another checkout")
    parser.add_argument("--json", action="store_true", help="the ratios of the short form, for --against")
    asked = parser.parse_args()
    if asked.json:
        print(json.dumps([(row.what, row.ratio) for row in _short()]))
        return
    print(f"{_load()} before\n{HEAD}", flush=True)
    if asked.against is not None:
        worse = _worse(asked.against.resolve())
        if worse and (worse := worse & _worse(asked.against.resolve())):
            sys.exit(f"worse by half than the commit before, twice: {', '.join(sorted(worse))}")
    elif asked.short:
        for row in _short():
            print(row, flush=True)
    else:
        for name in _modules(asked.names):
            for row in import_module(f"tests.benchmarks.bench_{name}").run():
                print(row, flush=True)
    print(f"{_load()} after")


def _load() -> str:
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}"


if __name__ == "__main__":
    main()
