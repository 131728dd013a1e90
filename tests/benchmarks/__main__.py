"""Run with `python -m tests.benchmarks [NAME…]`: a table of ratios, with their goals. Never part of the test suite."""

import argparse
import os
from importlib import import_module
from pathlib import Path

from tests.benchmarks.measuring import HEAD


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these of the modules bench_NAME")
    names = parser.parse_args().names
    print(f"{_load()} before\n{HEAD}", flush=True)
    for name in sorted(
        names or (path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    ):
        for row in import_module(f"tests.benchmarks.bench_{name}").run():
            print(row, flush=True)
    print(f"{_load()} after")


def _load() -> str:
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}"


if __name__ == "__main__":
    main()
