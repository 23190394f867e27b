"""Make the goldens anew, or compare: ``python -m tests.golden [--check] [NAME...]``.

Prints what became different, state by state. Exit code 1 if anything did.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.golden import helps
from tests.golden.compare import difference, path_of
from tests.golden.goldens import all_goldens, make


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a state, or a part of its name")
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    given = parser.parse_args()
    wanted = [
        name
        for name in dict.fromkeys([*all_goldens(), *helps.found()])
        if not given.names or any(part in name for part in given.names)
    ]
    with ProcessPoolExecutor(given.jobs) as workers:
        made = workers.map(make, wanted)
        differed = [
            _compare(name, today, given.check) for name, today in zip(wanted, made, strict=True)
        ]
    print(f"{sum(differed)} of {len(differed)} goldens differ", file=sys.stderr)
    return int(any(differed))


def _compare(name: str, today: str, check: bool) -> bool:
    found = difference(name, today)
    if found:
        print(found, flush=True)
        if not check:
            _keep(path_of(name), today)
    return bool(found)


def _keep(path: Path, today: str) -> None:
    """Write a golden; one of something that is gone goes, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(today, encoding="utf-8")
    if not today:
        path.unlink()


if __name__ == "__main__":
    sys.exit(main())
