"""Run with `python -m tests.benchmarks [NAME…]`: prints one ratio a line. Never part of the test suite."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    every = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    for name in sys.argv[1:] or every:
        for row in import_module(f"tests.benchmarks.bench_{name}").run():
            print(row, flush=True)


main()
