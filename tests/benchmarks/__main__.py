"""Print a table of ratios with their goals: `python -m tests.benchmarks [NAME…]`. Never part of the test suite."""

import os
import sys
from importlib import import_module
from pathlib import Path

from tests.benchmarks.measuring import HEAD


def main():
    known = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}\n{HEAD}", flush=True)
    for name in sys.argv[1:] or known:
        for row in import_module(f"tests.benchmarks.bench_{name}").run():
            print(row, flush=True)


if __name__ == "__main__":
    main()
